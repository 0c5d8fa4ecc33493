import { describe, expect, it } from 'vitest';
import { defaultLimits } from '../../../../webhook/config.ts';
import { decide } from '../../../../webhook/review/decide.ts';
import { readReview } from '../../../../webhook/review/read-review.ts';
import { adopted } from '../../../kit/groups.ts';
import { type EvictionWorld, evictionWorld, type Replica, sharedLedger } from '../eviction-world.ts';
import { evictionCounting } from './eviction-counting.ts';
import type { EvictionScenario } from './eviction-scenario.ts';
import { evictionSteps } from './eviction-steps.ts';

/** Where an approval is remembered must not matter to what is answered. */
const places = ['a record of the budget', 'the ledger of a group'] as const;

async function play(scenario: EvictionScenario, place: (typeof places)[number]) {
  const { objects, forbidden = [], broken = [] } = scenario.state;
  const world = evictionWorld({ objects, forbidden, broken });
  const guard = place === 'the ledger of a group' ? { guard: sharedLedger(world, [adopted()]).guard() } : {};
  const replica = await world.start(guard);
  await grantBefore(world, replica, scenario.before ?? []);
  const from = world.env.requests.length;
  const answer = await asText(world, replica, scenario);
  const later = world.env.requests.slice(from);
  const asked = later.filter(({ path }) => /\/(?:pods|statefulsets)\b/.test(path));
  const calls = asked.map(({ method, path }) => `${method} ${path.replace(/&limit=\d+/, '')}`);
  const writes = later.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`);
  return { answer, calls, writes, reason: replica.outcomes.at(-1)?.reason };
}

/** As an API server asks and hears it: bytes in, bytes out. */
async function asText({ env }: EvictionWorld, { endpoint }: Replica, { request }: EvictionScenario) {
  const { name, operation = 'CREATE', subResource = 'eviction', namespace = 'mimir', dryRun } = request;
  const eviction = { group: 'policy', version: 'v1', kind: 'Eviction' };
  const body = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'review-1',
      kind: eviction,
      resource: { group: '', version: 'v1', resource: 'pods' },
      subResource,
      operation,
      namespace,
      name,
      userInfo: { username: 'jane' },
      object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
      ...(dryRun !== undefined && { dryRun }),
    },
  };
  const read = readReview(Buffer.from(JSON.stringify(body)), defaultLimits);
  if ('refused' in read) throw new Error(read.refused.message);
  const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const call = { deadlineMs: env.clock.monotonicMs() + 9000, signal: new AbortController().signal };
  const { text } = await env.finish(decide(read.review, { endpoint, call, isOverloaded: false, log }));
  const { response } = JSON.parse(text) as { readonly response: Response };
  const { allowed, status = {}, warnings } = response;
  return { allowed, ...status, ...(warnings && { warnings }) };
}

type Told = Partial<EvictionScenario['answer']>;

interface Response {
  readonly allowed: boolean;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly warnings?: readonly string[];
}

function ignore(): void {}

async function grantBefore(world: EvictionWorld, replica: Replica, before: NonNullable<EvictionScenario['before']>) {
  let agoMs = before[0]?.agoMs ?? 0;
  for (const { pod, dryRun = false, agoMs: thisAgoMs = 0 } of before) {
    await world.env.advance(agoMs - thisAgoMs);
    agoMs = thisAgoMs;
    const { allowed } = await replica.ask(pod, { dryRun });
    if (!allowed) throw new Error(`${pod} was not granted before`);
  }
  await world.env.advance(agoMs);
}

describe.each(places)('recorded evictions, with claims in %s', (place) => {
  it.each([...evictionSteps, ...evictionCounting])('$title', async (scenario) => {
    const { answer, calls, writes, reason } = await play(scenario, place);
    const { allowed, code, message, warnings }: Told = answer;
    expect({ allowed, code, ...(message && { message }), ...(warnings && { warnings }) }).toEqual(scenario.answer);
    expect(reason).toBe(scenario.reason);
    if (scenario.calls !== undefined) expect(calls).toEqual(scenario.calls);
    // Nothing but the announcement of what is granted is ever written, and nothing by a dry run.
    const isAnnounced = reason === 'allowed' && scenario.request.dryRun !== true;
    expect(isAnnounced ? writes.filter((write) => !write.includes('/configmaps')) : writes).toEqual([]);
  });
});

describe('the recorded list', () => {
  it('covers every row of the decision', () => {
    const proved = new Set(evictionSteps.map(({ title }) => /^row (\d+):/.exec(title)?.[1]));
    expect(Array.from({ length: 14 }, (_, index) => `${index + 1}`).filter((row) => !proved.has(row))).toEqual([]);
  });

  it('has no title twice', () => {
    const titles = [...evictionSteps, ...evictionCounting].map(({ title }) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  });
});
