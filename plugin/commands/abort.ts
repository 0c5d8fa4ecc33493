// The verbs abort and retry: abort ends the current run as failed, with or without a rollback; retry continues a failed run.
import type { Stop } from '../../engine/decision.ts';
import { runAfterRetry } from '../../engine/plan/controller.ts';
import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { goesBack, isRolledBack, mayRetry, rolledBackRule, whyRunStays } from '../../engine/publish/status.ts';
import { isRollingBack } from '../../engine/run/origin.ts';
import { newRevisions } from '../../engine/run/revisions.ts';
import { ledgerOf, setNamed } from '../../engine/snapshot.ts';
import { type StrategyTraits, strategyTraits } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, refusedFailure } from '../failure.ts';
import { returnsOfRollback, returnTexts, rolledText } from '../live/history.ts';
import { publishedRun, type Request, type RequestedGroup, type RequestFlags, readAndSubmit, readWithRun } from '../live/submit-request.ts';
import { podTotals } from '../output/group-text.ts';
import { reasonSuffix } from '../output/text.ts';

export interface AbortFlags extends RequestFlags {
  readonly rollback?: boolean;
}

export function abort(context: CommandContext, options: AbortFlags): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => abortOf(requested, options), readWithRun);
}

function abortOf(requested: RequestedGroup, options: AbortFlags): Request | Promise<Request> {
  const { name } = requested;
  const run = publishedRun(requested);
  if (options.rollback === true) refuseRollback(requested, run);
  if (run === undefined || run.outcome === 'completed') return { text: () => `${name}: no run is in progress; nothing was aborted\n` };
  // A retried run can be aborted again, which is a new request.
  const key = `${run.id} ${requested.cluster.env.clock.nowMs()}`;
  if (options.rollback === true) return rollbackOf(requested, run, { options, key });
  if (run.outcome === 'failed') return { text: () => `${name}: run ${run.id} has already ended: ${run.failure ?? 'it failed'}\n` };
  const text = (by?: string): string => resultText(requested, options, by) + stoppedText(requested);
  return { needsRequester: true, key, spec: { action: 'abort', runId: run.id }, text };
}

/** Returns the abort that rolls the run back. Names the revisions to which pods return, as the engine decides them. */
async function rollbackOf(
  requested: RequestedGroup,
  run: PublishedRun,
  { options, key }: { readonly options: AbortFlags; readonly key: string },
): Promise<Request> {
  const { cluster, snapshot, name } = requested;
  const returns = await returnsOfRollback(cluster, requested, run.id);
  const { lines, count } = snapshot === undefined ? { lines: [], count: 0 } : returnTexts(snapshot, returns);
  // Without the ledger, the revisions are unknown.
  const what =
    lines.length === 0
      ? 'the updated pods return to their previous revision'
      : `${count === 0 ? 'no pod' : counted(count, 'pod')} ${count <= 1 ? 'returns' : 'return'} to an earlier revision`;
  const listing = `${what}${lines.length === 0 ? '' : ':'}\n${lines.map((line) => `  ${line}\n`).join('')}`;
  const retry = `  After the rollback, try again: kubectl rollout-group retry ${name}\n`;
  const text = (by = ''): string =>
    run.outcome === 'failed'
      ? `${name}: run ${run.id} is rolled back, requested by ${by}${reasonSuffix(options.reason)}\n  it ended because: ${run.failure ?? 'it failed'}\n  ${listing}${retry}`
      : `${resultText(requested, options, by)}  pods in flight finish, then ${listing}${retry}`;
  return {
    needsRequester: true,
    key,
    spec: { action: 'abort', runId: run.id, rollback: true },
    // Only a rollback replaces pods. It blocks the failed revision itself.
    concerns: (rule) => rule !== 'run-failed' && rule !== 'rolled-back',
    preview: [[what, ...(lines.length === 0 ? [] : [lines.join('; ')])].join(': ')],
    text,
  };
}

/** Throws Failure if no rollout is in progress or failed, or if the run cannot be rolled back. */
function refuseRollback(requested: RequestedGroup, run: PublishedRun | undefined): void {
  const { name } = requested;
  const isUnfinished = run !== undefined && run.outcome !== 'completed';
  const strategy = strategyIn(requested);
  const stays = isUnfinished ? whyRunStays(run, strategy) : undefined;
  if (isUnfinished && stays === undefined) return;
  const whys = {
    strategy: `the strategy ${strategy} cannot return pods to their previous revision without a new pod template`,
    return: `run ${run?.id} ${run?.kind === 'rollback' ? 'is a rollback itself' : 'returns to the earlier revisions'}`,
    unchanged: `run ${run?.id} does not change the revision of any zone`,
  };
  const isReturn = isUnfinished && goesBack(run);
  throw refusedFailure(`${name} was not rolled back; nothing was aborted`, {
    why: stays === undefined ? 'no rollout is in progress' : whys[stays],
    todo: `kubectl rollout-group ${isReturn ? 'explain' : 'undo'} ${name}`,
  });
}

/** Returns the strategy of the group. If its definition cannot be read here, returns the published strategy. */
function strategyIn({ live: { definition, decision } }: RequestedGroup): PublishedDecision['strategy'] {
  return definition?.rollout.strategy ?? decision.strategy;
}

/** Throws Failure for a run that an abort only pauses: it continues when the abort ends, so it needs no retry. */
function refuseRetry(name: string, { fact, endsWith }: Stop): never {
  throw refusedFailure(`retry was not sent: the run of ${name} has not failed`, {
    why: `${fact}; such an abort only pauses the run`,
    todo: endsWith,
  });
}

/** Throws Failure if a revision was rolled back and a run is still in progress: a retry has an effect only after the end of the run. */
function refuseEarlyRetry({ name, live: { decision } }: RequestedGroup, run: PublishedRun): void {
  const back = decision.stops?.find(({ rule }) => rule === rolledBackRule);
  if (run.outcome !== 'running' || back === undefined) return;
  throw refusedFailure(`retry was not sent: ${runText(run)} of ${name} is not over`, {
    why: `${back.fact}; a retry has an effect only after the end of the run`,
    todo: `wait for the end of the run, then repeat the command: kubectl rollout-group status ${name}`,
  });
}

/** Returns the zones whose revision the run changes; all zones if the run names none, as in a large publication. */
function zonesOfRun({ zones, run }: PublishedDecision): PublishedDecision['zones'] {
  const { target = {}, previous = {} } = run ?? {};
  const changed = newRevisions({ target, previous });
  const own = zones.filter(({ zone }) => changed[zone] !== undefined);
  return own.length === 0 ? zones : own;
}

function resultText({ live: { decision }, name }: RequestedGroup, { reason }: AbortFlags, by = ''): string {
  const { desired, updated } = podTotals({ ...decision, zones: zonesOfRun(decision) });
  const at = decision.wave === undefined ? '' : ` in wave ${decision.wave.name}`;
  return `${name} aborted${at} by ${by}${reasonSuffix(reason)}: ${updated} of ${desired} pods updated\n`;
}

/** Returns what follows an abort without a rollback, and the next commands. */
function stoppedText(requested: RequestedGroup): string {
  const { name, live } = requested;
  const { run } = live.decision;
  const retry = `kubectl rollout-group retry ${name}\n`;
  const strategy = strategyIn(requested);
  const traits = strategy === undefined ? undefined : strategyTraits[strategy];
  const stop = '  pods in flight finish; no further pod is replaced until';
  const kept = traits === undefined ? '' : `  ${keptText(traits, run)}\n`;
  if (run !== undefined && goesBack(run)) return `${stop} retry or a new pod template\n${kept}  Continue the ${run.kind}: ${retry}`;
  const mayRollBack = strategy !== undefined && run !== undefined && whyRunStays(run, strategy) === undefined;
  const rollbackText = mayRollBack ? `kubectl rollout-group abort ${name} --rollback, or ` : '';
  return `${stop} undo, retry or a new pod template\n${kept}  Roll back: ${rollbackText}kubectl rollout-group undo ${name}\n  Continue: ${retry}`;
}

/** Returns a text about the revision of a pod that is created again after the abort. No pod is created at a revision that is rolled back. */
function keptText({ holdsPartition }: StrategyTraits, run: PublishedRun | undefined): string {
  if (run !== undefined && isRollingBack(run)) return 'a pod that is created again gets its earlier revision';
  return holdsPartition ? 'every pod keeps its revision, also if it is created again' : 'a pod that is created again gets the new revision';
}

function runText({ kind, id }: Pick<PublishedRun, 'kind' | 'id'>): string {
  return kind === 'rollback' ? `rollback ${id}` : `run ${id}`;
}

/** Continues a failed or aborted run, replaces pods with the wrong revision again, or rolls out a rolled-back revision again. */
export function retry(context: CommandContext, options: RequestFlags): Promise<ExitCode> {
  return readAndSubmit(context, options, retryOf, readWithRun);
}

function retryOf(requested: RequestedGroup): Request {
  const { name, live } = requested;
  const run = publishedRun(requested);
  const pausing = live.decision.stops?.find(({ isAbort }) => isAbort === true);
  const wasRolledBack = isRolledBack(live.decision);
  if (pausing !== undefined && run?.outcome !== 'failed' && !wasRolledBack) refuseRetry(name, pausing);
  if (run !== undefined && !mayRetry(live.decision)) refuseEarlyRetry(requested, run);
  if (run === undefined || !mayRetry(live.decision)) return { text: () => `${name} has no failed run; nothing was retried\n` };
  const { what, lines } = newRunTexts(requested, run) ?? retryTexts(name, run, wasRolledBack);
  return {
    needsRequester: true,
    concerns: (rule) => rule !== 'run-failed' && rule !== 'rolled-back',
    // A run can fail again. Then an equal request would already exist and have no effect.
    key: `${run.id} ${requested.cluster.env.clock.nowMs()}`,
    spec: { action: 'retry', runId: run.id },
    preview: [[what, ...lines].join('; ')],
    text: (by) => `${what}, requested by ${by}\n${lines.map((line) => `  ${line}\n`).join('')}`,
  };
}

/**
 * Returns texts about the runs that follow a retry if templates changed since the failure: first zones return to an earlier revision, then the
 * others roll out. Undefined if the retry continues the run itself, or if the next run is unknown.
 */
function newRunTexts(
  { name, live: { definition }, snapshot }: RequestedGroup,
  run: PublishedRun,
): ReturnType<typeof retryTexts> | undefined {
  if (definition === undefined || snapshot === undefined || run.outcome !== 'failed') return undefined;
  if (ledgerOf(snapshot, definition).run?.id !== run.id) return undefined;
  const next = runAfterRetry(snapshot, definition, run.id);
  const { others, returning } = next;
  if (next.run?.outcome !== 'running' || next.run.id === run.id) return undefined;
  const { namespace, zones } = definition;
  const returns = zones.flatMap(({ name: zone, statefulSet }) => {
    const set = returning.includes(zone) ? setNamed(snapshot, namespace, statefulSet) : undefined;
    return set === undefined ? [] : [{ zone, set, to: set.status.updateRevision }];
  });
  const { lines, count } = returnTexts(snapshot, returns);
  const rolled = others.length === 0 ? [] : [rolledText(next, { approvals: 'new approvals' })];
  const back =
    count === 0 ? [] : [`first ${counted(count, 'pod')} ${count === 1 ? 'returns' : 'return'} to an earlier revision: ${lines.join('; ')}`];
  return { what: `${name}: a new run starts, because templates changed after the failure of run ${run.id}`, lines: [...back, ...rolled] };
}

/** Returns texts about the run that a retry continues, and about the next steps. */
function retryTexts(name: string, run: PublishedRun, wasRolledBack: boolean): { readonly what: string; readonly lines: readonly string[] } {
  if (wasRolledBack)
    return {
      what: `${name}: the revision that was rolled back is rolled out again`,
      lines: [`the last run failed: ${run.rolledBack?.because ?? ''}`, 'a new run starts with the first wave, and needs its own approvals'],
    };
  if (run.outcome !== 'failed') return { what: `${name}: pods with the wrong revision are replaced again`, lines: [] };
  return {
    what: `${name}: ${runText(run)} continues`,
    lines: [
      `it ended because: ${run.failure ?? 'it failed'}`,
      'soaks, gates and deadlines start over; the approvals of the run still count',
    ],
  };
}
