// /admission/enforce: groups and policies, enforced on every way in which a StatefulSet shrinks or a pod is taken away.
import { sleep } from '../../cluster/env.ts';
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { claimsFor, groupOf } from '../../engine/admission-claims.ts';
import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { judge } from '../../engine/judge.ts';
import { departuresOf, protectiveLabels } from '../../engine/protection.ts';
import type { Departure, Snapshot } from '../../engine/snapshot.ts';
import type { GroupIdentity, NativeGuard, WebhookEnv } from '../env.ts';
import { type Answer, type Call, type Endpoint, leftMs, type Review } from '../review/review.ts';
import { auditOf, denialOf, Undecidable, unknownDenial } from './denial.ts';
import { type Decided, GroupQueue } from './group-queue.ts';
import { isBehind, withPod, withStatefulSet } from './live.ts';
import { type Asked, askedOf, isDryRun, onlyGrows, podRequest, requestsOn } from './requests-of.ts';

export interface EnforceOptions {
  readonly env: WebhookEnv;
  readonly guard: NativeGuard;
  /** Of the agent itself, which is never judged: its namespace, and the names of its workloads. */
  readonly own?: { readonly namespace: string; readonly names: readonly string[] };
  /** Those that the guard looks after; what is in others passes. Every one when left out. */
  readonly namespaces?: readonly string[] | undefined;
  /** Pods of adopted groups are asked to prepare by another endpoint, which the API server calls before this one. */
  readonly isPreparedElsewhere?: boolean;
}

/** What is read of one request: more would hold the answer up. */
const longestReadMs = 1_500;
/** Left for the answer when something is waited for. */
const reserveMs = 300;
const lookAgainMs = 100;

/**
 * The endpoint. What it lets pass and disturbs something is announced in the ledger of the group before. It calls no pod, and writes nothing but
 * ledgers, and departures. What it cannot tell it denies (S31), but for the deletion of pods: one that is refused hangs for ever.
 */
export function enforceEndpoint(options: EnforceOptions): Endpoint {
  const enforcement = new Enforcement(options);
  return {
    path: '/admission/enforce',
    handle: (review, call) => enforcement.answer(review, call),
    onFailure: (review, problem) => (enforcement.looksAfter(askedOf(review)) ? failed(review, problem) : { allowed: true }),
  };
}

/** What may be said of an error; one that nobody has thought of is thrown on, and said by the server. */
function problemOf(error: unknown): string {
  if (error instanceof Undecidable) return error.message;
  if (error instanceof ApiFailure) return `the API server answered ${error.status} at ${error.site}`;
  if (error instanceof TransportFailure) return `the API server did not answer at ${error.site}`;
  throw error;
}

function failed(review: Review, problem: string): Answer {
  const asked = askedOf(review);
  if (asked.kind === 'pass') return { allowed: true };
  if ((asked.kind === 'pod' && asked.verb === 'deletePod') || (asked.kind === 'statefulSet' && onlyGrows(review))) {
    return { allowed: true, warnings: [`${describe(review, asked)} was not judged: ${problem}`.slice(0, 250)] };
  }
  return unknownDenial(describe(review, asked), problem);
}

function describe({ operation, resource, subresource }: Review, asked: Asked): string {
  const name = 'name' in asked ? `/${asked.name}` : '';
  return `${operation} of ${resource.resource}${subresource === '' ? '' : `/${subresource}`}${name}`;
}

class Enforcement {
  readonly #options: EnforceOptions;
  readonly #queues = new Map<string, GroupQueue>();

  constructor(options: EnforceOptions) {
    this.#options = options;
  }

  /** Whether anything of the kind is judged here at all. */
  looksAfter(asked: Asked): boolean {
    if (asked.kind === 'pass' || asked.kind === 'malformed') return asked.kind === 'malformed';
    const { namespaces } = this.#options;
    return !this.#isOwn(asked) && namespaces?.includes(asked.namespace) !== false;
  }

  /** Rejects with what nobody has thought of. */
  async answer(review: Review, call: Call): Promise<Answer> {
    const asked = askedOf(review);
    if (asked.kind === 'pass') return { allowed: true };
    if (asked.kind === 'malformed') {
      return { allowed: false, code: 403, reason: 'Forbidden', message: `${describe(review, asked)} is refused: ${asked.problem}` };
    }
    if (!this.looksAfter(asked)) return { allowed: true };
    const answer = await this.#judged(review, asked, call).catch((error: unknown) => failed(review, problemOf(error)));
    // Nothing new may be stored in such a namespace, a ledger neither: there is a refusal for that as well.
    if (answer.allowed || !(await this.#isNamespaceGoing(asked.namespace, call))) return answer;
    return { allowed: true };
  }

  /** Rejects when something that it needs cannot be read in time. */
  async #judged(review: Review, asked: Subject, call: Call): Promise<Answer> {
    const { guard } = this.#options;
    if (!(await this.#waitUntil(() => guard.isSettled(), call))) return failed(review, 'policies and objects are not known yet');
    return asked.kind === 'pod' ? await this.#onPod(review, asked, call) : await this.#onStatefulSet(review, asked, call);
  }

  /** Pods of a Deployment are named after it, its template and chance; those of a StatefulSet that only begins like one of ours are not meant. */
  #isOwn({ kind, namespace, name }: Subject): boolean {
    const { own } = this.#options;
    if (own?.namespace !== namespace) return false;
    const owner = kind === 'pod' ? /^(.+)-[a-z0-9]{5,10}-[a-z0-9]{5}$/.exec(name)?.[1] : name;
    return owner !== undefined && own.names.includes(owner);
  }

  async #onStatefulSet(review: Review, asked: Extract<Asked, { kind: 'statefulSet' }>, call: Call): Promise<Answer> {
    const { namespace, name, verb } = asked;
    const live = await this.#read(resources.statefulSets, asked, call);
    if (live === 'unread') return await this.#whenUnread(review, asked, name, call);
    // The API server says so itself.
    if (live === undefined) return { allowed: true };
    const snapshot = await this.#inStep(namespace, call, (known) => isBehind(known, live));
    const requests = requestsOn(review, verb, live, podCountOf(live));
    if (requests.length === 0) return { allowed: true };
    const decide = (seen: Snapshot): Judged => this.#judge(withStatefulSet(seen, live), requests);
    return await this.#decide(review, asked, call, { snapshot, statefulSet: name, decide });
  }

  async #onPod(review: Review, asked: Extract<Asked, { kind: 'pod' }>, call: Call): Promise<Answer> {
    const { namespace, name, verb } = asked;
    const live = await this.#read(resources.pods, asked, call);
    if (live === 'unread') {
      const owner = /^(.+)-\d{1,10}$/.exec(name)?.[1];
      return owner === undefined ? failed(review, 'the pod cannot be read') : await this.#whenUnread(review, asked, owner, call);
    }
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return { allowed: true };
    const owner = (live.metadata.ownerReferences ?? []).find((reference) => reference['controller'] === true);
    const statefulSet = owner?.['kind'] === 'StatefulSet' && typeof owner['name'] === 'string' ? owner['name'] : undefined;
    if (statefulSet === undefined) return { allowed: true };
    const isOwner = ({ name: known, uid }: { readonly name: string; readonly uid: string }): boolean =>
      known === statefulSet && uid === owner?.['uid'];
    let snapshot = await this.#guardSnapshot(namespace, call);
    if (!snapshot.statefulSets.some(isOwner)) {
      const set = await this.#read(resources.statefulSets, { namespace, name: statefulSet }, call);
      if (set === undefined || (set !== 'unread' && set.metadata.uid !== owner?.['uid'])) return { allowed: true };
      snapshot = await this.#inStep(namespace, call, (seen) => !seen.statefulSets.some(isOwner));
    }
    const request = podRequest(review, verb, name);
    const decide = (seen: Snapshot): Judged => this.#judge(withPod(seen, statefulSet, live), [request]);
    return await this.#decide(review, asked, call, { snapshot, statefulSet, decide });
  }

  /** What no group has is judged by what is known; what a group has, one after the other with everything else that is asked of it. */
  async #decide(review: Review, asked: Subject, call: Call, { snapshot, statefulSet, decide }: Deciding): Promise<Answer> {
    const { namespace } = asked;
    const group = groupOf(snapshot, namespace, statefulSet);
    let last: Judged | undefined;
    const decided = (seen: Snapshot): Decided => {
      last = decide(seen);
      const { judgement, claims } = last;
      const common = { ...(group === undefined ? {} : { group: `${namespace}/${group.name}` }), policyDigest: seen.policyDigest };
      const isEviction = asked.kind === 'pod' && asked.verb === 'evictPod';
      if (last.isAllowed) {
        const { warnings } = judgement;
        return {
          answer: { allowed: true, auditAnnotations: auditOf(judgement, common), ...(warnings.length === 0 ? {} : { warnings }) },
          claims,
          hidesDecrease: last.isGrowth && !isDryRun(review),
        };
      }
      return { answer: denialOf(judgement, { ...common, namespace, nowMs: seen.nowMs, isEviction }), claims: [] };
    };
    const what = describe(review, asked);
    const answer = group === undefined ? decided(snapshot).answer : await this.#queueOf(group).ask({ call, what, decide: decided });
    if (last === undefined) throw new Error('nothing was judged');
    if (answer.allowed && last.departures.length > 0) await this.#options.guard.keep(namespace, last.departures, this.#leftMs(call));
    if (!answer.allowed && !last.isAllowed && !isDryRun(review)) this.#options.guard.denied(last.judgement, { namespace, statefulSet });
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
      // What the agent has announced stands in the ledger as the agent wrote it.
      claims: judged.flatMap(({ request, judgement }) =>
        judgement.results.some(({ rule }) => rule === 'announced') ? [] : claimsFor(snapshot, request),
      ),
      departures: judged.flatMap(({ request }) => departuresOf(snapshot, request)),
    };
  }

  #passes({ groups }: Snapshot, { outcome, actions }: Judgement): boolean {
    if (outcome !== 'prepare' || this.#options.isPreparedElsewhere !== true) return outcome === 'allow';
    const names = actions.flatMap((action) => (action.kind === 'callPods' ? [action.statefulSet] : []));
    const isAdopted = ({ zones, compatibility }: Snapshot['groups'][number]): boolean =>
      compatibility.scaleDownChecks === 'prepareOnly' && zones.some(({ statefulSet }) => names.includes(statefulSet));
    return groups.some(isAdopted);
  }

  #queueOf({ namespace, name }: GroupIdentity): GroupQueue {
    const { env, guard } = this.#options;
    for (const [key, queue] of this.#queues) if (queue.isIdle) this.#queues.delete(key);
    const key = `${namespace}/${name}`;
    const queue = this.#queues.get(key) ?? new GroupQueue(env, guard, { namespace, name });
    this.#queues.set(key, queue);
    return queue;
  }

  /** Without the API server, only what is known of it already can tell that no policy is about an object. */
  async #whenUnread(review: Review, asked: Subject, statefulSet: string, call: Call): Promise<Answer> {
    const { namespace } = asked;
    const snapshot = await this.#guardSnapshot(namespace, call);
    const set = snapshot.statefulSets.find((known) => known.namespace === namespace && known.name === statefulSet);
    const isUnprotected =
      set !== undefined &&
      groupOf(snapshot, namespace, statefulSet) === undefined &&
      !protectiveLabels.some((label) => set.labels[label] !== undefined);
    return isUnprotected ? { allowed: true } : failed(review, 'the API server cannot be asked for the object');
  }

  async #read(
    resource: Parameters<typeof getObject>[1],
    { namespace, name }: { readonly namespace: string; readonly name: string },
    call: Call,
  ): Promise<KubernetesObject | undefined | 'unread'> {
    const { env } = this.#options;
    const timeoutMs = Math.min(longestReadMs, this.#leftMs(call) / 2);
    try {
      return await getObject(env, resource, { namespace, name }, { site: `enforce.${resource.plural}`, timeoutMs });
    } catch (error) {
      env.log.warn('an object that a request is about cannot be read', {
        ...{ namespace, name, resource: resource.plural },
        problem: error instanceof Error ? error.message : 'unknown',
      });
      return 'unread';
    }
  }

  #guardSnapshot(namespace: string, call: Call): Promise<Snapshot> {
    return this.#options.guard.snapshot(namespace, [], this.#leftMs(call));
  }

  /** What is known of the namespace, once it is as new as what was read. Rejects when that takes too long: labels may say who protects it. */
  async #inStep(namespace: string, call: Call, isOld: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
    let snapshot = await this.#guardSnapshot(namespace, call);
    while (isOld(snapshot)) {
      if (!(await this.#pause(call))) throw new Undecidable('what is known of the object is older than what is stored');
      snapshot = await this.#guardSnapshot(namespace, call);
    }
    return snapshot;
  }

  async #waitUntil(isSo: () => boolean, call: Call): Promise<boolean> {
    while (!isSo()) if (!(await this.#pause(call))) return false;
    return true;
  }

  /** False when there is no time for it. */
  async #pause(call: Call): Promise<boolean> {
    if (call.signal.aborted || this.#leftMs(call) < reserveMs + lookAgainMs) return false;
    await sleep(this.#options.env, lookAgainMs, call.signal);
    return true;
  }

  #leftMs(call: Call): number {
    return leftMs(call, this.#options.env.clock.monotonicMs());
  }

  /** Whoever deletes a namespace has decided about everything in it, and nothing that holds it up can be seen from there. */
  async #isNamespaceGoing(name: string, call: Call): Promise<boolean> {
    const timeoutMs = Math.min(longestReadMs, this.#leftMs(call) / 2);
    try {
      const found = await getObject(this.#options.env, resources.namespaces, { name }, { site: 'enforce.namespace', timeoutMs });
      return found?.metadata.deletionTimestamp !== undefined;
    } catch {
      return false;
    }
  }
}

type Subject = Extract<Asked, { kind: 'pod' | 'statefulSet' }>;

interface Judged {
  readonly judgement: Judgement;
  readonly isAllowed: boolean;
  readonly isGrowth: boolean;
  readonly claims: Decided['claims'];
  readonly departures: readonly Departure[];
}

interface Deciding {
  readonly snapshot: Snapshot;
  readonly statefulSet: string;
  readonly decide: (snapshot: Snapshot) => Judged;
}

/** The request, from the replicas that the StatefulSet has by now. */
function fromPresent({ statefulSets }: Snapshot, request: AdmissionRequest): AdmissionRequest {
  if (request.kind !== 'scale' && request.kind !== 'update') return request;
  const set = statefulSets.find(({ namespace, name }) => namespace === request.namespace && name === request.statefulSet);
  return set === undefined ? request : { ...request, from: set.replicas };
}

/** What goes when the StatefulSet goes, as it says itself. */
function podCountOf({ spec, status }: KubernetesObject): number {
  const count = (value: unknown, field: string, absent: number): number => {
    const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
    return typeof found === 'number' ? found : absent;
  };
  return Math.max(count(spec, 'replicas', 1), count(status, 'replicas', 0));
}
