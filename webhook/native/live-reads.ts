// Reads state and waits before a request is judged, within the time of the call.
import { sleep } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { NativeGuard, WebhookEnv } from '../env.ts';
import { type Call, leftMs } from '../review/review.ts';
import { Undecidable } from './denial.ts';

/** Longest read per request. */
const longestReadMs = 1_500;
/** Reserved for the answer while waiting. */
const reserveMs = 300;
const lookAgainMs = 100;

/** Live reads of one process. */
export class LiveReads {
  readonly #env: WebhookEnv;
  readonly #guard: Pick<NativeGuard, 'snapshot' | 'isSettled' | 'readPast'>;

  constructor(env: WebhookEnv, guard: Pick<NativeGuard, 'snapshot' | 'isSettled' | 'readPast'>) {
    this.#env = env;
    this.#guard = guard;
  }

  /** Returns the stored object; undefined if it does not exist. */
  async read(
    resource: Parameters<typeof getObject>[1],
    { namespace, name }: { readonly namespace: string; readonly name: string },
    call: Call,
  ): Promise<KubernetesObject | undefined | 'unread'> {
    const options = { site: `enforce.${resource.plural}`, timeoutMs: this.#readMs(call) };
    try {
      const found = await getObject(this.#env, resource, { namespace, name }, options);
      if (found !== undefined) this.#guard.readPast?.(resource === resources.pods ? 'pod' : 'statefulSet', found);
      return found;
    } catch (error) {
      this.#env.log.warn('cannot read the object of a request', {
        namespace,
        name,
        resource: resource.plural,
        problem: messageOf(error),
      });
      return 'unread';
    }
  }

  /** Returns whether the namespace is known to be terminating. */
  async isEnding(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.deletionTimestamp !== undefined;
  }

  /** Returns whether native enforcement is known to be on in the namespace. */
  async isOptedIn(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.labels?.[enforceLabel] === 'true';
  }

  /** Returns the cached state of the namespace. */
  snapshot(namespace: string, call: Call): Promise<Snapshot> {
    return this.#guard.snapshot(namespace, [], this.leftMs(call));
  }

  /**
   * Returns the state of the namespace as soon as it is as new as the object that was read. Rejects after too long: labels decide which
   * policies apply.
   */
  async inStep(namespace: string, call: Call, isOld: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
    let snapshot = await this.snapshot(namespace, call);
    while (isOld(snapshot)) {
      if (!(await this.#pause(call))) throw new Undecidable('the cached object is stale');
      snapshot = await this.snapshot(namespace, call);
    }
    return snapshot;
  }

  /** Resolves when policies and objects are known. Rejects after too long. */
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
    return await getObject(this.#env, resources.namespaces, { name }, options).catch(() => undefined);
  }

  #readMs(call: Call): number {
    return Math.min(longestReadMs, this.leftMs(call) / 2);
  }

  /** Returns false if no time is left to wait. */
  async #pause(call: Call): Promise<boolean> {
    if (call.signal.aborted || this.leftMs(call) < reserveMs + lookAgainMs) return false;
    await sleep(this.#env, lookAgainMs, call.signal);
    return true;
  }
}
