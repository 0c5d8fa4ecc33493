// Stores the times of downscales for the prepare-downscale endpoint: in annotations, or in the ConfigMap of the zone tracker.
import { isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject, parseJson } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, patchObject, replaceObject } from '../../cluster/request/write.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { reader } from '../../engine/observe/raw.ts';
import { orThrow, type StatefulSetView } from '../../engine/snapshot.ts';
import { annotationKeys, labelKeys } from '../../policies/adopt/keys.ts';
import { secondText } from '../../policies/instant.ts';
import { putNewest } from '../../policies/values/map.ts';
import type { WebhookEnv } from '../env.ts';
import { gapProblem, groupMembers, hasMinTime, type LastOf } from './prepare/members.ts';
import { problemText } from './replicas.ts';

interface Downscale {
  readonly set: StatefulSetView;
  readonly from: number;
  readonly to: number;
  readonly others: readonly StatefulSetView[];
  /** Returns the timeout of the next request in milliseconds; throws if no time is left. */
  readonly timeoutMs: () => number;
}

export interface LoadedTimes {
  readonly lastOf: LastOf;
  /**
   * Records that the StatefulSet shrinks now. Returns a problem if another zone shrank after the times were read; then the old time stays.
   * Rejects if the write failed or its outcome is unknown.
   */
  readonly record: (downscale: Downscale) => Promise<string | undefined>;
}

export interface DownscaleTimes {
  /** Prefixes of the messages about a failed `load` or `record`. */
  readonly problems: { readonly load: string; readonly record: string };
  /** True if a held lock blocks every other downscale of its group. False if it does so only with a minimum time between zones. */
  readonly alwaysLocks: boolean;
  /** Loads the times of the members: all StatefulSets of a group, or one StatefulSet without a group. Rejects if a time cannot be read. */
  readonly load: (namespace: string, members: readonly StatefulSetView[], timeoutMs: () => number) => Promise<LoadedTimes>;
}

/** Attempts for a write that conflicts with other writes to the StatefulSet, such as status updates. */
const annotationAttempts = 5;
/**
 * Time for which a repeated request is recognized: longer than the pause of an agent after a conflict (at most 60 s) and its turn. Otherwise
 * each attempt of an agent would write the annotation again, and the API server would reject each for that write.
 */
const repeatMs = 120_000;
const maxRemembered = 1_000;

/**
 * Keeps the times in the annotation grafana.com/last-downscale. A write of the annotation during admission makes the API server repeat a
 * PATCH, and reject a PUT with a resource version. A repeated request does not write again. With a minimum time between zones, each process
 * checks the group after its write: if two zones shrink at once, at least one downscale is denied and its annotation restored.
 */
export function lastDownscale(env: WebhookEnv): DownscaleTimes {
  const remembered = new Map<string, { readonly from: number; readonly to: number; readonly text: string; readonly atMs: number }>();
  return {
    problems: { load: 'loading the times of downscales failed', record: `adding an annotation failed (${annotationKeys.lastDownscale})` },
    alwaysLocks: false,
    load: async () => ({
      lastOf: timeOf,
      record: async (downscale) => {
        const { set, from, to } = downscale;
        const nowMs = env.clock.monotonicMs();
        const known = remembered.get(set.uid);
        const isRepeated =
          known !== undefined && known.from === from && known.to === to && known.text === timeOf(set) && nowMs - known.atMs < repeatMs;
        const text = isRepeated ? known.text : secondText(env.clock.nowMs());
        const written = isRepeated ? set : await annotate(env, downscale, text);
        const problem = await checkAgain(env, downscale, written, isRepeated);
        if (problem === undefined && !isRepeated) putNewest(remembered, set.uid, { from, to, text, atMs: nowMs }, maxRemembered);
        return problem;
      },
    }),
  };
}

function timeOf({ annotations }: StatefulSetView): string | undefined {
  return annotations[annotationKeys.lastDownscale];
}

/** Writes the annotation, or removes it if `text` is null. Returns the StatefulSet after the write. */
async function annotate(env: WebhookEnv, { set, from, timeoutMs }: Downscale, text: string | null): Promise<StatefulSetView> {
  const { namespace, name, uid } = set;
  const patch = { metadata: { annotations: { [annotationKeys.lastDownscale]: text } } };
  let { resourceVersion } = set;
  for (let attempt = 1; ; attempt++) {
    try {
      const options = { patch, site: 'prepareDownscale.annotate', timeoutMs: timeoutMs() };
      const answer = await patchObject(env, resources.statefulSets, { namespace, name, uid, resourceVersion }, options);
      return orThrow(observeStatefulSet(answer));
    } catch (error) {
      if (!isStatus(error, 409) || attempt === annotationAttempts) throw error;
      const now = await readAgain(env, set, timeoutMs());
      if (now.replicas !== from) throw new Error(`${name} has ${now.replicas} replicas now`, { cause: error });
      resourceVersion = now.resourceVersion;
    }
  }
}

async function readAgain(env: WebhookEnv, { namespace, name, uid }: StatefulSetView, timeoutMs: number): Promise<StatefulSetView> {
  const options = { site: 'prepareDownscale.readAgain', timeoutMs };
  const found = await getObject(env, resources.statefulSets, { namespace, name }, options);
  if (found?.metadata.uid !== uid) throw new Error(`${name} was recreated`);
  return orThrow(observeStatefulSet(found));
}

/** Checks the other zones after the write: if two processes write at once, at least one reads the write of the other. */
async function checkAgain(
  env: WebhookEnv,
  downscale: Downscale,
  written: StatefulSetView,
  isRepeated: boolean,
): Promise<string | undefined> {
  const { set, others, timeoutMs } = downscale;
  const problem = hasMinTime(others) ? await problemNow(env, set, timeoutMs) : undefined;
  // The API server may have applied the earlier request, so its time stays.
  if (problem !== undefined && !isRepeated) await restore(env, downscale, written);
  return problem;
}

async function problemNow(env: WebhookEnv, set: StatefulSetView, timeoutMs: () => number): Promise<string | undefined> {
  try {
    const members = await groupMembers(env, set.labels[labelKeys.group] ?? '', { namespace: set.namespace, timeoutMs });
    const others = members.filter(({ name }) => name !== set.name);
    return gapProblem(others, timeOf, env.clock.nowMs());
  } catch (error) {
    return `it is unknown whether another zone shrank meanwhile: ${problemText(error)}`;
  }
}

/** Restores the previous time. If the write fails, other zones wait after a downscale that did not happen; the log reports this. */
async function restore(env: WebhookEnv, downscale: Downscale, written: StatefulSetView): Promise<void> {
  try {
    await annotate(env, { ...downscale, set: written }, timeOf(downscale.set) ?? null);
  } catch (error) {
    const { namespace, name } = written;
    env.log.error('the recorded time of a denied downscale could not be removed', { namespace, name, problem: problemText(error) });
  }
}

/** Attempts for a write to the ConfigMap. All groups of a namespace share it, so writes conflict. */
const trackerAttempts = 10;

interface Tracked {
  readonly object: KubernetesObject;
  readonly data: Readonly<Record<string, string>>;
  readonly lastOf: LastOf;
}

/**
 * Keeps the times in a ConfigMap, with `{"lastDownscaled": "<RFC 3339 UTC>"}` under `data.<StatefulSet>`. Creates a missing ConfigMap as if
 * every member had shrunk now. Checks the minimum time between zones again after a write conflict, because another zone may have shrunk.
 */
export function zoneTracker(env: WebhookEnv, configMapName: string): DownscaleTimes {
  return {
    problems: { load: 'loading zones failed', record: `storing the time of the downscale in ConfigMap ${configMapName} failed` },
    alwaysLocks: true,
    load: async (namespace, members, timeoutMs) => {
      const tracked = await read(env, { namespace, name: configMapName, members, timeoutMs });
      return { lastOf: tracked.lastOf, record: (downscale) => record(env, tracked, downscale) };
    },
  };
}

interface Place {
  readonly namespace: string;
  readonly name: string;
  readonly members: readonly StatefulSetView[];
  readonly timeoutMs: () => number;
}

async function read(env: WebhookEnv, place: Place): Promise<Tracked> {
  const found = await readConfigMap(env, place);
  if (found !== undefined) return trackedIn(found);
  const { namespace, name, members, timeoutMs } = place;
  const now = entryText(env);
  const data = Object.fromEntries(members.map((member) => [member.name, now]));
  try {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
    const options = { site: 'prepareDownscale.createTracker', timeoutMs: timeoutMs() };
    return trackedIn(await createObject(env, resources.configMaps, object, options));
  } catch (error) {
    const created = isStatus(error, 409) ? await readConfigMap(env, place) : undefined;
    if (created === undefined) throw error;
    return trackedIn(created);
  }
}

function readConfigMap(env: WebhookEnv, { namespace, name, timeoutMs }: Place): Promise<KubernetesObject | undefined> {
  const options = { site: 'prepareDownscale.readTracker', timeoutMs: timeoutMs() };
  return getObject(env, resources.configMaps, { namespace, name }, options);
}

/** Parses the entries of all zones. Throws Error if an entry is not a JSON object. */
function trackedIn(object: KubernetesObject): Tracked {
  const fields = reader(object);
  const data = fields.texts('data');
  const problem = fields.problem();
  if (problem !== undefined) throw new Error(`ConfigMap ${object.metadata.name}: ${problem}`);
  const times = new Map(Object.entries(data).map(([zone, text]) => [zone, timeIn(zone, text)]));
  return { object, data, lastOf: ({ name }) => times.get(name) };
}

/** Returns the time of an entry; empty if absent. Like Go, ignores the case of keys and takes the last of duplicate keys. */
function timeIn(zone: string, text: string): string {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new Error(`the entry of ${zone} is not JSON`, { cause });
  }
  if (value !== null && (typeof value !== 'object' || Array.isArray(value))) throw new Error(`the entry of ${zone} is not a JSON object`);
  const time = Object.entries(asJsonObject(value)).findLast(([key]) => key.toLowerCase() === 'lastdownscaled')?.[1] ?? '';
  if (typeof time !== 'string') throw new Error(`the time in the entry of ${zone} is not a string`);
  return time;
}

function entryText({ clock }: WebhookEnv): string {
  return JSON.stringify({ lastDownscaled: secondText(clock.nowMs()) });
}

async function record(env: WebhookEnv, first: Tracked, { set, others, timeoutMs }: Downscale): Promise<string | undefined> {
  let tracked = first;
  for (let attempt = 1; ; attempt++) {
    try {
      const object = { ...tracked.object, data: { ...tracked.data, [set.name]: entryText(env) } };
      await replaceObject(env, resources.configMaps, object, { site: 'prepareDownscale.writeTracker', timeoutMs: timeoutMs() });
      return undefined;
    } catch (error) {
      if (!isStatus(error, 409) || attempt === trackerAttempts) throw error;
    }
    const { namespace, name } = tracked.object.metadata;
    tracked = await read(env, { namespace: namespace ?? set.namespace, name, members: [set, ...others], timeoutMs });
    const problem = gapProblem(others, tracked.lastOf, env.clock.nowMs());
    if (problem !== undefined) return problem;
  }
}
