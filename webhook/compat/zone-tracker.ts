// Stores the times of downscales in a ConfigMap with one entry per StatefulSet of the namespace.
import { isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject, parseJson } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, replaceObject } from '../../cluster/request/write.ts';
import { reader } from '../../engine/observe/raw.ts';
import type { StatefulSetView } from '../../engine/snapshot.ts';
import type { WebhookEnv } from '../env.ts';
import type { Downscale, DownscaleTimes, Recorded } from './downscale-times.ts';
import { secondsText } from './go-text.ts';
import { gapProblem, type LastOf } from './prepare/members.ts';

/** Attempts for a write that conflicts with other writes to the ConfigMap. All groups of a namespace share it. */
const attempts = 10;

interface Tracked {
  readonly object: KubernetesObject;
  readonly data: Readonly<Record<string, string>>;
  readonly lastOf: LastOf;
}

/**
 * `data.<StatefulSet>` is `{"lastDownscaled": "<RFC 3339 UTC>"}`. A missing ConfigMap is created as if every member had shrunk now. A write
 * names the version that was read. After a conflict the entries are read and checked again, so if two zones shrink at once only one is
 * recorded.
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
  const found = await getIt(env, place);
  if (found !== undefined) return trackedIn(found);
  const { namespace, name, members, timeoutMs } = place;
  const now = entryText(env);
  const data = Object.fromEntries(members.map((member) => [member.name, now]));
  try {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
    return trackedIn(
      await createObject(env, resources.configMaps, object, { site: 'prepareDownscale.createTracker', timeoutMs: timeoutMs() }),
    );
  } catch (error) {
    const created = isStatus(error, 409) ? await getIt(env, place) : undefined;
    if (created === undefined) throw error;
    return trackedIn(created);
  }
}

function getIt(env: WebhookEnv, { namespace, name, timeoutMs }: Place): Promise<KubernetesObject | undefined> {
  const options = { site: 'prepareDownscale.readTracker', timeoutMs: timeoutMs() };
  return getObject(env, resources.configMaps, { namespace, name }, options);
}

/** Throws if an entry of any zone is not a JSON object. */
function trackedIn(object: KubernetesObject): Tracked {
  const fields = reader(object);
  const data = fields.texts('data');
  const problem = fields.problem();
  if (problem !== undefined) throw new Error(`ConfigMap ${object.metadata.name}: ${problem}`);
  const times = new Map(Object.entries(data).map(([zone, text]) => [zone, timeIn(zone, text)]));
  return { object, data, lastOf: ({ name }) => times.get(name) };
}

/** Compares keys case-insensitively as Go does; the last one counts. An entry without a time has an empty one. */
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
  return JSON.stringify({ lastDownscaled: secondsText(clock.nowMs()) });
}

async function record(env: WebhookEnv, first: Tracked, { set, others, timeoutMs }: Downscale): Promise<Recorded> {
  let tracked = first;
  for (let attempt = 1; ; attempt++) {
    try {
      const object = { ...tracked.object, data: { ...tracked.data, [set.name]: entryText(env) } };
      await replaceObject(env, resources.configMaps, object, { site: 'prepareDownscale.writeTracker', timeoutMs: timeoutMs() });
      return { kind: 'recorded' };
    } catch (error) {
      if (!isStatus(error, 409) || attempt === attempts) throw error;
    }
    const { namespace, name } = tracked.object.metadata;
    tracked = await read(env, { namespace: namespace ?? set.namespace, name, members: [set, ...others], timeoutMs });
    const problem = gapProblem(others, tracked.lastOf, env.clock.nowMs());
    if (problem !== undefined) return { kind: 'overtaken', problem };
  }
}
