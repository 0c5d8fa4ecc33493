// The verb promote: skips the soak and the gates of a wave. Approvals, windows and policies still apply.
import { contextOf } from '../../engine/context.ts';
import { hasReplacedSince } from '../../engine/run/states.ts';
import type { WaveDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { listed } from '../../policies/wording.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, refusedFailure, usageFailure } from '../failure.ts';
import { publishedRun, type Request, type RequestedGroup, type RequestFlags, readAndSubmit, readWithRun } from '../live/submit-request.ts';
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
  const runId = runningRun(requested);
  const wave = full === true ? undefined : waveNamed(requested, options.wave ?? live.decision.wave?.name);
  if (gate !== undefined) refuseUnknownGate(requested, gate);
  const where = wave === undefined ? wavesText(wavesLeft(requested)) : `wave ${wave}`;
  const skipped = skippedText(requested, wave, gate);
  const preview = `This skips ${skipped} of ${where} of ${name}.\n`;
  return {
    needsRequester: true,
    concerns: (rule) => rule !== 'gate',
    key: `${runId} ${wave ?? ''} ${gate ?? ''}`,
    spec: { action: 'promote', runId, ...(wave === undefined ? {} : { wave }), ...(gate === undefined ? {} : { gate }) },
    confirm: () => (full === true ? confirmAlways : confirmByPrompt)(context, options, preview),
    text: (by) =>
      `${name}: ${where} promoted by ${by}, skips ${skipped}\n  budgets, zone order, windows, policies and approvals still apply; the promotion ends with run ${runId}\n`,
  };
}

function runningRun(requested: RequestedGroup): string {
  const run = publishedRun(requested);
  if (run?.outcome === 'running') return run.id;
  throw refusedFailure(`${requested.name}: no run is in progress, so no wave can be promoted`, {
    ...(run?.failure === undefined ? {} : { why: run.failure, todo: `kubectl rollout-group retry ${requested.name}` }),
  });
}

function wavesOf({ live }: RequestedGroup): readonly WaveDefinition[] {
  return live.definition?.rollout.waves ?? [];
}

/** Returns the current wave and the waves after it; empty if the definition cannot be read here. */
function wavesLeft(requested: RequestedGroup): readonly WaveDefinition[] {
  return wavesOf(requested).slice(requested.live.decision.wave?.index ?? 0);
}

function wavesText(waves: readonly WaveDefinition[]): string {
  const names = waves.map(({ name }) => name);
  return names.length === 0 ? 'every wave' : `${names.length === 1 ? 'wave' : 'waves'} ${listed(names, 'and')}`;
}

/** Reports whether the first pod of the current wave was replaced: then the gates before the wave have passed. */
function hasBegun({ live: { definition }, snapshot }: RequestedGroup): boolean {
  const run = snapshot && definition && contextOf(snapshot, definition).view.ledger.run;
  return run !== undefined && hasReplacedSince(run, run.waveStartedMs);
}

function waveNamed(requested: RequestedGroup, wanted: string | undefined): string {
  const names = wavesOf(requested).map(({ name }) => name);
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
 * Returns the skipped parts, such as `a soak of 30m and gate errors`, or `soak and gates` if the definition cannot be read here. Throws
 * Failure if nothing is left to skip.
 */
function skippedText(requested: RequestedGroup, wave: string | undefined, gate: string | undefined): string {
  const { name } = requested;
  if (wavesOf(requested).length === 0) return gate === undefined ? 'soak and gates' : `gate ${gate}`;
  const left = wavesLeft(requested);
  const meant = left.filter((one) => wave === undefined || one.name === wave);
  const soakMs = gate === undefined ? meant.reduce((sum, { after }) => sum + after.soakMs, 0) : 0;
  const isOver = (one: WaveDefinition): boolean => one === left[0] && hasBegun(requested);
  const gates = new Set(meant.flatMap((one) => [...(isOver(one) ? [] : one.before.gates), ...one.after.gates]));
  const skipped = [...gates].filter((one) => gate === undefined || one === gate);
  const parts = [...(soakMs === 0 ? [] : [`a soak of ${formatDuration(soakMs)}`]), ...skipped.map((one) => `gate ${one}`)];
  if (parts.length > 0) return parts.join(' and ');
  const [where, last] = [wavesText(meant), left.length === 1 && wave === undefined ? ', the last wave,' : ''];
  const nothing = `${meant.length === 1 ? 'has' : 'have'} no ${gate === undefined ? 'soak and no gate' : `gate ${gate}`} left`;
  throw refusedFailure(`${name}: nothing was promoted, because nothing is left to skip`, {
    why:
      meant.length === 0
        ? `${wave === undefined ? 'every wave' : `wave ${wave}`} of ${name} is over`
        : `${where} of ${name}${last} ${nothing}`,
    todo: `kubectl rollout-group explain ${name}`,
  });
}
