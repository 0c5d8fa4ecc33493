// Groups the answers that differ by their cause, and says in one clause how each decision differs.
import { blockingResults } from '../engine/rule.ts';
import { formatDuration } from '../policies/duration.ts';
import { defined } from '../policies/values/defined.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { counted } from '../policies/wording.ts';
import { causeOf, type Sides, strictFirst } from './causes.ts';
import { type Answered, endsByTime, type Flip, isOtherAnswer, waitOf } from './compare.ts';
import type { ChangedDecision, PolicyEffect, RulePlace, SideDecision } from './document.ts';
import type { Pair } from './sides.ts';

/** Returns one effect for each cause and direction, the effects with the most decisions first. */
export function effectsOf(flips: readonly Flip[], pair: Pair, sides: Sides): readonly PolicyEffect[] {
  const caused = flips.map((flip) => ({ flip, cause: causeOf(flip, pair, sides) }));
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
  return `${may}${when}: ${stateText(before)} -> ${stateText(after)}`;
}

function isPassing({ decision }: Answered): boolean {
  return ['allow', 'warn', 'act', 'done'].includes(decision);
}

function podsText(may: string, before: Answered, after: Answered): string {
  if (before.pods.length !== after.pods.length) return `${after.pods.length} pods at once may be replaced instead of ${before.pods.length}`;
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
