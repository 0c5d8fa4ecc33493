// The RolloutGroup object of a group, where there is one: publishing writes its status, events and records refer to it.
import type { ClusterEnv } from '../../cluster/env.ts';
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { resourceOfKind } from '../../policies/schema/kinds.ts';

export interface GroupName {
  readonly namespace: string;
  readonly name: string;
}

export const rolloutGroups: Resource = resourceOfKind('RolloutGroup');

/** For how long it is believed whether there is an object, by those who only refer to it. */
const believedMs = 60_000;
const maxKept = 2000;

/** Reads RolloutGroups by name. An absent kind, and one that may not be read, count as an absent object. */
export class GroupObjects {
  readonly #env: Pick<ClusterEnv, 'kubernetes' | 'clock'>;
  readonly #timeoutMs: number;
  readonly #known = new Map<string, { readonly uid: string | undefined; readonly atMs: number }>();

  constructor(env: Pick<ClusterEnv, 'kubernetes' | 'clock'>, timeoutMs: number) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  /** As it is now. Rejects when the API server could not be asked. */
  async read(group: GroupName, site: string): Promise<KubernetesObject | undefined> {
    let object: KubernetesObject | undefined;
    try {
      object = await getObject(this.#env, rolloutGroups, group, { site, timeoutMs: this.#timeoutMs });
    } catch (error) {
      if (!isStatus(error, 403, 404)) throw error;
    }
    if (this.#known.size >= maxKept) this.#known.clear();
    this.#known.set(`${group.namespace}/${group.name}`, { uid: object?.metadata.uid, atMs: this.#env.clock.monotonicMs() });
    return object;
  }

  /** Returns its UID, at most a minute old; undefined if the object does not exist. */
  async uidOf(group: GroupName, site: string): Promise<string | undefined> {
    const known = this.#known.get(`${group.namespace}/${group.name}`);
    if (known !== undefined && this.#env.clock.monotonicMs() - known.atMs < believedMs) return known.uid;
    return (await this.read(group, site))?.metadata.uid;
  }
}
