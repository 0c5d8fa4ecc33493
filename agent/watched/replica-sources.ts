// Reads, before each decision, the objects from which zones mirror their replicas, and watches them if that is permitted.
import { type Discovery, discover } from '../../cluster/request/discovery.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { observeReplicaSource } from '../../engine/observe/source.ts';
import type { ReplicaSourceView } from '../../engine/snapshot.ts';
import type { GroupDefinition, ReplicasDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';
import { Watched } from './watched.ts';

type Mirror = Extract<ReplicasDefinition, { readonly kind: 'mirror' }>;

/** The identity of a mirrored object that was read. */
export interface SourceReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly resource: Resource;
}

export interface ReadSource {
  readonly view: ReplicaSourceView;
  /** Absent if the object does not exist or could not be read. */
  readonly reference?: SourceReference;
}

/** The time after which discovery is repeated if a kind was not found. */
const rediscoverAfterMs = 30_000;

/** The mirrored objects of all groups. `onChange` receives the key of the object that changed. */
export class ReplicaSources {
  readonly #env: AgentEnv;
  readonly #timeoutMs: number;
  readonly #onChange: (key: string) => void;
  readonly #watches = new Map<string, Watched<string>>();
  #discovered: { readonly atMs: number; readonly discovery: Promise<Discovery> } | undefined;

  constructor(env: AgentEnv, timeoutMs: number, onChange: (key: string) => void) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
    this.#onChange = onChange;
  }

  /** Reads every mirrored object of the group. An unreadable object is unknown, with the reason. Never rejects. */
  read(group: GroupDefinition): Promise<readonly ReadSource[]> {
    return Promise.all(mirrorsOf(group).map((mirror) => this.#readOne(group.namespace, mirror)));
  }

  /** Ends the watches of objects that no zone of these groups mirrors. */
  follow(groups: readonly GroupDefinition[]): void {
    const wanted = new Set(groups.flatMap((group) => mirrorsOf(group).map((mirror) => sourceKey(group.namespace, mirror))));
    for (const [key, watched] of this.#watches) {
      if (wanted.has(key)) continue;
      watched.stop();
      this.#watches.delete(key);
    }
  }

  /** Returns whether every mirrored object of the group is watched. If not, the group must poll. */
  isFollowed(group: GroupDefinition): boolean {
    return mirrorsOf(group).every((mirror) => {
      const followed = this.#watches.get(sourceKey(group.namespace, mirror));
      return followed !== undefined && followed.problem() === undefined;
    });
  }

  stop(): void {
    for (const watched of this.#watches.values()) watched.stop();
  }

  #discovery(): Promise<Discovery> {
    if (this.#discovered === undefined) {
      const found = { atMs: this.#env.clock.monotonicMs(), discovery: discover(this.#env, { timeoutMs: this.#timeoutMs }) };
      found.discovery.catch(() => {
        if (this.#discovered === found) this.#discovered = undefined;
      });
      this.#discovered = found;
    }
    return this.#discovered.discovery;
  }

  /** Returns every served version of the kind, regardless of the version in the reference, as grafana/rollout-operator does. */
  async #resourcesOf({ apiVersion, resourceKind: kind }: Mirror): Promise<readonly Resource[]> {
    const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
    const found = (await this.#discovery()).find({ group, kind });
    const isOld = this.#discovered !== undefined && this.#env.clock.monotonicMs() - this.#discovered.atMs >= rediscoverAfterMs;
    if (found.length > 0 || !isOld) return found;
    this.#discovered = undefined;
    return (await this.#discovery()).find({ group, kind });
  }

  async #readOne(namespace: string, mirror: Mirror): Promise<ReadSource> {
    const { apiVersion, resourceKind: kind, name, read, fieldPath } = mirror;
    const reference = { namespace, apiVersion, kind, name, read, fieldPath };
    const unknown = (reason: string): ReadSource => ({ view: { namespace, apiVersion, kind, name, replicas: { unknown: reason } } });
    let failure: unknown;
    try {
      const resources = await this.#resourcesOf(mirror);
      if (resources.length === 0) return unknown(`the API server does not serve kind ${kind} of ${apiVersion || 'the core group'}`);
      for (const resource of resources) {
        try {
          const subresource = read === 'scale' ? { subresource: 'scale' } : {};
          const object = await getObject(
            this.#env,
            resource,
            { namespace, name },
            { site: 'sources.read', timeoutMs: this.#timeoutMs, ...subresource },
          );
          if (object === undefined) continue;
          this.#followOne(namespace, mirror, resource);
          return { view: observeReplicaSource(reference, object), ...referenceOf(object, resource, namespace, name) };
        } catch (error) {
          failure ??= error;
        }
      }
      if (failure === undefined) return { view: observeReplicaSource(reference, undefined) };
    } catch (error) {
      failure ??= error;
    }
    return unknown(messageOf(failure));
  }

  #followOne(namespace: string, mirror: Mirror, resource: Resource): void {
    const key = sourceKey(namespace, mirror);
    if (this.#watches.has(key)) return;
    const watched = new Watched<string>({
      env: this.#env,
      resource,
      namespaces: [namespace],
      fieldSelector: `metadata.name=${mirror.name}`,
      project: (object) => JSON.stringify([object['spec'], object['status']]),
      onChange: ({ view, before }) => {
        if (view !== before) this.#onChange(key);
      },
      onState: () => undefined,
      withoutIt: `${mirror.resourceKind} ${mirror.name} is read every 30 s`,
    });
    this.#watches.set(key, watched);
  }
}

/** Returns the keys of the mirrored objects of a group, as in `onChange`. */
export function sourceKeysOf(group: GroupDefinition): readonly string[] {
  return mirrorsOf(group).map((mirror) => sourceKey(group.namespace, mirror));
}

/** Returns the objects that zones of the group mirror, each once. Zones that follow another zone do not count. */
function mirrorsOf(group: GroupDefinition): readonly Mirror[] {
  const mirrors = new Map<string, Mirror>();
  for (const { replicas, follows } of group.zones) {
    if (replicas.kind === 'mirror' && follows === undefined) mirrors.set(sourceKey(group.namespace, replicas), replicas);
  }
  return [...mirrors.values()];
}

function sourceKey(namespace: string, { apiVersion, resourceKind, name, read, fieldPath = [] }: Mirror): string {
  return JSON.stringify([namespace, apiVersion, resourceKind, name, read, fieldPath]);
}

function referenceOf(
  object: KubernetesObject,
  resource: Resource,
  namespace: string,
  name: string,
): { readonly reference?: SourceReference } {
  const { uid, resourceVersion } = object.metadata;
  return uid === undefined || resourceVersion === undefined ? {} : { reference: { namespace, name, uid, resourceVersion, resource } };
}
