// Watches one kind of object in all watched namespaces for the caches, and finds kinds that the API server does not serve.

import { type Discovery, discover } from '../../cluster/request/discovery.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { Reflector, type ReflectorState } from '../../cluster/watch/reflector.ts';
import type { Change, InvalidObject } from '../../cluster/watch/store.ts';
import type { Unknown } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';

interface WatchedOptions<View> {
  readonly env: AgentEnv;
  readonly resource: Resource;
  /** The namespaces, each with its own watch; undefined for one watch on the whole cluster. */
  readonly namespaces: readonly string[] | undefined;
  readonly fieldSelector?: string;
  readonly project: (object: KubernetesObject) => View;
  readonly onChange: (change: Change<View>) => void;
  readonly onState: () => void;
  /** The consequence of an unreadable kind, as the end of a sentence. */
  readonly withoutIt: string;
  /** True if a kind that is not installed counts as a kind without objects. */
  readonly mayBeMissing?: boolean;
  /** Returns whether the kind is known not to be installed. Needed because a 403 may also mean that the kind is not installed. */
  readonly isNotServed?: () => boolean;
  /** If a watch ends and the last list is older than this, a new list follows. In milliseconds; 30 minutes by default. */
  readonly relistMs?: number;
  /** True if the cached objects still count for 90 s after the API server became unreachable. */
  readonly outlivesContact?: boolean;
}

/** The time for which cached objects count without contact to the API server if `outlivesContact` is set, in milliseconds. */
const longestSilenceMs = 90_000;

/** Watches one kind until `stop`: the whole cluster with one reflector, or each namespace with its own reflector. */
export class Watched<View> {
  readonly #options: WatchedOptions<View>;
  readonly #isOne: boolean;
  readonly #reflectors: ReadonlyMap<string | undefined, Reflector<View>>;
  readonly #listeners = new Set<(change: Change<View>) => void>();

  constructor(options: WatchedOptions<View>) {
    this.#options = options;
    const { env, resource, namespaces, fieldSelector, project, onChange, onState, relistMs } = options;
    const site = `watch.${resource.plural}`;
    const notify = (change: Change<View>): void => {
      onChange(change);
      for (const listener of this.#listeners) listener(change);
    };
    const start = (namespace?: string): Reflector<View> =>
      new Reflector<View>({ env, resource, namespace, fieldSelector, project, onChange: notify, onState, site, relistMs });
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

  /** Calls the listener after each change, after the `onChange` of the options. Returns a function that removes the listener. */
  onChange(listener: (change: Change<View>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns why the cached list of a namespace, or of all namespaces, cannot be trusted; undefined if it can. */
  problem(namespace?: string): Unknown | undefined {
    const reflectors =
      namespace === undefined || this.#isOne ? this.#all() : [this.#reflectorOf(namespace)].filter((reflector) => reflector !== undefined);
    return reflectors.map((reflector) => this.#problemOf(reflector)).find((problem) => problem !== undefined);
  }

  /** Returns why a namespace was never read; undefined after the first list, and for an optional kind that is not installed. */
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

  /** Returns the maximum age of the cached objects of the namespace in milliseconds; infinite before the first list. */
  ageMs(namespace: string): number {
    return this.#reflectorOf(namespace)?.ageMs() ?? Number.POSITIVE_INFINITY;
  }

  /** Fills the cache from a new list, because a direct read contradicts the cache. */
  relist(namespace: string): void {
    this.#reflectorOf(namespace)?.relist();
  }

  /** Returns whether every namespace was listed, or is known not to be readable. */
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

/** Finds kinds that are not installed. Needed only after a 403, because the API server checks permissions before existence. */
export class ServedKinds {
  readonly #env: AgentEnv;
  readonly #onLearned: () => void;
  #known: Discovery | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  /** Calls `onLearned` after each answer of the API server. */
  constructor(env: AgentEnv, onLearned: () => void) {
    this.#env = env;
    this.#onLearned = onLearned;
  }

  /** Reads the served kinds from the API server, at most once a minute. */
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

  isMissing(resource: Resource): boolean {
    return this.#known?.knows(resource) === true && !this.#known.has(resource);
  }
}
