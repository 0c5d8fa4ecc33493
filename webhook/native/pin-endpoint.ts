// Serves /admission/pin-pod, which gives a new pod the revision to which the ledger of its group pins the ordinal.
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { isUnknown, type Known, type Ledger } from '../../engine/snapshot.ts';
import {
  mayPin,
  newPod,
  pinnedGroupOf,
  placementOf,
  type ReadRevision,
  readRevision,
  revisionsToRead,
  unplaced,
} from '../../engine/strategies/pinned/placement.ts';
import { endpointPaths } from '../../install/object.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { GroupIdentity, PlacementGuard, WebhookEnv } from '../env.ts';
import { type Answer, boundedText, type Call, type Endpoint, leftMs, type PatchOperation, type Review } from '../review/review.ts';

interface PinOptions {
  readonly env: Pick<WebhookEnv, 'clock' | 'kubernetes' | 'log'>;
  readonly guard: PlacementGuard;
}

const longestReadMs = 1_500;
/** API servers may cut longer warnings. */
const longestWarning = 250;
/** An answer has at most ten operations, and one of them is a test. */
const maxChanges = 9;

/**
 * Returns the endpoint. It never denies a pod. If the pin of the pod is unknown, the pod keeps the revision of the StatefulSet controller,
 * and the answer has a warning.
 */
export function pinEndpoint(options: PinOptions): Endpoint {
  const placement = new PodPlacement(options);
  return {
    path: endpointPaths.pinPod,
    handle: (review, call) => placement.answer(review, call),
    onFailure: (review, problem) => {
      const pod = podOf(review);
      if (pod === undefined) return { allowed: true };
      return unchangedPod(isUnknown(pod) ? pod.unknown : unplaced(pod, problem));
    },
  };
}

/** Returns the pod; undefined unless the request creates a pod of a StatefulSet. */
function podOf({ resource, subresource, operation, namespace, object }: Review): ReturnType<typeof newPod> {
  const isCreation = resource.group === '' && resource.resource === 'pods' && subresource === '' && operation === 'CREATE';
  return isCreation && object !== undefined ? newPod(namespace, object) : undefined;
}

function unchangedPod(problem: string): Answer {
  return { allowed: true, warnings: [boundedText(problem, longestWarning)], auditAnnotations: { outcome: 'unplaced' } };
}

class PodPlacement {
  readonly #env: PinOptions['env'];
  readonly #guard: PlacementGuard;

  constructor({ env, guard }: PinOptions) {
    this.#env = env;
    this.#guard = guard;
  }

  async answer(review: Review, call: Call): Promise<Answer> {
    const pod = podOf(review);
    if (pod === undefined) return { allowed: true };
    const groups = this.#guard.groups(review.namespace);
    if (isUnknown(pod)) {
      const mayBePinned = isUnknown(groups) || groups.some(mayPin);
      return mayBePinned ? this.#unplaced(review, pod.unknown) : { allowed: true };
    }
    if (isUnknown(groups)) return this.#unplaced(review, unplaced(pod, groups.unknown));
    const found = pinnedGroupOf(groups, pod);
    if (found === undefined) return { allowed: true };
    const { group, zone } = found;
    const known = {
      zone,
      ledger: await this.#ledger(group),
      seen: this.#guard.statefulSet(pod.namespace, pod.statefulSet),
    };
    const names = revisionsToRead(pod, known);
    const revisions = new Map(await Promise.all(names.map(async (name) => [name, await this.#revision(pod, name, call)] as const)));
    const placement = placementOf(pod, { ...known, revisions });
    if (placement.kind === 'stays') return placement.problem === undefined ? { allowed: true } : this.#unplaced(review, placement.problem);
    const { from, to, pod: wanted } = placement;
    this.#env.log.info('pinned a new pod to its revision', { namespace: pod.namespace, pod: pod.name, from, to });
    const test: PatchOperation = { op: 'test', path: '/metadata/labels/controller-revision-hash', value: from };
    return {
      allowed: true,
      patch: [test, ...patchBetween(pod.content, wanted, maxChanges)],
      auditAnnotations: { outcome: 'pinned', group: `${group.namespace}/${group.name}`, from, to },
    };
  }

  #unplaced({ namespace, uid }: Review, problem: string): Answer {
    this.#env.log.warn('left a new pod unchanged', { namespace, uid: boundedText(uid, 64), problem });
    return unchangedPod(problem);
  }

  async #ledger({ namespace, name }: GroupIdentity): Promise<Known<Ledger>> {
    try {
      return await this.#guard.ledger({ namespace, name });
    } catch (error) {
      return { unknown: `the ledger of ${namespace}/${name} cannot be read: ${problemOf(error)}` };
    }
  }

  async #revision(pod: { readonly namespace: string; readonly uid: string }, name: string, call: Call): Promise<ReadRevision> {
    const timeoutMs = Math.min(longestReadMs, leftMs(call, this.#env.clock.monotonicMs()));
    try {
      const options = { site: 'pinned.controllerRevision', timeoutMs };
      return readRevision(await getObject(this.#env, resources.controllerRevisions, { namespace: pod.namespace, name }, options), pod);
    } catch (error) {
      return { kind: 'unread', problem: problemOf(error) };
    }
  }
}

function problemOf(error: unknown): string {
  if (error instanceof ApiFailure) return `the API server answered ${error.status}`;
  if (error instanceof TransportFailure) return 'the API server did not answer';
  return messageOf(error);
}

/** A depth that no changed field of a pod reaches. */
const deepest = 12;

/**
 * Returns at most `most` operations that turn `before` into `after`. Replaces parent objects if the single fields need more operations.
 * Replaces a list if its length changes. `most` must be at least the number of top-level fields.
 */
export function patchBetween(before: JsonObject, after: JsonObject, most: number): readonly PatchOperation[] {
  for (let depth = deepest; depth > 1; depth -= 1) {
    const operations = changes('', before, after, depth);
    if (operations.length <= most) return operations;
  }
  return changes('', before, after, 1);
}

function changes(path: string, before: unknown, after: unknown, depth: number): readonly PatchOperation[] {
  if (isSameJson(before, after)) return [];
  if (depth > 0 && isJsonObject(before) && isJsonObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => fieldChanges(`${path}/${escaped(key)}`, before[key], after[key], depth - 1));
  }
  if (depth > 0 && Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => changes(`${path}/${index}`, item, after[index], depth - 1));
  }
  return [{ op: 'replace', path, value: after }];
}

/** Returns the operations for one field. `undefined` stands for a missing field. */
function fieldChanges(path: string, before: unknown, after: unknown, depth: number): readonly PatchOperation[] {
  if (before === undefined) return after === undefined ? [] : [{ op: 'add', path, value: after }];
  return after === undefined ? [{ op: 'remove', path }] : changes(path, before, after, depth);
}

/** Escapes a key for a JSON pointer (RFC 6901). */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
