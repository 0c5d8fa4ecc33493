// Measures the runs of each group: active time, time without progress, and the durations of runs, waves and replacements of pods.
import { type GroupDecision, replacedBy } from '../../engine/decision.ts';
import { viewGroup, type ZoneView } from '../../engine/observe/view.ts';
import { activeMs, endedDurations, stalledSinceMs } from '../../engine/run/durations.ts';
import { ledgerOf } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRunRemembered, type TurnReport } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import type { ownMetrics } from './catalog.ts';
import type { InstrumentsOf } from './instruments.ts';

type RunInstruments = Pick<
  InstrumentsOf<typeof ownMetrics>,
  'runs' | 'runDuration' | 'waveDuration' | 'podDuration' | 'runActive' | 'runDeadline' | 'runStalled' | 'ledgerConflicts'
>;

/** A pod that was replaced and whose successor was not available yet. */
interface ReplacedPod {
  readonly uid: string;
  readonly zone: string;
  readonly ordinal: number;
  readonly atMs: number;
}

interface KnownRun {
  readonly labels: { readonly namespace: string; readonly group: string };
  /** True from the first run on. Before, a group has no durations, because their 39 series would be most of the metrics of a group. */
  readonly hasDurations: boolean;
  readonly deadlineMs?: number;
  readonly run?: GroupDecision['run'];
  /** Start of the time without progress in which the agent could continue; absent while the run waits as planned. */
  readonly stalledSinceMs?: number;
  readonly replaced: readonly ReplacedPod[];
}

export class RunMetrics {
  readonly #instruments: RunInstruments;
  readonly #groups = new Map<string, KnownRun>();

  constructor(instruments: RunInstruments) {
    this.#instruments = instruments;
  }

  /** Removes the series of all other groups. */
  setGroups(groups: readonly GroupDefinition[]): void {
    for (const key of removedKeys(this.#groups.keys(), groups)) {
      const labels = this.#groups.get(key)?.labels;
      this.#groups.delete(key);
      if (labels === undefined) continue;
      const { runs, runDuration, waveDuration, podDuration, ledgerConflicts } = this.#instruments;
      for (const outcome of outcomes) runs.remove({ ...labels, outcome });
      for (const one of [runDuration, waveDuration, podDuration, ledgerConflicts]) one.remove(labels);
    }
  }

  /** Removes all series, because another process now takes the turns. */
  forgetTurns(): void {
    this.setGroups([]);
  }

  turnEnded(report: TurnReport): void {
    const { group, snapshot, decision, ledgerConflicts = 0 } = report;
    const key = groupKey(group);
    const labels = { namespace: group.namespace, group: group.name };
    const before = this.#groups.get(key) ?? this.#startAtZero(labels);
    const hasDurations = before.hasDurations || decision?.run?.outcome === 'running';
    if (hasDurations && !before.hasDurations) this.#startDurations(labels);
    this.#instruments.ledgerConflicts.inc(labels, ledgerConflicts);
    this.#groups.set(key, before);
    if (decision === undefined) return;
    const { runMs: deadlineMs } = group.rollout.deadlines;
    const sinceMs = movableSinceMs(before, report, stalledSinceMs(snapshot, group, decision));
    this.#groups.set(key, {
      labels,
      hasDurations,
      replaced: this.#observePods(before, report, decision),
      ...defined({ run: decision.run, deadlineMs, stalledSinceMs: sinceMs }),
    });
    // A run that is not in the ledger ends again in a later turn.
    if (!isRunRemembered(report)) return;
    const { waveMs, run } = endedDurations(snapshot, decision);
    if (waveMs !== undefined) this.#instruments.waveDuration.observe(labels, waveMs / 1000);
    if (run !== undefined) this.#instruments.runs.inc({ ...labels, outcome: run.outcome });
    if (run?.outcome === 'completed') this.#instruments.runDuration.observe(labels, run.activeMs / 1000);
  }

  show(nowMs: number): void {
    const { runActive, runDeadline, runStalled } = this.#instruments;
    for (const one of [runActive, runDeadline, runStalled]) one.reset();
    for (const { labels, run, deadlineMs, stalledSinceMs: sinceMs = nowMs } of this.#groups.values()) {
      if (run?.outcome !== 'running') continue;
      runActive.set(labels, activeMs(run, nowMs) / 1000);
      runStalled.set(labels, Math.max(0, nowMs - sinceMs) / 1000);
      if (deadlineMs !== undefined) runDeadline.set(labels, deadlineMs / 1000);
    }
  }

  /** Creates the series, because the first increase of a series that does not exist yet is invisible in a query. */
  #startAtZero(labels: KnownRun['labels']): KnownRun {
    for (const outcome of outcomes) this.#instruments.runs.inc({ ...labels, outcome }, 0);
    return { labels, hasDurations: false, replaced: [] };
  }

  #startDurations(labels: KnownRun['labels']): void {
    const { runDuration, waveDuration, podDuration } = this.#instruments;
    for (const one of [runDuration, waveDuration, podDuration]) one.zero(labels);
  }

  /** Observes the replaced pods whose successors are available. Returns the other replaced pods of the run. */
  #observePods({ labels, run, replaced }: KnownRun, { group, snapshot, performed }: TurnReport, decision: GroupDecision) {
    const known = run?.id === decision.run?.id ? replaced : [];
    const { zones } = viewGroup(snapshot, group);
    const open = known.filter((pod) => {
      const view = zones.find(({ zone }) => zone.name === pod.zone);
      if (view === undefined || isRemoved(pod, view)) return false;
      if (!hasSuccessor(pod, view)) return true;
      this.#instruments.podDuration.observe(labels, Math.max(0, snapshot.nowMs - pod.atMs) / 1000);
      return false;
    });
    const now = performed.flatMap(({ action, result }) => (result === 'done' ? replacedBy(action) : []));
    // A pod that is replaced again before it was available has been down since its first replacement.
    const isNew = ({ zone, ordinal }: ReplacedPod): boolean => !open.some((pod) => pod.zone === zone && pod.ordinal === ordinal);
    const added = now.map(({ uid, zone, ordinal }) => ({ uid, zone, ordinal, atMs: snapshot.nowMs })).filter(isNew);
    return [...open, ...added];
  }
}

const outcomes = ['completed', 'failed'] as const;

/**
 * Returns `sinceMs`, or the end of the last planned wait if it is later: the time of a pause or a window is no time without progress. A new
 * process reads from the ledger if the run waited for a person or a window.
 */
function movableSinceMs({ run, stalledSinceMs: beforeMs }: KnownRun, report: TurnReport, sinceMs: number | undefined): number | undefined {
  const { group, snapshot, decision } = report;
  if (sinceMs === undefined) return undefined;
  const isKnown = run !== undefined && run.id === decision?.run?.id;
  const stored = ledgerOf(snapshot, group).run;
  const waited = isKnown ? beforeMs === undefined : stored?.outcome === 'running' && stored.id === decision?.run?.id && !stored.isMovable;
  return Math.max(sinceMs, waited ? snapshot.nowMs : isKnown ? (beforeMs ?? 0) : 0);
}

function hasSuccessor({ uid, ordinal }: ReplacedPod, { pods, available }: ZoneView): boolean {
  return available.has(ordinal) && pods.some((pod) => pod.ordinal === ordinal && pod.uid !== uid);
}

/** Reports whether the StatefulSet no longer has the ordinal. */
function isRemoved({ ordinal }: ReplacedPod, { set }: ZoneView): boolean {
  return set !== undefined && (ordinal < set.firstOrdinal || ordinal >= set.firstOrdinal + set.replicas);
}
