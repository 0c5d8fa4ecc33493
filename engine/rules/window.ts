// Windows of all policies together: may this action begin now, and what may still be finished.

import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import { joinWindows } from '../../policies/window/window.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';

/** What is already under way when a window closes. */
export type UnderWay = 'nothing' | 'zone' | 'run';

/** Whether the windows let the action happen now; work under way may be finished as far as every closed window says. */
export function windowResult(context: GroupContext, action: PolicyAction, underWay: UnderWay): RuleResult {
  const windows = context.policies.flatMap((policy) => policy.windows);
  if (!windows.some((window) => window.actions.includes(action))) return result('window', 'skip', 'no window names this action');
  const state = joinWindows(
    context.policies.map((policy) => policy.windows),
    action,
    context.nowMs,
  );
  const details = { earliestMs: state.changesMs };
  if (state.isOpen) return result('window', 'ok', 'the windows are open', details);
  const closed = state.deniedBy === undefined ? (state.notAllowedBy ?? []) : [state.deniedBy];
  const source = windows.find((window) => window.name === closed[0])?.source;
  const fact = state.deniedBy === undefined ? 'no allow window is open' : 'a deny window is open';
  const held = { ...details, limit: closed.join(', '), source };
  if (mayFinish(state.inFlight, underWay)) return result('window', 'ok', `${fact}, and work under way may be finished`, held);
  return result('window', 'wait', fact, held);
}

function mayFinish(inFlight: 'finishPod' | 'finishZone' | 'finishAll', underWay: UnderWay): boolean {
  if (underWay === 'nothing') return false;
  return inFlight === 'finishAll' || (inFlight === 'finishZone' && underWay === 'zone');
}
