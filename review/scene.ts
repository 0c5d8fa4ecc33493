// Builds the scene of a pair of groups from both sides, and lists all questions about the pair.

import { fieldAt } from '../engine/observe/raw.ts';
import { assumedMetrics } from '../engine/plan/forward.ts';
import type { PolicyRuleDefinition, ZoneDefinition } from '../policies/definition.ts';
import { formatDuration } from '../policies/duration.ts';
import { type PolicyAction, policyAction } from '../policies/schema/rollout-policy.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { firstByKey, groupBy } from '../policies/values/group-by.ts';
import { literalsOf, passingReadings, thresholdsOf } from './literals.ts';
import { type Case, type Member, memberQuestions, type Question, type Scene } from './questions.ts';
import { rolloutQuestions } from './rollout-questions.ts';
import { type BoundGroup, comparableText, differs, isBudget, type Pair } from './sides.ts';
import { clearInstant, hoursRead, sidesOf, windowEdges } from './times.ts';

/** The maximum number of members that are asked about. */
const maxMembers = 8;

/** Returns every question about the pair. `objects` are the StatefulSets of both sides. */
export function questionsOf(pair: Pair, objects: readonly unknown[], nowMs: number): readonly Question[] {
  const scene = sceneOf(pair, objects, nowMs);
  const members = scene.members.slice(0, maxMembers);
  const timeless = [...members.flatMap((member) => memberQuestions(scene, member)), ...rolloutQuestions(pair, scene)];
  const rules = changedRules(pair);
  const varied = rules.flatMap((rule) => ruleQuestions(rule, timeless));
  const distinct = new Map(varied.map((question) => [[question.may, question.when, question.asksAgent].join('\n'), question]));
  return [...timeless, ...distinct.values(), ...timedQuestions(pair, timeless, { nowMs, rules })];
}

function sceneOf(pair: Pair, objects: readonly unknown[], nowMs: number): Scene {
  const bounds = boundsOf(pair);
  const hasOtherBounds = differs(pair, (side) => boundsOf({ ...pair, before: side, after: side }));
  const instants = new Map(policyAction.options.map((action) => [action, clearInstant(pair, action, nowMs)]));
  return {
    members: membersOf(pair, objects),
    replicas: restingNumber(pair, objects, bounds),
    targets: !hasOtherBounds
      ? []
      : [...new Set([...bounds.min.flatMap((min) => [min - 1, min]), ...bounds.max.flatMap((max) => [max, max + 1])])].filter(
          (target) => target > 0,
        ),
    instantOf: (action) => instants.get(action) ?? nowMs,
    readings: (side) => readingsOf(side, nowMs),
  };
}

/** Returns the members of both sides, with the names of the zones before the change. Members with equal settings form one member. */
function membersOf(pair: Pair, objects: readonly unknown[]): readonly Member[] {
  const zones = new Map<string, ZoneDefinition[]>();
  for (const { group } of sidesOf(pair)) {
    for (const zone of group.zones) zones.set(zone.statefulSet, [...(zones.get(zone.statefulSet) ?? []), zone]);
  }
  // A condition or a budget can tell members apart that have equal settings.
  const isTold = readsNames(pair) || hasOtherBudget(objects);
  const names = [...zones].map(([statefulSet, [first]]) => ({ statefulSet, zone: first?.name ?? '' }));
  const classes = groupBy(names, ({ statefulSet }) => {
    return isTold ? statefulSet : comparableText((zones.get(statefulSet) ?? []).map((zone) => settingsOf(zone)));
  });
  return [...classes.values()].map((alike) => ({ ...alike[0], alike, leaders: leadersOf(pair, alike[0].statefulSet) }));
}

/** Returns the members that a member follows on either side. */
function leadersOf(pair: Pair, statefulSet: string): Member['leaders'] {
  const leaders = sidesOf(pair).flatMap(({ group: { zones } }) => {
    const own = zones.find((zone) => zone.statefulSet === statefulSet);
    return zones.filter(({ name }) => name === own?.follows).map((zone) => ({ statefulSet: zone.statefulSet, zone: zone.name }));
  });
  return firstByKey(leaders, (leader) => leader.statefulSet);
}

function settingsOf({ name: _name, statefulSet: _statefulSet, follows, ...settings }: ZoneDefinition): unknown {
  return { ...settings, isFollower: follows !== undefined };
}

/** Reports whether only one side has a disruption budget, or both have different ones of one name. */
function hasOtherBudget(objects: readonly unknown[]): boolean {
  return [...groupBy(objects.filter(isBudget), canonicalJson).values()].some(({ length }) => length % 2 !== 0);
}

function readsNames(pair: Pair): boolean {
  const conditions = JSON.stringify(
    sidesOf(pair).flatMap(({ policies }) => policies.flatMap(({ rules }) => rules.map(({ when }) => when))),
  );
  return /target|zones|Zones/.test(conditions);
}

interface Bounds {
  readonly min: readonly number[];
  readonly max: readonly number[];
}

function boundsOf(pair: Pair): Bounds {
  const numbers = (field: 'min' | 'max'): readonly number[] => {
    const limit = field === 'min' ? 'minReplicas' : 'maxReplicas';
    const found = sidesOf(pair).flatMap(({ group, policies }) => [
      ...group.zones.map(({ bounds }) => bounds[field]),
      ...policies.map(({ limits }) => limits[limit]),
    ]);
    return [...new Set(found.flatMap((number) => number ?? []))].sort((a, b) => a - b);
  };
  return { min: numbers('min'), max: numbers('max') };
}

const [fewest, most] = [3, 30];

/** Returns the replicas of the largest member, between 3 and 30 and inside the bounds of both sides if possible. */
function restingNumber(pair: Pair, objects: readonly unknown[], { min, max }: Bounds): number {
  const names = new Set(sidesOf(pair).flatMap(({ group }) => group.zones.map(({ statefulSet }) => statefulSet)));
  const sizes = objects
    .filter((object) => names.has(String(fieldAt(object, ['metadata', 'name']))))
    .map((object) => Number(fieldAt(object, ['spec', 'replicas']) ?? fewest));
  const wanted = Math.min(most, Math.max(fewest, ...sizes));
  const inside = Math.min(Math.max(wanted, Math.max(0, ...min) + 1), Math.max(1, Math.min(...max, Number.POSITIVE_INFINITY) - 1));
  const zones = sidesOf(pair).flatMap(({ group }) => group.zones);
  const isRounded = (count: number): boolean =>
    zones.every(
      ({ bounds: { multipleOf, parity } }) => count % multipleOf === 0 && (parity === 'any' || (count % 2 === 0) === (parity === 'even')),
    );
  return Array.from({ length: 60 }, (_, index) => inside + index).find(isRounded) ?? inside;
}

function readingsOf({ group, policies }: BoundGroup, nowMs: number): ReturnType<Scene['readings']> {
  const gates = group.gates.flatMap((gate) => {
    const readings = passingReadings(gate, nowMs);
    return readings === undefined ? [] : [[gate.name, readings] as const];
  });
  return { metrics: assumedMetrics(policies, { given: {}, read: [] }, group), gates: Object.fromEntries(gates) };
}

/** Returns the rules that only one side has, or that differ, from both sides. */
function changedRules(pair: Pair): readonly PolicyRuleDefinition[] {
  const rulesOf = (side: BoundGroup | undefined) =>
    (side?.policies ?? []).flatMap((policy) =>
      policy.rules.map((rule) => ({ text: comparableText([policy.namespace, policy.name, rule, policy.metrics]), rule })),
    );
  const [before, after] = [rulesOf(pair.before), rulesOf(pair.after)];
  const differs = (texts: readonly { readonly text: string }[]) => (one: { readonly text: string }) =>
    !texts.some(({ text }) => text === one.text);
  return [...before.filter(differs(after)), ...after.filter(differs(before))].map(({ rule }) => rule);
}

/** Returns the plain questions about the actions of a rule, at the values that its condition compares with. */
function ruleQuestions({ actions, when }: PolicyRuleDefinition, questions: readonly Question[]): readonly Question[] {
  if (when === undefined) return [];
  const { numbers, texts, durationsMs } = literalsOf(when);
  const plain = questions.filter(({ action, when: circumstance }) => actions.includes(action) && circumstance === '');
  const asked = [...groupBy(plain, (question) => [question.action, question.asksAgent, question.statefulSet].join('\n')).values()].map(
    ([first]) => first,
  );
  const readsMetrics = JSON.stringify(when).includes('inputs.metrics');
  const values = [...thresholdsOf(numbers), 'unknown' as const];
  const variants: readonly Variation[] = [
    ...(readsMetrics ? values.map((value) => withMetrics(value)) : []),
    ...(JSON.stringify(when).includes('user') ? texts.map(withUser) : []),
    ...durationsMs.flatMap((ms) => [Math.max(0, ms - 1000), ms].map(withDownscale)),
    ...(JSON.stringify(when).includes('change') ? thresholdsOf(numbers).map(withTarget) : []),
  ];
  return variants.flatMap(({ when: circumstance, vary }) =>
    asked.map((question): Question => ({ ...question, when: circumstance, build: (side) => varied(question.build(side), side, vary) })),
  );
}

function varied(one: Case | undefined, side: BoundGroup, vary: Variation['vary']): Case | undefined {
  return one && vary(one, side);
}

interface Variation {
  readonly when: string;
  readonly vary: (one: Case, side: BoundGroup) => Case | undefined;
}

function withMetrics(value: number | 'unknown'): Variation {
  return {
    when: value === 'unknown' ? 'while metrics are unknown' : `while metrics read ${value}`,
    vary: ({ given, request }, { policies }) => {
      const inputs = policies.flatMap((policy) => Object.keys(policy.metrics).map((input) => `${policy.name}/${input}`));
      return { given: { ...given, metrics: Object.fromEntries(inputs.map((name) => [name, value])) }, request };
    },
  };
}

function withUser(name: string): Variation {
  return {
    when: `for user or group ${name}`,
    vary: ({ given, request }) => (request.user === undefined ? undefined : { given, request: { ...request, user: name, groups: [name] } }),
  };
}

function withDownscale(ms: number): Variation {
  return {
    when: `${formatDuration(ms)} after its last scale-down`,
    vary: ({ given, request }) => {
      const zones = Object.entries(given.zones ?? {}).map(([zone, state]) => [zone, { ...state, lastDownscale: formatDuration(ms) }]);
      return { given: { ...given, zones: Object.fromEntries(zones) }, request };
    },
  };
}

/** Returns the variation for a number that a condition compares with a replica count or with a difference. */
function withTarget(number: number): Variation {
  return {
    when: `to or by ${Math.abs(number)}`,
    vary: ({ given, request }) => {
      const from = given.zones?.[request.zone ?? '']?.replicas;
      if (from === undefined || request.to === undefined) return undefined;
      const candidates = [number, from + number, from - number];
      const to = candidates.find((one) => one >= 0 && (request.action === 'scaleUp' ? one > from : one < from));
      return to === undefined ? undefined : { given, request: { ...request, to } };
    },
  };
}

/** Returns one plain question for each action at each edge of the windows that differ, and at each hour if a changed rule reads the time. */
function timedQuestions(
  pair: Pair,
  questions: readonly Question[],
  { nowMs, rules }: { readonly nowMs: number; readonly rules: readonly PolicyRuleDefinition[] },
): readonly Question[] {
  return policyAction.options.flatMap((action: PolicyAction) => {
    const plain = questions.filter((question) => question.action === action && question.when === '');
    const asked = plain.find(({ asksAgent }) => asksAgent) ?? plain[0];
    const hasOtherWindows = differs(pair, ({ policies }) =>
      policies.map(({ windows }) => windows.filter((window) => window.actions.includes(action))).filter(({ length }) => length > 0),
    );
    const instants = [...(hasOtherWindows ? windowEdges(pair, action, nowMs) : []), ...hoursRead(rules, action, nowMs)];
    if (asked === undefined) return [];
    return [...new Set(instants)]
      .sort((a, b) => a - b)
      .map((atMs): Question => ({ ...asked, when: `at ${instantWords(atMs)}`, nowMs: atMs }));
  });
}

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** Returns an instant as `Fri 2026-08-21 19:00 UTC`. */
function instantWords(ms: number): string {
  const date = new Date(ms);
  return `${days[date.getUTCDay()]} ${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
