// Builds the texts about a review that every format shares: its headline, a line for each group, and the counts of an environment.
import type { GroupPlan, Plan, Risk } from '../../../engine/plan/document.ts';
import { groupBy } from '../../../policies/values/group-by.ts';
import { counted, listed } from '../../../policies/wording.ts';
import { type EnvironmentReview, imageChanges, type PolicyEffect, type Review } from '../../../review/document.ts';
import { otherChangeTexts } from '../plan/changes.ts';
import { byAttention, countsText, exceptionText, outcomeText, shownFact, sourceText, spanText, stopText } from '../plan/plan-text.ts';
import { coveredText } from '../policy-tests.ts';
import { inZones, reasonSuffix } from '../text.ts';

/** Returns the groups that the change moves, that StatefulSets leave, or that are blocked, sorted by need of attention. */
export function plannedGroups({ groups }: Plan): readonly GroupPlan[] {
  return byAttention(groups.filter((group) => isMoved(group) || isBlocked(group) || departures(group).length > 0));
}

/** Reports whether the group cannot be rolled out until a person acts, which decides the exit code. No request of the change is denied. */
function isBlocked({ outcome, refused }: GroupPlan): boolean {
  return outcome === 'blocked' && refused.length === 0;
}

function isMoved({ changes, refused, totals }: GroupPlan): boolean {
  return changes.length + refused.length + totals.restarts + totals.scaleChanges > 0;
}

/** Returns the risk of StatefulSets that leave the group. Only a change of policies causes this risk, also without a change of manifests. */
function departures({ risks }: GroupPlan): readonly Risk[] {
  return risks.filter(({ code }) => code === 'RG5014');
}

/** Returns what happens to a group: `image mimir:2.16 -> mimir:2.17, 18 restarts, 45m (p90 2h), blocked`. */
export function groupText(group: GroupPlan): string {
  const { restarts, approvals, p50Seconds, p90Seconds } = group.totals;
  const scaled = group.zones.filter(({ replicasBefore, replicasAfter }) => replicasBefore !== replicasAfter);
  // The row already tells the effect of a scale-up, which restarts no pod either.
  const hasNoEffect = restarts === 0 && group.outcome === 'complete' && scaled.length === 0;
  return [
    ...imageChanges(group).map(({ before, after, zones }) => inZones(`image ${before} -> ${after}`, zones)),
    ...scaled.map((zone) => `zone ${zone.zone} ${zone.replicasBefore} -> ${counted(zone.replicasAfter, 'replica')}`),
    ...(hasNoEffect ? ['no pod restarts'] : []),
    countsText([
      [restarts, 'restart'],
      [approvals, 'approval'],
      [group.refused.length, 'denial'],
    ]),
    ...(p50Seconds === undefined || restarts === 0 ? [] : [`${spanText(p50Seconds)} (p90 ${spanText(p90Seconds)})`]),
    ...(group.outcome === 'complete' ? [] : [`${outcomeText(group)}${causeText(group)}`]),
    ...(isBlocked(group) ? [] : (group.stops ?? []).map((stop) => `stopped: ${stopText(stop, undefined)}`)),
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** Returns the first rule result that ends the plan, after a colon. The denials of a group have their own texts. */
function causeText(group: GroupPlan): string {
  const [first] = isBlocked(group) || group.outcome === 'waits' ? group.waits : [];
  return first === undefined ? '' : `: ${shownFact(first)}`;
}

/** The kinds of rows, the most important first, each with its title in a comment and its style in a terminal. */
export const rowKinds = {
  loosened: { title: 'Loosened', style: 'yellow' },
  denied: { title: 'Denied', style: 'red' },
  blocked: { title: 'Blocked', style: 'red' },
  exception: { title: 'Exceptions in force', style: 'yellow' },
  tightened: { title: 'Tightened', style: 'green' },
  rollout: { title: 'Rollout', style: 'cyan' },
  object: { title: 'Objects in no group', style: 'cyan' },
  failed: { title: 'Failed tests', style: 'red' },
  note: { title: 'Notes', style: 'dim' },
  tests: { title: 'Tests', style: 'dim' },
  changed: { title: 'Other changes of policies', style: 'dim' },
} as const;

type RowKind = keyof typeof rowKinds;

/** One effect of the change, for every environment that has it. */
export interface ReviewRow {
  readonly kind: RowKind;
  /** The change of the policies, or the whole text of another row. */
  readonly cause: string;
  readonly decisions: readonly string[];
  /** The places of the policies: `policies/ingester.yaml:29:7`. */
  readonly places: readonly string[];
  /** True if no policy test evaluates the rule. */
  readonly isUntested: boolean;
  /** The groups that the same change of policies concerns; empty if it concerns one group. */
  readonly groups: readonly string[];
  readonly environments: readonly string[];
}

/**
 * Returns the effects of all environments, the most important first. The same change in several environments or groups is one row: of the same
 * policy, or of policies in different files with the same decisions.
 */
export function reviewRows({ environments }: Review): readonly ReviewRow[] {
  const rows = environments.flatMap((one) => environmentRows(one).map((row): ReviewRow => ({ ...row, environments: [one.name] })));
  const keyOf = ({ kind, cause, groups, isUntested }: ReviewRow): string => [kind, cause, isUntested, ...groups].join('\n');
  const ofPolicies = joinedRows(rows, (row) => [keyOf(row), ...row.places].join('\n'));
  const joined = joinedRows(ofPolicies, (row) => [keyOf(row), ...row.decisions].join('\n'));
  return Object.keys(rowKinds).flatMap((kind) => joined.filter((row) => row.kind === kind));
}

function joinedRows(rows: readonly ReviewRow[], keyOf: (row: ReviewRow) => string): readonly ReviewRow[] {
  return [...groupBy(rows, keyOf).values()].map((same): ReviewRow => {
    const distinct = (part: (row: ReviewRow) => readonly string[]): readonly string[] => [...new Set(same.flatMap(part))];
    return {
      ...same[0],
      places: distinct(({ places }) => places),
      decisions: distinct(({ decisions }) => decisions),
      environments: distinct((row) => row.environments),
    };
  });
}

/** Returns the first place of a row, the number of the others, and a remark on its tests; empty without both. */
export function placeText({ places, isUntested }: ReviewRow): string {
  const [first] = places;
  const more = places.length > 1 ? ` and ${counted(places.length - 1, 'more place')}` : '';
  return [...(first === undefined ? [] : [`${first}${more}`]), ...(isUntested ? ['no test'] : [])].join(', ');
}

/** Returns the text of a row, with the environments that it concerns unless it concerns all. */
export function rowText({ cause, decisions, environments }: ReviewRow, all: readonly EnvironmentReview[]): string {
  return `${environmentsPrefix(environments, all)}${withDecisions(cause, decisions)}`;
}

/** Returns the change of a row, with its environments unless it concerns all. */
export function causeOfRow({ cause, environments }: ReviewRow, all: readonly EnvironmentReview[]): string {
  return `${environmentsPrefix(environments, all)}${cause}`;
}

function environmentsPrefix(environments: readonly string[], all: readonly EnvironmentReview[]): string {
  return environments.length === all.length ? '' : `${listed(environments, 'and')}: `;
}

/** Returns the groups of a row as one text: `in mimir/ingester and mimir/store-gateway`; empty for one group. */
export function groupsText({ groups }: ReviewRow): readonly string[] {
  return groups.length === 0 ? [] : [`in ${listed(groups, 'and')}`];
}

/** A row about one group, or about no group. */
interface GroupRow extends Omit<ReviewRow, 'environments' | 'groups'> {
  readonly group?: string;
}

function environmentRows(one: EnvironmentReview): readonly Omit<ReviewRow, 'environments'>[] {
  const plain = (kind: RowKind, cause: string): GroupRow => ({ kind, cause, places: [], isUntested: false, decisions: [] });
  return foldGroups([
    ...one.policies.effects.map(effectRow),
    ...plannedGroups(one.plan).flatMap((plan) => {
      const group = `${plan.namespace}/${plan.group}`;
      const about = (kind: RowKind, text: string): GroupRow => ({ ...plain(kind, `${group}: ${text}`), group });
      const kind = plan.refused.length > 0 ? 'denied' : isBlocked(plan) ? 'blocked' : 'rollout';
      return [
        ...(isMoved(plan) || isBlocked(plan) ? [about(kind, groupText(plan))] : []),
        ...(plan.permitted ?? []).map((result) => about('exception', exceptionText(result, undefined))),
        ...departures(plan).map(({ code, message }) => about('rollout', `${message} (${code})`)),
      ];
    }),
    ...otherChangeTexts(one.plan).map((text) => plain('object', text)),
    ...(one.tests?.head.failures ?? []).map((failure) =>
      plain('failed', `${sourceText(failure)}: ${failure.case}: ${failure.problems.join('; ')}`),
    ),
    ...(one.isRemoved === true ? [plain('note', `the change removes the environment ${one.name}, so later reviews leave it out`)] : []),
    ...(one.plan.notes ?? []).map((note) => plain('note', note)),
    ...(one.tests === undefined ? [] : [plain('tests', testsText(one.tests))]),
  ]);
}

/** Returns an effect as a sentence without a full stop: the change, its first decision, and the number of the others. */
export function effectText(effect: PolicyEffect): string {
  return withDecisions(effect.cause, decisionTexts(effect));
}

/** Returns the decisions as text. An effect without decisions has the direction that its setting states. */
function decisionTexts({ direction, decisions, exception }: PolicyEffect): readonly string[] {
  const isStated = decisions.length === 0 && direction !== 'changed' && exception === undefined;
  return isStated ? ['no question of the review shows its effect'] : decisions.map(({ text }) => text);
}

function withDecisions(cause: string, [first, ...others]: readonly string[]): string {
  if (first === undefined) return cause;
  return `${cause}: ${first}${others.length === 0 ? '' : `, and ${counted(others.length, 'more decision')}`}`;
}

function effectRow(effect: PolicyEffect): GroupRow {
  const { namespace, group, direction: kind, cause, isTested, before, after } = effect;
  const places = [sourceText(after?.source ?? before?.source) ?? ''].filter((place) => place !== '');
  return { kind, cause, decisions: decisionTexts(effect), places, isUntested: isTested === false, group: `${namespace}/${group}` };
}

/** Returns one row for the rows that differ only in their groups. It names the first group and counts the others. */
function foldGroups(rows: readonly GroupRow[]): readonly Omit<ReviewRow, 'environments'>[] {
  const keyOf = ({ kind, cause, isUntested, decisions, group }: GroupRow): string =>
    [kind, group === undefined ? cause : cause.replaceAll(group, ''), isUntested, ...decisions].join('\n');
  return [...groupBy(rows, keyOf).values()].map((same) => {
    const [{ group: first, ...row }] = same;
    const groups = [...new Set(same.flatMap(({ group }) => group ?? []))];
    const places = [...new Set(same.flatMap((one) => one.places))];
    if (first === undefined || groups.length < 2) return { ...row, places, groups: [] };
    // A row about a plan begins with the group, and its numbers are those of each group.
    const each = row.cause.startsWith(`${first}:`) ? ', each' : '';
    const cause = row.cause.replaceAll(first, (name) => `${name} and ${counted(groups.length - 1, 'more group')}${each}`);
    return { ...row, cause, places, groups };
  });
}

/** Returns the tests of the head with their coverage, and those of the base if they differ: `12 passed, 1 failed, ... (before: 13 passed, ...)`. */
function testsText({ base, head }: NonNullable<EnvironmentReview['tests']>): string {
  const [before, after] = [base, head].map(({ passed, failed, coverage }) =>
    [`${passed} passed`, ...(failed === 0 ? [] : [`${failed} failed`]), ...(coverage.rules === 0 ? [] : [coveredText(coverage)])].join(
      ', ',
    ),
  );
  return before === after ? `${after}` : `${after} (before: ${before})`;
}

/**
 * Returns the headline: `1 loosened, 2 tightened, 1 other change, 18 restarts, 1 other object`, or `no effect` without any row of these
 * kinds. Rows count once, also rows about several groups or environments. Restarts, changes of scale and objects are those of all
 * environments.
 */
export function headline({ environments }: Review, rows: readonly ReviewRow[]): string {
  const groups = environments.flatMap(({ plan }) => plannedGroups(plan));
  const count = (kind: RowKind): number => rows.filter((row) => row.kind === kind).length;
  const blocked = groups.filter(({ outcome }) => outcome === 'blocked').length;
  const sum = (counts: readonly number[]): number => counts.reduce((total, one) => total + one, 0);
  // Environments with equal results share their tests.
  const tested = [...groupBy(environments, ({ tests }) => tests && testsText(tests)).values()].map(([one]) => one);
  const parts = [
    ...(blocked === 0 ? [] : [`${counted(blocked, 'group')} blocked`]),
    ...(['loosened', 'tightened'] as const).filter((kind) => count(kind) > 0).map((kind) => `${count(kind)} ${kind}`),
    countsText([
      [count('changed'), 'other change'],
      [count('failed'), 'failed test'],
      [sum(tested.map(removedTests)), 'removed test'],
      [sum(groups.map(({ totals }) => totals.restarts)), 'restart'],
      [sum(groups.map(({ totals }) => totals.scaleChanges)), 'scale change'],
      [sum(environments.map(({ plan }) => plan.otherChanges?.length ?? 0)), 'other object'],
      [environments.filter(({ isRemoved }) => isRemoved === true).length, 'removed environment'],
    ]),
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'no effect' : parts.join(', ');
}

/** Returns the name with the cluster: `production (eu-prd-1)`. */
export function environmentName({ name, cluster }: EnvironmentReview): string {
  return `${name}${reasonSuffix(cluster)}`;
}

interface Summary {
  readonly titles: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Returns the summary of several environments. Leaves out columns without a number, so that the rest fits into narrow windows. */
export function summaryOf(environments: readonly EnvironmentReview[], rows: readonly ReviewRow[]): Summary {
  const cells = environments.map((one) =>
    summaryCells(
      one,
      rows.filter((row) => row.environments.includes(one.name)),
    ),
  );
  const isEmpty = (column: number): boolean => cells.every((row) => row[column] === '0' || row[column] === '-');
  const kept = summaryTitles.flatMap((_, column) => (isEmpty(column) ? [] : [column]));
  const only = (row: readonly string[]): readonly string[] => kept.map((column) => row[column] ?? '');
  return { titles: only(summaryTitles), rows: cells.map(only) };
}

const summaryTitles = ['environment', 'plan', 'loosened', 'tightened', 'other', 'restarts', 'scales', 'objects', 'tests'] as const;

function summaryCells(one: EnvironmentReview, rows: readonly ReviewRow[]): readonly string[] {
  const groups = plannedGroups(one.plan);
  const sum = (count: (group: GroupPlan) => number): string => String(groups.reduce((total, group) => total + count(group), 0));
  const [first] = groups;
  return [
    environmentName(one),
    first === undefined ? 'no changes' : outcomeText(first),
    ...(['loosened', 'tightened', 'changed'] as const).map((kind) => String(rows.filter((row) => row.kind === kind).length)),
    sum(({ totals }) => totals.restarts),
    sum(({ totals }) => totals.scaleChanges),
    String(one.plan.otherChanges?.length ?? 0),
    testsCell(one),
  ];
}

function testsCell(one: EnvironmentReview): string {
  if (one.tests === undefined) return '-';
  const { failed } = one.tests.head;
  const removed = removedTests(one);
  return failed > 0 ? `${failed} failed` : removed > 0 ? `${removed} removed` : 'passed';
}

/** Returns how many policy tests the change removes. */
function removedTests({ tests }: EnvironmentReview): number {
  if (tests === undefined) return 0;
  const count = ({ passed, failed }: typeof tests.head): number => passed + failed;
  return Math.max(0, count(tests.base) - count(tests.head));
}

export function revisionsText({ base, head }: Review): string {
  return `${base}..${head}`;
}
