// Checks a wave: approval and gates before its first pod; soak, gates and approval after its last pod.
import type { ApprovalDefinition, WaveDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { defined } from '../../policies/values/defined.ts';
import { waveTarget } from '../amount.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { ageSince, blocks, result } from '../rule.ts';
import { isRollingBack } from '../run/origin.ts';
import { digestOfWaves, objectOf, requesterText, skipRequest, type VerifiedRequest } from '../run/requests.ts';
import { changesZone } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import { hasReplacedSince } from '../run/states.ts';
import { approvalResults, isRejection } from './approval.ts';
import { gateVerdict } from './gate.ts';

export interface WaveAnswer {
  readonly results: readonly RuleResult[];
  readonly observations: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
  /** The failure of the run when a gate failed too often. */
  readonly failure?: string;
}

/** Reports whether a return to the previous template skips a check of the wave: a soak, a gate or an approval. */
export function hasChecks({ before, after }: WaveDefinition): boolean {
  return after.soakMs > 0 || [before, after].some(({ approval, gates }) => approval !== undefined || gates.length > 0);
}

/** Reports whether the run returns to the previous template without soaks, gates and approvals. */
export function isFastTrack(context: GroupContext, run: RunState): boolean {
  return run.kind === 'rollback' && context.group.rollout.skipOnRollback;
}

/** Reports whether the run passes no gate: the gates may measure the failure that the return repairs, and would then block the repair. */
export function skipsGates(context: GroupContext, run: RunState): boolean {
  return isRollingBack(run) || isFastTrack(context, run);
}

export function beforeWave(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const results: RuleResult[] = [];
  if (wave.before.approval !== undefined) {
    results.push(...approvals(context, run, { wave, definition: wave.before.approval, when: 'before' }));
  }
  return withGates(context, wave, run, { names: wave.before.gates, sinceMs: Math.max(run.waveStartedMs, run.retriedMs ?? 0), results });
}

/** Returns the results of the checks before a further pod of a wave. Changed waves need a new approval; an expired approval still counts. */
export function underWay(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const { approval: definition } = wave.before;
  const isAsked = definition !== undefined && asksBefore(context, wave, run);
  return { results: isAsked ? approvals(context, run, { wave, definition, when: 'before' }) : [], observations: [], wantedReadings: [] };
}

/** Reports whether the next pod needs the approval before its wave: the first pod does, and the next pod after the waves changed. */
export function asksBefore({ group }: GroupContext, { before }: WaveDefinition, run: RunState): boolean {
  return before.approval !== undefined && (!hasReplacedSince(run, run.waveStartedMs) || run.waves !== digestOfWaves(group));
}

/** Returns the digest of the waves, to be recorded with a replacement; {} for one wave without an approval before its first pod. */
export function wavesDigestOf({ rollout, gates }: GroupContext['group']): Pick<RunState, 'waves'> {
  const isNeeded = rollout.waves.length > 1 || rollout.waves[0]?.before.approval !== undefined;
  return isNeeded ? { waves: digestOfWaves({ rollout, gates }) } : {};
}

/** Returns the rejections of later waves and of the end of this wave, once for each zone of a rejected wave. The run stops there. */
export function rejectionsAhead(context: GroupContext, run: RunState): readonly { readonly zone: string; readonly result: RuleResult }[] {
  return context.group.rollout.waves.slice(run.wave).flatMap((wave, index) => {
    const answers = (['before', 'after'] as const).flatMap((when) => {
      const { approval: definition } = wave[when];
      return definition === undefined || (index === 0 && when === 'before') ? [] : approvals(context, run, { wave, definition, when });
    });
    return answers.filter(isRejection).flatMap((answer) => wave.zones.map((zone) => ({ zone, result: answer })));
  });
}

/** Returns the results of the checks after the last pod of a wave is available. */
export function afterWave(context: GroupContext, wave: WaveDefinition, run: RunState): WaveAnswer {
  const sinceMs = run.waveAvailableMs ?? context.nowMs;
  const results: RuleResult[] = [];
  if (wave.after.soakMs > 0) results.push(soakResult(context, wave, run, sinceMs));
  if (wave.after.approval !== undefined) results.push(...approvals(context, run, { wave, definition: wave.after.approval, when: 'after' }));
  return withGates(context, wave, run, { names: wave.after.gates, sinceMs, results });
}

function soakResult(context: GroupContext, wave: WaveDefinition, run: RunState, sinceMs: number): RuleResult {
  const source = sourceOf(context, `waves.${wave.name}.after.soak`, `waves.${wave.name}`);
  const limit = formatDuration(wave.after.soakMs);
  if (isFastTrack(context, run))
    return result('soak', 'skip', 'a return to the previous template does not soak (skipOnRollback)', { limit, source });
  if (addsNothing(context, wave)) return result('soak', 'skip', `earlier waves include every pod of wave ${wave.name}`, { limit, source });
  const passed = context.nowMs - sinceMs;
  const age = ageSince('for', sinceMs, context.nowMs);
  const isUnchanged = wave.zones.every((zone) => run.target[zone] !== undefined && !changesZone(run, zone));
  const fact = `wave ${wave.name} has soaked ${age.words}${isUnchanged ? ', though this run does not change its pods' : ''}`;
  const promotion = skipRequest(context, run, wave.name);
  if (passed < wave.after.soakMs && promotion !== undefined) return { ...skippedByPromotion('soak', fact, promotion, limit), age };
  return passed >= wave.after.soakMs
    ? result('soak', 'ok', fact, { limit, source, age })
    : result('soak', 'wait', fact, { limit, source, age, earliestMs: sinceMs + wave.after.soakMs });
}

/** Reports whether earlier waves with an equal or longer soak include all pods of the wave. The same pods do not soak twice. */
export function addsNothing(context: GroupContext, wave: WaveDefinition): boolean {
  return isIncludedEarlier(context, wave, (earlier) => earlier.after.soakMs >= wave.after.soakMs);
}

/** Reports whether earlier waves include all pods of the wave, so that the wave has no first pod. */
export function addsNoPod(context: GroupContext, wave: WaveDefinition): boolean {
  return isIncludedEarlier(context, wave, () => true);
}

function isIncludedEarlier({ group, view }: GroupContext, wave: WaveDefinition, counts: (earlier: WaveDefinition) => boolean): boolean {
  const earlier = group.rollout.waves.slice(0, group.rollout.waves.indexOf(wave)).filter(counts);
  return wave.zones.every((name) => {
    const replicas = view.zones.find(({ zone }) => zone.name === name)?.replicas ?? 0;
    const target = waveTarget(wave.amount, replicas);
    return earlier.some((one) => one.zones.includes(name) && waveTarget(one.amount, replicas) >= target);
  });
}

interface WaveApproval {
  readonly wave: WaveDefinition;
  readonly definition: ApprovalDefinition;
  readonly when: 'before' | 'after';
}

function approvals(context: GroupContext, run: RunState, { wave, definition, when }: WaveApproval): readonly RuleResult[] {
  const source = sourceOf(context, `waves.${wave.name}.${when}.approval`, `waves.${wave.name}`);
  if (isFastTrack(context, run))
    return [result('approval', 'skip', 'a return to the previous template needs no approval (skipOnRollback)', { source })];
  // A wave may require an approval before its first pod and another after its last pod. One approval does not count for both.
  const after = when === 'after' ? { sinceMs: Math.max(run.waveStartedMs, run.lastDisruptionMs ?? 0) } : {};
  return approvalResults({
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

/** Returns the skipped result of a rule that would wait if a person had not promoted the wave. */
function skippedByPromotion(rule: string, fact: string, promotion: VerifiedRequest, limit: string | undefined): RuleResult {
  return result(rule, 'skip', `${fact}; promoted by ${requesterText(promotion)}`, { limit, source: objectOf(promotion) });
}

interface AskedGates {
  readonly names: readonly string[];
  /** The initial delay of each gate starts at this instant, in milliseconds since 1970. Readings count after the delay. */
  readonly sinceMs: number;
  readonly results: readonly RuleResult[];
}

function withGates(context: GroupContext, wave: WaveDefinition, run: RunState, { names, sinceMs, results }: AskedGates): WaveAnswer {
  if (skipsGates(context, run)) return { results, observations: [], wantedReadings: [] };
  const { gates } = context.group;
  const missing = names.filter((name) => !gates.some((gate) => gate.name === name));
  const judged = gates
    .filter(({ name }) => names.includes(name))
    .map((gate) => {
      const { answer, hasFailed, fromMs } = gateVerdict(context, gate, sinceMs);
      const promotion = blocks(answer) ? skipRequest(context, run, wave.name, gate.name) : undefined;
      const isObserved = gate.mode === 'observe';
      const shown = promotion === undefined || isObserved ? answer : skippedByPromotion('gate', answer.fact, promotion, answer.limit);
      const failure = hasFailed && promotion === undefined ? `gate ${answer.fact}` : undefined;
      return { gate: gate.name, isObserved, shown, fromMs, failure };
    });
  return {
    results: [
      ...results,
      ...missing.map((name) => result('gate', 'unknown', `gate ${name} is not defined`)),
      ...judged.filter(({ isObserved }) => !isObserved).map(({ shown }) => shown),
    ],
    observations: judged.filter(({ isObserved }) => isObserved).map(({ shown }) => shown),
    wantedReadings: judged.map(({ gate, fromMs }) => ({ gate, fromMs })),
    ...defined({ failure: judged.find(({ failure }) => failure !== undefined)?.failure }),
  };
}
