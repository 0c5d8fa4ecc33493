// Sources of the settings of a group, by path of the definition that the engine reads.
import type { Source } from '../definition.ts';
import { sourceOf } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { Path } from '../yaml/document.ts';

/**
 * Returns the source of a setting by a path such as `rollout.maxUnavailable`, `zones.b.scaling.down.betweenZones`,
 * `waves.canary.after.soak` or `gates.errors`; undefined for a default.
 */
export type SourceLookup = (path: string) => Source | undefined;

/** The lookup for a group that a file defines. */
export function documentSources(document: Loaded<'RolloutGroup'>): SourceLookup {
  const { members, rollout, gates } = document.value.spec;
  const listed: Readonly<Record<string, readonly [path: Path, names: readonly string[]]>> = {
    zones: [['spec', 'members', 'zones'], (members.zones ?? []).map((zone) => zone.name)],
    waves: [['spec', 'rollout', 'waves'], (rollout.waves ?? []).map((wave) => wave.name)],
    gates: [['spec', 'gates'], (gates ?? []).map((gate) => gate.name)],
  };
  return (path) => {
    const [head = '', name = '', ...rest] = path.split('.');
    const [list, names] = listed[head] ?? [];
    const index = names?.indexOf(name) ?? -1;
    const place = list
      ? index < 0
        ? undefined
        : document.find([...list, index, ...rest])
      : document.find(path === '' ? [] : ['spec', ...path.split('.')]);
    return place && sourceOf(place);
  };
}

/** Settings of a zone: where each may be written, the zone's own place first. */
const zoneSettings: Readonly<Record<string, readonly string[]>> = {
  maxUnavailable: ['zone.maxUnavailable', 'rollout.maxUnavailable'],
  paused: ['zone.paused'],
  forceReplicas: ['zone.forceReplicas'],
  follows: ['zone.follows'],
  replicas: ['zone.replicas', 'zone.replicas.mirror', 'replicas', 'replicas.mirror'],
  betweenZones: ['zone.scaling.down.betweenZones', 'scaling.down.betweenZones'],
  delayed: ['zone.scaling.down.delayed', 'scaling.down.delayed'],
  prepare: ['zone.scaling.down.prepare', 'scaling.down.prepare'],
  protect: ['zone.protect', 'zone.protect.noDownscale', 'protect', 'protect.noDownscale'],
  scaling: [
    'zone.scaling.hold',
    'zone.scaling.down.hold',
    'zone.scaling',
    'zone.scaling.up.followersWaitFor',
    'scaling.hold',
    'scaling.down.hold',
    'scaling',
    'scaling.up.followersWaitFor',
  ],
};

const groupSettings: readonly string[] = [
  '',
  'rollout.maxUnavailable',
  'rollout.strategy',
  'rollout.replaceUnready',
  'rollout.minInterval',
  'rollout.deadlines',
  'rollout.onFailure',
  'disruption',
];

const waveSettings: readonly string[] = ['', '.before.approval', '.after.soak', '.after.approval'];

/** The sources of a definition (`GroupDefinition.sources`). Settings that are not written are left out. */
export function definitionSources(
  lookup: SourceLookup,
  names: { readonly zones: readonly string[]; readonly waves: readonly string[]; readonly gates: readonly string[] },
): Readonly<Record<string, Source>> {
  const sources: Record<string, Source> = {};
  const add = (path: string, candidates: readonly string[] = [path]) => {
    const found = candidates.map(lookup).find((source) => source !== undefined);
    if (found) sources[path] = found;
  };
  for (const path of groupSettings) add(path);
  for (const zone of names.zones) {
    add(`zones.${zone}`, [`zones.${zone}`, 'members.selector']);
    for (const [setting, places] of Object.entries(zoneSettings)) {
      const candidates = places.map((place) => place.replace(/^zone\./, `zones.${zone}.`));
      add(`zones.${zone}.${setting}`, candidates);
    }
  }
  for (const wave of names.waves) for (const setting of waveSettings) add(`waves.${wave}${setting}`);
  for (const gate of names.gates) add(`gates.${gate}`);
  return sources;
}
