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

/** Everything that is known of one kind. */
export interface Watched<View> {
  readonly get: (namespace: string, name: string) => View | undefined;
  readonly list: (namespace?: string) => readonly View[];
  /** Why the list of a namespace, or of all of them, cannot be believed; undefined when it can. */
  readonly problem: (namespace?: string) => Unknown | undefined;
  /** Returns why a namespace was never read; undefined from the first list on, and if the kind may be missing. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  readonly invalid: () => readonly InvalidObject[];
  readonly hasSeen: (namespace: string, resourceVersion: string) => boolean;
  /** Returns the maximum age of the namespace's objects in milliseconds on the monotonic clock; infinite before the first list. */
  readonly ageMs: (namespace: string) => number;
  /** Lists again, because a direct read contradicts the cache. */
  readonly relist: (namespace: string) => void;
  /** Reports whether everything is known, or known not to be readable. */
  readonly isSettled: () => boolean;
  readonly degradation: () => Degradation | undefined;
  readonly stop: () => void;
}

/** States how long what outlives the contact to the server does so, in milliseconds. */
const longestSilenceMs = 90_000;

/** Starts to watch. */
export function watch<View>(options: WatchedOptions<View>): Watched<View> {
  const { env, resource, namespaces, labelSelector, fieldSelector, project, onChange, onState, relistMs } = options;
  const selectors = { labelSelector, fieldSelector };
  const site = `watch.${resource.plural}`;
  const start = (namespace?: string): Reflector<View> =>
    startReflector<View>({ env, resource, namespace, ...selectors, project, onChange, onState, site, relistMs });
  const isOne = namespaces === undefined || !resource.isNamespaced;
  const reflectors = new Map<string | undefined, Reflector<View>>(
    isOne ? [[undefined, start()]] : namespaces.map((namespace) => [namespace, start(namespace)]),
  );
  const reflectorOf = (namespace: string): Reflector<View> | undefined => reflectors.get(isOne ? undefined : namespace);
  const all = (): readonly Reflector<View>[] => [...reflectors.values()];

  const problemOf = (reflector: Reflector<View>): Unknown | undefined => {
    const state = stateOf(options, reflector);
    if (state.kind === 'starting') return { unknown: `${resource.plural} have not been read yet` };
    if (state.kind === 'synced' || (state.reason === 'missing' && options.mayBeMissing)) return undefined;
    if (state.reason === 'invalid' && state.hasSynced) return undefined;
    const isUsable = options.outlivesContact && state.hasSynced && (reflector.silentMs() ?? longestSilenceMs) < longestSilenceMs;
    return state.reason === 'unreachable' && isUsable ? undefined : { unknown: `${resource.plural} cannot be read: ${state.message}` };
  };
  return {
    get: (namespace, name) => reflectorOf(namespace)?.store.get(namespace, name),
    list: (namespace) =>
      namespace === undefined ? all().flatMap(({ store }) => store.list()) : (reflectorOf(namespace)?.store.list(namespace) ?? []),
    problem: (namespace) => {
      const asked = namespace === undefined || isOne ? all() : [reflectorOf(namespace)].filter((reflector) => reflector !== undefined);
      return asked.map(problemOf).find((problem) => problem !== undefined);
    },
    neverRead: (namespace) => {
      const reflector = reflectorOf(namespace);
      if (reflector === undefined) return { unknown: `namespace ${namespace} is not watched for ${resource.plural}` };
      const state = stateOf(options, reflector);
      if (state.kind === 'starting') return { unknown: `${resource.plural} have not been listed yet` };
      const isKnown = state.kind === 'synced' || state.hasSynced || (state.reason === 'missing' && options.mayBeMissing === true);
      return isKnown ? undefined : { unknown: state.message };
    },
    invalid: () => all().flatMap(({ store }) => store.invalid()),
    hasSeen: (namespace, resourceVersion) => reflectorOf(namespace)?.hasSeen(resourceVersion) ?? false,
    ageMs: (namespace) => reflectorOf(namespace)?.ageMs() ?? Number.POSITIVE_INFINITY,
    relist: (namespace) => reflectorOf(namespace)?.relist(),
    isSettled: () => all().every((reflector) => isSettled(reflector.state())),
    degradation: () => degradationOf(options, all()),
    stop: () => {
      for (const reflector of all()) reflector.stop();
    },
  };
}

function isSettled(state: ReflectorState): boolean {
  return (
    state.kind === 'synced' || (state.kind === 'failing' && (state.hasSynced || state.reason === 'forbidden' || state.reason === 'missing'))
  );
}

function stateOf<View>({ isNotServed }: WatchedOptions<View>, reflector: Reflector<View>): ReflectorState {
  const state = reflector.state();
  return state.kind === 'failing' && state.reason === 'forbidden' && isNotServed?.() ? { ...state, reason: 'missing' } : state;
}

function degradationOf<View>(options: WatchedOptions<View>, reflectors: readonly Reflector<View>[]): Degradation | undefined {
  const { resource, mayBeMissing, withoutIt } = options;
  for (const reflector of reflectors) {
    const state = stateOf(options, reflector);
    if (state.kind !== 'failing') continue;
    const { reason, message } = state;
    const id = `watch/${resource.plural}`;
    if (reason === 'missing' && mayBeMissing) return { id, reason, message: `${resource.plural} are not installed` };
    return { id, reason, message: `${resource.plural} cannot be watched (${message}): ${withoutIt}` };
  }
  return undefined;
}

/** A watch as its followers see it. */
export interface Shared<View> {
  readonly get: (namespace: string, name: string) => View | undefined;
  readonly list: (namespace?: string) => readonly View[];
  /** Returns why a namespace was never read; undefined from the first list on, and if the kind is not installed. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  /** Reports whether everything is known, or known not to be readable. */
  readonly isSettled: () => boolean;
  /** Calls back after each change, in their order. The answer ends that. */
  readonly onChange: (listener: (change: Change<View>) => void) => () => void;
}

export interface SharedWatch<View> {
  readonly watched: Watched<View>;
  readonly shared: Shared<View>;
}

/** Starts to watch; `onChange` of the options hears of each change before those who follow. */
export function watchShared<View>(options: WatchedOptions<View>): SharedWatch<View> {
  const listeners = new Set<(change: Change<View>) => void>();
  const watched = watch<View>({
    ...options,
    onChange: (change) => {
      options.onChange(change);
      for (const listener of listeners) listener(change);
    },
  });
  return {
    watched,
    shared: {
      get: watched.get,
      list: watched.list,
      neverRead: watched.neverRead,
      isSettled: watched.isSettled,
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
  };
}

interface ServedKinds {
  /** Asks the server, at most once a minute. */
  readonly learn: () => void;
  /** Reports whether the kind is known not to be served. */
  readonly isMissing: (resource: Resource) => boolean;
}

const timeoutMs = 30_000;
const askAgainAfterMs = 60_000;

/** `onLearned` is called when the answer is there. */
export function servedKinds(env: AgentEnv, onLearned: () => void): ServedKinds {
  let known: Discovery | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<void> => {
    try {
      known = await discover(env, { timeoutMs });
      onLearned();
    } catch (error) {
      env.log.warn('API discovery failed', { problem: messageOf(error) });
    }
  };
  return {
    learn: () => {
      if (env.clock.monotonicMs() - askedMs < askAgainAfterMs) return;
      askedMs = env.clock.monotonicMs();
      void ask();
    },
    isMissing: (resource) => known?.knows(resource) === true && !known.has(resource),
  };
}
