// Watches one kind of object in all watched namespaces, shares a watch between parts, and finds kinds that the server does not serve.

import { type Discovery, discover } from '../../cluster/request/discovery.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { type Reflector, type ReflectorState, startReflector } from '../../cluster/watch/reflector.ts';
import type { Change, InvalidObject } from '../../cluster/watch/store.ts';
import type { Unknown } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';

interface WatchedOptions<View> {
  readonly env: AgentEnv;
  readonly resource: Resource;
  /** undefined: the whole cluster, in one watch. */
  readonly namespaces: readonly string[] | undefined;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly project: (object: KubernetesObject) => View;
  readonly onChange: (change: Change<View>) => void;
  readonly onState: () => void;
  /** Consequence of an unreadable kind, as the end of a sentence. */
  readonly withoutIt: string;
  /** Reports whether a kind that the server does not serve means that there are no such objects. */
  readonly mayBeMissing?: boolean;
  /** Reports whether a server that forbids to read the kind is known not to serve it at all: permissions are asked before existence. */
  readonly isNotServed?: () => boolean;
  /** Maximum age of a list when its watch ends, in milliseconds; 30 minutes by default. */
  readonly relistMs?: number;
  /** Reports whether what was seen last is still good for a while after contact was lost. */
  readonly outlivesContact?: boolean;
}

/** States how long what outlives the contact to the server does so, in milliseconds. */
const longestSilenceMs = 90_000;

/** Watches one kind from its creation on: the whole cluster by one reflector, or each namespace by its own. */
export class Watched<View> {
  readonly #options: WatchedOptions<View>;
  readonly #isOne: boolean;
  readonly #reflectors: ReadonlyMap<string | undefined, Reflector<View>>;
  readonly #listeners = new Set<(change: Change<View>) => void>();

  constructor(options: WatchedOptions<View>) {
    this.#options = options;
    const { env, resource, namespaces, labelSelector, fieldSelector, project, onChange, onState, relistMs } = options;
    const selectors = { labelSelector, fieldSelector };
    const site = `watch.${resource.plural}`;
    const tell = (change: Change<View>): void => {
      onChange(change);
      for (const listener of this.#listeners) listener(change);
    };
    const start = (namespace?: string): Reflector<View> =>
      startReflector<View>({ env, resource, namespace, ...selectors, project, onChange: tell, onState, site, relistMs });
    this.#isOne = namespaces === undefined || !resource.isNamespaced;
    this.#reflectors = new Map(
      namespaces === undefined || this.#isOne ? [[undefined, start()]] : namespaces.map((namespace) => [namespace, start(namespace)]),
    );
  }

  get(namespace: string, name: string): View | undefined {
    return this.#reflectorOf(namespace)?.store.get(namespace, name);
  }

  list(namespace?: string): readonly View[] {
    if (namespace === undefined) return this.#all().flatMap(({ store }) => store.list());
    return this.#reflectorOf(namespace)?.store.list(namespace) ?? [];
  }

  /** Calls back after each change, in their order and after the `onChange` of the options. Returns the function that ends it. */
  onChange(listener: (change: Change<View>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns why the list of a namespace, or of all of them, cannot be believed; undefined when it can. */
  problem(namespace?: string): Unknown | undefined {
    const asked =
      namespace === undefined || this.#isOne ? this.#all() : [this.#reflectorOf(namespace)].filter((reflector) => reflector !== undefined);
    return asked.map((reflector) => this.#problemOf(reflector)).find((problem) => problem !== undefined);
  }

  /** Returns why a namespace was never read; undefined from the first list on, and if the kind may be missing. */
  neverRead(namespace: string): Unknown | undefined {
    const { resource, mayBeMissing } = this.#options;
    const reflector = this.#reflectorOf(namespace);
    if (reflector === undefined) return { unknown: `namespace ${namespace} is not watched for ${resource.plural}` };
    const state = this.#stateOf(reflector);
    if (state.kind === 'starting') return { unknown: `${resource.plural} have not been listed yet` };
    const isKnown = state.kind === 'synced' || state.hasSynced || (state.reason === 'missing' && mayBeMissing === true);
    return isKnown ? undefined : { unknown: state.message };
  }

  invalid(): readonly InvalidObject[] {
    return this.#all().flatMap(({ store }) => store.invalid());
  }

  hasSeen(namespace: string, resourceVersion: string): boolean {
    return this.#reflectorOf(namespace)?.hasSeen(resourceVersion) ?? false;
  }

  /** Returns the maximum age of the namespace's objects in milliseconds on the monotonic clock; infinite before the first list. */
  ageMs(namespace: string): number {
    return this.#reflectorOf(namespace)?.ageMs() ?? Number.POSITIVE_INFINITY;
  }

  /** Lists again, because a direct read contradicts the cache. */
  relist(namespace: string): void {
    this.#reflectorOf(namespace)?.relist();
  }

  /** Reports whether everything is known, or known not to be readable. */
  isSettled(): boolean {
    return this.#all().every((reflector) => isSettled(reflector.state()));
  }

  degradation(): Degradation | undefined {
    const { resource, mayBeMissing, withoutIt } = this.#options;
    const state = this.#all()
      .map((reflector) => this.#stateOf(reflector))
      .find(({ kind }) => kind === 'failing');
    if (state?.kind !== 'failing') return undefined;
    const { reason, message } = state;
    const id = `watch/${resource.plural}`;
    if (reason === 'missing' && mayBeMissing) return { id, reason, message: `${resource.plural} are not installed` };
    return { id, reason, message: `${resource.plural} cannot be watched (${message}): ${withoutIt}` };
  }

  stop(): void {
    for (const reflector of this.#all()) reflector.stop();
  }

  #all(): readonly Reflector<View>[] {
    return [...this.#reflectors.values()];
  }

  #reflectorOf(namespace: string): Reflector<View> | undefined {
    return this.#reflectors.get(this.#isOne ? undefined : namespace);
  }

  #stateOf(reflector: Reflector<View>): ReflectorState {
    const state = reflector.state();
    const isMissing = state.kind === 'failing' && state.reason === 'forbidden' && this.#options.isNotServed?.();
    return isMissing ? { ...state, reason: 'missing' } : state;
  }

  #problemOf(reflector: Reflector<View>): Unknown | undefined {
    const { resource, mayBeMissing, outlivesContact } = this.#options;
    const state = this.#stateOf(reflector);
    if (state.kind === 'starting') return { unknown: `${resource.plural} have not been read yet` };
    if (state.kind === 'synced' || (state.reason === 'missing' && mayBeMissing)) return undefined;
    if (state.reason === 'invalid' && state.hasSynced) return undefined;
    const isUsable = outlivesContact && state.hasSynced && (reflector.silentMs() ?? longestSilenceMs) < longestSilenceMs;
    return state.reason === 'unreachable' && isUsable ? undefined : { unknown: `${resource.plural} cannot be read: ${state.message}` };
  }
}

/** A watch that other parts of the process follow. */
export type FollowedWatch<View> = Pick<Watched<View>, 'get' | 'list' | 'neverRead' | 'isSettled' | 'onChange'>;

function isSettled(state: ReflectorState): boolean {
  return (
    state.kind === 'synced' || (state.kind === 'failing' && (state.hasSynced || state.reason === 'forbidden' || state.reason === 'missing'))
  );
}

const discoveryTimeoutMs = 30_000;
const askAgainAfterMs = 60_000;

/** Finds kinds that the server does not serve. It asks only after a 403, because the server checks permissions before existence. */
export class ServedKinds {
  readonly #env: AgentEnv;
  readonly #onLearned: () => void;
  #known: Discovery | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  /** `onLearned` is called when the answer is there. */
  constructor(env: AgentEnv, onLearned: () => void) {
    this.#env = env;
    this.#onLearned = onLearned;
  }

  /** Asks the server, at most once a minute. */
  learn(): void {
    const { clock, log } = this.#env;
    if (clock.monotonicMs() - this.#askedMs < askAgainAfterMs) return;
    this.#askedMs = clock.monotonicMs();
    discover(this.#env, { timeoutMs: discoveryTimeoutMs })
      .then((found) => {
        this.#known = found;
        this.#onLearned();
      })
      .catch((error: unknown) => log.warn('API discovery failed', { problem: messageOf(error) }));
  }

  /** Reports whether the API server does not serve the kind. */
  isMissing(resource: Resource): boolean {
    return this.#known?.knows(resource) === true && !this.#known.has(resource);
  }
}
