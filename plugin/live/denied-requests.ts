// What the engine says now of a request that was refused: from its Event, or found again by the id of the decision.

import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { judge } from '../../engine/judge/judge.ts';
import { decodeRequest } from '../../engine/judge/request-document.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { readSnapshot } from './read.ts';

/** So many requests are tried for one id; more would take longer than somebody waits. */
const mostTried = 5_000;

/** The judgement of what the text asks for, by what is there now; undefined when the text is no request. Rejects when nothing can be read. */
export async function judgedNow(cluster: Cluster, text: string): Promise<Judgement | undefined> {
  const request = decodeRequest(text);
  return request === undefined ? undefined : judge(await snapshotOf(cluster, request.namespace), request);
}

/**
 * The request with that decision, if it is one of those that StatefulSets and pods of the namespace invite: fewer replicas, a deletion, an eviction. It
 * is found only while the object, the rule that refuses and the policies are what they were. Rejects when nothing can be read.
 */
export async function foundAgain(cluster: Cluster, namespace: string, id: string): Promise<Judgement | undefined> {
  const snapshot = await snapshotOf(cluster, namespace);
  let tried = 0;
  for (const request of invited(snapshot, namespace)) {
    tried += 1;
    if (tried > mostTried) return undefined;
    const judgement = judge(snapshot, request);
    if (judgement.decisionId === id && judgement.outcome !== 'allow') return judgement;
  }
  return undefined;
}

async function snapshotOf(cluster: Cluster, namespace: string): Promise<Snapshot> {
  return (await readSnapshot(cluster, { namespace, names: [] })).snapshot;
}

function* invited(snapshot: Snapshot, namespace: string): Generator<AdmissionRequest> {
  for (const set of snapshot.statefulSets.filter((one) => one.namespace === namespace)) yield* ofStatefulSet(set);
  for (const { pods, ...view } of snapshot.pods) {
    if (view.namespace !== namespace || isUnknown(pods)) continue;
    for (const { name: pod } of pods) {
      yield { kind: 'evictPod', namespace, pod, dryRun: false };
      yield { kind: 'deletePod', namespace, pod, dryRun: false };
    }
  }
}

function* ofStatefulSet({ namespace, name: statefulSet, replicas: from, ...set }: StatefulSetView): Generator<AdmissionRequest> {
  const target = { namespace, statefulSet, dryRun: false };
  yield { kind: 'deleteStatefulSet', ...target, ...(from === 0 ? {} : { pods: Math.max(from, set.status.replicas) }) };
  for (let to = from - 1; to >= 0; to -= 1) {
    yield { kind: 'scale', ...target, from, to, via: 'scale' };
    const kept = {
      isTemplateChanged: false,
      strategy: set.updateStrategy,
      partition: set.partition,
      firstOrdinal: set.firstOrdinal,
      relabels: [],
    };
    for (const via of ['patch', 'update'] as const) yield { kind: 'update', ...target, from, to, ...kept, via };
  }
}
