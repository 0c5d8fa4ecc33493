// Every way around: no write takes away what policy protects, in the native and in the compatible form, and nothing else is held up.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { serviceAccount } from '../control-plane/identities.ts';
import { createTemplate, setAutoscaler, templatesPath } from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { Pod, StatefulSet } from '../control-plane/workloads.ts';
import { createWorld, evict, type Form, forms, groupsOf, json, merge, podsOf, replicas, setsOf, type World, write } from './kit.ts';
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

      it.each(ways.filter(({ passesIn }) => passesIn !== form).map((way) => [way.what, way] as const))(
        'a group is protected from %s, and what is no group is not',
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

      it.each(ways.filter(({ passesIn }) => passesIn === form).map((way) => [way.what, way] as const))(
        'as with grafana/rollout-operator, its labels do not protect from %s',
        async (_what, { attempt }) => {
          const name = await world.createFree(form, 3, { 'rollout-group': 'spared', 'grafana.com/no-downscale': 'true' });
          await world.untilGuarded(form, name);
          expect(await attempt({ controlPlane: cp, namespace: form, name })).toMatchObject(passed);
        },
      );

      it.each(departures.map(({ what, patch }, index) => [what, patch, `leaving-zone-${'bc'[index]}`] as const))(
        'labels that are %s first protect for a while in which replicas stay, and what has lost others shrinks',
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

      it('an autoscaler of Kubernetes does not shrink a member, and does shrink what is none', async () => {
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

      it('an autoscaler moves what a group takes its replicas from', async () => {
        if (form === 'native') {
          await admin.create(groupsOf(form), {
            apiVersion: 'rollout-group.dev/v1alpha1',
            kind: 'RolloutGroup',
            metadata: { name: 'counted' },
            spec: { members: { zones: [{ name: 'a', statefulSet: 'counted' }] }, replicas: { count: 3 }, rollout: { engine: 'onDelete' } },
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

      it('kubectl drain takes no more than the budget, and all of what has none', async () => {
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
          const drained = await drain(node.metadata.name, 'ingester', 8_000);
          expect(drained.isRefused).toBe(true);
          const [here, there] = [await uidsOf(form, 'ingester'), await uidsOf(other, 'ingester')];
          // The node has the pods of both forms: each of the two has lost what its budget lets go.
          expect(before.here.filter((uid) => !here.includes(uid))).toHaveLength(1);
          expect(before.there.filter((uid) => !there.includes(uid))).toHaveLength(1);
          const more = await Promise.all([0, 1, 2].map((ordinal) => evict(admin, form, `ingester-zone-b-${ordinal}`)));
          expect(more.filter(({ said }) => said.startsWith('429') && denied.test(said)).length).toBeGreaterThanOrEqual(2);
          expect(await uidsOf(form, 'ingester')).toHaveLength(here.length);
          expect(await drain(node.metadata.name, 'free', 30_000)).toMatchObject(passed);
        } finally {
          await admin.patch(`/api/v1/nodes/${node.metadata.name}`, 'merge', { spec: { unschedulable: null } });
          for (const one of forms) await world.untilReady(one, 'ingester', 9);
        }
      });

      it('nodes remove pods, and controllers of Kubernetes, whatever is protected', async () => {
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
        expect(before.filter((uid) => !after.includes(uid))).toHaveLength(3);
      });

      it('a StatefulSet that may shrink does, and its controller takes the pods away', async () => {
        const open = `${setsOf(form)}/open-zone-a`;
        expect(await write(admin, 'PATCH', `${open}/scale`, replicas(1), merge)).toMatchObject(passed);
        await world.untilReady(form, 'open-zone-a-', 1);
      });

      it('writes that policy does not care for pass, and so does growth', async () => {
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

    it.each([
      ['native', 'doomed'],
      ['compat', 'compat-doomed'],
    ] as const)('a namespace of a protected group is deleted whole: %s', async (form, namespace) => {
      await world.createGroup(form, namespace, { name: 'ingester' });
      await world.untilGuarded(namespace, member);
      await admin.delete(`/api/v1/namespaces/${namespace}`);
      await admin.until('/api/v1/namespaces', 'the namespace gone', (items) => items.every(({ metadata }) => metadata.name !== namespace));
    });

    it('the Deployment of the agent rolls, though its namespace is opted in', async () => {
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
