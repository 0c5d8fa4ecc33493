// One API object that several processes change: by compare-and-swap, each change exactly once, all that wait in one write.
import type { ClusterEnv } from './env.ts';
import type { KubernetesObject, Resource } from './resource.ts';

export interface SharedObjectOptions<Value> {
  readonly env: ClusterEnv;
  /** ConfigMap, in practice. */
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  /** What the object says; of undefined when there is none. What it throws, readers and writers get. */
  readonly decode: (object: KubernetesObject | undefined) => Value;
  /** The object that says it. What it does not speak of is to be taken over from `existing`; name, UID and version are set afterwards. */
  readonly encode: (
    value: Value,
    existing: KubernetesObject | undefined,
  ) => Omit<KubernetesObject, 'metadata'> & { readonly metadata?: Partial<KubernetesObject['metadata']> };
  /** The whole object as JSON may have this many bytes; 900 KiB when left out, for etcd takes 1.5 MiB and a ConfigMap 1 MiB. */
  readonly maxBytes?: number;
  /** Asked before each write is sent, retries included; false refuses it. */
  readonly mayWrite?: () => boolean;
  /** Of each request, in milliseconds; 10 s when left out. */
  readonly timeoutMs?: number;
  /** The place in the code that asks; `.read`, `.create` and `.replace` are appended. */
  readonly site: string;
}

export interface Stored<Value> {
  readonly value: Value;
  /** Absent when the object does not exist. */
  readonly resourceVersion?: string;
}

export class SharedObject<Value> {
  constructor(_options: SharedObjectOptions<Value>) {
    throw new Error('not there yet');
  }

  /** As it is now, from a quorum. Rejects with ApiFailure, TransportFailure, or what `decode` threw. */
  read(): Promise<Stored<Value>> {
    throw new Error('not there yet');
  }

  /**
   * Stores what `change` makes of the value. It may be called several times, each time with a newer value, and must have no effect of its own;
   * it takes effect exactly once. The same value (or one that encodes to the same object) writes nothing. What it throws rejects this update
   * only. TransportFailure with `mayBeApplied`: nobody could find out whether it was stored.
   */
  update(_change: (value: Value) => Value): Promise<Stored<Value>> {
    throw new Error('not there yet');
  }
}
