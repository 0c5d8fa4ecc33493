// Which Kubernetes Events a turn is worth: what a person may ask about later, derived from one decision and the one before it.
import type { GroupDecision, RuleResult } from '../../engine/decision.ts';
import { isMisplacedForGood } from '../../engine/publish/person.ts';
import { reasonOf } from '../../engine/rules/catalog.ts';
import { isJoinOf } from '../../engine/run/run.ts';
import type { RunState } from '../../engine/snapshot.ts';
import type { PerformedAction, TurnReport } from '../report.ts';

/** One thing that happened, or that holds a group. */
export interface EventFact {
  readonly type: 'Normal' | 'Warning';
  /** PascalCase. */
  readonly reason: string;
  /** What the agent does about it: `Wait`, `Roll`. */
  readonly action: string;
  readonly note: string;
  /** The zone it is about. */
  readonly zone?: string;
  /** What makes it the same event as another one, when the note says more than that. */
  readonly identity?: string;
  /** A wait, by its name in `GroupPast`: it is worth telling when it lasts. */
  readonly wait?: string;
}

/** What is remembered of a group from one turn to the next. */
export interface GroupPast {
  readonly run?: RunState;
  /** What held the group. */
  readonly waits: ReadonlySet<string>;
}

/** What this turn was worth telling, in the order in which it came about; and what the next turn is compared with. */
export function factsOf(
  report: TurnReport,
  past: GroupPast | undefined,
): { readonly facts: readonly EventFact[]; readonly past: GroupPast } {
  const { decision, performed, error } = report;
  const defects = error?.startsWith('the decision violates ') ? [warning('InvariantViolated', 'Hold', error)] : [];
  if (decision === undefined) return { facts: defects, past: past ?? { waits: new Set() } };
  // While pods come and go, budgets and readiness hold the next one all the time: that is the rollout itself and no news.
  const isMoving = decision.phase === 'Rolling' || decision.phase === 'Scaling';
  const waits = new Map((isMoving ? [] : decision.waits).map((wait) => [identityOf(wait), wait]));
  const news = [...waits].filter(([key]) => past?.waits.has(key) !== true).map(([, wait]) => waitFact(wait));
  return {
    facts: [...defects, ...runFacts(report, decision, past), ...actionFacts(performed), ...news],
    past: { waits: new Set(waits.keys()), ...(decision.run === undefined ? {} : { run: decision.run }) },
  };
}

function normal(reason: string, action: string, note: string, more: Pick<EventFact, 'zone' | 'identity'> = {}): EventFact {
  return { type: 'Normal', reason, action, note, ...more };
}

function warning(reason: string, action: string, note: string, more: Pick<EventFact, 'zone' | 'identity'> = {}): EventFact {
  return { type: 'Warning', reason, action, note, ...more };
}

/** Ages in the fact do not make another event of it; the rule and its answer do, and that from now on only a person lets it go on. */
function identityOf(wait: RuleResult): string {
  return `${wait.rule} ${wait.outcome}${isMisplacedForGood(wait) ? ' for good' : ''}`;
}

function waitFact(wait: RuleResult): EventFact {
  const { rule, outcome, fact, limit, source } = wait;
  const place = source?.object ?? (source?.file === undefined ? undefined : `${source.file}:${source.line ?? 1}`);
  const note = `${rule}: ${fact}${limit === undefined ? '' : ` (${limit}${place === undefined ? '' : `, ${place}`})`}`;
  const make = outcome === 'wait' && !isMisplacedForGood(wait) ? normal : warning;
  const identity = identityOf(wait);
  return { ...make(reasonOf(rule), outcome === 'no' ? 'Block' : 'Wait', note, { identity }), wait: identity };
}

function runFacts({ snapshot }: TurnReport, { run, goal }: GroupDecision, past: GroupPast | undefined): readonly EventFact[] {
  if (run === undefined) return [];
  const before = past?.run;
  const isNew = before?.id !== run.id;
  const facts: EventFact[] = [];
  const identity = run.id;
  const subject = run.kind === 'rollback' ? 'rollback' : 'rollout';
  const isJoin = isNew && before?.outcome === 'running' && isJoinOf(run, before);
  if (isNew && before?.outcome === 'running' && !isJoin) {
    facts.push(
      normal('RolloutSuperseded', 'Roll', 'a new target takes the place of a rollout that was under way', { identity: before.id }),
    );
  }
  // Of a run that this process finds under way, somebody else has told that it began.
  const hasBegun = isNew && (past !== undefined || run.startedMs >= snapshot.nowMs);
  if (hasBegun && !isJoin && run.outcome === 'running')
    facts.push(normal('RolloutStarted', 'Roll', `the ${subject} began: ${goal}`, { identity }));
  const wasRunning = isNew ? hasBegun : before?.outcome === 'running';
  if (run.openZone !== undefined && run.openZone !== before?.openZone && run.outcome === 'running' && (past !== undefined || hasBegun)) {
    facts.push(
      normal('ZoneOpened', 'Roll', `pods of zone ${run.openZone} are replaced from now on`, {
        zone: run.openZone,
        identity: `${identity} ${run.openZone}`,
      }),
    );
  }
  if (wasRunning && run.outcome === 'completed') facts.push(normal('RolloutFinished', 'Roll', `the ${subject} is complete`, { identity }));
  if (wasRunning && run.outcome === 'failed') {
    facts.push(warning('RolloutFailed', 'Stop', `the ${subject} failed: ${run.failure ?? 'a limit was passed'}`, { identity }));
  }
  return facts;
}

/** Pods of one zone that were replaced in one turn are one event. */
function actionFacts(performed: readonly PerformedAction[]): readonly EventFact[] {
  const facts: EventFact[] = [];
  const replaced = new Map<string, string[]>();
  for (const { action, result, message = '' } of performed) {
    const failure = message === '' ? result : message;
    switch (action.kind) {
      case 'deletePod':
      case 'evictPod':
        if (result === 'done') replaced.set(action.zone, [...(replaced.get(action.zone) ?? []), action.pod]);
        else if (result === 'failed' || result === 'refused') {
          facts.push(warning('PodNotReplaced', 'Roll', `${action.pod} could not be replaced: ${failure}`, { zone: action.zone }));
        }
        break;
      case 'setPartition': {
        const pods = action.pods.map(({ pod }) => pod);
        if (result === 'done' && pods.length > 0) replaced.set(action.zone, [...(replaced.get(action.zone) ?? []), ...pods]);
        else if (result === 'failed' || result === 'refused') {
          const note = `the partition of ${action.statefulSet} could not be set to ${action.to}: ${failure}`;
          facts.push(warning('PodNotReplaced', 'Roll', note, { zone: action.zone }));
        }
        break;
      }
      case 'scaleStatefulSet': {
        const { from, to, statefulSet, zone } = action;
        const reason = to > from ? 'ScaledUp' : 'ScaledDown';
        if (result === 'done') facts.push(normal(reason, 'Scale', `${statefulSet} was scaled from ${from} to ${to}`, { zone }));
        else if (result === 'failed' || result === 'refused') {
          facts.push(warning('ScalingFailed', 'Scale', `${statefulSet} could not be scaled from ${from} to ${to}: ${failure}`, { zone }));
        }
        break;
      }
      case 'callPods': {
        const { method, statefulSet, zone } = action;
        if (result === 'done' || result === 'conflict' || method !== 'POST') break;
        facts.push(
          warning('PreparationFailed', 'Scale', `${statefulSet} does not shrink, for its pods are not prepared: ${failure}`, { zone }),
        );
        break;
      }
      default:
        break;
    }
  }
  for (const [zone, pods] of replaced) {
    const more = pods.length > 10 ? ` and ${pods.length - 10} more` : '';
    facts.push(normal('PodReplaced', 'Roll', `replaced ${pods.slice(0, 10).join(', ')}${more}`, { zone }));
  }
  return facts;
}
