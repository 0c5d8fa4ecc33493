// The windows of all policies: whether an action may start now and whether work in progress may finish.

import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import { joinWindows, windowState } from '../../policies/window/window.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';

/** The work in progress when a window closes. */
export type UnderWay = 'nothing' | 'zone' | 'run';

/** Reports whether the windows allow the action now. Every closed window decides how much work in progress may finish. */
export function windowResult(context: GroupContext, action: PolicyAction, underWay: UnderWay): RuleResult {
  const windows = context.policies.flatMap((policy) => policy.windows);
  if (!windows.some((window) => window.actions.includes(action))) return result('window', 'skip', 'no window restricts this action');
  const state = joinWindows(
    context.policies.map((policy) => policy.windows),
    action,
    context.nowMs,
  );
  const details = { earliestMs: state.changesMs };
  if (state.isOpen) return result('window', 'ok', 'the windows are open', details);
  const closed = state.deniedBy === undefined ? (state.notAllowedBy ?? []) : [state.deniedBy];
  // Two policies may have windows of the same name; the state names the window that blocks.
  const isDeny = state.deniedBy !== undefined;
  const named = windows.filter(
    (window) => window.name === closed[0] && window.actions.includes(action) && (window.kind === 'deny') === isDeny,
  );
  const source = (named.find((window) => windowState(window, context.nowMs).isOpen === isDeny) ?? named[0])?.source;
  const fact = isDeny ? 'a deny window is open' : 'no allow window is open';
  const held = { ...details, limit: closed.join(', '), source };
  if (mayFinish(state.inFlight, underWay)) return result('window', 'ok', `${fact}; work in progress may finish`, held);
  return result('window', 'wait', fact, held);
}

function mayFinish(inFlight: 'finishPod' | 'finishZone' | 'finishAll', underWay: UnderWay): boolean {
  if (underWay === 'nothing') return false;
  return inFlight === 'finishAll' || (inFlight === 'finishZone' && underWay === 'zone');
}
