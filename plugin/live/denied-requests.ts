// Judges a denied request again, from the text in its Event or by the id of the decision.

import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { judge } from '../../engine/judge/judge.ts';
import { decodeRequest } from '../../engine/judge/request-text.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { readSnapshot } from './groups.ts';

/** The maximum number of requests that are judged to find one id. More requests would take too long. */
const maxJudged = 5_000;

/** Judges the encoded request against the current state. Undefined if the text is not a request. Rejects if the cluster is unreadable. */
export async function judgeAgain(cluster: Cluster, text: string): Promise<Judgement | undefined> {
  const request = decodeRequest(text);
  return request === undefined ? undefined : judge(await snapshotOf(cluster, request.namespace), request);
}

/** Finds the downscale, deletion or eviction that would now be denied with this decision id. Returns undefined if no request matches. */
export async function findDenied(cluster: Cluster, namespace: string, id: string): Promise<Judgement | undefined> {
  const snapshot = await snapshotOf(cluster, namespace);
  let tried = 0;
  for (const request of possibleRequests(snapshot, namespace)) {
    tried += 1;
    if (tried > maxJudged) return undefined;
    const judgement = judge(snapshot, request);
    if (judgement.decisionId === id && judgement.outcome !== 'allow') return judgement;
  }
  return undefined;
}

async function snapshotOf(cluster: Cluster, namespace: string): Promise<Snapshot> {
  return (await readSnapshot(cluster, { namespace, names: [] })).snapshot;
}

function* possibleRequests(snapshot: Snapshot, namespace: string): Generator<AdmissionRequest> {
  for (const set of snapshot.statefulSets.filter((one) => one.namespace === namespace)) yield* requestsOn(set);
  for (const { pods, ...view } of snapshot.pods) {
    if (view.namespace !== namespace || isUnknown(pods)) continue;
    for (const { name: pod } of pods) {
      yield { kind: 'evictPod', namespace, pod, dryRun: false };
      yield { kind: 'deletePod', namespace, pod, dryRun: false };
    }
  }
}

function* requestsOn({ namespace, name: statefulSet, replicas: from, ...set }: StatefulSetView): Generator<AdmissionRequest> {
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
