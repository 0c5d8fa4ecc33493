// A group with nothing to do, one that soaks, one whose gate nobody can read and one that is blocked: nothing is written but renewals of the Lease.
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

/** One pod of the first zone, then what comes after it. */
function canary(namespace: string, after: string, gates = ''): string {
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
    strategy: onDelete
    maxUnavailable: 1
    waves:
      - { name: canary, zones: [a], pods: 1, after: { ${after} } }
      - { name: rest, zones: [a, b, c], percent: 100 }
${gates}`;
}

/** Asks a source that is nowhere. */
const errors = `
  gates:
    - name: errors
      mode: enforce
      prometheus: { source: nowhere, query: 'sum(rate(failures_total[5m]))' }
      every: 5s
      onError: hold
      pass: { "<=": [{ var: value }, 0] }
`;

const policies: Readonly<Record<string, string>> = {
  soaking: canary('soaking', 'soak: 1h'),
  gated: canary('gated', 'gates: [errors]', errors),
};
const names = ['done', 'soaking', 'gated', 'blocked'] as const;

describeOnControlPlane('an agent that has to wait', (controlPlane) => {
  let recorder: HistoryRecorder;
  const arenas: Record<string, Arena> = {};
  const agents: AgentProcess[] = [];

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    for (const name of names) {
      const arena = await openArena(controlPlane(), recorder, { namespace: name, replicas: 2 });
      arenas[name] = arena;
      const policy = policies[name];
      const folder = join(controlPlane().folder, `policies-${name}`);
      mkdirSync(folder);
      if (policy !== undefined) writeFileSync(join(folder, 'ingester.yaml'), policy);
      const agent = await arena.start({ flags: [`--policies=${folder}`] });
      await agent.untilReady();
      agents.push(agent);
    }
    const { client } = controlPlane();
    const [done, soaking, gated, blocked] = names.map((name) => arenas[name]?.group);
    if (done === undefined || soaking === undefined || gated === undefined || blocked === undefined)
      throw new Error('there are four groups');
    await done.setImage('example.com/server:2');
    await done.untilRolled();
    for (const group of [soaking, gated]) {
      const before = new Set((await group.pods()).map(({ metadata }) => metadata.uid));
      await group.setImage('example.com/server:2');
      await client.until<Pod>(group.podsPath, 'one new pod', (pods) => pods.some(({ metadata }) => !before.has(metadata.uid)));
      await group.untilReady(6);
    }
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
    expect(before['gated']).toMatchObject({ 'create pods/eviction': 1 });
    expect(before['blocked']).not.toHaveProperty('delete pods');
    for (const agent of agents) expect((await agent.ask('/ready')).status).toBe(200);
  });
});
