// Builds the input of rules: contexts, runs, ledgers, requests of people, policies, and the two kinds of question.
import { contextOf, type GroupContext } from '../../engine/context.ts';
import type { ZoneView } from '../../engine/observe/view.ts';
import type { RollQuestion } from '../../engine/rules/roll.ts';
import type { ScaleQuestion } from '../../engine/rules/scale.ts';
import type { FailedRun, RunningRun, RunState } from '../../engine/run/run-state.ts';
import { completeRun } from '../../engine/run/states.ts';
import { waveProgress } from '../../engine/run/waves.ts';
import type { IntentView, Ledger, Preparation } from '../../engine/snapshot.ts';
import type {
  ExceptionDefinition,
  GroupDefinition,
  PolicyDefinition,
  PolicyRuleDefinition,
  Source,
  WindowDefinition,
} from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, type StatefulSetOverrides } from './objects.ts';
import { type SnapshotOverrides, snapshotOf } from './snapshots.ts';

export const secondMs = 1000;
export const minuteMs: number = 60 * secondMs;
export const hourMs: number = 60 * minuteMs;

/** Returns the time this many milliseconds before `kitNowMs`. */
export function ago(ms: number): number {
  return kitNowMs - ms;
}

/** Builds a place in a policy file, so that a test can see which place a result names. */
export function line(number: number): Source {
  return { file: 'policy.yaml', line: number, column: 1 };
}

export function contextWith(group: GroupDefinition, overrides: SnapshotOverrides = {}): GroupContext {
  return contextOf(snapshotOf({ groups: [group], ...overrides }), group);
}

export function zoneIn(context: GroupContext, name = 'a'): ZoneView {
  const view = context.view.zones.find(({ zone }) => zone.name === name);
  if (view === undefined) throw new Error(`the test expected a zone ${name}`);
  return view;
}

/** Builds the StatefulSets of the zones, with a template that no pod runs yet. */
export function outdatedSets(zones: readonly string[] = ['a', 'b', 'c'], overrides: StatefulSetOverrides = {}) {
  return zones.map((name) => outdatedStatefulSet({ ...overrides, name: `ingester-zone-${name}` }));
}

/** Returns every pod of a zone at the update revision. */
export function updatedPods(replicas = 3): Readonly<Record<number, { readonly revision: string }>> {
  return Object.fromEntries(Array.from({ length: replicas }, (_, ordinal) => [ordinal, { revision: newRevision }]));
}

/** Fields of a run in any state. */
export type RunFields = Partial<Omit<FailedRun, 'outcome' | 'openZone' | 'waveAvailableMs'>> & {
  readonly outcome?: RunState['outcome'];
  readonly openZone?: string | undefined;
  readonly waveAvailableMs?: number | undefined;
  readonly completedMs?: number;
};

/** Builds a rollout from `rev-1` to `rev-2` that started an hour ago and has replaced no pod. */
export function runOf(overrides?: Partial<RunningRun>): RunningRun;
export function runOf(overrides: RunFields): RunState;
export function runOf(fields: RunFields = {}): RunState {
  const {
    outcome = 'running',
    failure = 'the run failed',
    failedMs = 0,
    onFailure,
    awaitsPods,
    completedMs,
    openZone,
    waveAvailableMs,
    ...core
  } = fields;
  const run: RunningRun = {
    id: 'run-1',
    kind: 'rollout',
    target: { a: newRevision, b: newRevision, c: newRevision },
    previous: { a: oldRevision, b: oldRevision, c: oldRevision },
    startedMs: ago(hourMs),
    wave: 0,
    waveStartedMs: ago(hourMs),
    movableMs: 0,
    movableAsOfMs: ago(minuteMs),
    isMovable: true,
    outcome: 'running',
    ...core,
    ...(openZone === undefined ? {} : { openZone }),
    ...(waveAvailableMs === undefined ? {} : { waveAvailableMs }),
  };
  if (outcome === 'running') return run;
  if (outcome === 'completed') return completeRun(run, completedMs ?? run.startedMs);
  return { ...run, outcome, failure, failedMs, ...defined({ onFailure, awaitsPods }) };
}

/** Returns the run with other fields, which may be those of another state. */
export function withFields(run: RunState, fields: RunFields): RunState {
  return runOf({ ...run, ...fields });
}

export function ledgerOf(overrides: Partial<Ledger> = {}): Ledger {
  return { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [], ...overrides };
}

/** Builds the preparation of a pod of zone a that prepared a day ago, and has just confirmed it. */
export function preparation(ordinal: number, overrides: Partial<Preparation> = {}): Preparation {
  const zone = overrides.zone ?? 'a';
  return {
    zone,
    ordinal,
    podUid: `uid-ingester-zone-${zone}-${ordinal}`,
    call: 'delayed',
    state: 'prepared',
    reportedMs: ago(24 * hourMs),
    seenMs: ago(24 * hourMs),
    answeredMs: kitNowMs,
    ...overrides,
  };
}

/** Builds an approval by kim of the group oncall, one minute ago. */
export function intent(overrides: Partial<IntentView> = {}): IntentView {
  return {
    namespace: 'mimir',
    name: 'intent-1',
    group: 'ingester',
    action: 'approve',
    requestedBy: { user: 'kim', groups: ['oncall'], atMs: ago(minuteMs) },
    ...overrides,
  };
}

/** Builds a policy `safety` for every group of the namespace, without rules. */
export function policy(overrides: Partial<PolicyDefinition> = {}): PolicyDefinition {
  return {
    namespace: 'mimir',
    name: 'safety',
    targets: { all: true },
    metrics: {},
    rules: [],
    windows: [],
    limits: {},
    limitSources: {},
    ...overrides,
  };
}

/** Builds a rule that denies every rollout. */
export function policyRule(overrides: Partial<PolicyRuleDefinition> = {}): PolicyRuleDefinition {
  return {
    name: 'rule',
    actions: ['rollout'],
    effect: 'deny',
    onUnknown: 'deny',
    approval: { count: 1, from: [] },
    source: line(10),
    ...overrides,
  };
}

/** Builds a freeze of rollouts that started an hour ago and ends in an hour. */
export function freeze(overrides: Partial<WindowDefinition> = {}): WindowDefinition {
  return {
    name: 'freeze',
    kind: 'deny',
    actions: ['rollout'],
    ranges: [{ fromMs: ago(hourMs), toMs: kitNowMs + hourMs }],
    inFlight: 'finishPod',
    source: line(20),
    ...overrides,
  };
}

/** Builds an exception from a rule that ends in an hour. */
export function exception(rule: string, overrides: Partial<ExceptionDefinition> = {}): ExceptionDefinition {
  return {
    namespace: 'mimir',
    name: 'exception-1',
    rule,
    group: 'ingester',
    allow: { anything: true },
    reason: 'see CHG-1',
    expiresMs: kitNowMs + hourMs,
    source: line(30),
    ...overrides,
  };
}

/** Asks whether a pod of this zone may be replaced in the first wave. */
export function rollQuestion(context: GroupContext, name = 'a', overrides: Partial<RollQuestion> = {}): RollQuestion {
  const wave = context.group.rollout.waves[0];
  const zone = wave === undefined ? undefined : waveProgress(context, wave).zones.find(({ view }) => view.zone.name === name);
  if (zone === undefined) throw new Error(`the test expected a wave with zone ${name}`);
  return { context, run: runOf(), zone, isScaling: false, ...overrides };
}

/** Asks, as the agent, whether zone a may change from its replicas to this number. */
export function scaleQuestion(context: GroupContext, to: number, overrides: Partial<ScaleQuestion> = {}): ScaleQuestion {
  const zone = overrides.zone ?? zoneIn(context);
  return { context, zone, from: zone.replicas, to, isForced: false, run: undefined, asker: 'agent', ...overrides };
}
