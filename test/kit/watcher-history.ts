// The input of the watcher: the requests in the audit log, and every state of pods, StatefulSets and nodes.

/** One answered request in the audit log. */
export interface RecordedRequest {
  readonly requestURI: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly apiGroup?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestObject?: unknown;
  readonly responseObject?: unknown;
  /** RFC 3339. */
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

interface Meta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly uid: string; readonly controller?: boolean }[];
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string;
}

export interface RecordedPod {
  readonly metadata: Meta;
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly phase?: string; readonly conditions?: readonly Condition[] };
}

export interface RecordedSet {
  readonly metadata: Meta;
  readonly spec: { readonly replicas: number; readonly minReadySeconds?: number; readonly ordinals?: { readonly start?: number } };
  readonly status: { readonly updateRevision?: string };
}

interface RecordedNode {
  readonly metadata: Meta;
  readonly status: { readonly conditions?: readonly Condition[] };
}

type Change = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One state of an object. Its revision orders the states of all objects of the server. DELETED has the revision of the deletion. */
export type ObjectEvent =
  | { readonly type: Change; readonly kind: 'Pod'; readonly object: RecordedPod }
  | { readonly type: Change; readonly kind: 'StatefulSet'; readonly object: RecordedSet }
  | { readonly type: Change; readonly kind: 'Node'; readonly object: RecordedNode };

export interface History {
  readonly requests: readonly RecordedRequest[];
  readonly events: readonly ObjectEvent[];
}

export function revisionOf({ object }: ObjectEvent): number {
  return Number(object.metadata.resourceVersion);
}

/** A zone at one revision: its StatefulSet and the pods that it owns. */
export interface ZoneState {
  readonly set: RecordedSet;
  readonly pods: readonly RecordedPod[];
}

/** The objects at one revision. Events must be added in the order of their revisions. */
export class Replay {
  readonly #pods = new Map<string, RecordedPod>();
  readonly #sets = new Map<string, RecordedSet>();
  readonly #nodes = new Map<string, RecordedNode>();

  apply(event: ObjectEvent): void {
    const { metadata } = event.object;
    const isGone = event.type === 'DELETED';
    if (event.kind === 'Pod') put(this.#pods, metadata.uid, isGone ? undefined : event.object);
    else if (event.kind === 'StatefulSet') put(this.#sets, `${metadata.namespace}/${metadata.name}`, isGone ? undefined : event.object);
    else put(this.#nodes, metadata.name, isGone ? undefined : event.object);
  }

  pod(uid: string): RecordedPod | undefined {
    return this.#pods.get(uid);
  }

  zone(namespace: string, statefulSet: string): ZoneState | undefined {
    const set = this.#sets.get(`${namespace}/${statefulSet}`);
    if (set === undefined) return undefined;
    const pods = [...this.#pods.values()].filter(({ metadata }) =>
      metadata.ownerReferences?.some(({ uid, controller }) => controller === true && uid === set.metadata.uid),
    );
    return { set, pods };
  }

  /** Returns the ordinals without an available pod. A pod that terminates, is unready, or is on a lost node is not available. */
  lacking({ set, pods }: ZoneState, atMs: number): readonly number[] {
    const first = set.spec.ordinals?.start ?? 0;
    const available = new Set(pods.filter((pod) => this.isAvailable(pod, set, atMs)).map(ordinalOf));
    return Array.from({ length: set.spec.replicas }, (_, index) => first + index).filter((ordinal) => !available.has(ordinal));
  }

  isAvailable({ metadata, spec, status }: RecordedPod, set: RecordedSet, atMs: number): boolean {
    const node = this.#nodes.get(spec.nodeName ?? '');
    if (node !== undefined && condition(node.status.conditions)?.status !== 'True') return false;
    const ready = condition(status.conditions);
    if (metadata.deletionTimestamp !== undefined || status.phase !== 'Running' || ready?.status !== 'True') return false;
    const readySinceMs = Date.parse(ready.lastTransitionTime ?? '');
    return (set.spec.minReadySeconds ?? 0) === 0 || readySinceMs + (set.spec.minReadySeconds ?? 0) * 1000 <= atMs;
  }
}

/** Returns the ordinal at the end of a pod name; -1 without one. */
export function ordinalOf({ metadata }: RecordedPod): number {
  return Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? -1);
}

function condition(conditions: readonly Condition[] | undefined): Condition | undefined {
  return conditions?.find(({ type }) => type === 'Ready');
}

function put<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
