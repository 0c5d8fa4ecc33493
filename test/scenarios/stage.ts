// What a scenario plays on: the model of a cluster, the policies in force, what people asked, and what the observer can see of it all.
import { defaultAssumptions } from '../../engine/plan/document.ts';
import {
  emptySnapshot,
  type GateReading,
  type IntentView,
  type Known,
  type Ledger,
  type MetricView,
  type Snapshot,
} from '../../engine/snapshot.ts';
import type { World, WorldInput } from '../../engine/world/model.ts';
import { createWorld, nextEventMs, step } from '../../engine/world/world.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import type { GroupDefinition, PolicyBundle, ZoneDefinition } from '../../policies/definition.ts';
import type { LoadedDocument } from '../../policies/load.ts';
import { resolvePolicies } from '../../policies/resolve/resolve.ts';
import { rawStatefulSet } from './raw-statefulset.ts';

/** Everything lives in this namespace. */
export const namespace = 'mimir';

/** A Monday at noon. */
const startMs = Date.parse('2026-03-02T12:00:00Z');

/** The state of a scenario. Commands change it. */
export interface Stage {
  world: World;
  readonly documents: Map<string, LoadedDocument>;
  /** What the documents and the labels of StatefulSets came to when they were last resolved. */
  resolved?: { readonly key: string; readonly bundle: PolicyBundle };
  intents: readonly IntentView[];
  /** What a gate answers from now on, by name. */
  readonly gateAnswers: Map<string, GateReading>;
  readonly readings: Map<string, readonly GateReading[]>;
  /** Gates whose readings the last decision asked for, by group. */
  readonly wanted: Map<string, readonly { readonly gate: string; readonly fromMs: number }[]>;
  readonly metrics: Map<string, Known<number>>;
  /** StatefulSets whose pods cannot be read, and other parts by name, with the reason. */
  readonly unreadable: Map<string, string>;
  /** StatefulSets whose status is older than their spec. */
  readonly staleStatus: Set<string>;
  /** Pods that fail when they are asked to prepare. */
  readonly refusing: Set<string>;
  /** Decisions made so far, and what they violated. */
  decisions: number;
  readonly violations: string[];
}

export function newStage(): Stage {
  return {
    world: createWorld(emptySnapshot(startMs), defaultAssumptions, 'p50'),
    documents: new Map(),
    intents: [],
    gateAnswers: new Map(),
    readings: new Map(),
    wanted: new Map(),
    metrics: new Map(),
    unreadable: new Map(),
    staleStatus: new Set(),
    refusing: new Set(),
    decisions: 0,
    violations: [],
  };
}

export function nowMs(stage: Stage): number {
  return stage.world.snapshot.nowMs;
}

/** Moves the model by one input. */
export function moveWorld(stage: Stage, input: WorldInput): void {
  stage.world = step(stage.world, input);
}

/** Changes what the model holds beside pods and StatefulSets. */
export function changeSnapshot(stage: Stage, change: Partial<Snapshot>): void {
  stage.world = { ...stage.world, snapshot: { ...stage.world.snapshot, ...change } };
}

/** The groups, policies and exceptions in force now: adoption follows every change of an annotation. */
export function policiesNow(stage: Stage): PolicyBundle {
  const { statefulSets } = stage.world.snapshot;
  const raw = statefulSets.map(rawStatefulSet);
  const key = JSON.stringify([raw, [...stage.documents.values()].map(({ value }) => value)]);
  if (stage.resolved?.key !== key) {
    const { bundle } = resolvePolicies([...stage.documents.values()], { statefulSets, adoption: adoptGroups(raw) });
    stage.resolved = { key, bundle };
  }
  return stage.resolved.bundle;
}

/** Gives the model the groups in force, which decide whose ledger a write is recorded in. */
export function applyPolicies(stage: Stage): void {
  const { groups, policies, exceptions } = policiesNow(stage);
  changeSnapshot(stage, { groups, policies, exceptions, policyDigest: `${stage.documents.size} documents` });
}

/** What an observer sees at this instant. */
export function observe(stage: Stage): Snapshot {
  applyPolicies(stage);
  const { snapshot } = stage.world;
  const reasonFor = (what: string): string | undefined => stage.unreadable.get(what);
  const unknownOr = <Value>(what: string, value: Known<Value>): Known<Value> => {
    const reason = reasonFor(what);
    return reason === undefined ? value : { unknown: reason };
  };
  return {
    ...snapshot,
    intents: unknownOr('intents', stage.intents),
    zoneBudgets: unknownOr('budgets', snapshot.zoneBudgets),
    statefulSets: snapshot.statefulSets
      .filter((set) => reasonFor(set.name) !== 'gone')
      .map((set) => (stage.staleStatus.has(set.name) ? { ...set, generation: set.status.observedGeneration + 1 } : set)),
    pods: snapshot.pods.map((view) => ({ ...view, pods: unknownOr(view.statefulSet, view.pods) })),
    gateReadings: [...stage.readings].map(([gate, readings]) => ({ namespace, group: groupOfGate(snapshot, gate), gate, readings })),
    metrics: [...stage.metrics].map(([name, value]) => metricView(name, value, snapshot.nowMs)),
  };
}

/** Lets time pass. Gates that were asked for are read at their instants. */
export function letTimePass(stage: Stage, toMs: number): void {
  for (;;) {
    takeReadings(stage);
    const instants = [nextEventMs(stage.world), nextReadingMs(stage)].filter((instant) => instant !== undefined && instant > nowMs(stage));
    const next = Math.min(toMs, ...instants.map((instant) => instant ?? toMs));
    moveWorld(stage, { kind: 'elapse', toMs: next });
    takeReadings(stage);
    if (next >= toMs) return;
  }
}

/** The next instant at which a gate is read; undefined when none is asked for or none answers. */
export function nextReadingMs(stage: Stage): number | undefined {
  let next: number | undefined;
  for (const { gate, fromMs, everyMs } of wantedGates(stage)) {
    if (!stage.gateAnswers.has(gate)) continue;
    const passed = Math.floor((nowMs(stage) - fromMs) / everyMs);
    const instant = fromMs > nowMs(stage) ? fromMs : fromMs + (passed + 1) * everyMs;
    if (next === undefined || instant < next) next = instant;
  }
  return next;
}

/** Reads every gate that was asked for, is due at this instant and answers. */
export function takeReadings(stage: Stage): void {
  for (const { gate, fromMs, everyMs } of wantedGates(stage)) {
    const answer = stage.gateAnswers.get(gate);
    const isDue = nowMs(stage) >= fromMs && (nowMs(stage) - fromMs) % everyMs === 0;
    const known = stage.readings.get(gate) ?? [];
    if (answer === undefined || !isDue || known.some((reading) => reading.atMs === nowMs(stage))) continue;
    stage.readings.set(gate, [...known, { ...answer, atMs: nowMs(stage) }]);
  }
}

function wantedGates(stage: Stage) {
  const { groups } = stage.world.snapshot;
  return [...stage.wanted].flatMap(([group, gates]) =>
    gates.map(({ gate, fromMs }) => {
      const definition = groups.find(({ name }) => name === group)?.gates.find(({ name }) => name === gate);
      return { gate, fromMs, everyMs: definition?.everyMs ?? 60_000 };
    }),
  );
}

function groupOfGate(snapshot: Snapshot, gate: string): string {
  return snapshot.groups.find((group) => group.gates.some(({ name }) => name === gate))?.name ?? '';
}

/** A metric is read anew whenever somebody looks. */
function metricView(name: string, value: Known<number>, atMs: number): MetricView {
  const [policy = '', input = ''] = name.split('/');
  return { namespace, policy, input, value, atMs };
}

/** The zone of that name, or of that StatefulSet, with its group. A name that nothing has is a fault of the scenario. */
export function findZone(stage: Stage, name: string | undefined): { readonly group: GroupDefinition; readonly zone: ZoneDefinition } {
  for (const group of policiesNow(stage).groups) {
    const zone = group.zones.find((candidate) => candidate.name === name || candidate.statefulSet === name);
    if (zone !== undefined) return { group, zone };
  }
  throw new Error(`no group has a zone ${name}`);
}

/** The StatefulSet of a zone, or by its own name when it is in no group. */
export function statefulSetNamed(stage: Stage, name: string): string {
  const isName = stage.world.snapshot.statefulSets.some((set) => set.name === name);
  return isName ? name : findZone(stage, name).zone.statefulSet;
}

/** `b-2` is the third pod of zone b; full names of pods are understood too. */
export function podNamed(stage: Stage, name: string | undefined): string {
  const dash = (name ?? '').lastIndexOf('-');
  return `${findZone(stage, name?.slice(0, dash)).zone.statefulSet}${name?.slice(dash)}`;
}

/** The ledger of a group; one that no agent wrote to is empty. */
export function ledgerOf(stage: Stage, group: string): Ledger {
  const found = stage.world.snapshot.ledgers.find((ledger) => ledger.group === group);
  return found ?? { namespace, group, claims: [], downscales: [], preparations: [] };
}

export function saveLedger(stage: Stage, ledger: Ledger): void {
  const others = stage.world.snapshot.ledgers.filter(({ group }) => group !== ledger.group);
  changeSnapshot(stage, { ledgers: [...others, ledger] });
}
