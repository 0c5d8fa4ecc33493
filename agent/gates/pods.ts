// Reads the gates that depend on the pods of a group: counts unavailable pods in the caches, or sends an HTTP request to each updated pod.
import { inParallel, podUrl } from '../../cluster/pods.ts';
import { type GatedPod, podsAvailable, updatedPods } from '../../engine/observe/readings.ts';
import { type GroupView, viewGroup } from '../../engine/observe/view.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { GateReading } from '../../engine/snapshot.ts';
import type { GateDefinition, GroupDefinition } from '../../policies/definition.ts';
import { durationMs, formatDuration } from '../../policies/duration.ts';
import { counted } from '../../policies/wording.ts';
import type { AgentEnv } from '../env.ts';
import { type KnownParts, knownSnapshot } from '../turn/snapshot.ts';
import type { Caches } from '../watched/caches.ts';
import type { GateClient, GateQueryTime } from './read-gate.ts';

export interface SeenPods {
  readonly view: GroupView;
  /** The time since the caches were last known to be current, in milliseconds. */
  readonly ageMs: number;
}

export interface GatedPodsOptions {
  readonly env: Pick<AgentEnv, 'clock' | 'pods'>;
  readonly clusterDomain: string;
  /** Returns the pods of the group; undefined while the policies are unknown. */
  readonly seen: () => SeenPods | undefined;
  readonly run: () => RunState | undefined;
}

/** A cache without events for longer than this may be stale, because a working watch receives a bookmark every minute. */
const longestSilenceMs = 120_000;
/** The longest time for one reading. It is enough for a thousand pods, 32 at a time, if a few of them time out. */
const longestProbesMs = 60_000;
/** The size limit of a response body. A pod with a longer response counts as unhealthy. */
const maxBodyBytes = 65_536;

/** Counts the unavailable pods of the wave from the caches, without I/O. */
export function availabilityClient(
  { minReadySeconds }: NonNullable<GateDefinition['provider']['podsAvailable']>,
  options: GatedPodsOptions,
): GateClient {
  return {
    longestMs: 1_000,
    query: async ({ atMs }) => {
      const [view, run] = known(options);
      return podsAvailable(view, run, { atMs, minReadySeconds });
    },
  };
}

/**
 * Counts the updated pods that do not answer a GET with 2xx within the timeout of the endpoint, or within half of the time for the
 * reading if that is shorter. Redirects are not followed. Without updated pods the result is `noData`. Rejects if the time is too short
 * to call every pod.
 */
export function probeClient(endpoint: NonNullable<GateDefinition['provider']['http']>, options: GatedPodsOptions): GateClient {
  return {
    longestMs: longestProbesMs,
    query: async (time) => {
      const [view, run] = known(options);
      const pods = updatedPods(view, run);
      if (typeof pods === 'string') throw new Error(pods);
      return pods.length === 0
        ? { atMs: time.atMs, result: 'noData' }
        : await probe(pods, time, { ...options, endpoint, namespace: view.group.namespace });
    },
  };
}

function known({ seen, run }: GatedPodsOptions): readonly [GroupView, RunState] {
  const [found, current] = [seen(), run()];
  if (found === undefined || current === undefined) throw new Error('the pods are unknown');
  if (found.ageMs > longestSilenceMs) throw new Error(`the last update of the pods is older than ${formatDuration(longestSilenceMs)}`);
  return [found.view, current];
}

interface ProbeOptions extends GatedPodsOptions {
  readonly endpoint: NonNullable<GateDefinition['provider']['http']>;
  readonly namespace: string;
}

async function probe(
  pods: readonly GatedPod[],
  { atMs, timeoutMs }: GateQueryTime,
  { env, clusterDomain, endpoint, namespace }: ProbeOptions,
): Promise<GateReading> {
  const endMs = env.clock.monotonicMs() + timeoutMs;
  const ownMs = Math.min(durationMs(endpoint.timeout), Math.floor(timeoutMs / 2));
  let uncalledCount = 0;
  const answers = await inParallel(pods, async ({ pod, serviceName }) => {
    // A pod is called only if its full timeout remains, because a shorter timeout could cut off its answer.
    if (endMs - env.clock.monotonicMs() < ownMs) {
      uncalledCount += 1;
      return undefined;
    }
    try {
      const url = podUrl({ namespace, pod: pod.name, serviceName, clusterDomain }, endpoint);
      const { status } = await env.pods.call({ method: 'GET', url, timeoutMs: ownMs, maxBodyBytes, site: 'gate.probe' });
      return status >= 200 && status <= 299;
    } catch {
      return false;
    }
  });
  if (uncalledCount > 0)
    throw new Error(`${counted(uncalledCount, 'pod')} of ${pods.length} could not be called within ${formatDuration(timeoutMs)}`);
  return { atMs, result: 'value', value: answers.filter((isHealthy) => !isHealthy).length };
}

interface SeenPodsParts extends KnownParts {
  readonly caches: Pick<Caches, 'observe' | 'ageMs'>;
}

/** Returns the current pods of the group, without claims; undefined while the policies are unknown. */
export function seenPods(group: GroupDefinition, parts: SeenPodsParts): SeenPods | undefined {
  if (parts.policies() === undefined) return undefined;
  const snapshot = knownSnapshot(parts, group.namespace, { fresh: undefined, unread: [] });
  return { view: viewGroup(snapshot, group), ageMs: parts.caches.ageMs(group.namespace) };
}
