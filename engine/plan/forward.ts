// Simulates a group for plans, estimates and `simulate`: decides, acts on the model and lets time pass until nothing is left to do.
import { evaluateCondition } from '../../policies/condition/condition.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { policiesFor } from '../../policies/join.ts';
import { asksForApproval } from '../../policies/rollout/rules-without-exception.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { contextOf, type GroupContext, minIntervalOf } from '../context.ts';
import { decideGroup, unnamedChangeMs } from '../decide/decide.ts';
import { wasAsked } from '../decide/preparations.ts';
import { isOfStop } from '../decide/stops.ts';
import { type GroupDecision, isReplacement, type RuleResult } from '../decision.ts';
import { decidedLedger, nextClaimEndMs, withObservedLedgers } from '../ledger/ledger.ts';
import { blocks, earliest, earliestAfter } from '../rule.ts';
import { judgeReading } from '../rules/gate.ts';
import { digestOfWaves } from '../run/requests.ts';
import {
  type GateReading,
  type GateReadingsView,
  type IntentView,
  isUnknown,
  ledgerOf,
  type MetricView,
  type Preparation,
  type Snapshot,
} from '../snapshot.ts';
import { modelReadings, type World, type WorldInput } from '../world/model.ts';
import { failsToPrepare, nextEventMs, step } from '../world/world.ts';
import type { Assumptions } from './document.ts';
import { approvableWait } from './steps.ts';

export interface Turn {
  readonly nowMs: number;
  readonly decision: GroupDecision;
}

export interface ForwardRun {
  readonly turns: number;
  readonly last: Turn;
  readonly world: World;
  /** `done`: nothing is left to do. `held`: no event can end the wait. `limit`: the simulation reached a limit of time or turns. */
  readonly end: 'done' | 'held' | 'limit';
}

/** The limits of time and turns, at which the simulation stops with the end `limit`. */
const horizonMs = 400 * 24 * 3_600_000;
const usualMaxTurns = 50_000;

/** The maximum number of turns at one instant. More turns mean that an action has no effect and is decided again without end. */
const maxTurnsAtOnce = 500;

/** The time within which a pod normally answers. */
const answerWithinMs = 2_000;
const preparationRules: ReadonlySet<string> = new Set(['delayed-downscale', 'prepare-downscale']);

interface ScheduledEvent {
  readonly atMs: number;
  readonly input: Exclude<WorldInput, { kind: 'action' | 'deletePods' | 'elapse' }>;
}

export interface ForwardOptions {
  /** Receives every decision with the world for which it was made. */
  readonly onTurn?: (turn: Turn, world: World) => void;
  readonly events?: readonly ScheduledEvent[];
  /** The instant at which the simulation stops; absent: 400 days after its start. */
  readonly untilMs?: number;
  /** The maximum number of turns; absent: 50,000. */
  readonly maxTurns?: number;
  /** True if deadlines fail the run; absent: false, because the durations are assumed. */
  readonly hasDeadlines?: boolean;
}

/** Simulates one group until it is done, blocked without end, or at a limit. */
export function runForward(
  start: World,
  group: GroupDefinition,
  { onTurn, events = [], untilMs, maxTurns = usualMaxTurns, hasDeadlines = false }: ForwardOptions = {},
): ForwardRun {
  const pending = [...events].sort((a, b) => a.atMs - b.atMs);
  const endMs = untilMs ?? start.snapshot.nowMs + horizonMs;
  let world = withAssumedMetrics(withDeadlines(withFailingPreparations(start, group), hasDeadlines), group);
  const pace = paceOf(contextOf(start.snapshot, group));
  let turnsAtOnce = 0;
  let before: Pick<GroupDecision, 'wantedReadings'> = { wantedReadings: [] };
  for (let count = 0; ; count += 1) {
    const reached = applyDueEvents(world, pending);
    world = withNextReadings({ ...reached, snapshot: withObservedLedgers(reached.snapshot) }, group, before);
    const decision = decideGroup(world.snapshot, group);
    before = decision;
    const turn: Turn = { nowMs: world.snapshot.nowMs, decision };
    const run = { turns: count + 1, last: turn };
    onTurn?.(turn, world);
    const recorded = withDecidedLedger(world, group, decision);
    const isDone = decision.outcome === 'done' && pending.length === 0 && nextEventMs(world) === undefined;
    if (isDone) return { ...run, world: recorded, end: 'done' };
    const acted = act(recorded, decision);
    const approved = withApproval(acted, group, decision);
    const isInstant = approved !== acted || decidesAgain(decision, pace);
    const intervalEndMs = intervalEnd(decision, pace, turn.nowMs);
    const wakeAtMs = earliest([
      wakeOf(decision, world, group),
      nextReadingMs(approved, group, decision),
      nextClaimEndMs(approved.snapshot),
      pending[0]?.atMs,
      intervalEndMs,
    ]);
    const next = isInstant ? approved : elapse(approved, wakeAtMs, canOverlap(pace, intervalEndMs));
    if (next === undefined) return { ...run, world: approved, end: 'held' };
    turnsAtOnce = isInstant ? turnsAtOnce + 1 : 0;
    if (count >= maxTurns || turnsAtOnce >= maxTurnsAtOnce || next.snapshot.nowMs > endMs) return { ...run, world: approved, end: 'limit' };
    world = next;
  }
}

/**
 * Returns the instant at which time may change what the group does. If only a person ends a stop of the whole group or continues a failed run,
 * other stops that begin and end until then change nothing, so their instants do not count. If preparations or gates
 * fail, the next ones fail too.
 */
function wakeOf(decision: GroupDecision, world: World, group: GroupDefinition): number | undefined {
  const { steps, stops, wakeAtMs } = decision;
  const isStopped = stops.some(({ rule, endsBy }) => endsBy === 'person' || rule === 'run-failed');
  const isOfAStop = (answer: RuleResult): boolean => isStopped && stops.some((stop) => isOfStop(answer, stop));
  const hasFailingGate = failingGates(world, group, decision.wantedReadings).size > 0;
  const isFailing = ({ rule }: RuleResult, zone: string | undefined): boolean =>
    rule === 'gate' ? hasFailingGate : preparationRules.has(rule) && failsToPrepare(world, zone);
  if (!isStopped && !steps.some(({ zone, results }) => results.some((answer) => isFailing(answer, zone)))) return wakeAtMs;
  const waits = steps.flatMap(({ kind, zone, results }) =>
    results.filter((answer) => blocks(answer) && !(kind === 'roll' && isOfAStop(answer)) && !isFailing(answer, zone)),
  );
  const { snapshot } = world;
  const unnamedMs = unnamedChangeMs(contextOf(snapshot, group), decision);
  return earliestAfter(snapshot.nowMs, [unnamedMs, ...waits.map(({ earliestMs }) => earliestMs)]);
}

function applyDueEvents(start: World, pending: ScheduledEvent[]): World {
  let world = start;
  for (let event = pending[0]; event !== undefined && event.atMs <= world.snapshot.nowMs; event = pending[0]) {
    world = step(world, event.input);
    pending.shift();
  }
  return world;
}

/**
 * Returns the world in which the preparations of a zone fail if its last call has failed or has no answer: nothing in the cluster mends the
 * endpoint. The agent stores a failure only with its next write, so a call without an answer is often a call that failed.
 */
function withFailingPreparations(world: World, group: GroupDefinition): World {
  const { snapshot } = world;
  const isUnanswered = (entry: Preparation): boolean =>
    entry.state === 'asked' && wasAsked(entry) && snapshot.nowMs - entry.seenMs >= answerWithinMs;
  // The ledger keeps a withdrawn preparation, which belongs to an earlier scale-down.
  const isFailed = ({ state, isWithdrawn }: Preparation): boolean => state === 'failed' && isWithdrawn === undefined;
  const failed = ledgerOf(snapshot, group).preparations.filter((entry) => isFailed(entry) || isUnanswered(entry));
  return failed.length === 0 ? world : { ...world, failingZones: new Set(failed.map(({ zone }) => zone)) };
}

function withDeadlines(world: World, hasDeadlines: boolean): World {
  return hasDeadlines ? world : { ...world, snapshot: extended(world.snapshot, { hasAssumedTimes: true as const }) };
}

/** When a pod can be replaced before the successor of another pod is ready. */
interface Pace {
  readonly intervalMs: number;
  /** True if another pod can be replaced at the same instant: in another zone or within the interval, both by an exception. */
  readonly isAtOnce: boolean;
}

/** Returns the pace of a group. The simulation skips decisions that can replace no pod, because they cost most of the computing time. */
function paceOf(context: GroupContext): Pace {
  const intervalMs = minIntervalOf(context);
  const isAtOnce = context.exceptions.some(({ rule }) => rule === 'other-zones-ready' || rule === 'min-interval');
  return { intervalMs, isAtOnce };
}

/** Reports whether another pod can be replaced as soon as the successor exists, before it is ready. */
function canOverlap({ intervalMs, isAtOnce }: Pace, intervalEndMs: number | undefined): boolean {
  return (isAtOnce || intervalMs > 0) && intervalEndMs === undefined;
}

/** Reports whether the group decides again at once. After a pod is replaced, time passes, unless another pod can be replaced at once. */
function decidesAgain({ actions }: GroupDecision, { isAtOnce }: Pace): boolean {
  return actions.some((action) => isAtOnce || !isReplacement(action));
}

/** Returns the end of the minimum interval that blocks the next replacement; undefined if no interval blocks it. */
function intervalEnd({ actions, waits }: GroupDecision, { intervalMs, isAtOnce }: Pace, nowMs: number): number | undefined {
  if (intervalMs === 0 || isAtOnce) return undefined;
  return actions.some(isReplacement) ? nowMs + intervalMs : waits.find(({ rule }) => rule === 'min-interval')?.earliestMs;
}

/** Advances time until `untilMs` or a change of status counters; undefined if no event is left. */
function elapse(start: World, untilMs: number | undefined, overlaps: boolean): World | undefined {
  let world = start;
  for (let event = nextEventMs(world); ; event = nextEventMs(world)) {
    const { nowMs } = world.snapshot;
    // A pod whose measured times are 0 changes at once.
    const isDue = event !== undefined && event <= nowMs;
    const next = isDue ? nowMs : earliest([event, untilMs]);
    if (next === undefined || (!isDue && next <= nowMs)) return world === start ? undefined : world;
    world = step(world, { kind: 'elapse', toMs: next });
    if (next === untilMs || countersOf(world, overlaps) !== countersOf(start, overlaps)) return world;
  }
}

function countersOf({ snapshot }: World, countsUpdated: boolean): string {
  const counters = snapshot.statefulSets.map(({ status: { replicas, readyReplicas, updatedReplicas } }) =>
    countsUpdated ? [replicas, readyReplicas, updatedReplicas] : [replicas, readyReplicas],
  );
  return counters.join(' ');
}

function act(world: World, decision: GroupDecision): World {
  const deletions = decision.actions.filter((action) => action.kind === 'deletePod');
  if (deletions.length === decision.actions.length && deletions.length > 0) return step(world, { kind: 'deletePods', deletions });
  let current = world;
  for (const action of decision.actions) current = step(current, { kind: 'action', action });
  return current;
}

function withDecidedLedger(world: World, group: GroupDefinition, decision: GroupDecision): World {
  const ledger = ledgerOf(world.snapshot, group);
  const next = decidedLedger(ledger, decision, { snapshot: world.snapshot, group });
  if (next === ledger) return world;
  const others = world.snapshot.ledgers.filter((candidate) => candidate.namespace !== group.namespace || candidate.group !== group.name);
  return { ...world, snapshot: { ...world.snapshot, ledgers: [...others, next] } };
}

/** Returns the world with the approvals for which this decision waits. The plan assumes that people approve at once. */
function withApproval(world: World, group: GroupDefinition, decision: GroupDecision): World {
  if (decision.actions.length > 0 || world.assumptions.approvals !== 'given' || isUnknown(world.snapshot.intents)) return world;
  const { intents, nowMs } = world.snapshot;
  const given: IntentView[] = [];
  for (const request of approvalsAsked(world.snapshot, group, decision)) {
    for (let person = 1; person <= request.count; person += 1) {
      const name = ['assumed', request.wave ?? request.rule, ...request.from, person, nowMs].join('-');
      const requestedBy = { user: `person ${person}`, groups: request.from, atMs: nowMs };
      // As `approve` does, so that the approval does not count for the run of a later retry.
      const runId = request.wave === undefined ? undefined : decision.run?.id;
      const about = defined({ wave: request.wave, rule: request.rule, digest: request.digest, runId });
      if ([...intents, ...given].some((intent) => intent.name === name)) continue;
      given.push({ namespace: group.namespace, name, group: group.name, action: 'approve', ...about, requestedBy });
    }
  }
  return given.length === 0 ? world : { ...world, snapshot: { ...world.snapshot, intents: [...intents, ...given] } };
}

interface AskedApproval {
  readonly wave?: string;
  readonly rule?: string;
  readonly digest: string;
  readonly count: number;
  readonly from: readonly string[];
}

function approvalsAsked(snapshot: Snapshot, group: GroupDefinition, decision: GroupDecision): readonly AskedApproval[] {
  const wait = approvableWait(decision);
  if (wait === undefined) return [];
  const { digest } = wait;
  const asked: AskedApproval[] = [];
  const wave = group.rollout.waves.find((candidate) => candidate.name === decision.wave?.name);
  for (const approval of wait.rule === 'approval' ? [wave?.before.approval, wave?.after.approval] : []) {
    if (approval !== undefined && wave !== undefined)
      asked.push({ wave: wave.name, digest: digestOfWaves(group), count: approval.count, from: approval.from });
  }
  for (const policy of policiesFor(snapshot.policies, group, snapshot.agentNamespace)) {
    for (const rule of policy.rules) {
      const id = `${policy.name}/${rule.name}`;
      if (id === wait.rule && digest !== undefined && asksForApproval(rule))
        asked.push({ rule: id, digest, count: rule.approval.count, from: rule.approval.from });
    }
  }
  return asked;
}

/** Returns the world with the readings up to now that a decision asks for. */
export function withReadings(world: World, group: GroupDefinition, { wantedReadings }: Pick<GroupDecision, 'wantedReadings'>): World {
  if (wantedReadings.length === 0) return world;
  const { assumptions, snapshot } = world;
  const views = wantedReadings.flatMap(({ gate: name, fromMs }) => {
    const gate = group.gates.find((one) => one.name === name);
    const readings = gate === undefined ? [] : modelReadings(gate, fromMs, snapshot.nowMs, assumptions.gates);
    return readings.length === 0 ? [] : [{ namespace: group.namespace, group: group.name, gate: name, readings }];
  });
  const others = snapshot.gateReadings.filter((view) => !isOfGroup(view, group) || !views.some(({ gate }) => gate === view.gate));
  return { ...world, snapshot: { ...snapshot, gateReadings: [...others, ...views] } };
}

/**
 * Returns the world with the readings up to now. If the last reading of a gate since the instant from which it counts is no success, the next
 * ones have the same result: nothing in the cluster mends the measurement. A failure is not counted again.
 */
function withNextReadings(world: World, group: GroupDefinition, { wantedReadings }: Pick<GroupDecision, 'wantedReadings'>): World {
  const failing = failingGates(world, group, wantedReadings);
  const read = withReadings(world, group, { wantedReadings: wantedReadings.filter(({ gate }) => !failing.has(gate)) });
  if (failing.size === 0) return read;
  const { nowMs } = world.snapshot;
  const gateReadings = read.snapshot.gateReadings.map((view) => {
    const last = failing.get(view.gate);
    if (last === undefined || !isOfGroup(view, group)) return view;
    return { ...view, readings: view.readings.map((reading) => (reading === last ? { ...reading, atMs: nowMs } : reading)) };
  });
  return { ...read, snapshot: { ...read.snapshot, gateReadings } };
}

/** Returns the last readings of the gates whose last reading is no success. */
function failingGates(world: World, group: GroupDefinition, wanted: GroupDecision['wantedReadings']): ReadonlyMap<string, GateReading> {
  const { assumptions, snapshot } = world;
  if (assumptions.gates === 'fail') return new Map();
  return new Map(
    wanted.flatMap(({ gate: name, fromMs }): [string, GateReading][] => {
      const gate = group.gates.find((one) => one.name === name);
      const last = snapshot.gateReadings.find((view) => view.gate === name && isOfGroup(view, group))?.readings.at(-1);
      if (gate === undefined || last === undefined || last.atMs < fromMs) return [];
      return judgeReading(gate, last, last.atMs) === 'success' ? [] : [[name, last]];
    }),
  );
}

function isOfGroup(view: GateReadingsView, { namespace, name }: GroupDefinition): boolean {
  return view.namespace === namespace && view.group === name;
}

function nextReadingMs(world: World, group: GroupDefinition, decision: GroupDecision): number | undefined {
  const { nowMs } = world.snapshot;
  // No reading continues a failed run. Only a person does.
  if (decision.run?.outcome === 'failed') return undefined;
  // While a status is older than its spec, gates are not evaluated, so a reading does not end this wait either.
  if (decision.waits.length > 0 && decision.waits.every(({ rule }) => rule === 'view-complete')) return undefined;
  // The assumed readings of a gate that passes are the same as before, so they end no other wait.
  if (!decision.steps.some(({ results }) => results.some((answer) => answer.rule === 'gate' && blocks(answer)))) return undefined;
  const failing = failingGates(world, group, decision.wantedReadings);
  return earliest(
    decision.wantedReadings.map(({ gate: name, fromMs }) => {
      if (failing.has(name)) return undefined;
      const everyMs = group.gates.find((gate) => gate.name === name)?.everyMs ?? 60_000;
      return fromMs > nowMs ? fromMs : fromMs + (Math.floor((nowMs - fromMs) / everyMs) + 1) * everyMs;
    }),
  );
}

/** The values of a metric that are tried, in this order, until no rule of its policy applies. */
const quietValues: readonly number[] = [0, 1, 100, 1_000_000, -1];

/**
 * Returns the assumed metrics by `policy/input`: the given value; for a metric that was not read, the first quiet value at which no rule
 * applies, if any.
 */
export function assumedMetrics(
  policies: readonly PolicyDefinition[],
  { given, read }: { readonly given: Assumptions['metrics']; readonly read: readonly MetricView[] },
  group: GroupDefinition,
): Readonly<Record<string, number>> {
  const values = policies.flatMap((policy) =>
    Object.keys(policy.metrics).flatMap((input): [string, number][] => {
      const name = `${policy.name}/${input}`;
      const value = given[name] ?? (indexOfReading(read, policy, input) < 0 ? quietValue(policy, input, group) : undefined);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return Object.fromEntries(values);
}

function indexOfReading(read: readonly MetricView[], { namespace, name }: PolicyDefinition, input: string): number {
  return read.findIndex((metric) => metric.namespace === namespace && metric.policy === name && metric.input === input);
}

function validValue(reading: MetricView | undefined, sinceMs: number): MetricView['value'] | undefined {
  return reading === undefined || reading.atMs < sinceMs ? undefined : reading.value;
}

/** Returns the world with the assumed metrics. They and the other readings that are valid now stay valid during the whole simulation. */
export function withAssumedMetrics(world: World, group: GroupDefinition): World {
  const { nowMs } = world.snapshot;
  const policies = policiesFor(world.snapshot.policies, group, world.snapshot.agentNamespace);
  const metrics: MetricView[] = [...world.snapshot.metrics];
  const { metrics: given } = world.assumptions;
  const assumed = assumedMetrics(policies, { given, read: metrics }, group);
  const atMs = nowMs + horizonMs;
  for (const policy of policies) {
    const { namespace, name } = policy;
    for (const [input, { maxAgeMs }] of Object.entries(policy.metrics)) {
      const index = indexOfReading(metrics, policy, input);
      const reading = metrics[index];
      // A policy of the same name in another namespace may have no reading.
      const value = (reading === undefined ? assumed : given)[`${name}/${input}`] ?? validValue(reading, nowMs - maxAgeMs);
      if (value !== undefined) metrics[index < 0 ? metrics.length : index] = { namespace, policy: name, input, value, atMs };
    }
  }
  return { ...world, snapshot: { ...world.snapshot, metrics } };
}

function quietValue(policy: PolicyDefinition, input: string, group: GroupDefinition): number | undefined {
  return quietValues.find((value) => {
    const metrics = Object.fromEntries(
      Object.keys(policy.metrics).map((name) => [name, name === input ? value : { unknown: 'not assumed' }]),
    );
    const data = { inputs: { metrics }, group: { name: group.name, namespace: group.namespace } };
    return policy.rules.every((rule) => {
      if (rule.when === undefined || !JSON.stringify(rule.when).includes(`inputs.metrics.${input}`)) return true;
      const answer = evaluateCondition(rule.when, data, 0);
      return answer.kind === 'value' && !answer.isTrue;
    });
  });
}
