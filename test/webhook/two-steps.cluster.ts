// What several requests could do where one is refused: each of them is judged by what the others have left, in the native and in the compatible form.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../control-plane/client.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { Pod, StatefulSet } from '../control-plane/workloads.ts';
import { createWorld, forms, merge, podsOf, replicas, setsOf, type World, write } from './kit.ts';

const denied = /admission webhook ".*" denied the request/;
const passed = { isRefused: false };
/** A successor is Ready after this time only, so that one collection of deletes cannot use the budget twice. */
const slow = { 'test.rollout-group.dev/ready-after': '5s' };

const rolling = { spec: { updateStrategy: { type: 'RollingUpdate' } } };
const partitioned = { spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } } };
const lower = { spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } } };
const template = (text: string) => ({ spec: { template: { metadata: { annotations: { changed: text } } } } });

/** Each hands outdated pods of an OnDelete group to the StatefulSet controller; all but the last request pass. */
const trains: readonly (readonly [what: string, requests: readonly object[]])[] = [
  ['a strategy, then a template', [rolling, template('now')]],
  ['a template, then a strategy', [template('now'), rolling]],
  ['a partition, then a lower one with a template', [partitioned, { spec: { ...lower.spec, ...template('now').spec } }]],
  ['a template, then a partition', [template('now'), lower]],
];

describeOnControlPlane(
  'several requests',
  (controlPlane) => {
    let admin: ApiClient;
    let world: World;

    beforeAll(async () => {
      admin = controlPlane().client;
      world = await createWorld(controlPlane(), { namespaces: [...forms] });
      // The pods stay as they are: nobody leads here, and nobody rolls them.
      for (const form of forms) await world.createGroup(form, form, { name: 'stepped', zones: ['a', 'b', 'c', 'd'] });
      for (const form of forms) await world.untilGuarded(form, 'stepped-zone-a');
    });
    afterAll(() => world.close());

    it('many at once: a deleted collection of pods loses no more than the budget, and all pods without a budget', async () => {
      await world.createGroup('native', 'native', { name: 'swept', replicas: 2, annotations: slow });
      const free = await world.createFree('native');
      await world.untilReady('native', `${free}-`, 3);
      const gone = async (prefix: string, before: readonly Pod[]): Promise<number> => {
        const now = await admin.list<Pod>(podsOf('native'));
        const stays = now.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.uid);
        return before.filter(({ metadata }) => metadata.name.startsWith(prefix) && !stays.includes(metadata.uid)).length;
      };
      const before = await admin.list<Pod>(podsOf('native'));
      const sweep = (selector: string) => write(admin, 'DELETE', `${podsOf('native')}?labelSelector=${encodeURIComponent(selector)}`);
      const { said, isRefused } = await sweep('app=swept');
      expect(isRefused, said).toBe(true);
      expect(said).toMatch(denied);
      expect(await gone('swept-', before)).toBeLessThanOrEqual(1);
      expect(await sweep(`name=${free}`)).toMatchObject(passed);
      expect(await gone(`${free}-`, before)).toBe(3);
    });

    describe.each(forms)('in the %s form', (form) => {
      it.each(trains.map(([what, requests], index) => [what, requests, 'abcd'[index] ?? ''] as const))(
        'do not let the controller replace pods: %s',
        async (_what, requests, zone) => {
          const name = `stepped-zone-${zone}`;
          const free = await world.createFree(form);
          const uids = async (): Promise<readonly string[]> => {
            const pods = await admin.list<Pod>(podsOf(form));
            return pods.filter(({ metadata }) => metadata.name.startsWith(`${name}-`)).map(({ metadata }) => metadata.uid);
          };
          const before = await uids();
          for (const [index, request] of requests.entries()) {
            const { said, isRefused } = await write(admin, 'PATCH', `${setsOf(form)}/${name}`, request, merge);
            expect(isRefused, said).toBe(index === requests.length - 1);
            if (isRefused) expect(said).toMatch(denied);
            if (isRefused) expect(said).toContain('update-strategy');
            expect(await write(admin, 'PATCH', `${setsOf(form)}/${free}`, request, merge)).toMatchObject(passed);
          }
          expect(await uids()).toEqual(before);
        },
      );

      it('an autoscaler can scale up a member', async () => {
        await world.createGroup(form, form, { name: 'grown', replicas: 1 });
        const path = `/apis/autoscaling/v2/namespaces/${form}/horizontalpodautoscalers`;
        const target = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'grown-zone-a' };
        await admin.create(path, { metadata: { name: 'grown' }, spec: { scaleTargetRef: target, minReplicas: 2, maxReplicas: 3 } });
        await admin.until<StatefulSet>(setsOf(form), 'more replicas', (items) =>
          items.some(({ metadata, spec }) => metadata.name === 'grown-zone-a' && spec.replicas === 2),
        );
        await admin.delete(`${path}/grown`);
        expect((await write(admin, 'PATCH', `${setsOf(form)}/grown-zone-a/scale`, replicas(1), merge)).said).toMatch(denied);
      });
    });
  },
  { zones: ['zone-a'] },
);
