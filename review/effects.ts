// Groups the answers that differ by their cause, and says in one clause how each decision differs.
import { blockingResults, blocks } from '../engine/rule.ts';
import { formatDuration } from '../policies/duration.ts';
import { defined } from '../policies/values/defined.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { counted } from '../policies/wording.ts';
import { causeOf, isContrary, type Sides, strictFirst } from './causes.ts';
import { type Answered, endsByTime, type Flip, isOtherAnswer, waitOf } from './compare.ts';
import type { ChangedDecision, PolicyEffect, RulePlace, SideDecision } from './document.ts';
import { changedSettings } from './settings.ts';
import { type BoundGroup, differs, type Pair } from './sides.ts';

/** Returns one effect for each cause and direction, the effects with the most decisions first. */
export function effectsOf(flips: readonly Flip[], pair: Pair, sides: Sides): readonly PolicyEffect[] {
  const settings = changedSettings(pair);
  const own = flips.filter((flip) => isOfWaves(flip, pair) && !isContrary(flip, settings) && !isSideEffect(flip, flips));
  const limits = groupBy(own, (flip) => (flip.before?.limit && flip.after?.limit ? limitKey(flip) : undefined));
  const caused = own.map((flip) => ({ flip, cause: causeOf({ ...flip, ...placesOf(flip, limits) }, pair, sides, settings) }));
  const effects = [...groupBy(caused, ({ flip, cause }) => `${flip.direction} ${cause.text}`).values()].map((same) => {
    const [{ flip, cause }] = same;
    return {
      direction: flip.direction,
      namespace: pair.namespace,
      group: pair.name,
      cause: cause.text,
      rule: flip.rule,
      ...(cause.source === undefined
        ? defined({ before: placeOf(flip.before), after: placeOf(flip.after) })
        : { [strictFirst(flip.direction)[0]]: { source: cause.source } }),
      decisions: decisionsOf(telling(same.map((one) => one.flip))),
    };
  });
  return effects;
}

/** The parts of the waves that decide the answers of a rule. */
const waveParts: Readonly<Record<string, (side: BoundGroup) => unknown>> = {
  soak: ({ group }) => group.rollout.waves.map(({ zones, amount, after }) => [zones, amount, after.soakMs]),
  approval: ({ group }) => group.rollout.waves.map(({ zones, amount, before, after }) => [zones, amount, before.approval, after.approval]),
  gate: ({ group }) => [
    group.rollout.waves.map(({ zones, amount, before, after }) => [zones, amount, before.gates, after.gates]),
    ...group.gates,
  ],
};

/**
 * Returns false for a rule of waves whose part of the waves is the same on both sides. Such a rule is evaluated in another wave, because
 * another rule changed, such as the soak before it.
 */
function isOfWaves({ rule }: Flip, pair: Pair): boolean {
  const part = waveParts[rule];
  return part === undefined || differs(pair, part);
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
  const isOther = ({ answers: { before, after }, question }: Flip): boolean => isOtherAnswer(before, after, question.nowMs);
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

/** Joins equal decisions in several circumstances. Those of the agent come first, then those in the plain state or in most circumstances. */
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
