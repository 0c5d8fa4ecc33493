// Compares the settings of a group field by field, and states for each changed one whether it permits more or less.
import { masked } from '../engine/diff/field-secrets.ts';
import type { GroupDefinition, Source, ZoneDefinition } from '../policies/definition.ts';
import { formatDuration } from '../policies/duration.ts';
import { type DirectedKind, directionOf, looserValues } from '../policies/schema/directions.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { isRecord } from '../policies/values/is-record.ts';
import { listed } from '../policies/wording.ts';
import type { Direction } from './document.ts';
import { comparableText, type Pair } from './sides.ts';

/** A setting that differs between both sides. */
export interface ChangedSetting {
  /** The path below `spec` in the schema, without indexes: `rollout.waves.after.soak`. */
  readonly path: string;
  /** The path with the names of waves and gates, without `spec.rollout`: `waves.canary.after.soak`. */
  readonly name: string;
  /** The change, as a clause without its subject: `rises from 2 to 3`. */
  readonly change: string;
  readonly direction: Direction;
}

interface Parts {
  readonly before: unknown;
  readonly after: unknown;
}

/** Returns the changed fields of a part of a definition. An object that only one side has is one change. */
export function changedFields(kind: DirectedKind, path: string, parts: Parts, name: string = path): readonly ChangedSetting[] {
  const { before, after } = parts;
  const field = path.slice(path.lastIndexOf('.') + 1);
  if (textOf(field, before) === textOf(field, after)) return [];
  if (isRecord(before) && isRecord(after) && before['kind'] === after['kind'] && !conditions.has(field)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      changedFields(kind, `${path}.${key}`, { before: before[key], after: after[key] }, `${name}.${key}`),
    );
  }
  const setting = path.replace(/Ms$/, '');
  const own = { path: setting, name: name.replace(/Ms$/, '') };
  const looser = looserValues(kind, setting);
  const direction = directionOf(looser, before, after);
  const items = direction === 'changed' && (looser === 'fewer' || looser === 'more') ? changedItems(looser, parts) : [];
  if (items.length > 0) return items.map((item) => ({ ...own, ...item }));
  // The path of an endpoint can have a query with a credential.
  const shown = masked(kind, { path: setting, pattern: setting }, before, after);
  return [{ ...own, direction, change: changeText(shown, path.endsWith('Ms')) }];
}

/** The fields with a condition in JsonLogic, whose parts are no settings. */
const conditions: ReadonlySet<string> = new Set(['when', 'pass']);

/** Returns the items that a list loses and gains. Either loosens, and the other tightens. */
function changedItems(looser: 'fewer' | 'more', { before, after }: Parts): readonly Pick<ChangedSetting, 'direction' | 'change'>[] {
  if (!isTextList(before) || !isTextList(after) || before.length === 0 || after.length === 0) return [];
  const lost = before.filter((item) => !after.includes(item));
  const gained = after.filter((item) => !before.includes(item));
  const [ofLost, ofGained] = looser === 'fewer' ? (['loosened', 'tightened'] as const) : (['tightened', 'loosened'] as const);
  return [
    { direction: ofLost, change: `no longer has ${listed(lost, 'and')}` },
    { direction: ofGained, change: `also has ${listed(gained, 'and')}` },
  ];
}

/** Returns the direction of several changes together: that of all, or `changed` if they differ. */
function commonDirection(changes: readonly Pick<ChangedSetting, 'direction'>[]): Direction {
  const [first = 'changed', ...others] = new Set(changes.map(({ direction }) => direction));
  return others.length === 0 ? first : 'changed';
}

/** Returns the changed settings of a group that both sides have. Settings of zones count only for the members of both sides. */
export function changedSettings({ before, after }: Pair): readonly ChangedSetting[] {
  if (before === undefined || after === undefined) return [];
  const [old, next] = [settingsOf(before.group, after.group), settingsOf(after.group, before.group)];
  const named = (name: keyof typeof old): Parts => ({ before: old[name], after: next[name] });
  return [
    ...zoneSettings(before.group, after.group),
    ...changedFields('RolloutGroup', 'rollout', named('rollout')).map((one) => ({ ...one, name: one.name.replace(/^rollout\./, '') })),
    ...changedParts('rollout.waves', named('waves')),
    ...changedParts('gates', named('gates')),
    ...(['disruption', 'notify', 'labels', 'profile', 'zones'] as const).flatMap((name) =>
      changedFields('RolloutGroup', name, named(name)),
    ),
  ];
}

/** Returns the settings of a group other than those of its zones. Waves name the zones that both sides have, by their StatefulSets. */
function settingsOf(group: GroupDefinition, other: GroupDefinition) {
  const { waves, ...rollout } = group.rollout;
  const sets = new Map(sharedZones(group, other).map(({ name, statefulSet }) => [name, statefulSet]));
  const { maxUnavailablePercent, ...disruption } = group.disruption ?? {};
  const percent = maxUnavailablePercent === undefined ? {} : { maxUnavailable: `${maxUnavailablePercent}%` };
  return {
    rollout,
    waves: waves.map(({ amount, ...wave }) => ({ ...wave, ...amount, zones: wave.zones.flatMap((zone) => sets.get(zone) ?? []) })),
    // A failure limit of 0 means no limit.
    gates: group.gates.map(({ provider, failureLimit, ...gate }) => ({
      ...gate,
      ...provider,
      ...(failureLimit === 0 ? {} : { failureLimit }),
    })),
    disruption: group.disruption && { ...disruption, ...percent },
    notify: group.notify,
    labels: group.labels,
    profile: group.profile,
    zones: [...sets.values()],
  };
}

export function sharedZones({ zones }: GroupDefinition, other: GroupDefinition): readonly ZoneDefinition[] {
  return zones.filter(({ statefulSet }) => other.zones.some((zone) => zone.statefulSet === statefulSet));
}

/** The path of each setting of a zone in the schema. */
const zonePaths: Readonly<Record<Exclude<keyof ZoneDefinition, 'statefulSet'>, string>> = {
  name: 'members.zones.name',
  follows: 'members.zones.follows',
  replicas: 'replicas.count',
  bounds: 'replicas.bounds',
  maxUnavailable: 'rollout.maxUnavailable',
  paused: 'members.zones.paused',
  forceReplicas: 'members.zones.forceReplicas',
  scalingHold: 'scaling.hold',
  scaleDownHold: 'scaling.down.hold',
  duringRollout: 'scaling.duringRollout',
  followersWaitFor: 'scaling.up.followersWaitFor',
  betweenZonesMs: 'scaling.down.betweenZonesMs',
  delayed: 'scaling.down.delayed',
  prepare: 'scaling.down.prepare',
  noDownscale: 'protect.noDownscale',
  noDelete: 'protect.noDelete',
  noEviction: 'protect.noEviction',
};

/** Returns the changed settings of the members of both sides. Equal changes of several zones are one change. */
function zoneSettings(before: GroupDefinition, after: GroupDefinition): readonly ChangedSetting[] {
  const all = sharedZones(before, after).flatMap((zone) => {
    const other = after.zones.find(({ statefulSet }) => statefulSet === zone.statefulSet);
    const hasOtherLeader = (zone.follows === undefined) !== (other?.follows === undefined);
    return Object.entries(zonePaths).flatMap(([field, path]) => {
      // A follower copies the number of its leader, so the number changes with `follows`.
      if (field === 'replicas' && hasOtherLeader) return [];
      return changedFields('RolloutGroup', path, { before: Reflect.get(zone, field), after: other && Reflect.get(other, field) }, field);
    });
  });
  return [...groupBy(all, ({ name }) => name).values()].map((same) => {
    const [first] = same;
    const isOne = same.every(({ change }) => change === first.change);
    return { ...first, direction: commonDirection(same), change: isOne ? first.change : 'changes' };
  });
}

/** Returns the changes in a list of named items: of each item that both sides have, of the items themselves, and of their order. */
function changedParts(path: 'rollout.waves' | 'gates', { before, after }: Parts): readonly ChangedSetting[] {
  const [old, next] = [itemsByName(before), itemsByName(after)];
  const listName = path.slice(path.lastIndexOf('.') + 1);
  const names = [...new Set([...old.keys(), ...next.keys()])];
  const order = (items: ReadonlyMap<string, unknown>) => [...items.keys()].filter((name) => old.has(name) && next.has(name));
  const isOrdered = path === 'rollout.waves' && order(old).join() !== order(next).join();
  return [
    ...names.flatMap((name) =>
      changedFields('RolloutGroup', path, { before: old.get(name), after: next.get(name) }, `${listName}.${name}`),
    ),
    ...(isOrdered ? [{ path, name: listName, change: 'has another order', direction: 'changed' as const }] : []),
  ];
}

function itemsByName(items: unknown): ReadonlyMap<string, unknown> {
  const list: readonly unknown[] = Array.isArray(items) ? items : [];
  return new Map(list.map((item) => [isRecord(item) ? String(item['name']) : '', item]));
}

/** Returns the change of a setting of an object as a clause. */
export function settingText({ name, change }: ChangedSetting, object: string): string {
  return `${name === 'zones' ? 'the order of zones' : `the setting ${name}`} of ${object} ${change}`;
}

/** Returns the place of a setting, of the object that contains it, or of the group. */
export function sourceOfSetting(setting: ChangedSetting | undefined, { sources, zones }: GroupDefinition): Source | undefined {
  const { path = '', name = '' } = setting ?? {};
  const inRollout = path.startsWith('rollout.') && !path.startsWith('rollout.waves') ? `rollout.${name}` : name;
  const candidates = [inRollout, ...zones.map((zone) => `zones.${zone.name}.${name}`)].flatMap(startsOf);
  return candidates.map((candidate) => sources[candidate]).find((source) => source !== undefined) ?? sources[''];
}

function startsOf(path: string): readonly string[] {
  const parts = path.split('.');
  return parts.map((_, index) => parts.slice(0, parts.length - index).join('.')).filter((start) => start.includes('.') || start === path);
}

function textOf(field: string, value: unknown): string {
  return value === undefined ? '' : comparableText({ [field]: value });
}

/** Returns the change of a value as a clause. Long values are not shown. */
function changeText({ before, after }: Parts, isDuration: boolean): string {
  const [old, next] = [before, after].map((value) => valueText(value, isDuration));
  if (after === undefined) return `is removed${old === undefined ? '' : `, which was ${old}`}`;
  if (before === undefined) return `is added${next === undefined ? '' : `: ${next}`}`;
  if (old === undefined || next === undefined) return 'changes';
  const isNumber = typeof before === 'number' && typeof after === 'number';
  return `${isNumber ? (after > before ? 'rises' : 'falls') : 'changes'} from ${old} to ${next}`;
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

const longestText = 60;

function valueText(value: unknown, isDuration: boolean): string | undefined {
  if (typeof value === 'number' && isDuration) return formatDuration(value);
  if (isTextList(value)) return value.length === 0 ? 'none' : value.join(', ');
  if (value === undefined) return undefined;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > longestText ? undefined : text;
}

/**
 * The rules that read a setting, by the start of its path. The longest start counts. A setting without an entry decides which pods a rollout
 * replaces next, so every rule can give another answer. An empty list: no answer depends on the setting.
 */
const rulesByPath: Readonly<Record<string, readonly string[]>> = {
  'rollout.maxUnavailable': ['zone-budget'],
  'rollout.minInterval': ['min-interval'],
  'rollout.rotateBy': ['eviction-budget'],
  'rollout.deadlines': ['run-failed', 'progress-deadline', 'run-deadline'],
  'rollout.onFailure': ['run-failed', 'rolled-back'],
  'rollout.historyLimit': [],
  'rollout.onPolicyDeleted': [],
  'rollout.waves.before.approval': ['approval'],
  'rollout.waves.before.gates': ['gate', 'run-failed'],
  'rollout.waves.after.approval': ['approval'],
  'rollout.waves.after.gates': ['gate', 'run-failed'],
  'rollout.waves.after.soak': ['soak'],
  gates: ['gate', 'run-failed'],
  // The questions give the readings.
  'gates.prometheus': [],
  'gates.http': [],
  'gates.consul': [],
  'gates.podsAvailable': [],
  'gates.consul.passing': ['gate', 'run-failed'],
  'gates.podsAvailable.minReadySeconds': ['gate', 'run-failed'],
  notify: [],
  disruption: ['disruption-budget'],
  'replicas.bounds': ['scale-floor', 'scale-ceiling'],
  'scaling.hold': ['scaling-hold'],
  'scaling.duringRollout': ['rollout-in-progress'],
  'scaling.up.followersWaitFor': ['leader-ready'],
  'scaling.down.hold': ['scaling-hold'],
  'scaling.down.betweenZones': ['zone-gap'],
  'scaling.down.delayed': ['delayed-downscale'],
  'scaling.down.prepare': ['prepare-downscale'],
  'protect.noDownscale': ['no-downscale'],
  'protect.noDelete': ['no-delete'],
  'protect.noEviction': ['no-eviction'],
  'members.zones.paused': ['paused'],
  'limits.maxUnavailable': ['zone-budget'],
  'limits.minReplicas': ['scale-floor'],
  'limits.maxReplicas': ['scale-ceiling'],
  'limits.betweenZones': ['zone-gap'],
  'limits.minInterval': ['min-interval'],
};

/** Returns the rules of the engine that read a setting: a difference in one of them shows its change. Undefined: every rule can show it. */
export function rulesOf({ path }: Pick<ChangedSetting, 'path'>): readonly string[] | undefined {
  for (let start = path.replace(/Ms$/, ''); start !== ''; start = start.slice(0, Math.max(0, start.lastIndexOf('.')))) {
    const found = rulesByPath[start];
    if (found !== undefined) return found;
  }
  return undefined;
}
