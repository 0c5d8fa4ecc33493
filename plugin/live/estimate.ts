// When the rollouts that are shown are likely to end, from what was read of them; not asked anew with every redrawing.
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

/** undefined when nothing is under way, or while not everything has been read yet; unknown with the reason. */
export type Estimation = Known<Estimate> | undefined;

export type Estimator = (read: ReadGroups, live: LiveGroup, nowMs: number) => Estimation;

/** How long an estimate stands at least, and that looking ahead takes at most a twentieth of the time. */
const standsMs = 5000;
const share = 20;

/** Remembers the estimates of one display: instants stay true while time passes, and a new one is made with news and now and then. */
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

/** The estimate at this instant. */
export function estimationOf(
  { world, listing, replicaSources }: ReadGroups,
  { decision, isUnattended }: LiveGroup,
  nowMs: number,
): Estimation {
  if (!isUnderWay(decision)) return undefined;
  if (isUnattended === true) return { unknown: 'the agent is not running' };
  const group = world.policies.groups.find(({ namespace, name }) => namespace === decision.namespace && name === decision.group);
  if (group === undefined) return { unknown: 'the group is defined where only the agent reads' };
  if (evidenceNames.some((name) => listing[name] === undefined)) return undefined;
  const unread = unreadLists(listing);
  if (unread.length > 0) return { unknown: `${unread.join(', ')} may not be read` };
  const snapshot = clusterSnapshot(listing, { ...world, nowMs, replicaSources });
  return estimateEnd({ snapshot, group, pods: broughtBack(itemsOf(listing.pods), decision, group) });
}

/** The pods that this run has made. One that was unready again later counts as slow: when it first was ready is written nowhere. */
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
