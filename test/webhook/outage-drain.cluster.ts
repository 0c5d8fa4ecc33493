// The nodes under the webhook's replicas are drained one after the other: every guarded write is judged, and every pod leaves within its budget.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enforceLabel } from '../../install/object.ts';
import type { ApiClient } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually, type WebhookProcess } from '../control-plane/webhook.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { createWorld, type Form, forms, merge, podsOf, replicas, setObject, setsOf, type World, write } from './kit.ts';
import { kubectl } from './kit-attempts.ts';
import { member } from './kit-outage.ts';

const ourNamespace = 'rollout-group';
const ourPods = 'rollout-group-agent-';
/** A Service hears so much later of a pod that goes. */
const heardLateMs = 300;
const podsOfGroup = 6;
const drainTimeoutMs = 200_000;

let cp: ControlPlane;
let admin: ApiClient;
let world: World;

interface Replica {
  readonly process: WebhookProcess;
  readonly ended?: Promise<number | null>;
}

interface Kubelet {
  /** By UIDs of pods. */
  readonly replicas: () => ReadonlyMap<string, Replica>;
  /** Exit codes of the processes whose pods have left. */
  readonly stop: () => Promise<readonly (number | null)[]>;
}

/** A process of the executable for each pod of the Deployment, for as long as that is there, and the address in front leads to those of pods that stay. */
function playKubelet(first: WebhookProcess): Kubelet {
  const known = new Map<string, Replica>();
  const spare = [first];
  let isOver = false;
  const look = async (): Promise<void> => {
    const pods = (await admin.list<Pod>(podsOf(ourNamespace))).filter(({ metadata }) => metadata.name.startsWith(ourPods));
    const staying = new Set(pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.uid));
    for (const uid of staying) if (!known.has(uid)) known.set(uid, { process: spare.pop() ?? (await world.start()) });
    const going = [...known].filter(([uid, { ended }]) => ended === undefined && !staying.has(uid));
    for (const [uid, { process }] of going) known.set(uid, { process, ended: process.agent.stop() });
    if (going.length > 0) await delay(heardLateMs);
    world.front.leadTo(...[...known.values()].flatMap(({ process, ended }) => (ended === undefined ? [process.port] : [])));
  };
  const looking = (async () => {
    for (; !isOver; await delay(50)) await look();
  })();
  return {
    replicas: () => known,
    stop: async () => {
      isOver = true;
      await looking;
      return await Promise.all([...known.values()].flatMap(({ ended }) => ended ?? []));
    },
  };
}

/** The least number of pods of the group that were whole at any time. */
function watchGroup(form: Form): { readonly end: () => Promise<number> } {
  let [least, isOver] = [podsOfGroup, false];
  const watching = admin.until<Pod>(
    podsOf(form),
    'the end of the drains',
    (pods) => {
      const whole = pods.filter((pod) => pod.metadata.name.startsWith('ingester-') && isReady(pod) && !pod.metadata.deletionTimestamp);
      least = Math.min(least, whole.length);
      return isOver;
    },
    2 * drainTimeoutMs + 60_000,
  );
  return {
    end: async () => {
      isOver = true;
      await admin.patch(`${podsOf(form)}/${member}-0`, 'merge', { metadata: { annotations: { looked: 'at' } } });
      await watching;
      return least;
    },
  };
}

describeOnControlPlane(
  'a webhook whose nodes are drained',
  (controlPlane) => {
    beforeAll(async () => {
      cp = controlPlane();
      admin = cp.client;
      world = await createWorld(cp, { namespaces: ['native', 'compat'] });
      for (const form of forms) await world.createGroup(form, form, { name: 'ingester' });
      await admin.create(setsOf('native'), setObject('many', 'many', { replicas: 5 }));
      await world.untilReady('native', 'many-', 5);
      // As whoever opts in everything: its own pods must leave all the same.
      await admin.patch(`/api/v1/namespaces/${ourNamespace}`, 'merge', { metadata: { labels: { [enforceLabel]: 'true' } } });
      await world.untilReady(ourNamespace, ourPods, 2);
      for (const form of forms) await world.untilGuarded(form, member);
    });
    afterAll(async () => {
      await world.close();
    });

    it('loses no request, and the pods of every group leave within their budget', async () => {
      const kubelet = playKubelet(world.first);
      const groups = forms.map(watchGroup);
      const untilBoth = (): Promise<unknown> =>
        eventually(
          'two replicas answer',
          async () => [...kubelet.replicas().values()].filter(({ ended }) => ended === undefined).length,
          (count) => count === 2,
        );
      await untilBoth();
      let isOver = false;
      const said: string[] = [];
      const template = { spec: { template: { metadata: { annotations: { changed: 'yes' } } } } };
      const asking = (async () => {
        for (; !isOver; await delay(20)) {
          const outcomes = await Promise.all([
            write(admin, 'PATCH', `${setsOf('native')}/${member}`, replicas(2), merge),
            write(admin, 'PATCH', `${setsOf('compat')}/${member}/scale`, replicas(2), merge),
            write(admin, 'PATCH', `${setsOf('native')}/${member}?dryRun=All`, template, merge),
            write(admin, 'PATCH', `${setsOf('native')}/many/scale?dryRun=All`, replicas(1), merge),
          ]);
          said.push(...outcomes.map((outcome, index) => `${index} ${outcome.said}`));
        }
      })();
      const drain = async (node: string): Promise<void> => {
        // It comes again by itself when it is told 429, but gives up when a busy machine is too slow for an answer.
        await eventually(
          `${node} is drained`,
          () => kubectl(cp, ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data'], drainTimeoutMs),
          ({ said: words, isRefused }) => {
            if (isRefused) expect(words).toContain('deadline exceeded');
            return !isRefused;
          },
          drainTimeoutMs,
        );
      };
      const nodes = await admin.list('/api/v1/nodes');
      expect(nodes).toHaveLength(2);
      const drainAll = async (): Promise<void> => {
        for (const { metadata } of nodes) {
          const ours = (await admin.list<Pod>(podsOf(ourNamespace))).filter(({ spec }) => spec.nodeName === metadata.name);
          // Both replicas may have come to the other node when that one was drained.
          if (metadata.name === nodes[0]?.metadata.name) expect(ours).toHaveLength(1);
          await drain(metadata.name);
          const left = (await admin.list<Pod>('/api/v1/pods')).filter(({ spec }) => spec.nodeName === metadata.name);
          expect(left.map(({ metadata: { name } }) => name)).toEqual([]);
          await admin.patch(`/api/v1/nodes/${metadata.name}`, 'merge', { spec: { unschedulable: null } });
          await world.untilReady(ourNamespace, ourPods, 2);
          await untilBoth();
          for (const form of forms) await world.untilReady(form, 'ingester-', podsOfGroup);
        }
      };
      const failure: unknown = await drainAll().catch((error: unknown) => error);
      isOver = true;
      const [, codes, ...least] = await Promise.all([asking, kubelet.stop(), ...groups.map((group) => group.end())]);
      if (failure !== undefined) throw failure;
      expect(said.length).toBeGreaterThan(20);
      const isJudged = (one: string): boolean => (/^[01]/.test(one) ? one.includes('denied the request') : /^\d 200/.test(one));
      // A machine that has much else to do may be told to come again. That is an answer too.
      const isAnswered = (one: string): boolean => isJudged(one) || /^\d 429 .*denied the request.* in time/.test(one);
      expect(said.filter((one) => !isAnswered(one))).toEqual([]);
      expect(said.filter(isJudged).length).toBeGreaterThan(said.length * 0.9);
      expect(codes.length).toBeGreaterThanOrEqual(2);
      expect(new Set(codes)).toEqual(new Set([0]));
      expect(least).toEqual(groups.map(() => podsOfGroup - 1));
    }, 600_000);
  },
  { zones: ['zone-a', 'zone-b'] },
);
