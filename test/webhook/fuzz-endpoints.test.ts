import { expect, it } from 'vitest';
import { type Decided, decide } from '../../webhook/review/decide.ts';
import { readReview } from '../../webhook/review/read-review.ts';
import type { Endpoint, Review } from '../../webhook/review/review.ts';
import { type Random, randomFrom } from '../kit/random.ts';
import { commitSeed, rounds } from '../kit/share.ts';
import { type FuzzWorld, fuzzWorld, newPodOf, straying, trespass } from './fuzz-world.ts';
import { change, type Forged, forge } from './review/forged.ts';
import { type Json, reviewJson } from './review/reviews.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? commitSeed);
const count = rounds(20_000, 1_500);
const bounds = { maxDepth: 256, maxValues: 700 };
/** Of each answer, in virtual time. */
const deadlineMs = 4_000;
const silent = (): void => undefined;

/** A StatefulSet as somebody makes it up who wants calls to go elsewhere. */
function madeUp(random: Random, name: string, replicas: number | undefined): Json {
  const labels = {
    'rollout-group': random.pick(['ingester', 'store', 'another']),
    'grafana.com/prepare-downscale': random.pick(['true', 'false']),
    'grafana.com/no-downscale': random.pick(['true', 'false']),
  };
  const annotations = {
    'grafana.com/prepare-downscale-http-path': random.pick(['prepare', '@169.254.169.254/', '../../metrics', '?x=', 'http://other/']),
    'grafana.com/prepare-downscale-http-port': random.pick(['8080', '22', '80@other:1', '-1']),
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: random.pick([name, name, 'another']), namespace: random.pick(['mimir', 'mimir', 'other']), labels, annotations },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      serviceName: random.pick([name, 'kubernetes.default', 'other.example.com']),
      selector: { matchLabels: { name } },
      updateStrategy: { type: 'OnDelete' },
      template: { metadata: { labels: { name } }, spec: { containers: [] } },
    },
  };
}

/** A pod of the group that pins pods, as it is made, or as somebody would have it. */
function pinnedRequest(random: Random, pod: Json): Json {
  const object = structuredClone(pod) as { metadata: { name: string; labels: Json; ownerReferences: Json[] } };
  const { metadata } = object;
  if (random.next() < 0.2) metadata.name = random.pick(['held-1', 'held-00', '../held-0', 'held-0'.repeat(50)]) ?? '';
  if (random.next() < 0.2)
    metadata.labels['controller-revision-hash'] = random.pick(['held-2', 'held-9', '../../pods/held-0', '.', '__proto__']);
  if (random.next() < 0.2) metadata.ownerReferences = [{ ...metadata.ownerReferences[0], uid: random.pick(['', 'other', 7]) }];
  const kinds = { kind: { group: '', version: 'v1', kind: 'Pod' }, resource: { group: '', version: 'v1', resource: 'pods' } };
  return { ...kinds, name: metadata.name, operation: 'CREATE', object, oldObject: null };
}

/** A request about what is really there. */
function aimedRequest(random: Random, { names, pod }: Pick<FuzzWorld, 'names'> & { readonly pod: Json }): Json {
  if (random.next() < 0.1) return pinnedRequest(random, pod);
  const name = random.pick(names) ?? 'free';
  const [more, fewer] = [
    random.pick([1, 2, 3, 1000, 2_147_483_647, 2 ** 53, undefined]),
    random.pick([0, 1, 2, 5, -1, 0.5, -2_147_483_649, 1e300]),
  ];
  const isPod = /-\d+$/.test(name);
  const kindOf = (group: string, kind: string, resource: string): Json => ({
    name,
    kind: { group, version: 'v1', kind },
    resource: { group, version: 'v1', resource },
  });
  if (isPod) {
    const pod = { metadata: { name, namespace: 'mimir', ownerReferences: [{ kind: 'StatefulSet', name: 'free', controller: true }] } };
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'mimir' } };
    return random.next() < 0.5
      ? { ...kindOf('', 'Pod', 'pods'), operation: 'DELETE', object: null, oldObject: pod }
      : { ...kindOf('', 'Eviction', 'pods'), subResource: 'eviction', operation: 'CREATE', object: eviction, oldObject: null };
  }
  const scale = (replicas: number | undefined): Json => ({ kind: 'Scale', metadata: { name, namespace: 'mimir' }, spec: { replicas } });
  const intent = { spec: { requestedBy: { user: 'somebody-else' }, group: 'store' } };
  const user = random.pick<Json>([{}, { username: 'ada' }]);
  return (
    random.pick<Json>([
      { ...kindOf('apps', 'StatefulSet', 'statefulsets'), oldObject: madeUp(random, name, more), object: madeUp(random, name, fewer) },
      { ...kindOf('apps', 'StatefulSet', 'statefulsets'), operation: 'DELETE', oldObject: madeUp(random, name, more), object: null },
      { ...kindOf('autoscaling', 'Scale', 'statefulsets'), subResource: 'scale', oldObject: scale(more), object: scale(fewer) },
      {
        ...kindOf('rollout-group.dev', 'RolloutIntent', 'rolloutintents'),
        operation: 'CREATE',
        object: intent,
        oldObject: null,
        userInfo: user,
      },
    ]) ?? {}
  );
}

function aimed(random: Random, at: Parameters<typeof aimedRequest>[1]): Forged {
  const review = structuredClone(reviewJson({ ...aimedRequest(random, at), dryRun: random.next() < 0.1 }));
  if (random.next() < 0.3) change(random, review);
  return { how: 'aimed', bytes: Buffer.from(JSON.stringify(review) ?? '') };
}

/** The answer of every endpoint, all asked at the same moment. */
async function answers({ env, endpoints }: FuzzWorld, review: Review): Promise<readonly (readonly [Endpoint, Decided])[]> {
  const late = new AbortController();
  const forget = env.timers.after(deadlineMs, () => late.abort());
  const call = { deadlineMs: env.clock.monotonicMs() + deadlineMs, signal: late.signal };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const all = endpoints.map(async (endpoint) => [endpoint, await decide(review, { endpoint, call, isOverloaded: false, log })] as const);
  try {
    return await env.finish(Promise.all(all), 2 * deadlineMs);
  } finally {
    forget();
  }
}

/** What is wrong with an answer; undefined when nothing is. */
function defectOf({ text, failure }: Decided, { uid, apiVersion }: Review): string | undefined {
  if (failure === 'error') return 'the endpoint threw';
  if (/\bat .{0,80}\.ts:|node:internal/.test(text)) return 'a stack trace';
  if (Buffer.byteLength(text) > 64 * 1024) return `${text.length} characters`;
  const { kind, apiVersion: answered, response } = JSON.parse(text) as { kind: unknown; apiVersion: unknown; response: Json };
  if (kind !== 'AdmissionReview' || answered !== apiVersion) return 'another kind';
  if (response['uid'] !== uid || typeof response['allowed'] !== 'boolean') return 'no answer to this review';
  const { message = '', code = 400 } = (response['status'] ?? {}) as { message?: unknown; code?: unknown };
  return typeof message === 'string' && Buffer.byteLength(message) <= 1024 && typeof code === 'number' ? undefined : 'another status';
}

/** What is wrong with what the endpoints have asked for since these counts; undefined when nothing is. */
function trespassSince(world: FuzzWorld, { requests, calls }: { readonly requests: number; readonly calls: number }): string | undefined {
  for (const request of world.env.requests.slice(requests)) {
    const isElsewhere = request.pathname.split('/').some((part) => /^(?:\.|%2e){1,2}$/i.test(part));
    if (isElsewhere || !/^\/apis?(?:\/|$)/.test(request.pathname)) return `it asks for ${request.pathname}`;
    const wrong = trespass(request);
    if (wrong !== undefined) return `it writes ${wrong}`;
  }
  const strayed = world.podCalls.slice(calls).flatMap((call) => straying(world, call) ?? []);
  return strayed[0] === undefined ? undefined : `it calls ${strayed[0]}`;
}

it(`${count} forged reviews at every endpoint: an answer to each, no write but reservations and records, no call but to pods as they are stored (FUZZ_SEED=${seed})`, async () => {
  const random = randomFrom(seed);
  const world = await fuzzWorld();
  const { env, podCalls, errors } = world;
  const before = world.kept();
  const pod = { ...newPodOf(world) };
  let pinned = 0;
  const given = new Set<string>();
  let [reviews, maxClaims] = [0, 0];
  let seen = { requests: env.requests.length, calls: 0 };
  for (let index = 0; index < count; index++) {
    const forged = random.next() < 0.5 ? forge(random) : aimed(random, { ...world, pod });
    const fail = (defect: string | undefined): void => {
      if (defect === undefined) return;
      throw new Error(`seed ${seed}, body ${index} (${forged.how}): ${defect}: ${forged.bytes.toString('latin1').slice(0, 2000)}`);
    };
    const read = readReview(forged.bytes, bounds);
    if ('refused' in read) {
      const { status } = read.refused;
      fail(status >= 400 && status <= 499 ? undefined : `status ${status}`);
    } else {
      reviews++;
      const decided = await answers(world, read.review).catch((error: unknown) => String(error));
      if (typeof decided === 'string') fail(decided);
      else {
        for (const [{ path }, one] of decided) {
          const defect = defectOf(one, read.review);
          fail(defect === undefined ? undefined : `${path}: ${defect}`);
          given.add(`${path} ${one.answer.allowed}`);
          if (path === '/admission/pin-pod' && one.answer.patch !== undefined) pinned += 1;
        }
      }
    }
    fail(trespassSince(world, seen));
    seen = { requests: env.requests.length, calls: podCalls.length };
    if (index % 250 !== 249) continue;
    maxClaims = Math.max(maxClaims, await world.openClaims());
    // Longer than what is announced counts when nothing comes of it.
    await env.advance(150_000);
    expect(await world.openClaims()).toBe(0);
  }
  expect(world.kept()).toBe(before);
  expect(errors).toEqual([]);
  // Bodies that reach nothing would show nothing.
  expect(reviews).toBeGreaterThan(count / 4);
  expect(maxClaims).toBeGreaterThan(0);
  expect(podCalls.length).toBeGreaterThan(0);
  expect(pinned).toBeGreaterThan(0);
  // Nobody is refused a pod.
  expect([...given]).toEqual(expect.arrayContaining(['/admission/pin-pod true']));
  expect(given.has('/admission/pin-pod false')).toBe(false);
  for (const path of ['no-downscale', 'prepare-downscale', 'pod-eviction', 'enforce', 'stamp', 'validate']) {
    expect([...given]).toEqual(expect.arrayContaining([`/admission/${path} true`, `/admission/${path} false`]));
  }
  world.stop();
}, 600_000);
