// Stores the time of the last downscale as an annotation of the StatefulSet.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { isUnknown, type StatefulSetView } from '../../engine/snapshot.ts';
import { annotationKeys, labelKeys } from '../../policies/adopt/keys.ts';
import type { WebhookEnv } from '../env.ts';
import type { Downscale, DownscaleTimes, Recorded } from './downscale-times.ts';
import { secondsText } from './go-text.ts';
import { problemText } from './parent.ts';
import { gapProblem, groupMembers, hasMinTime } from './prepare/members.ts';

/** Attempts for a write that conflicts with other writes to the StatefulSet, such as its status. */
const attempts = 5;
/** Time for which a repeated request is recognised: longer than API servers and most clients retry. */
const repeatMs = 60_000;
const mostRemembered = 1_000;

interface Remembered {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly atMs: number;
}

/**
 * Writes the annotation grafana.com/last-downscale while the request is being admitted. The write changes the resourceVersion, so the API
 * server repeats a PATCH and refuses a PUT with a version. A repeated request for the same step does not write again, so the second attempt
 * succeeds. If two processes admit zones of one group at the same time, each checks the group after its write; the process that finds the
 * other's write restores its own annotation.
 */
export function lastDownscale(env: WebhookEnv): DownscaleTimes {
  const remembered = new Map<string, Remembered>();
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
        const text = isRepeated ? known.text : secondsText(env.clock.nowMs());
        const written = isRepeated ? set : await annotate(env, downscale, text);
        const recorded = await looksBack(env, downscale, written, isRepeated);
        if (recorded.kind === 'recorded' && !isRepeated) remember(remembered, set.uid, { from, to, text, atMs: nowMs });
        return recorded;
      },
    }),
  };
}

function timeOf({ annotations }: StatefulSetView): string | undefined {
  return annotations[annotationKeys.lastDownscale];
}

function remember(remembered: Map<string, Remembered>, uid: string, entry: Remembered): void {
  remembered.delete(uid);
  remembered.set(uid, entry);
  for (const oldest of remembered.keys()) {
    if (remembered.size <= mostRemembered) return;
    remembered.delete(oldest);
  }
}

/** Writes the annotation, or removes it with null. Returns the StatefulSet after the write. */
async function annotate(env: WebhookEnv, { set, from, timeoutMs }: Downscale, text: string | null): Promise<StatefulSetView> {
  const { namespace, name, uid } = set;
  const patch = { metadata: { annotations: { [annotationKeys.lastDownscale]: text } } };
  let { resourceVersion } = set;
  for (let attempt = 1; ; attempt++) {
    try {
      const options = { patch, site: 'prepareDownscale.annotate', timeoutMs: timeoutMs() };
      const answer = await patchObject(env, resources.statefulSets, { namespace, name, uid, resourceVersion }, options);
      return viewOf(answer);
    } catch (error) {
      if (!isStatus(error, 409) || attempt === attempts) throw error;
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
  return viewOf(found);
}

function viewOf(raw: unknown): StatefulSetView {
  const view = observeStatefulSet(raw);
  if (isUnknown(view)) throw new Error(view.unknown);
  return view;
}

/** Checks the group after the write: of two writers at least one sees the write of the other. */
async function looksBack(env: WebhookEnv, downscale: Downscale, written: StatefulSetView, isRepeated: boolean): Promise<Recorded> {
  const { set, others, timeoutMs } = downscale;
  if (!hasMinTime(others)) return { kind: 'recorded' };
  const problem = await problemNow(env, set, timeoutMs);
  if (problem === undefined) return { kind: 'recorded' };
  // An earlier attempt may have been carried out, so its time stays.
  if (!isRepeated) await restore(env, downscale, written);
  return { kind: 'overtaken', problem };
}

async function problemNow(env: WebhookEnv, set: StatefulSetView, timeoutMs: () => number): Promise<string | undefined> {
  try {
    const members = await groupMembers(env, set.labels[labelKeys.group] ?? '', { namespace: set.namespace, timeoutMs });
    return gapProblem(
      members.filter(({ name }) => name !== set.name),
      timeOf,
      env.clock.nowMs(),
    );
  } catch (error) {
    return `it is unknown whether another zone shrank meanwhile: ${problemText(error)}`;
  }
}

/** Restores the previous time. If that fails, zones of the group wait for a downscale that did not happen, and the log says so. */
async function restore(env: WebhookEnv, downscale: Downscale, written: StatefulSetView): Promise<void> {
  try {
    await annotate(env, { ...downscale, set: written }, timeOf(downscale.set) ?? null);
  } catch (error) {
    const { namespace, name } = written;
    env.log.error('the recorded time of a denied downscale could not be removed', { namespace, name, problem: problemText(error) });
  }
}
