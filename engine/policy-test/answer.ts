// Answers the request of a policy test case, as admission would or as the agent would during a rollout.
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs } from '../../policies/duration.ts';
import type { GivenState } from '../../policies/schema/policy-test.ts';
import { extended } from '../../policies/values/defined.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { waveTarget } from '../amount.ts';
import { contextOf, type GroupContext } from '../context.ts';
import { decideGroup } from '../decide/decide.ts';
import { desiredReplicas } from '../decide/replicas.ts';
import { type Action, type AdmissionRequest, type GroupDecision, type Judgement, type RuleResult, replacedBy } from '../decision.ts';
import { judge } from '../judge/judge.ts';
import { defaultAssumptions } from '../plan/document.ts';
import { addsNothing, wavesDigestOf } from '../rules/wave.ts';
import type { RunState } from '../run/run-state.ts';
import { type WaveProgress, waveProgress } from '../run/waves.ts';
import type { Ledger, Preparation, Snapshot } from '../snapshot.ts';
import { createWorld, step } from '../world/world.ts';
import { previousRevision } from './state.ts';

export interface Answer {
  readonly decision: string;
  readonly message: string;
  readonly results: readonly RuleResult[];
  /** Rules that applied and only warn. */
  readonly warned: readonly string[];
  readonly pods: readonly string[];
  /** The StatefulSets with pods that stay outdated, because no wave includes them. Absent without such pods. */
  readonly inNoWave?: readonly string[];
  /** Replicas that the agent would write now, per zone. */
  readonly replicas: Readonly<Record<string, number>>;
  /** The waves before and after the decision, by index; absent outside a rollout. */
  readonly waves?: { readonly from: number; readonly to: number };
}

export interface CaseState {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
  readonly given: GivenState;
}

/** The maximum number of rounds of pod calls: for the delay, the preparation and the withdrawal. */
const maxCalls = 3;

/** Returns the verdict on one API request, with the run of the agent in the ledger. Pods that are asked to prepare answer at once. */
export function judged(asked: CaseState, request: AdmissionRequest, to?: { readonly zone: string; readonly replicas: number }): Answer {
  let snapshot = withPreparations({ ...asked, snapshot: withRun(asked, runOfAgent(asked.snapshot)(asked.group)(asked.given)) }, to);
  let judgement = judge(snapshot, request);
  for (let call = 0; call < maxCalls && judgement.outcome === 'prepare'; call += 1) {
    snapshot = answered({ ...asked, snapshot }, judgement.actions);
    judgement = judge(snapshot, request);
  }
  const warned = judgement.warnings.flatMap((text) => /^([a-z0-9.-]+\/[a-z0-9-]+): /.exec(text)?.[1] ?? []);
  const message = [judgement.message, ...judgement.warnings].join('; ');
  return { decision: verdict(judgement), message, results: judgement.results, warned, pods: [], replicas: {} };
}

function verdict({ outcome, effect }: Judgement): string {
  return outcome === 'prepare' ? 'hold' : effect;
}

/** Returns the run that the agent has in a state, by the parts of the state. Several requests are asked in one state. */
const runOfAgent = keptByObject((snapshot: Snapshot) =>
  keptByObject((group: GroupDefinition) =>
    keptByObject((given: GivenState) => {
      const asked = { snapshot, group, given };
      return decideGroup(withRun(asked, runGiven(snapshot, group, given)), group).run;
    }),
  ),
);

/** Returns the decision of the agent. Pods that it calls answer at once. */
export function decided(asked: CaseState): Answer {
  const run = runGiven(asked.snapshot, asked.group, asked.given);
  let snapshot = withRun({ ...asked, snapshot: withPreparations(asked) }, run);
  let decision = decideGroup(snapshot, asked.group);
  if (run !== undefined && decision.run !== undefined && decision.run.wave > run.wave) {
    snapshot = withRun({ ...asked, snapshot }, inNextWave(asked, run, decision.run.wave));
    decision = decideGroup(snapshot, asked.group);
  }
  for (let call = 0; call < maxCalls && decision.actions.some(({ kind }) => kind === 'callPods'); call += 1) {
    snapshot = answered({ ...asked, snapshot }, decision.actions);
    decision = decideGroup(snapshot, asked.group);
  }
  return {
    decision: decision.outcome,
    message: decisionMessage(decision),
    results: decision.steps.flatMap((step) => step.results),
    warned: decision.warnings.map((answer) => answer.rule),
    ...effectsOf(decision),
    ...inNoWaveOf(decision),
    ...(decision.run === undefined ? {} : { waves: { from: run?.wave ?? 0, to: decision.run.wave } }),
  };
}

/** Returns the run in the wave `to`, which started when the soak of the previous wave ended. */
function inNextWave({ group, given, snapshot }: CaseState, run: RunState, to: number): RunState {
  const { waveAvailableMs: _waveAvailableMs, ...rest } = run;
  const availableMs = given.waveAvailableFor === undefined ? 0 : durationMs(given.waveAvailableFor);
  const openMs = Math.max(0, availableMs - (group.rollout.waves[run.wave]?.after.soakMs ?? 0));
  // A replacement at the start of the wave would count as its first pod, which needs no approval any more.
  const earliestMs = (run.lastDisruptionMs ?? 0) + 1;
  return { ...rest, wave: to, waveStartedMs: Math.max(snapshot.nowMs - openMs, earliestMs) };
}

function withRun(asked: CaseState, run: RunState | undefined): Snapshot {
  return run === undefined ? asked.snapshot : withLedger(asked, (ledger) => extended(ledger, { run }));
}

function effectsOf({ actions }: GroupDecision): Pick<Answer, 'pods' | 'replicas'> {
  const replicas = actions.flatMap((action): [string, number][] => (action.kind === 'scaleStatefulSet' ? [[action.zone, action.to]] : []));
  const pods = actions.flatMap(replacedBy).map(({ pod }) => pod);
  return { pods, replicas: Object.fromEntries(replicas) };
}

function inNoWaveOf({ zones }: GroupDecision): Pick<Answer, 'inNoWave'> {
  const inNoWave = zones.flatMap(({ statefulSet, podsInNoWave }) => (podsInNoWave === undefined ? [] : [statefulSet]));
  return inNoWave.length === 0 ? {} : { inNoWave };
}

function decisionMessage(decision: GroupDecision): string {
  const { pods, replicas } = effectsOf(decision);
  const acts = [
    ...pods.map((pod) => `replace ${pod}`),
    ...Object.entries(replicas).map(([zone, count]) => `scale zone ${zone} to ${count}`),
  ];
  const limits = ({ limit }: RuleResult): string => (limit === undefined ? '' : ` (limit: ${limit})`);
  const waits = [...decision.waits, ...decision.warnings].map((answer) => `${answer.rule}: ${answer.fact}${limits(answer)}`);
  return [...acts, ...waits].join('; ') || decision.goal;
}

function withLedger({ snapshot, group }: Pick<CaseState, 'snapshot' | 'group'>, change: (ledger: Ledger) => Ledger): Snapshot {
  const isOwn = (ledger: Ledger): boolean => ledger.namespace === group.namespace && ledger.group === group.name;
  return { ...snapshot, ledgers: snapshot.ledgers.map((ledger) => (isOwn(ledger) ? change(ledger) : ledger)) };
}

/** Adds the preparations in the case for the pods that are removed. The request or the desired replicas determine these pods. */
function withPreparations(asked: CaseState, to?: { readonly zone: string; readonly replicas: number }): Snapshot {
  const { snapshot, group, given } = asked;
  const context = contextOf(snapshot, group);
  const preparations = context.view.zones.flatMap((view): readonly Preparation[] => {
    const preparedFor = given.zones?.[view.zone.name]?.preparedFor;
    if (preparedFor === undefined) return [];
    const staying = to?.zone === view.zone.name ? to.replicas : (desiredReplicas(context, view)?.replicas ?? view.replicas);
    const firstLeaving = (view.set?.firstOrdinal ?? 0) + staying;
    const call = view.zone.delayed === undefined ? 'prepare' : 'delayed';
    const seenMs = snapshot.nowMs - durationMs(preparedFor);
    const prepared = { zone: view.zone.name, call, state: 'prepared', reportedMs: seenMs, seenMs, answeredMs: snapshot.nowMs } as const;
    return view.pods.filter((pod) => pod.ordinal >= firstLeaving).map(({ ordinal, uid }) => extended(prepared, { ordinal, podUid: uid }));
  });
  // The ledger of a case has no preparation yet.
  return preparations.length === 0 ? snapshot : withLedger(asked, (ledger) => ({ ...ledger, preparations }));
}

/** Returns the state after the pods answered in the model: prepared, or with the failure that the case defines. */
function answered({ snapshot, given }: CaseState, actions: readonly Action[]): Snapshot {
  let { ledgers } = snapshot;
  for (const action of actions) {
    if (action.kind !== 'callPods') continue;
    const preparations = given.zones?.[action.zone]?.prepareFails === true ? 'fail' : 'succeed';
    const world = createWorld({ ...snapshot, ledgers }, { ...defaultAssumptions, preparations }, 'p50');
    ledgers = step(world, { kind: 'action', action }).snapshot.ledgers;
  }
  return { ...snapshot, ledgers };
}

/**
 * Returns the run that the ledger would contain; undefined before the first replacement. The current wave is the first unfilled wave, if it
 * has started. Otherwise the wave before it is current and has soaked for `waveAvailableFor`.
 */
function runGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): RunState | undefined {
  const context = contextOf(snapshot, group);
  const lastMs = lastReplacementMs(context, given);
  if (lastMs === undefined) return undefined;
  const waves = group.rollout.waves.map((wave) => waveProgress(context, wave));
  const open = waves.findIndex((wave) => !wave.isFilled);
  const openZone = open < 0 ? undefined : begunZone(given, waves[open], waves.slice(0, open));
  const hasBegun = openZone !== undefined;
  const ahead = open < 0 ? waves.length - 1 : hasBegun ? open : open - 1;
  // A wave that adds no pod is skipped, so the wave before it soaks.
  const isOwn = (index: number): boolean => waves[index] === undefined || !addsNothing(context, waves[index].wave);
  const wave = hasBegun ? ahead : (Array.from({ length: ahead + 1 }, (_, back) => ahead - back).find(isOwn) ?? ahead);
  if (wave < 0) return undefined;
  const isSoaking = !hasBegun && given.waveAvailableFor !== undefined;
  return {
    id: 'policy-test',
    kind: 'rollout',
    ...revisions(context),
    startedMs: lastMs,
    wave,
    waveStartedMs: lastMs,
    ...(isSoaking ? { waveAvailableMs: snapshot.nowMs - durationMs(given.waveAvailableFor ?? '0') } : {}),
    ...(openZone === undefined ? {} : { openZone }),
    lastDisruptionMs: lastMs,
    ...wavesDigestOf(group),
    // Pods that are down in a case are in flight since the last replacement. Without such pods, the engine removes the field.
    inFlightSinceMs: lastMs,
    movableMs: 0,
    movableAsOfMs: snapshot.nowMs,
    isMovable: true,
    outcome: 'running',
  };
}

/** Returns the latest change of readiness of an updated pod, as the time of the last replacement. */
function lastReplacementMs({ view }: GroupContext, given: GivenState): number | undefined {
  const instants = view.zones
    .filter(({ zone }) => given.zones?.[zone.name]?.updated !== undefined)
    .flatMap(({ pods, set }) => pods.filter((pod) => pod.revision === set?.status.updateRevision).map((pod) => pod.readyChangedMs));
  return instants.length === 0 ? undefined : instants.reduce((a, b) => Math.max(a, b));
}

/** Returns the first zone of the wave with more updated pods than earlier waves request. Unfinished zones come first. */
function begunZone(given: GivenState, wave: WaveProgress | undefined, before: readonly WaveProgress[]): string | undefined {
  const begun = (wave?.zones ?? []).filter(({ view }) => {
    const earlier = before.filter((one) => one.wave.zones.includes(view.zone.name));
    const asked = Math.max(0, ...earlier.map((one) => waveTarget(one.wave.amount, view.replicas)));
    return (given.zones?.[view.zone.name]?.updated ?? 0) > asked;
  });
  return (begun.find((zone) => zone.remaining > 0) ?? begun[0])?.view.zone.name;
}

function revisions({ view }: GroupContext): Pick<RunState, 'target' | 'previous'> {
  const entries = view.zones.flatMap(({ zone, set }): [string, string][] =>
    set === undefined ? [] : [[zone.name, set.status.updateRevision]],
  );
  const target = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  const previous = Object.fromEntries(Object.entries(target).map(([name, revision]) => [name, previousRevision(revision)]));
  return { target, previous };
}
