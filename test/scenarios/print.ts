// How a scenario prints what the engine says: short, stable, one fact a line.
import type { Action, GroupDecision, Judgement, RuleResult } from '../../engine/decision.ts';
import { blocks } from '../../engine/rule.ts';

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** `Mon 12:00:00`, in UTC. */
export function instant(ms: number): string {
  const date = new Date(ms);
  return `${days[date.getUTCDay()]} ${date.toISOString().slice(11, 19)}`;
}

/** The decision: phase, wave and goal; then what is done; then what holds. */
export function decisionLines(decision: GroupDecision, nowMs: number): readonly string[] {
  const { phase, wave, goal, run } = decision;
  const where = wave === undefined ? '' : `, wave ${wave.name} (${wave.index + 1} of ${wave.count})`;
  const rollback = run?.kind === 'rollback' && run.outcome !== 'completed' ? ', rollback' : '';
  const acts = decision.outcome === 'act';
  const { wakeAtMs } = decision;
  return [
    `${phase}${where}${rollback}: ${goal}`,
    ...decision.actions.map((action) => `  ${actionText(action)}`),
    ...decision.waits.map((answer) => `  ${resultText(answer)}`),
    ...decision.warnings.map((answer) => `  warning ${answer.rule}: ${answer.fact}`),
    ...(acts || wakeAtMs === undefined ? [] : [`  looks again at ${instant(wakeAtMs)}${wakeAtMs <= nowMs ? ', at once' : ''}`]),
  ];
}

export function actionText(action: Action): string {
  switch (action.kind) {
    case 'deletePod':
      return `delete ${action.pod}${action.because === 'stuck' ? ' (stuck)' : ''}`;
    case 'evictPod':
      return `evict ${action.pod}`;
    case 'scaleStatefulSet':
      return `scale ${action.statefulSet} ${action.from} -> ${action.to}`;
    case 'setPartition': {
      const going = action.pods.map(({ pod }) => pod).join(', ');
      return `partition ${action.statefulSet} ${action.from} -> ${action.to} (${action.because}${going === '' ? '' : `: ${going}`})`;
    }
    case 'callPods':
      return `${action.method} ${action.call} to ${action.statefulSet}-{${action.ordinals.join(',')}}`;
    case 'writeBackReplicas':
      return `write back ${action.resourceKind}/${action.name} status.replicas ${action.replicas}`;
    case 'advanceCurrentRevision':
      return `advance ${action.statefulSet} to current revision ${action.revision}`;
  }
}

/** `wait zone-budget: 1 of at most 1 pod unavailable in zone a (limit: 1)`. */
export function resultText({ outcome, rule, fact, limit }: RuleResult): string {
  return `${outcome} ${rule}: ${fact}${limit === undefined ? '' : ` (limit: ${limit})`}`;
}

/** The judgement: outcome, code and message; then every rule that holds; then warnings and calls. */
export function judgementLines(judgement: Judgement): readonly string[] {
  const { outcome, code, message, results, warnings, actions } = judgement;
  return [
    outcome === 'deny' ? `deny ${code}: ${message}` : `${outcome}: ${message}`,
    ...results.filter(blocks).map((answer) => `  ${resultText(answer)}`),
    ...warnings.map((warning) => `  warning ${warning}`),
    ...actions.map((action) => `  ${actionText(action)}`),
  ];
}
