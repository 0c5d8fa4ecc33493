// Reads the RolloutGroup object of a group, if it exists, for the writers of decisions and Events.
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

/** The time for which `uidOf` uses a remembered UID. */
const cacheMs = 60_000;
const maxKept = 2000;

/** Reads RolloutGroups by name. If the kind is missing or forbidden, the object counts as absent. */
export class GroupObjects {
  readonly #env: Pick<ClusterEnv, 'kubernetes' | 'clock'>;
  readonly #timeoutMs: number;
  readonly #known = new Map<string, { readonly uid: string | undefined; readonly atMs: number }>();

  constructor(env: Pick<ClusterEnv, 'kubernetes' | 'clock'>, timeoutMs: number) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns the current object; undefined if it does not exist. Rejects if the read fails. */
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

  /** Returns the UID of the object, read at most a minute ago; undefined if the object did not exist. */
  async uidOf(group: GroupName, site: string): Promise<string | undefined> {
    const known = this.#known.get(`${group.namespace}/${group.name}`);
    if (known !== undefined && this.#env.clock.monotonicMs() - known.atMs < cacheMs) return known.uid;
    return (await this.read(group, site))?.metadata.uid;
  }
}
