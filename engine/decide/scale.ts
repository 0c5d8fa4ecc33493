// Decides which zone changes its replicas now, to which number and after which preparations, or why no zone does. Names new pods that start early.
import { extended } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { ordinalRanges } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { Action, GroupDecision, RuleResult, Step, Stop } from '../decision.ts';
import { modelledPodLimit } from '../observe/manifests.ts';
import type { ZoneView } from '../observe/view.ts';
import { blocks, leadingResult, result, stepOutcome } from '../rule.ts';
import { withException } from '../rules/exception.ts';
import { isOfCalendarOrPolicy } from '../rules/policy.ts';
import { delayedDownscale, keptPreparation, prepareDownscale, renewals, withdrawals } from '../rules/prepare.ts';
import { refusalOf } from '../rules/refused-write.ts';
import { checkReplicas, type ScaleQuestion } from '../rules/scale.ts';
import { includedPods } from '../run/included.ts';
import { cancelRequest, objectOf, requesterText } from '../run/requests.ts';
import { newRevisions } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import type { IntentView, PodView, ReplicaSourceView, StatefulSetView } from '../snapshot.ts';
import { mayPin, placedRevision, unpinnedReason } from '../strategies/pinned/placement.ts';
import { revisionFor } from '../world/controller.ts';
import { type DesiredReplicas, desiredReplicas } from './replicas.ts';

interface ScaleDecision {
  readonly steps: readonly Step[];
  readonly actions: readonly Action[];
  readonly warnings: readonly RuleResult[];
  /** True if this turn writes the replicas of a zone. */
  readonly isScaling: boolean;
}

/** Decides which zone changes its replicas now. Zones that follow another zone come first. */
export function decideScale(context: GroupContext, run: RunState | undefined): ScaleDecision {
  const zones = [...context.view.zones].sort((a, b) => Number(b.zone.follows !== undefined) - Number(a.zone.follows !== undefined));
  const steps: Step[] = [];
  const actions: Action[] = [];
  const inForce: InForce[] = [];
  const warnings: RuleResult[] = [];
  let isScaling = false;
  for (const zone of zones) {
    if (isScaling) break;
    const desired = desiredReplicas(context, zone);
    if (desired === undefined) {
      // The agent does not change these replicas, so it withdraws the preparations of pods.
      actions.push(...withdrawals({ context, zone }, zone.replicas));
      continue;
    }
    const outcome = decideZone(context, zone, desired, run);
    if (outcome.step !== undefined) steps.push(outcome.step);
    actions.push(...outcome.actions);
    if (outcome.replicas !== undefined) inForce.push({ zone, desired, replicas: outcome.replicas });
    warnings.push(...outcome.warnings);
    isScaling = outcome.isScaling;
  }
  return { steps, actions: [...actions, ...writeBacks(inForce)], warnings, isScaling };
}

interface InForce {
  readonly zone: ZoneView;
  readonly desired: DesiredReplicas;
  readonly replicas: number;
}

interface ZoneOutcome {
  readonly step?: Step;
  readonly actions: readonly Action[];
  /** The replicas after this turn; absent if the wanted number could not be read. */
  readonly replicas?: number;
  readonly warnings: readonly RuleResult[];
  readonly isScaling: boolean;
}

function decideZone(context: GroupContext, zone: ZoneView, desired: DesiredReplicas, run: RunState | undefined): ZoneOutcome {
  const question: ScaleQuestion = {
    context,
    zone,
    from: zone.replicas,
    to: desired.replicas,
    isForced: desired.isForced,
    run,
    asker: 'agent',
  };
  if (blocks(desired.answer)) {
    const results = [desired.answer];
    const step: Step = {
      id: `scale/${zone.zone.name}`,
      kind: 'scaleUp',
      zone: zone.zone.name,
      pods: [],
      outcome: stepOutcome(results),
      results,
    };
    return { step, actions: [], warnings: [], isScaling: false };
  }
  const cancelled = question.to < question.from ? cancelRequest(context, zone.zone.name, question.to) : undefined;
  if (question.to === question.from || cancelled !== undefined) {
    return {
      actions: withdrawals(question, question.from),
      replicas: question.from,
      warnings: cancellation(question, cancelled),
      isScaling: false,
    };
  }
  return question.to > question.from ? grow(question, desired) : shrink(question, desired);
}

function cancellation({ context, zone, from, to }: ScaleQuestion, cancelled: IntentView | undefined): readonly RuleResult[] {
  if (cancelled === undefined) return [];
  const { namespace, name } = context.group;
  const end = `kubectl rollout-group cancel ${namespace}/${name} ${cancelled.name}`;
  const fact = `zone ${zone.zone.name} stays at ${counted(from, 'replica')}: ${requesterText(cancelled)} cancelled the decrease to ${to}. To continue it, run: ${end}`;
  return [result('replica-source', 'ok', fact, { source: objectOf(cancelled) })];
}

function grow(question: ScaleQuestion, desired: DesiredReplicas): ZoneOutcome {
  const { results, policies } = checkReplicas(question, { source: desired.answer });
  return change(question, { to: question.to, results, calls: withdrawals(question, question.from), warnings: policies.warnings });
}

function shrink(question: ScaleQuestion, desired: DesiredReplicas): ZoneOutcome {
  const { results: checked, policies } = checkReplicas(question, { source: desired.answer });
  const { calls, ...prepared } = prepareToShrink(question, checked);
  return change(question, extended(prepared, { calls: [...withdrawals(question, question.to), ...calls], warnings: policies.warnings }));
}

interface CheckedChange extends Pick<ZoneOutcome, 'warnings'> {
  /** The replicas to write now. */
  readonly to: number;
  readonly results: readonly RuleResult[];
  readonly calls: readonly Action[];
}

/** Returns the step of a change, and its write unless a result blocks or the API server rejected the write. */
function change(question: ScaleQuestion, { to, results: checked, calls, warnings }: CheckedChange): ZoneOutcome {
  const { context, zone, from } = question;
  const write = scaleAction(question, to);
  const refusal = checked.some(blocks) ? undefined : refusalOf(context, write);
  const results = refusal === undefined ? checked : [...checked, refusal];
  const outcome = stepOutcome(results);
  const kind = to > from ? 'scaleUp' : 'scaleDown';
  const step: Step = { id: `scale/${zone.zone.name}`, kind, zone: zone.zone.name, pods: [], from, to, outcome, results };
  const kept = to < from ? keptPreparation(question, results) : undefined;
  if (outcome !== 'act')
    return { step, actions: calls, replicas: from, warnings: kept === undefined ? warnings : [...warnings, kept], isScaling: false };
  return { step, actions: [...calls, write], replicas: to, warnings, isScaling: true };
}

/**
 * Returns the calls that prepare pods before their delay or removal. While `checked` blocks, calls only successors of prepared pods. During a
 * pause it calls no pod, because a prepared pod serves less.
 */
function prepareToShrink(question: ScaleQuestion, checked: readonly RuleResult[]): Omit<CheckedChange, 'warnings'> {
  const { context, zone, to } = question;
  const permit = (answer: RuleResult): RuleResult => withException(context, answer, { zone: zone.zone.name, to });
  const blocking = checked.filter(blocks);
  if (blocking.some(({ rule }) => rule === 'paused')) return { to, results: checked, calls: [] };
  if (blocking.length > 0) return { to, results: checked, calls: renewals(question) };
  const delayed = delayedDownscale(question);
  const afterDelay = [...checked, permit(delayed.result)];
  if (afterDelay.some(blocks)) return { to, results: afterDelay, calls: delayed.actions };
  const permitted = blocks(delayed.result) ? to : delayed.permitted;
  const prepared = prepareDownscale(question, permitted);
  const results = [...afterDelay, permit(prepared.result)];
  if (results.some(blocks)) return { to, results, calls: [...delayed.actions, ...prepared.actions] };
  return { to: permitted, results, calls: delayed.actions };
}

function scaleAction({ context, zone, from }: ScaleQuestion, to: number): Action {
  return {
    kind: 'scaleStatefulSet',
    namespace: context.group.namespace,
    zone: zone.zone.name,
    statefulSet: zone.zone.statefulSet,
    uid: zone.set?.uid ?? '',
    resourceVersion: zone.set?.resourceVersion ?? '',
    from,
    to,
  };
}

/** Returns the writes that report replicas to mirrored objects. If several zones mirror one object, the last zone counts. */
function writeBacks(inForce: readonly InForce[]): readonly Action[] {
  const written = new Map<ReplicaSourceView, number>();
  for (const { zone, desired, replicas } of inForce) {
    const spec = zone.zone.replicas;
    if (desired.mirrored === undefined || spec.kind !== 'mirror' || spec.writeBack !== 'status') continue;
    written.set(desired.mirrored, replicas);
  }
  return [...written]
    .filter(([source, replicas]) => source.statusReplicas !== replicas)
    .map(([{ namespace, apiVersion, kind, name }, replicas]) => {
      return { kind: 'writeBackReplicas', namespace, apiVersion, resourceKind: kind, name, replicas };
    });
}

type Growth = Required<Pick<Step, 'from' | 'to'>>;
type Standing = Pick<GroupDecision, 'steps' | 'stops'> & { readonly run?: RunState | undefined };

/**
 * Returns the pods of a scale-up that start at a revision which the rollout may not bring to them, and why: no webhook pins them, the run
 * failed, a stop is in force, no wave has reached them, or their wave has not begun. Undefined without such a pod, and above the limit of
 * modelled pods.
 */
export function newPodsFact(context: GroupContext, view: ZoneView, { from, to }: Growth, standing: Standing): string | undefined {
  const { set } = view;
  if (set === undefined || view.unknown !== undefined || to <= from || to - from > modelledPodLimit) return undefined;
  const end = set.firstOrdinal + from;
  const created = Array.from({ length: to - from }, (_, index) => newPod(context, view, set, end + index));
  const unpinned = created.filter(({ revision, pinned }) => revision !== pinned);
  const updated = created.filter(({ revision }) => revision === set.status.updateRevision);
  const present = view.pods.filter(({ ordinal }) => ordinal < end);
  const early =
    updated.length === 0 ? undefined : whyEarly(context, { ...view, replicas: to }, { present, count: updated.length }, standing);
  const why = unpinned.length === 0 ? early : `because no webhook pins new pods: ${unpinnedReason(context.snapshot)}`;
  if (why === undefined) return undefined;
  const startsText = `the scale-up of zone ${view.zone.name} to ${to} starts ${newPodsText(set, unpinned.length === 0 ? updated : unpinned)}`;
  return `${startsText}, ${why}`;
}

interface NewPod {
  readonly ordinal: number;
  /** The revision at which the pod starts. */
  readonly revision: string;
  /** The revision at which the pod starts if the webhook on pod creation works. */
  readonly pinned: string;
}

function newPod({ snapshot, group, view }: GroupContext, { zone }: ZoneView, set: StatefulSetView, ordinal: number): NewPod {
  const created = revisionFor(set, ordinal);
  const pod = { ordinal, revision: created, updateRevision: set.status.updateRevision };
  const pinned = mayPin(group) ? placedRevision(view.ledger, zone.name, pod) : created;
  return { ordinal, pinned, revision: unpinnedReason(snapshot) === undefined ? pinned : created };
}

/** Returns the pods and their revision: `pods 3-4 of ingester-zone-a at update revision 5f8 (mimir:2.17.1) instead of 4c2`. */
function newPodsText({ name, images, status: { updateRevision } }: StatefulSetView, pods: readonly NewPod[]): string {
  const ordinals = pods.map(({ ordinal }) => ordinal);
  const names = ordinals.length === 1 ? `${name}-${ordinals[0]}` : `pods ${ordinalRanges(ordinals)} of ${name}`;
  const [starts, pinned] = [pods.map(({ revision }) => revision), pods.map((pod) => pod.pinned)].map((all) => [...new Set(all)].join(', '));
  const versions = starts === updateRevision ? [...new Set(Object.values(images ?? {}))].join(', ') : '';
  const kind = starts === updateRevision ? 'update revision' : 'revision';
  return `${names} at ${kind} ${starts}${versions === '' ? '' : ` (${versions})`}${starts === pinned ? '' : ` instead of ${pinned}`}`;
}

/** Returns a warning for each scale-up of the agent with such pods, also while a rule blocks the scale-up. */
export function newPodWarnings(context: GroupContext, standing: Standing): readonly RuleResult[] {
  return standing.steps.flatMap(({ zone, from, to }) => {
    const view = zoneNamed(context, zone);
    const fact =
      view === undefined || from === undefined || to === undefined ? undefined : newPodsFact(context, view, { from, to }, standing);
    return fact === undefined ? [] : [result('updated-by-restart', 'wait', fact)];
  });
}

interface Pods {
  /** The pods of the zone before the scale-up. */
  readonly present: readonly PodView[];
  /** Number of new pods that start at the update revision. */
  readonly count: number;
}

function whyEarly({ group }: GroupContext, view: ZoneView, { present, count }: Pods, { run, stops, steps }: Standing): string | undefined {
  const zone = view.zone.name;
  const requested = view.set?.status.updateRevision;
  const isUpdated = ({ revision }: PodView): boolean => revision === requested;
  // In a zone without pods, the new pods are the first at a new template.
  const isNewTemplate = present.length === 0 ? view.set?.status.currentRevision !== requested : !present.every(isUpdated);
  const isOfRun = run !== undefined && run.outcome !== 'completed' && newRevisions(run)[zone] === requested;
  const mayBlock = ({ rule, isBlocking, zones }: Stop): boolean =>
    isBlocking && zones.includes(zone) && (rule === 'run-failed' ? isOfRun : rule !== 'protected' && isNewTemplate);
  const stop = stops.find(mayBlock);
  if (stop !== undefined) return `although ${stop.fact}`;
  if (!isOfRun || run.kind !== 'rollout') return undefined;
  const updated = present.filter(isUpdated).length + count;
  if (updated > includedPods(group, run, view)) return 'before their wave';
  const blocking = isNewTemplate ? blockingWave(steps, zone) : undefined;
  if (blocking === undefined || updated <= includedPods(group, { ...run, wave: run.wave - 1 }, view)) return undefined;
  return `although ${blocking.rule} blocks their wave: ${blocking.fact}`;
}

/**
 * Returns the result that blocks the wave until an approval, a gate, a window or a policy rule permits it. Zones roll one at a time, so the
 * last zone with a step decides for the zones without a step. Pods in flight and budgets do not block a wave.
 */
function blockingWave(steps: readonly Step[], zone: string): RuleResult | undefined {
  const rolls = steps.filter(({ kind, pods }) => kind === 'roll' && pods.length > 0);
  const { results = [] } = rolls.find((step) => step.zone === zone) ?? rolls.at(-1) ?? {};
  return leadingResult(results.filter((one) => one.rule === 'approval' || one.rule === 'gate' || isOfCalendarOrPolicy(one)));
}
