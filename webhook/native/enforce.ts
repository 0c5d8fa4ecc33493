// Serves /admission/enforce, which enforces groups and policies on every request that can disrupt pods of a StatefulSet.
import { ApiFailure, StaleCache, TransportFailure } from '../../cluster/request/failure.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { claimsFor, groupOf } from '../../engine/judge/admission-claims.ts';
import { failsOpen, isExempt, type JudgedScope, judge } from '../../engine/judge/judge.ts';
import { departuresOf, protectionOf } from '../../engine/judge/protection.ts';
import { statefulSetInName } from '../../engine/observe/cluster.ts';
import { permittedResults } from '../../engine/rules/exception.ts';
import { type Departure, isUnknown, type Snapshot, type StatefulSetView, setNamed } from '../../engine/snapshot.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { GroupIdentity, NativeGuard, NativePreview, WebhookEnv } from '../env.ts';
import { type Answer, boundedText, type Call, deny, type Endpoint, isDryRun, type Review } from '../review/review.ts';
import { auditOf, denialOf, longestMessage, Undecidable, unknownDenial } from './denial.ts';
import { GroupQueue, type QueuedDecision } from './group-queue.ts';
import { isStale, LiveReads, withPod, withStatefulSet } from './live-reads.ts';
import { isReleased, onlyGrows, podRequest, type ReviewTarget, readTarget, requestsFor } from './requests-of.ts';

export interface EnforceOptions extends JudgedScope {
  readonly env: WebhookEnv;
  readonly guard: NativeGuard;
  /** True if the API server calls prepare-downscale, which prepares the pods of drop-in groups, before this endpoint. */
  readonly isPreparedElsewhere?: boolean;
}

export interface EnforceEndpoint extends Endpoint {
  /** The preview for the drop-in endpoints of this process, to which the API server sends the same requests as to this endpoint. */
  readonly preview: NativePreview;
  /** The endpoint for objects that are not members in the webhook configuration. Unknown facts deny only requests for known members. */
  readonly others: Endpoint;
}

const longestPreviewMs = 4_000;

/**
 * Returns the endpoint. It stores a claim for each admitted disruption of a group, and calls no pod. Unknown facts deny a request unless
 * `failsOpen` permits the request.
 */
export function enforceEndpoint(options: EnforceOptions): EnforceEndpoint {
  const enforcement = new Enforcement(options);
  return {
    path: '/admission/enforce',
    handle: (review, call) => enforcement.answer(review, call, 'enforce'),
    onFailure: (review, problem) =>
      enforcement.judges(readTarget(review)) ? failed(review, { problem, isNamespaceEnding: false }) : { allowed: true },
    preview: (review, call) => enforcement.preview(review, call),
    others: {
      path: '/admission/enforce-others',
      handle: (review, call) => enforcement.answer(review, call, 'others'),
      onFailure: (review, problem) => failed(review, { problem, isNamespaceEnding: false, isOther: true }),
    },
  };
}

/** Returns the message for the requester. Rethrows unexpected errors, which the server answers with `onFailure`. */
function problemOf(error: unknown): string {
  if (error instanceof Undecidable || error instanceof StaleCache) return error.message;
  if (error instanceof ApiFailure) return `the API server answered ${error.status} at ${error.site}`;
  if (error instanceof TransportFailure) return `the API server did not answer at ${error.site}`;
  throw error;
}

interface Failing {
  readonly problem: string;
  readonly isNamespaceEnding: boolean;
  /** True if the object has no group according to the webhook configuration. */
  readonly isOther?: boolean;
}

function failed(review: Review, { problem, isNamespaceEnding, isOther = false }: Failing): Answer {
  const target = readTarget(review);
  if (target.kind === 'pass') return { allowed: true };
  const isSubject = target.kind === 'pod' || target.kind === 'statefulSet';
  const passes =
    isSubject &&
    (isOther || failsOpen({ verb: target.verb, onlyGrows: target.kind === 'statefulSet' && onlyGrows(review), isNamespaceEnding }));
  if (passes && isNamespaceEnding) return { allowed: true };
  const unjudged = isOther ? {} : { isUnjudged: true as const };
  if (passes) return { allowed: true, ...unjudged, warnings: [`${describe(review, target)} was not judged: ${problem}`.slice(0, 250)] };
  return unknownDenial(describe(review, target), problem);
}

function describe({ operation, resource, subresource }: Review, target: ReviewTarget): string {
  const name = 'name' in target ? `/${target.name}` : '';
  return `${operation} of ${resource.resource}${subresource === '' ? '' : `/${subresource}`}${name}`;
}

class Enforcement {
  readonly #options: EnforceOptions;
  readonly #reads: LiveReads;
  readonly #queues = new Map<string, GroupQueue>();

  constructor(options: EnforceOptions) {
    this.#options = options;
    this.#reads = new LiveReads(options.env, options.guard);
  }

  judges(target: ReviewTarget): boolean {
    if (target.kind === 'pass' || target.kind === 'malformed') return target.kind === 'malformed';
    return !isExempt(target, this.#options);
  }

  /** Returns the answer to a review. Rejects for unexpected errors. */
  async answer(review: Review, call: Call, mode: Mode): Promise<Answer> {
    const target = readTarget(review);
    if (target.kind === 'pass') return { allowed: true };
    if (target.kind === 'malformed') {
      return deny(403, boundedText(`${describe(review, target)} is denied: ${target.problem}`, longestMessage));
    }
    if (!this.judges(target)) return { allowed: true };
    try {
      await this.#reads.untilSettled(call);
      const state = target.kind === 'pod' ? await this.#onPod(review, target, call) : await this.#onStatefulSet(review, target, call);
      return state === 'passes' ? { allowed: true } : await this.#decide(review, target, call, { ...state, isPreview: mode === 'preview' });
    } catch (error) {
      const problem = problemOf(error);
      const answer = failed(review, {
        problem,
        isOther: mode === 'others' && !this.#isKnownMember(target),
        isNamespaceEnding: false,
      });
      if (answer.allowed || !(await this.#reads.isEnding(target.namespace, call))) return answer;
      return failed(review, { problem, isNamespaceEnding: true });
    }
  }

  /** Returns the denial that `answer` would return. The agent's requests pass, because the API server does not send them here. */
  async preview(review: Review, call: Call): Promise<Answer | undefined> {
    const target = readTarget(review);
    const { own, env } = this.#options;
    const isAgent = review.user.name === `system:serviceaccount:${own?.namespace}:${agentName}`;
    if ((target.kind !== 'pod' && target.kind !== 'statefulSet') || isAgent || !this.judges(target)) return undefined;
    if (!(await this.#reads.isOptedIn(target.namespace, call))) return undefined;
    const deadlineMs = Math.min(call.deadlineMs, env.clock.monotonicMs() + longestPreviewMs);
    const answer = await this.answer(review, { ...call, deadlineMs }, 'preview');
    return answer.allowed ? undefined : answer;
  }

  async #onStatefulSet(review: Review, target: Extract<ReviewTarget, { kind: 'statefulSet' }>, call: Call): Promise<Judgeable> {
    const { namespace, name, verb } = target;
    const live = await this.#reads.read(resources.statefulSets, target, call);
    if (isUnknown(live)) return await this.#whenUnread(target, { statefulSet: name, problem: live.unknown }, call);
    // The API server answers 404 itself.
    if (live === undefined) return 'passes';
    const snapshot = await this.#reads.freshSnapshot(namespace, call, (known) => isStale(known, live));
    const requests = requestsFor(review, verb, live, podCountOf(live));
    if (requests.length === 0) return 'passes';
    return { snapshot, statefulSet: name, decide: (seen) => this.#judge(withStatefulSet(seen, live), requests) };
  }

  async #onPod(review: Review, target: Extract<ReviewTarget, { kind: 'pod' }>, call: Call): Promise<Judgeable> {
    const { namespace, name, verb } = target;
    const live = await this.#reads.read(resources.pods, target, call);
    if (isUnknown(live)) return await this.#whenUnread(target, { statefulSet: statefulSetInName(name), problem: live.unknown }, call);
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return 'passes';
    const owner = owningStatefulSet(live);
    if (owner === undefined) return 'passes';
    const { name: statefulSet } = owner;
    const snapshot = await this.#snapshotWith(owner, namespace, call);
    if (snapshot === undefined) return 'passes';
    const { release } = target;
    const podLabels = findOwner(snapshot, owner)?.podLabels ?? {};
    if (release !== undefined && !isReleased(release, podLabels)) return 'passes';
    const request = podRequest(review, verb, name);
    const decide = (seen: Snapshot): Judged => this.#judge(withPod(seen, statefulSet, live), [request]);
    return { snapshot, statefulSet, decide: release === undefined ? decide : (seen) => asRelease(decide(seen)) };
  }

  /** Returns a snapshot that knows the owner; undefined if the owner no longer exists. */
  async #snapshotWith(owner: Owner, namespace: string, call: Call): Promise<Snapshot | undefined> {
    const snapshot = await this.#reads.snapshot(namespace, call);
    if (findOwner(snapshot, owner) !== undefined) return snapshot;
    const set = await this.#reads.read(resources.statefulSets, { namespace, name: owner.name }, call);
    if (set === undefined || (!isUnknown(set) && set.metadata.uid !== owner.uid)) return undefined;
    return await this.#reads.freshSnapshot(namespace, call, (seen) => findOwner(seen, owner) === undefined);
  }

  /** Decides at once for an object without a group. Otherwise decides in the queue of the group, because the decision may store claims. */
  async #decide(review: Review, target: JudgedTarget, call: Call, { snapshot, statefulSet, decide, isPreview }: Deciding): Promise<Answer> {
    const { namespace } = target;
    const { guard } = this.#options;
    const group = groupOf(snapshot, namespace, statefulSet);
    let last: { readonly judged: Judged; readonly seen: Snapshot } | undefined;
    const decided = (seen: Snapshot): QueuedDecision => {
      const judged = decide(seen);
      last = { judged, seen };
      const common = { ...(group === undefined ? {} : { group: `${namespace}/${group.name}` }), policyDigest: seen.policyDigest };
      if (judged.isAllowed) return admitted(judged, { common, isPreview, isDryRun: isDryRun(review) });
      const isEviction = target.kind === 'pod' && target.verb === 'evictPod';
      return { answer: denialOf(judged.judgement, { ...common, namespace, isEviction }), claims: [] };
    };
    const what = describe(review, target);
    const answer = group === undefined ? decided(snapshot).answer : await this.#queueOf(group).submit({ call, what, decide: decided });
    if (last === undefined) throw new Error('the request was not decided');
    const { judged, seen } = last;
    if (answer.allowed) {
      if (judged.departures.length > 0 && !isPreview) await guard.keep(namespace, judged.departures, this.#reads.leftMs(call));
      if (permissionsIn(judged.judgement).length > 0 && !isPreview && !isDryRun(review))
        guard.report(judged.judgement, { namespace, statefulSet });
      return answer;
    }
    // A terminating namespace accepts no new ledger. All its objects are deleted anyway, so this decision stores no claims.
    if (await this.#reads.isEnding(namespace, call)) return decided({ ...seen, endingNamespaces: [namespace] }).answer;
    if (!judged.isAllowed && !isDryRun(review)) guard.report(judged.judgement, { namespace, statefulSet });
    return answer;
  }

  /** Judges the requests of one review. Throws Undecidable for a request that the engine does not judge. */
  #judge(snapshot: Snapshot, requests: readonly AdmissionRequest[]): Judged {
    const judged = requests
      .map((request) => withCurrentReplicas(snapshot, request))
      .map((request) => ({ request, judgement: judge(snapshot, request) }));
    for (const { judgement } of judged) if (judgement.unjudged !== undefined) throw new Undecidable(judgement.unjudged);
    const refused = judged.find(({ judgement }) => !this.#passes(judgement));
    const [first] = judged;
    if (first === undefined) throw new Error('there is no request to judge');
    if (refused !== undefined) return { judgement: refused.judgement, isAllowed: false, isScaleUp: false, claims: [], departures: [] };
    return {
      judgement: {
        ...(judged.find(({ judgement }) => permissionsIn(judgement).length > 0) ?? first).judgement,
        warnings: judged.flatMap(({ judgement }) => [...judgement.warnings, ...permissionsIn(judgement)]),
      },
      isAllowed: true,
      isScaleUp: judged.some(({ request }) => 'to' in request && (request.to ?? 1) > (request.from ?? 1)),
      // The agent already wrote its own claims to the ledger.
      claims: judged.flatMap(({ request, judgement }) =>
        judgement.results.some(({ rule }) => rule === 'announced') ? [] : claimsFor(snapshot, request),
      ),
      departures: judged.flatMap(({ request }) => departuresOf(snapshot, request)),
    };
  }

  #passes({ outcome }: Judgement): boolean {
    return outcome === 'allow' || (outcome === 'prepare' && this.#options.isPreparedElsewhere === true);
  }

  #queueOf({ namespace, name }: GroupIdentity): GroupQueue {
    const { env, guard } = this.#options;
    for (const [key, queue] of this.#queues) if (queue.isIdle) this.#queues.delete(key);
    return getOrCreate(this.#queues, `${namespace}/${name}`, () => new GroupQueue(env, guard, { namespace, name }));
  }

  /** Decides without the object, which could not be read. Lets the request pass only if current caches show that it is in no group. */
  async #whenUnread(target: JudgedTarget, { statefulSet, problem }: Unread, call: Call): Promise<Judgeable> {
    if (this.#isKnownMember(target)) throw new Undecidable(problem);
    const { namespace } = target;
    const snapshot = await this.#reads.snapshot(namespace, call);
    const isKnown = statefulSet !== undefined && setNamed(snapshot, namespace, statefulSet) !== undefined;
    if (isKnown && protectionOf(snapshot, namespace, statefulSet) === 'unprotected') return 'passes';
    throw new Undecidable(problem);
  }

  /** Returns whether the caches show the object as a member. A new member may still be missing from the webhook configuration. */
  #isKnownMember({ kind, namespace, name }: JudgedTarget): boolean {
    const statefulSet = kind === 'pod' ? statefulSetInName(name) : name;
    const groups = this.#options.guard.groups(namespace);
    return statefulSet !== undefined && !isUnknown(groups) && groupOf({ groups }, namespace, statefulSet) !== undefined;
  }
}

/** The caller of `answer`: this endpoint, the endpoint `others`, or a drop-in endpoint (`preview`), for which no claim is stored. */
type Mode = 'enforce' | 'others' | 'preview';

type JudgedTarget = Extract<ReviewTarget, { kind: 'pod' | 'statefulSet' }>;

interface Judged {
  readonly judgement: Judgement;
  readonly isAllowed: boolean;
  readonly isScaleUp: boolean;
  readonly claims: QueuedDecision['claims'];
  readonly departures: readonly Departure[];
}

/** The snapshot and the function that decides on it, or `passes`. */
type Judgeable = 'passes' | Omit<Deciding, 'isPreview'>;

interface Deciding {
  readonly snapshot: Snapshot;
  readonly statefulSet: string;
  readonly decide: (snapshot: Snapshot) => Judged;
  readonly isPreview: boolean;
}

/** `statefulSet`: undefined if the name of the pod does not show it. */
interface Unread {
  readonly statefulSet: string | undefined;
  readonly problem: string;
}

interface Owner {
  readonly name: string;
  readonly uid: unknown;
}

function owningStatefulSet({ metadata }: KubernetesObject): Owner | undefined {
  const owner = (metadata.ownerReferences ?? []).find((reference) => reference['controller'] === true);
  return owner?.['kind'] === 'StatefulSet' && typeof owner['name'] === 'string' ? { name: owner['name'], uid: owner['uid'] } : undefined;
}

function findOwner({ statefulSets }: Snapshot, { name, uid }: Owner): StatefulSetView | undefined {
  return statefulSets.find((known) => known.name === name && known.uid === uid);
}

interface Admitting {
  readonly common: Parameters<typeof auditOf>[1];
  readonly isPreview: boolean;
  readonly isDryRun: boolean;
}

function admitted({ judgement, claims, isScaleUp }: Judged, { common, isPreview, isDryRun: isDry }: Admitting): QueuedDecision {
  const { warnings } = judgement;
  return {
    answer: { allowed: true, auditAnnotations: auditOf(judgement, common), ...(warnings.length === 0 ? {} : { warnings }) },
    // A preview stores no claims, because the other endpoint may deny the request.
    claims: isPreview ? [] : claims,
    hidesScaleDown: isScaleUp && !isDry && !isPreview,
  };
}

/** Returns the rules that would deny the request without an exception, each with the exception. */
function permissionsIn({ outcome, results }: Judgement): readonly string[] {
  return outcome === 'allow' ? permittedResults(results).map(({ rule, fact }) => `${rule}: ${fact}`) : [];
}

function withCurrentReplicas({ statefulSets }: Snapshot, request: AdmissionRequest): AdmissionRequest {
  if (request.kind !== 'scale' && request.kind !== 'update') return request;
  const set = statefulSets.find(({ namespace, name }) => namespace === request.namespace && name === request.statefulSet);
  return set === undefined ? request : { ...request, from: set.replicas };
}

function asRelease({ judgement, ...judged }: Judged): Judged {
  return {
    ...judged,
    judgement: {
      ...judgement,
      warnings: [...judgement.warnings, 'ending a pod, or removing it from its StatefulSet, counts as its deletion'],
    },
  };
}

/** Returns the number of pods that are deleted with the StatefulSet: the higher of its desired and its current count. */
function podCountOf({ spec, status }: KubernetesObject): number {
  const replicasIn = (value: unknown, absent: number): number => {
    const { replicas } = asJsonObject(value);
    return typeof replicas === 'number' ? replicas : absent;
  };
  return Math.max(replicasIn(spec, 1), replicasIn(status, 0));
}
