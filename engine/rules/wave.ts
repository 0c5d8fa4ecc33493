// The checks of a wave: approval and gates before its first pod; soak, gates and approval after its last pod.
import type { WaveDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { waveTarget } from '../amount.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { blocks, result } from '../rule.ts';
import { digestOfWaves, objectOf, requesterText, skipRequest, type VerifiedRequest } from '../run/requests.ts';
import type { RunState } from '../snapshot.ts';
import { approvalResult } from './approval.ts';
import { gateVerdict } from './gate.ts';

export interface WaveAnswer {
  readonly results: readonly RuleResult[];
  /** Results of gates in observe mode. */
  readonly observations: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  /** The failure of the run when a gate failed too often. */
  readonly failure?: string;
}

/** Reports whether a rollback skips soaks and approvals. */
function isFastTrack(context: GroupContext, run: RunState): boolean {
  return run.kind === 'rollback' && context.group.rollout.skipOnRollback;
}

/** Returns the checks before the first pod of a wave. */
export function beforeWave(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const results: RuleResult[] = [];
  if (wave.before.approval !== undefined) {
    results.push(approval(context, wave, run, wave.before.approval, 'before'));
  }
  return withGates(context, wave, run, { names: wave.before.gates, sinceMs: Math.max(run.waveStartedMs, run.retriedMs ?? 0), results });
}

/**
 * Returns the checks before the next pod of a started wave. An approval covers the waves as they were; changed waves need a new one. An
 * expired approval still counts for a wave that it started.
 */
export function underWay(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const { approval: asked } = wave.before;
  const isAsked = asked !== undefined && run.waves !== digestOfWaves(context.group);
  return { results: isAsked ? [approval(context, wave, run, asked, 'before')] : [], observations: [], wantedReadings: [] };
}

/** Returns the digest of the waves that a replacement records; {} if no wave requires an approval before it. */
export function goneUnder({ rollout, gates }: GroupContext['group']): Pick<RunState, 'waves'> {
  const isAsked = rollout.waves.some(({ before }) => before.approval !== undefined);
  return isAsked ? { waves: digestOfWaves({ rollout, gates }) } : {};
}

/** Returns the checks after the last pod of a wave is available. */
export function afterWave(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const sinceMs = run.waveAvailableMs ?? context.nowMs;
  const results: RuleResult[] = [];
  if (wave.after.soakMs > 0) results.push(soakResult(context, wave, run, sinceMs));
  if (wave.after.approval !== undefined) results.push(approval(context, wave, run, wave.after.approval, 'after'));
  return withGates(context, wave, run, { names: wave.after.gates, sinceMs, results });
}

function soakResult(context: GroupContext, wave: WaveDefinition, run: RunState, sinceMs: number): RuleResult {
  const source = sourceOf(context, `waves.${wave.name}.after.soak`, `waves.${wave.name}`);
  const limit = formatDuration(wave.after.soakMs);
  if (isFastTrack(context, run)) return result('soak', 'skip', 'a rollback does not soak', { limit, source });
  if (addsNothing(context, wave)) return result('soak', 'skip', `wave ${wave.name} adds no pod to an earlier wave`, { limit, source });
  const passed = context.nowMs - sinceMs;
  const fact = `wave ${wave.name} has soaked ${formatDuration(passed)}`;
  const promotion = skipRequest(context, run, wave.name);
  if (passed < wave.after.soakMs && promotion !== undefined) return passedOver('soak', fact, promotion, limit);
  return passed >= wave.after.soakMs
    ? result('soak', 'ok', fact, { limit, source })
    : result('soak', 'wait', fact, { limit, source, earliestMs: sinceMs + wave.after.soakMs });
}

/** Reports whether the wave adds no pod to an earlier wave, as in small zones. The same pods do not soak twice. */
export function addsNothing({ group, view }: GroupContext, wave: WaveDefinition): boolean {
  const earlier = group.rollout.waves.slice(0, group.rollout.waves.indexOf(wave));
  return wave.zones.every((name) => {
    const replicas = view.zones.find(({ zone }) => zone.name === name)?.replicas ?? 0;
    const target = waveTarget(wave.amount, replicas);
    return earlier.some(
      (one) => one.zones.includes(name) && one.after.soakMs >= wave.after.soakMs && waveTarget(one.amount, replicas) >= target,
    );
  });
}

function approval(
  context: GroupContext,
  wave: WaveDefinition,
  run: RunState,
  definition: NonNullable<WaveDefinition['before']['approval']>,
  when: 'before' | 'after',
): RuleResult {
  const source = sourceOf(context, `waves.${wave.name}.${when}.approval`, `waves.${wave.name}`);
  if (isFastTrack(context, run)) return result('approval', 'skip', 'a rollback needs no approval', { source });
  // A wave may require an approval before and after it. One approval does not count for both.
  const after = when === 'after' ? { sinceMs: Math.max(run.waveStartedMs, run.lastDisruptionMs ?? 0) } : {};
  return approvalResult({
    context,
    rule: 'approval',
    approval: definition,
    subject: { wave: wave.name },
    digest: digestOfWaves(context.group),
    run,
    ...after,
    source,
  });
}

/** Returns the result of a rule that would wait but a person promoted the wave. */
function passedOver(rule: string, fact: string, promotion: VerifiedRequest, limit: string | undefined): RuleResult {
  return result(rule, 'skip', `${fact}; promoted by ${requesterText(promotion)}`, { limit, source: objectOf(promotion) });
}

interface AskedGates {
  readonly names: readonly string[];
  /** Readings count from this instant, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** Results of the checks before the gates. */
  readonly results: readonly RuleResult[];
}

function withGates(
  context: GroupContext,
  wave: WaveDefinition,
  run: RunState,
  { names, sinceMs, results: before }: AskedGates,
): WaveAnswer {
  const results = [...before];
  const observations: RuleResult[] = [];
  // The gates may measure the failure itself and would then block its repair.
  if (run.kind === 'rollback' && run.rolledBack !== undefined) return { results, observations, wantedReadings: [] };
  const wantedReadings: { gate: string; fromMs: number }[] = [];
  let failure: string | undefined;
  for (const name of names) {
    if (!context.group.gates.some((gate) => gate.name === name)) results.push(result('gate', 'unknown', `gate ${name} is not defined`));
  }
  for (const gate of context.group.gates.filter((candidate) => names.includes(candidate.name))) {
    const verdict = gateVerdict(context, gate, sinceMs);
    wantedReadings.push({ gate: gate.name, fromMs: verdict.fromMs });
    const promotion = blocks(verdict.answer) ? skipRequest(context, run, wave.name, gate.name) : undefined;
    if (gate.mode === 'observe') observations.push(verdict.answer);
    else if (promotion !== undefined) results.push(passedOver('gate', verdict.answer.fact, promotion, verdict.answer.limit));
    else results.push(verdict.answer);
    if (verdict.hasFailed && promotion === undefined) failure ??= `gate ${verdict.answer.fact}`;
  }
  return { results, observations, wantedReadings, ...(failure === undefined ? {} : { failure }) };
}
