// The nodes under the webhook's replicas are drained one after the other: every guarded write is judged, and every pod leaves within its budget.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { enforceLabel } from '../../install/object.ts';
import type { ApiClient } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually, type WebhookProcess } from '../control-plane/webhook.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { createWorld, type Form, forms, merge, podsOf, replicas, setObject, setsOf, type World, writeOnce } from './kit.ts';
import { kubectl } from './kit-attempts.ts';
import { isGuarded, isServed, member } from './kit-outage.ts';

const ourNamespace = 'rollout-group';
const ourPods = 'rollout-group-agent-';
/** A Service hears so much later of a pod that goes. */
const heardLateMs = 300;
const podsOfGroup = 6;
/** An eviction whose answer came too late for the API server counts against the budget for two minutes. */
const drainTimeoutMs = 300_000;
/** Of a process that ends, longer than a Service hears late on a busy machine. The default is 10 s. */
const drainFlags = { flags: ['-server-tls.drain=5s'] };

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
    for (const uid of staying) if (!known.has(uid)) known.set(uid, { process: spare.pop() ?? (await world.start(drainFlags)) });
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
      world = await createWorld(cp, { namespaces: ['native', 'compat'], start: drainFlags });
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

    it('loses no request, and the pods of every group are evicted within their budget', async () => {
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
      const lost: string[] = [];
      let [count, judgedCount] = [0, 0];
      const template = { spec: { template: { metadata: { annotations: { changed: 'yes' } } } } };
      const asking = (async () => {
        for (; !isOver; await delay(20)) {
          const outcomes = await Promise.all([
            writeOnce(admin, 'PATCH', `${setsOf('native')}/${member}`, replicas(2), merge),
            writeOnce(admin, 'PATCH', `${setsOf('compat')}/${member}/scale`, replicas(2), merge),
            writeOnce(admin, 'PATCH', `${setsOf('native')}/${member}?dryRun=All`, template, merge),
            writeOnce(admin, 'PATCH', `${setsOf('native')}/many/scale?dryRun=All`, replicas(1), merge),
          ]);
          count += outcomes.length;
          judgedCount += outcomes.filter(({ said, isTooLate }) => !isTooLate && !said.startsWith('429')).length;
          const areKept = outcomes.map((outcome, index) => (index < 2 ? isGuarded(outcome) : isServed(outcome)));
          lost.push(...outcomes.flatMap(({ said }, index) => (areKept[index] ? [] : `${index} ${said}`)));
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
      expect(lost).toEqual([]);
      expect(judgedCount).toBeGreaterThan(20);
      // On a machine that has much else to do, some answers come too late, but not most of them.
      expect(judgedCount).toBeGreaterThan(count / 2);
      expect(codes.length).toBeGreaterThanOrEqual(2);
      expect(new Set(codes)).toEqual(new Set([0]));
      expect(least).toEqual(groups.map(() => podsOfGroup - 1));
    }, 900_000);
  },
  { zones: ['zone-a', 'zone-b'] },
);
