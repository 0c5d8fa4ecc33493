// /admission/enforce: enforces groups and policies on every request that shrinks a StatefulSet or deletes a pod.
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { claimsFor, groupOf } from '../../engine/judge/admission-claims.ts';
import { failsOpen, isExempt, type JudgedScope, judge } from '../../engine/judge/judge.ts';
import { departuresOf, protectiveLabels } from '../../engine/judge/protection.ts';
import { profileOf } from '../../engine/profiles.ts';
import type { Departure, Snapshot } from '../../engine/snapshot.ts';
import { agentName } from '../../install/object.ts';
import type { GroupIdentity, NativeGuard, NativePreview, WebhookEnv } from '../env.ts';
import { type Answer, boundedText, type Call, type Endpoint, isDryRun, type Review } from '../review/review.ts';
import { auditOf, denialOf, longestMessage, Undecidable, unknownDenial } from './denial.ts';
import { type Decided, GroupQueue } from './group-queue.ts';
import { isBehind, LiveReads, withPod, withStatefulSet } from './live-reads.ts';
import { type Asked, askedOf, isReleased, onlyGrows, podRequest, requestsOn } from './requests-of.ts';

export interface EnforceOptions extends JudgedScope {
  readonly env: WebhookEnv;
  readonly guard: NativeGuard;
  /** Another endpoint prepares pods of drop-in groups; the API server calls it before this one. */
  readonly isPreparedElsewhere?: boolean;
}

export interface EnforceEndpoint extends Endpoint {
  /** For the drop-in endpoints of the same process, which see the same requests. */
  readonly preview: NativePreview;
  /** For objects that belong to no group as far as the API server knows: judged alike, but unknown facts allow. */
  readonly others: Endpoint;
}

/** Longest preview for another endpoint: as long as this endpoint would take. */
const longestPreviewMs = 4_000;

/**
 * Returns the endpoint. An admitted disruption is first announced in the ledger of the group. The endpoint calls no pod and writes only
 * ledgers and departures. Unknown facts deny (S31), except for the deletion of pods: a denied deletion would leave the pod Terminating.
 */
export function enforceEndpoint(options: EnforceOptions): EnforceEndpoint {
  const enforcement = new Enforcement(options);
  return {
    path: '/admission/enforce',
    handle: (review, call) => enforcement.answer(review, call, { isPreview: false, isOther: false }),
    onFailure: (review, problem) =>
      enforcement.looksAfter(askedOf(review)) ? failed(review, { problem, isNamespaceEnding: false }) : { allowed: true },
    preview: (review, call) => enforcement.preview(review, call),
    others: {
      path: '/admission/enforce-others',
      handle: (review, call) => enforcement.answer(review, call, { isPreview: false, isOther: true }),
      onFailure: (review, problem) => failed(review, { problem, isNamespaceEnding: false, isOther: true }),
    },
  };
}

/** Returns the message for the requester; unexpected errors are rethrown, and the server answers. */
function problemOf(error: unknown): string {
  if (error instanceof Undecidable) return error.message;
  if (error instanceof ApiFailure) return `the API server answered ${error.status} at ${error.site}`;
  if (error instanceof TransportFailure) return `the API server did not answer at ${error.site}`;
  throw error;
}

interface Failing {
  readonly problem: string;
  readonly isNamespaceEnding: boolean;
  /** The API server marked the object as belonging to no group. */
  readonly isOther?: boolean;
}

function failed(review: Review, { problem, isNamespaceEnding, isOther = false }: Failing): Answer {
  const asked = askedOf(review);
  if (asked.kind === 'pass') return { allowed: true };
  const isSubject = asked.kind === 'pod' || asked.kind === 'statefulSet';
  const passes =
    isSubject &&
    (isOther || failsOpen({ verb: asked.verb, onlyGrows: asked.kind === 'statefulSet' && onlyGrows(review), isNamespaceEnding }));
  if (passes && isNamespaceEnding) return { allowed: true };
  if (passes) return { allowed: true, warnings: [`${describe(review, asked)} was not judged: ${problem}`.slice(0, 250)] };
  return unknownDenial(describe(review, asked), problem);
}

function describe({ operation, resource, subresource }: Review, asked: Asked): string {
  const name = 'name' in asked ? `/${asked.name}` : '';
  return `${operation} of ${resource.resource}${subresource === '' ? '' : `/${subresource}`}${name}`;
}

class Enforcement {
  readonly #options: EnforceOptions;
  readonly #look: LiveReads;
  readonly #queues = new Map<string, GroupQueue>();

  constructor(options: EnforceOptions) {
    this.#options = options;
    this.#look = new LiveReads(options.env, options.guard);
  }

  /** Returns whether requests of this kind are judged here. */
  looksAfter(asked: Asked): boolean {
    if (asked.kind === 'pass' || asked.kind === 'malformed') return asked.kind === 'malformed';
    return !isExempt(asked, this.#options);
  }

  /** Rejects for unexpected errors. */
  async answer(review: Review, call: Call, { isPreview, isOther }: Asking): Promise<Answer> {
    const asked = askedOf(review);
    if (asked.kind === 'pass') return { allowed: true };
    if (asked.kind === 'malformed') {
      return {
        allowed: false,
        code: 403,
        reason: 'Forbidden',
        message: boundedText(`${describe(review, asked)} is refused: ${asked.problem}`, longestMessage),
      };
    }
    if (!this.looksAfter(asked)) return { allowed: true };
    try {
      await this.#look.untilSettled(call);
      const subject = asked.kind === 'pod' ? await this.#onPod(review, asked, call) : await this.#onStatefulSet(review, asked, call);
      return subject === 'passes' ? { allowed: true } : await this.#decide(review, asked, call, { ...subject, isPreview });
    } catch (error) {
      const problem = problemOf(error);
      const answer = failed(review, { problem, isOther: isOther && !(await this.#isKnownMember(asked, call)), isNamespaceEnding: false });
      if (answer.allowed || !(await this.#look.isEnding(asked.namespace, call))) return answer;
      return failed(review, { problem, isNamespaceEnding: true });
    }
  }

  /** Skips the agent: it decided by the same rules, and the API server does not send its requests here. */
  async preview(review: Review, call: Call): Promise<Answer | undefined> {
    const asked = askedOf(review);
    const { own, env } = this.#options;
    const isAgent = review.user.name === `system:serviceaccount:${own?.namespace}:${agentName}`;
    if ((asked.kind !== 'pod' && asked.kind !== 'statefulSet') || isAgent || !this.looksAfter(asked)) return undefined;
    if (!(await this.#look.isOptedIn(asked.namespace, call))) return undefined;
    const deadlineMs = Math.min(call.deadlineMs, env.clock.monotonicMs() + longestPreviewMs);
    const answer = await this.answer(review, { ...call, deadlineMs }, { isPreview: true, isOther: false });
    return answer.allowed ? undefined : answer;
  }

  async #onStatefulSet(review: Review, asked: Extract<Asked, { kind: 'statefulSet' }>, call: Call): Promise<Known> {
    const { namespace, name, verb } = asked;
    const live = await this.#look.read(resources.statefulSets, asked, call);
    if (live === 'unread') return await this.#whenUnread(asked, name, call);
    // The API server answers 404 itself.
    if (live === undefined) return 'passes';
    const snapshot = await this.#look.inStep(namespace, call, (known) => isBehind(known, live));
    const requests = requestsOn(review, verb, live, podCountOf(live));
    if (requests.length === 0) return 'passes';
    return { snapshot, statefulSet: name, decide: (seen) => this.#judge(withStatefulSet(seen, live), requests) };
  }

  async #onPod(review: Review, asked: Extract<Asked, { kind: 'pod' }>, call: Call): Promise<Known> {
    const { namespace, name, verb } = asked;
    const live = await this.#look.read(resources.pods, asked, call);
    if (live === 'unread') {
      const owner = /^(.+)-\d{1,10}$/.exec(name)?.[1];
      if (owner === undefined) throw new Undecidable('the pod cannot be read');
      return await this.#whenUnread(asked, owner, call);
    }
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return 'passes';
    const owner = owningStatefulSet(live);
    if (owner === undefined) return 'passes';
    const { name: statefulSet } = owner;
    const isOwner = (known: { readonly name: string; readonly uid: string }): boolean =>
      known.name === statefulSet && known.uid === owner.uid;
    const snapshot = await this.#snapshotWith({ namespace, owner, isOwner }, call);
    if (snapshot === undefined) return 'passes';
    const { release } = asked;
    const podLabels = snapshot.statefulSets.find(isOwner)?.podLabels ?? {};
    if (release !== undefined && !isReleased(release, podLabels)) return 'passes';
    const request = podRequest(review, verb, name);
    const decide = (seen: Snapshot): Judged => this.#judge(withPod(seen, statefulSet, live), [request]);
    return { snapshot, statefulSet, decide: release === undefined ? decide : (seen) => asRelease(decide(seen)) };
  }

  /** Returns a snapshot that knows the owner; undefined if the owner no longer exists. */
  async #snapshotWith({ namespace, owner, isOwner }: OwnerSearch, call: Call): Promise<Snapshot | undefined> {
    const snapshot = await this.#look.snapshot(namespace, call);
    if (snapshot.statefulSets.some(isOwner)) return snapshot;
    const set = await this.#look.read(resources.statefulSets, { namespace, name: owner.name }, call);
    if (set === undefined || (set !== 'unread' && set.metadata.uid !== owner.uid)) return undefined;
    return await this.#look.inStep(namespace, call, (seen) => !seen.statefulSets.some(isOwner));
  }

  /** Judges objects without a group by the known state, and objects of a group in the queue of that group. */
  async #decide(review: Review, asked: Subject, call: Call, { snapshot, statefulSet, decide, isPreview }: Deciding): Promise<Answer> {
    const { namespace } = asked;
    const { guard } = this.#options;
    const group = groupOf(snapshot, namespace, statefulSet);
    let last: { readonly judged: Judged; readonly seen: Snapshot } | undefined;
    const decided = (seen: Snapshot): Decided => {
      const judged = decide(seen);
      last = { judged, seen };
      const common = { ...(group === undefined ? {} : { group: `${namespace}/${group.name}` }), policyDigest: seen.policyDigest };
      if (judged.isAllowed) return admitted(judged, { common, isPreview, isDryRun: isDryRun(review) });
      const isEviction = asked.kind === 'pod' && asked.verb === 'evictPod';
      return { answer: denialOf(judged.judgement, { ...common, namespace, nowMs: seen.nowMs, isEviction }), claims: [] };
    };
    const what = describe(review, asked);
    const answer = group === undefined ? decided(snapshot).answer : await this.#queueOf(group).ask({ call, what, decide: decided });
    if (last === undefined) throw new Error('nothing was judged');
    const { judged, seen } = last;
    if (answer.allowed) {
      if (judged.departures.length > 0 && !isPreview) await guard.keep(namespace, judged.departures, this.#look.leftMs(call));
      return answer;
    }
    // A terminating namespace accepts no new objects, including ledgers, so nothing is announced.
    if (await this.#look.isEnding(namespace, call)) return decided({ ...seen, endingNamespaces: [namespace] }).answer;
    if (!judged.isAllowed && !isDryRun(review)) guard.denied(judged.judgement, { namespace, statefulSet });
    return answer;
  }

  #judge(snapshot: Snapshot, requests: readonly AdmissionRequest[]): Judged {
    const judged = requests
      .map((request) => fromPresent(snapshot, request))
      .map((request) => ({ request, judgement: judge(snapshot, request) }));
    const refused = judged.find(({ judgement }) => !this.#passes(snapshot, judgement));
    const [first] = judged;
    if (first === undefined) throw new Error('nothing is asked');
    if (refused !== undefined) return { judgement: refused.judgement, isAllowed: false, isGrowth: false, claims: [], departures: [] };
    return {
      judgement: { ...first.judgement, warnings: judged.flatMap(({ judgement }) => judgement.warnings) },
      isAllowed: true,
      isGrowth: judged.some(({ request }) => 'to' in request && (request.to ?? 1) > (request.from ?? 1)),
      // The agent already wrote its own claims to the ledger.
      claims: judged.flatMap(({ request, judgement }) =>
        judgement.results.some(({ rule }) => rule === 'announced') ? [] : claimsFor(snapshot, request),
      ),
      departures: judged.flatMap(({ request }) => departuresOf(snapshot, request)),
    };
  }

  #passes({ groups }: Snapshot, { outcome, actions }: Judgement): boolean {
    if (outcome !== 'prepare' || this.#options.isPreparedElsewhere !== true) return outcome === 'allow';
    const names = actions.flatMap((action) => (action.kind === 'callPods' ? [action.statefulSet] : []));
    const isPrepared = (group: Snapshot['groups'][number]): boolean =>
      profileOf(group).preparesInDropInWebhook && group.zones.some(({ statefulSet }) => names.includes(statefulSet));
    return groups.some(isPrepared);
  }

  #queueOf({ namespace, name }: GroupIdentity): GroupQueue {
    const { env, guard } = this.#options;
    for (const [key, queue] of this.#queues) if (queue.isIdle) this.#queues.delete(key);
    const key = `${namespace}/${name}`;
    const queue = this.#queues.get(key) ?? new GroupQueue(env, guard, { namespace, name });
    this.#queues.set(key, queue);
    return queue;
  }

  /** Without the API server only cached state can show that no policy applies to an object. */
  async #whenUnread({ namespace }: Subject, statefulSet: string, call: Call): Promise<Known> {
    const snapshot = await this.#look.snapshot(namespace, call);
    const set = snapshot.statefulSets.find((known) => known.namespace === namespace && known.name === statefulSet);
    const isUnprotected =
      set !== undefined &&
      groupOf(snapshot, namespace, statefulSet) === undefined &&
      !protectiveLabels.some((label) => set.labels[label] !== undefined);
    if (isUnprotected) return 'passes';
    throw new Undecidable('the object cannot be read');
  }

  /** Returns whether this process knows the object as a member, regardless of the configuration that the API server uses. */
  async #isKnownMember({ kind, namespace, name }: Subject, call: Call): Promise<boolean> {
    const statefulSet = kind === 'pod' ? /^(.+)-\d{1,10}$/.exec(name)?.[1] : name;
    const snapshot = await this.#look.snapshot(namespace, call).catch(() => undefined);
    return snapshot !== undefined && statefulSet !== undefined && groupOf(snapshot, namespace, statefulSet) !== undefined;
  }
}

interface Asking {
  readonly isPreview: boolean;
  readonly isOther: boolean;
}

type Subject = Extract<Asked, { kind: 'pod' | 'statefulSet' }>;

interface Judged {
  readonly judgement: Judgement;
  readonly isAllowed: boolean;
  readonly isGrowth: boolean;
  readonly claims: Decided['claims'];
  readonly departures: readonly Departure[];
}

/** The known state and the judge of the request, or `passes`. */
type Known = 'passes' | Omit<Deciding, 'isPreview'>;

interface Deciding {
  readonly snapshot: Snapshot;
  readonly statefulSet: string;
  readonly decide: (snapshot: Snapshot) => Judged;
  readonly isPreview: boolean;
}

interface Owner {
  readonly name: string;
  readonly uid: unknown;
}

interface OwnerSearch {
  readonly namespace: string;
  readonly owner: Owner;
  readonly isOwner: (set: { readonly name: string; readonly uid: string }) => boolean;
}

/** Returns the StatefulSet that controls the pod, as the pod names it. */
function owningStatefulSet({ metadata }: KubernetesObject): Owner | undefined {
  const owner = (metadata.ownerReferences ?? []).find((reference) => reference['controller'] === true);
  return owner?.['kind'] === 'StatefulSet' && typeof owner['name'] === 'string' ? { name: owner['name'], uid: owner['uid'] } : undefined;
}

interface Admitting {
  readonly common: Parameters<typeof auditOf>[1];
  readonly isPreview: boolean;
  readonly isDryRun: boolean;
}

function admitted({ judgement, claims, isGrowth }: Judged, { common, isPreview, isDryRun: isDry }: Admitting): Decided {
  const { warnings } = judgement;
  return {
    answer: { allowed: true, auditAnnotations: auditOf(judgement, common), ...(warnings.length === 0 ? {} : { warnings }) },
    // A preview announces nothing: the other endpoint may deny for its own reasons.
    claims: isPreview ? [] : claims,
    hidesDecrease: isGrowth && !isDry && !isPreview,
  };
}

/** Returns the request with the current replica count of the StatefulSet. */
function fromPresent({ statefulSets }: Snapshot, request: AdmissionRequest): AdmissionRequest {
  if (request.kind !== 'scale' && request.kind !== 'update') return request;
  const set = statefulSets.find(({ namespace, name }) => namespace === request.namespace && name === request.statefulSet);
  return set === undefined ? request : { ...request, from: set.replicas };
}

/** A pod that leaves its StatefulSet, or ends, counts as deleted. */
function asRelease({ judgement, ...judged }: Judged): Judged {
  return {
    ...judged,
    judgement: {
      ...judgement,
      warnings: [...judgement.warnings, 'ending a pod, or removing it from its StatefulSet, counts as its deletion'],
    },
  };
}

/** Returns the number of pods that are deleted with the StatefulSet, from its own status. */
function podCountOf({ spec, status }: KubernetesObject): number {
  const count = (value: unknown, field: string, absent: number): number => {
    const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
    return typeof found === 'number' ? found : absent;
  };
  return Math.max(count(spec, 'replicas', 1), count(status, 'replicas', 0));
}
