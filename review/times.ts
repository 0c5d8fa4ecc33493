// Finds the instants at which the decisions of a group can change with the calendar: the edges of its windows.

import { readsTime } from '../engine/rules/policy.ts';
import type { PolicyRuleDefinition, WindowDefinition } from '../policies/definition.ts';
import type { PolicyAction } from '../policies/schema/rollout-policy.ts';
import { joinWindows, windowState } from '../policies/window/window.ts';
import type { BoundGroup, Pair } from './sides.ts';

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

/** The maximum number of edges of one window. A window with a schedule has two edges a day. */
const maxEdges = 16;

/** Returns the instants from which a window of either side is open or closed, within a week, and the next ones after it. */
export function windowEdges(pair: Pair, action: PolicyAction, nowMs: number): readonly number[] {
  const windows = sidesOf(pair).flatMap(({ policies }) => policies.flatMap((policy) => policy.windows));
  const edges = windows.filter((window) => window.actions.includes(action)).flatMap((window) => edgesOf(window, nowMs));
  return [...new Set([nowMs, ...edges])].sort((a, b) => a - b);
}

function edgesOf(window: WindowDefinition, nowMs: number): readonly number[] {
  const ranges = (window.ranges ?? []).flatMap(({ fromMs, toMs }) => [fromMs, toMs]).filter((atMs) => atMs > nowMs);
  if (window.schedule === undefined) return ranges;
  const edges: number[] = [];
  let atMs = nowMs;
  while (edges.length < maxEdges && (edges.length < 2 || atMs < nowMs + weekMs)) {
    const { closesMs, nextOpensMs } = windowState(window, atMs);
    const next = closesMs ?? nextOpensMs;
    if (next === undefined) break;
    edges.push(next);
    atMs = next;
  }
  return edges;
}

/** Returns every hour of the next week if one of the rules reads the time for this action; otherwise no instant. */
export function hoursRead(rules: readonly PolicyRuleDefinition[], action: PolicyAction, nowMs: number): readonly number[] {
  const isRead = rules.some((rule) => rule.actions.includes(action) && readsTime(rule.when));
  return isRead ? Array.from({ length: 168 }, (_, index) => nowMs + index * hourMs) : [];
}

/** Returns the first instant at which no window of either side blocks the action, or only those of one side, or else `nowMs`. */
export function clearInstant(pair: Pair, action: PolicyAction, nowMs: number): number {
  const sides = sidesOf(pair).map(({ policies }) => policies.map(({ windows }) => windows));
  const openCount = (atMs: number): number => sides.filter((windows) => joinWindows(windows, action, atMs).isOpen).length;
  // Most often no window blocks now, and the edges of the windows then need no search.
  if (openCount(nowMs) === sides.length) return nowMs;
  const edges = windowEdges(pair, action, nowMs);
  return edges.reduce((best, atMs) => (openCount(atMs) > openCount(best) ? atMs : best), nowMs);
}

export function sidesOf({ before, after }: Pair): readonly BoundGroup[] {
  return [before, after].flatMap((side) => side ?? []);
}
