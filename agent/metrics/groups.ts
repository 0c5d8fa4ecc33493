// Collects the metrics of each group between two scrapes: the agent's own, and the reconcile metrics of grafana/rollout-operator.

import { unavailableLimit } from '../../engine/amount.ts';
import type { GroupDecision, RuleResult } from '../../engine/decision.ts';
import { isFailedPass } from '../../engine/publish/failed-pass.ts';
import { onlyWarns, reasonOf } from '../../engine/rules/catalog.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Phase, phases } from '../../policies/rollout/phases.ts';
import type { TurnReport } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import type { originalMetrics, ownMetrics } from './catalog.ts';
import type { InstrumentsOf } from './instruments.ts';

/** Groups beyond this number have no series. */
const groupSeriesLimit = 1000;

/** The maximum number of blocking rules with series, for each group. */
const waitSeriesLimit = 50;

/** One instant on both clocks: the wall clock for timestamps, the monotonic clock for durations. */
interface Instant {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** The last decision. Its snapshot is not kept, because a snapshot contains the whole namespace. */
interface LastDecision {
  readonly group: GroupDefinition;
  readonly decision: GroupDecision;
  readonly snapshotMs: number;
}

interface KnownGroup {
  readonly namespace: string;
  readonly name: string;
  last?: LastDecision;
  phase?: { readonly name: Phase; readonly since: Instant };
  readonly phaseMs: Map<Phase, number>;
  readonly waitsSinceMs: Map<string, number>;
  readonly turns: { ok: number; failed: number };
  readonly actions: Map<string, { readonly kind: string; readonly result: string; count: number }>;
}

/** Sets every series of a group at each scrape, so that no series outlives its group. */
export class GroupMetrics {
  readonly #groups = new Map<string, KnownGroup>();
  #defined = 0;

  /** Sets the groups that have series. The series of all other groups end. */
  setGroups(groups: readonly GroupDefinition[]): void {
    this.#defined = groups.length;
    for (const key of removedKeys(this.#groups.keys(), groups)) this.#groups.delete(key);
    for (const group of groups) this.#known(group);
  }

  /** Forgets all turns, because another process now takes the turns. The groups stay. */
  forgetTurns(): void {
    for (const [key, { namespace, name }] of this.#groups) this.#groups.set(key, withoutTurns(namespace, name));
  }

  /** Counts a turn. Returns false if the group has no series. */
  turnEnded(report: TurnReport, now: Instant): boolean {
    const known = this.#known(report.group);
    if (known === undefined) return false;
    known.turns[report.error === undefined ? 'ok' : 'failed'] += 1;
    for (const { action, result } of report.performed) {
      const key = `${action.kind} ${result}`;
      const counted = known.actions.get(key) ?? { kind: action.kind, result, count: 0 };
      counted.count += 1;
      known.actions.set(key, counted);
    }
    const { decision } = report;
    if (decision !== undefined) noteDecision(known, report, decision, now);
    return true;
  }

  #known(group: GroupDefinition): KnownGroup | undefined {
    const key = groupKey(group);
    const known = this.#groups.get(key);
    if (known !== undefined || this.#groups.size >= groupSeriesLimit) return known;
    const made = withoutTurns(group.namespace, group.name);
    this.#groups.set(key, made);
    return made;
  }

  show(instruments: GroupInstruments, now: Instant): void {
    const { state, phaseStarted, phaseSeconds, waits, stops, warnings, permitted, waitStarted, budgetLimit, budgetUsed, pods } =
      instruments;
    const { turns, actions, drift, snapshotAge } = instruments;
    for (const one of [state, phaseStarted, waits, stops, warnings, permitted, waitStarted]) one.reset();
    for (const one of [budgetLimit, budgetUsed, pods, drift, snapshotAge]) one.reset();
    for (const one of [phaseSeconds, turns, actions]) one.reset();
    instruments.groups.set(this.#defined);
    instruments.groupsUncounted.set(Math.max(0, this.#defined - this.#groups.size));
    for (const known of this.#groups.values()) {
      const labels = { namespace: known.namespace, group: known.name };
      for (const result of ['ok', 'failed'] as const) turns.inc({ ...labels, result }, known.turns[result]);
      for (const { kind, result, count } of known.actions.values()) actions.inc({ ...labels, kind, result }, count);
      if (known.phase === undefined || known.last === undefined) continue;
      showPhases(known, labels, now, instruments);
      phaseStarted.set(labels, known.phase.since.wallMs / 1000);
      snapshotAge.set(labels, Math.max(0, now.wallMs - known.last.snapshotMs) / 1000);
      for (const { rule, outcome } of blockingRules(known.last)) {
        waits.set({ ...labels, rule, reason: reasonOf(rule), outcome }, 1);
        waitStarted.set({ ...labels, rule }, (known.waitsSinceMs.get(rule) ?? now.wallMs) / 1000);
      }
      showResults(known.last.decision, labels, { stops, warnings, permitted });
      showZones(known.last, labels, { budgetLimit, budgetUsed, pods, drift });
    }
  }
}

/** Keeps the decision, and since when the group has its phase and each rule blocks. */
function noteDecision(known: KnownGroup, { group, snapshot }: TurnReport, decision: GroupDecision, now: Instant): void {
  known.last = { group, decision, snapshotMs: snapshot.nowMs };
  if (known.phase?.name !== decision.phase) {
    if (known.phase !== undefined) known.phaseMs.set(known.phase.name, timeIn(known, known.phase.name, now));
    known.phase = { name: decision.phase, since: now };
  }
  const blocking = new Set(decision.waits.map(({ rule }) => rule));
  for (const rule of known.waitsSinceMs.keys()) if (!blocking.has(rule)) known.waitsSinceMs.delete(rule);
  for (const rule of blocking) if (!known.waitsSinceMs.has(rule)) known.waitsSinceMs.set(rule, now.wallMs);
}

type GroupInstruments = InstrumentsOf<typeof ownMetrics>;

function showResults(
  { stops, warnings, permitted = [] }: GroupDecision,
  labels: { readonly namespace: string; readonly group: string },
  gauges: Pick<GroupInstruments, 'stops' | 'warnings' | 'permitted'>,
): void {
  showRules(gauges.stops, labels, stops);
  const only = warnings.filter(({ rule }) => onlyWarns(rule));
  showRules(gauges.warnings, labels, only);
  for (const { rule, exception = '' } of permitted.slice(0, waitSeriesLimit)) gauges.permitted.set({ ...labels, rule, exception }, 1);
}

function showRules(
  gauge: GroupInstruments['stops'],
  labels: { readonly namespace: string; readonly group: string },
  results: readonly { readonly rule: string }[],
): void {
  const rules = new Set(results.map(({ rule }) => rule));
  for (const rule of [...rules].slice(0, waitSeriesLimit)) gauge.set({ ...labels, rule, reason: reasonOf(rule) }, 1);
}

function withoutTurns(namespace: string, name: string): KnownGroup {
  return { namespace, name, phaseMs: new Map(), waitsSinceMs: new Map(), turns: { ok: 0, failed: 0 }, actions: new Map() };
}

function timeIn(known: KnownGroup, phase: Phase, now: Instant): number {
  const running = known.phase?.name === phase ? now.monotonicMs - known.phase.since.monotonicMs : 0;
  return (known.phaseMs.get(phase) ?? 0) + running;
}

function showPhases(
  known: KnownGroup,
  labels: { readonly namespace: string; readonly group: string },
  now: Instant,
  { state, phaseSeconds }: GroupInstruments,
): void {
  for (const phase of phases) {
    state.set({ ...labels, phase }, phase === known.phase?.name ? 1 : 0);
    const ms = timeIn(known, phase, now);
    if (ms > 0) phaseSeconds.inc({ ...labels, phase }, ms / 1000);
  }
}

function blockingRules({ decision }: LastDecision): readonly RuleResult[] {
  const byRule = new Map(decision.waits.map((wait) => [wait.rule, wait]));
  return [...byRule.values()].slice(0, waitSeriesLimit);
}

function showZones(
  { group, decision }: LastDecision,
  labels: { readonly namespace: string; readonly group: string },
  { budgetLimit, budgetUsed, pods, drift }: Pick<GroupInstruments, 'budgetLimit' | 'budgetUsed' | 'pods' | 'drift'>,
): void {
  for (const { zone, replicas, updated, available, drift: drifted } of decision.zones) {
    pods.set({ ...labels, zone, state: 'desired' }, replicas);
    pods.set({ ...labels, zone, state: 'updated' }, updated);
    pods.set({ ...labels, zone, state: 'available' }, available);
    drift.set({ ...labels, zone }, drifted?.count ?? 0);
    budgetUsed.set({ ...labels, zone }, Math.max(0, replicas - available));
    const limit = group.zones.find(({ name }) => name === zone)?.maxUnavailable ?? 'fromBudget';
    if (limit !== 'fromBudget') budgetLimit.set({ ...labels, zone }, unavailableLimit(limit, replicas));
  }
}

type Instruments = Pick<InstrumentsOf<typeof originalMetrics>, 'reconciles' | 'reconcilesFailed' | 'reconcileDuration' | 'lastSuccess'>;

/** Counts turns as reconciles under the value of the group label. Groups with the same value share their series, also across namespaces. */
export class OriginalGroupMetrics {
  readonly #instruments: Instruments;
  /** The value of the label `rollout-group`, by namespace and group. */
  readonly #labels = new Map<string, string>();

  constructor(instruments: Instruments) {
    this.#instruments = instruments;
  }

  turnEnded(report: TurnReport, nowMs: number): void {
    const key = groupKey(report.group);
    const label = labelOf(report) ?? this.#labels.get(key);
    if (label === undefined || (!this.#labels.has(key) && this.#labels.size >= groupSeriesLimit)) return;
    const isNew = ![...this.#labels.values()].includes(label);
    const before = this.#labels.get(key);
    this.#labels.set(key, label);
    if (before !== undefined && before !== label) this.#remove(before);
    const { reconciles, reconcilesFailed, reconcileDuration, lastSuccess } = this.#instruments;
    const labels = { rollout_group: label };
    reconciles.inc(labels);
    const isFailed = isFailedPass(report);
    reconcilesFailed.inc(labels, isFailed ? 1 : 0);
    reconcileDuration.observe(labels, report.durationMs / 1000);
    if (!isFailed) lastSuccess.set(labels, nowMs / 1000);
    else if (isNew) lastSuccess.set(labels, 0);
  }

  /** Removes all series, because another process now takes the turns. */
  forgetTurns(): void {
    this.setGroups([]);
  }

  /** Removes the series of deleted groups, unless another group has the same label value. */
  setGroups(groups: readonly GroupDefinition[]): void {
    for (const key of removedKeys(this.#labels.keys(), groups)) {
      const label = this.#labels.get(key);
      this.#labels.delete(key);
      if (label !== undefined) this.#remove(label);
    }
  }

  #remove(label: string): void {
    if ([...this.#labels.values()].includes(label)) return;
    const { reconciles, reconcilesFailed, reconcileDuration, lastSuccess } = this.#instruments;
    for (const one of [reconciles, reconcilesFailed, reconcileDuration, lastSuccess]) one.remove({ rollout_group: label });
  }
}

function labelOf({ group, snapshot }: TurnReport): string | undefined {
  const members = new Set(group.zones.map(({ statefulSet }) => statefulSet));
  return snapshot.statefulSets.find(({ namespace, name, labels }) => {
    return namespace === group.namespace && members.has(name) && labels['rollout-group'] !== undefined;
  })?.labels['rollout-group'];
}
