// Finds pods that a scale-up starts at a template that the rollout of their zone may not bring to them now.
import { ordinalRanges } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { GroupDecision, RuleResult, Step, Stop } from '../decision.ts';
import { modelledPodLimit } from '../observe/manifests.ts';
import type { ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import { includedPods } from '../run/included.ts';
import { newRevisions } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import type { PodView, StatefulSetView } from '../snapshot.ts';
import { mayPin, placedRevision } from '../strategies/pinned/placement.ts';
import { revisionFor } from '../world/controller.ts';

type ScaleUp = Required<Pick<Step, 'from' | 'to'>>;
type Standing = Pick<GroupDecision, 'stops'> & { readonly run?: RunState | undefined };

/**
 * Returns the pods of a scale-up that start at the update revision, and why the rollout may not bring it to them: the run failed, a stop is in
 * force, or no wave has reached them. Undefined without such a pod, and above the limit of modelled pods. The StatefulSet controller and the pins choose the revision.
 */
export function newPodsFact(context: GroupContext, view: ZoneView, { from, to }: ScaleUp, standing: Standing): string | undefined {
  const { set } = view;
  if (set === undefined || view.unknown !== undefined || to <= from || to > modelledPodLimit) return undefined;
  const { updateRevision } = set.status;
  const end = set.firstOrdinal + from;
  const ordinals = Array.from({ length: to - from }, (_, index) => end + index);
  const updated = ordinals.filter((ordinal) => startRevision(context, view, set, ordinal) === updateRevision);
  const present = view.pods.filter(({ ordinal }) => ordinal < end);
  const why = updated.length === 0 ? undefined : whyEarly(context, { ...view, replicas: to }, { present, count: updated.length }, standing);
  if (why === undefined) return undefined;
  const [first] = updated;
  const names = updated.length === 1 ? `${set.name}-${first}` : `pods ${ordinalRanges(updated)} of ${set.name}`;
  const images = [...new Set(Object.values(set.images ?? {}))].join(', ');
  const revision = `${updateRevision}${images === '' ? '' : ` (${images})`}`;
  return `the scale-up of zone ${view.zone.name} to ${to} starts ${names} at update revision ${revision}, ${why}`;
}

/** Returns a warning for each scale-up of the agent with such pods, also while a rule blocks the scale-up. */
export function newPodWarnings(context: GroupContext, steps: readonly Step[], standing: Standing): readonly RuleResult[] {
  return steps.flatMap(({ zone, from, to }) => {
    const view = zoneNamed(context, zone);
    const fact =
      view === undefined || from === undefined || to === undefined ? undefined : newPodsFact(context, view, { from, to }, standing);
    return fact === undefined ? [] : [result('updated-by-restart', 'wait', fact)];
  });
}

function startRevision({ group, view }: GroupContext, { zone }: ZoneView, set: StatefulSetView, ordinal: number): string {
  const revision = revisionFor(set, ordinal);
  if (!mayPin(group)) return revision;
  return placedRevision(view.ledger, zone.name, { ordinal, revision, updateRevision: set.status.updateRevision });
}

interface Pods {
  /** The pods of the zone before the scale-up. */
  readonly present: readonly PodView[];
  /** Number of new pods that start at the update revision. */
  readonly count: number;
}

function whyEarly({ group }: GroupContext, view: ZoneView, { present, count }: Pods, { run, stops }: Standing): string | undefined {
  const zone = view.zone.name;
  const requested = view.set?.status.updateRevision;
  const isUpdated = ({ revision }: PodView): boolean => revision === requested;
  const isOfRun = run !== undefined && run.outcome !== 'completed' && newRevisions(run)[zone] === requested;
  const mayBlock = ({ rule, isBlocking, zones }: Stop): boolean =>
    isBlocking && zones.includes(zone) && (rule === 'run-failed' ? isOfRun : rule !== 'protected' && !present.every(isUpdated));
  const stop = stops.find(mayBlock);
  if (stop !== undefined) return `although ${stop.fact}`;
  if (!isOfRun || run.kind !== 'rollout') return undefined;
  return present.filter(isUpdated).length + count > includedPods(group, run, view) ? 'before their wave' : undefined;
}
