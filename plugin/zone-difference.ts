// Compares the zones of a group with its first zone, except for names.
import { type FieldChange, fieldDiff, type ObjectContent } from '../engine/diff/field-diff.ts';
import type { GroupDefinition, ZoneDefinition } from '../policies/definition.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { nameOf } from './difference.ts';

export interface SiblingDifference {
  readonly zone: string;
  /** The first zone of the group with a StatefulSet. */
  readonly comparedWith: string;
  readonly changes: readonly FieldChange[];
}

export interface GroupSiblings {
  readonly namespace: string;
  readonly group: string;
  /** Zones that differ; the other zones are alike. */
  readonly siblings: readonly SiblingDifference[];
  /** Fields that differ in every zone, such as a rack: settings of the zones, not drift. */
  readonly perZone: readonly string[];
  /** Zones without a StatefulSet among the manifests. */
  readonly missing: readonly string[];
}

/** Compares the members of each group with its first zone. */
export function siblingDifferences(objects: readonly ObjectContent[], groups: readonly GroupDefinition[]): readonly GroupSiblings[] {
  const byName = new Map(objects.map((object) => [nameOf(object), object]));
  return groups.map((group) => {
    const found = group.zones.map((zone) => ({ zone, object: byName.get(`StatefulSet ${group.namespace}/${zone.statefulSet}`) }));
    const present = found.flatMap(({ zone, object }) => (object === undefined ? [] : [{ zone, object: withoutZone(object, zone) }]));
    const [first, ...rest] = present;
    const compared = rest.map(({ zone, object }) => ({
      zone: zone.name,
      comparedWith: first?.zone.name ?? '',
      changes: first === undefined ? [] : fieldDiff(first.object, object).filter((change) => !isExpected(change)),
    }));
    const perZone = fieldsPerZone(compared);
    return {
      namespace: group.namespace,
      group: group.name,
      siblings: compared
        .map((sibling) => ({ ...sibling, changes: sibling.changes.filter(({ path }) => !perZone.includes(path)) }))
        .filter(({ changes }) => changes.length > 0),
      perZone,
      missing: found.filter(({ object }) => object === undefined).map(({ zone }) => zone.name),
    };
  });
}

/** Returns the fields with a different value in every zone. Needs at least three zones. */
function fieldsPerZone(compared: readonly SiblingDifference[]): readonly string[] {
  if (compared.length < 2) return [];
  const values = new Map<string, Set<string>>();
  for (const { changes } of compared) {
    for (const { path, after } of changes) values.set(path, (values.get(path) ?? new Set()).add(canonicalJson(after)));
  }
  return [...values].filter(([, seen]) => seen.size === compared.length).map(([path]) => path);
}

/** Reports expected differences: the place in the chain of leaders, omitted replicas, and scheduling to the zone. */
function isExpected(change: FieldChange): boolean {
  if (change.path === 'spec.replicas') return change.operation !== 'change';
  return /^metadata\.(?:labels|annotations)[.[](?:grafana\.com\/)?rollout-|^spec\.template\.spec\.(?:affinity|nodeSelector|topologySpreadConstraints)\b/.test(
    change.path,
  );
}

/** Replaces the names of the zone by placeholders, so that only other differences are left. */
function withoutZone(object: ObjectContent, zone: ZoneDefinition): ObjectContent {
  const name = new RegExp(`(?<![a-z0-9])zone-${escaped(zone.name)}(?![a-z0-9])`, 'g');
  const replaced = (text: string) =>
    text === zone.name ? 'ZONE' : text.replaceAll(zone.statefulSet, 'STATEFULSET').replace(name, 'zone-ZONE');
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return replaced(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part)]));
  };
  return Object.fromEntries(Object.entries(object).map(([key, part]) => [key, walk(part)]));
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
