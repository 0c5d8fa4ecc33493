// Finds the risks of a plan: findings RG50xx. Each message names the cause.
import type { ExceptionDefinition, GroupDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { minuteText } from '../../policies/instant.ts';
import { emptyFirstWaves } from '../../policies/rollout/empty-waves.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import { listOf } from '../../policies/values/list-of.ts';
import { zonesText } from '../../policies/wording.ts';
import { type GroupContext, minIntervalOf, sourceOf, zoneNamed } from '../context.ts';
import type { GroupDecision } from '../decision.ts';
import { budgetHealth, budgetsFor } from '../disruption/pod-budget.ts';
import { templateRevision, unmodelledPods } from '../observe/manifests.ts';
import { fieldAt } from '../observe/raw.ts';
import type { GroupView, ZoneView } from '../observe/view.ts';
import { termsOf } from '../release/terms.ts';
import { isLimitOfZero } from '../rule.ts';
import { nextDeadline } from '../rules/roll.ts';
import { unfitMembers } from '../rules/strategy.ts';
import { hasChecks, isFastTrack } from '../rules/wave.ts';
import { noWaveText } from '../run/included.ts';
import { manifestOf } from './changes.ts';
import { atOnceText } from './controller.ts';
import { type GroupPlan, type PlannedStep, type PodTimes, type Quantiles, type Risk, slowSeconds } from './document.ts';

interface RiskQuestion {
  readonly context: GroupContext;
  /** The group after the change, without the members that leave it. */
  readonly group: GroupDefinition;
  readonly desired: readonly unknown[];
  readonly written: readonly unknown[] | undefined;
  readonly steps: readonly PlannedStep[];
  readonly atOnce: readonly PlannedStep[];
  readonly waits: GroupPlan['waits'];
  readonly zones: GroupPlan['zones'];
  /** The exceptions whose end blocks the rest of the plan, with the p50 and with the p90 durations. */
  readonly ended: readonly ExceptionDefinition[];
  readonly endedSlow: readonly ExceptionDefinition[];
  /** The first decision after the change. */
  readonly first: GroupDecision;
  /** The facts about pods that a scale-up starts at a stopped template. */
  readonly newPods: readonly string[];
  /** The state at the end of the plan. */
  readonly end: GroupView;
  readonly podTimes: PodTimes;
  /** The time of the run that counts for its deadline. */
  readonly active: Quantiles;
}

type RiskCheck = (question: RiskQuestion, members: readonly unknown[]) => readonly Risk[];

/** Returns every risk of one group, in the order of their codes. */
export function groupRisks(question: RiskQuestion): readonly Risk[] {
  const members = membersIn(question.desired, question.group);
  return riskChecks.flatMap((check) => check(question, members));
}

function membersIn(objects: readonly unknown[], { namespace, zones }: GroupDefinition): readonly unknown[] {
  return zones.flatMap((zone) => manifestOf(objects, 'StatefulSet', namespace, zone.statefulSet) ?? []);
}

function nameOf(member: unknown): string {
  return String(fieldAt(member, ['metadata', 'name']) ?? '');
}

function named(members: readonly unknown[]): string {
  return members.map(nameOf).sort().join(', ');
}

/** Finds a zone that replaces one pod at a time only because of a PodDisruptionBudget, although more pods may be unavailable. */
const serialBudget: RiskCheck = ({ context, steps }) => {
  if (context.group.rollout.rotateBy !== 'evict') return [];
  for (const step of steps) {
    const limit = zoneLimitOf(step);
    if (step.kind !== 'roll' || step.atOnce !== 1 || step.pods.length < 2 || limit <= 1) continue;
    const [budget] = budgetsFor(context.snapshot, context.group.namespace, zoneNamed(context, step.zone)?.set?.podLabels ?? {});
    if (budget === undefined) continue;
    const { expected, desired } = budgetHealth(context.snapshot, budget);
    if (expected - desired > 1) continue;
    const object = `PodDisruptionBudget ${budget.namespace}/${budget.name}`;
    const message = `${object} allows one eviction at a time, although ${limit} pods may be unavailable`;
    return [{ code: 'RG5001', severity: 'warning', message, source: { object } }];
  }
  return [];
};

/** Finds zones whose pods OrderedReady creates one after the other, although more pods may be unavailable. */
const orderedReady: RiskCheck = ({ context, steps }) => {
  if (minIntervalOf(context) > 0) return [];
  const wide = new Set(
    steps.filter((step) => step.kind === 'roll' && step.pods.length > 1 && zoneLimitOf(step) > 1).map((step) => step.zone),
  );
  const ordered = context.view.zones.filter((view) => wide.has(view.zone.name) && view.set?.podManagementPolicy === 'OrderedReady');
  if (ordered.length === 0) return [];
  const names = ordered.map((view) => view.zone.statefulSet).join(', ');
  const message = `pods of ${names} start one after the other (podManagementPolicy OrderedReady), so a maxUnavailable above 1 does not make the rollout faster`;
  return [{ code: 'RG5002', severity: 'notice', message }];
};

/** Returns the number of pods of the zone that may be unavailable in the step; 0 without a budget. */
function zoneLimitOf({ rules }: PlannedStep): number {
  return Number(rules.find(({ rule }) => rule === 'zone-budget')?.limit ?? 0);
}

export function containersOf(member: unknown): readonly unknown[] {
  return listOf(fieldAt(member, ['spec', 'template', 'spec', 'containers']));
}

const noReadinessProbe: RiskCheck = (_question, members) => {
  const blind = members.filter((member) =>
    containersOf(member).every((container) => (fieldAt(container, ['readinessProbe']) ?? undefined) === undefined),
  );
  if (blind.length === 0) return [];
  const message = `no container of ${named(blind)} has a readiness probe, so pods count as ready before they serve`;
  return [{ code: 'RG5003', severity: 'warning', message }];
};

const replicasInGit: RiskCheck = ({ context, group, desired, written = desired }) => {
  const owned = new Set(
    context.group.zones.filter((zone) => zone.follows !== undefined || zone.replicas.kind !== 'leader').map((zone) => zone.statefulSet),
  );
  const both = membersIn(written, group).filter(
    (member) => owned.has(nameOf(member)) && fieldAt(member, ['spec', 'replicas']) !== undefined,
  );
  if (both.length === 0) return [];
  const message = `the manifests of ${named(both)} set replicas that the agent also writes, so Git and the agent overwrite each other`;
  return [{ code: 'RG5005', severity: 'warning', message }];
};

const floatingImage: RiskCheck = (_question, members) => {
  const images = members.flatMap(containersOf).map((container) => String(fieldAt(container, ['image']) ?? ''));
  const floating = [...new Set(images.filter((image) => image !== '' && !/@sha256:|:(?!latest$)[^/:]+$/.test(image)))].sort();
  return floating.map((image) => ({
    code: 'RG5006',
    severity: 'warning' as const,
    message: `image ${image} has no fixed version, so a restarted pod may run another version`,
  }));
};

const differentTemplates: RiskCheck = (_question, members) => {
  const images = members.map((member) => templateRevision(containersOf(member).map((container) => fieldAt(container, ['image']))));
  if (new Set(images).size <= 1) return [];
  return [{ code: 'RG5007', severity: 'notice', message: `the StatefulSets of the zones have different images: ${named(members)}` }];
};

/** Finds limits of 0, which block until a person changes them. */
const endlessRollout: RiskCheck = ({ waits }) =>
  waits.filter(isLimitOfZero).map(({ fact, source }) => ({
    code: 'RG5008',
    severity: 'warning' as const,
    message: `${fact}, so the rollout never ends; change the limit of 0, or pause the zones with paused: true`,
    ...(source === undefined ? {} : { source }),
  }));

/** Finds a first wave without pods, which tests nothing. Without a rollout there is no such risk. */
const emptyFirstWave: RiskCheck = ({ context, steps, zones }) => {
  const empty = zones.filter(({ replicasAfter }) => replicasAfter === 0).map(({ zone }) => zone);
  const idle = emptyFirstWaves(context.group.rollout.waves, empty);
  if (idle === undefined || steps.every(({ kind }) => kind !== 'roll')) return [];
  const source = sourceOf(context, `waves.${idle.waves[0]}`);
  return [{ code: 'RG5009', severity: 'warning', message: idle.text, ...(source === undefined ? {} : { source }) }];
};

/** Finds a deadline that the durations of the plan exceed. The plan goes on: its durations are assumed. */
const shortDeadline: RiskCheck = (question) => {
  const source = sourceOf(question.context, 'rollout.deadlines');
  const isHeld = question.steps.every(({ kind }) => kind !== 'roll');
  const exceeded = isHeld ? failureAhead(question) : exceededDeadlines(question);
  return exceeded.map((message) => ({ code: 'RG5010', severity: 'warning', message, ...(source === undefined ? {} : { source }) }));
};

/** Returns when a deadline fails the run in progress, if the plan waits and replaces no pod before, and the time still counts at its end. */
function failureAhead({ context, waits, first: { run }, end }: RiskQuestion): readonly string[] {
  const { run: current } = context.view.ledger;
  const deadline = waits.length === 0 || current?.id !== run?.id ? undefined : nextDeadline(context, current);
  const isInFlight = end.zones.some(({ inFlight }) => inFlight > 0);
  if (deadline?.rule === 'progress-deadline' ? !isInFlight : end.ledger.run?.isMovable !== true) return [];
  if (deadline === undefined) return [];
  const { rule, fact, limit, earliestMs = context.nowMs } = deadline;
  return [`the plan waits, and the run fails at ${minuteText(earliestMs)} by ${rule}: ${fact} (limit: ${limit})`];
}

function exceededDeadlines({ context, podTimes, active }: RiskQuestion): readonly string[] {
  const { progressMs, runMs } = context.group.rollout.deadlines;
  const exceeded: string[] = [];
  const text = (durationSeconds: number): string => formatDuration(Math.floor(durationSeconds) * 1000);
  const slow = slowSeconds(podTimes);
  if (progressMs !== undefined && Math.floor(slow) * 1000 > progressMs)
    exceeded.push(`a slow pod stops and starts in ${text(slow)} (p90), longer than the progress deadline of ${formatDuration(progressMs)}`);
  if (runMs !== undefined && active.p50Seconds * 1000 >= runMs) {
    const times = `${text(active.p50Seconds)} (p90 ${text(active.p90Seconds)})`;
    exceeded.push(`the run takes ${times} without pauses, approvals and windows, longer than its deadline of ${formatDuration(runMs)}`);
  }
  return exceeded;
}

const shortException: RiskCheck = ({ ended, endedSlow }) =>
  [...new Set([...ended, ...endedSlow])].map((one) => ({
    code: 'RG5011',
    severity: 'warning' as const,
    message: `exception ${one.name} ends before ${ended.includes(one) ? 'the rollout' : 'a slow rollout (p90)'} does, and then ${one.rule} blocks the rest; extend the exception`,
    source: one.source,
  }));

/** Finds pods that the StatefulSet controller replaces without an action of the agent. */
const exposedPods: RiskCheck = ({ context: { snapshot, group }, atOnce, steps }) =>
  atOnce.map((step) => ({ code: 'RG5012', severity: 'warning', message: atOnceText(snapshot, group, step, steps) }));

/** Finds waves whose soaks, gates and approvals a return to the previous template skips. */
const skippedOnRollback: RiskCheck = ({ context, steps, first: { run } }) => {
  const skipped = context.group.rollout.waves.filter(hasChecks);
  if (run?.outcome !== 'running' || !isFastTrack(context, run) || skipped.length === 0 || steps.every(({ kind }) => kind !== 'roll'))
    return [];
  const names = skipped.map(({ name }) => name).join(', ');
  const who = run.returning === undefined ? 'the change returns' : `the change first returns ${zonesText(run.returning)}`;
  const message = `${who} to the previous template, so the soaks, gates and approvals of ${names} are skipped (skipOnRollback)`;
  return [{ code: 'RG5013', severity: 'notice', message }];
};

/** Finds StatefulSets that stay in the cluster but leave their group. */
const leavingMember: RiskCheck = ({ context, group, desired }) => {
  const staying = new Set(group.zones.map(({ statefulSet }) => statefulSet));
  const left = context.group.zones.flatMap(({ statefulSet }) =>
    staying.has(statefulSet) ? [] : (manifestOf(desired, 'StatefulSet', group.namespace, statefulSet) ?? []),
  );
  if (left.length === 0) return [];
  const isReleased = staying.size === 0 && termsOf(context.group) !== undefined;
  const kept = traitsOf(context.group).holdsPartition ? '; a partition that the agent set stays, so a new template reaches no pod' : '';
  const effect = isReleased
    ? '; the agent then releases the zones one by one (onPolicyDeleted: release), and the StatefulSet controller replaces all outdated pods'
    : `, and outdated pods stay outdated${kept}`;
  const message = `the change removes ${named(left)} from the group: the rules of the group no longer apply there${effect}`;
  return [{ code: 'RG5014', severity: 'warning', message }];
};

/** Finds numbers of replicas that the plan cannot model. Such a plan would never end. */
const unmodelled: RiskCheck = ({ zones }) =>
  zones.flatMap(({ statefulSet, replicasBefore, replicasAfter }): readonly Risk[] => {
    const message = unmodelledPods(statefulSet, Math.max(replicasBefore, replicasAfter));
    return message === undefined
      ? []
      : [{ code: 'RG5015', severity: 'warning', message, source: { object: `StatefulSet ${statefulSet}`, field: 'spec.replicas' } }];
  });

/** Returns the check that finds the warnings of a rule in the first decision, which knows the templates after the change. */
function warningsOf(warned: string, code: string): RiskCheck {
  return ({ first }) =>
    first.warnings
      .filter(({ rule }) => rule === warned)
      .map(({ fact, source }) => ({ code, severity: 'warning', message: fact, ...defined({ source }) }));
}

/** Finds pods that a restart brings to another revision before the plan starts. */
const changedByRestart: RiskCheck = warningsOf('restart-version', 'RG5016');

/** Finds pods that stay outdated because no wave includes them. */
const podsWithoutWave: RiskCheck = ({ context, zones }) =>
  zones.flatMap(({ zone, podsInNoWave = 0 }): readonly Risk[] => {
    const source = sourceOf(context, `waves.${context.group.rollout.waves.at(-1)?.name}`);
    return podsInNoWave === 0
      ? []
      : [{ code: 'RG5017', severity: 'warning', message: noWaveText(zone, podsInNoWave), ...defined({ source }) }];
  });

/** Finds members that do not fit the strategy of the group after the change, so that the next template reaches none of their pods. */
const unfitStrategy: RiskCheck = ({ context, group, waits }, members) => {
  // A wait for the update strategy names its StatefulSet already.
  const isWaited = (object: string | undefined): boolean =>
    waits.some(({ rule, source }) => rule === 'update-strategy' && source?.object === object);
  const written = context.view.zones.flatMap((view): ZoneView[] => {
    const member = members.find((one) => nameOf(one) === view.zone.statefulSet);
    const type = fieldAt(member, ['spec', 'updateStrategy', 'type']) === 'OnDelete' ? 'OnDelete' : 'RollingUpdate';
    return member === undefined || view.set === undefined ? [] : [{ ...view, set: { ...view.set, updateStrategy: type } }];
  });
  return unfitMembers(group, written).flatMap(({ fact, source, endsWith }): readonly Risk[] => {
    const message = `${fact}, so the agent replaces no pod of it. After this change: ${endsWith}`;
    return isWaited(source?.object) ? [] : [{ code: 'RG5018', severity: 'warning', message, ...defined({ source }) }];
  });
};

/** Finds pods that a scale-up starts at a template that the rollout may not bring to them. */
const startedByScaleUp: RiskCheck = ({ newPods }) => newPods.map((message) => ({ code: 'RG5019', severity: 'warning', message }));

/** Finds a rollout that differs from the plan that its StatefulSets name, also if no policy requires an approved plan. */
const otherPlan: RiskCheck = warningsOf('approved-plan', 'RG5020');

const riskChecks: readonly RiskCheck[] = [
  serialBudget,
  orderedReady,
  noReadinessProbe,
  replicasInGit,
  floatingImage,
  differentTemplates,
  endlessRollout,
  emptyFirstWave,
  shortDeadline,
  shortException,
  exposedPods,
  skippedOnRollback,
  leavingMember,
  unmodelled,
  changedByRestart,
  podsWithoutWave,
  unfitStrategy,
  startedByScaleUp,
  otherPlan,
];
