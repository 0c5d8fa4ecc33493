// Serves /admission/pod-eviction, which decides evictions under ZoneAwarePodDisruptionBudgets as grafana/rollout-operator does.
import type { ClusterEnv } from '../../../cluster/env.ts';
import { inParallel } from '../../../cluster/pods.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type DisruptionReason, type DisruptionVerdict, disruptionVerdict, zoneBudgetsFor } from '../../../engine/disruption/disruption.ts';
import { type ObservedPod, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import {
  allKnown,
  type Claim,
  isUnknown,
  type Known,
  type PodsView,
  type Snapshot,
  type StatefulSetView,
  unknownBecause,
  type ZoneBudgetView,
} from '../../../engine/snapshot.ts';
import type { NativePreview, WebhookEnv } from '../../env.ts';
import { type Answer, type Call, deny, type Endpoint, isDryRun, leftMs, type Review } from '../../review/review.ts';
import { unusableFor, type ZoneBudgets } from '../zpdb.ts';
import { type EvictionCache, EvictionNotRecorded } from './eviction-cache.ts';

/** The label `reason` of `zpdb_eviction_requests_total`. grafana/rollout-operator does not have the last two values. */
export type EvictionReason = DisruptionReason | 'invalid-request' | 'pod-not-found' | 'err: eviction-not-recorded' | 'err: internal';

interface EvictionObserver {
  /** Runs when a request begins, before the request waits for others under the same budget. */
  readonly onBegin?: () => void;
  readonly onEnd?: (outcome: { readonly reason: EvictionReason; readonly code: number }) => void;
}

interface PodEvictionOptions {
  readonly budgets: ZoneBudgets;
  readonly cache: EvictionCache;
  readonly observer?: EvictionObserver;
  /** Returns the denial of `/admission/enforce` for the same eviction, if any. A denied eviction gets no claim. */
  readonly native?: NativePreview;
}

interface Outcome {
  readonly allowed: boolean;
  readonly code: number;
  readonly reason: EvictionReason;
  readonly message: string;
  /** The answer of `/admission/enforce`, if that endpoint denies. */
  readonly answer?: Answer;
}

/** Attempts per eviction. An attempt fails if the ledger or the record changes during the attempt. */
const maxAttempts = 8;

/** Returns the endpoint. Unknown facts deny. Code 429 marks the denials that `kubectl drain` retries. */
export function podEviction(env: WebhookEnv, { budgets, cache, observer = {}, native }: PodEvictionOptions): Endpoint {
  const turns = new Turns();
  const judge = { env, budgets, cache, turns, native: native ?? (async () => undefined) };
  return {
    path: '/admission/pod-eviction',
    handle: async (review, call) => {
      observer.onBegin?.();
      let outcome: Outcome = denied(500, 'err: internal', 'the eviction could not be judged');
      try {
        outcome = await judged(judge, review, call);
      } catch (error) {
        if (!(error instanceof EvictionNotRecorded)) throw error;
        outcome = denied(429, 'err: eviction-not-recorded', error.message);
      } finally {
        observer.onEnd?.({ reason: outcome.reason, code: outcome.code });
      }
      return outcome.answer ?? answerOf(outcome);
    },
    onFailure: (_review, problem) => answerOf(denied(500, 'err: internal', `the eviction could not be judged: ${problem}`)),
  };
}

interface EvictionJudge extends Required<Pick<PodEvictionOptions, 'budgets' | 'cache' | 'native'>> {
  readonly env: WebhookEnv;
  readonly turns: Turns;
}

async function judged(judge: EvictionJudge, review: Review, call: Call): Promise<Outcome> {
  const { operation, subresource, namespace, name } = review;
  if (operation !== 'CREATE') return invalid(`the operation is ${operation || 'missing'}; only CREATE is an eviction`);
  if (subresource !== 'eviction') return invalid(`the subresource is ${subresource || 'missing'}; only eviction is handled`);
  if (namespace === '' || name === '') return invalid('an eviction needs both the namespace and the name of a pod');
  const { env, budgets } = judge;
  const remainingMs = (): number => timeLeftMs(env, call);
  const pod = await readPod(env, { namespace, name }, remainingMs());
  if (isUnknown(pod)) return denied(400, 'pod-not-found', pod.unknown);
  const inForce = budgets.inForce(namespace);
  const usable = isUnknown(inForce) ? [] : inForce.usable;
  const first = verdictOn(env, { pod, set: undefined, budgets: usable });
  if (first.reason === 'pod-not-ready') return first;
  // grafana/rollout-operator waits for the budgets at its start. Here the answer is 429, which `kubectl drain` retries.
  if (isUnknown(inForce)) return denied(429, 'cfg-not-found', `disruption budgets could not be read: ${inForce.unknown}`);
  const unusable = unusableFor(inForce, pod.labels);
  if (unusable !== undefined) return denied(400, 'cfg-not-found', `${unusable.problem}; repair or delete the budget`);
  const [budget] = zoneBudgetsFor(usable, namespace, pod.labels);
  if (first.reason !== 'sts-no-found' || budget === undefined) return first;
  const set = await readOwner(env, pod, remainingMs());
  if (isUnknown(set)) return denied(500, 'sts-no-found', set.unknown);
  const second = verdictOn(env, { pod, set, budgets: usable, statefulSets: [set] });
  if (second.reason !== 'min-sts-not-found') return second;
  let native: Promise<Answer | undefined> | undefined;
  const refusedNatively = (): Promise<Answer | undefined> => {
    native ??= judge.native(review, call);
    return native;
  };
  // Requests under one budget run one after the other, so that they do not compete within a process.
  return judge.turns.take(`${namespace}/${budget.name}`, () =>
    underBudget(judge, { pod, set, budget, user: review.user.name, isDryRun: isDryRun(review), remainingMs, refusedNatively }),
  );
}

interface BudgetRequest {
  readonly pod: ObservedPod;
  readonly set: StatefulSetView;
  readonly budget: ZoneBudgetView;
  readonly user: string;
  readonly isDryRun: boolean;
  /** Throws if no time is left. */
  readonly remainingMs: () => number;
  readonly refusedNatively: () => Promise<Answer | undefined>;
}

async function underBudget(judge: EvictionJudge, request: BudgetRequest): Promise<Outcome> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const outcome = await attempted(judge, request);
    if (outcome !== undefined) return outcome;
  }
  throw new EvictionNotRecorded(
    `the claims under ${request.budget.name} changed during each of ${maxAttempts} attempts; retry the eviction`,
  );
}

/** Judges the eviction once. Returns undefined if the ledger or the record changed during the attempt. */
async function attempted({ env, cache }: EvictionJudge, request: BudgetRequest): Promise<Outcome | undefined> {
  const { pod, set, budget, user, isDryRun, remainingMs, refusedNatively } = request;
  const listed = await listMembers(env, budget, remainingMs());
  const sets = withOwn(isUnknown(listed) ? [] : listed, set);
  const early = verdictOn(env, { pod, set, budgets: [budget], statefulSets: sets });
  if (early.reason === 'min-sts-not-found' && isUnknown(listed)) return { ...early, message: `${early.message}: ${listed.unknown}` };
  if (early.reason !== 'err: sts-pod-status-not-determined') return early;
  const names = sets.map(({ name }) => name);
  const open = await cache.open({ namespace: budget.namespace, budget: budget.name, statefulSets: names }, remainingMs);
  // In a budget with partitions, only pods of the other zones count.
  const counted = budget.partition === undefined ? sets : sets.filter(({ uid }) => uid !== set.uid);
  const pods = await inParallel(counted, (set) => podsOf(env, set, remainingMs()), listsAtOnce);
  const nowMs = env.clock.nowMs();
  const verdict = verdictOn(env, { pod, set, budgets: [budget], statefulSets: sets, pods, claims: open.claims, nowMs });
  if (!verdict.allowed) return { ...verdict, message: `${verdict.message}${causeOf(verdict, pods)}` };
  // A dry run must change nothing, so it stores no claim.
  if (isDryRun) return verdict;
  // A claim for a denied eviction would block other evictions. `kubectl drain` retries after a 429, and would renew the claim.
  const answer = await refusedNatively();
  if (answer !== undefined) return { allowed: false, code: answer.code ?? 403, reason: 'denied', message: answer.message ?? '', answer };
  // Throws after the deadline: the server has already answered with a failure, so no claim may be stored.
  remainingMs();
  return (await open.record({ pod, statefulSet: set.name, user, seen: { nowMs, statefulSets: sets, pods } })) ? verdict : undefined;
}

interface Facts {
  readonly pod: ObservedPod;
  readonly set: StatefulSetView | undefined;
  readonly budgets: readonly ZoneBudgetView[];
  readonly statefulSets?: readonly StatefulSetView[];
  readonly pods?: readonly PodsView[];
  readonly claims?: readonly Claim[];
  readonly nowMs?: number;
}

/** Returns the verdict on the facts that were read so far. If a fact is missing, the reason of the verdict names it. */
function verdictOn(env: WebhookEnv, known: Facts): DisruptionVerdict {
  const { pod, set, budgets, statefulSets = [], pods = [], claims = [], nowMs = env.clock.nowMs() } = known;
  const zoneBudgets = budgets.filter(({ namespace }) => namespace === pod.namespace);
  const snapshot: Pick<Snapshot, 'nowMs' | 'statefulSets' | 'pods' | 'zoneBudgets'> = { nowMs, statefulSets, pods, zoneBudgets };
  return disruptionVerdict({ snapshot, set, pod, claims, requester: 'eviction' });
}

function withOwn(listed: readonly StatefulSetView[], own: StatefulSetView): readonly StatefulSetView[] {
  return listed.some(({ uid }) => uid === own.uid) ? listed : [...listed, own];
}

/** Returns why pods could not be read, because the verdict does not contain the cause. */
function causeOf({ reason }: DisruptionVerdict, pods: readonly PodsView[]): string {
  if (reason !== 'err: sts-pod-status-not-determined') return '';
  const causes = pods.flatMap((view) => (isUnknown(view.pods) ? [view.pods.unknown] : []));
  return causes.length === 0 ? '' : `: ${causes[0]}`;
}

function timeLeftMs(env: WebhookEnv, call: Call): number {
  const left = leftMs(call, env.clock.monotonicMs());
  if (left <= 0 || call.signal.aborted) throw new Error('no time was left');
  return left;
}

function invalid(message: string): Outcome {
  return denied(400, 'invalid-request', message);
}

function denied(code: 400 | 429 | 500, reason: EvictionReason, message: string): Outcome {
  return { allowed: false, code, reason, message };
}

function answerOf({ allowed, code, reason, message }: Outcome): Answer {
  if (!allowed) return deny(code, message);
  return { allowed, code, ...(reason === 'pod-not-ready' ? { warnings: [message] } : {}) };
}

class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs the work after all earlier work of the key has succeeded or failed. */
  async take<Value>(key: string, work: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work);
    const over = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, over);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }
}

type Port = Pick<ClusterEnv, 'kubernetes'>;

/** Number of StatefulSets whose pods are listed in parallel. */
const listsAtOnce = 8;

/** Returns the pod; unknown with the answer of the API server if it cannot be read or does not exist. */
async function readPod(
  env: Port,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  timeoutMs: number,
): Promise<Known<ObservedPod>> {
  const object = await getObject(env, resources.pods, { namespace, name }, { site: 'eviction.pod', timeoutMs }).catch(unknownBecause);
  if (object === undefined) return { unknown: `pods "${name}" not found` };
  return isUnknown(object) ? object : observePod(object);
}

/** Returns the StatefulSet that controls the pod; unknown if the pod has no such controller, or if the StatefulSet cannot be read. */
async function readOwner(env: Port, { namespace, name, owner }: ObservedPod, timeoutMs: number): Promise<Known<StatefulSetView>> {
  if (owner === undefined) return { unknown: `pod ${name} has no controller` };
  if (owner.kind !== 'StatefulSet') return { unknown: `pod ${name} is controlled by ${owner.kind} ${owner.name}, not by a StatefulSet` };
  const options = { site: 'eviction.statefulSet', timeoutMs };
  const object = await getObject(env, resources.statefulSets, { namespace, name: owner.name }, options).catch(unknownBecause);
  if (object === undefined) return { unknown: `statefulsets.apps "${owner.name}" not found` };
  return isUnknown(object) ? object : observeStatefulSet(object);
}

/** Returns the StatefulSets that the budget selects. Unknown if a StatefulSet cannot be parsed: its pods may be unavailable. */
async function listMembers(env: Port, budget: ZoneBudgetView, timeoutMs: number): Promise<Known<readonly StatefulSetView[]>> {
  const { namespace, matchLabels } = budget;
  const labelSelector = Object.entries(matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  const options = { namespace, ...(labelSelector === '' ? {} : { labelSelector }), site: 'eviction.statefulSets', timeoutMs };
  const listed = await listObjects(env, resources.statefulSets, options).catch(unknownBecause);
  return isUnknown(listed) ? listed : allKnown(listed.items.map(observeStatefulSet));
}

/** Returns the pods that have the label `name` of the template and that the StatefulSet controls: foreign pods must not count. */
async function podsOf(env: Port, set: StatefulSetView, timeoutMs: number): Promise<PodsView> {
  const { namespace, name: statefulSet, podLabels, uid } = set;
  const options = { namespace, labelSelector: `name=${podLabels['name'] ?? ''}`, site: 'eviction.pods', timeoutMs };
  const listed = await listObjects(env, resources.pods, options).catch(unknownBecause);
  const pods = isUnknown(listed) ? listed : allKnown(listed.items.map(observePod));
  const isOwned = ({ owner }: ObservedPod): boolean => owner?.kind === 'StatefulSet' && owner.uid === uid;
  return { namespace, statefulSet, pods: isUnknown(pods) ? pods : pods.filter(isOwned) };
}
