// Lists the questions about a rollout: the first pods of each wave, with open and missing approvals, gates, soaks and budgets.
import { waveTarget } from '../engine/amount.ts';
import type { ApprovalDefinition, GroupDefinition, PolicyRuleDefinition } from '../policies/definition.ts';
import { asksForApproval } from '../policies/rollout/rules-without-exception.ts';
import type { GivenState } from '../policies/schema/policy-test.ts';
import { compareText } from '../policies/values/compare-text.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { counted, listed } from '../policies/wording.ts';
import { literalsOf, thresholdsOf } from './literals.ts';
import { type Case, givenState, longAgo, type MemberState, type Question, restingReplicas, type Scene } from './questions.ts';
import { type BoundGroup, differs, type Pair } from './sides.ts';
import { sidesOf } from './times.ts';

/** The number of updated pods of each StatefulSet. */
type UpdatedPods = Readonly<Record<string, number>>;

/** A point of a rollout. Sides with other replicas reach the same point with other numbers of pods. */
interface Point {
  readonly when: string;
  /** True for a point inside of a wave, where no condition of a wave is evaluated. */
  readonly isInside?: true;
  readonly updatedOn: (side: BoundGroup) => UpdatedPods;
}

/** The maximum number of waves of one side whose ends are asked about. A schedule can have 100 waves. */
const maxWaves = 8;

/** Returns the questions about the rollout of a group. Both sides are asked at the ends of the waves of both sides. */
export function rolloutQuestions(pair: Pair, scene: Scene): readonly Question[] {
  const points = pointsOf(pair, scene);
  const [start] = points;
  const approvers = approverVariants(pair);
  const gates = gateVariants(pair);
  const plans = planVariants(pair);
  return [
    ...points.flatMap((point) => [
      rollout(scene, point),
      ...(point !== start && !point.isInside
        ? [rollout(scene, point, { suffix: 'without a soak', rest: { waveAvailableFor: '0s' } })]
        : []),
      ...(point.isInside ? [] : [...approvers, ...plans, ...gates]).map((one) => rollout(scene, point, one)),
    ]),
    rollout(scene, firstReplaced, { suffix: '', readyFor: '0s' }),
    ...points
      .slice(0, 1)
      .flatMap((point) => [
        ...scene.members.map(({ statefulSet, zone }) =>
          rollout(scene, point, { suffix: `while a pod of zone ${zone} is not ready`, members: { [statefulSet]: { notReady: 1 } } }),
        ),
        rollout(scene, point, { suffix: 'while the group is paused', rest: { paused: true } }),
      ]),
  ];
}

interface Variant {
  readonly suffix: string;
  readonly members?: Readonly<Record<string, MemberState>>;
  /** Parts of the state that depend on the side, such as the names of its gates. */
  readonly of?: (side: BoundGroup) => Partial<GivenState>;
  readonly rest?: Partial<GivenState>;
  readonly readyFor?: string;
}

function rollout(scene: Scene, { when, updatedOn }: Point, variant: Variant = { suffix: '' }): Question {
  const { suffix, members = {}, of, rest = {}, readyFor = longAgo } = variant;
  return {
    may: 'pods may be replaced',
    when: [when, suffix].filter((part) => part !== '').join(', '),
    action: 'rollout',
    asksAgent: true,
    nowMs: scene.instantOf('rollout'),
    isDone: ({ pods }) => pods.length > 0,
    build: (side): Case | undefined => {
      const updated = updatedOn(side);
      const states = side.group.zones.map(({ statefulSet }): [string, MemberState] => {
        return [statefulSet, { readyFor, updated: updated[statefulSet] ?? 0, ...members[statefulSet] }];
      });
      const approvals = approvalsOf(side, everyApprover(side));
      const given = { waveAvailableFor: longAgo, approvals, ...of?.(side), ...rest };
      return { given: givenState(side, scene, Object.fromEntries(states), given), request: { action: 'rollout' } };
    },
  };
}

/** The state after the first replacement of a pod: one pod of the first zone of the first wave. */
const firstReplaced: Point = {
  when: 'after a pod was replaced',
  updatedOn: ({ group }) =>
    Object.fromEntries(
      orderOf(group)
        .slice(0, 1)
        .map((statefulSet) => [statefulSet, 1]),
    ),
};

/** Returns the start of the rollout, the end of each zone of each wave, and the end of each wave but the last, of both sides. */
function pointsOf(pair: Pair, scene: Scene): readonly Point[] {
  const sides = sidesOf(pair);
  const start: Point = { when: '', updatedOn: () => ({}) };
  const all = [start, ...sides.flatMap(({ group }) => wavePoints(group, scene))];
  const keyOf = ({ updatedOn }: Point): string =>
    JSON.stringify(sides.map((side) => Object.entries(updatedOn(side)).sort(([a], [b]) => compareText(a, b))));
  const points = [...groupBy(all, keyOf).values()].map((same) => {
    // At the end of a wave there are more questions than inside of a wave.
    const [first = same[0], ...others] = same.filter(({ isInside }) => !isInside);
    const equal = first.isInside ? same : others;
    return { point: first, isClear: equal.every(({ when }) => when === first.when) };
  });
  // After a change of a wave, its end can be at two points, and a point can have two names.
  return points.map(({ point, isClear }) => {
    const isOnly = points.every((other) => other.point === point || other.point.when !== point.when);
    return isClear && isOnly ? point : { ...point, when: countsText(pair, point) };
  });
}

/** Returns the ends of the zones of each wave of a group, but not the end of the last wave. */
function wavePoints({ zones: all, rollout: { waves } }: GroupDefinition, scene: Scene): readonly Point[] {
  const ends = waves.slice(0, maxWaves).flatMap((wave, index) => {
    const zones = all.filter(({ name }) => wave.zones.includes(name));
    return zones.map(({ name, statefulSet }, place) => ({
      wave,
      name,
      statefulSet,
      isLast: place === zones.length - 1,
      isEnd: index === waves.length - 1,
    }));
  });
  return ends.flatMap(({ wave, name, isLast, isEnd }, index): readonly Point[] => {
    if (isLast && isEnd) return [];
    const reached = ends.slice(0, index + 1);
    const updatedOn = ({ group }: BoundGroup): UpdatedPods => {
      const updated: Record<string, number> = {};
      for (const {
        statefulSet,
        wave: { amount },
      } of reached) {
        const zone = group.zones.find((one) => one.statefulSet === statefulSet);
        const target = zone && waveTarget(amount, restingReplicas(group, zone, scene.replicas));
        if (target !== undefined) updated[statefulSet] = Math.max(updated[statefulSet] ?? 0, target);
      }
      return updated;
    };
    return [
      isLast
        ? { when: `after wave ${wave.name}`, updatedOn }
        : { when: `after zone ${name} of wave ${wave.name}`, isInside: true, updatedOn },
    ];
  });
}

/** Returns a point by its numbers of updated pods: `with 1 updated pod in x-a and 3 updated pods in x-b`. */
function countsText(pair: Pair, { updatedOn }: Point): string {
  const counts = sidesOf(pair)
    .slice(-1)
    .flatMap((side) => Object.entries(updatedOn(side)));
  const texts = counts.filter(([, count]) => count > 0).map(([statefulSet, count]) => `${counted(count, 'updated pod')} in ${statefulSet}`);
  return `with ${listed(texts, 'and')}`;
}

/** Returns the StatefulSets in the order of their first wave. */
function orderOf({ zones, rollout: { waves } }: GroupDefinition): readonly string[] {
  const names = [...new Set(waves.flatMap((wave) => wave.zones))];
  return zones
    .map(({ name, statefulSet }) => ({ statefulSet, rank: names.indexOf(name) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ statefulSet }) => statefulSet);
}

interface Approvers {
  readonly count: number;
  readonly groups: readonly string[];
}

/** Returns approvals of every wave and of every rule of the side that requires approval. */
function approvalsOf({ group, policies }: BoundGroup, { count, groups }: Approvers): NonNullable<GivenState['approvals']> {
  const users = Array.from({ length: Math.min(count, 3) }, (_, index) => ({ user: `approver-${index + 1}`, groups: [...groups] }));
  const waves = group.rollout.waves.filter(({ before, after }) => before.approval ?? after.approval).slice(0, 2 * maxWaves);
  const rules = policies.flatMap((policy) => policy.rules.filter(asksForApproval).map(({ name }) => `${policy.name}/${name}`));
  return users
    .flatMap((user) => [...waves.map(({ name }) => ({ wave: name, ...user })), ...rules.map((rule) => ({ rule, ...user }))])
    .slice(0, 50);
}

function approvalsIn({ group, policies }: BoundGroup): readonly ApprovalDefinition[] {
  return [
    ...group.rollout.waves.flatMap(({ before, after }) => [before.approval ?? [], after.approval ?? []].flat()),
    ...policies.flatMap(({ rules }) => rules.filter(asksForApproval).map(({ approval }) => approval)),
  ];
}

function approverGroups(sides: readonly BoundGroup[]): readonly string[] {
  return [...new Set(sides.flatMap(approvalsIn).flatMap(({ from }) => from))].sort(compareText);
}

function everyApprover(side: BoundGroup): Approvers {
  return { count: Number.POSITIVE_INFINITY, groups: approverGroups([side]) };
}

/** Returns no approval, fewer approvals than a side requires, and approvals of each single group of approvers. */
function approverVariants(pair: Pair): readonly Variant[] {
  const sides = sidesOf(pair);
  if (!differs(pair, (side) => [approvalsIn(side), side.group.rollout.waves])) return [];
  const counts = sides.flatMap(approvalsIn).map(({ count }) => count);
  if (counts.length === 0) return [];
  const groups = approverGroups(sides);
  const fewer = Array.from({ length: Math.min(3, Math.max(...counts)) }, (_, count) => ({
    count,
    groups,
    suffix: `with ${count === 0 ? 'no approval' : counted(count, 'approval')}`,
  }));
  const single = ['', ...groups].map((one) => ({
    count: 3,
    groups: one === '' ? [] : [one],
    suffix: `with approvals of users in ${one === '' ? 'no group' : one}`,
  }));
  return [...fewer, ...(groups.length === 0 ? [] : single)].map(({ suffix, ...approvers }) => ({
    suffix,
    of: (side) => ({ approvals: approvalsOf(side, approvers) }),
  }));
}

/** Returns a rollout with an approved plan and no other approval of a rule, if rules differ that ask for an approved plan. */
function planVariants(pair: Pair): readonly Variant[] {
  const planRules = ({ policies }: BoundGroup): readonly PolicyRuleDefinition[] =>
    policies.flatMap(({ rules }) => rules.filter(({ effect, onUnknown }) => [effect, onUnknown].includes('requireApprovedPlan')));
  if (sidesOf(pair).flatMap(planRules).length === 0 || !differs(pair, planRules)) return [];
  const ofWaves = (side: BoundGroup) => approvalsOf(side, everyApprover(side)).filter(({ rule }) => rule === undefined);
  return [{ suffix: 'with an approved plan', of: (side) => ({ approvals: ofWaves(side), approvedPlan: true }) }];
}

/** The maximum number of readings of a gate in one state. */
const maxReadings = 100;

/** Returns readings around every number in the conditions of the gates, and gates without a reading. */
function gateVariants(pair: Pair): readonly Variant[] {
  const gates = sidesOf(pair).flatMap(({ group }) => group.gates);
  if (gates.length === 0 || !differs(pair, ({ group }) => [group.gates, group.rollout.waves])) return [];
  const values = thresholdsOf(gates.flatMap(({ pass }) => literalsOf(pass).numbers));
  const counts = [...new Set([1, ...gates.flatMap(({ consecutive, failureLimit }) => [consecutive, failureLimit])])].filter(
    (count) => count > 0 && count <= maxReadings,
  );
  const readings = (reading: () => NonNullable<GivenState['gates']>[string]) => (side: BoundGroup) => ({
    gates: Object.fromEntries(side.group.gates.map((gate) => [gate.name, reading()])),
  });
  return [
    { suffix: 'while gates have no data', of: readings(() => 'noData') },
    { suffix: 'while gates fail to read', of: readings(() => 'error') },
    // Both sides get the same number of readings. Otherwise the state would differ, and not the gate.
    ...values.flatMap((value) =>
      counts.map((count) => ({
        suffix: `while gates read ${value}${count === 1 ? '' : ` ${count} times`}`,
        of: readings(() => Array.from({ length: count }, () => value)),
      })),
    ),
  ];
}
