// Builds the texts about a review that every format shares: its headline, a line for each group, and the counts of an environment.
import type { GroupPlan, Plan } from '../../../engine/plan/document.ts';
import {
  consequenceOf,
  countEffects,
  type EnvironmentReview,
  imageChanges,
  lacksTest,
  type PolicyEffect,
  placeOfEffect,
  type Review,
} from '../../../review/document.ts';
import { byAttention, countsText, outcomeText, replicasText, sourceText, spanText } from '../plan/plan-text.ts';
import { plural } from '../text.ts';

/** Returns the groups that the change of manifests or policies moves, sorted by need of attention. */
export function plannedGroups({ groups }: Plan): readonly GroupPlan[] {
  return byAttention(groups.filter(({ changes, waves, refused }) => changes.length + waves.length + refused.length > 0));
}

/** Returns what happens to a group: `image mimir:2.16 -> mimir:2.17, 18 restarts, 45m (p90 2h), blocked`. */
export function groupText(group: GroupPlan): string {
  const { restarts, approvals, p50Seconds, p90Seconds } = group.totals;
  const scaled = group.zones.filter(({ replicasBefore, replicasAfter }) => replicasBefore !== replicasAfter);
  return [
    ...imageChanges(group).map(({ before, after }) => `image ${before} -> ${after}`),
    ...scaled.map((zone) => `zone ${zone.zone} ${replicasText(zone).replace('→', '->')} replicas`),
    countsText([
      [restarts, 'restart'],
      [approvals, 'approval'],
      [group.refused.length, 'denial'],
    ]),
    ...(p50Seconds === undefined || restarts === 0 ? [] : [`${spanText(p50Seconds)} (p90 ${spanText(p90Seconds)})`]),
    ...(group.outcome === 'complete' ? [] : [outcomeText(group)]),
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** Returns an effect as one sentence without a full stop: the change and its first consequence. */
export function effectText(effect: PolicyEffect): string {
  const consequence = consequenceOf(effect);
  return consequence === '' ? effect.cause : `${effect.cause}: ${consequence}`;
}

/** Returns the place of an effect and a remark on its tests: `policies/ingester.yaml:29:7, no test`. */
export function placeText(effect: PolicyEffect): string {
  const place = sourceText(placeOfEffect(effect));
  return [...(place === undefined ? [] : [place]), ...(lacksTest(effect) ? ['no test'] : [])].join(', ');
}

/** Returns the tests of the head, and those of the base if they differ: `12 passed, 1 failed (before: 13 passed)`. */
export function testsText({ tests }: EnvironmentReview): string {
  if (tests === undefined) return 'no policy tests';
  const text = ({ passed, failed }: { readonly passed: number; readonly failed: number }): string =>
    failed === 0 ? `${passed} passed` : `${passed} passed, ${failed} failed`;
  const [before, after] = [text(tests.base), text(tests.head)];
  return before === after ? after : `${after} (before: ${before})`;
}

/** Returns the headline: `1 loosened, 2 tightened, 18 restarts`, or `no effect`. */
export function headline(environments: readonly EnvironmentReview[]): string {
  const sum = (count: (one: EnvironmentReview) => number): number => environments.reduce((total, one) => total + count(one), 0);
  const groups = environments.flatMap(({ plan }) => plannedGroups(plan));
  const blocked = groups.filter(({ outcome }) => outcome === 'blocked').length;
  const [loosened, tightened] = (['loosened', 'tightened'] as const).map((direction) =>
    sum(({ policies }) => countEffects(policies, direction)),
  );
  const parts = [
    ...(blocked === 0 ? [] : [`${plural(blocked, 'group')} blocked`]),
    ...(loosened === 0 ? [] : [`${loosened} loosened`]),
    ...(tightened === 0 ? [] : [`${tightened} tightened`]),
    countsText([
      [sum(({ tests }) => tests?.head.failed ?? 0), 'failed test'],
      [groups.reduce((total, { totals }) => total + totals.restarts, 0), 'restart'],
      [groups.reduce((total, { totals }) => total + totals.scaleChanges, 0), 'scale change'],
    ]),
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'no effect' : parts.join(', ');
}

/** The columns of the summary of several environments. */
export const summaryTitles = ['environment', 'cluster', 'plan', 'restarts', 'scale changes', 'loosened', 'tightened', 'tests'] as const;

/** Returns the cells of the summary of one environment. */
export function summaryCells(one: EnvironmentReview): readonly string[] {
  const groups = plannedGroups(one.plan);
  const sum = (count: (group: GroupPlan) => number): string => String(groups.reduce((total, group) => total + count(group), 0));
  const [first] = groups;
  return [
    one.name,
    one.cluster ?? '',
    first === undefined ? 'no changes' : outcomeText(first),
    sum(({ totals }) => totals.restarts),
    sum(({ totals }) => totals.scaleChanges),
    String(countEffects(one.policies, 'loosened')),
    String(countEffects(one.policies, 'tightened')),
    one.tests === undefined ? '-' : testsText({ ...one, tests: { base: one.tests.head, head: one.tests.head } }),
  ];
}

/** Returns the revisions: `main..feature`. */
export function revisionsText({ base, head }: Review): string {
  return `${base}..${head}`;
}
