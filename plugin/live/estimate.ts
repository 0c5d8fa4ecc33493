// Estimates when the shown rollouts end. Estimates are cached between redraws.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { type BroughtBack, type Estimate, estimateEnd } from '../../engine/plan/estimate.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { Known } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { evidenceNames, itemsOf, unreadLists } from '../cluster-snapshot/listing.ts';
import { clusterSnapshot } from '../cluster-snapshot/snapshot.ts';
import type { LiveGroup } from './groups.ts';
import { isUnderWay, type ReadGroups } from './read.ts';

/** Undefined without a running rollout or before everything was read; unknown with the reason. */
export type Estimation = Known<Estimate> | undefined;

export type Estimator = (read: ReadGroups, live: LiveGroup, nowMs: number) => Estimation;

/** The shortest life of an estimate, and the limit of its cost: at most 1/20 of the time. */
const standsMs = 5000;
const share = 20;

/** Caches the estimates of one display. An estimate is made again after a change, and from time to time. */
export function createEstimator(clock: () => number): Estimator {
  const latest = new Map<string, { readonly estimation: Estimation; readonly about: string; readonly untilMs: number }>();
  return (read, live, nowMs) => {
    const { decision, isUnattended } = live;
    const key = `${decision.namespace}/${decision.group}`;
    const about = `${decision.phase} ${decision.run?.id} ${decision.wave?.index} ${decision.outcome} ${isUnattended}`;
    const known = latest.get(key);
    if (known?.estimation !== undefined && known.about === about && nowMs < known.untilMs) return known.estimation;
    const beganMs = clock();
    const estimation = estimationOf(read, live, nowMs);
    latest.set(key, { estimation, about, untilMs: nowMs + Math.max(standsMs, share * (clock() - beganMs)) });
    return estimation;
  };
}

/** Estimates the end of the group's rollout. */
export function estimationOf(
  { world, listing, replicaSources }: ReadGroups,
  { decision, isUnattended }: LiveGroup,
  nowMs: number,
): Estimation {
  if (!isUnderWay(decision)) return undefined;
  if (isUnattended === true) return { unknown: 'the agent is not running' };
  const group = world.policies.groups.find(({ namespace, name }) => namespace === decision.namespace && name === decision.group);
  if (group === undefined) return { unknown: 'the group is defined in files of the agent' };
  if (evidenceNames.some((name) => listing[name] === undefined)) return undefined;
  const unread = unreadLists(listing);
  if (unread.length > 0) return { unknown: `${unread.join(', ')} may not be read` };
  const snapshot = clusterSnapshot(listing, { ...world, nowMs, replicaSources });
  return estimateEnd({ snapshot, group, pods: broughtBack(itemsOf(listing.pods), decision, group) });
}

/** Returns the pods of this run with their start times. A pod that became unready again counts as slow: its first ready time is not recorded. */
function broughtBack(
  pods: readonly KubernetesObject[],
  { run }: PublishedDecision,
  { namespace, zones }: GroupDefinition,
): readonly BroughtBack[] {
  if (run === undefined) return [];
  const wanted = new Map(zones.map(({ name, statefulSet }) => [statefulSet, { zone: name, revision: run.target[name] }]));
  return pods.flatMap((pod) => {
    const owner = pod.metadata.ownerReferences?.find((one) => one['kind'] === 'StatefulSet' && one['controller'] === true);
    const { zone, revision } = wanted.get(String(owner?.['name'])) ?? {};
    const createdMs = Date.parse(pod.metadata.creationTimestamp ?? '');
    if (pod.metadata.namespace !== namespace || zone === undefined || !(createdMs >= run.startedMs)) return [];
    if (pod.metadata.labels?.['controller-revision-hash'] !== revision) return [];
    const readyMs = readySinceMs(pod);
    return [{ zone, createdMs, ...(readyMs !== undefined && readyMs >= createdMs ? { readyMs } : {}) }];
  });
}

function readySinceMs(pod: KubernetesObject): number | undefined {
  const conditions = valueAt(pod, ['status', 'conditions']);
  if (!Array.isArray(conditions)) return undefined;
  const ready: unknown = conditions.find((one: unknown) => valueAt(one, ['type']) === 'Ready' && valueAt(one, ['status']) === 'True');
  const since = Date.parse(String(valueAt(ready, ['lastTransitionTime'])));
  return Number.isNaN(since) ? undefined : since;
}
