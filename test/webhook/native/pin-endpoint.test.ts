import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnknown, type Ledger } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import type { PlacementGuard } from '../../../webhook/env.ts';
import { patchBetween, pinEndpoint } from '../../../webhook/native/pin-endpoint.ts';
import { decide } from '../../../webhook/review/decide.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import { group } from '../../kit/groups.ts';
import { ObjectsServer } from '../../kit/objects-server.ts';
import { type Served, status, virtualEnv } from '../../kit/virtual-env.ts';
import { applyPatch, type Json } from './json-patch.ts';

const uid = 'set-uid';
const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'ingester-zone-a', uid, controller: true };
const pinned = group({ rollout: { strategy: 'pinned' } });
const ledger: Ledger = {
  namespace: 'mimir',
  group: 'ingester',
  claims: [],
  downscales: [],
  preparations: [],
  pins: [{ zone: 'a', ordinal: 1001, revision: 'r2', placements: 1 }],
};

function template(version: number): Json {
  return {
    metadata: { labels: { name: 'ingester', version: `v${version}` } },
    spec: { containers: [{ name: 'ingester', image: `mimir:${version}` }] },
  };
}

function revision(version: number, controller: Json = owner): Json {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    revision: version,
    metadata: { name: `r${version}`, namespace: 'mimir', ownerReferences: [controller] },
    data: { spec: { template: { ...template(version), $patch: 'replace' } } },
  };
}

/** A set whose ordinals start at 1000. */
function podObject(ordinal = 1001): Json {
  const name = `ingester-zone-a-${ordinal}`;
  const { metadata, spec } = template(1) as { readonly metadata: { readonly labels: Json }; readonly spec: Json };
  const labels = { ...metadata.labels, 'controller-revision-hash': 'r1', 'apps.kubernetes.io/pod-index': String(ordinal) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'mimir', labels, ownerReferences: [owner], creationTimestamp: null },
    spec: { ...spec, hostname: name, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `data-${name}` } }] },
    status: {},
  };
}

function reviewOf(object: Json | undefined = podObject(), changes: Partial<Review> = {}): Review {
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid: 'review-1',
    subresource: '',
    operation: 'CREATE',
    dryRun: false,
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    user: { name: 'system:serviceaccount:kube-system:statefulset-controller', groups: [] },
    namespace: 'mimir',
    name: 'ingester-zone-a-1001',
    ...(object === undefined ? {} : { object }),
    ...changes,
  };
}

interface WorldChanges extends Partial<PlacementGuard> {
  /** By name: the ControllerRevision, or a failure in place of it. */
  readonly revisions?: Readonly<Record<string, Json | Served>>;
}

function newWorld({ revisions = { r1: revision(1), r2: revision(2) }, ...guard }: WorldChanges = {}) {
  const asked: string[] = [];
  const warned: unknown[] = [];
  const env = virtualEnv();
  const server = new ObjectsServer(env, []);
  const faults = new Map<string, Served>();
  for (const [name, found] of Object.entries(revisions)) {
    if ('metadata' in found) server.put('controllerrevisions.apps', found as Json & { readonly metadata: Json });
    else faults.set(name, found as Served);
  }
  server.fault = ({ method, pathname }) => {
    asked.push(`${method} ${pathname}`);
    return faults.get(pathname.split('/').at(-1) ?? '');
  };
  const silent = (): void => undefined;
  const log = { debug: silent, info: silent, error: silent, warn: (_: string, fields?: object) => void warned.push(fields) };
  const endpoint = pinEndpoint({
    env: { ...env, log },
    guard: { groups: () => [pinned], statefulSet: () => ({ uid, updateRevision: 'r1' }), ledger: async () => ledger, ...guard },
  });
  return {
    env,
    asked,
    warned,
    endpoint,
    /** As the server asks: late and failed answers are those of `onFailure`. */
    ask: async (review: Review = reviewOf()): Promise<Answer> => {
      const late = new AbortController();
      const forget = env.timers.after(4_000, () => late.abort());
      const call = { deadlineMs: env.clock.monotonicMs() + 4_000, signal: late.signal };
      const { answer, failure } = await env.finish(decide(review, { endpoint, call, isOverloaded: false, log }), 10_000);
      forget();
      expect(failure).not.toBe('error');
      return answer;
    },
  };
}

/** Allowed as it is, with one warning. */
function unchanged(why: string): Answer {
  return { allowed: true, warnings: [expect.stringContaining(why)], auditAnnotations: { outcome: 'unplaced' } };
}

describe('the creation of a pod', () => {
  it('is patched if its ordinal is pinned: image and label together, and only the differences', async () => {
    const { ask, asked } = newWorld();
    const review = reviewOf();
    const { patch = [], ...answer } = await ask(review);
    expect(answer).toEqual({
      allowed: true,
      auditAnnotations: { outcome: 'pinned', group: 'mimir/ingester', from: 'r1', to: 'r2' },
    });
    expect(patch).toEqual([
      { op: 'test', path: '/metadata/labels/controller-revision-hash', value: 'r1' },
      { op: 'replace', path: '/metadata/labels/version', value: 'v2' },
      { op: 'replace', path: '/metadata/labels/controller-revision-hash', value: 'r2' },
      { op: 'replace', path: '/spec/containers/0/image', value: 'mimir:2' },
    ]);
    const made = applyPatch(review.object ?? {}, patch);
    expect(made['metadata']).toMatchObject({ labels: { 'controller-revision-hash': 'r2', version: 'v2' } });
    expect(asked.sort()).toEqual(['r1', 'r2'].map((name) => `GET /apis/apps/v1/namespaces/mimir/controllerrevisions/${name}`));
    // Asked again about what has come of it, it says nothing more.
    const again = newWorld();
    expect([await again.ask(reviewOf(made)), again.asked]).toEqual([{ allowed: true }, []]);
  });

  it('has the same answer in a dry run', async () => {
    expect(await newWorld().ask(reviewOf(podObject(), { dryRun: true }))).toEqual(await newWorld().ask());
  });

  it('of another ordinal is allowed, and no revision is read for it', async () => {
    const { ask, asked } = newWorld();
    expect(await ask(reviewOf(podObject(1000)))).toEqual({ allowed: true });
    expect(asked).toEqual([]);
  });

  it.each<[string, Review, WorldChanges]>([
    ['in a group of another strategy', reviewOf(), { groups: () => [group()] }],
    ['in no group', reviewOf(), { groups: () => [] }],
    ['of nobody', reviewOf({ ...podObject(), metadata: { name: 'a' } }), {}],
    ['that is none', reviewOf(podObject(), { operation: 'UPDATE' }), {}],
    ['that is an eviction', reviewOf(podObject(), { subresource: 'eviction' }), {}],
    ['without an object', { ...reviewOf(), object: undefined } as unknown as Review, {}],
  ])('%s is allowed without a warning or a read', async (_, review, changes) => {
    let reads = 0;
    const counting = async (): Promise<Ledger> => {
      reads += 1;
      return ledger;
    };
    const { ask, asked } = newWorld({ ledger: counting, ...changes });
    expect(await ask(review)).toEqual({ allowed: true });
    expect([asked, reads]).toEqual([[], 0]);
  });

  it.each<[string, WorldChanges]>([
    ['policies and objects are not loaded yet', { groups: () => ({ unknown: 'policies and objects are not loaded yet' }) }],
    ['belongs to loki/store', { ledger: () => Promise.reject(new Error('the ledger of mimir/ingester belongs to loki/store')) }],
    ['ControllerRevision r2 no longer exists', { revisions: { r1: revision(1) } }],
    ['the API server answered 403', { revisions: { r1: revision(1), r2: status(403, 'Forbidden') } }],
    ['the API server did not answer', { revisions: { r1: { lost: 'reply', forever: true }, r2: revision(2) } }],
    ['it belongs to another object', { revisions: { r1: revision(1), r2: revision(2, { ...owner, uid: 'other' }) } }],
    ['was recreated', { statefulSet: () => ({ uid: 'another-uid', updateRevision: 'r1' }) }],
    ['the webhook did not decide in time', { ledger: () => new Promise<never>(() => undefined) }],
  ])('is allowed unchanged, with a warning, if %s', async (why, changes) => {
    const { ask } = newWorld(changes);
    const answer = await ask();
    expect(answer).toEqual(unchanged(why));
    expect(answer.warnings?.[0]).toMatch(/^pod ingester-zone-a-1001 is created at revision r1/);
    expect(Buffer.byteLength(answer.warnings?.[0] ?? '')).toBeLessThanOrEqual(250);
  });

  it('with a mismatch of name and labels is allowed unchanged, with a warning only if pods are pinned', async () => {
    const object = podObject();
    const metadata = { ...(object['metadata'] as Json), name: 'ingester-zone-a-7' };
    expect(await newWorld().ask(reviewOf({ ...object, metadata }))).toEqual(unchanged('differ'));
    expect(await newWorld({ groups: (): readonly GroupDefinition[] => [group()] }).ask(reviewOf({ ...object, metadata }))).toEqual({
      allowed: true,
    });
  });

  it('uses the copy in the ledger if the revision is deleted', async () => {
    const kept = { ...ledger, templates: [{ zone: 'a', revision: 'r2', template: template(2) }] };
    const { patch } = await newWorld({ revisions: { r1: revision(1) }, ledger: async () => kept }).ask();
    expect(patch?.at(-1)).toEqual({ op: 'replace', path: '/spec/containers/0/image', value: 'mimir:2' });
  });

  it('is logged if it stays unchanged', async () => {
    const { ask, warned } = newWorld({ revisions: {} });
    await ask();
    expect(warned).toEqual([expect.objectContaining({ namespace: 'mimir', problem: expect.stringContaining('r2') })]);
    expect(isUnknown(ledger)).toBe(false);
  });
});

const pod: Json = {
  metadata: { labels: { a: '1', 'x/y~z': '1' }, annotations: { gone: 'yes' } },
  spec: {
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'b', image: 'b:1' },
    ],
    priority: 0,
  },
};

it('names single values, escapes keys, and replaces lists of another length', () => {
  const after = {
    metadata: { labels: { a: '1', 'x/y~z': '2' } },
    spec: {
      containers: [
        { name: 'a', image: 'a:2' },
        { name: 'b', image: 'b:1' },
      ],
      tolerations: [],
    },
  };
  expect(patchBetween(pod, after, 9)).toEqual([
    { op: 'replace', path: '/metadata/labels/x~1y~0z', value: '2' },
    { op: 'remove', path: '/metadata/annotations' },
    { op: 'replace', path: '/spec/containers/0/image', value: 'a:2' },
    { op: 'remove', path: '/spec/priority' },
    { op: 'add', path: '/spec/tolerations', value: [] },
  ]);
  expect(patchBetween(pod, { ...pod, spec: { containers: [] } }, 9)).toEqual([
    { op: 'replace', path: '/spec/containers', value: [] },
    { op: 'remove', path: '/spec/priority' },
  ]);
  expect(patchBetween(pod, structuredClone(pod), 9)).toEqual([]);
});

it('is coarser if it would have too many single values', () => {
  const many = (version: number): Json => ({
    metadata: { labels: { version: String(version) } },
    spec: { ...Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`field${index}`, version])) },
  });
  expect(patchBetween(many(1), many(2), 9).map(({ path }) => path)).toEqual(['/metadata', '/spec']);
});

it('turns one object into any other', () => {
  const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
  fc.assert(
    fc.property(object, object, fc.integer({ min: 8, max: 12 }), (before, after, most) => {
      const patch = patchBetween(before as Json, after as Json, most);
      expect(patch.length).toBeLessThanOrEqual(most);
      expect(applyPatch(before as Json, patch)).toEqual(after);
    }),
    { numRuns: 500 },
  );
});
