// Finds changed definitions behind which no answer differs, so that a removed rule is named even if no question reaches its condition.
import type { GroupDefinition, PolicyDefinition, Source, ZoneDefinition } from '../policies/definition.ts';
import { defined } from '../policies/values/defined.ts';
import type { Direction, PolicyEffect } from './document.ts';
import { type BoundGroup, comparableText, type Pair } from './sides.ts';

interface Item {
  /** The definition as a subject: `rule safety/queue`. */
  readonly what: string;
  readonly text: string;
  readonly source?: Source | undefined;
  /** The rules of the engine that read the definition. An effect of one of them explains a change. */
  readonly rules?: readonly string[];
  /** The direction of a removal; absent if a removal is not always looser. */
  readonly removal?: 'loosened';
  /** The verbs of a removal and an addition. */
  readonly verbs?: readonly [removed: string, added: string];
}

/** Returns an effect without decisions for each changed definition that no effect in `known` explains. */
export function unseenChanges(pair: Pair, known: readonly PolicyEffect[]): readonly PolicyEffect[] {
  const { before, after } = pair;
  if (before === undefined || after === undefined) return missingGroup(pair, known);
  const [old, next] = [itemsOf(before, after), itemsOf(after, before)];
  const names = [...new Set([...old.keys(), ...next.keys()])];
  return names.flatMap((name): readonly PolicyEffect[] => {
    const [was, is] = [old.get(name), next.get(name)];
    const item = was ?? is;
    if (item === undefined || was?.text === is?.text || isExplained(item, known)) return [];
    const isChanged = was !== undefined && is !== undefined;
    const [removed, added] = item.verbs ?? ['is removed', 'is added'];
    const verb = isChanged ? 'changes' : is === undefined ? removed : added;
    const direction = isChanged || item.removal === undefined ? 'changed' : is === undefined ? 'loosened' : 'tightened';
    return [effect(pair, direction, `${item.what} ${verb}`, was?.source, is?.source)];
  });
}

function missingGroup(pair: Pair, known: readonly PolicyEffect[]): readonly PolicyEffect[] {
  const isRemoved = pair.after === undefined;
  const cause = `RolloutGroup ${pair.namespace}/${pair.name} is ${isRemoved ? 'removed' : 'added'}`;
  const [was, is] = [pair.before, pair.after].map((side) => side?.group.sources['']);
  return known.some((one) => one.cause === cause) ? [] : [effect(pair, isRemoved ? 'loosened' : 'tightened', cause, was, is)];
}

function effect(pair: Pair, direction: Direction, cause: string, was: Source | undefined, is: Source | undefined): PolicyEffect {
  const place = (source: Source | undefined) => (source === undefined ? undefined : { source });
  return {
    direction,
    namespace: pair.namespace,
    group: pair.name,
    cause,
    decisions: [],
    ...defined({ before: place(was), after: place(is) }),
  };
}

function isExplained({ what, rules = [] }: Item, known: readonly PolicyEffect[]): boolean {
  return known.some(({ cause, rule = '' }) => cause.startsWith(`${what} `) || rules.includes(rule));
}

function itemsOf(side: BoundGroup, other: BoundGroup): ReadonlyMap<string, Item> {
  const items = [...groupItems(side, other.group), ...side.policies.flatMap((policy) => policyItems(policy, side, other))];
  return new Map(items.map((item) => [item.what, item]));
}

function policyItems(policy: PolicyDefinition, { group }: BoundGroup, { policies }: BoundGroup): readonly Item[] {
  const name = `RolloutPolicy ${policy.namespace}/${policy.name}`;
  const isShared = policies.some((one) => one.namespace === policy.namespace && one.name === policy.name);
  if (!isShared) {
    const groupName = `${group.namespace}/${group.name}`;
    return [
      {
        what: name,
        text: '',
        source: policy.source,
        removal: 'loosened',
        verbs: [`no longer applies to ${groupName}`, `now applies to ${groupName}`],
      },
    ];
  }
  return [
    ...policy.rules.map((rule): Item => {
      return { what: `rule ${policy.name}/${rule.name}`, text: comparableText(rule), source: rule.source, removal: 'loosened' };
    }),
    ...policy.windows.map((window) => {
      return { what: `window ${window.name} of ${name}`, text: comparableText(window), source: window.source, rules: ['window'] };
    }),
    ...Object.entries(policy.limits).map(([field, limit]): Item => {
      const source = policy.limitSources[field.replace(/Ms$/, '')];
      return {
        what: `limit ${field.replace(/Ms$/, '')} of ${name}`,
        text: comparableText(limit),
        source,
        rules: rulesOf[field] ?? [],
        removal: 'loosened',
      };
    }),
    ...Object.entries(policy.metrics).map(([input, metric]) => ({ what: `metric ${input} of ${name}`, text: comparableText(metric) })),
  ];
}

/** The rules that read a setting of a zone, a rollout or a limit. */
const rulesOf: Readonly<Record<string, readonly string[]>> = {
  maxUnavailable: ['zone-budget'],
  minReplicas: ['scale-floor'],
  maxReplicas: ['scale-ceiling'],
  bounds: ['scale-floor', 'scale-ceiling'],
  betweenZonesMs: ['zone-gap'],
  minIntervalMs: ['min-interval'],
  delayed: ['delayed-downscale'],
  prepare: ['prepare-downscale'],
  noDownscale: ['no-downscale'],
  noDelete: ['no-delete'],
  noEviction: ['no-eviction'],
  paused: ['paused'],
  scalingHold: ['scaling-hold'],
  scaleDownHold: ['scaling-hold'],
  replicas: ['replicas-owned', 'delayed-downscale'],
  follows: ['leader-floor', 'replicas-owned'],
  waves: ['soak', 'approval', 'gate', 'wave-available'],
  gates: ['gate'],
  disruption: ['disruption-budget'],
};

/** Returns the settings of a group. Settings of zones count only for the members that both sides have. */
function groupItems({ group }: BoundGroup, other: GroupDefinition): readonly Item[] {
  const name = `${group.namespace}/${group.name}`;
  const isShared = ({ statefulSet }: ZoneDefinition): boolean => other.zones.some((zone) => zone.statefulSet === statefulSet);
  const shared = group.zones.filter(isShared);
  const leaving = group.zones.filter((zone) => !isShared(zone));
  const fields = [...new Set(shared.flatMap((zone) => Object.keys(zone)))].filter((field) => field !== 'statefulSet');
  const values: readonly (readonly [field: string, value: unknown])[] = [
    ...fields.map((field) => [field, shared.map((zone) => [zone.statefulSet, Reflect.get(zone, field)]).sort()] as const),
    ...Object.entries({ ...group.rollout, waves: sharedWaves(group, shared) }),
    ...(['gates', 'disruption', 'notify', 'labels', 'profile'] as const).map((field) => [field, group[field]] as const),
    ['zones', shared.map(({ statefulSet }) => statefulSet)],
  ];
  return [
    ...leaving.map(
      (zone): Item => ({
        what: `StatefulSet ${zone.statefulSet}`,
        text: '',
        source: group.sources[`zones.${zone.name}`],
        removal: 'loosened',
        verbs: [`leaves ${name}`, `joins ${name}`],
      }),
    ),
    ...values.map(([field, value]): Item => {
      const text = value === undefined ? '' : comparableText({ [field]: value });
      return {
        what: `${field === 'zones' ? 'the order of zones' : `the setting ${field.replace(/Ms$/, '')}`} of ${name}`,
        text,
        source: group.sources[''],
        rules: rulesOf[field] ?? [],
      };
    }),
  ];
}

/** Returns the waves with the zones that both sides have, by their StatefulSets. */
function sharedWaves({ rollout: { waves } }: GroupDefinition, shared: readonly ZoneDefinition[]): unknown {
  const sets = new Map(shared.map(({ name, statefulSet }) => [name, statefulSet]));
  return waves.map((wave) => ({ ...wave, zones: wave.zones.flatMap((zone) => sets.get(zone) ?? []) }));
}
