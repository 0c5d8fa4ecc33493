// Decides whether a request about a run has an effect now, and if not, why. The verbs ask before they write a request.
import type { ApprovalDefinition, WaveDefinition } from '../../policies/definition.ts';
import { type StrategyName, strategyTraits } from '../../policies/strategies.ts';
import { listed } from '../../policies/wording.ts';
import type { GroupContext } from '../context.ts';
import { addsNoPod, addsNothing, asksBefore, isFastTrack, skipsGates } from '../rules/wave.ts';
import type { RunState } from './run-state.ts';
import { hasReplacedSince } from './states.ts';
import { type WaveProgress, waveProgress } from './waves.ts';

export interface OpenApproval {
  /** `before`: the approval before the first pod of the wave. `after`: the approval after its last pod. */
  readonly when: 'before' | 'after';
  readonly approval: ApprovalDefinition;
}

/** The effect of an answer to a wave, an approval or a rejection: the required approvals for which it counts, or why it has no effect. */
type AnswerEffect =
  | { readonly counts: readonly OpenApproval[]; readonly why?: undefined }
  | { readonly counts: readonly []; readonly why: string /** True if it counts later. */; readonly isEarly: boolean };

/**
 * Returns the effect of an answer to a wave. An approval counts for the start of the wave until the wave starts, and for its end after its
 * last pod is replaced. A rejection counts for each required approval that can still block the wave.
 */
export function effectOfAnswer(context: GroupContext, run: RunState, wave: WaveDefinition, action: 'approve' | 'reject'): AnswerEffect {
  const ahead = context.group.rollout.waves.indexOf(wave) - run.wave;
  const progress = waveProgress(context, wave, run);
  const repairs = ahead === 0 && repairsOtherZone(progress, run);
  if (isFastTrack(context, run) && !repairs)
    return { counts: [], why: 'a return to the previous template needs no approval (skipOnRollback)', isEarly: false };
  const state = { isEmpty: ahead === 0 && addsNoPod(context, wave), isReplaced: ahead === 0 && isReplaced(run, progress) };
  const isStarting = repairs || ahead > 0 || (ahead === 0 && mayStart(state) && asksBefore(context, wave, run));
  const starts = isStarting ? openApproval('before', wave) : [];
  const ends = ahead < 0 || run.returning !== undefined ? [] : openApproval('after', wave);
  const counts = action === 'reject' || isEndDue(state, starts) ? [...starts, ...ends] : starts;
  return counts.length > 0 ? { counts } : { counts: [], why: whyNotCounted(context, run, wave, ends), isEarly: ends.length > 0 };
}

function isReplaced({ waveAvailableMs }: RunState, { isFilled }: WaveProgress): boolean {
  return isFilled || waveAvailableMs !== undefined;
}

interface WaveState {
  /** True if the wave adds no pod. Then its start and its end are due together. */
  readonly isEmpty: boolean;
  readonly isReplaced: boolean;
}

function mayStart({ isEmpty, isReplaced: isOver }: WaveState): boolean {
  return isEmpty || !isOver;
}

function isEndDue({ isEmpty, isReplaced: isOver }: WaveState, starts: readonly OpenApproval[]): boolean {
  return isEmpty || (isOver && starts.length === 0);
}

function whyNotCounted({ group }: GroupContext, run: RunState, wave: WaveDefinition, ends: readonly OpenApproval[]): string {
  const { waves } = group.rollout;
  if (ends.length > 0) return `an approval of the end of wave ${wave.name} counts only after its last pod is replaced`;
  if (waves.indexOf(wave) >= run.wave) return `wave ${wave.name} has already started`;
  const current = waves[run.wave];
  return `wave ${wave.name} is over${current === undefined ? '' : `; the run is in wave ${current.name}`}`;
}

function openApproval(when: OpenApproval['when'], { [when]: { approval } }: WaveDefinition): readonly OpenApproval[] {
  return approval === undefined ? [] : [{ when, approval }];
}

/** Reports whether, while some zones return before the waves, a stuck pod of another zone is replaced. This needs the approval of its wave. */
function repairsOtherZone({ zones }: WaveProgress, { returning }: RunState): boolean {
  return returning !== undefined && zones.some(({ view, remaining }) => remaining > 0 && !returning.includes(view.zone.name));
}

/** The effect of a promotion: its waves, and the soaks and gates that it skips there. `why` is the reason if nothing is left to skip. */
interface PromotionEffect {
  readonly waves: readonly WaveDefinition[];
  /** The sum of the soaks in milliseconds. */
  readonly soakMs: number;
  readonly gates: readonly string[];
  readonly why?: string;
}

/** Returns the effect of a promotion of one wave, or of the current wave and all later waves. With `gate`, only this gate is skipped. */
export function effectOfPromotion(
  context: GroupContext,
  run: RunState,
  { wave, gate }: { readonly wave: string | undefined; readonly gate: string | undefined },
): PromotionEffect {
  const left = context.group.rollout.waves.slice(run.wave);
  const waves = left.filter(({ name }) => wave === undefined || name === wave);
  const soakMs = gate === undefined ? waves.reduce((sum, one) => sum + soakLeft(context, run, one), 0) : 0;
  const gates = [...new Set(waves.flatMap((one) => gatesLeft(context, run, one)))].filter((one) => gate === undefined || one === gate);
  if (soakMs > 0 || gates.length > 0) return { waves, soakMs, gates };
  const names = waves.map(({ name }) => name);
  const subject = `${names.length === 1 ? 'wave' : 'waves'} ${listed(names, 'and')}`;
  const nothing = `${names.length === 1 ? 'has' : 'have'} no ${gate === undefined ? 'soak and no gate' : `gate ${gate}`} left`;
  const over = wave === undefined ? 'every wave is over' : `wave ${wave} is over`;
  return { waves, soakMs, gates, why: names.length === 0 ? over : `${subject} ${nothing}${returnText(context, run)}` };
}

/** Returns the duration of a soak that has not ended, in milliseconds; 0 if the run does not wait for the soak. */
function soakLeft(context: GroupContext, run: RunState, wave: WaveDefinition): number {
  const { soakMs } = wave.after;
  if (run.returning !== undefined || isFastTrack(context, run) || addsNothing(context, wave)) return 0;
  const isOver = isCurrent(context, run, wave) && run.waveAvailableMs !== undefined && context.nowMs - run.waveAvailableMs >= soakMs;
  return isOver ? 0 : soakMs;
}

/** Returns the gates that can still block the wave. When the first pod of the wave is replaced, the gates before the wave have passed. */
function gatesLeft(context: GroupContext, run: RunState, wave: WaveDefinition): readonly string[] {
  if (run.returning !== undefined || skipsGates(context, run)) return [];
  const isFilled = (): boolean => !addsNoPod(context, wave) && waveProgress(context, wave, run).isFilled;
  const hasBegun = isCurrent(context, run, wave) && (hasReplacedSince(run, run.waveStartedMs) || isFilled());
  const names = [...(hasBegun ? [] : wave.before.gates), ...wave.after.gates];
  return names.filter((name) => context.group.gates.some((gate) => gate.name === name && gate.mode === 'enforce'));
}

function isCurrent({ group }: GroupContext, run: RunState, wave: WaveDefinition): boolean {
  return group.rollout.waves.indexOf(wave) === run.wave;
}

function returnText(context: GroupContext, run: RunState): string {
  if (!skipsGates(context, run)) return '';
  return `; a return to the previous template skips ${isFastTrack(context, run) ? 'soaks and gates (skipOnRollback)' : 'gates'}`;
}

/** The facts about a run that decide whether it can be rolled back. An unknown strategy counts as a strategy that can roll back. */
interface RollbackFacts {
  readonly strategy: StrategyName | undefined;
  /** True if the run itself returns to the earlier revisions. */
  readonly isReturn: boolean;
  /** True if the run changes the revision of a zone. */
  readonly isChange: boolean;
}

/** Returns why an unfinished run cannot be rolled back: by its strategy, because the run itself is a return, or because no revision changes. */
export function whyNotRolledBack({ strategy, isReturn, isChange }: RollbackFacts): 'strategy' | 'return' | 'unchanged' | undefined {
  if (strategy !== undefined && !strategyTraits[strategy].canRollBack) return 'strategy';
  if (isReturn) return 'return';
  return isChange ? undefined : 'unchanged';
}
