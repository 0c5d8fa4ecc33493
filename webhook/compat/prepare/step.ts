// Decides one downscale for /admission/prepare-downscale: checks the StatefulSet, prepares its pods and records the time.
import { getObject } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { observeStatefulSet } from '../../../engine/observe/objects.ts';
import { orThrow, type StatefulSetView } from '../../../engine/snapshot.ts';
import { labelKeys } from '../../../policies/adopt/keys.ts';
import type { NativePreview, WebhookEnv } from '../../env.ts';
import type { Answer, Call, Review } from '../../review/review.ts';
import type { DownscaleTimes, LoadedTimes } from '../downscale-times.ts';
import { problemText, type Resize, refused, requestMs } from '../replicas.ts';
import { gapProblem, groupMembers, hasMinTime, podsOf, unreadiness } from './members.ts';
import { askToPrepare, askToStay, missingSetting, podsToCall } from './pods.ts';

interface PrepareTools {
  readonly env: WebhookEnv;
  readonly clusterDomain: string;
  readonly podTimeoutMs: number;
  readonly times: DownscaleTimes;
  readonly locks: GroupLocks;
  readonly native: NativePreview;
}

export interface PrepareRequest extends PrepareTools {
  readonly review: Review;
  readonly change: Resize;
  readonly call: Call;
  readonly set: StatefulSetView;
}

/** Time before the deadline that is reserved for asking the pods to stay. */
const withdrawalMs = 1_000;

/** The maximum number of pods to ask. More calls cannot end before the deadline, and a mistyped count must not block the process. */
const maxPods = 10_000;

interface Refusal {
  readonly problem: string;
  /** The answer of `/admission/enforce`, if that endpoint denies. */
  readonly answer?: Answer;
}

/** Returns the answer to a downscale. Admits it after its pods are prepared and its time is recorded. */
export async function prepare(request: PrepareRequest): Promise<Answer> {
  const { review, change, set, locks } = request;
  const missing = missingSetting(set);
  if (missing !== undefined) return refused(review, change, missing);
  // Mutating webhooks run before the validation of the API server, so the count can be negative.
  if (change.to < 0) return refused(review, change, 'spec.replicas must not be negative');
  const group = set.labels[labelKeys.group] ?? '';
  // A StatefulSet without a group has its own lock.
  const key = group === '' ? `${review.namespace}//${review.name}` : `${review.namespace}/${group}`;
  const lock = locks.take(key, review.name);
  try {
    const refusal = await prepareInTurn(request, group, 'holder' in lock ? lock.holder : undefined);
    if (refusal !== undefined) return refusal.answer ?? refused(review, change, refusal.problem);
    return { allowed: true, message: `all pods that leave ${review.name} were prepared: ${change.from - change.to}` };
  } finally {
    if ('release' in lock) lock.release();
  }
}

async function prepareInTurn(request: PrepareRequest, group: string, holder: string | undefined): Promise<Refusal | undefined> {
  const checked = await checkOthers(request, group);
  if ('problem' in checked) return checked;
  const { members, others, loaded } = checked;
  // The holder of the lock may record its downscale soon. Other zones wait for it only with a zone tracker or a minimum time between zones.
  if (holder !== undefined && (request.times.alwaysLocks || hasMinTime([request.set, ...members]))) {
    return { problem: `${holder} of the same group is being scaled down` };
  }
  const self = checked.self ?? (await selfNow(request, members));
  if ('problem' in self) return self;
  // Ask native enforcement after all other checks, so that their denials have the messages of grafana/rollout-operator. Ask before the
  // first call to a pod, so that a denial has no call to revert.
  const answer = await request.native(request.review, request.call);
  if (answer !== undefined) return { problem: 'native enforcement denies it', answer };
  return await callAndRecord(request, { self, others, loaded });
}

interface Checked {
  readonly members: readonly StatefulSetView[];
  /** The stored StatefulSet, if this check read it. */
  readonly self?: StatefulSetView;
  readonly others: readonly StatefulSetView[];
  readonly loaded: LoadedTimes;
}

/** Checks that the other zones shrank long enough ago, and that their pods are updated and ready. */
async function checkOthers(request: PrepareRequest, group: string): Promise<Checked | Refusal> {
  const { env, review, times } = request;
  const timeoutMs = deadlineOf(request);
  const read = { namespace: review.namespace, timeoutMs };
  const members = group === '' ? [] : await groupMembers(env, group, read).catch(refusalBecause('finding other StatefulSets failed'));
  if ('problem' in members) return members;
  const others = members.filter(({ name }) => name !== review.name);
  // With a zone tracker, `load` creates a missing ConfigMap. A forged request must not cause a write for a StatefulSet that does not exist.
  const self = members.length === 0 ? await selfNow(request, members) : undefined;
  if (self !== undefined && 'problem' in self) return self;
  const tracked = self === undefined ? members : [self];
  const loaded = await times.load(review.namespace, tracked, timeoutMs).catch(refusalBecause(times.problems.load));
  if ('problem' in loaded) return loaded;
  const gap = gapProblem(others, loaded.lastOf, env.clock.nowMs());
  if (gap !== undefined) return { problem: gap };
  for (const other of others) {
    const pods = await podsOf(env, other, read).catch(refusalBecause(`finding the pods of ${other.name} failed`));
    if ('problem' in pods) return pods;
    const problem = unreadiness(other, pods);
    if (problem !== undefined) return { problem };
  }
  return { members, others, loaded, ...(self === undefined ? {} : { self }) };
}

/** Returns the stored StatefulSet; its settings define the pod calls. Refuses a review that differs from it, such as a forged review. */
async function selfNow(request: PrepareRequest, members: readonly StatefulSetView[]): Promise<StatefulSetView | Refusal> {
  const { env, review, change, set } = request;
  const found = members.find(({ name }) => name === review.name) ?? (change.old.kind === 'Scale' ? set : undefined);
  const self = found ?? (await readSelf(env, review, deadlineOf(request)).catch(refusalBecause('reading the StatefulSet failed')));
  if ('problem' in self) return self;
  if (self.uid !== set.uid || self.replicas !== change.from || self.labels[labelKeys.group] !== set.labels[labelKeys.group]) {
    return { problem: `the StatefulSet differs from the request: it has ${self.replicas} replicas, is in another group, or was recreated` };
  }
  const count = countedReplicas(self, change) - change.to;
  if (count > maxPods) return { problem: `it would remove ${count} pods, but at most ${maxPods} can be asked to prepare` };
  const missing = missingSetting(self);
  return missing === undefined ? self : { problem: missing };
}

async function readSelf(env: WebhookEnv, { namespace, name }: Review, timeoutMs: () => number): Promise<StatefulSetView> {
  const options = { site: 'prepareDownscale.readSelf', timeoutMs: timeoutMs() };
  const found = await getObject(env, resources.statefulSets, { namespace, name }, options);
  if (found === undefined) throw new Error('it was not found');
  return orThrow(observeStatefulSet(found));
}

async function callAndRecord(
  request: PrepareRequest,
  { self, others, loaded }: Omit<Required<Checked>, 'members'>,
): Promise<Refusal | undefined> {
  const { env, change, call, times, podTimeoutMs, clusterDomain } = request;
  const { from, to } = change;
  const leaving = await leavingOrdinals(request, self).catch(refusalBecause(`finding the pods of ${self.name} failed`));
  if ('problem' in leaving) return leaving;
  const pods = podsToCall(self, leaving, clusterDomain);
  const askPodsToStay = (): Promise<void> => askToStay(env, pods, { timeoutMs: podTimeoutMs, leftMs: () => requestMs(env, call) });
  const leftMs = (): number => Math.max(0, requestMs(env, call) - withdrawalMs);
  const failure = await askToPrepare(env, pods, { timeoutMs: podTimeoutMs, leftMs });
  if (failure !== undefined) {
    await askPodsToStay();
    return { problem: `one or more pods failed to prepare: ${failure}` };
  }
  const downscale = { set: self, from, to, others, timeoutMs: deadlineOf(request) };
  const problem = await loaded.record(downscale).catch((error: unknown) => `${times.problems.record}: ${problemText(error)}`);
  if (problem === undefined) return undefined;
  await askPodsToStay();
  return { problem };
}

/** Returns the replicas before the downscale whose pods the StatefulSet counts. An ordinal above them may never have had a pod. */
function countedReplicas({ status }: StatefulSetView, { from }: Resize): number {
  return Math.min(from, status.replicas);
}

/** Returns the ordinals to ask, from the highest down: those of the counted replicas, and those of existing pods above them. */
async function leavingOrdinals(request: PrepareRequest, self: StatefulSetView): Promise<readonly number[]> {
  const { env, review, change } = request;
  const counted = Math.max(change.to, countedReplicas(self, change));
  const first = self.firstOrdinal;
  const isAbove = (ordinal: number): boolean => ordinal >= first + counted && ordinal < first + change.from;
  const own = counted === change.from ? [] : await podsOf(env, self, { namespace: review.namespace, timeoutMs: deadlineOf(request) });
  const above = own.filter(({ name, ordinal }) => name === `${self.name}-${ordinal}` && isAbove(ordinal)).map(({ ordinal }) => ordinal);
  return [...above.sort((a, b) => b - a), ...Array.from({ length: counted - change.to }, (_, index) => first + counted - 1 - index)];
}

function deadlineOf({ env, call }: PrepareRequest): () => number {
  return () => {
    const leftMs = requestMs(env, call);
    if (leftMs <= 0) throw new Error('no time was left');
    return leftMs;
  };
}

function refusalBecause(what: string): (error: unknown) => Refusal {
  return (error) => ({ problem: `${what}: ${problemText(error)}` });
}

/** The locks of the groups in this process. The holder of a lock is the StatefulSet that is being prepared. */
export class GroupLocks {
  readonly #holders = new Map<string, { readonly statefulSet: string }>();

  /** Takes the lock, or returns its holder. A second release does nothing. */
  take(key: string, statefulSet: string): { readonly release: () => void } | { readonly holder: string } {
    const holder = this.#holders.get(key);
    if (holder !== undefined) return { holder: holder.statefulSet };
    const own = { statefulSet };
    this.#holders.set(key, own);
    return {
      release: () => {
        if (this.#holders.get(key) === own) this.#holders.delete(key);
      },
    };
  }
}
