// Turns the decisions of a simulation into the steps of a plan: a zone rolls, a wave soaks, a person approves. Finds the checks after its end.
import type { GroupDefinition } from '../../policies/definition.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { contextOf, type GroupContext, zoneNamed } from '../context.ts';
import { newPodsFact } from '../decide/scale.ts';
import { type GroupDecision, type RuleResult, replacedBy } from '../decision.ts';
import type { GroupView, ZoneView } from '../observe/view.ts';
import { blocks } from '../rule.ts';
import { lacksApproval } from '../rules/approval.ts';
import { afterWave, beforeWave, underWay } from '../rules/wave.ts';
import { isRollingBack } from '../run/origin.ts';
import type { RunState, UnfinishedRun } from '../run/run-state.ts';
import { enterWave, hasReplacedSince, retryRun, startRun } from '../run/states.ts';
import { isUnknown, podsNamed, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { returnsAfterWait } from './controller.ts';
import { type GroupPlan, type PlannedStep, scalingWave, type TimelineSpan } from './document.ts';
import type { ForwardRun, Turn } from './forward.ts';

/** One step with its wave and times. The same step has the same `key` in simulations with other durations. */
export interface TracedStep extends Omit<PlannedStep, 'gates' | 'source' | 'startSeconds' | 'p50Seconds' | 'p90Seconds'> {
  readonly key: string;
  readonly wave: string;
  readonly gates: readonly string[];
  readonly startMs: number;
  readonly endMs: number;
}

/** Rules that wait for the work of a step, such as pods in flight. Their waits belong to that step and are no step of the plan. */
const workRules: ReadonlySet<string> = new Set([
  'zone-budget',
  'other-zones-ready',
  'wave-available',
  'zones-returned',
  'pods-in-flight',
  'eviction-budget',
  'disruption-budget',
  'min-interval',
  'leader-ready',
  'leader-floor',
  'replica-write-in-flight',
  'rollout-in-progress',
  'partition-kept',
]);

/** Returns a step for each zone with changed replicas. The replicas are written before the first decision, so all steps start at once. */
export function requestedScales(group: GroupDefinition, before: Snapshot, requested: Snapshot): readonly TracedStep[] {
  return group.zones.flatMap((zone): TracedStep[] => {
    const from = presentReplicas(before, group.namespace, zone.statefulSet);
    const to = setNamed(requested, group.namespace, zone.statefulSet)?.replicas ?? from;
    if (from === to) return [];
    const { nowMs } = requested;
    const times = { startMs: nowMs, endMs: nowMs };
    return [{ key: `request/${zone.name}`, ...scalingStep(zone.name, from, to), gates: [], rules: [], ...times }];
  });
}

/** Returns the replicas of a StatefulSet before the change; of a missing one, the number of pods that it would adopt. */
export function presentReplicas(before: Snapshot, namespace: string, name: string): number {
  const pods = podsNamed(before, namespace, name) ?? [];
  return setNamed(before, namespace, name)?.replicas ?? (isUnknown(pods) ? 0 : pods.length);
}

/** Returns the steps after one more decision. A step ends when all requested replicas are ready or the StatefulSet gets another number. */
export function traceRequested(
  steps: readonly TracedStep[],
  group: GroupDefinition,
  now: Snapshot,
  open: Set<string>,
): readonly TracedStep[] {
  return steps.map((step) => {
    const name = group.zones.find((zone) => zone.name === step.zone)?.statefulSet ?? '';
    if (!open.has(step.key)) return step;
    if (isSettled(setNamed(now, group.namespace, name), step.to)) open.delete(step.key);
    return { ...step, endMs: now.nowMs };
  });
}

/** Returns a function that takes each turn and returns the facts so far about pods that a scale-up starts at a stopped template. */
export function newPodsTrace(group: GroupDefinition, requested: readonly Pick<PlannedStep, 'zone' | 'from' | 'to'>[]) {
  const facts: string[] = [];
  let isFirst = true;
  return ({ decision }: Turn, snapshot: Snapshot): readonly string[] => {
    const own = decision.actions.flatMap((action) => (action.kind === 'scaleStatefulSet' ? [action] : []));
    const scales = isFirst ? [...requested, ...own] : own;
    isFirst = false;
    const context = scales.length === 0 ? undefined : contextOf(snapshot, group);
    for (const { zone, from = 0, to = 0 } of scales) {
      const view = context && zoneNamed(context, zone);
      const fact = view && newPodsFact(context, view, { from, to }, decision);
      if (fact !== undefined) facts.push(fact);
    }
    return facts;
  };
}

function isSettled(set: StatefulSetView | undefined, replicas: number | undefined): boolean {
  if (set === undefined || set.replicas !== replicas) return true;
  return set.status.replicas === replicas && set.status.readyReplicas === replicas;
}

/** The pods of a zone as the decision saw them. */
type SeenPods = Pick<ZoneView, 'zone' | 'replicas' | 'available'>;

/** Adds a decision to the steps, as a new step or as a continuation of the last step. Turns must come in order. */
export function traceTurn(steps: TracedStep[], { nowMs, decision }: Turn, seen: readonly SeenPods[]): void {
  const last = steps.at(-1);
  const traced = rolling(decision, seen) ?? scaling(decision) ?? preparing(decision) ?? waiting(decision);
  if (last !== undefined) steps[steps.length - 1] = { ...last, endMs: nowMs };
  if (traced === undefined) return;
  const gates = decision.wantedReadings.map(({ gate }) => gate).sort();
  const begun = extended(traced, { gates, startMs: nowMs, endMs: nowMs });
  const isMore = last !== undefined && last.key === begun.key && last.kind !== 'scaleDown' && last.kind !== 'scaleUp';
  if (isMore) steps[steps.length - 1] = continued(last, begun);
  else steps.push(begun);
}

function continued(last: TracedStep, next: TracedStep): TracedStep {
  const gates = [...new Set([...last.gates, ...next.gates])].sort();
  const pods = [...last.pods, ...next.pods.filter((pod) => !last.pods.includes(pod))];
  const atOnce = last.atOnce === undefined ? undefined : Math.max(last.atOnce, next.atOnce ?? 0);
  return { ...last, gates, pods, ...defined({ atOnce }), endMs: next.endMs };
}

type BegunStep = Omit<TracedStep, 'gates' | 'startMs' | 'endMs'>;

function rolling(decision: GroupDecision, seen: readonly SeenPods[]): BegunStep | undefined {
  const replaced = decision.actions.flatMap(replacedBy);
  const zone = replaced[0]?.zone;
  if (zone === undefined) return undefined;
  const wave = decision.wave?.name ?? 'all';
  const { replicas, available } = seen.find((one) => one.zone.name === zone) ?? { replicas: 0, available: new Set<number>() };
  // A replaced pod that is unavailable already is down once.
  const down = replicas - available.size + replaced.filter(({ ordinal }) => available.has(ordinal)).length;
  const rules = decision.steps.find((step) => step.kind === 'roll' && step.zone === zone)?.results ?? [];
  const pods = replaced.map(({ pod }) => pod);
  return { key: `roll/${wave}/${zone}`, wave, kind: 'roll', zone, pods, atOnce: down, rules };
}

function scaling(decision: GroupDecision): BegunStep | undefined {
  const action = decision.actions.find((candidate) => candidate.kind === 'scaleStatefulSet');
  if (action === undefined) return undefined;
  const { zone, from, to } = action;
  return { key: `scale/${zone}/${from}/${to}`, ...scalingStep(zone, from, to), rules: rulesOfScale(decision, zone) };
}

function scalingStep(zone: string, from: number, to: number): Omit<BegunStep, 'key' | 'rules'> {
  return { wave: scalingWave, kind: to < from ? 'scaleDown' : 'scaleUp', zone, pods: [], from, to };
}

function rulesOfScale({ steps }: GroupDecision, zone: string): readonly RuleResult[] {
  return steps.find((step) => step.id === `scale/${zone}`)?.results ?? [];
}

function preparing(decision: GroupDecision): BegunStep | undefined {
  const action = decision.actions.find((candidate) => candidate.kind === 'callPods' && candidate.method === 'POST');
  if (action?.kind !== 'callPods') return undefined;
  const { zone, call, statefulSet, ordinals } = action;
  const pods = ordinals.map((ordinal) => `${statefulSet}-${ordinal}`);
  const waitsFor = call === 'delayed' ? 'delayed-downscale' : 'prepare-downscale';
  return { key: `prepare/${zone}/${call}`, wave: scalingWave, kind: 'prepare', zone, pods, waitsFor, rules: rulesOfScale(decision, zone) };
}

function waiting(decision: GroupDecision): BegunStep | undefined {
  const shown = shownWait(decision);
  return shown && waitStep(shown.step, shown.reason, decision);
}

/** Returns the first wait that a plan shows as a step; undefined while pods are in flight or if the decision acts. */
function shownWait(decision: GroupDecision): { readonly step: DecidedStep; readonly reason: RuleResult } | undefined {
  if (decision.outcome === 'done' || decision.actions.length > 0) return undefined;
  for (const step of decision.steps) {
    const reason = waitReason(step);
    if (reason !== undefined) return { step, reason };
  }
  return undefined;
}

/**
 * Returns the result whose approvals a plan may assume after this decision: only of the wait that the plan shows, so that it shows each
 * approval. Other approvals stay missing, also behind a rule that blocks. The result has the digest that an approval must name.
 */
export function approvableWait(decision: GroupDecision): RuleResult | undefined {
  const shown = shownWait(decision)?.reason;
  return shown?.outcome === 'wait' && lacksApproval(shown) ? shown : undefined;
}

type DecidedStep = GroupDecision['steps'][number];

function waitStep(step: DecidedStep, reason: RuleResult, { wave: of, stops, zones }: GroupDecision): BegunStep {
  const kind = waitKind(reason);
  const wave = step.kind === 'roll' ? (of?.name ?? 'all') : scalingWave;
  const waitsFor = kind === 'check' ? gateName(reason) : kind === 'wait' ? reason.rule : wave;
  const isWholeGroup = stops.some(({ rule, zones: stopped }) => rule === reason.rule && stopped.length === zones.length);
  const isWholeWave = step.kind === 'roll' && (kind !== 'wait' || reason.rule === 'approval' || isWholeGroup);
  const key = `${kind}/${isWholeWave ? wave : step.zone}/${reason.rule}/${waitsFor}`;
  return { key, wave, kind, ...(isWholeWave ? {} : { zone: step.zone }), pods: [], waitsFor, rules: step.results };
}

/** Returns the result that blocks a step, a soak first; undefined if the step acts or its pods are still being replaced. */
function waitReason({ outcome, results }: DecidedStep): RuleResult | undefined {
  if (outcome === 'act') return undefined;
  const reasons = results.filter(blocks);
  if (reasons.some((answer) => workRules.has(answer.rule) && answer.outcome === 'wait')) return undefined;
  return reasons.find((answer) => answer.rule === 'soak') ?? reasons[0];
}

function waitKind(reason: RuleResult): 'soak' | 'check' | 'approval' | 'wait' {
  if (reason.rule === 'soak') return 'soak';
  if (reason.rule === 'gate') return 'check';
  return lacksApproval(reason) && reason.outcome !== 'no' ? 'approval' : 'wait';
}

function gateName(reason: RuleResult): string {
  return reason.fact.split(' ')[0] ?? reason.rule;
}

/**
 * Returns the checks of the current and the later waves that are open at the end of a simulation, as the agent evaluates them when the run
 * continues; while a rollback waits, those of the rollback. A check for which the plan waits already (`waits`) is left out.
 */
export function checksAfterWait(
  context: GroupContext,
  { run, waits }: Pick<GroupDecision, 'run' | 'waits'>,
  end: ForwardRun['end'],
): NonNullable<GroupPlan['checksAfterWait']> {
  if (run === undefined) return [];
  const { nowMs, group } = context;
  const continued = returnsAfterWait(run, end) ? run : continuedRun(context, run);
  return group.rollout.waves.flatMap((wave, index) => {
    if (index < continued.wave) return [];
    const at = index === continued.wave ? continued : enterWave(continued, index, nowMs);
    const before = hasReplacedSince(at, at.waveStartedMs) ? underWay(context, wave, at) : beforeWave(context, wave, at);
    const open = [before, afterWave(context, wave, at)].map(({ results }) => results.filter(blocks));
    const current = index === continued.wave ? open.find(({ length }) => length > 0) : undefined;
    const isShown = ({ rule, fact }: RuleResult): boolean => waits.some((wait) => wait.rule === rule && wait.fact === fact);
    const left = open.flatMap((results) => (results === current ? results.filter((answer) => !isShown(answer)) : results));
    const kinds = (['soak', 'gate', 'approval'] as const).filter((kind) => left.some(({ rule }) => rule === kind));
    return kinds.length === 0 ? [] : [{ wave: wave.name, kinds }];
  });
}

/** Returns the run after the wait: the running run, the retried run, or the rollout after a rollback. */
function continuedRun({ group, nowMs }: GroupContext, run: RunState): UnfinishedRun {
  const isOver = run.outcome === 'completed' || isRollingBack(run) || run.returning !== undefined;
  if (!isOver) return run.outcome === 'failed' ? retryRun(run, nowMs) : run;
  const change = { kind: 'rollout', target: run.target, previous: run.previous } as const;
  return startRun({ change, group: `${group.namespace}/${group.name}`, nowMs, before: run });
}

/** Returns the zones in the order in which the waves from the wave of the unfinished run replace their pods, then the other zones. */
export function inWaveOrder({ group, zones, ledger: { run } }: GroupView): readonly ZoneView[] {
  const first = run === undefined || run.outcome === 'completed' ? 0 : run.wave;
  const names = group.rollout.waves.slice(first).flatMap((wave) => wave.zones);
  const place = ({ zone }: ZoneView): number => (names.includes(zone.name) ? names.indexOf(zone.name) : names.length);
  return zones.toSorted((a, b) => place(a) - place(b));
}

/** Converts milliseconds to seconds with three decimals, as plans have them. */
export function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}

/** Returns the bar of a step in the timeline; [] for a step without a duration and for an approval. */
export function timelineSpans(step: PlannedStep): readonly TimelineSpan[] {
  if (step.p50Seconds === undefined || step.kind === 'approval') return [];
  const kind = step.kind === 'check' ? 'wait' : step.kind;
  const label =
    step.kind === 'roll'
      ? counted(step.pods.length, 'pod')
      : step.kind === 'scaleUp' || step.kind === 'scaleDown'
        ? `${step.from} to ${step.to}`
        : (step.waitsFor ?? step.kind);
  return [
    {
      zone: step.zone ?? '',
      kind,
      label,
      startSeconds: step.startSeconds,
      endSeconds: seconds(1000 * (step.startSeconds + step.p50Seconds)),
    },
  ];
}
