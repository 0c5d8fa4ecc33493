// The strategy `pinned` with its webhook, the StatefulSet controller and the agent: a pod that dies comes back at its version at every stage of a partial rollout.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type InProcessAgent, startInProcess } from '../control-plane/agent-in-process.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { memberOf, requesterRules } from '../plugin/live-people.ts';
import { createWorld, groupsOf, setsOf, strategic, type World, write } from '../webhook/kit.ts';
import { expectKilledTwice, holding, killAll, type RollingSet, split, temptationMs, untilWave, versions } from './partial-rollout.ts';

const longestMs = 240_000;
const namespaces = ['leaks', 'moves', 'fails', 'aborts', 'whole', 'proof'] as const;
const pinConfiguration = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/0-rollout-group-pinned';
/** Of the installation: the agent lists and watches webhook configurations. */
const webhookRole = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/rollout-group-agent-webhooks';

interface Row {
  readonly clientConfig: { readonly caBundle?: string };
}
type Configuration = KubernetesObject & { readonly webhooks: readonly Row[] };

function withoutTrust({ clientConfig: { caBundle: _, ...rest }, ...row }: Row): object {
  return { ...row, clientConfig: rest };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

/** Waits until the agent waits for the webhook: `OUTCOME FACT`. */
async function untilBlocked(agent: InProcessAgent, by: RegExp): Promise<void> {
  const answer = () =>
    agent
      .turns()
      .at(-1)
      ?.decision?.waits.find(({ rule }) => rule === 'pin-webhook');
  await expect.poll(() => `${answer()?.outcome} ${answer()?.fact}`, { timeout: 30_000 }).toMatch(by);
}

/** Facts about pods that came back at another revision. */
function misplacements(agent: InProcessAgent): readonly string[] {
  const steps = agent.turns().flatMap(({ decision }) => decision?.steps ?? []);
  return steps.flatMap(({ results }) =>
    results.flatMap(({ rule, fact }) => (rule === 'pin-applied' && fact.includes('came back') ? [fact] : [])),
  );
}

type GroupWithStatus = KubernetesObject & { readonly status?: { readonly phase: string; readonly conditions: readonly object[] } };

interface Ledger {
  readonly data: { readonly ledger: string };
}

/** The waves of zone a up to three pods, of which those of so many updated pods soak for longer than the test lasts. */
function stoppedAt(...counts: readonly number[]): readonly object[] {
  const one = [1, 2, 3].map((pods) => ({
    name: `n${pods}`,
    zones: ['zone-a'],
    pods,
    ...(counts.includes(pods) ? { after: { soak: '1h' } } : {}),
  }));
  return [...one, { name: 'rest', zones: ['zone-a', 'zone-b'], percent: 100 }];
}

describeOnControlPlane('the strategy pinned', (controlPlane) => {
  let admin: ApiClient;
  let world: World;

  beforeAll(async () => {
    admin = controlPlane().client;
    world = await createWorld(controlPlane(), { namespaces });
    for (const namespace of [...namespaces, 'rollout-group']) await grant(admin, controlPlane().identities.agent, namespace, agentRules());
    await grantNodes(admin, controlPlane().identities.agent);
  });
  afterAll(() => world.close());

  const groupPath = (namespace: string): string => `${groupsOf(namespace)}/server`;

  function start(namespace: string): Promise<InProcessAgent> {
    const { url, identities } = controlPlane();
    const config = { agentNamespace: 'rollout-group', areIntentsStamped: true };
    return startInProcess({ url, identity: identities.agent, namespace, name: `agent-${namespace}`, config, isTelling: true });
  }

  /** Two zones and an agent. Only the agent writes the partitions. */
  async function open(
    namespace: string,
    { replicas, rollout }: { readonly replicas: number; readonly rollout: object },
  ): Promise<InProcessAgent> {
    await admin.create(groupsOf(namespace), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'server', namespace },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: `zone-${zone}`, statefulSet: `server-zone-${zone}` })) },
        replicas: { leader: true },
        scaling: { duringRollout: 'allow' },
        rollout: { strategy: 'pinned', maxUnavailable: 1, replaceUnready: { when: 'any', after: '2s' }, ...rollout },
      },
    });
    for (const zone of ['a', 'b']) {
      await admin.create(setsOf(namespace), statefulSet({ name: `server-zone-${zone}`, replicas, strategy: 'RollingUpdate' }));
    }
    await world.untilReady(namespace, 'server-zone-', 2 * replicas);
    const agent = await start(namespace);
    await admin.until<RollingSet>(
      setsOf(namespace),
      'partitions that hold',
      (sets) => sets.length === 2 && sets.every(({ spec }) => spec.updateStrategy.rollingUpdate?.partition === holding),
      60_000,
    );
    return agent;
  }

  async function setImage(namespace: string, version: string, zones: readonly string[] = ['a', 'b']): Promise<void> {
    for (const zone of zones) {
      const spec = { template: { spec: { containers: [{ name: 'server', image: `example.com/server:${version}` }] } } };
      const { isRefused, said } = await write(admin, 'PATCH', `${setsOf(namespace)}/server-zone-${zone}`, { spec }, strategic);
      expect([isRefused, said]).toEqual([false, expect.anything()]);
    }
  }

  /** Pods as `a-0 1`: the number is that of the image, which the pod, its label and the template of that revision agree on. */
  async function untilVersions(namespace: string, expected: readonly string[], timeout = 90_000): Promise<void> {
    await expect.poll(() => versions(admin, namespace), { timeout, interval: 200 }).toEqual(expected);
    await world.untilReady(namespace, 'server-zone-', expected.length);
  }

  async function statusOf(namespace: string): Promise<GroupWithStatus['status']> {
    return (await admin.get<GroupWithStatus>(groupPath(namespace))).status;
  }

  async function ledger(namespace: string): Promise<{ readonly pins?: readonly unknown[]; readonly templates?: readonly unknown[] }> {
    const { data } = await admin.get<Ledger>(`/api/v1/namespaces/${namespace}/configmaps/rollout-group-server`);
    return JSON.parse(data.ledger);
  }

  it(
    'keeps the revision of every pod if all pods are killed twice at every stage, and during scaling',
    async () => {
      const namespace = 'leaks';
      const agent = await open(namespace, { replicas: 3, rollout: { waves: stoppedAt(1) } });
      await setImage(namespace, '2');
      for (const count of [1, 2, 3]) {
        if (count > 1) await admin.patch(groupPath(namespace), 'merge', { spec: { rollout: { waves: stoppedAt(count) } } });
        await untilWave(agent, count - 1);
        await expectKilledTwice(admin, namespace, [...split('a', 3, 3 - count), ...split('b', 3, 3)]);
        if (count === 2) {
          // What a scale-up makes is of the old version; what a scale-down took away comes back as it was.
          await admin.patch(`${setsOf(namespace)}/server-zone-a`, 'merge', { spec: { replicas: 4 } });
          await world.untilReady(namespace, 'server-zone-', 7);
          await expectKilledTwice(admin, namespace, [...split('a', 3, 1), 'a-3 1', ...split('b', 3, 3)]);
          await admin.patch(`${setsOf(namespace)}/server-zone-a`, 'merge', { spec: { replicas: 3 } });
          await world.untilReady(namespace, 'server-zone-', 6);
          await expectKilledTwice(admin, namespace, [...split('a', 3, 1), ...split('b', 3, 3)]);
        }
      }
      await admin.patch(groupPath(namespace), 'merge', { spec: { rollout: { waves: stoppedAt() } } });
      await untilVersions(namespace, [...split('a', 3, 0), ...split('b', 3, 0)]);
      await expect.poll(() => ledger(namespace), { timeout: 30_000 }).not.toHaveProperty('pins');
      expect(await ledger(namespace)).not.toHaveProperty('templates');
      await expectKilledTwice(admin, namespace, [...split('a', 3, 0), ...split('b', 3, 0)]);
      await agent.stop();
    },
    longestMs,
  );

  it(
    'brings pinned pods back at the old version while the webhook is away, never others at the new one, and corrects them afterwards; a second template updates no pod before its turn',
    async () => {
      const namespace = 'moves';
      const agent = await open(namespace, { replicas: 3, rollout: { waves: stoppedAt(2) } });
      await setImage(namespace, '2');
      await untilWave(agent, 1);
      world.front.leadTo();
      world.front.cut();
      await killAll(admin, namespace);
      const without = await versions(admin, namespace);
      world.front.leadTo(world.first.port);
      expect(without).toEqual([...split('a', 3, 3), ...split('b', 3, 3)]);
      await untilVersions(namespace, [...split('a', 3, 1), ...split('b', 3, 3)]);

      await admin.patch(groupPath(namespace), 'merge', { spec: { rollout: { waves: stoppedAt(1, 2) } } });
      await setImage(namespace, '3');
      await untilVersions(namespace, ['a-0 1', 'a-1 2', 'a-2 3', ...split('b', 3, 3)]);
      await untilWave(agent, 0);
      await expectKilledTwice(admin, namespace, ['a-0 1', 'a-1 2', 'a-2 3', ...split('b', 3, 3)]);
      await setImage(namespace, '1');
      await untilVersions(namespace, [...split('a', 3, 3), ...split('b', 3, 3)]);
      await agent.stop();
    },
    longestMs,
  );

  it(
    'evicts no pod until the webhook on pod creation is readable, registered and trusted, and needs no retry then',
    async () => {
      const namespace = 'proof';
      const uids = async () =>
        (await admin.list<KubernetesObject>(`/api/v1/namespaces/${namespace}/pods`)).map(({ metadata }) => metadata.uid);
      const binding = await admin.get<KubernetesObject>(webhookRole);
      await admin.delete(webhookRole);
      const first = await open(namespace, { replicas: 1, rollout: { waves: stoppedAt() } });
      const before = await uids();
      await setImage(namespace, '2');
      await untilBlocked(first, /^unknown no pod is replaced .*cannot list resource "mutatingwebhookconfigurations"/);
      await first.stop();
      const { resourceVersion: _, uid: __, ...metadata } = binding.metadata;
      await admin.create(parentOf(webhookRole), { ...binding, metadata });

      const stored = await admin.get<Configuration>(pinConfiguration);
      const { name, labels, annotations } = stored.metadata;
      await admin.delete(pinConfiguration);
      const agent = await start(namespace);
      await untilBlocked(agent, /^no no pod .*: MutatingWebhookConfiguration 0-rollout-group-pinned does not exist$/);
      await delay(temptationMs);
      expect(await uids()).toEqual(before);

      // The webhook process writes the authority a moment later.
      await admin.create(parentOf(pinConfiguration), {
        metadata: { name, labels, annotations },
        webhooks: stored.webhooks.map(withoutTrust),
      });
      await untilVersions(namespace, [...split('a', 1, 0), ...split('b', 1, 0)]);
      expect(misplacements(agent)).toEqual([]);
      await agent.stop();
    },
    longestMs,
  );

  it(
    'returns every pod if the run fails and onFailure is rollback, and does not repeat the failed template',
    async () => {
      const namespace = 'fails';
      const rollout = { waves: stoppedAt(), onFailure: 'rollback', deadlines: { progress: '6s' } };
      const agent = await open(namespace, { replicas: 3, rollout });
      await setImage(namespace, 'broken');
      await expect.poll(() => agent.turns().some(({ decision }) => decision?.phase === 'Failed'), { timeout: 120_000 }).toBe(true);
      await expect
        .poll(() => agent.turns().at(-1)?.decision?.run, { timeout: 90_000 })
        .toMatchObject({ kind: 'rollback', outcome: 'completed' });
      await untilVersions(namespace, [...split('a', 3, 3), ...split('b', 3, 3)]);
      await delay(temptationMs);
      await expectKilledTwice(admin, namespace, [...split('a', 3, 3), ...split('b', 3, 3)]);
      expect(
        agent
          .turns()
          .at(-1)
          ?.decision?.warnings.map(({ rule }) => rule),
      ).toContain('rolled-back');
      const message =
        /^the update revision is blocked, because it was rolled back: no pod became available .* To end it: kubectl rollout-group retry fails\/server, or /;
      await expect
        .poll(() => statusOf(namespace), { timeout: 10_000 })
        .toMatchObject({
          phase: 'RolledBack',
          conditions: expect.arrayContaining([
            expect.objectContaining({ type: 'Ready', status: 'False', reason: 'RevisionRolledBack' }),
            expect.objectContaining({
              type: 'Degraded',
              status: 'True',
              reason: 'RevisionRolledBack',
              message: expect.stringMatching(message),
            }),
          ]),
        });
      await setImage(namespace, '2');
      await untilVersions(namespace, [...split('a', 3, 0), ...split('b', 3, 0)]);
      await expect.poll(async () => (await statusOf(namespace))?.phase, { timeout: 10_000 }).toBe('Done');
      await agent.stop();
    },
    longestMs,
  );

  it(
    'returns every pod after abort --rollback, and status and history show it',
    async () => {
      const namespace = 'aborts';
      const kim = await memberOf(controlPlane(), namespace, { user: 'kim', groups: ['oncall'] }, requesterRules);
      const said = async (line: string, expected: number): Promise<string> => {
        const { status, stdout, stderr } = await kim.run(line.split(' '));
        expect([line, status], stdout + stderr).toEqual([line, expected]);
        return stdout + stderr;
      };
      const agent = await open(namespace, { replicas: 2, rollout: { waves: stoppedAt(1) } });
      await setImage(namespace, '2');
      await untilVersions(namespace, ['a-0 1', 'a-1 2', ...split('b', 2, 2)]);
      expect(await said('abort server --rollback --reason errors', 0)).toContain('by kim (errors)');
      await untilVersions(namespace, [...split('a', 2, 2), ...split('b', 2, 2)]);
      const ended = await said('status server --timeout 60s', 6);
      expect(ended).toContain(
        'aborts/server keeps its earlier revision: the update revision is blocked, because it was rolled back: aborted by kim (errors)',
      );
      expect(ended).toContain('To end it: kubectl rollout-group retry aborts/server');
      expect(await said('get server', 0)).toMatch(/^aborts\/server {3}ROLLED BACK {3}4 of 4 returned/);
      const runs = async () =>
        JSON.parse(await said('history server -o json', 0)).runs.map(
          ({ kind, outcome, cause = '' }: Readonly<Record<string, string>>) => `${kind} ${outcome} ${cause}`,
        );
      await expect
        .poll(runs, { timeout: 20_000 })
        .toEqual([expect.stringMatching(/^rollback completed aborted by kim \(errors\)/), expect.stringMatching(/^rollout /)]);
      expect(await said('history server', 0)).toMatch(/rollback .*aborted by kim \(errors\)/);
      await expectKilledTwice(admin, namespace, [...split('a', 2, 2), ...split('b', 2, 2)]);
      await said('retry server', 0);
      await untilVersions(namespace, ['a-0 1', 'a-1 2', ...split('b', 2, 2)]);
      await agent.stop();
    },
    longestMs,
  );

  it(
    'rolls back a fully updated zone, also pods that a scale-up creates there, and exposes no other pod to the failed revision',
    async () => {
      const namespace = 'whole';
      const waves = [
        { name: 'first', zones: ['zone-a'], percent: 100 },
        { name: 'second', zones: ['zone-b'], percent: 100 },
      ];
      const agent = await open(namespace, { replicas: 2, rollout: { waves, onFailure: 'rollback', deadlines: { progress: '6s' } } });
      await setImage(namespace, '2', ['a']);
      await setImage(namespace, 'broken', ['b']);
      await expect
        .poll(() => agent.turns().at(-1)?.decision?.run, { timeout: 120_000 })
        .toMatchObject({ kind: 'rollback', outcome: 'completed' });
      await untilVersions(namespace, [...split('a', 2, 2), ...split('b', 2, 2)]);
      await admin.patch(`${setsOf(namespace)}/server-zone-a`, 'merge', { spec: { replicas: 3 } });
      await world.untilReady(namespace, 'server-zone-', 5);
      await expectKilledTwice(admin, namespace, [...split('a', 3, 3), ...split('b', 2, 2)]);
      await setImage(namespace, '3', ['b']);
      await untilVersions(namespace, [...split('a', 3, 3), 'b-0 3', 'b-1 3']);
      await delay(temptationMs);
      expect(await versions(admin, namespace)).toEqual([...split('a', 3, 3), 'b-0 3', 'b-1 3']);
      await agent.stop();
    },
    longestMs,
  );
});
