// What is read and waited for before a request can be judged, each within the time that the call has.
import { sleep } from '../../cluster/env.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { enforceLabel } from '../../install/object.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { NativeGuard, WebhookEnv } from '../env.ts';
import { type Call, leftMs } from '../review/review.ts';
import { Undecidable } from './denial.ts';

/** What is read of one request: more would hold the answer up. */
const longestReadMs = 1_500;
/** Left for the answer when something is waited for. */
const reserveMs = 300;
const lookAgainMs = 100;

/** Looks of one process. */
export class LiveReads {
  readonly #env: WebhookEnv;
  readonly #guard: Pick<NativeGuard, 'snapshot' | 'isSettled' | 'readPast'>;

  constructor(env: WebhookEnv, guard: Pick<NativeGuard, 'snapshot' | 'isSettled' | 'readPast'>) {
    this.#env = env;
    this.#guard = guard;
  }

  /** The object as it is stored; undefined when there is none. */
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
      this.#env.log.warn('an object that a request is about cannot be read', {
        namespace,
        name,
        resource: resource.plural,
        problem: messageOf(error),
      });
      return 'unread';
    }
  }

  /** Whether it is known that the namespace is on its way out. */
  async isEnding(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.deletionTimestamp !== undefined;
  }

  /** Whether it is known that native enforcement is on in the namespace. */
  async isOptedIn(namespace: string, call: Call): Promise<boolean> {
    return (await this.#namespace(namespace, call))?.metadata.labels?.[enforceLabel] === 'true';
  }

  /** What is known already of the namespace. */
  snapshot(namespace: string, call: Call): Promise<Snapshot> {
    return this.#guard.snapshot(namespace, [], this.leftMs(call));
  }

  /** What is known of the namespace, once it is as new as what was read. Rejects when that takes too long: labels may say who protects it. */
  async inStep(namespace: string, call: Call, isOld: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
    let snapshot = await this.snapshot(namespace, call);
    while (isOld(snapshot)) {
      if (!(await this.#pause(call))) throw new Undecidable('what is known of the object is older than what is stored');
      snapshot = await this.snapshot(namespace, call);
    }
    return snapshot;
  }

  /** Resolves when policies and objects are known. Rejects when that takes too long. */
  async untilSettled(call: Call): Promise<void> {
    while (!this.#guard.isSettled()) {
      if (!(await this.#pause(call))) throw new Undecidable('policies and objects are not known yet');
    }
  }

  leftMs(call: Call): number {
    return leftMs(call, this.#env.clock.monotonicMs());
  }

  /** The namespace; undefined also when it cannot be read. */
  async #namespace(name: string, call: Call): Promise<KubernetesObject | undefined> {
    const options = { site: 'enforce.namespace', timeoutMs: this.#readMs(call) };
    return await getObject(this.#env, resources.namespaces, { name }, options).catch(() => undefined);
  }

  #readMs(call: Call): number {
    return Math.min(longestReadMs, this.leftMs(call) / 2);
  }

  /** False when there is no time for it. */
  async #pause(call: Call): Promise<boolean> {
    if (call.signal.aborted || this.leftMs(call) < reserveMs + lookAgainMs) return false;
    await sleep(this.#env, lookAgainMs, call.signal);
    return true;
  }
}
