// Reads the objects and the state on which /admission/enforce decides, before the deadline of the call.
import { sleep } from '../../cluster/env.ts';
import { ApiFailure, isStatus } from '../../cluster/request/failure.ts';
import { isSameJson } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { compareResourceVersions, type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { isUnknown, type Known, type PodView, type Snapshot } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { NativeGuard, WebhookEnv } from '../env.ts';
import { type Call, leftMs } from '../review/review.ts';
import { Undecidable } from './denial.ts';

const longestReadMs = 1_500;
/** Time before the deadline that a wait reserves for the answer. */
const reserveMs = 300;
const checkAgainMs = 100;

export class LiveReads {
  readonly #env: WebhookEnv;
  readonly #guard: NativeGuard;

  constructor(env: WebhookEnv, guard: NativeGuard) {
    this.#env = env;
    this.#guard = guard;
  }

  /** Returns the stored object; undefined if it does not exist. Unknown if the read fails, with the cause for the requester. */
  async read(
    resource: Resource,
    { namespace, name }: { readonly namespace: string; readonly name: string },
    call: Call,
  ): Promise<Known<KubernetesObject> | undefined> {
    const options = { site: `enforce.${resource.plural}`, timeoutMs: this.#readMs(call) };
    try {
      const found = await getObject(this.#env, resource, { namespace, name }, options);
      if (found !== undefined) this.#guard.readPast?.(resource === resources.pods ? 'pod' : 'statefulSet', found);
      return found;
    } catch (error) {
      const fields = { namespace, name, resource: resource.plural, problem: messageOf(error) };
      this.#env.log.warn('cannot read the object of a request', fields);
      return { unknown: unreadText(error, resource, { namespace, name }) };
    }
  }

  async isEnding(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.deletionTimestamp !== undefined;
  }

  /** Returns whether native enforcement is known to be on in the namespace. */
  async isOptedIn(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.labels?.[enforceLabel] === 'true';
  }

  snapshot(namespace: string, call: Call): Promise<Snapshot> {
    return this.#guard.snapshot(namespace, [], this.leftMs(call));
  }

  /** Waits until the state of the namespace is not stale, and returns it. Throws Undecidable if the deadline is too near. */
  async freshSnapshot(namespace: string, call: Call, isStale: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
    let snapshot = await this.snapshot(namespace, call);
    while (isStale(snapshot)) {
      if (!(await this.#pause(call))) throw new Undecidable('the cached object is stale');
      snapshot = await this.snapshot(namespace, call);
    }
    return snapshot;
  }

  /** Waits until policies and objects are loaded. Throws Undecidable if the deadline is too near. */
  async untilSettled(call: Call): Promise<void> {
    while (!this.#guard.isSettled()) {
      if (!(await this.#pause(call))) throw new Undecidable('policies and objects are not loaded yet');
    }
  }

  leftMs(call: Call): number {
    return leftMs(call, this.#env.clock.monotonicMs());
  }

  /** Returns the namespace; undefined also if it cannot be read. */
  async #namespace(name: string, call: Call): Promise<KubernetesObject | undefined> {
    const options = { site: 'enforce.namespace', timeoutMs: this.#readMs(call) };
    return getObject(this.#env, resources.namespaces, { name }, options).catch(() => undefined);
  }

  #readMs(call: Call): number {
    return Math.min(longestReadMs, this.leftMs(call) / 2);
  }

  async #pause(call: Call): Promise<boolean> {
    if (call.signal.aborted || this.leftMs(call) < reserveMs + checkAgainMs) return false;
    await sleep(this.#env, checkAgainMs, call.signal);
    return true;
  }
}

/** Returns the cause of a failed read as a sentence, with the command that shows a missing right. */
function unreadText(
  error: unknown,
  { kind, plural }: Resource,
  { namespace, name }: { readonly namespace: string; readonly name: string },
) {
  if (isStatus(error, 403)) return `the agent may not get ${plural} in ${namespace}. Run: kubectl rollout-group doctor -n ${namespace}`;
  const answer = error instanceof ApiFailure ? `answered ${error.status} ${error.reason}`.trim() : 'did not answer';
  return `the API server ${answer} when the agent read ${kind} ${name}`;
}

/** Returns whether the cache lacks this object or has older labels of it. Labels decide which policies apply. */
export function isStale({ statefulSets }: Pick<Snapshot, 'statefulSets'>, live: KubernetesObject): boolean {
  const { namespace, name, uid, labels = {} } = live.metadata;
  const known = statefulSets.find((set) => set.namespace === namespace && set.name === name);
  if (known === undefined || known.uid !== uid) return true;
  return !isSameJson(known.labels, labels) && isOlder(known.resourceVersion, live.metadata.resourceVersion);
}

/** Puts the StatefulSet into the snapshot unless the cache is newer. Throws Undecidable if the StatefulSet is malformed or recreated. */
export function withStatefulSet(snapshot: Snapshot, live: KubernetesObject): Snapshot {
  const view = observeStatefulSet(live);
  if (isUnknown(view)) throw new Undecidable(view.unknown);
  const known = snapshot.statefulSets.find((set) => set.namespace === view.namespace && set.name === view.name);
  if (known !== undefined && known.uid !== view.uid) throw new Undecidable(`StatefulSet ${view.name} was recreated`);
  if (known !== undefined && !isOlder(known.resourceVersion, view.resourceVersion)) return snapshot;
  return { ...snapshot, statefulSets: [...snapshot.statefulSets.filter((set) => set !== known), view] };
}

/** Puts the pod into the snapshot unless the cache is newer. Throws Undecidable if the pod is malformed. */
export function withPod(snapshot: Snapshot, statefulSet: string, live: KubernetesObject): Snapshot {
  const view = observePod(live);
  if (isUnknown(view)) throw new Undecidable(view.unknown);
  const { namespace, owner: _owner, ...pod } = view;
  const pods = snapshot.pods.map((known) => {
    if (known.namespace !== namespace || known.statefulSet !== statefulSet || isUnknown(known.pods)) return known;
    const before = known.pods.find(({ name }) => name === pod.name);
    if (before !== undefined && before.uid === pod.uid && !isOlder(before.resourceVersion, pod.resourceVersion)) return known;
    const now: PodView = { ...pod, nodeReady: before?.uid === pod.uid ? before.nodeReady : true };
    return { ...known, pods: [...known.pods.filter((other) => other !== before), now].sort((a, b) => a.ordinal - b.ordinal) };
  });
  return { ...snapshot, pods };
}

function isOlder(known: string, read: string | undefined): boolean {
  return read !== undefined && known !== read && (compareResourceVersions(known, read) ?? -1) < 0;
}
