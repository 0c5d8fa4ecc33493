// Builds the texts about the changes of a plan: a short field name, the old and the new value, and the effect.
import {
  controllerWave,
  type GroupPlan,
  namesText,
  type ObjectChange,
  type Plan,
  type PlannedChange,
  type RunningValue,
} from '../../../engine/plan/document.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import { groupBy } from '../../../policies/values/group-by.ts';
import { counted, listed } from '../../../policies/wording.ts';

interface ChangeLine {
  readonly field: string;
  readonly value: string;
  readonly consequence: string;
}

/** Returns one line per change of the group, and one for the pods that no change explains. `fullPaths` keeps the full path of each field. */
export function changeLines(group: GroupPlan, { fullPaths = false } = {}): readonly ChangeLine[] {
  const containers = new Set(group.changes.map((change) => containerOf(change.field)).filter((name) => name !== undefined));
  const restarted = new Set<string>();
  const lines = group.changes.map((change) => {
    const zones = zonesText(group, change);
    const isRepeated = change.consequence === 'restart' && restarted.has(zones);
    if (change.consequence === 'restart') restarted.add(zones);
    return {
      field: fieldText(change, fullPaths, containers.size > 1),
      value: [changeText(change), zones].filter((part) => part !== '').join('  '),
      consequence: isRepeated ? 'same restart' : consequenceText(group, change),
    };
  });
  return [...lines, ...outdatedLines(group)];
}

/** Returns a line for the zones whose pods the agent replaces although no change concerns their template: their rollout is not complete. */
function outdatedLines({ changes, zones, waves }: GroupPlan): readonly ChangeLine[] {
  const changed = new Set(changes.filter(({ consequence }) => consequence === 'restart').flatMap((change) => change.zones));
  const rolls = waves.flatMap(({ name, steps }) => (name === controllerWave ? [] : steps.filter(({ kind }) => kind === 'roll')));
  const others = zones.flatMap(({ zone, afterWait = [] }) => {
    const count = rolls.reduce((sum, step) => sum + (step.zone === zone ? step.pods.length : 0), afterWait.length);
    return count === 0 || changed.has(zone) ? [] : [{ zone, count }];
  });
  if (changes.length === 0 || others.length === 0) return [];
  const value = `unchanged, but pods are outdated  (${others.map(({ zone }) => zone).join(', ')})`;
  return [{ field: 'template', value, consequence: restartText(others.reduce((sum, { count }) => sum + count, 0)) }];
}

function fieldText(change: PlannedChange, isFull: boolean, nameContainer: boolean): string {
  if (change.kind === 'created' || change.kind === 'deleted') return 'StatefulSet';
  return isFull ? change.field : shortField(change.field, nameContainer);
}

const containerPath = /^spec\.template\.spec\.(?:initC|c)ontainers\[([^\]]*)\]\.?/;

function containerOf(field: string): string | undefined {
  return containerPath.exec(field)?.[1];
}

/** Returns the significant part of a path: `image`, `resources.limits.memory`. */
function shortField(field: string, nameContainer: boolean): string {
  const container = containerOf(field);
  if (container !== undefined) {
    const rest = field.replace(containerPath, '') || `container ${container}`;
    return nameContainer ? `${container} ${rest}` : rest;
  }
  const annotation = /^metadata\.(?:annotations|labels)(?:\[(.+)\]|\.(.+))$/.exec(field);
  return annotation?.[1] ?? annotation?.[2] ?? field.replace(/^spec\.(?:template\.(?:spec\.)?)?/, '');
}

/** Returns `a -> b`. List entries and new or removed values are shown as `added …` and `removed …`. */
export function changeText(change: PlannedChange): string {
  const { kind, before, after, running } = change;
  if (kind === 'created') return 'new';
  if (kind === 'deleted') return 'deleted';
  if (running === undefined) return objectText(before, after);
  if (running.length === 0) return `${objectText(before, after)} (the pods have it)`;
  const pods = podsText(change, running);
  const text = isOfEntries(change, running) ? pods : `${pods} -> ${sameImage(running[0]?.value, after) ?? nameOf(after)}`;
  if (kind === 'pods') return `${text} (the template has it)`;
  const isInPods = running.some(({ value }) => isSameValue(value, before));
  return isInPods ? text : `${text} (template: ${isOfEntries(change, running) ? objectText(before, after) : nameOf(before)})`;
}

function objectText(before: unknown, after: unknown): string {
  if (Array.isArray(before) || Array.isArray(after)) return listText(asList(before), asList(after));
  if (before === undefined && after === undefined) return 'entries reordered';
  if (before === undefined) return `added ${valueText(after)}`;
  if (after === undefined) return `removed ${valueText(before)}`;
  return `${valueText(before)} -> ${sameImage(before, after) ?? valueText(after)}`;
}

function nameOf(value: unknown): string {
  return value === undefined ? 'no value' : valueText(value);
}

/** Reports whether the change adds, removes or reorders entries of a list. Such a change has no single value. */
function isOfEntries({ before, after }: PlannedChange, running: readonly RunningValue[]): boolean {
  const values = [before, after, ...running.map(({ value }) => value)];
  return values.some(Array.isArray) || values.every((value) => value === undefined);
}

/** Returns `cache:1.0 (6 pods) and 1.1 (3 pods)`, and for a list `added x (6 pods)`. */
export function podsText(change: PlannedChange, running: readonly RunningValue[]): string {
  const texts = running.map(({ value, pods }, index) => {
    const short = index === 0 ? undefined : sameImage(running[0]?.value, value);
    const text = isOfEntries(change, running) ? objectText(value, change.after) : (short ?? nameOf(value));
    return `${text} (${counted(pods, 'pod')})`;
  });
  return listed(texts, 'and');
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function listText(removed: readonly unknown[], added: readonly unknown[]): string {
  const part = (word: string, entries: readonly unknown[]) => (entries.length === 0 ? [] : [`${word} ${entries.map(valueText).join(' ')}`]);
  return [...part('added', added), ...part('removed', removed)].join(', ');
}

/** Returns the new tag if only the tag of an image changes; undefined otherwise, and for an image without a slash. */
function sameImage(before: unknown, after: unknown): string | undefined {
  if (typeof before !== 'string' || typeof after !== 'string') return undefined;
  const image = /^([\w.-]+(?::\d+)?(?:\/[\w.-]+)+):([\w.-]+)$/;
  const [, repository, tag] = image.exec(after) ?? [];
  return repository !== undefined && image.exec(before)?.[1] === repository ? tag : undefined;
}

/** Returns a text of one line unchanged, and any other value as JSON. */
export function valueText(value: unknown): string {
  return typeof value === 'string' && !value.includes('\n') ? value : (JSON.stringify(value) ?? '');
}

function zonesText(group: GroupPlan, change: PlannedChange): string {
  return change.zones.length === 0 || change.zones.length === group.zones.length ? '' : `(${change.zones.join(', ')})`;
}

function consequenceText(group: GroupPlan, change: PlannedChange): string {
  const zones = group.zones.filter(({ zone }) => change.zones.includes(zone));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + Math.max(0, number), 0);
  if (change.kind === 'deleted' && change.consequence === 'none')
    return joinText(sum(zones.map(({ replicasBefore }) => replicasBefore)), 'removed, all at once');
  const removed = sum(zones.map((zone) => zone.replicasBefore - zone.replicasAfter));
  const difference = requestedDifference(change);
  if (difference !== undefined && change.consequence === 'scaleUp') return joinText(difference * zones.length, 'added');
  if (difference !== undefined && change.consequence === 'scaleDown') return joinText(-difference * zones.length, 'removed');
  switch (change.consequence) {
    case 'restart': {
      const released = zones.some(({ released = [] }) => released.length > 0);
      return `${restartText(sum(zones.map(({ restarts }) => restarts)))}${released ? ' after the release' : ''}`;
    }
    case 'scaleUp': {
      const added = sum(zones.map((zone) => zone.replicasAfter - zone.replicasBefore));
      const adopted = change.kind === 'created' ? sum(zones.map(({ replicasBefore }) => replicasBefore)) : 0;
      if (adopted === 0) return joinText(added, 'added');
      const counts = [[adopted, 'adopted'] as const, [added, 'added'] as const, [removed, 'removed'] as const];
      return counts.flatMap(([count, word]) => (count === 0 ? [] : joinText(count, word))).join(', ');
    }
    case 'scaleDown':
      return joinText(removed, 'removed');
    case 'refused':
      return 'denied';
    case 'none':
      return 'no restart';
  }
}

/** Returns the new value less the old value; undefined for a mirrored object, or if one of the values is not a number. */
function requestedDifference({ kind, before, after }: PlannedChange): number | undefined {
  if (kind === 'source') return undefined;
  return typeof before === 'number' && typeof after === 'number' ? after - before : undefined;
}

function restartText(count: number): string {
  if (count === 0) return 'no pod restarts';
  return count === 1 ? '1 pod restarts' : `${count} pods restart`;
}

function joinText(count: number, word: string): string {
  return count === 0 ? 'no pods yet' : `${counted(count, 'pod')} ${word}`;
}

/** Returns a changed policy: `RolloutPolicy mimir/safety changed: spec.rules, spec.limits`. */
export function policyChangeText({ object, operation, fields }: ObjectChange): string {
  return `${object} ${operation}${fields.length === 0 ? '' : `: ${fields.join(', ')}`}`;
}

/** Returns the changes of objects in no group; equal changes share a text. */
export function otherChangeTexts({ otherChanges = [] }: Plan): readonly string[] {
  const same = groupBy(otherChanges, (change) => policyChangeText({ ...change, object: '' }));
  return [...same].map(([text, changes]) => `${namesText(changes.map(({ object }) => object))}${text}, in no group`);
}
