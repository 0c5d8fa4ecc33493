// The verbs abort and retry: abort ends the current run as failed, with or without a rollback; retry continues a failed run.
import type { Stop } from '../../engine/decision.ts';
import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { goesBack, isRolledBack, mayReturn } from '../../engine/publish/status.ts';
import { newRevisions } from '../../engine/run/run.ts';
import { type StrategyTraits, strategyTraits } from '../../policies/strategies.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, refusedFailure, usageFailure } from '../failure.ts';
import type { LiveGroup } from '../live/groups.ts';
import { publishedRun, type RequestedGroup, type RequestFlags, readAndSubmit } from '../live/submit-request.ts';
import { podTotals } from '../output/group-text.ts';
import { reasonSuffix } from '../output/text.ts';

export interface AbortFlags extends RequestFlags {
  readonly rollback?: boolean;
}

export function abort(context: CommandContext, options: AbortFlags): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => {
    const { name } = requested;
    const run = publishedRun(requested);
    if (options.rollback === true) refuseRollback(requested, run);
    if (run === undefined || run.outcome === 'completed') return { text: () => `${name}: no run is in progress; nothing was aborted\n` };
    if (run.outcome === 'failed' && options.rollback !== true)
      return { text: () => `${name}: run ${run.id} has already ended: ${run.failure ?? 'it failed'}\n` };
    return {
      needsRequester: true,
      // A retried run can be aborted again, which is a new request.
      key: `${run.id} ${requested.cluster.env.clock.nowMs()}`,
      spec: { action: 'abort', runId: run.id, ...(options.rollback === true ? { rollback: true } : {}) },
      // Only a rollback replaces pods.
      ...(options.rollback === true ? { concerns: (rule) => rule !== 'run-failed' } : {}),
      text: (by) => resultText(requested, options, by ?? ''),
    };
  });
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

function resultText({ name, live }: RequestedGroup, { reason, rollback }: AbortFlags, by: string): string {
  const { desired, updated } = podTotals({ ...live.decision, zones: zonesOfRun(live.decision) });
  const { wave, run } = live.decision;
  if (run?.outcome === 'failed') {
    const because = run.failure ?? 'it failed';
    return `${name}: run ${run.id} is rolled back, requested by ${by}${reasonSuffix(reason)}\n  it ended because: ${because}\n  the updated pods return to their previous revision\n  Try again: kubectl rollout-group retry ${name}\n`;
  }
  const at = wave === undefined ? '' : ` in wave ${wave.name}`;
  return [
    `${name} aborted${at} by ${by}${reasonSuffix(reason)}: ${updated} of ${desired} pods updated\n`,
    nextText(name, live, rollback),
  ].join('');
}

function nextText(name: string, { decision, definition }: LiveGroup, rollback: boolean | undefined): string {
  const { run } = decision;
  const retry = `kubectl rollout-group retry ${name}\n`;
  if (rollback === true) return `  pods in flight finish, then the updated pods return to their previous revision\n  Try again: ${retry}`;
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
  return readAndSubmit(context, options, (requested) => {
    const { name, live } = requested;
    const run = publishedRun(requested);
    // Pods that came back at the wrong revision block a run that has not failed.
    const isBlocked = live.decision.waits.some(({ rule }) => rule === 'pin-applied');
    const pausing = live.decision.stops?.find(({ isAbort }) => isAbort === true);
    const wasRolledBack = isRolledBack(live.decision);
    if (pausing !== undefined && run?.outcome !== 'failed' && !wasRolledBack) refuseRetry(name, pausing);
    if (run === undefined || (run.outcome !== 'failed' && !wasRolledBack && !isBlocked))
      return { text: () => `${name} has no failed run; nothing was retried\n` };
    return {
      needsRequester: true,
      concerns: (rule) => rule !== 'run-failed' && rule !== 'rolled-back',
      // A run can fail again. Then an equal request would already exist and have no effect.
      key: `${run.id} ${requested.cluster.env.clock.nowMs()}`,
      spec: { action: 'retry', runId: run.id },
      text: (by) =>
        wasRolledBack
          ? `${name}: the revision that was rolled back is rolled out again, requested by ${by}\n  the last run failed: ${run.rolledBack?.because ?? ''}\n  a new run starts with the first wave\n`
          : run.outcome === 'failed'
            ? `${name}: ${runText(run)} continues, requested by ${by}\n  it ended because: ${run.failure ?? 'it failed'}\n  soaks, gates and deadlines start over\n`
            : `${name}: pods with the wrong revision are replaced again, requested by ${by}\n`,
    };
  });
}
