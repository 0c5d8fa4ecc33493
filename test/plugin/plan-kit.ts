// Plans built by hand: realistic groups for the renderers, without the engine.
import { PassThrough } from 'node:stream';
import {
  defaultAssumptions,
  type GroupPlan,
  type Plan,
  type PlannedChange,
  type PlannedStep,
  type PlannedWave,
  type TimelineSpan,
} from '../../engine/plan/document.ts';
import type { TableLook } from '../../plugin/output/plan/table.ts';
import { outputStream } from '../../plugin/output/terminal.ts';

export function planOf(groups: readonly GroupPlan[], metadata: Partial<Plan['metadata']> = {}): Plan {
  const order = ['blocked', 'waits', 'complete', 'unchanged'] as const;
  return {
    apiVersion: 'rollout-group.dev/cli/v1',
    kind: 'Plan',
    metadata: { policyDigest: '3f9c2e1b8a40d6c7', ...metadata },
    outcome: order.find((outcome) => groups.some((group) => group.outcome === outcome)) ?? 'unchanged',
    assumptions: defaultAssumptions,
    groups,
  };
}

export function look(options: { columns?: number; colour?: boolean; ascii?: boolean; wide?: boolean } = {}): TableLook {
  const stream = outputStream(new PassThrough(), {
    env: { LANG: 'C.UTF-8' },
    color: options.colour === true ? 'always' : 'never',
    ascii: options.ascii === true,
    ...(options.columns === undefined ? {} : { width: options.columns }),
  });
  return { columns: stream.columns, paint: stream.paint, glyphs: stream.glyphs, isWide: options.wide === true };
}

export function step(kind: PlannedStep['kind'], startSeconds: number, rest: Partial<PlannedStep> = {}): PlannedStep {
  return { kind, pods: [], startSeconds, rules: [], ...rest };
}

function podNames(statefulSet: string, first: number, last: number): readonly string[] {
  const direction = first <= last ? 1 : -1;
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, index) => `${statefulSet}-${first + index * direction}`);
}

const imageChange: PlannedChange = {
  kind: 'template',
  zones: ['zone-a', 'zone-b', 'zone-c'],
  field: 'spec.template.spec.containers[ingester].image',
  before: 'grafana/mimir:2.16.0',
  after: 'grafana/mimir:2.17.1',
  consequence: 'restart',
};

const argsChange: PlannedChange = {
  kind: 'template',
  zones: ['zone-a', 'zone-b', 'zone-c'],
  field: 'spec.template.spec.containers[ingester].args',
  before: [],
  after: ['-ingester.ring.min-ready-duration=30s'],
  consequence: 'restart',
};

function rollSpans(zone: string, startSeconds: number, pods: readonly string[], atOnce: number): readonly TimelineSpan[] {
  return pods.map((label, index) => {
    const start = startSeconds + Math.floor(index / atOnce) * 90;
    return { zone, kind: 'roll', label, startSeconds: start, endSeconds: start + 90 };
  });
}

function zoneWave(zone: string, startSeconds: number, pods: readonly string[]): PlannedStep {
  const seconds = Math.ceil(pods.length / 5) * 90;
  return step('roll', startSeconds, {
    zone,
    pods,
    atOnce: 5,
    p50Seconds: seconds,
    p90Seconds: seconds * 2,
    source: { file: 'policy/ingester.yaml', line: 22, column: 21 },
    rules: [{ rule: 'max-unavailable', outcome: 'ok', fact: `0 of 20 pods of ${zone} are unavailable`, limit: 'at most 5' }],
  });
}

/** Three zones of 20 pods: a canary with soak and gate, an approval, then the rest. */
export function ingester(rest: Partial<GroupPlan> = {}): GroupPlan {
  const canary = podNames('ingester-zone-a', 19, 19);
  const [a, b, c] = [podNames('ingester-zone-a', 18, 0), podNames('ingester-zone-b', 19, 0), podNames('ingester-zone-c', 19, 0)] as const;
  const waves: readonly PlannedWave[] = [
    {
      name: 'canary',
      steps: [
        zoneWave('zone-a', 0, canary),
        step('soak', 90, { p50Seconds: 1800, p90Seconds: 1800 }),
        step('check', 90, { waitsFor: 'ingest-errors', p50Seconds: 420, p90Seconds: 420 }),
      ],
    },
    { name: 'zone-a', steps: [zoneWave('zone-a', 1890, a), step('soak', 2250, { p50Seconds: 3600, p90Seconds: 3600 })] },
    {
      name: 'rest',
      steps: [
        step('approval', 5850, { waitsFor: '1 of oncall', source: { file: 'policy/ingester.yaml', line: 31, column: 15 } }),
        zoneWave('zone-b', 5850, b),
        zoneWave('zone-c', 6210, c),
      ],
    },
  ];
  return {
    namespace: 'mimir',
    group: 'ingester',
    outcome: 'complete',
    changes: [imageChange, argsChange],
    waves,
    refused: [],
    risks: [
      {
        code: 'RG2407',
        severity: 'warning',
        message: 'PodDisruptionBudget mimir/ingester covers all three zones with maxUnavailable 1, so evictions go one by one',
        source: { file: 'manifests/pdb.yaml', line: 1, column: 1 },
      },
    ],
    waits: [],
    zones: ['zone-a', 'zone-b', 'zone-c'].map((zone) => ({
      zone,
      statefulSet: `ingester-${zone}`,
      replicasBefore: 20,
      replicasAfter: 20,
      restarts: 20,
    })),
    totals: { restarts: 60, scaleChanges: 0, waves: 3, gates: 1, approvals: 1, p50Seconds: 6570, p90Seconds: 7740 },
    timeline: [
      ...rollSpans('zone-a', 0, canary, 5),
      { zone: 'zone-a', kind: 'soak', label: 'soak after canary', startSeconds: 90, endSeconds: 1890 },
      ...rollSpans('zone-a', 1890, a, 5),
      { zone: 'zone-a', kind: 'soak', label: 'soak after zone-a', startSeconds: 2250, endSeconds: 5850 },
      ...rollSpans('zone-b', 5850, b, 5),
      ...rollSpans('zone-c', 6210, c, 5),
    ],
    ...rest,
  };
}

export function unchanged(group = 'store-gateway'): GroupPlan {
  return {
    namespace: 'mimir',
    group,
    outcome: 'unchanged',
    changes: [],
    waves: [],
    refused: [],
    risks: [],
    waits: [],
    zones: ['zone-a', 'zone-b'].map((zone) => ({
      zone,
      statefulSet: `${group}-${zone}`,
      replicasBefore: 3,
      replicasAfter: 3,
      restarts: 0,
    })),
    totals: { restarts: 0, scaleChanges: 0, waves: 0, gates: 0, approvals: 0, p50Seconds: 0, p90Seconds: 0 },
    timeline: [],
  };
}

/** A group that may not shrink is asked to; nothing of it moves. */
export function refusedDownscale(): GroupPlan {
  return {
    ...unchanged(),
    outcome: 'blocked',
    changes: [{ kind: 'replicas', zones: ['zone-b'], field: 'spec.replicas', before: 3, after: 2, consequence: 'refused' }],
    refused: [
      {
        what: 'scale down zone-b from 3 to 2',
        zone: 'zone-b',
        message: 'store-gateway-zone-b may not shrink: its blocks have no other owner until they are resharded',
        results: [
          { rule: 'shape', outcome: 'ok', fact: 'all pods are ready' },
          {
            rule: 'no-downscale',
            outcome: 'no',
            fact: 'zone-b is protected from replica decreases',
            limit: 'protect.noDownscale is true',
            source: { file: 'policy/store-gateway.yaml', line: 41, column: 7 },
          },
        ],
      },
    ],
  };
}

/** A window is closed and a gate fails: the rollout stops after the canary. */
export function blocked(): GroupPlan {
  const whole = ingester();
  return {
    ...whole,
    outcome: 'waits',
    waves: whole.waves.slice(0, 1),
    waits: [
      {
        rule: 'stateful-safety/business-hours',
        outcome: 'wait',
        fact: 'the window business-hours is closed',
        limit: '09:00 to 17:00, Monday to Thursday, Europe/Amsterdam',
        source: { file: 'policy/stateful-safety.yaml', line: 18, column: 7 },
        earliestMs: Date.parse('2026-11-19T08:00:00Z'),
      },
    ],
    totals: { restarts: 1, scaleChanges: 0, waves: 1, gates: 1, approvals: 0 },
    timeline: whole.timeline.slice(0, 2),
  };
}

/** A mirrored downscale with preparation: each zone 13 hours after the one before. */
export function mirrorDownscale(): GroupPlan {
  const hours = (count: number) => count * 3600;
  const zones = ['a', 'b', 'c'];
  const steps = zones.flatMap((zone, index) => {
    const start = hours(13) * index;
    const pods = podNames(`ingester-zone-${zone}`, 5, 5);
    return [
      step('prepare', start, { zone, pods, p50Seconds: 1, p90Seconds: 1 }),
      step('wait', start, { zone, waitsFor: 'delayed-downscale', p50Seconds: hours(13), p90Seconds: hours(13) }),
      step('scaleDown', start + hours(13), { zone, pods, from: 6, to: 5, p50Seconds: 30, p90Seconds: 120 }),
    ];
  });
  return {
    ...unchanged('ingester-ssd'),
    outcome: 'complete',
    changes: [{ kind: 'replicas', zones, field: 'spec.replicas', before: 6, after: 5, consequence: 'scaleDown' }],
    waves: [{ name: '', steps }],
    zones: zones.map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}`, replicasBefore: 6, replicasAfter: 5, restarts: 0 })),
    totals: { restarts: 0, scaleChanges: 3, waves: 1, gates: 0, approvals: 0, p50Seconds: hours(39) + 30, p90Seconds: hours(39) + 120 },
    timeline: zones.flatMap((zone, index): readonly TimelineSpan[] => [
      { zone, kind: 'prepare', label: 'prepare pod 5', startSeconds: hours(13) * index, endSeconds: hours(13) * index + 1 },
      { zone, kind: 'wait', label: 'delayed-downscale', startSeconds: hours(13) * index, endSeconds: hours(13) * (index + 1) },
      { zone, kind: 'scaleDown', label: '6 -> 5', startSeconds: hours(13) * (index + 1), endSeconds: hours(13) * (index + 1) + 30 },
    ]),
  };
}
