// Makes a plan: judges the requested changes, simulates the engine on a model, and groups the decisions into waves and steps.
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { policiesFor } from '../../policies/join.ts';
import { defined } from '../../policies/values/defined.ts';
import { contextOf, type GroupContext } from '../context.ts';
import { decideGroup } from '../decide/decide.ts';
import { endedStops, isOfStop, mayBlockTemplate } from '../decide/stops.ts';
import type { GroupDecision, RuleResult, Stop } from '../decision.ts';
import type { ObjectContent } from '../diff/field-diff.ts';
import { viewGroup } from '../observe/view.ts';
import { podsWorthNaming } from '../publish/decision.ts';
import { isTroubled } from '../publish/status.ts';
import { termsOf } from '../release/terms.ts';
import { blocks, isUntilPerson } from '../rule.ts';
import { agentRuns } from '../rules/agent-access.ts';
import { missingApprovals } from '../rules/approval.ts';
import { permittedResults } from '../rules/exception.ts';
import { policiesRead, type Requester } from '../rules/policy.ts';
import { activeMs } from '../run/durations.ts';
import type { RunState } from '../run/run-state.ts';
import { type Snapshot, setNamed } from '../snapshot.ts';
import type { World } from '../world/model.ts';
import type { Quantile } from '../world/world.ts';
import { manifestOf, plannedChanges } from './changes.ts';
import { afterRollback, beforeRequest, controllerTrace, podsAfterWait } from './controller.ts';
import {
  type ApiDenial,
  type Assumptions,
  controllerWave,
  type GroupPlan,
  type ObjectChange,
  type Plan,
  type PlannedStep,
  type PlannedWave,
  podTimesOf,
  type Refusal,
  rolloutWaves,
  shorterTimes,
} from './document.ts';
import { assumedMetrics, runForward, type Turn } from './forward.ts';
import { groupRisks } from './risks.ts';
import { templateNamed } from './running-fields.ts';
import {
  checksAfterWait,
  inWaveOrder,
  newPodsTrace,
  presentReplicas,
  requestedScales,
  seconds,
  type TracedStep,
  timelineSpans,
  traceRequested,
  traceTurn,
} from './steps.ts';
import { successorTrace, supersededRun } from './superseded-run.ts';
import { desiredGroup, type PlanSnapshots, permittedLater, readPlanSnapshots, requestedWorld, snapshotAsked } from './world.ts';

/** A group that is blocked because members are missing in the compared objects. The results say what to change. */
export interface AbsentMembers {
  readonly namespace: string;
  readonly group: string;
  readonly results: readonly RuleResult[];
}

export interface PlanInput extends Pick<Snapshot, 'groups' | 'policies' | 'exceptions' | 'policyDigest'> {
  /** The groups before the change. The requested changes must pass under these groups, too. */
  readonly groupsBefore?: readonly GroupDefinition[];
  /** The groups without the members that leave them. The agent decides with these groups. Absent: `groups`. */
  readonly desiredGroups?: readonly GroupDefinition[];
  readonly before?: Pick<Snapshot, 'policies' | 'exceptions'>;
  /** The namespace of the agent. Only policies in it may name other namespaces. Absent: the agent namespace of `running`, if any. */
  readonly agentNamespace?: string;
  /** Kubernetes objects that run now. */
  readonly current: readonly unknown[];
  readonly desired: readonly unknown[];
  /** The objects of the manifests as written, without defaults of the API server. Absent: `desired`. */
  readonly written?: readonly unknown[];
  readonly assumptions: Assumptions;
  /** The state of the cluster that `current` comes from: unready, missing and unknown pods, ledgers, requests, gate readings. */
  readonly running?: Snapshot;
  /** The requests before the change, if it writes or deletes requests. Absent: those of `running`. */
  readonly intentsBefore?: Snapshot['intents'];
  /** The user who requests the change. Absent: unknown, as in a plan of files. */
  readonly requester?: Requester;
  /** Groups that are blocked because their members do not exist. */
  readonly absent?: readonly AbsentMembers[];
  readonly denied?: readonly ApiDenial[];
  /** The ControllerRevisions of the cluster: the templates that pods run. Absent for a plan of files. */
  readonly revisions?: readonly unknown[];
  /** Changes of groups, policies and other objects of this project. They may bind groups that the plan leaves out. */
  readonly policyChanges?: readonly ObjectChange[];
  readonly otherChanges?: readonly ObjectChange[];
  /** The start of the plan; ignored if the plan does not depend on the calendar. */
  readonly nowMs: number;
}

/** Plans every group from the current to the desired objects. Without `running`, pods are ready unless a Pod manifest differs. */
export function planGroups(input: PlanInput): Plan {
  const snapshots = readPlanSnapshots(input);
  const { usesCalendar, nowMs } = snapshots;
  const { policyChanges = [] } = input;
  const key = (group: GroupDefinition): string => `${group.namespace}/${group.name}`;
  const groups = [...input.groups]
    .sort((a, b) => (key(a) < key(b) ? -1 : 1))
    .map((group) => ({ ...planGroup(input, group, snapshots), ...boundChanges(input, group) }));
  // A group shows the changes of its budgets and of the object that it mirrors.
  const shown = groups.flatMap(({ changes }) => changes.map(({ field }) => field));
  const otherChanges = (input.otherChanges ?? []).filter(({ object }) => !shown.some((field) => isOfObject(field, object)));
  // Leaves out a denial by the webhook of the agent if the plan already contains this denial.
  const known = groups.flatMap(({ refused }) => refused.map(({ message }) => message));
  const unknown = (input.denied ?? []).filter(({ message }) => !known.some((text) => message.includes(text)));
  const denied = withHints(input, snapshots, unknown);
  return {
    apiVersion: 'rollout-group.dev/cli/v1',
    kind: 'Plan',
    metadata: { policyDigest: input.policyDigest, ...(usesCalendar ? { startsAt: new Date(nowMs).toISOString() } : {}) },
    outcome: worst([
      ...(denied.length === 0 ? [] : ['blocked' as const]),
      ...groups.map((group) => group.outcome),
      ...(policyChanges.length + otherChanges.length === 0 ? [] : ['complete' as const]),
    ]),
    ...(policyChanges.length === 0 ? {} : { policyChanges }),
    ...(otherChanges.length === 0 ? {} : { otherChanges }),
    ...(denied.length === 0 ? {} : { denied }),
    assumptions: {
      ...input.assumptions,
      groups: { ...input.assumptions.groups, ...shorterTimes(input.assumptions, input.groups) },
      metrics: { ...metricsOf(input), ...input.assumptions.metrics },
    },
    groups,
  };
}

/** Returns the denials, each with a hint if a policy or the lack of an exception before the change causes the denial. */
function withHints(input: PlanInput, snapshots: PlanSnapshots, denied: readonly ApiDenial[]): readonly ApiDenial[] {
  if (denied.length === 0) return denied;
  const { policies, exceptions } = input.before ?? input;
  const before = { ...input, policies, exceptions };
  const refused = input.groups.flatMap((group) => requestedWorld(before, snapshots, group).refused);
  return denied.map((denial) => {
    const isCaused = refused.some(({ message }) => denial.message.includes(message));
    return isCaused ? { ...denial, hint: permittedLater('the policies') } : denial;
  });
}

/** Returns the assumed values of the metrics that the policies of the groups declare, by `policy/input`. */
function metricsOf(input: PlanInput): Assumptions['metrics'] {
  const { groups, policies, assumptions, running, agentNamespace = running?.agentNamespace } = input;
  const known = { given: assumptions.metrics, read: running?.metrics ?? [] };
  return Object.assign({}, ...groups.map((group) => assumedMetrics(policiesFor(policies, group, agentNamespace), known, group)));
}

function exceptionsOf({ exceptions }: Pick<PlanInput, 'exceptions'>, group: GroupDefinition): PlanInput['exceptions'] {
  return exceptions.filter((one) => one.namespace === group.namespace && one.group === group.name);
}

/** Returns the exceptions that end during the simulated run, and whose rule then blocks it: at its end, or until time ends the block. */
function endedExceptions(input: PlanInput, group: GroupDefinition, planned: Forward): PlanInput['exceptions'] {
  const { startMs, endMs, steps, waits, end } = planned;
  const ended = exceptionsOf(input, group).filter(({ expiresMs, zone }) => {
    const hasMore = zone === undefined || end !== 'done' || steps.some((step) => step.zone === zone && step.startMs >= expiresMs);
    return expiresMs > startMs && expiresMs <= endMs && hasMore;
  });
  return ended.filter(({ rule, expiresMs }) => {
    const later = steps.filter((step) => step.startMs >= expiresMs).flatMap(({ rules }) => rules.filter(blocks));
    return [...waits, ...later].some((result) => result.rule === rule);
  });
}

/** Returns the changed objects that bind the group, before or after the change. */
function boundChanges(input: PlanInput, group: GroupDefinition): Pick<GroupPlan, 'policyChanges'> {
  const { policyChanges = [], agentNamespace = input.running?.agentNamespace } = input;
  const inputs = [input, ...(input.before === undefined ? [] : [input.before])];
  const exceptions = inputs.flatMap((one) => exceptionsOf(one, group));
  const binding = new Set([
    `RolloutGroup ${group.namespace}/${group.name}`,
    ...inputs
      .flatMap((one) => policiesFor(one.policies, group, agentNamespace))
      .map(({ namespace, name }) => `RolloutPolicy ${namespace}/${name}`),
    ...exceptions.map(({ namespace, name }) => `RolloutException ${namespace}/${name}`),
  ]);
  const bound = policyChanges.map(({ object }) => object).filter((object) => binding.has(object));
  return bound.length === 0 ? {} : { policyChanges: bound };
}

function boundPolicies(context: GroupContext): Pick<GroupPlan, 'policies'> {
  const policies = context.policies.flatMap(({ namespace, name, source }) =>
    source === undefined ? [] : [{ object: `RolloutPolicy ${namespace}/${name}`, source }],
  );
  return policies.length === 0 ? {} : { policies };
}

/** Reports whether a field, such as `PodDisruptionBudget cache spec.maxUnavailable`, belongs to the object `kind namespace/name`. */
function isOfObject(field: string, object: string): boolean {
  return `${field} `.startsWith(`${object.replace(/ .*\//, ' ')} `);
}

function worst(outcomes: readonly GroupPlan['outcome'][]): Plan['outcome'] {
  for (const outcome of ['blocked', 'waits', 'complete'] as const) if (outcomes.includes(outcome)) return outcome;
  return 'unchanged';
}

function planGroup(input: PlanInput, group: GroupDefinition, snapshots: PlanSnapshots): GroupPlan {
  const asked = snapshotAsked(input, snapshots, group);
  const { likely, slow } = forwardBoth(input, group, snapshots);
  const waves = groupIntoWaves(likely, slow);
  const steps = waves.flatMap((wave) => wave.steps);
  const changes = plannedChanges(group, { ...input, before: snapshots.before, after: snapshots.after }, likely.refused);
  const zones = zoneTotals(group, asked, likely, steps);
  const isReleased = zones.some(({ released }) => released !== undefined);
  const isUnchanged = steps.length === 0 && changes.length === 0 && !isReleased;
  const surroundings = isUnchanged ? [] : [agentRuns(asked, group), policiesRead(asked)].filter((answer) => answer !== undefined);
  const allWaits = [...surroundings, ...withAbsence(input, group, likely.waits)];
  const ended = endedExceptions(input, group, likely);
  const { waits, isBlocked, ...stops } = stopping(likely, allWaits, ended);
  const permitted = permittedResults([...likely.permitted, ...steps.flatMap(({ rules }) => rules)]);
  const isComplete = likely.end === 'done';
  const context = contextOf(asked, group);
  const isHeld = !isComplete || surroundings.length > 0;
  const outcome = isBlocked ? 'blocked' : isHeld ? 'waits' : isUnchanged ? 'unchanged' : 'complete';
  return {
    namespace: group.namespace,
    group: group.name,
    outcome,
    changes,
    ...endedIn(input, group, asked, likely),
    waves,
    refused: likely.refused,
    risks: groupRisks({
      context,
      group: desiredGroup(input, group),
      desired: input.desired,
      written: input.written,
      steps,
      atOnce: waves.filter(({ name }) => name === controllerWave).flatMap((wave) => wave.steps),
      waits,
      zones,
      ended,
      endedSlow: endedExceptions(input, group, slow),
      first: likely.first,
      newPods: likely.newPods,
      end: viewGroup(likely.world.snapshot, group),
      podTimes: podTimesOf(input.assumptions, group),
      active: { p50Seconds: activeSeconds(likely), p90Seconds: Math.max(activeSeconds(likely), activeSeconds(slow)) },
    }),
    ...(permitted.length === 0 ? {} : { permitted }),
    ...boundPolicies(context),
    waits,
    ...stops,
    ...(likely.checks.length === 0 ? {} : { checksAfterWait: likely.checks }),
    ...(isHeld ? troubledPods(group, likely) : {}),
    zones,
    totals: {
      restarts: zones.reduce((sum, zone) => sum + zone.restarts, 0),
      scaleChanges: steps.filter((step) => step.kind === 'scaleUp' || step.kind === 'scaleDown').length,
      waves: rolloutWaves(waves).length,
      gates: new Set(steps.flatMap((step) => step.gates ?? [])).size,
      approvals: steps.reduce((sum, { kind, rules }) => sum + (kind === 'approval' ? askedApprovals(rules) : 0), 0),
      ...(isReleased ? {} : durationsOf(likely, slow)),
    },
    timeline: steps.flatMap(timelineSpans),
  };
}

/** Returns how many people must approve a step that waits for an approval. A later approval at the same place is another step. */
function askedApprovals(rules: readonly RuleResult[]): number {
  return rules.map(missingApprovals).find((count) => count > 0) ?? 1;
}

/** Returns the run and the blocks of the present templates that the change ends. */
function endedIn(
  { current, revisions = [], intentsBefore }: PlanInput,
  group: GroupDefinition,
  snapshot: Snapshot,
  { successor, first }: Forward,
): Pick<GroupPlan, 'supersedes' | 'ends'> {
  const templateOf = (statefulSet: string, revision: string): ObjectContent | undefined => {
    const object = manifestOf(current, 'StatefulSet', group.namespace, statefulSet);
    const updateRevision = setNamed(snapshot, group.namespace, statefulSet)?.status.updateRevision;
    return object === undefined ? undefined : templateNamed(revision, { object, updateRevision, revisions });
  };
  const before = { ...snapshot, ...defined({ intents: intentsBefore }) };
  const ends = mayBlockTemplate(before, group)
    ? endedStops(decideGroup({ ...before, hasAssumedTimes: true }, group).stops, first.stops)
    : [];
  return defined({
    supersedes: supersededRun(group, { snapshot, successor, templateOf }),
    ends: ends.length === 0 ? undefined : ends,
  });
}

/** Returns the durations of a plan that completes. */
function durationsOf(likely: Forward, slow: Forward): Pick<GroupPlan['totals'], 'p50Seconds' | 'p90Seconds'> {
  if (likely.end !== 'done') return {};
  const p90 = slow.end === 'done' ? { p90Seconds: seconds(Math.max(likely.endMs, slow.endMs) - likely.startMs) } : {};
  return { p50Seconds: seconds(likely.endMs - likely.startMs), ...p90 };
}

/**
 * Returns what stops the plan. A plan assumes its times. So a rule that blocks only after its exception ended stops nothing now, hides no
 * other wait, and does not make the plan `blocked`.
 */
function stopping(
  { refused, stops }: Forward,
  found: GroupPlan['waits'],
  ended: PlanInput['exceptions'],
): Pick<GroupPlan, 'waits' | 'stops'> & { readonly isBlocked: boolean } {
  const isInForce = ({ rule, zones = [] }: Pick<RuleResult, 'rule'> & Partial<Pick<Stop, 'zones'>>): boolean =>
    ended.every((one) => one.rule !== rule || (one.zone !== undefined && zones.some((zone) => zone !== one.zone)));
  const waits = found.filter(isInForce);
  const met = stops.filter(isInForce);
  return {
    waits: waits.length > 0 ? waits : found,
    ...(met.length === 0 ? {} : { stops: met }),
    isBlocked: refused.length > 0 || waits.some(isUntilPerson),
  };
}

function troubledPods(group: GroupDefinition, { world: { snapshot } }: Forward): Pick<GroupPlan, 'troubled'> {
  const { pods } = podsWorthNaming(viewGroup(snapshot, group), snapshot.nowMs);
  const troubled = pods.filter(isTroubled);
  return troubled.length === 0 ? {} : { troubled };
}

/** Replaces the results about missing objects by the results in `absent`, which say why the objects are missing. */
function withAbsence({ absent = [] }: PlanInput, group: GroupDefinition, waits: GroupPlan['waits']): GroupPlan['waits'] {
  const results = absent.filter((one) => one.namespace === group.namespace && one.group === group.name).flatMap((one) => one.results);
  if (results.length === 0) return waits;
  return [...results, ...waits.filter(({ rule, outcome }) => !(rule === 'view-complete' && outcome === 'unknown'))];
}

interface Forward {
  readonly group: GroupDefinition;
  readonly refused: readonly Refusal[];
  readonly permitted: readonly RuleResult[];
  readonly steps: readonly TracedStep[];
  readonly waits: GroupPlan['waits'];
  readonly stops: readonly Stop[];
  readonly first: GroupDecision;
  readonly last: GroupDecision;
  readonly checks: NonNullable<GroupPlan['checksAfterWait']>;
  /** The run that superseded the run in progress; undefined if no run did. */
  readonly successor: RunState | undefined;
  readonly world: World;
  /** The facts about pods that a scale-up starts at a stopped template. */
  readonly newPods: readonly string[];
  /** By zone, the number of pods that stay outdated because no wave includes them. */
  readonly inNoWave: ReadonlyMap<string, number>;
  readonly end: 'done' | 'held' | 'limit';
  readonly startMs: number;
  readonly endMs: number;
}

function forward(input: PlanInput, group: GroupDefinition, snapshots: PlanSnapshots, quantile: Quantile): Forward {
  const requested = requestedWorld(input, snapshots, group, { quantile });
  const steps: TracedStep[] = [];
  const before = snapshotAsked(input, snapshots, group);
  const traceController = controllerTrace(group, before);
  const traceRun = successorTrace(viewGroup(before, group).ledger.run);
  let successor: RunState | undefined;
  let atOnce: readonly TracedStep[] = [];
  let asked = requestedScales(group, before, requested.world.snapshot);
  const traceNewPods = newPodsTrace(group, asked);
  let newPods: readonly string[] = [];
  const unsettled = new Set(asked.map(({ key }) => key));
  let first: GroupDecision | undefined;
  const met = new Set<Stop>();
  const onTurn = (turn: Turn, { snapshot }: World): void => {
    traceTurn(steps, turn, viewGroup(snapshot, group).zones);
    successor = traceRun(turn.decision.run);
    first ??= turn.decision;
    for (const stop of stopsOfResults(first.stops, turn.decision.waits)) met.add(stop);
    atOnce = traceController(turn, snapshot);
    newPods = traceNewPods(turn, snapshot);
    asked = traceRequested(asked, group, snapshot, unsettled);
  };
  const { last, world, end } = runForward(requested.world, requested.group, { onTurn });
  // Pods that were rolled back stay at their earlier revision, so the requested one is not reached.
  const rolledBack = last.decision.warnings.filter((warning) => warning.rule === 'rolled-back' && isUntilPerson(warning));
  const waits = [...(end === 'done' ? [] : last.decision.waits), ...rolledBack];
  const { refused, permitted } = requested;
  const traced = [...atOnce, ...asked, ...steps];
  const later = viewGroup(world.snapshot, requested.group).zones.filter(
    (view) => podsAfterWait(requested.group, view, { world, end }).length > 0,
  );
  const isAhead = ({ isBlocking, zones }: Stop): boolean =>
    waits.length > 0 && isBlocking && later.some(({ zone }) => zones.includes(zone.name));
  const blocking = stopsOfResults(last.decision.stops, waits);
  const open = last.decision.stops.filter((stop) => blocking.includes(stop) || isAhead(stop));
  const left = open.map((stop) => afterRollback(stop, first?.stops ?? []));
  const ended = [...met].filter(({ endsWith }) => !left.some((stop) => stop.endsWith === endsWith));
  const shown = [...ended, ...left].map((stop) => beforeRequest(stop, group, before));
  const times = { startMs: snapshots.nowMs, endMs: last.nowMs };
  const checks = later.length === 0 ? [] : checksAfterWait(contextOf(world.snapshot, requested.group), last.decision, end);
  const inNoWave = new Map(
    last.decision.zones.flatMap(({ zone, podsInNoWave }) => (podsInNoWave === undefined ? [] : [[zone, podsInNoWave]])),
  );
  const ofRun = { successor, first: first ?? last.decision, last: last.decision, world, newPods, end };
  return { group, refused, permitted, steps: traced, waits, stops: shown, checks, inNoWave, ...ofRun, ...times };
}

/** Simulates the group with both durations. If nothing is to do, no duration counts. */
function forwardBoth(input: PlanInput, group: GroupDefinition, snapshots: PlanSnapshots): Record<'likely' | 'slow', Forward> {
  const likely = forward(input, group, snapshots, 'p50');
  const isIdle = likely.end === 'done' && likely.endMs === likely.startMs && likely.steps.length === 0;
  return { likely, slow: isIdle ? likely : forward(input, group, snapshots, 'p90') };
}

function stopsOfResults(stops: readonly Stop[], results: readonly RuleResult[]): readonly Stop[] {
  return stops.filter((stop) => results.some((result) => isOfStop(result, stop)));
}

function activeSeconds({ group, world, endMs }: Forward): number {
  const { run } = viewGroup(world.snapshot, group).ledger;
  return run === undefined ? 0 : seconds(activeMs(run, endMs));
}

/** Joins consecutive steps of one wave. The p90 duration of a step is that of the step with the same key in `slow`, but at least its p50 duration. */
function groupIntoWaves(likely: Forward, slow: Forward): readonly PlannedWave[] {
  const waves: { name: string; steps: PlannedStep[] }[] = [];
  const pending = new Map<string, TracedStep[]>();
  for (const step of slow.steps) pending.set(step.key, [...(pending.get(step.key) ?? []), step]);
  const held = likely.end === 'done' ? undefined : likely.steps.at(-1);
  for (const step of likely.steps) {
    const twin = pending.get(step.key)?.shift();
    const planned = plannedStep(step, twin, { startMs: likely.startMs, isHeld: step === held });
    const open = waves.at(-1);
    if (open !== undefined && open.name === step.wave) open.steps.push(planned);
    else waves.push({ name: step.wave, steps: [planned] });
  }
  return waves;
}

function plannedStep(
  step: TracedStep,
  twin: TracedStep | undefined,
  { startMs, isHeld }: { readonly startMs: number; readonly isHeld: boolean },
): PlannedStep {
  const source = step.rules.find((answer) => answer.outcome !== 'ok' && answer.source !== undefined)?.source;
  // A plan cannot assume how long a person takes. If the plan ends at a wait, no simulated event ends this wait, also no window until its limit.
  const isTimed = step.kind !== 'approval' && !(isHeld && step.kind === 'wait') && !step.rules.some(isUntilPerson);
  return {
    kind: step.kind,
    ...defined({ zone: step.zone }),
    pods: step.pods,
    // Pods of the zone that are no part of the step can be unavailable too.
    ...defined({
      atOnce: step.atOnce === undefined ? undefined : Math.min(step.atOnce, step.pods.length),
      from: step.from,
      to: step.to,
      waitsFor: step.waitsFor,
    }),
    ...(step.gates.length === 0 ? {} : { gates: step.gates }),
    ...defined({ source }),
    startSeconds: seconds(step.startMs - startMs),
    ...(isTimed ? { p50Seconds: seconds(step.endMs - step.startMs) } : {}),
    // A wait for a window is shorter in `slow` if it starts later. The p90 duration is still at least the p50 duration.
    ...(isTimed && twin !== undefined ? { p90Seconds: seconds(Math.max(step.endMs - step.startMs, twin.endMs - twin.startMs)) } : {}),
    rules: step.rules,
  };
}

function zoneTotals(group: GroupDefinition, before: Snapshot, forward: Forward, steps: readonly PlannedStep[]): GroupPlan['zones'] {
  const { world, inNoWave, end, last } = forward;
  const own = world.snapshot.groups.find(({ name }) => name === group.name);
  const isMember = ({ name }: ZoneDefinition): boolean => own?.zones.some((one) => one.name === name) === true;
  const isReleased = !group.zones.some(isMember) && termsOf(group) !== undefined;
  const replicasIn = (snapshot: Snapshot, name: string): number => setNamed(snapshot, group.namespace, name)?.replicas ?? 0;
  return inWaveOrder(viewGroup(world.snapshot, group)).map((view) => {
    const { zone, outdated } = view;
    const rolled = steps.flatMap((step) => (step.kind === 'roll' && step.zone === zone.name ? step.pods : []));
    // The agent replaces no pod of a zone that leaves the group. The highest ordinals are replaced first, as in a step.
    const afterWait = (isMember(zone) ? podsAfterWait(group, view, forward) : []).map(({ name }) => name);
    const podsInNoWave = inNoWave.get(zone.name);
    const scale = end === 'done' ? undefined : last.steps.find((step) => step.kind !== 'roll' && step.zone === zone.name);
    const released = (isReleased ? outdated : []).map(({ name }) => name).reverse();
    return {
      zone: zone.name,
      statefulSet: zone.statefulSet,
      replicasBefore: presentReplicas(before, group.namespace, zone.statefulSet),
      replicasAfter: replicasIn(world.snapshot, zone.statefulSet),
      // A pod that is rolled back and later rolled out again restarts twice.
      restarts: rolled.length + afterWait.length + released.length,
      ...(afterWait.length === 0 ? {} : { afterWait }),
      ...(released.length === 0 ? {} : { released }),
      ...defined({ podsInNoWave, replicasAfterWait: scale?.to }),
    };
  });
}
