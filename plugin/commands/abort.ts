// The verbs abort and retry: abort ends the current run as failed, with or without a rollback; retry continues a failed run.
import type { Stop } from '../../engine/decision.ts';
import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { goesBack, isRolledBack, mayReturn } from '../../engine/publish/status.ts';
import { newRevisions } from '../../engine/run/run.ts';
import { type StrategyTraits, strategyTraits } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, refusedFailure, usageFailure } from '../failure.ts';
import { returnsOfRollback, returnTexts } from '../live/history.ts';
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

/** Throws Failure if the strategy keeps no previous version of the pods, or if no rollout is in progress or failed. */
function refuseRollback({ name, live }: RequestedGroup, run: PublishedRun | undefined): void {
  const strategy = live.definition?.rollout.strategy;
  const isBack = run !== undefined && goesBack(run);
  const todo = `kubectl rollout-group ${isBack && run.outcome !== 'completed' ? 'explain' : 'undo'} ${name}`;
  if (strategy !== undefined && !strategyTraits[strategy].canRollBack)
    throw usageFailure(
      `${name} cannot be rolled back without a new pod template, because its strategy is ${strategy}; nothing was aborted`,
      todo,
    );
  const isRollout = run !== undefined && !isBack && run.outcome !== 'completed';
  if (isRollout && mayReturn(run)) return;
  const why = isRollout
    ? 'changes the revision of no zone'
    : run?.kind === 'rollback'
      ? 'is a rollback itself'
      : 'returns to the earlier revisions';
  const state = run?.outcome === 'completed' || run === undefined ? 'no rollout is in progress' : `run ${run.id} ${why}`;
  throw refusedFailure(`${name} was not rolled back`, { why: state, todo });
}

/** Throws Failure for a run that an abort only pauses: it continues when the abort ends, so it needs no retry. */
function refuseRetry(name: string, { fact, endsWith }: Stop): never {
  throw refusedFailure(`retry was not sent: the run of ${name} has not failed`, {
    why: `${fact}; such an abort only pauses the run`,
    todo: endsWith,
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
function stoppedText({ name, live: { decision, definition } }: RequestedGroup): string {
  const { run } = decision;
  const retry = `kubectl rollout-group retry ${name}\n`;
  const strategy = definition?.rollout.strategy ?? decision.strategy;
  const traits = strategy === undefined ? undefined : strategyTraits[strategy];
  const stop = '  pods in flight finish; no further pod is replaced until';
  const kept = traits === undefined ? '' : `  ${keptText(traits)}\n`;
  if (run !== undefined && goesBack(run)) return `${stop} retry or a new pod template\n${kept}  Continue the ${run.kind}: ${retry}`;
  const rollbackText =
    traits?.canRollBack === true && run !== undefined && mayReturn(run) ? `kubectl rollout-group abort ${name} --rollback, or ` : '';
  return `${stop} undo, retry or a new pod template\n${kept}  Roll back: ${rollbackText}kubectl rollout-group undo ${name}\n  Continue: ${retry}`;
}

/** Returns the revision of a pod that is created again after the abort. */
function keptText({ holdsPartition }: StrategyTraits): string {
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
  // Pods that came back at the wrong revision block a run that has not failed.
  const isBlocked = live.decision.waits.some(({ rule }) => rule === 'pin-applied');
  const pausing = live.decision.stops?.find(({ isAbort }) => isAbort === true);
  const wasRolledBack = isRolledBack(live.decision);
  if (pausing !== undefined && run?.outcome !== 'failed' && !wasRolledBack) refuseRetry(name, pausing);
  if (run === undefined || (run.outcome !== 'failed' && !wasRolledBack && !isBlocked))
    return { text: () => `${name} has no failed run; nothing was retried\n` };
  const { what, lines } = retryTexts(name, run, wasRolledBack);
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

/** Returns what a retry continues, and what follows. */
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
