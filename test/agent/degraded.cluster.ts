// What becomes of a rollout when the agent may do less than it asks for, and when groups are not as they should be.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaledConfig } from '../control-plane/agent-in-process.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { agentRules, originalRules, permissionsOf, without } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, statefulSet } from '../control-plane/workloads.ts';
import { shareOf } from '../kit/share.ts';
import { type Arena, openArena } from './arena.ts';

/** Permissions without which a rollout is not begun or not finished, and the part that is then named. */
const essential: Readonly<Record<string, string>> = {
  'list pods': 'watch/pods',
  'watch pods': 'watch/pods',
  'list statefulsets.apps': 'watch/statefulsets',
  'watch statefulsets.apps': 'watch/statefulsets',
  // What is announced must be known to whoever leads next.
  'get configmaps': 'ledger',
  'create configmaps': 'ledger',
  'update configmaps': 'ledger',
  'get leases.coordination.k8s.io': 'lease',
  'create leases.coordination.k8s.io': 'lease',
  'update leases.coordination.k8s.io': 'lease',
};

/** Without these a turn comes to nothing, and says what the server said. Everything else only degrades what needs it. */
const needed: readonly string[] = ['delete pods', 'get statefulsets.apps', 'update statefulsets/status.apps'];

const permissions = permissionsOf(agentRules());

describeOnControlPlane('an agent that may do less', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterAll(() => recorder.stop());

  const open = (namespace: string, rules = agentRules(), replicas = 1) =>
    openArena(controlPlane(), recorder, { namespace, replicas, rules });
  /** When each delete of the agent arrived, in Unix milliseconds. */
  const deletesOf = async (arena: Arena): Promise<readonly number[]> => {
    const { requests } = await arena.history();
    const user = controlPlane().identities.agent.user;
    const deletes = requests.filter((request) => request.verb === 'delete' && request.user.username === user);
    return deletes.map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
  };
  const leaseCreatedAt = async (arena: Arena): Promise<number> => {
    const { requests } = await arena.history();
    const created = requests.find(({ verb, objectRef }) => verb === 'create' && objectRef?.resource === 'leases');
    return Date.parse(created?.stageTimestamp ?? '');
  };

  it.concurrent.each(shareOf(permissions, 3))('without "%s" does the remaining work, and names the missing part', async (permission) => {
    const namespace = `without-${permissions.indexOf(permission)}`;
    const arena = await open(namespace, without(agentRules(), permission));
    try {
      const agent = await arena.startInside({ name: 'agent' });
      await arena.group.setImage('example.com/server:2');
      const part = essential[permission];
      if (part !== undefined) {
        // On a busy machine a request may have come to nothing before.
        await until(
          () => agent.degradations().some(({ id, reason }) => id === part && reason === 'forbidden'),
          () => JSON.stringify(agent.degradations()),
        );
        // What the first announcement creates lasts for one step, and the first Lease for its duration.
        const sentAt = await deletesOf(arena);
        if (permission === 'update leases.coordination.k8s.io') {
          const heldUntil = (await leaseCreatedAt(arena)) + scaledConfig(namespace, 'agent').lease.durationMs;
          expect([Number.isFinite(heldUntil), sentAt.filter((at) => at > heldUntil)]).toEqual([true, []]);
        } else expect(sentAt.length).toBeLessThanOrEqual(permission === 'update configmaps' ? 1 : 0);
      } else if (needed.includes(permission)) {
        const said = () =>
          agent
            .turns()
            .flatMap(({ performed, error }) => [error, ...performed.map(({ result, message }) => result === 'refused' && message)]);
        await until(() => said().some((text) => typeof text === 'string' && text.includes('forbidden')), agent.log);
        const published = () => agent.turns().flatMap(({ decision }) => decision?.waits ?? []);
        const fact = expect.stringContaining(`may not ${permission} in ${namespace}`);
        if (permission === 'delete pods') expect(published()).toContainEqual(expect.objectContaining({ rule: 'agent-access', fact }));
      } else {
        await arena.group.untilRolled(60_000);
      }
      await arena.expectKept();
    } finally {
      await arena.close();
    }
  });

  it.concurrent('with the Role of grafana/rollout-operator works without a Lease, keeps claims in memory, and reports both', async () => {
    const arena = await open('original-role', originalRules, 2);
    try {
      const agent = await arena.startInside({
        name: 'agent',
        config: { lease: { mode: 'auto', name: 'agent', durationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 250 } },
      });
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled();
      expect(await arena.expectKept()).toMatchObject({ 'delete pods': 6 });
      const named = agent.degradations().map(({ id, reason }) => `${id} ${reason}`);
      expect(named).toEqual(expect.arrayContaining(['ledger forbidden', 'lease forbidden']));
    } finally {
      await arena.close();
    }
  });

  describe('and groups with missing or foreign objects', () => {
    it.concurrent('a StatefulSet is deleted during the rollout: the other zones are completed', async () => {
      const arena = await open('deleted-set', agentRules(), 2);
      try {
        await arena.startInside({ name: 'agent' });
        await arena.group.setImage('example.com/server:2');
        const { client } = controlPlane();
        await client.until<Pod>(arena.group.podsPath, 'a pod that comes back', (pods) => !pods.every(isReady));
        await client.delete(`${arena.group.setsPath}/ingester-zone-c`);
        await client.until(arena.group.setsPath, 'two StatefulSets', (sets) => sets.length === 2);
        await arena.group.untilRolled();
        expect((await arena.group.pods()).length).toBe(4);
      } finally {
        await arena.close();
      }
    });

    it.concurrent('the group is renamed during the rollout: the rollout completes under the new name', async () => {
      const arena = await open('renamed', agentRules(), 2);
      try {
        const agent = await arena.startInside({ name: 'agent' });
        await arena.group.setImage('example.com/server:2');
        const { client } = controlPlane();
        await client.until<Pod>(arena.group.podsPath, 'a pod that comes back', (pods) => !pods.every(isReady));
        for (const set of arena.group.sets) {
          await client.patch(`${arena.group.setsPath}/${set}`, 'merge', { metadata: { labels: { 'rollout-group': 'renamed' } } });
        }
        await arena.group.untilRolled(240_000);
        expect(agent.turns().at(-1)?.group.name).toBe('renamed');
      } finally {
        await arena.close();
      }
      // What was announced under the old name and not seen to happen is waited out for two minutes.
    }, 300_000);

    it.concurrent('foreign pods with the label of a zone are never touched', async () => {
      const arena = await open('foreign', agentRules(), 2);
      try {
        const { client } = controlPlane();
        const labels = { name: 'ingester-zone-a', 'controller-revision-hash': 'old' };
        const containers = [{ name: 'server', image: 'example.com/server:1' }];
        await client.create(arena.group.podsPath, { metadata: { name: 'stranger', labels }, spec: { containers } });
        // Another StatefulSet whose pods carry the same label `name`, by which grafana/rollout-operator finds pods.
        const twin = statefulSet({ name: 'twin', replicas: 1 }) as {
          readonly spec: { readonly selector: object; readonly template: { readonly metadata: object } };
        };
        await client.create(arena.group.setsPath, {
          ...twin,
          spec: {
            ...twin.spec,
            selector: { matchLabels: { twin: '' } },
            template: { ...twin.spec.template, metadata: { labels: { name: 'ingester-zone-a', twin: '' } } },
          },
        });
        const before = await arena.group.untilReady(8);
        const foreign = before.filter(({ metadata }) => ['stranger', 'twin-0'].includes(metadata.name));
        await arena.startInside({ name: 'agent' });
        await arena.group.setImage('example.com/server:2');
        await client.until<Pod>(arena.group.podsPath, 'six new pods', (pods) => {
          const known = new Set(before.map(({ metadata }) => metadata.uid));
          return pods.filter((pod) => !known.has(pod.metadata.uid) && isReady(pod)).length === 6;
        });
        const after = await arena.group.pods();
        const uids = new Set(after.map(({ metadata }) => metadata.uid));
        expect(foreign.map(({ metadata }) => uids.has(metadata.uid))).toEqual([true, true]);
        expect(await arena.expectKept()).toMatchObject({ 'delete pods': 6 });
      } finally {
        await arena.close();
      }
    });
  });
});

async function until(isSo: () => boolean, instead: () => string): Promise<void> {
  for (const endsAt = Date.now() + 30_000; !isSo(); await new Promise((settle) => setTimeout(settle, 20))) {
    if (Date.now() > endsAt) throw new Error(`not seen in 30 s; instead: ${instead().slice(-3000)}`);
  }
}
