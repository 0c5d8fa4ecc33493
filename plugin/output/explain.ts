// Renders why a group progresses, waits or is blocked: its goal, each next step with every evaluated rule, and the commands to act.
import { editText, isOfStop, needsAgent, stopsStep } from '../../engine/decide/stops.ts';
import {
  type GroupDecision,
  isAtRest,
  type RuleOutcome,
  type RuleResult,
  type Step,
  type Stop,
  updatedWord,
} from '../../engine/decision.ts';
import type { GroupPlan, Refusal } from '../../engine/plan/document.ts';
import { actionText, type PublishedDecision } from '../../engine/publish/published.ts';
import { isMisplacedUntilRetry, missingSetsText, noWaveTexts, openExceptions, repeatsInVain } from '../../engine/publish/status.ts';
import { blockingResults, blocks, isLimitOfZero } from '../../engine/rule.ts';
import { isRejection, lacksApproval, lacksRequesters } from '../../engine/rules/approval.ts';
import { endsByItself } from '../../engine/rules/catalog.ts';
import { waitsForPartition } from '../../engine/rules/strategy.ts';
import { requestOf } from '../../engine/run/requests.ts';
import { counted } from '../../policies/wording.ts';
import { goalText, marks, missingText, phaseTitle, podsMissing, shownStops, troubleOf, unfitMember, unreadZones } from './group-text.ts';
import {
  cancelCommand,
  deadlineText,
  exceptionText,
  factText,
  overrideText,
  passesText,
  sourceText,
  spanText,
  stopAndEndText,
  stopText,
  untilText,
} from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { zonePodsText } from './pod-text.ts';
import type { Style } from './terminal.ts';
import { paragraph, styledParagraph } from './text.ts';
import { unreadText } from './zone-progress.ts';

/** A step with its pods, or with their number if the step comes from a published status. */
type ExplainedStep = Step & { readonly podCount?: number };

/** A decision made by this command or published by the agent. */
export type ExplainedDecision = Pick<
  GroupDecision,
  | 'namespace'
  | 'group'
  | 'goal'
  | 'phase'
  | 'outcome'
  | 'wave'
  | 'zones'
  | 'waits'
  | 'stops'
  | 'permitted'
  | 'left'
  | 'deadline'
  | 'warnings'
  | 'actions'
> &
  Pick<PublishedDecision, 'unusedExceptions'> & { readonly steps: readonly ExplainedStep[] };

export interface Explanation {
  readonly decision: ExplainedDecision;
  readonly phaseSinceMs?: number;
  /** Further lines before the steps. */
  readonly facts?: readonly (readonly [label: string, text: string])[];
  /** Pods that do not recover by themselves, each with its problem and a command to investigate. */
  readonly trouble?: readonly { readonly what: string; readonly todo: string }[];
  /** The cluster changed since the decision: one sentence for each change. */
  readonly outdated?: readonly string[];
  /** True if the group is in a cluster, so that a command can end an exception. */
  readonly isLive?: boolean;
  /** The reason why nothing is carried out: the agent stopped. */
  readonly unattended?: string;
  /** The command that ends the run; shown if pods are in trouble. */
  readonly ends?: string;
  /** Requested changes that policy denies. */
  readonly refused: readonly Refusal[];
  /** The current time, or the evaluation time of files; undefined if nothing in the files depends on the calendar. */
  readonly nowMs: number | undefined;
  /** The zones that could not be read; needed if not all steps are given. */
  readonly unread?: readonly string[];
  /** True to show also the rules that passed or do not apply. */
  readonly showsAllRules: boolean;
}

const markStyles: Readonly<Record<RuleOutcome, Style>> = { ok: 'green', wait: 'yellow', no: 'red', skip: 'dim', unknown: 'yellow' };
const markWidth = 7;

/** Returns the text with a final line break. Counts the rules that do not block, or lists them on request. */
export function renderExplanation(explanation: Explanation, look: TableLook): string {
  const { decision, refused, trouble = [] } = explanation;
  const lines = [
    ...headlines(explanation, look),
    '',
    ...field('goal', goalText(decision, explanation.unread ?? unreadZones(decision)), look),
    ...field('zones', zonesText(explanation), look),
    ...trouble.flatMap(({ what }) => field('trouble', what, look, 'red')),
    ...(decision.deadline === undefined
      ? []
      : field('deadline', deadlineText(decision.deadline, explanation.nowMs, explanation.unattended), look)),
    ...(explanation.facts ?? []).flatMap(([label, text]) => field(label, text, look)),
    ...shownStops(decision).flatMap((stop) => {
      const text = stopsStep(decision, stop) ? stopText(stop, explanation.nowMs) : stopAndEndText(stop, explanation.nowMs);
      return field('stopped', text, look, 'yellow');
    }),
    ...(decision.left ?? []).flatMap(({ fact }) => field('left', fact, look, 'yellow')),
    ...openExceptions(decision, explanation.nowMs ?? 0).flatMap((result) =>
      field('override', exceptionText(result, explanation.nowMs), look, 'yellow'),
    ),
    ...decision.steps.flatMap((step) => ['', ...stepLines(step, explanation, look)]),
    ...refused.flatMap(({ what, results }) => ['', ...field('DENIED', what, look, 'red'), ...resultLines(results, explanation, look)]),
    ...hiddenLines(explanation, look),
    ...decision.warnings.flatMap((warning) => field('warning', `${warning.rule}: ${factText(warning, explanation.nowMs)}`, look)),
    ...doLines(explanation, look),
  ];
  return `${lines.join('\n')}\n`;
}

function headlines(explanation: Explanation, { paint, columns }: TableLook): readonly string[] {
  const { decision, phaseSinceMs, nowMs } = explanation;
  const name = `${decision.namespace}/${decision.group}`;
  const since = phaseSinceMs === undefined || nowMs === undefined ? '' : ` (for ${spanText((nowMs - phaseSinceMs) / 1000)})`;
  const subject = `${name} is ${phaseTitle(decision.phase)}`;
  const lines = paragraph('', `${subject}${since}${verdict(explanation)}`, columns);
  return lines.map((line, index) => (index === 0 ? line.replace(subject, () => paint('bold', subject)) : line));
}

function preparingVerdict({ outcome, steps, actions }: ExplainedDecision, isVain: boolean): string | undefined {
  const isPreparing =
    !isVain && outcome === 'act' && actions.length > 0 && steps.length > 0 && steps.every((step) => step.results.some(blocks));
  return isPreparing ? `. The agent prepares the next step: ${actions.map(actionText).join(', ')}.` : undefined;
}

function verdict(explanation: Explanation): string {
  const { decision, refused, trouble = [], unattended } = explanation;
  const { outcome, waits } = decision;
  if (unattended !== undefined) return `. Nothing is carried out: ${unattended}.`;
  if (refused.length > 0) return `. ${counted(refused.length, 'request')} denied; change the request or the rule.`;
  const isVain = repeatsInVain(decision);
  const preparing = preparingVerdict(decision, isVain);
  if (preparing !== undefined) return preparing;
  if (trouble.length > 0 && outcome === 'done') return '. Nothing is left to do, but some pods do not recover by themselves.';
  const missing = isAtRest(decision) ? podsMissing(decision) : 0;
  if (missing > 0) return `. Nothing is left to do for the group, but ${missingText(missing)}.`;
  const doubt = doubtVerdict(explanation);
  const exception = exceptionVerdict(explanation);
  if (outcome === 'act' && !isVain) return doubt ?? exception ?? '. No rule blocks the next step.';
  if (outcome === 'done') return doubt ?? doneVerdict(explanation);
  const stops = shownStops(decision);
  const stop = stopVerdict(
    explanation,
    stops.filter(({ isBlocking }) => isBlocking),
  );
  const stopped = stops.every(({ rule }) => rule === 'protected' || rule === 'paused')
    ? undefined
    : '. The group continues by itself; the undone or failed revision does not roll out.';
  const unexpected = waits.find((wait) => !endsByItself(wait));
  return (
    waitVerdict(decision, trouble.length > 0, stop) ??
    doubt ??
    (unexpected && `. The group waits: ${factText(unexpected, explanation.nowMs)}.`) ??
    exception ??
    stopped ??
    '. Nothing is wrong; the group continues by itself.'
  );
}

function doneVerdict(explanation: Explanation): string {
  const { phase, zones, left: [first] = [] } = explanation.decision;
  const left = unfitMember(explanation.decision) ?? first;
  const stops = shownStops(explanation.decision);
  const inNoWave = noWaveTexts(zones).join('; ');
  const done = inNoWave === '' ? 'Nothing is left to do' : `Every wave is done; ${inNoWave}`;
  const text = phase === 'RolledBack' ? 'Every pod keeps its earlier revision' : done;
  return `. ${text}${stopVerdict(explanation, stops) ?? (left === undefined ? '.' : `, but ${left.fact}.`)}`;
}

function doubtVerdict({ outdated = [] }: Explanation): string | undefined {
  const [first] = outdated;
  return first === undefined ? undefined : `. ${first.charAt(0).toUpperCase()}${first.slice(1)}.`;
}

function stopVerdict({ nowMs }: Explanation, [stop]: readonly Stop[]): string | undefined {
  return stop === undefined ? undefined : `. Stopped: ${stopText(stop, nowMs)}.`;
}

/** Returns that the group continues only because of exceptions, and when the first one ends. */
function exceptionVerdict({ decision: { permitted = [] }, nowMs }: Explanation): string | undefined {
  const [first, ...others] = permitted;
  if (first === undefined) return undefined;
  const end = `${untilText(first.earliestMs ?? 0, nowMs)}.`;
  if (others.length === 0) return `. The group continues only because of an exception, which ends at ${end}`;
  return `. The group continues only because of ${counted(permitted.length, 'exception')}; the first ends at ${end}`;
}

/** Returns what the group waits for; undefined if time and progress alone end the wait. */
function waitVerdict(decision: ExplainedDecision, hasTrouble: boolean, stop: string | undefined): string | undefined {
  const { waits } = decision;
  const missing = missingSetsText(decision);
  if (waits.some((result) => result.rule === 'run-failed'))
    return stop ?? '. The run failed; retry it, undo it or change the pod template.';
  if (waits.some((result) => result.outcome === 'no')) return '. A rule blocks the next step until the request or the rule changes.';
  if (missing !== undefined) return `. ${missing}.`;
  if (waits.some((result) => result.outcome === 'unknown')) return '. Some evidence could not be read, and unknown evidence blocks.';
  if (waits.some(isMisplacedUntilRetry)) return '. Pods restarted with the wrong revision; no further pod is replaced until a person acts.';
  if (waits.some(({ rule }) => rule === 'write-accepted'))
    return '. The API server rejects a write. The agent repeats it; other steps continue.';
  if (hasTrouble) return '. Some pods do not recover by themselves and need a repair.';
  if (stop !== undefined) return stop;
  const needsPerson = waits.some((wait) => lacksApproval(wait) || ['paused', 'undone', 'protected'].includes(wait.rule));
  return needsPerson ? '. A person must act.' : undefined;
}

function zonesText({ decision, unread = unreadZones(decision) }: Explanation): string {
  return decision.zones
    .map((zone) =>
      unread.includes(zone.zone)
        ? `${zone.zone} ${unreadText(zone)}`
        : `${zone.zone} ${zone.updated}/${zone.replicas} ${updatedWord([zone])}, ${zone.available} available${zone.isReady ? '' : ', not ready'}`,
    )
    .join('; ');
}

function stepLines(step: ExplainedStep, explanation: Explanation, look: TableLook): readonly string[] {
  const blocking = blockingResults(step.results);
  const summary =
    step.results.length === 0
      ? 'its rules are omitted from the published status'
      : blocking.length > 0
        ? `blocked by ${blocking.length} of ${counted(step.results.length, 'rule')}`
        : `${counted(step.results.length, 'rule')} passed`;
  return [...field('step', `${stepText(step)}   ${summary}`, look), ...resultLines(step.results, explanation, look)];
}

function hiddenLines({ decision, refused, showsAllRules }: Explanation, look: TableLook): readonly string[] {
  const hidden = [...decision.steps, ...refused].flatMap(({ results }) => results).filter((result) => !blocks(result));
  if (hidden.length === 0 || showsAllRules) return [];
  const rules = new Set(hidden.map(({ rule }) => rule)).size;
  return [
    '',
    ...field(
      'passed',
      `${counted(rules, 'rule')} passed or ${rules === 1 ? 'does' : 'do'} not apply; explain --all-rules lists them`,
      look,
    ),
  ];
}

function stepText(step: ExplainedStep): string {
  if (step.kind === 'roll' && step.podCount) return `roll ${step.zone}, ${counted(step.podCount, 'pod')}`;
  if (step.kind === 'roll') return `roll ${zonePodsText(step.zone, step.pods)}`;
  return `scale ${step.kind === 'scaleUp' ? 'up' : 'down'} ${step.zone} ${step.from ?? '?'} -> ${step.to ?? '?'}`;
}

/** Returns one line per shown rule: result, name, and fact with limit. A rule that blocks also shows its source and when it would pass. */
function resultLines(results: readonly RuleResult[], { nowMs, showsAllRules }: Explanation, look: TableLook): readonly string[] {
  const shown = [...blockingResults(results), ...(showsAllRules ? results.filter((result) => !blocks(result)) : [])];
  const width = Math.max(0, ...shown.map(({ rule }) => rule.length));
  return shown.flatMap((result) => {
    const head = `   ${marks[result.outcome].padEnd(markWidth)}${result.rule.padEnd(width)}  `;
    const [first = '', ...rest] = paragraph(head, factText(result, nowMs), look.columns);
    const mark = marks[result.outcome];
    const painted = first.replace(mark, () => look.paint(markStyles[result.outcome], mark));
    const source = sourceText(result.source);
    const indent = ' '.repeat(head.length);
    const written = source === undefined ? [] : paragraph(indent, `defined at ${source}`, look.columns);
    return [painted, ...rest, ...(blocks(result) ? [...written, ...paragraph(indent, passesText(result, nowMs), look.columns)] : [])];
  });
}

const doctorOf = (name: string): string => `kubectl rollout-group doctor -n ${name.replace(/\/.*/, '')}`;

function doLines(
  { decision, refused, trouble = [], unattended, ends, nowMs = 0, isLive = false }: Explanation,
  look: TableLook,
): readonly string[] {
  const waits = waitsBesidesStops(decision);
  const missingSets = decision.zones.filter(({ unread }) => unread === 'missing');
  const isNamed = ({ fact }: RuleResult): boolean => missingSets.some((zone) => fact === unreadText(zone));
  const results = [...waits.filter((wait) => !isNamed(wait)), ...refused.flatMap((refusal) => refusal.results)];
  const name = `${decision.namespace}/${decision.group}`;
  const pods = isAtRest(decision) && podsMissing(decision) > 0 ? [`kubectl get pods -n ${decision.namespace}`] : [];
  const known = [
    ...new Set([
      ...(unattended === undefined ? [] : [`find out why: ${doctorOf(name)}`]),
      ...trouble.map(({ todo: text }) => text),
      ...(trouble.length > 0 && ends !== undefined ? [ends] : []),
      ...pods,
      ...missingSets.map(missingTodo),
      ...todosOf(results, name, decision.wave?.name),
      ...todosOf(
        decision.warnings.filter(({ endsWith }) => endsWith !== undefined),
        name,
        undefined,
      ),
      ...refused.flatMap(({ override }) => (override === undefined ? [] : overrideText(override))),
      ...decision.stops.filter((stop) => stopsStep(decision, stop)).flatMap((stop) => endTexts(stop)),
      ...(decision.left ?? []).flatMap((one) => endTexts(one, `for new templates of ${one.statefulSet}`)),
      ...openExceptions(decision, nowMs).flatMap(({ exception }) =>
        exception === undefined || !isLive ? [] : `to end the exception: ${cancelCommand(name, exception)}`,
      ),
    ]),
  ];
  const todo = unattended === undefined ? known : known.filter((text) => !needsAgent(text));
  return todo.length === 0
    ? []
    : ['', ...todo.flatMap((text, index) => (index === 0 ? field('do', text, look) : paragraph(' '.repeat(11), text, look.columns)))];
}

/** Returns what to do about a StatefulSet of the group that does not exist. */
export function missingTodo({ zone, statefulSet }: Pick<PublishedDecision['zones'][number], 'zone' | 'statefulSet'>): string {
  return `create StatefulSet ${statefulSet}, or remove zone ${zone} from the group`;
}

function endTexts({ endsWith, alternatives = [] }: Pick<Stop, 'endsWith' | 'alternatives'>, purpose = 'to continue'): readonly string[] {
  return [`${purpose}: ${endsWith}`, ...alternatives.map((other) => `or: ${other}`)];
}

/** Returns the waits without those of a stop, because the stop names the command that ends it. */
export function waitsBesidesStops({ waits, stops = [] }: Pick<GroupPlan, 'waits' | 'stops'>): readonly RuleResult[] {
  return waits.filter((wait) => wait.outcome === 'unknown' || !stops.some((stop) => isOfStop(wait, stop)));
}

/** Returns the commands and edits with which a person can act on the troubled pods and the waits of a plan besides its stops, each once. */
export function waitCommands(plan: GroupPlan): readonly string[] {
  const { namespace, group, waves, troubled = [] } = plan;
  const wave = waves.findLast(({ steps }) => steps.some(({ rules }) => rules.some((result) => blocks(result) && lacksApproval(result))));
  const waits = waitsBesidesStops(plan);
  const access = waits.flatMap((result) => accessTodo(plan, result) ?? []);
  const others = waits.filter((result) => accessTodo(plan, result) === undefined);
  const todo = [...access, ...todosOf(others, `${namespace}/${group}`, wave?.name)];
  const trouble = troubleOf(namespace, troubled).map(({ what, todo: command }) => `${what}: ${command}`);
  return [...trouble, ...new Set(todo.filter((text) => text.startsWith('to continue: ') || text.includes('kubectl ')))];
}

/** Returns the step that gives the agent a right which only the changed policies need. `doctor` reads the policies that are in force. */
export function accessTodo({ policyChanges = [] }: Pick<GroupPlan, 'policyChanges'>, { rule, outcome }: RuleResult): string | undefined {
  if (rule !== 'agent-access' || outcome !== 'no' || policyChanges.length === 0) return undefined;
  return 'install again with the flags of the installation, and with the changed policies in DIR: kubectl rollout-group install --policies DIR --apply';
}

/** Returns the actions about each result. If several rules lack approvals, the command that approves the wave has the flag --wave. */
function todosOf(results: readonly RuleResult[], name: string, wave: string | undefined): readonly string[] {
  const approvals = new Set(results.filter((result) => lacksApproval(result) || isRejection(result)).map(({ rule }) => rule));
  return results.flatMap((result) => todoOf(result, name, approvals.size > 1 && wave !== undefined ? ` --wave ${wave}` : ''));
}

/** Returns the actions that a person can take about one rule, such as the command that skips a soak; empty if no action is known. */
export function todoOf(result: RuleResult, name: string, waveFlag = ''): readonly string[] {
  if (!blocks(result)) return [];
  if (result.endsWith !== undefined) return [`to continue: ${result.endsWith}`];
  const where = sourceText(result.source);
  if (result.rule === 'run-failed') {
    return [`to continue: kubectl rollout-group retry ${name}`, `to roll back: kubectl rollout-group undo ${name}`];
  }
  if (isLimitOfZero(result)) {
    return [
      `to continue: raise the limit${where === undefined ? '' : ` at ${where}`}`,
      `to stop the group on purpose: set paused: true on its zones, or kubectl rollout-group pause ${name}`,
    ];
  }
  if (isOfInstallation(result) && result.outcome !== 'unknown') return [`find out why: ${doctorOf(name)}`];
  if (result.outcome === 'no') return denialTodo(result, name);
  if (result.outcome === 'unknown') {
    const skip = result.rule === 'gate' ? waitTodo(result, name) : [];
    return [`make the unknown value readable: ${result.fact}`, ...skip];
  }
  if (!lacksApproval(result)) return waitTodo(result, name);
  return [`to approve: kubectl rollout-group approve ${name}${result.rule === 'approval' ? waveFlag : ` --rule ${result.rule}`}`];
}

function denialTodo(result: RuleResult, name: string): readonly string[] {
  if (isRejection(result)) return [`to continue: kubectl rollout-group cancel ${name} ${requestOf(result)}`];
  if (result.rule === 'view-complete') return ['put the group and its StatefulSets into the same namespace'];
  if (result.rule === 'scale-floor' && result.source === undefined)
    return [
      `change the request, or permit it: kubectl rollout-group override ${name} --rule ${result.rule} --duration 1h --reason REASON --yes`,
    ];
  return [changeText(result)];
}

/** Returns the edit that ends a denial: of the request, or of the file or the object that defines the rule. */
export function changeText({ rule, outcome, source }: RuleResult): string {
  const where = sourceText(source);
  if (where !== undefined) return `change the request, or ${rule} at ${where}`;
  return outcome === 'wait' ? 'change the request, or repeat it later' : 'change the request';
}

/** Reports whether the result is about the agent or its webhooks, not about the request. */
export function isOfInstallation(result: RuleResult): boolean {
  return result.rule === 'pin-webhook' || result.rule === 'agent-access' || lacksRequesters(result);
}

function waitTodo(result: RuleResult, name: string): readonly string[] {
  const intent = requestOf(result);
  if (waitsForPartition(result)) {
    return [
      `apply the group first, wait until the agent has set the partitions (kubectl rollout-group status ${name}), then apply the new template`,
    ];
  }
  if (isMisplacedUntilRetry(result)) {
    return [`find out why the webhook is not called: ${doctorOf(name)}`, `then continue: kubectl rollout-group retry ${name}`];
  }
  if (result.rule === 'rolled-back' && result.limit?.includes('retry') === true)
    return [`to try again: kubectl rollout-group retry ${name}`];
  if (result.rule === 'soak' || result.rule === 'gate') return [`to skip it: kubectl rollout-group promote ${name}`];
  if ((result.rule === 'undone' || result.rule === 'protected' || result.rule === 'paused') && intent !== undefined) {
    return [`to continue: kubectl rollout-group cancel ${name} ${intent}`];
  }
  if (result.rule === 'rollout-in-progress')
    return [`wait until the run ends (kubectl rollout-group status ${name}), or end it: kubectl rollout-group abort ${name}`];
  if (result.endsBy === 'person') return [`to continue: ${editText(result.source, `change the rule ${result.rule}`)}`];
  return result.rule === 'paused' ? [`to continue: ${editText(result.source, 'set paused: false')}`] : [];
}

function field(name: string, text: string, look: TableLook, style: Style = 'bold'): readonly string[] {
  return styledParagraph(`  ${name.padEnd(9)}`, text, look, style);
}
