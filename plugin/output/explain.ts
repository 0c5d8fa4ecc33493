// Why a group moves, waits or is refused, as text: what it is to become, each next step with every rule that was asked, and what to do.
import type { GroupDecision, RuleOutcome, RuleResult, Step } from '../../engine/decision.ts';
import { describeAction } from '../../engine/plan/action-text.ts';
import type { Refusal } from '../../engine/plan/document.ts';
import { isMisplacedForGood } from '../../engine/publish/person.ts';
import { blockingResults, blocks, isLimitOfZero } from '../../engine/rule.ts';
import { isPartitionAwaited } from '../../engine/rules/strategy.ts';
import type { Style } from './colour.ts';
import { goalText, missingText, podsMissing, unreadZones } from './group-text.ts';
import { factText, passesText, podsText, sourceText, spanText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph } from './plan/table-layout.ts';
import { plural } from './plural.ts';

/** A step of a decision just made names its pods; one that was published counts them. */
type ExplainedStep = Step & { readonly podCount?: number };

/** A decision just made, or one that was published. */
export type ExplainedDecision = Pick<
  GroupDecision,
  'namespace' | 'group' | 'goal' | 'phase' | 'outcome' | 'zones' | 'waits' | 'warnings' | 'actions'
> & { readonly steps: readonly ExplainedStep[] };

/** What there is to explain of one group. */
export interface Explanation {
  readonly decision: ExplainedDecision;
  /** Since when the phase has been this one, where that is known. */
  readonly phaseSinceMs?: number;
  /** What else there is to say before the steps, by its label. */
  readonly facts?: readonly (readonly [label: string, text: string])[];
  /** Pods that waiting does not bring back: each with what is wrong, as a sentence, and the command that tells more. */
  readonly trouble?: readonly { readonly what: string; readonly todo: string }[];
  /** No agent runs that would carry anything out. */
  readonly isUnattended?: boolean;
  /** What was asked for and not carried out. */
  readonly refused: readonly Refusal[];
  /** The instant of the decision; undefined when nothing in it depends on the calendar. */
  readonly nowMs: number | undefined;
  /** Zones that could not be read, when not all steps are given. */
  readonly unread?: readonly string[];
  /** Only what would have to change. */
  readonly isWhatIf: boolean;
}

/** The answer of a rule, as it stands before its name. */
export const marks: Readonly<Record<RuleOutcome, string>> = { ok: '[ok]', wait: '[WAIT]', no: '[NO]', skip: '[SKIP]', unknown: '[?]' };
const markStyles: Readonly<Record<RuleOutcome, Style>> = { ok: 'green', wait: 'yellow', no: 'red', skip: 'dim', unknown: 'yellow' };
const markWidth = 7;

/** The text, ending in a line break. Every rule is listed, also those that passed. */
export function renderExplanation(explanation: Explanation, look: TableLook): string {
  const { decision, refused, trouble = [] } = explanation;
  const lines = [
    ...headlines(explanation, look),
    '',
    ...field('goal', goalText(decision, explanation.unread ?? unreadZones(decision)), look),
    ...field('zones', zonesText(explanation), look),
    ...trouble.flatMap(({ what }) => field('trouble', what, look, 'red')),
    ...(explanation.facts ?? []).flatMap(([label, text]) => field(label, text, look)),
    ...decision.steps.flatMap((step) => ['', ...stepLines(step, explanation, look)]),
    ...refused.flatMap((refusal) => ['', ...refusalLines(refusal, explanation, look)]),
    ...decision.warnings.flatMap((warning) => field('warning', `${warning.rule}: ${factText(warning)}`, look)),
    ...doLines(explanation, look),
  ];
  return `${lines.join('\n')}\n`;
}

function headlines(explanation: Explanation, { paint, columns }: TableLook): readonly string[] {
  const { decision, phaseSinceMs, nowMs } = explanation;
  const name = `${decision.namespace}/${decision.group}`;
  const since = phaseSinceMs === undefined || nowMs === undefined ? '' : `, and has been for ${spanText((nowMs - phaseSinceMs) / 1000)}`;
  const subject = `${name} is ${decision.phase.toUpperCase()}`;
  const lines = paragraph('', `${subject}${since}${verdict(explanation)}`, columns);
  return lines.map((line, index) => (index === 0 ? line.replace(subject, () => paint('bold', subject)) : line));
}

function verdict({ decision, refused, trouble = [], isUnattended }: Explanation): string {
  const { outcome, waits, steps, actions } = decision;
  if (isUnattended === true) return '. Nobody acts: the agent is not running.';
  if (refused.length > 0) return `. ${plural(refused.length, 'request')} refused; somebody must change what is asked for, or the rule.`;
  if (outcome === 'act' && actions.length > 0 && steps.length > 0 && steps.every((step) => step.results.some(blocks)))
    return `. The next step is prepared: ${actions.map(describeAction).join(', ')}.`;
  if (trouble.length > 0 && outcome === 'done') return '. Nothing is left to do, but pods do not come back by themselves.';
  const missing = decision.phase === 'Done' ? podsMissing(decision) : 0;
  if (missing > 0) return `. Nothing is left to do for the group, but ${missingText(missing)}.`;
  if (outcome === 'act') return '. Nothing holds the next step.';
  if (outcome === 'done') return '. Nothing is left to do.';
  if (waits.some((result) => result.rule === 'run-failed')) return '. The run has ended; somebody must go on, back or forward.';
  if (waits.some((result) => result.outcome === 'no')) return '. Policy refuses the next step; somebody must change something.';
  if (waits.some((result) => result.outcome === 'unknown')) return '. Something could not be read, and what is unknown holds.';
  if (waits.some(isMisplacedForGood)) return '. Pods came back without their revision, and none goes any more; it needs a person.';
  if (trouble.length > 0) return '. Pods do not come back by themselves; somebody must look at them.';
  if (waits.some(({ rule, earliestMs }) => rule === 'approval' || (rule === 'undone' && earliestMs === undefined))) {
    return '. Nothing is wrong; it needs a person.';
  }
  return waits.some((result) => result.rule === 'paused' && result.earliestMs === undefined)
    ? '. Nothing is wrong; it goes on when somebody resumes it.'
    : '. Nothing is wrong; it goes on by itself.';
}

function zonesText({ decision, unread = unreadZones(decision) }: Explanation): string {
  return decision.zones
    .map((zone) =>
      unread.includes(zone.zone)
        ? `${zone.zone} could not be read`
        : `${zone.zone} ${zone.updated}/${zone.replicas} updated, ${zone.available} available${zone.isReady ? '' : ', not whole'}`,
    )
    .join('; ');
}

function stepLines(step: ExplainedStep, explanation: Explanation, look: TableLook): readonly string[] {
  const blocking = blockingResults(step.results);
  const summary =
    step.results.length === 0
      ? 'its rules did not fit into what was published'
      : blocking.length > 0
        ? `blocked by ${blocking.length} of ${plural(step.results.length, 'rule')}`
        : `all of ${plural(step.results.length, 'rule')} passed`;
  const shown = explanation.isWhatIf ? blocking : step.results;
  return [...field('step', `${stepText(step)}   ${summary}`, look), ...resultLines(shown, explanation, look)];
}

function stepText(step: ExplainedStep): string {
  if (step.kind === 'roll' && step.podCount !== undefined) return `roll ${step.zone}, ${plural(step.podCount, 'pod')}`;
  if (step.kind === 'roll') return `roll ${step.zone} ${podsText(step.pods)}`.trim();
  return `scale ${step.kind === 'scaleUp' ? 'up' : 'down'} ${step.zone} ${step.from ?? '?'} -> ${step.to ?? '?'}`;
}

function refusalLines(refusal: Refusal, explanation: Explanation, look: TableLook): readonly string[] {
  const shown = explanation.isWhatIf ? blockingResults(refusal.results) : refusal.results;
  return [...field('REFUSED', refusal.what, look, 'red'), ...resultLines(shown, explanation, look)];
}

/** One rule per line: answer, name, fact with limit; what holds also says where it is written and when it would pass. */
function resultLines(results: readonly RuleResult[], { nowMs }: Explanation, look: TableLook): readonly string[] {
  const width = Math.max(0, ...results.map(({ rule }) => rule.length));
  return results.flatMap((result) => {
    const head = `   ${marks[result.outcome].padEnd(markWidth)}${result.rule.padEnd(width)}  `;
    const [first = '', ...rest] = paragraph(head, factText(result), look.columns);
    const mark = marks[result.outcome];
    const painted = first.replace(mark, () => look.paint(markStyles[result.outcome], mark));
    const source = sourceText(result.source);
    const indent = ' '.repeat(head.length);
    const written = source === undefined ? [] : paragraph(indent, `written at ${source}`, look.columns);
    return [painted, ...rest, ...(blocks(result) ? [...written, ...paragraph(indent, passesText(result, nowMs), look.columns)] : [])];
  });
}

/** What a person can do, as far as the rules tell; waiting is not listed. */
function doLines({ decision, refused, trouble = [] }: Explanation, look: TableLook): readonly string[] {
  const results = [...decision.waits, ...refused.flatMap((refusal) => refusal.results)];
  const name = `${decision.namespace}/${decision.group}`;
  const pods = decision.phase === 'Done' && podsMissing(decision) > 0 ? [`see why: kubectl get pods -n ${decision.namespace}`] : [];
  const todo = [...new Set([...trouble.map(({ todo: text }) => text), ...pods, ...results.flatMap((result) => todoOf(result, name))])];
  return todo.length === 0
    ? []
    : ['', ...todo.flatMap((text, index) => (index === 0 ? field('do', text, look) : paragraph(' '.repeat(11), text, look.columns)))];
}

/** What a person can do about one answer, each as one line; nothing where waiting is enough. */
export function todoOf(result: RuleResult, name: string): readonly string[] {
  const where = sourceText(result.source);
  const intent = /^RolloutIntent [^/]+\/(.+)$/.exec(result.source?.object ?? '')?.[1];
  if (result.rule === 'run-failed') {
    return [`when it may go on: kubectl rollout-group retry ${name}`, `to go back: kubectl rollout-group undo ${name}`];
  }
  if (isLimitOfZero(result)) {
    return [
      `let a pod go${where === undefined ? '' : `: change ${where}`}`,
      `if it is to stand still: paused: true of its zones, or kubectl rollout-group pause ${name}`,
    ];
  }
  if (result.outcome === 'no' && result.rule === 'view-complete') return ['give the group and its StatefulSets the same namespace'];
  if (result.outcome === 'no') return [`change what is asked for, or ${result.rule}${where === undefined ? '' : ` at ${where}`}`];
  if (result.outcome === 'unknown') return [`see to it that it can be read: ${result.fact}`];
  if (result.outcome !== 'wait') return [];
  if (isPartitionAwaited(result)) {
    return [
      `apply the group first, wait a few seconds until the agent has set the partitions (kubectl rollout-group status ${name}), then apply the new template`,
    ];
  }
  if (isMisplacedForGood(result)) {
    return ['see why the webhook is not asked: kubectl rollout-group doctor', `once it is put right: kubectl rollout-group retry ${name}`];
  }
  if (result.rule === 'approval') return [`give the approval: ${factText(result)}`, `kubectl rollout-group approve ${name}`];
  if ((result.rule === 'undone' || result.rule === 'protected') && intent !== undefined) {
    return [`when it may go on: kubectl rollout-group cancel ${name} ${intent}`];
  }
  if (result.rule !== 'paused') return [];
  if (result.source?.object?.startsWith('RolloutIntent ') === true) return [`when it may go on: kubectl rollout-group resume ${name}`];
  return where === undefined ? [] : [`when it may go on: change ${where}`];
}

function field(name: string, text: string, look: TableLook, style: Style = 'bold'): readonly string[] {
  const label = `  ${name.padEnd(9)}`;
  return paragraph(label, text, look.columns).map((line, index) =>
    index === 0 ? look.paint(style, label) + line.slice(label.length) : line,
  );
}
