import { describe, expect, it } from 'vitest';
import { type Decided, decide } from '../../../webhook/review/decide.ts';
import { type ReadReview, readReview } from '../../../webhook/review/read-review.ts';
import type { Answer, Endpoint, Review } from '../../../webhook/review/review.ts';
import { randomFrom } from '../../kit/random.ts';
import { commitSeed, rounds } from '../../kit/share.ts';
import { type Forged, forge } from './forged.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? commitSeed);
const count = rounds(100_000, 5_000);
const bounds = { maxDepth: 256, maxValues: 700 };
const silent = (): void => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

function onFailure(_: Review, problem: string): Answer {
  return { allowed: false, code: 500, message: problem };
}

/** Endpoints that take a review at its word, and some that break in all the ways there are. */
const endpoints: readonly Endpoint[] = [
  {
    path: '/echo',
    handle: async (review) => ({
      allowed: !review.dryRun,
      message: JSON.stringify(review),
      warnings: [review.name, review.user.name, ...review.user.groups],
      auditAnnotations: { [review.operation]: review.namespace, object: JSON.stringify(review.object ?? {}) },
    }),
    onFailure,
  },
  {
    path: '/trusting',
    // As a handler that forgets that anything may be missing.
    handle: async ({ object, oldObject }) => {
      const replicas = (of: unknown): number => (of as { spec: { replicas: { toFixed: () => string } } }).spec.replicas.toFixed().length;
      return { allowed: replicas(object) >= replicas(oldObject) };
    },
    onFailure,
  },
  {
    path: '/patching',
    handle: async ({ object }) => ({ allowed: true, patch: Object.keys(object ?? {}).map((key) => ({ op: 'remove', path: `/${key}` })) }),
    onFailure,
  },
  {
    path: '/throwing',
    handle: ({ uid }) => {
      throw uid;
    },
    onFailure,
  },
  { path: '/rejecting', handle: () => Promise.reject(new RangeError(`at Object.<anonymous> (/app/webhook.ts:1:1)`)), onFailure },
];

interface Outcome {
  readonly read: ReadReview;
  readonly decided?: Decided;
}

async function answer({ bytes }: Forged, index: number): Promise<Outcome> {
  const read = readReview(bytes, bounds);
  if ('refused' in read) return { read };
  const endpoint = endpoints[index % endpoints.length];
  if (endpoint === undefined) return { read };
  const call = { deadlineMs: 0, signal: new AbortController().signal };
  return { read, decided: await decide(read.review, { endpoint, call, isOverloaded: index % 17 === 0, log }) };
}

/** What is wrong with the outcome; undefined when nothing is. */
function defectOf({ read, decided }: Outcome): string | undefined {
  if ('refused' in read) {
    const { status, message } = read.refused;
    if (status < 400 || status > 499) return `status ${status}`;
    return /^[\w .:[\]/-]{1,200}$/.test(message) ? undefined : `message ${message}`;
  }
  if (decided === undefined) return 'no answer';
  if (/\(\/app|\bat .{0,80}\.ts:|node:internal/.test(decided.text)) return 'a stack trace';
  if (Buffer.byteLength(decided.text) > 64 * 1024) return `${decided.text.length} characters`;
  const { kind, apiVersion, response } = JSON.parse(decided.text) as Record<string, unknown>;
  if (kind !== 'AdmissionReview' || apiVersion !== read.review.apiVersion) return 'another kind';
  const { uid, allowed, status, ...rest } = response as Record<string, unknown>;
  // Half a surrogate pair is escaped on its way.
  if (uid !== read.review.uid || typeof allowed !== 'boolean') return 'no answer to this review';
  const { message = '', code = 0 } = (status ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message !== 'string' || Buffer.byteLength(message) > 1024 || typeof code !== 'number') return 'a status of another form';
  const known = ['patch', 'patchType', 'warnings', 'auditAnnotations'];
  return Object.keys(rest).every((key) => known.includes(key)) ? undefined : `fields ${Object.keys(rest)}`;
}

describe('forged, truncated, nested and wrongly typed reviews', () => {
  it(`are answered or rejected, each of ${count} (FUZZ_SEED=${seed})`, async () => {
    const random = randomFrom(seed);
    let reviews = 0;
    const refusals = new Set<string>();
    const failures = new Set<string | undefined>();
    for (let index = 0; index < count; index++) {
      // The runner wants to hear from its thread.
      if (index % 1000 === 0) await new Promise((resolve) => setImmediate(resolve));
      const forged = forge(random);
      const outcome = await answer(forged, index).catch((error: unknown) => String(error));
      const defect = typeof outcome === 'string' ? `throws ${outcome}` : defectOf(outcome);
      if (defect !== undefined) {
        throw new Error(`seed ${seed}, body ${index} (${forged.how}): ${defect}: ${forged.bytes.toString('latin1').slice(0, 2000)}`);
      }
      if (typeof outcome === 'string') continue;
      if ('refused' in outcome.read) refusals.add(outcome.read.refused.message);
      else reviews++;
      failures.add(outcome.decided?.failure);
    }
    // Neither of them is rare, or the bodies would be of one kind only.
    expect(reviews).toBeGreaterThan(count / 5);
    expect(count - reviews).toBeGreaterThan(count / 5);
    expect(refusals.size).toBeGreaterThan(15);
    expect([...failures].sort()).toEqual(['error', 'overload', undefined]);
    expect(Object.keys(Object.prototype)).toEqual([]);
  }, 300_000);
});
