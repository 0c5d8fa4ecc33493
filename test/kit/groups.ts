// Builds group definitions as the engine reads them, with the defaults of native groups and a preset for adopted ones.

import type { GateDefinition, GroupDefinition, RolloutDefinition, WaveDefinition, ZoneDefinition } from '../../policies/definition.ts';

export type GroupOverrides = Partial<Omit<GroupDefinition, 'zones' | 'rollout'>> & {
  /** Names of zones, or zones with the fields that differ from the default. */
  readonly zones?: readonly (string | ZoneOverrides)[];
  readonly rollout?: Partial<RolloutDefinition>;
};

export type ZoneOverrides = Partial<ZoneDefinition> & { readonly name: string };

/** Builds the group `ingester` in `mimir` with the zones a, b and c, scaled directly, which deletes one pod at a time. */
export function group(overrides: GroupOverrides = {}): GroupDefinition {
  const { zones, rollout, ...rest } = overrides;
  const name = rest.name ?? 'ingester';
  const members = (zones ?? ['a', 'b', 'c']).map((member) => zone(typeof member === 'string' ? { name: member } : member, name));
  return {
    namespace: 'mimir',
    name,
    labels: {},
    gates: [],
    profile: 'native',
    sources: {},
    ...rest,
    zones: members,
    rollout: { ...nativeRollout(members.map((member) => member.name)), ...rollout },
  };
}

/** Builds a group as adopted from the labels and annotations of grafana/rollout-operator. */
export function adopted(overrides: GroupOverrides = {}): GroupDefinition {
  return group({
    profile: 'rolloutOperator',
    ...overrides,
    rollout: { order: 'ascending', rotateBy: 'delete', replaceUnready: { when: 'crashing', afterMs: 0 }, ...overrides.rollout },
  });
}

/** Builds a zone whose StatefulSet is named after the group and the zone, such as `ingester-zone-a`. */
export function zone(overrides: ZoneOverrides, groupName = 'ingester'): ZoneDefinition {
  return {
    statefulSet: `${groupName}-zone-${overrides.name}`,
    replicas: { kind: 'leader' },
    bounds: { multipleOf: 1, parity: 'any' },
    maxUnavailable: 1,
    paused: false,
    duringRollout: 'wait',
    followersWaitFor: 'nothing',
    noDownscale: false,
    noDelete: false,
    noEviction: false,
    ...overrides,
  };
}

/** Builds a wave without approvals, gates or soak. */
export function wave(
  name: string,
  zones: readonly string[],
  overrides: Partial<Omit<WaveDefinition, 'name' | 'zones'>> = {},
): WaveDefinition {
  return { name, zones, amount: { percent: 100 }, before: { gates: [] }, after: { soakMs: 0, gates: [] }, ...overrides };
}

/** Builds a Prometheus gate that passes on its first reading of at most 0.5. */
export function gate(overrides: Partial<GateDefinition> = {}): GateDefinition {
  return {
    name: 'errors',
    mode: 'enforce',
    provider: { prometheus: { source: 'prod', query: 'errors' } },
    initialDelayMs: 0,
    everyMs: 60_000,
    consecutive: 1,
    failureLimit: 1,
    noData: 'fail',
    onError: 'hold',
    pass: { '<=': [{ var: 'value' }, 0.5] },
    ...overrides,
  };
}

function nativeRollout(zones: readonly string[]): RolloutDefinition {
  return {
    strategy: 'onDelete',
    order: 'descending',
    rotateBy: 'delete',
    minIntervalMs: 0,
    replaceUnready: { when: 'any', afterMs: 300_000 },
    waves: [wave('all', zones)],
    deadlines: {},
    onFailure: 'pause',
    skipOnRollback: true,
    historyLimit: 10,
  };
}
