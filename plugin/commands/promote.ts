// The verb promote: skips the soak and the gates of a wave. Approvals, windows and policies still apply.
import type { PublishedRun } from '../../engine/publish/published.ts';
import { effectOfPromotion } from '../../engine/run/effects.ts';
import { formatDuration } from '../../policies/duration.ts';
import { listed } from '../../policies/wording.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, refusedFailure, usageFailure } from '../failure.ts';
import {
  publishedRun,
  type Request,
  type RequestedGroup,
  type RequestFlags,
  readAndSubmit,
  readWithRun,
  runInContext,
} from '../live/submit-request.ts';
import { confirmAlways, confirmByPrompt, type PromptFlags } from '../live/write-options.ts';

export interface PromoteOptions extends RequestFlags, PromptFlags {
  readonly wave?: string;
  readonly gate?: string;
  readonly full?: boolean;
}

export function run(context: CommandContext, options: PromoteOptions): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => promoteRequest(context, options, requested), readWithRun);
}

function promoteRequest(context: CommandContext, options: PromoteOptions, requested: RequestedGroup): Request {
  const { name, live } = requested;
  const { gate, full } = options;
  if (full === true && options.wave !== undefined) throw usageFailure('--full already includes every wave', 'omit --wave');
  const { id: runId, outcome } = unfinishedRun(requested);
  const wave = full === true ? undefined : waveNamed(requested, options.wave ?? live.decision.wave?.name);
  if (gate !== undefined) refuseUnknownGate(requested, gate);
  const { where, skipped } = skippedBy(requested, wave, gate);
  const retry = outcome === 'failed' ? `  the run failed; continue it: kubectl rollout-group retry ${name}\n` : '';
  const preview = `This skips ${skipped} of ${where} of ${name}.\n`;
  return {
    needsRequester: true,
    // The text names the retry of a failed run.
    concerns: (rule) => rule !== 'gate' && rule !== 'run-failed',
    key: `${runId} ${wave ?? ''} ${gate ?? ''}`,
    spec: { action: 'promote', runId, ...(wave === undefined ? {} : { wave }), ...(gate === undefined ? {} : { gate }) },
    confirm: () => (full === true ? confirmAlways : confirmByPrompt)(context, options, preview),
    text: (by) =>
      `${name}: ${where} promoted by ${by}, skips ${skipped}\n  budgets, zone order, windows, policies and approvals still apply; the promotion ends with run ${runId}\n${retry}`,
  };
}

/** Returns the published run. A promotion of a failed run counts when a retry continues the run. */
function unfinishedRun(requested: RequestedGroup): PublishedRun {
  const run = publishedRun(requested);
  if (run !== undefined && run.outcome !== 'completed') return run;
  throw refusedFailure(`${requested.name}: no run is in progress, so no wave can be promoted`);
}

function waveNamed(requested: RequestedGroup, wanted: string | undefined): string {
  const names = requested.live.definition?.rollout.waves.map(({ name }) => name) ?? [];
  if (wanted === undefined) throw usageFailure(`the current wave of ${requested.name} is unknown`, 'add --wave NAME or --full');
  if (names.length > 0 && !names.includes(wanted))
    throw usageFailure(`${requested.name} has no wave ${wanted}`, `its waves: ${names.join(', ')}`);
  return wanted;
}

function refuseUnknownGate({ live, name }: RequestedGroup, gate: string): void {
  const gates = live.definition?.gates.map((one) => one.name);
  if (gates === undefined || gates.includes(gate)) return;
  throw usageFailure(`${name} has no gate ${gate}`, gates.length === 0 ? 'the group defines no gate' : `its gates: ${gates.join(', ')}`);
}

/**
 * Returns the waves that the promotion concerns, and the skipped parts, such as `a soak of 30m and gate errors`. If the definition cannot be
 * read here, omits names and durations. Throws Failure if nothing is left to skip.
 */
function skippedBy(
  requested: RequestedGroup,
  wave: string | undefined,
  gate: string | undefined,
): { readonly where: string; readonly skipped: string } {
  const { name } = requested;
  const current = runInContext(requested);
  if (current === undefined)
    return { where: wave === undefined ? 'every wave' : `wave ${wave}`, skipped: gate === undefined ? 'soak and gates' : `gate ${gate}` };
  const { waves, soakMs, gates, why } = effectOfPromotion(current.context, current.run, { wave, gate });
  if (why !== undefined)
    throw refusedFailure(`${name}: nothing was promoted, because nothing is left to skip`, {
      why,
      todo: `kubectl rollout-group explain ${name}`,
    });
  const parts = [...(soakMs === 0 ? [] : [`a soak of ${formatDuration(soakMs)}`]), ...gates.map((one) => `gate ${one}`)];
  const names = waves.map((one) => one.name);
  return { where: `${names.length === 1 ? 'wave' : 'waves'} ${listed(names, 'and')}`, skipped: parts.join(' and ') };
}
