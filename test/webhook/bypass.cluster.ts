// Every way around: no write takes away what policy protects, in the native and in the compatible form, and nothing else is held up.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { serviceAccount } from '../control-plane/identities.ts';
import { createTemplate, setAutoscaler, templatesPath } from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { isReady, type Pod, type StatefulSet } from '../control-plane/workloads.ts';
import { shareOf } from '../kit/share.ts';
import {
  createWorld,
  evict,
  type Form,
  forms,
  groupsOf,
  json,
  merge,
  podsOf,
  replicas,
  setsOf,
  strategic,
  type World,
  write,
} from './kit.ts';
import { departures, kubectl, ways } from './kit-attempts.ts';

interface Autoscaler extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly message?: string }[] };
}

interface Deployment extends KubernetesObject {
  readonly status: { readonly observedGeneration?: number; readonly updatedReplicas?: number; readonly replicas?: number };
}

interface Counted extends KubernetesObject {
  readonly spec: { readonly replicas: number | { readonly count: number } };
}

let cp: ControlPlane;
let admin: ApiClient;
let world: World;

const member = 'ingester-zone-a';
const denied = /admission webhook ".*" denied the request/;
const passed = { isRefused: false };
const enforceLabel = 'rollout-group.dev/enforce';

/** What stands of the group, as far as policy cares. */
async function standing(form: Form): Promise<readonly unknown[]> {
  const items = await admin.list<StatefulSet>(setsOf(form));
  return items
    .filter(({ metadata }) => metadata.name.startsWith('ingester'))
    .map(({ metadata: { name, uid, labels = {}, deletionTimestamp }, spec }) => ({ name, uid, labels, spec, deletionTimestamp }));
}

async function uidsOf(namespace: string, prefix: string): Promise<readonly string[]> {
  const pods = await admin.list<Pod>(podsOf(namespace));
  return pods
    .filter(({ metadata }) => metadata.name.startsWith(prefix) && metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.uid);
}

const missing = (before: readonly string[], now: readonly string[]): readonly string[] => before.filter((uid) => !now.includes(uid));
const autoscalersOf = (namespace: string): string => `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers`;

function autoscalerOf(apiVersion: string, kind: string, name: string): object {
  return { metadata: { name }, spec: { scaleTargetRef: { apiVersion, kind, name }, minReplicas: 1, maxReplicas: 2 } };
}

describeOnControlPlane(
  'the ways around the webhooks',
  (controlPlane) => {
    beforeAll(async () => {
      cp = controlPlane();
      admin = cp.client;
      world = await createWorld(cp, { namespaces: ['native', 'compat', 'doomed', 'compat-doomed'] });
      for (const form of forms) {
        await world.createGroup(form, form, { name: 'ingester', zones: ['a', 'b', 'c'] });
        await world.createGroup(form, form, { name: 'leaving', zones: ['a', 'b', 'c'], replicas: 2 });
        await world.createGroup(form, form, { name: 'open', isProtected: false });
        for (const name of ['ingester-zone-a', 'leaving-zone-a']) await world.untilGuarded(form, name);
      }
    });
    afterAll(() => world.close());

    describe.each(forms)('in the %s form', (form) => {
      const path = `${setsOf(form)}/${member}`;

      it.each(shareOf(ways, 2).map((way) => [way.what, way] as const))(
        'a group is protected from %s, and other objects are not',
        async (_what, { attempt }) => {
          const before = await standing(form);
          const refused = await attempt({ controlPlane: cp, namespace: form, name: member });
          expect(refused.said).toMatch(denied);
          expect(refused.isRefused).toBe(true);
          expect(await standing(form)).toEqual(before);
          const name = await world.createFree(form);
          expect(await attempt({ controlPlane: cp, namespace: form, name, isFree: true })).toMatchObject(passed);
        },
      );

      it('a StatefulSet of a group without protection is deleted', async () => {
        const name = `${form}-unprotected`;
        await world.createGroup(form, form, { name, zones: ['a', 'b'], replicas: 1, isProtected: false });
        const one = ({ metadata }: StatefulSet): boolean => metadata.name === `${name}-zone-a`;
        expect(await write(admin, 'DELETE', `${setsOf(form)}/${name}-zone-a`)).toMatchObject(passed);
        await admin.until<StatefulSet>(setsOf(form), 'the StatefulSet gone', (items) => !items.some(one));
      });

      it.each(departures.map(({ what, patch }, index) => [what, patch, `leaving-zone-${'bc'[index]}`] as const))(
        'labels that are %s still protect for a while, in which replicas stay; without them the StatefulSet shrinks',
        async (_what, patch, name) => {
          const own = `${setsOf(form)}/${name}`;
          expect(await write(admin, 'PATCH', own, patch, merge)).toMatchObject(passed);
          for (const second of [
            await write(admin, 'PATCH', own, replicas(1), merge),
            await write(admin, 'PATCH', `${own}/scale`, replicas(0), merge),
            await write(admin, 'PATCH', own, [{ op: 'remove', path: '/spec/replicas' }], json),
          ]) {
            expect(second.said).toMatch(denied);
          }
          expect((await admin.get<StatefulSet>(own)).spec.replicas).toBe(2);
          const free = `${setsOf(form)}/${await world.createFree(form)}`;
          await admin.patch(free, 'merge', { metadata: { labels: { team: 'storage' } } });
          expect(await write(admin, 'PATCH', free, { metadata: { labels: { team: null } } }, merge)).toMatchObject(passed);
          expect(await write(admin, 'PATCH', free, replicas(1), merge)).toMatchObject(passed);
        },
      );

      it('the interval between zones cannot be lowered before a downscale, and may become longer', async () => {
        const label = 'grafana.com/min-time-between-zones-downscale';
        const name = 'timed';
        await world.createGroup(form, form, { name, isProtected: false, setLabels: { [label]: '12h' } });
        const [lowered, longer] = [`${setsOf(form)}/${name}-zone-a`, `${setsOf(form)}/${name}-zone-b`];
        const timed = (value: string | null) => ({ metadata: { labels: { [label]: value } } });
        const both = await write(admin, 'PATCH', lowered, { ...timed('0s'), ...replicas(2) }, merge);
        expect(both.said).toMatch(denied);
        expect(await write(admin, 'PATCH', lowered, timed('0s'), merge)).toMatchObject(passed);
        for (const value of ['1s', null]) {
          const { said } = await write(admin, 'PATCH', `${lowered}/scale`, replicas(2), merge);
          expect(said).toMatch(denied);
          expect(said).toMatch(/timed-zone-a had 12h in the label/);
          expect(await write(admin, 'PATCH', lowered, timed(value), merge)).toMatchObject(passed);
        }
        expect((await write(admin, 'PATCH', `${lowered}/scale`, replicas(2), merge)).said).toMatch(denied);
        expect((await admin.get<StatefulSet>(lowered)).spec.replicas).toBe(3);
        expect(await write(admin, 'PATCH', longer, timed('13h'), merge)).toMatchObject(passed);
        expect(await write(admin, 'PATCH', `${longer}/scale`, replicas(2), merge)).toMatchObject(passed);
      });

      it('an autoscaler of Kubernetes cannot shrink a member, and can shrink other StatefulSets', async () => {
        const name = await world.createFree(form);
        for (const target of [member, name]) await admin.create(autoscalersOf(form), autoscalerOf('apps/v1', 'StatefulSet', target));
        await admin.until<Autoscaler>(autoscalersOf(form), 'the autoscaler is refused', (items) =>
          items.some(
            ({ metadata, status }) =>
              metadata.name === member && status?.conditions?.some(({ message = '' }) => denied.test(message)) === true,
          ),
        );
        await admin.until<StatefulSet>(setsOf(form), 'the other one shrinks', (items) =>
          items.some(({ metadata, spec }) => metadata.name === name && spec.replicas === 2),
        );
        expect((await admin.get<StatefulSet>(path)).spec.replicas).toBe(3);
        for (const target of [member, name]) await admin.delete(`${autoscalersOf(form)}/${target}`);
      });

      it('an autoscaler scales the replica source of a group', async () => {
        if (form === 'native') {
          await admin.create(groupsOf(form), {
            apiVersion: 'rollout-group.dev/v1alpha1',
            kind: 'RolloutGroup',
            metadata: { name: 'counted' },
            spec: {
              members: { zones: [{ name: 'a', statefulSet: 'counted' }] },
              replicas: { count: 3 },
              rollout: { strategy: 'onDelete' },
            },
          });
          await admin.create(autoscalersOf(form), autoscalerOf('rollout-group.dev/v1alpha1', 'RolloutGroup', 'counted'));
        } else {
          await createTemplate(admin, form, 'counted', 3);
          await setAutoscaler(admin, form, 'counted', 1, 2);
        }
        await admin.until<Counted>(form === 'native' ? groupsOf(form) : templatesPath(form), 'fewer replicas', (items) =>
          items.some(({ metadata, spec }) => {
            const count = typeof spec.replicas === 'number' ? spec.replicas : spec.replicas.count;
            return metadata.name === 'counted' && count === 2;
          }),
        );
        await admin.delete(`${autoscalersOf(form)}/counted`);
      });

      it('kubectl drain evicts only as many pods as the budget allows, and all pods without a budget', async () => {
        const nodes = await admin.list('/api/v1/nodes');
        const drain = (node: string, app: string, timeoutMs: number) =>
          // It retries for minutes what it is refused, whatever time it is given.
          kubectl(cp, ['drain', node, '--ignore-daemonsets', `--pod-selector=app in (${app}),name in (${ours[app]})`], timeoutMs);
        const ours: Readonly<Record<string, string>> = {
          ingester: `${member},ingester-zone-b,ingester-zone-c`,
          free: await world.createFree(form),
        };
        await world.untilReady(form, `${ours['free']}-`, 3);
        const other = forms.find((one) => one !== form) ?? form;
        const before = { here: await uidsOf(form, 'ingester'), there: await uidsOf(other, 'ingester') };
        const [node] = nodes;
        if (node === undefined || nodes.length !== 1) throw new Error('one node is to be drained');
        try {
          // On a busy machine it may not come to everything in its time; nothing that left is Ready again while the node is closed.
          let [here, there]: readonly [readonly string[], readonly string[]] = [[], []];
          for (let attempt = 0; attempt < 6 && (here.length === 0 || there.length === 0); attempt++) {
            expect(await drain(node.metadata.name, 'ingester', 8_000)).toMatchObject({ isRefused: true });
            [here, there] = [missing(before.here, await uidsOf(form, 'ingester')), missing(before.there, await uidsOf(other, 'ingester'))];
          }
          // The node has the pods of both forms: each of the two has lost what its budget lets go.
          expect([here, there]).toEqual([[expect.any(String)], [expect.any(String)]]);
          const more = await Promise.all([0, 1, 2].map((ordinal) => evict(admin, form, `ingester-zone-b-${ordinal}`)));
          expect(more.filter(({ said }) => said.startsWith('429') && denied.test(said)).length).toBeGreaterThanOrEqual(2);
          expect(missing(before.here, await uidsOf(form, 'ingester'))).toEqual(here);
          expect(await drain(node.metadata.name, 'free', 30_000)).toMatchObject(passed);
        } finally {
          await admin.patch(`/api/v1/nodes/${node.metadata.name}`, 'merge', { spec: { unschedulable: null } });
          for (const one of forms) await world.untilReady(one, 'ingester', 9);
        }
      });

      it('nodes and Kubernetes controllers delete pods despite every protection', async () => {
        const { clientOf, identities, identityOf } = cp;
        const controller = clientOf(identityOf(serviceAccount('kube-system', 'statefulset-controller')));
        const removals: readonly (readonly [ApiClient, string, object | undefined])[] = [
          [clientOf(identities.kubelet), `${member}-0`, { gracePeriodSeconds: 0 }],
          [clientOf(identities.kubelet), `ingester-zone-b-0`, undefined],
          [controller, `${member}-1`, undefined],
        ];
        const before = await uidsOf(form, 'ingester');
        for (const [client, name, options] of removals) {
          expect(await write(client, 'DELETE', `${podsOf(form)}/${name}`, options)).toMatchObject(passed);
        }
        await world.untilReady(form, 'ingester', 9);
        const after = await uidsOf(form, 'ingester');
        expect(missing(before, after)).toHaveLength(3);
      });

      it('a StatefulSet that may shrink does, and its controller deletes the pods', async () => {
        const open = `${setsOf(form)}/open-zone-a`;
        expect(await write(admin, 'PATCH', `${open}/scale`, replicas(1), merge)).toMatchObject(passed);
        await world.untilReady(form, 'open-zone-a-', 1);
      });

      it('writes without effect on policy are allowed, and so is a scale-up', async () => {
        for (const patch of [
          { metadata: { annotations: { team: 'storage' } } },
          { metadata: { labels: { team: 'storage' } } },
          { metadata: { finalizers: ['example.com/none'] } },
          { metadata: { finalizers: null } },
          { spec: { revisionHistoryLimit: 5 } },
          { spec: { template: { metadata: { annotations: { changed: 'yes' } } } } },
          replicas(3),
        ]) {
          expect(await write(admin, 'PATCH', path, patch, merge), JSON.stringify(patch)).toMatchObject(passed);
        }
        expect(await write(admin, 'PATCH', `${setsOf(form)}/open-zone-b`, replicas(4), merge)).toMatchObject(passed);
        expect(await write(admin, 'PATCH', `${setsOf(form)}/open-zone-b/scale`, replicas(5), merge)).toMatchObject(passed);
      });
    });

    it('a pod cannot be removed from its group beyond the budget and then deleted without a group', async () => {
      await world.createGroup('native', 'native', { name: 'kept' });
      const pods = podsOf('native');
      const free = await world.createFree('native');
      await world.untilReady('native', `${free}-`, 3);
      const orphaned = { metadata: { ownerReferences: null } };
      const relabelled = { metadata: { labels: { name: 'elsewhere' } } };
      const takings: readonly (readonly [object, string, string?])[] = [
        [orphaned, merge],
        [relabelled, merge],
        [{ metadata: { labels: { app: null } } }, strategic],
        [{ metadata: { labels: { 'controller-revision-hash': 'kept-zone-b-1' } } }, merge],
        // Nor ended where it is, so that its controller makes another one.
        [{ spec: { activeDeadlineSeconds: 1 } }, merge],
        [{ spec: { containers: [{ name: 'server', image: 'no/such:image' }] } }, strategic],
        [{ status: { phase: 'Failed' } }, merge, '/status'],
      ];
      const nameOf = (index: number, suffix = ''): string => `kept-zone-b-${index % 3}${suffix}?dryRun=All`;
      // One may go, so one may leave.
      for (const [index, [patch, type, suffix]] of takings.entries()) {
        expect(await write(admin, 'PATCH', `${pods}/${nameOf(index, suffix)}`, patch, type)).toMatchObject(passed);
      }
      await admin.patch(`${pods}/kept-zone-a-0`, 'merge', { metadata: { annotations: { 'test.rollout-group.dev/unready': 'yes' } } });
      await admin.until<Pod>(pods, 'a pod that is not Ready', (items) =>
        items.some((pod) => pod.metadata.name === 'kept-zone-a-0' && !isReady(pod)),
      );
      for (const [index, [patch, type, suffix = '']] of takings.entries()) {
        const outcome = await eventually(
          'it is known that no other may go',
          () => write(admin, 'PATCH', `${pods}/${nameOf(index, suffix)}`, patch, type),
          ({ said }) => denied.test(said),
        );
        expect(outcome.said).toMatch(/delete of pod\/kept-zone-b-\d/);
        expect(await write(admin, 'PATCH', `${pods}/${free}-${index % 3}${suffix}?dryRun=All`, patch, type)).toMatchObject(passed);
      }
      // What adds labels, what changes those that nobody gave it, and what controllers and nodes do, is nobody's business.
      const controller = cp.clientOf(cp.identityOf(serviceAccount('kube-system', 'statefulset-controller')));
      const mine = `${pods}/kept-zone-b-1`;
      expect(await write(admin, 'PATCH', mine, { metadata: { labels: { team: 'storage' } } }, merge)).toMatchObject(passed);
      expect(await write(admin, 'PATCH', mine, { metadata: { labels: { team: 'compute' } } }, merge)).toMatchObject(passed);
      expect(await write(admin, 'PATCH', mine, { metadata: { labels: { team: null } } }, merge)).toMatchObject(passed);
      expect(await write(admin, 'PATCH', mine, { metadata: { annotations: { team: 'storage' } } }, merge)).toMatchObject(passed);
      expect(await write(admin, 'PATCH', `${mine}/status`, { status: { message: 'looked at' } }, merge)).toMatchObject(passed);
      expect(await write(controller, 'PATCH', `${mine}?dryRun=All`, orphaned, merge)).toMatchObject(passed);
      // And for real, of what is nobody's: its controller makes another one in its place once it is gone.
      expect(await write(admin, 'PATCH', `${pods}/${free}-0`, orphaned, merge)).toMatchObject(passed);
    });

    it('a denial of native enforcement calls no pod and dates nothing, in the compatible form', async () => {
      const name = 'prepared-zone-a';
      await admin.create('/apis/rollout-group.dev/v1alpha1/namespaces/compat/rolloutpolicies', {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutPolicy',
        metadata: { name: 'safety' },
        spec: { targets: { groups: ['prepared'] }, rules: [{ name: 'not-now', actions: ['scaleDown'], effect: 'deny' }] },
      });
      const setLabels = { 'grafana.com/prepare-downscale': 'true' };
      await world.createGroup('compat', 'compat', { name: 'prepared', isProtected: false, setLabels });
      const path = `${setsOf('compat')}/${name}`;
      // No pod answers there, and whoever asks one says so.
      const annotations = { 'grafana.com/prepare-downscale-http-path': 'prepare', 'grafana.com/prepare-downscale-http-port': '1' };
      await admin.patch(path, 'merge', { metadata: { annotations } });
      for (const [target, type] of [
        [path, merge],
        [`${path}/scale`, merge],
      ] as const) {
        const { said } = await eventually(
          'the policy is known',
          () => write(admin, 'PATCH', target, replicas(2), type),
          ({ said }) => said.includes('safety/not-now'),
        );
        expect(said).toMatch(
          /prepare-downscale-compat.* denied the request: scale of statefulset\/prepared-zone-a from 3 to 2 .*denied by safety\/not-now/,
        );
      }
      const { said } = await write(admin, 'PATCH', `${path}/scale`, replicas(2), merge);
      const id = /explain decision\/([0-9a-f]{12})$/.exec(said)?.[1];
      const events = `/apis/events.k8s.io/v1/namespaces/compat/events`;
      await admin.until<KubernetesObject>(events, 'an Event that says what was asked', (items) =>
        items.some(({ metadata: { labels, annotations } }) => {
          const isIt = labels?.['rollout-group.dev/decision'] === id;
          return isIt && annotations?.['rollout-group.dev/request']?.includes('"statefulSet":"prepared-zone-a"') === true;
        }),
      );
      expect((await admin.get<StatefulSet>(path)).metadata.annotations).not.toHaveProperty(['grafana.com/last-downscale']);
    });

    it.concurrent.each([
      ['native', 'doomed'],
      ['compat', 'compat-doomed'],
    ] as const)('a namespace with a protected group can be deleted: %s', async (form, namespace) => {
      await world.createGroup(form, namespace, { name: 'ingester' });
      await world.untilGuarded(namespace, member);
      await admin.delete(`/api/v1/namespaces/${namespace}`);
      await admin.until('/api/v1/namespaces', 'the namespace gone', (items) => items.every(({ metadata }) => metadata.name !== namespace));
    });

    it('the Deployment of the agent rolls out, although its namespace is opted in', async () => {
      await admin.patch('/api/v1/namespaces/rollout-group', 'merge', { metadata: { labels: { [enforceLabel]: 'true' } } });
      const deployments = '/apis/apps/v1/namespaces/rollout-group/deployments';
      await world.untilReady('rollout-group', 'rollout-group-agent-', 2);
      const before = await uidsOf('rollout-group', 'rollout-group-agent');
      const template = { metadata: { annotations: { changed: 'yes' } } };
      const { metadata } = await admin.patch<Deployment>(`${deployments}/rollout-group-agent`, 'strategic', { spec: { template } });
      await admin.until<Deployment>(deployments, 'the Deployment rolled', ([one]) => {
        const { observedGeneration = 0, updatedReplicas, replicas } = one?.status ?? {};
        return observedGeneration >= (metadata.generation ?? 0) && updatedReplicas === 2 && replicas === 2;
      });
      const after = await uidsOf('rollout-group', 'rollout-group-agent');
      expect(after.filter((uid) => before.includes(uid))).toEqual([]);
    });
  },
  { zones: ['zone-a'] },
);
