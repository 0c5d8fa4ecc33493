import { describe, expect, it } from 'vitest';
import type { HttpResponse, NotifyRequest } from '../../../agent/env.ts';
import { type ProcessOptions, startProcess } from '../../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster, rolled } from '../../kit/cluster.ts';
import { shareOf } from '../../kit/share.ts';

const channelFile = `apiVersion: rollout-group.dev/v1alpha1
kind: NotificationChannel
metadata: { name: sre, namespace: mimir }
spec:
  callback: { url: "http://127.0.0.1:1/hook" }
  usableFrom: { namespaces: [mimir] }
`;
const policyDirectory = { read: async () => [{ name: 'channel.yaml', text: channelFile }], watch: () => () => undefined };
const notify = [{ channel: 'sre', events: ['started', 'waiting', 'failed', 'completed'] }];

/** Rolls with a process that meets the fault, and another one that comes to its place. */
async function roll(answer: (request: NotifyRequest) => Promise<HttpResponse>, fault?: ProcessOptions['fault'], isTold = true) {
  const cluster = newCluster();
  nativeGroup(cluster, isTold ? { notify } : {}, { replicas: 2 });
  const told: { readonly id: string; readonly event: string }[] = [];
  const call = async (request: NotifyRequest): Promise<HttpResponse> => {
    const response = await answer(request);
    if (response.status === 200) told.push(JSON.parse(request.body ?? '{}'));
    return response;
  };
  const common = { env: cluster.env, policyDirectory, notify: call };
  const first = startProcess({ ...common, name: 'agent-1', ...(fault === undefined ? {} : { fault }) });
  await cluster.env.advance(5000);
  const second = startProcess({ ...common, name: 'agent-2' });
  cluster.rollTo('app:2');
  const beganMs = cluster.env.clock.monotonicMs();
  await cluster.env.until(() => rolled(cluster, 'app:2'), 1_200_000);
  const tookMs = cluster.env.clock.monotonicMs() - beganMs;
  await cluster.env.advance(200_000);
  void first.agent.stop();
  void second.agent.stop();
  await cluster.env.advance(30_000);
  return { cluster, told, first, tookMs };
}

const taken = async (): Promise<HttpResponse> => ({ status: 200, headers: {}, body: '' });

/** What was written to what is looked after, in order. */
function onWorkloads({ writes }: Cluster): readonly string[] {
  return writes().filter((write) => /(pods|statefulsets)/.test(write));
}

describe('an agent with notifications', () => {
  it('rolls out like an agent without notifications, with any answer of the service', { timeout: 120_000 }, async () => {
    const silent = await roll(taken, undefined, false);
    expect(silent.told).toEqual([]);
    expect(onWorkloads(silent.cluster).length).toBeGreaterThan(5);
    const answers: readonly ((request: NotifyRequest) => Promise<HttpResponse>)[] = [
      taken,
      () => new Promise<never>(() => undefined),
      () => Promise.reject(new Error('no route')),
      async () => ({ status: 500, headers: {}, body: 'x'.repeat(60_000) }),
    ];
    for (const answer of answers) {
      const telling = await roll(answer);
      expect(onWorkloads(telling.cluster)).toEqual(onWorkloads(silent.cluster));
      // The notes are writes too: the delays of the watches are drawn for other revisions.
      expect(Math.abs(telling.tookMs - silent.tookMs)).toBeLessThan(1000);
    }
  });

  it('sends each event once, at every point where the leader can die', { timeout: 600_000 }, async () => {
    const { first } = await roll(taken, () => undefined);
    const sites = [...first.sites].filter((site) => !site.startsWith('watch.')).sort();
    expect(sites).toEqual(expect.arrayContaining(['act.deletePod', 'notify.notes.create', 'notify.notes.replace', 'notify.send']));
    const wrong: string[] = [];
    for (const site of shareOf(sites, 4)) {
      for (const visit of [1, 2]) {
        let visits = 0;
        const { told } = await roll(taken, (visited, moment) => {
          if (visited !== site || moment !== 'afterReply') return undefined;
          visits += 1;
          return visits === visit ? 'crash' : undefined;
        });
        const events = [...new Map(told.map((one) => [one.id, one.event])).values()];
        if (events.join() !== 'started,completed') wrong.push(`${site} (visit ${visit}): ${events.join()}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});
