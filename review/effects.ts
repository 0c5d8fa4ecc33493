// Groups the answers that differ by their cause, and says in one clause how each decision differs.
import { blockingResults, blocks } from '../engine/rule.ts';
import { formatDuration } from '../policies/duration.ts';
import { defined } from '../policies/values/defined.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { counted, listed } from '../policies/wording.ts';
import { causeOf } from './causes.ts';
import { type Answered, endsByTime, type Flip, isOfRule, isOtherAnswer, leavesOthers, setsOf, strictFirst, waitOf } from './compare.ts';
import type { ChangedDecision, PolicyEffect, RulePlace, SideDecision } from './document.ts';
import type { Cause } from './setting-causes.ts';
import { type ChangedSetting, sourceOfSetting } from './settings.ts';
import type { Pair, Sides } from './sides.ts';

/** An effect with the settings that its cause names. */
export interface SeenEffect {
  readonly effect: PolicyEffect;
  readonly settings: readonly ChangedSetting[];
}

interface Compared {
  readonly pair: Pair;
  readonly sides: Sides;
  readonly settings: readonly ChangedSetting[];
}

/** Returns one effect for each cause and direction, the effects with the most decisions first. */
export function effectsOf(flips: readonly Flip[], { pair, sides, settings }: Compared): readonly SeenEffect[] {
  const own = flips.filter((flip) => !isSideEffect(flip, flips));
  const limits = groupBy(own, (flip) => (flip.before?.limit && flip.after?.limit ? limitKey(flip) : undefined));
  const caused = own.flatMap((flip) => {
    const cause = causeOf({ ...flip, ...placesOf(flip, limits) }, pair, sides, settings);
    return cause === undefined ? [] : [{ flip, cause }];
  });
  const ruled = new Set(caused.filter(({ flip }) => isOfRule(flip)).map(({ cause }) => cause.text));
  // Other pods are replaced next after most changes of waves. Only a change without another effect needs to be told by them.
  const told = caused.filter(({ flip, cause }) => isOfRule(flip) || leavesOthers(flip.answers) || !ruled.has(cause.text));
  return [...groupBy(told, ({ flip, cause }) => `${flip.direction} ${cause.text}`).values()].map((same) => {
    const { flip, cause } = same.find((one) => !one.cause.isShape) ?? same[0];
    const effect = {
      direction: flip.direction,
      namespace: pair.namespace,
      group: pair.name,
      cause: cause.text,
      ...(cause.isShape ? {} : { rule: flip.rule }),
      ...effectPlaces(flip, cause, pair),
      decisions: decisionsOf(telling(same.map((one) => one.flip))),
    };
    return { effect, settings: cause.settings ?? [] };
  });
}

/** Returns the places of the definition that only the stricter side has, of the first setting, or of the results. */
function effectPlaces({ direction, before, after }: Flip, cause: Cause, pair: Pair): Pick<PolicyEffect, 'before' | 'after'> {
  if (cause.source !== undefined) return { [strictFirst(direction)[0]]: { source: cause.source } };
  if (!cause.isShape) return defined({ before: placeOf(before), after: placeOf(after) });
  const [setting] = cause.settings ?? [];
  const [was, is] = [pair.before, pair.after].map((side) => side && sourceOfSetting(setting, side.group));
  return defined({ before: was && { source: was }, after: is && { source: is } });
}

/**
 * Reports whether the difference is only a warning, while the same rule blocks more on the other side: a rule that warns instead of blocking is
 * loosened, also for requests that passed it without a warning.
 */
function isSideEffect(flip: Flip, flips: readonly Flip[]): boolean {
  const hasBlock = ({ before, after }: Flip): boolean => [before, after].some((result) => result !== undefined && blocks(result));
  return !hasBlock(flip) && flips.some((one) => one.rule === flip.rule && one.direction !== flip.direction && hasBlock(one));
}

function limitKey(flip: Flip): string {
  const result = flip[strictFirst(flip.direction)[0]];
  return JSON.stringify([flip.direction, flip.rule, result?.limit, result?.source]);
}

/**
 * Returns the results of both sides. If the looser side did not evaluate the rule, as after a soak that has ended, its limit is that of another
 * question about the same setting.
 */
function placesOf(flip: Flip, limits: ReadonlyMap<string, readonly [Flip, ...Flip[]]>): Pick<Flip, 'before' | 'after'> {
  const [strict, loose] = strictFirst(flip.direction);
  const [other = flip] = flip[strict]?.limit !== undefined && flip[loose]?.limit === undefined ? (limits.get(limitKey(flip)) ?? []) : [];
  return { before: other.before, after: other.after };
}

/** Returns the differences that tell most: those in what passes or when, else those of the whole answer, else all. */
function telling(flips: readonly Flip[]): readonly Flip[] {
  const isOther = ({ answers, question }: Flip): boolean =>
    leavesOthers(answers) || isOtherAnswer(answers.before, answers.after, question.nowMs);
  const isClear = (flip: Flip): boolean => {
    const { before, after } = flip.answers;
    return isOther(flip) && (isPassing(before) || isPassing(after) || (endsByTime(before) && endsByTime(after)));
  };
  const found = [isClear, isOther].map((tells) => flips.filter(tells)).find(({ length }) => length > 0);
  return found ?? flips;
}

function placeOf(result: Flip['before']): RulePlace | undefined {
  const place = defined({ limit: result?.limit, source: result?.source });
  return Object.keys(place).length === 0 ? undefined : place;
}

/** Joins equal decisions in several circumstances. Those of the agent come first, then those without circumstances, then the most frequent. */
function decisionsOf(flips: readonly Flip[]): readonly ChangedDecision[] {
  const groups = groupBy(flips, (flip) => [differenceOf(flip, ''), ...wordsOf(flip)].join('\n'));
  const isPlain = (same: readonly Flip[]): boolean => same.some(({ question }) => question.when === '');
  const weight = ([first, ...others]: readonly [Flip, ...Flip[]]): number => {
    const { asksAgent, isCase } = first.question;
    return isCase ? 0 : (asksAgent ? 2e6 : 0) + (isPlain([first, ...others]) ? 1e6 : 1 + others.length);
  };
  const ordered = [...groups.values()].sort((a, b) => weight(b) - weight(a));
  return ordered.map((same) => {
    const [flip] = same;
    const when = [...new Set(same.map(({ question }) => question.when))].filter((words) => words !== '');
    const more = when.length > 1 ? ` and in ${counted(when.length - 1, 'more case')}` : '';
    const circumstances = isPlain(same) || when.length === 0 ? '' : ` ${when[0]}${more}`;
    return {
      action: flip.question.action,
      may: flip.question.may,
      when: isPlain(same) ? [] : when,
      before: sideOf(flip.answers.before, flip),
      after: sideOf(flip.answers.after, flip),
      text: differenceOf(flip, circumstances),
    };
  });
}

function wordsOf({ answers }: Flip): readonly string[] {
  return [answers.before.decision, answers.after.decision];
}

function sideOf(answer: Answered, { question }: Flip): SideDecision {
  const rules = [...new Set(blockingResults(answer.results).map(({ rule }) => rule))];
  const waitMs = waitMsOf(answer, question.nowMs);
  return {
    decision: answer.decision,
    rules,
    ...(waitMs > 0 && endsByTime(answer) ? { waitSeconds: Math.round(waitMs / 1000) } : {}),
    ...(question.action === 'rollout' ? { pods: answer.pods.length } : {}),
  };
}

function waitMsOf({ results }: Answered, nowMs: number): number {
  return Math.max(0, ...blockingResults(results).map((one) => waitOf(one, nowMs)));
}

/** Returns the difference as a clause: `zone b may shrink 12h earlier`, `pod x-0 may be evicted (was: denied by no-eviction)`. */
function differenceOf(flip: Flip, when: string): string {
  const { question, answers, direction, rule } = flip;
  const { before, after } = answers;
  const { may, nowMs } = question;
  if (direction === 'changed') return leavesOthers(answers) ? outdatedText(before, after) : otherPodsText(before, after, when);
  const passes = isPassing(after) !== isPassing(before);
  if (passes && isPassing(after)) return `${may}${when} (was: ${stateText(before)})`;
  if (passes) return `${may.replace(' may ', ' may not ')}${when} (${stateText(after)}; was: allowed)`;
  if (isPassing(after)) return `${podsText(may, before, after)}${when}`;
  if (!isOtherAnswer(before, after, nowMs)) {
    const [still] = blockingResults(after.results).filter((one) => one.rule !== rule);
    return `${may}${when}: ${rule} blocks ${direction === 'loosened' ? 'less' : 'more'}, ${still?.rule ?? 'another rule'} still blocks`;
  }
  const [from, to] = [waitMsOf(before, nowMs), waitMsOf(after, nowMs)];
  if (endsByTime(before) && endsByTime(after) && from !== to) {
    return `${may} ${formatDuration(Math.abs(from - to))} ${to < from ? 'earlier' : 'later'}${when}`;
  }
  const [was, is] = [stateText(before), stateText(after)];
  if (was === is) return `${may}${when}: ${rule} blocks ${direction === 'loosened' ? 'less' : 'more'}, and the answer still is: ${is}`;
  return `${may}${when}: ${was} -> ${is}`;
}

function isPassing({ decision }: Answered): boolean {
  return ['allow', 'warn', 'act', 'done'].includes(decision);
}

/** Returns which pods are replaced next, and which were before the change. */
function otherPodsText(before: Answered, after: Answered, when: string): string {
  const [was, is] = [before, after].map((answer) => (answer.pods.length === 0 ? undefined : `pods of ${listed(setsOf(answer), 'and')}`));
  return `${is === undefined ? 'no further pod is replaced' : `${is} are replaced next`}${when} (was: ${was ?? 'no further pod'})`;
}

/** Returns which pods no wave includes, and which none included before the change. */
function outdatedText(before: Answered, after: Answered): string {
  const [was, is] = [before, after].map(({ inNoWave = [] }) => (inNoWave.length === 0 ? undefined : `pods of ${listed(inNoWave, 'and')}`));
  if (is === undefined) return `every pod is updated (was: ${was} stayed outdated, because no wave included them)`;
  return `${is} stay outdated, because no wave includes them (was: ${was === undefined ? 'every pod is updated' : was})`;
}

function podsText(may: string, before: Answered, after: Answered): string {
  if (before.pods.length !== after.pods.length)
    return `${counted(after.pods.length, 'pod')} at once may be replaced instead of ${before.pods.length}`;
  return before.decision === after.decision ? may : `${may}: ${stateText(before)} -> ${stateText(after)}`;
}

const states: Readonly<Record<string, string>> = {
  deny: 'denied',
  hold: 'on hold',
  requireApproval: 'needs approval',
  wait: 'waits',
  blocked: 'blocked',
  allow: 'allowed',
  warn: 'allowed with a warning',
  act: 'allowed',
  done: 'nothing to do',
};

function stateText({ decision, results }: Answered): string {
  const [leading] = blockingResults(results);
  return `${states[decision] ?? decision}${leading === undefined ? '' : ` by ${leading.rule}`}`;
}
