// A group with nothing to do, one that soaks and one that is blocked: for a while nothing is written but renewals of the Lease.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AgentProcess } from '../control-plane/agent-process.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { countWrites } from '../kit/watcher.ts';
import { type Arena, openArena } from './arena.ts';

/** Ten minutes at the pace of the flags, which renew and reconcile some twenty times as often as the defaults. */
const quietMs = 30_000;

/** One pod of the first zone, then an hour of waiting. */
function soaking(namespace: string): string {
  return `
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: ${namespace} }
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
      - { name: b, statefulSet: ingester-zone-b }
      - { name: c, statefulSet: ingester-zone-c }
  replicas: { leader: true }
  rollout:
    engine: onDelete
    maxUnavailable: 1
    waves:
      - { name: canary, zones: [a], pods: 1, after: { soak: 1h } }
      - { name: rest, zones: [a, b, c], percent: 100 }
`;
}

describeOnControlPlane('an agent that has to wait', (controlPlane) => {
  let recorder: HistoryRecorder;
  const arenas: Record<string, Arena> = {};
  const agents: AgentProcess[] = [];

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    const folder = join(controlPlane().folder, 'policies');
    mkdirSync(folder);
    writeFileSync(join(folder, 'ingester.yaml'), soaking('soaking'));
    for (const name of ['done', 'soaking', 'blocked']) {
      const arena = await openArena(controlPlane(), recorder, { namespace: name, replicas: 2 });
      arenas[name] = arena;
      const agent = await arena.start(name === 'soaking' ? { flags: [`--policies=${folder}`] } : {});
      await agent.untilReady();
      agents.push(agent);
    }
    const { client } = controlPlane();
    const [done, soakingGroup, blocked] = ['done', 'soaking', 'blocked'].map((name) => arenas[name]?.group);
    if (done === undefined || soakingGroup === undefined || blocked === undefined) throw new Error('there are three groups');
    await done.setImage('example.com/server:2');
    await done.untilRolled();
    const before = new Set((await soakingGroup.pods()).map(({ metadata }) => metadata.uid));
    await soakingGroup.setImage('example.com/server:2');
    await client.until<Pod>(soakingGroup.podsPath, 'one new pod', (pods) => pods.some(({ metadata }) => !before.has(metadata.uid)));
    await soakingGroup.untilReady(6);
    // Two zones with a pod that is not ready: there is no zone in which anything may be done.
    for (const pod of ['ingester-zone-a-0', 'ingester-zone-b-0']) {
      await client.patch(`${blocked.podsPath}/${pod}`, 'merge', {
        metadata: { annotations: { 'test.rollout-group.dev/unready': 'Probe' } },
      });
    }
    await client.until<Pod>(blocked.podsPath, 'two unready pods', (pods) => pods.filter((pod) => !isReady(pod)).length === 2);
    await blocked.setImage('example.com/server:2');
    // What has held a group for five seconds is told, once.
    await delay(8000);
  });
  afterAll(async () => {
    await Promise.all(Object.values(arenas).map((arena) => arena.close()));
    recorder.stop();
  });

  it('writes nothing while it waits', async () => {
    const countsNow = async () => {
      const histories = await Promise.all(Object.entries(arenas).map(async ([name, arena]) => [name, await arena.history()] as const));
      return Object.fromEntries(histories.map(([name, history]) => [name, countWrites(history, [controlPlane().identities.agent.user])]));
    };
    const renewals = async () => {
      const { requests } = await recorder.read();
      return requests.filter(({ objectRef, verb }) => objectRef?.resource === 'leases' && verb === 'update').length;
    };
    const [before, renewed] = [await countsNow(), await renewals()];
    await delay(quietMs);
    expect(await countsNow()).toEqual(before);
    expect((await renewals()) - renewed).toBeGreaterThan(30);
    expect(before['soaking']).toMatchObject({ 'create pods/eviction': 1 });
    expect(before['blocked']).not.toHaveProperty('delete pods');
    for (const agent of agents) expect((await agent.ask('/ready')).status).toBe(200);
  });
});
