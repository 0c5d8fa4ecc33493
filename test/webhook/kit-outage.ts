// What must hold while the webhook is not as it should be: attacks on what is protected, and writes that nobody may hold up.
import { expect } from 'vitest';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { eventually } from '../control-plane/webhook.ts';
import type { Pod, StatefulSet } from '../control-plane/workloads.ts';
import { evict, evictOnce, forms, merge, type Outcome, podsOf, replicas, setObject, setsOf, type World, write, writeOnce } from './kit.ts';

export const member = 'ingester-zone-a';
export const passed = { isRefused: false };

/** The answers to a request that policy denies, as long as no request is lost. A busy machine may keep a webhook from answering in time. */
export const isGuarded = ({ said, isTooLate }: Outcome): boolean => isTooLate || said.includes('denied the request');
/** The answers to a request that policy allows, as long as no request is lost: the webhook may need longer than it has, and answers 429. */
export const isServed = ({ said, isTooLate }: Outcome): boolean => isTooLate || /^200 |^429 .*denied the request/.test(said);

const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

export interface Outage {
  /** Requests that take away what is protected, by each of the ways that the API server tells apart. */
  readonly attacks: (namespace: string) => readonly Promise<Outcome>[];
  /** Every attack is refused in these words, in both forms, and nothing of the groups has changed. */
  readonly expectRefused: (words: RegExp) => Promise<void>;
  /** Of a webhook that answers: the same by itself, but for evictions, of which the budget lets one pass. */
  readonly expectGuarded: () => Promise<void>;
  readonly expectIntact: () => Promise<void>;
  /** What nobody protects, and what policy does not care for: a namespace that is not opted in, and harmless writes in one that is. */
  readonly expectUnblocked: () => Promise<void>;
  /** What is in no group, in a namespace that is opted in: every write of a StatefulSet and of its pods passes. */
  readonly expectFree: (namespace: string) => Promise<void>;
  /** Waits until the API server has been told which StatefulSets are protected. */
  readonly untilNarrowed: () => Promise<void>;
  /** Waits until the webhook itself refuses a decrease, in both forms. */
  readonly untilWell: () => Promise<void>;
}

interface OutageOptions {
  /** Set when it is there. */
  readonly world: () => World;
  /** A namespace that is not opted in. */
  readonly elsewhere: string;
}

/** Of groups `ingester` in namespaces `native` and `compat`. */
export function outageOf(admin: ApiClient, { world, elsewhere }: OutageOptions): Outage {
  const removalsBy =
    (send: typeof write) =>
    (namespace: string): readonly Promise<Outcome>[] => {
      const path = `${setsOf(namespace)}/${member}`;
      return [
        send(admin, 'PATCH', path, replicas(2), merge),
        send(admin, 'PATCH', `${path}/scale`, replicas(0), merge),
        // What the original does not guard is not asked of the compatible form.
        ...(namespace === 'native' ? [send(admin, 'DELETE', path)] : []),
      ];
    };
  const attacks = (namespace: string): readonly Promise<Outcome>[] => [
    ...removalsBy(writeOnce)(namespace),
    evictOnce(admin, namespace, `${member}-0`),
  ];
  const expectIntact = async (): Promise<void> => {
    for (const namespace of forms) {
      const { metadata, spec } = await admin.get<StatefulSet>(`${setsOf(namespace)}/${member}`);
      expect([spec.replicas, metadata.deletionTimestamp]).toEqual([3, undefined]);
      const pods = await admin.list<Pod>(podsOf(namespace));
      expect(pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name)).toEqual([]);
    }
  };
  const expectSaid = async (asked: typeof attacks, words: RegExp): Promise<void> => {
    for (const namespace of forms) {
      for (const outcome of await Promise.all(asked(namespace))) {
        expect(outcome.said).toMatch(words);
        expect(outcome.isRefused).toBe(true);
      }
    }
    await expectIntact();
  };
  return {
    attacks,
    expectIntact,
    expectRefused: (words) => expectSaid(attacks, words),
    expectGuarded: () => expectSaid(removalsBy(write), /denied the request/),
    expectUnblocked: async () => {
      const path = `${setsOf('native')}/${member}`;
      const name = `free${Date.now()}`;
      expect(await write(admin, 'POST', setsOf(elsewhere), setObject(name, 'free', { replicas: 1 }))).toMatchObject(passed);
      const own = `${setsOf(elsewhere)}/${name}`;
      await world().untilReady(elsewhere, `${name}-`, 1);
      for (const outcome of [
        await evict(admin, elsewhere, `${name}-0`),
        await write(admin, 'PATCH', `${own}/scale`, replicas(0), merge),
        await write(admin, 'DELETE', own),
        await write(admin, 'PATCH', path, { metadata: { annotations: { at: name } } }, merge),
        await write(admin, 'POST', '/api/v1/namespaces/native/configmaps', { metadata: { name } }),
        await write(admin, 'PATCH', path, { spec: { revisionHistoryLimit: 5 } }, merge),
      ]) {
        expect(outcome).toMatchObject(passed);
      }
    },
    expectFree: async (namespace) => {
      const name = `free${Date.now()}`;
      const own = `${setsOf(namespace)}/${name}`;
      expect(await write(admin, 'POST', setsOf(namespace), setObject(name, 'free', { replicas: 2 }))).toMatchObject(passed);
      await world().untilReady(namespace, `${name}-`, 2);
      const template = { metadata: { annotations: { changed: 'yes' } } };
      for (const [what, outcome] of [
        ['labels', await write(admin, 'PATCH', own, { metadata: { labels: { team: 'storage' } } }, merge)],
        ['template', await write(admin, 'PATCH', own, { spec: { template } }, merge)],
        ['eviction', await evict(admin, namespace, `${name}-0`)],
        ['labels of a pod', await write(admin, 'PATCH', `${podsOf(namespace)}/${name}-1`, { metadata: { labels: { app: null } } }, merge)],
        ['replicas', await write(admin, 'PATCH', own, replicas(1), merge)],
        ['scale', await write(admin, 'PATCH', `${own}/scale`, replicas(0), merge)],
        ['deletion', await write(admin, 'DELETE', own)],
      ] as const) {
        expect([what, outcome.said, outcome.isRefused]).toEqual([what, outcome.said, false]);
      }
    },
    untilNarrowed: async () => {
      await eventually(
        'a configuration that names what is protected',
        () => admin.get<KubernetesObject & { readonly webhooks: object }>(`${configurations}/rollout-group`),
        ({ webhooks }) => ['ingester-zone-a', 'ingester-zone-b'].every((name) => JSON.stringify(webhooks).includes(`'native/${name}'`)),
      );
    },
    untilWell: async () => {
      for (const namespace of forms) await world().untilGuarded(namespace, member);
    },
  };
}
