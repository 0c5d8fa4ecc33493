// Draws random groups and policies as people might write them. Random states are in random-groups.ts.

import type { GateDefinition, GroupDefinition, PolicyDefinition, WaveDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { adopted, gate, group, wave, zone } from './groups.ts';
import { kitNowMs } from './objects.ts';
import type { Random } from './random.ts';

export type Chance = (share: number) => boolean;

const hourMs = 3_600_000;
const zoneNames = ['a', 'b', 'c', 'd', 'e'];

/** Draws a group of one to five zones, native or adopted, with any combination of settings. */
export function randomGroup(random: Random, chance: Chance): GroupDefinition {
  const names = zoneNames.slice(0, 1 + random.below(5));
  const zones = names.map((name, index) => randomZone(random, chance, name, names[index - 1]));
  const gates: readonly GateDefinition[] = [
    gate({
      consecutive: 1 + random.below(3),
      failureLimit: random.below(3),
      initialDelayMs: random.below(2) * 60_000,
      noData: random.pick(['fail', 'hold', 'pass'] as const) ?? 'fail',
      onError: chance(0.3) ? 'fail' : 'hold',
      mode: chance(0.1) ? 'observe' : 'enforce',
    }),
  ];
  const build = chance(0.35) ? adopted : group;
  const disruption = chance(0.25)
    ? {
        maxUnavailable: 1 + random.below(2),
        crossZoneDelayMs: chance(0.3) ? 120_000 : 0,
        ...(chance(0.6) ? { partition: { pattern: 'ingester-zone-[a-z]-([0-9]+)', group: 1 } } : {}),
      }
    : undefined;
  return build({
    zones,
    gates,
    rollout: {
      strategy: 'onDelete',
      waves: build === group && chance(0.6) ? randomWaves(random, chance, names) : [wave('all', names)],
      minIntervalMs: chance(0.15) ? 300_000 : 0,
      deadlines: { ...(chance(0.3) ? { progressMs: 1_200_000 } : {}), ...(chance(0.2) ? { runMs: 4 * hourMs } : {}) },
      ...(build === group
        ? {
            rotateBy: chance(0.5) ? 'evict' : 'delete',
            order: chance(0.5) ? 'ascending' : 'descending',
            replaceUnready: { when: random.pick(['any', 'crashing', 'none'] as const) ?? 'any', afterMs: 300_000 },
          }
        : {}),
    },
    ...(disruption === undefined ? {} : { disruption }),
  });
}

function randomZone(random: Random, chance: Chance, name: string, before: string | undefined): ZoneDefinition {
  const follows = before !== undefined && chance(0.4) ? { follows: before } : {};
  const mirror = {
    kind: 'mirror',
    apiVersion: 'rollout-operator.grafana.com/v1',
    resourceKind: 'ReplicaTemplate',
    name: 'ingester',
    read: 'scale',
    writeBack: chance(0.5) ? 'status' : 'none',
    onMissing: chance(0.5) ? 'hold' : 'fail',
  } as const;
  const replicas = random.pick([{ kind: 'leader' } as const, { kind: 'count', count: random.below(12) } as const, mirror]) ?? mirror;
  const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
  return zone({
    name,
    ...follows,
    replicas,
    bounds: {
      multipleOf: chance(0.1) ? 3 : 1,
      parity: chance(0.1) ? 'odd' : 'any',
      ...(chance(0.3) ? { min: random.below(4) } : {}),
      ...(chance(0.2) ? { max: 5 + random.below(20) } : {}),
    },
    maxUnavailable: chance(0.05) ? 'fromBudget' : chance(0.4) ? `${1 + random.below(100)}%` : 1 + random.below(6),
    paused: chance(0.03),
    duringRollout: chance(0.5) ? 'wait' : 'allow',
    followersWaitFor: chance(0.5) ? 'leaderReady' : 'nothing',
    noDownscale: chance(0.05),
    noDelete: chance(0.1),
    noEviction: chance(0.1),
    ...(chance(0.03) ? { scalingHold: 'its settings cannot be read' } : {}),
    ...(chance(0.04) ? { forceReplicas: random.below(10) } : {}),
    ...(chance(0.5) ? { betweenZonesMs: 12 * hourMs } : {}),
    ...(chance(0.35) ? { delayed: { afterMs: 2 * hourMs, endpoint, onUnreachable: chance(0.3) ? 'fail' : 'hold' } } : {}),
    ...(chance(0.35) ? { prepare: { endpoint, onFailure: chance(0.5) ? 'deny' : 'hold' } } : {}),
  });
}

function randomWaves(random: Random, chance: Chance, names: readonly string[]): readonly WaveDefinition[] {
  const approval = { count: 1 + random.below(2), from: chance(0.5) ? ['oncall'] : [] };
  const gates = chance(0.5) ? ['errors'] : [];
  const first = names.slice(0, 1);
  return [
    wave('canary', first, {
      amount: { pods: 1 },
      before: { gates: chance(0.3) ? gates : [], ...(chance(0.3) ? { approval } : {}) },
      after: { soakMs: chance(0.6) ? 1_800_000 : 0, gates, ...(chance(0.2) ? { approval } : {}) },
    }),
    wave('half', names, { amount: { percent: 1 + random.below(99) }, after: { soakMs: 0, gates: [] } }),
    wave('rest', names, { before: { gates: [], ...(chance(0.4) ? { approval } : {}) } }),
  ];
}

/** Draws a policy with a rule on a metric, sometimes with a freeze and limits. */
export function randomPolicies(random: Random, chance: Chance): readonly PolicyDefinition[] {
  const source = { file: 'policy.yaml', line: 1, column: 1 };
  const effect = random.pick(['deny', 'hold', 'requireApproval', 'warn'] as const) ?? 'deny';
  const onUnknown = random.pick(['deny', 'hold', 'allow', 'warn'] as const) ?? 'deny';
  const approval = { count: 1, from: [] };
  const condition = { '>': [{ var: 'inputs.metrics.queue' }, 100] };
  const windows = chance(0.4)
    ? [
        {
          name: 'freeze',
          kind: 'deny',
          actions: ['rollout', 'scaleDown', 'scaleUp'],
          ranges: [{ fromMs: kitNowMs - hourMs * (chance(0.5) ? 1 : -1), toMs: kitNowMs + 5 * hourMs }],
          inFlight: random.pick(['finishPod', 'finishZone', 'finishAll'] as const) ?? 'finishPod',
          source,
        } as const,
      ]
    : [];
  return [
    {
      namespace: 'mimir',
      name: 'safety',
      targets: { all: true },
      metrics: { queue: { source: 'prod', query: 'queue', noData: 'unknown', maxAgeMs: 120_000 } },
      rules: [
        {
          name: 'queue',
          actions: ['rollout', 'scaleDown', 'scaleUp', 'evict', 'delete', 'restart'],
          effect,
          when: condition,
          onUnknown,
          approval,
          source,
        },
      ],
      windows,
      limits: {
        ...(chance(0.3) ? { maxUnavailable: 2 } : {}),
        ...(chance(0.2) ? { minReplicas: 2 } : {}),
        ...(chance(0.2) ? { betweenZonesMs: 13 * hourMs } : {}),
        ...(chance(0.1) ? { minIntervalMs: 60_000 } : {}),
      },
      limitSources: {},
    },
  ];
}
