// Finds changed definitions behind which no answer differs, so that a removed rule is named even if no question reaches its condition.
import type { GroupDefinition, PolicyDefinition, Source } from '../policies/definition.ts';
import { defined } from '../policies/values/defined.ts';
import type { Direction, PolicyEffect } from './document.ts';
import type { SeenEffect } from './effects.ts';
import { type ChangedSetting, changedFields, rulesOf, settingText, sharedZones, sourceOfSetting } from './settings.ts';
import type { BoundGroup, Pair } from './sides.ts';

interface Item {
  /** The definition as a subject: `rule safety/queue`. */
  readonly what: string;
  readonly value: unknown;
  readonly source?: Source | undefined;
  /** The path in the schema of a RolloutPolicy. */
  readonly path?: string;
  /** True if a removal permits more in every case. */
  readonly isRestriction?: boolean;
  /** The verbs of a removal and an addition. */
  readonly verbs?: readonly [removed: string, added: string];
}

/** Returns an effect without decisions for each changed definition that no seen effect explains. */
export function unseenChanges(pair: Pair, settings: readonly ChangedSetting[], seen: readonly SeenEffect[]): readonly PolicyEffect[] {
  const { before, after } = pair;
  const known = seen.map(({ effect: one }) => one);
  if (before === undefined || after === undefined) return missingGroup(pair, known);
  const [old, next] = [itemsOf(before, after), itemsOf(after, before)];
  const names = [...new Set([...old.keys(), ...next.keys()])];
  const items = names.flatMap((name): readonly PolicyEffect[] => {
    const [was, is] = [old.get(name), next.get(name)];
    return changesOf(was, is)
      .filter(({ direction }) => !isExplained(was ?? is, direction, known))
      .map(({ direction, cause }) => effect(pair, direction, { cause, was: was?.source, is: is?.source }));
  });
  return [...items, ...unseenSettings(pair, settings, seen)];
}

interface ItemChange {
  readonly direction: Direction;
  readonly cause: string;
}

/** Returns how a definition changes: as a whole, or each of its settings. */
function changesOf(was: Item | undefined, is: Item | undefined): readonly ItemChange[] {
  const item = was ?? is;
  if (item === undefined) return [];
  const { what, path = 'inputs', verbs: [removed, added] = ['is removed', 'is added'], isRestriction = false } = item;
  if (is === undefined) return [{ direction: isRestriction ? 'loosened' : 'changed', cause: `${what} ${removed}` }];
  if (was === undefined) return [{ direction: isRestriction ? 'tightened' : 'changed', cause: `${what} ${added}` }];
  return changedFields('RolloutPolicy', path, { before: was.value, after: is.value }).map((one) => {
    const cause = one.path === path ? `${what} ${one.change}` : settingText({ ...one, name: one.path.slice(path.length + 1) }, what);
    return { direction: one.direction, cause };
  });
}

function missingGroup(pair: Pair, known: readonly PolicyEffect[]): readonly PolicyEffect[] {
  const isRemoved = pair.after === undefined;
  const cause = `RolloutGroup ${pair.namespace}/${pair.name} is ${isRemoved ? 'removed' : 'added'}`;
  const [was, is] = [pair.before, pair.after].map((side) => side?.group.sources['']);
  return known.some((one) => one.cause === cause) ? [] : [effect(pair, isRemoved ? 'loosened' : 'tightened', { cause, was, is })];
}

interface Change {
  readonly cause: string;
  readonly was: Source | undefined;
  readonly is: Source | undefined;
}

function effect(pair: Pair, direction: Direction, { cause, was, is }: Change): PolicyEffect {
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

/** Reports whether an effect names the definition, or comes from a rule that reads it and has the same direction. */
function isExplained(item: Item | undefined, own: Direction, known: readonly PolicyEffect[]): boolean {
  const { what = '', path = '' } = item ?? {};
  const rules = path === 'windows' ? ['window'] : (rulesOf({ path }) ?? []);
  return known.some(({ cause, rule = '', direction }) => {
    return (cause.startsWith(`${what} `) || rules.includes(rule)) && (own === 'changed' || own === direction);
  });
}

function itemsOf(side: BoundGroup, other: BoundGroup): ReadonlyMap<string, Item> {
  const items = [...leavingMembers(side, other.group), ...side.policies.flatMap((policy) => policyItems(policy, side, other))];
  return new Map(items.map((item) => [item.what, item]));
}

function policyItems(policy: PolicyDefinition, { group }: BoundGroup, { policies }: BoundGroup): readonly Item[] {
  const name = `RolloutPolicy ${policy.namespace}/${policy.name}`;
  const isShared = policies.some((one) => one.namespace === policy.namespace && one.name === policy.name);
  if (!isShared) {
    const groupName = `${group.namespace}/${group.name}`;
    const verbs = [`no longer applies to ${groupName}`, `now applies to ${groupName}`] as const;
    return [{ what: name, value: {}, source: policy.source, isRestriction: true, verbs }];
  }
  return [
    ...policy.rules.map((rule): Item => {
      const { source, ...value } = rule;
      return { what: `rule ${policy.name}/${rule.name}`, value, source, path: 'rules', isRestriction: true };
    }),
    ...policy.windows.map(({ source, ...value }): Item => {
      return { what: `window ${value.name} of ${name}`, value, source, path: 'windows' };
    }),
    ...Object.entries(policy.limits).map(([field, value]): Item => {
      const setting = field.replace(/Ms$/, '');
      const source = policy.limitSources[setting];
      return { what: `limit ${setting} of ${name}`, value, source, path: `limits.${field}`, isRestriction: true };
    }),
    ...Object.entries(policy.metrics).map(([input, value]): Item => ({ what: `metric ${input} of ${name}`, value })),
  ];
}

/** Returns the members that only this side has. */
function leavingMembers({ group }: BoundGroup, other: GroupDefinition): readonly Item[] {
  const name = `${group.namespace}/${group.name}`;
  const shared = sharedZones(group, other);
  return group.zones
    .filter((zone) => !shared.includes(zone))
    .map((zone) => ({
      what: `StatefulSet ${zone.statefulSet}`,
      value: {},
      source: group.sources[`zones.${zone.name}`],
      isRestriction: true,
      verbs: [`leaves ${name}`, `joins ${name}`],
    }));
}

/** Returns the changed settings of the group that no effect of the same direction explains. */
function unseenSettings(pair: Pair, settings: readonly ChangedSetting[], seen: readonly SeenEffect[]): readonly PolicyEffect[] {
  return settings
    .filter((setting) => {
      const isNamed = ({ effect: { rule = '' }, settings: named }: SeenEffect): boolean =>
        named.includes(setting) || (rulesOf(setting)?.includes(rule) ?? false);
      return !seen.some((one) => isNamed(one) && (setting.direction === 'changed' || one.effect.direction === setting.direction));
    })
    .map((setting) => {
      const [was, is] = [pair.before, pair.after].map((side) => side && sourceOfSetting(setting, side.group));
      return effect(pair, setting.direction, { cause: settingText(setting, `${pair.namespace}/${pair.name}`), was, is });
    });
}
