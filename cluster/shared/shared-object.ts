// Changes one API object that several processes share. Compare-and-swap applies each change exactly once; waiting changes share one write.
import type { ClusterEnv } from '../env.ts';
import { isJsonObject, isSameJson, parseJson } from '../request/json.ts';
import { getObject } from '../request/read.ts';
import { apiVersionOf, type KubernetesObject, type ObjectMeta, type Resource } from '../request/resource.ts';
import { createObject, replaceObject, WriteRefused } from '../request/write.ts';
import { Commit, type Plan, type Steps, type Stored, stored, type Waiting } from './commit.ts';

const defaultTimeoutMs = 10_000;
const defaultRetries = 5;
/** The default size limit. etcd stores objects of at most 1.5 MiB, a ConfigMap has at most 1 MiB. */
const defaultMaxBytes = 900 * 1024;

export type { Stored } from './commit.ts';

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
  /** Runs before each write and each retry. False prevents the write. */
  readonly mayWrite?: () => boolean;
  /** The maximum number of retries after no answer, 429 or 5xx; default 5. Conflicts are retried in addition. */
  readonly retries?: number;
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
  readonly #writer: string;
  #sequence = 0;
  #waiting: Waiting<Value>[] = [];
  #isWriting = false;
  /** The object that the last batch wrote or read. If it is stale, the next write causes a conflict. */
  #last: KubernetesObject | undefined;

  constructor(options: SharedObjectOptions<Value>) {
    this.#options = options;
    this.#writer = writerId(options.env.random);
  }

  /** Reads the value from a quorum. Rejects with ApiFailure, TransportFailure or errors of `decode`. */
  async read(): Promise<Stored<Value>> {
    const object = await this.#get();
    return stored(this.#options.decode(object), object);
  }

  /**
   * Stores the result of `change` exactly once. `change` may run several times with newer values, so it must have no side effect. An
   * exception of `change` rejects only this update. An unchanged value causes no write. Rejects with ApiFailure (not stored),
   * ObjectTooLarge, WriteRefused or an error of `decode` (not sent), or TransportFailure: its `mayBeApplied` tells whether the change may
   * be stored now or later.
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
      this.#last = await new Commit(batch, this.#steps()).run();
    }
    this.#isWriting = false;
  }

  #steps(): Steps<Value> {
    const { env, decode, retries = defaultRetries } = this.#options;
    const before = this.#sequence;
    return {
      env,
      guess: this.#last,
      decode,
      retries,
      read: () => this.#get(),
      plan: (object, batch) => this.#plan(object, batch),
      write: (body, existing) => this.#write(body, existing),
      hasWritten: (object) => lastWriteOf(object, this.#writer) > before,
    };
  }

  async #get(): Promise<KubernetesObject | undefined> {
    const { env, resource, namespace, name, site, timeoutMs = defaultTimeoutMs } = this.#options;
    return getObject(env, resource, { namespace, name }, { site: `${site}.read`, timeoutMs });
  }

  async #write(body: KubernetesObject, existing: KubernetesObject | undefined): Promise<KubernetesObject> {
    const { env, resource, site, timeoutMs = defaultTimeoutMs, mayWrite = () => true } = this.#options;
    if (!mayWrite()) throw new WriteRefused('this process does not lead');
    const annotations = { ...body.metadata.annotations, [writersAnnotation]: withWrite(existing, this.#writer, ++this.#sequence) };
    const marked = { ...body, metadata: { ...body.metadata, annotations } };
    return existing === undefined
      ? createObject(env, resource, marked, { site: `${site}.create`, timeoutMs })
      : replaceObject(env, resource, marked, { site: `${site}.replace`, timeoutMs });
  }

  #plan(object: KubernetesObject | undefined, batch: readonly Waiting<Value>[]): Plan<Value> {
    const before = this.#options.decode(object);
    const all = applyAll(before, batch, () => undefined);
    const body = this.#bodyOf(all.value, before, object);
    if (body === undefined || this.#sizeProblem(body) === undefined) return body === undefined ? all : { ...all, body };
    // All changes together are too large, so only the changes that fit are stored, in their order.
    const fitting = applyAll(before, batch, (value) => {
      const one = this.#bodyOf(value, before, object);
      return one === undefined ? undefined : this.#sizeProblem(one);
    });
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
): Omit<Plan<Value>, 'body'> {
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

function merged(field: 'labels' | 'annotations', existing: KubernetesObject | undefined, metadata: EncodedObject['metadata']) {
  const both = { ...existing?.metadata[field], ...metadata?.[field] };
  return Object.keys(both).length === 0 ? {} : { [field]: both };
}

/** The number of the last write of each recent writer, as JSON. The number shows whether a write without a response was stored. */
const writersAnnotation = 'rollout-group.dev/writers';

/** The number of writers in the annotation: more than the replicas of agent and webhook that write one object at the same time. */
const writersKept = 16;

/** Returns a random name of a writer. It is not a number, because a JavaScript object sorts numeric keys first. */
function writerId(random: () => number): string {
  const part = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(36)
      .padStart(7, '0');
  return `w${part()}${part()}`;
}

/** Returns the number of this writer's last write in the object; 0 without a write. */
function lastWriteOf(object: KubernetesObject | undefined, writer: string): number {
  return marksOf(object)[writer] ?? 0;
}

/** Returns the annotation with this write as the newest. */
function withWrite(object: KubernetesObject | undefined, writer: string, sequence: number): string {
  const { [writer]: _, ...others } = marksOf(object);
  return JSON.stringify(Object.fromEntries([...Object.entries(others), [writer, sequence]].slice(-writersKept)));
}

function marksOf(object: KubernetesObject | undefined): Readonly<Record<string, number>> {
  const text = object?.metadata.annotations?.[writersAnnotation];
  if (typeof text !== 'string') return {};
  try {
    const value = parseJson(text);
    if (!isJsonObject(value)) return {};
    return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])));
  } catch {
    // The annotation was edited. The next write repairs it.
    return {};
  }
}
