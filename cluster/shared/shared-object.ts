// Changes one API object that several processes share. Compare-and-swap applies each change at most once; waiting changes share one write.
import { messageOf } from '../../policies/error-message.ts';
import { type ClusterEnv, sleep } from '../env.ts';
import { ApiFailure, isStatus, TransportFailure } from '../request/failure.ts';
import { isSameJson } from '../request/json.ts';
import { getObject } from '../request/read.ts';
import { apiVersionOf, type KubernetesObject, type ObjectMeta, type Resource } from '../request/resource.ts';
import { createObject, replaceObject, WriteRefused } from '../request/write.ts';

const defaultTimeoutMs = 10_000;
/** The default size limit. etcd stores objects of at most 1.5 MiB, a ConfigMap has at most 1 MiB. */
const defaultMaxBytes = 900 * 1024;

/** The number of conflicts after which the changes are rejected. One writer succeeds in each round, so 30 competing writers all succeed. */
const conflictLimit = 30;
/** The random delay between rounds has an upper limit, which doubles with each round up to `lastPauseMs`. */
const firstPauseMs = 10;
const lastPauseMs = 1000;

interface Stored<Value> {
  readonly value: Value;
  /** Absent if the object does not exist. */
  readonly resourceVersion?: string;
}

interface Waiting<Value> {
  readonly change: (value: Value) => Value;
  readonly resolve: (stored: Stored<Value>) => void;
  readonly reject: (error: unknown) => void;
}

/** The result of applying the waiting changes to the object. */
interface Plan<Value> {
  /** Undefined if the object does not exist. */
  readonly object: KubernetesObject | undefined;
  readonly value: Value;
  /** Absent if nothing is written. */
  readonly body?: KubernetesObject;
  readonly kept: readonly Waiting<Value>[];
  readonly refused: readonly { readonly waiting: Waiting<Value>; readonly error: unknown }[];
}

export interface SharedObjectOptions<Value> {
  readonly env: ClusterEnv;
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  /** Decodes the object; the argument is undefined if the object does not exist. An exception rejects the read or update. */
  readonly decode: (object: KubernetesObject | undefined) => Value;
  /** Returns the fields that contain the value. Other fields, labels and annotations stay. */
  readonly encode: (value: Value, existing: KubernetesObject | undefined) => EncodedObject;
  /** The maximum size of the object as JSON, in bytes; default 900 KiB. */
  readonly maxBytes?: number;
  /** Runs before each write. False prevents the write. */
  readonly mayWrite?: () => boolean;
  /** The timeout of each request in milliseconds; default 10 s. */
  readonly timeoutMs?: number;
  /** The call site for logs and injected faults; `.read`, `.create` and `.replace` are appended. */
  readonly site: string;
}

export interface EncodedObject {
  readonly metadata?: Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>;
  readonly [field: string]: unknown;
}

/** The failure of a write whose object would be too large. Nothing was sent. */
export class ObjectTooLarge extends Error {
  override readonly name = 'ObjectTooLarge';
}

export class SharedObject<Value> {
  readonly #options: SharedObjectOptions<Value>;
  #waiting: Waiting<Value>[] = [];
  #isWriting = false;
  /** The object that the last batch wrote or read. If it is stale, the next write causes a conflict. */
  #last: KubernetesObject | undefined;

  constructor(options: SharedObjectOptions<Value>) {
    this.#options = options;
  }

  /** Reads the value from a quorum. Rejects with ApiFailure, TransportFailure or errors of `decode`. */
  async read(): Promise<Stored<Value>> {
    const object = await this.#get();
    return stored(this.#options.decode(object), object);
  }

  /**
   * Stores the result of `change` at most once. Only conflicts are retried. `change` may run several times with newer values, so it must have
   * no side effect. An exception of `change` rejects only this update. An unchanged value causes no write. Rejects with ApiFailure (not
   * stored), ObjectTooLarge, WriteRefused or an error of `decode` (not sent), or TransportFailure: its `mayBeApplied` tells whether the change
   * may be stored now or later.
   */
  update(change: (value: Value) => Value): Promise<Stored<Value>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, resolve, reject });
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Changes that are requested at the same moment share the write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#last = await this.#commit(batch);
    }
    this.#isWriting = false;
  }

  /** Resolves or rejects each change of the batch. Returns the object with the changes; undefined if it is unknown or does not exist. */
  async #commit(batch: readonly Waiting<Value>[]): Promise<KubernetesObject | undefined> {
    let open = batch;
    let plan = this.#planOnLast(batch);
    for (let conflicts = 1; ; conflicts++) {
      try {
        plan ??= this.#plan(await this.#get(), open);
        const { object, value, body, kept, refused } = plan;
        for (const { waiting, error } of refused) waiting.reject(error);
        open = kept;
        const result = body === undefined ? object : await this.#write(body, object);
        for (const { resolve } of open) resolve(stored(value, result));
        return result;
      } catch (error) {
        plan = undefined;
        if (await this.#mayRetry(error, conflicts)) continue;
        for (const { reject } of open) reject(withOutcome(error));
        return undefined;
      }
    }
  }

  /** Waits before the next attempt. Returns false if the error is final. */
  async #mayRetry(error: unknown, conflicts: number): Promise<boolean> {
    if (!isStatus(error, 409) && !(isStatus(error, 404) && error.site.endsWith('.replace'))) return false;
    const { env } = this.#options;
    // The first retry is immediate. Later retries are delayed at random, so that the writers do not collide again.
    const limitMs = conflicts === 1 ? 0 : Math.min(lastPauseMs, firstPauseMs * 2 ** conflicts);
    await sleep(env, limitMs * env.random());
    return conflicts < conflictLimit;
  }

  async #get(): Promise<KubernetesObject | undefined> {
    const { env, resource, namespace, name, site, timeoutMs = defaultTimeoutMs } = this.#options;
    return getObject(env, resource, { namespace, name }, { site: `${site}.read`, timeoutMs });
  }

  async #write(body: KubernetesObject, existing: KubernetesObject | undefined): Promise<KubernetesObject> {
    const { env, resource, site, timeoutMs = defaultTimeoutMs, mayWrite = () => true } = this.#options;
    if (!mayWrite()) throw new WriteRefused('this process does not lead');
    return existing === undefined
      ? createObject(env, resource, body, { site: `${site}.create`, timeoutMs })
      : replaceObject(env, resource, body, { site: `${site}.replace`, timeoutMs });
  }

  /** Returns undefined if the object must be read first: only a fresh object proves a write refused or unnecessary. */
  #planOnLast(batch: readonly Waiting<Value>[]): Plan<Value> | undefined {
    if (this.#last === undefined) return undefined;
    try {
      const plan = this.#plan(this.#last, batch);
      return plan.body === undefined || plan.refused.length > 0 ? undefined : plan;
    } catch {
      return undefined;
    }
  }

  #plan(object: KubernetesObject | undefined, batch: readonly Waiting<Value>[]): Plan<Value> {
    const before = this.#options.decode(object);
    const all = { object, ...applyAll(before, batch, () => undefined) };
    const body = this.#bodyOf(all.value, before, object);
    if (body === undefined || this.#sizeProblem(body) === undefined) return body === undefined ? all : { ...all, body };
    // All changes together are too large, so only the changes that fit are stored, in their order.
    const fits = applyAll(before, batch, (value) => {
      const one = this.#bodyOf(value, before, object);
      return one === undefined ? undefined : this.#sizeProblem(one);
    });
    const fitting = { object, ...fits };
    const rest = this.#bodyOf(fitting.value, before, object);
    return rest === undefined ? fitting : { ...fitting, body: rest };
  }

  #bodyOf(value: Value, before: Value, existing: KubernetesObject | undefined): KubernetesObject | undefined {
    if (Object.is(value, before)) return undefined;
    const { resource, namespace, name, encode } = this.#options;
    const { metadata = {}, ...fields } = encode(value, existing);
    const { managedFields: _, ...known } = existing?.metadata ?? {};
    const body: KubernetesObject = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...existing,
      ...fields,
      metadata: {
        ...known,
        ...metadata,
        name,
        namespace,
        ...merged('labels', existing, metadata),
        ...merged('annotations', existing, metadata),
      },
    };
    return existing !== undefined && isSameJson({ ...existing, metadata: known }, body) ? undefined : body;
  }

  #sizeProblem(body: KubernetesObject): ObjectTooLarge | undefined {
    const { maxBytes = defaultMaxBytes, resource, name } = this.#options;
    const bytes = Buffer.byteLength(JSON.stringify(body));
    return bytes > maxBytes
      ? new ObjectTooLarge(`${resource.kind} ${name} would have ${bytes} bytes; the limit is ${maxBytes}`)
      : undefined;
  }
}

/** Applies the changes in order, except those that throw or lead to a value with a problem. */
function applyAll<Value>(
  before: Value,
  batch: readonly Waiting<Value>[],
  problemOf: (value: Value) => Error | undefined,
): Omit<Plan<Value>, 'object' | 'body'> {
  const kept: Waiting<Value>[] = [];
  const refused: { waiting: Waiting<Value>; error: unknown }[] = [];
  let value = before;
  for (const waiting of batch) {
    try {
      const next = waiting.change(value);
      const problem = problemOf(next);
      if (problem !== undefined) throw problem;
      value = next;
      kept.push(waiting);
    } catch (error) {
      refused.push({ waiting, error });
    }
  }
  return { value, kept, refused };
}

function stored<Value>(value: Value, object: KubernetesObject | undefined): Stored<Value> {
  const resourceVersion = object?.metadata.resourceVersion;
  return resourceVersion === undefined ? { value } : { value, resourceVersion };
}

/** Returns an error that says whether the changes may be stored: a server may have stored a write although it answered with a failure. */
function withOutcome(error: unknown): unknown {
  if (!(error instanceof TransportFailure || error instanceof ApiFailure)) return error;
  const said = error instanceof TransportFailure && error.mayBeApplied;
  const mayBeApplied = !error.site.endsWith('.read') && (said || (error instanceof ApiFailure && error.status >= 500));
  return mayBeApplied === said ? error : new TransportFailure(messageOf(error), { site: error.site, mayBeApplied, cause: error });
}

function merged(field: 'labels' | 'annotations', existing: KubernetesObject | undefined, metadata: EncodedObject['metadata']) {
  const both = { ...existing?.metadata[field], ...metadata?.[field] };
  return Object.keys(both).length === 0 ? {} : { [field]: both };
}
