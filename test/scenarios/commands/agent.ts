// The commands turn and run: the agent takes one turn, or lives on.
import { decide } from '../../../engine/decide/decide.ts';
import type { Action, GroupDecision } from '../../../engine/decision.ts';
import { earliest } from '../../../engine/rule.ts';
import { nextEventMs } from '../../../engine/world/world.ts';
import { type TakenTurn, takeTurn } from '../act.ts';
import { type Commands, duration, word } from '../command.ts';
import { actionText, decisionLines, instant, resultText } from '../print.ts';
import { letTimePass, nextReadingMs, nowMs, observe, type Stage } from '../stage.ts';

/** A story that takes longer does not end. */
const horizonMs = 60 * 24 * 3_600_000;
const maxTurnsAtOnce = 50;

/** As many readings that change nothing mean that only a person helps. */
const maxTurnsAlike = 100;

/** What waits while a pod is on its way, which every rollout does all the time. */
const usualWaits: ReadonlySet<string> = new Set([
  'zone-budget',
  'other-zones-ready',
  'wave-available',
  'pods-in-flight',
  'disruption-budget',
  'eviction-budget',
  'replica-write-in-flight',
]);

export const agentCommands: Commands = {
  /** How many things the agent would do now; nothing is carried out. */
  look: (stage) => decide(observe(stage)).groups.map(({ phase, actions }) => `${phase}, ${actions.length} actions`),
  /** One decision, carried out. */
  turn: (stage) => {
    const now = nowMs(stage);
    const turns = takeTurn(stage);
    return turns.flatMap(({ decision, violations }) => [
      ...(turns.length > 1 ? [`${decision.group}:`] : []),
      ...decisionLines(decision, now),
      ...violations.map((violation) => `  VIOLATION ${violation}`),
    ]);
  },
  /** `run until done`, or `run 30m`: turns as things happen, one line for each change. */
  run: (stage, call) => {
    const isUntilDone = word(call, 0, 'until done, or a duration') === 'until';
    const endMs = nowMs(stage) + (isUntilDone ? horizonMs : duration(word(call, 0, 'a duration')));
    const lines: string[] = [];
    let lastWaits = '';
    let unchanged = 0;
    for (let atOnce = 0; atOnce < maxTurnsAtOnce; atOnce += 1) {
      const before = nowMs(stage);
      const turns = takeTurn(stage);
      for (const { decision, violations } of turns)
        lines.push(...turnLines(decision, before), ...violations.map((text) => `  VIOLATION ${text}`));
      const waits = turns.map(({ decision }) => waitsText(decision)).join('; ');
      if (waits !== lastWaits && waits !== '') lines.push(`${instant(before)} ${waits}`);
      unchanged = waits === lastWaits && turns.every(({ decision }) => decision.actions.length === 0) ? unchanged + 1 : 0;
      lastWaits = waits;
      if (turns.every(({ decision }) => decision.outcome === 'done') && nextEventMs(stage.world) === undefined)
        return [...lines, `${instant(before)} done`];
      if (turns.some(({ decision }) => decision.actions.length > 0)) continue;
      const next = nextInstant(stage, turns);
      if (isUntilDone && (next === undefined || unchanged > maxTurnsAlike)) return [...lines, ...heldLines(stage, turns)];
      if (next === undefined || next > endMs) {
        letTimePass(stage, endMs);
        return [...lines, `${instant(endMs)} ${turns.map(({ decision }) => decision.phase).join('; ')}`];
      }
      letTimePass(stage, next);
      atOnce = 0;
    }
    return [...lines, 'the same actions are decided again and again'];
  },
};

function nextInstant(stage: Stage, turns: readonly TakenTurn[]): number | undefined {
  const next = earliest([nextEventMs(stage.world), nextReadingMs(stage), ...turns.map(({ decision }) => decision.wakeAtMs)]);
  return next === undefined || next <= nowMs(stage) ? undefined : next;
}

function heldLines(stage: Stage, turns: readonly TakenTurn[]): readonly string[] {
  return turns.flatMap(({ decision }) => [
    `${instant(nowMs(stage))} held, ${decision.phase}`,
    ...decision.waits.map((answer) => `  ${resultText(answer)}`),
  ]);
}

/** Actions of one kind share a line. */
function turnLines(decision: GroupDecision, now: number): readonly string[] {
  const verbs = new Map<string, string[]>();
  for (const action of decision.actions) {
    const [verb, object] = halves(action);
    verbs.set(verb, [...(verbs.get(verb) ?? []), object]);
  }
  return [...verbs].map(([verb, objects]) => `${instant(now)} ${verb} ${objects.join(', ')}`);
}

function halves(action: Action): readonly [string, string] {
  const text = actionText(action);
  const space = text.indexOf(' ');
  return [text.slice(0, space), text.slice(space + 1)];
}

function waitsText(decision: GroupDecision): string {
  const rules = [...new Set(decision.waits.map(({ rule }) => rule))].filter((rule) => !usualWaits.has(rule));
  return rules.length === 0 || decision.outcome === 'act' ? '' : `waits for ${rules.join(', ')}`;
}
