// Every setting of a group and a policy states which of its values permits more, and the review names each such change with this direction.
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { readPolicyFiles } from '../../plugin/policy-files.ts';
import { type DirectedKind, looserValues } from '../../policies/schema/directions.ts';
import { rolloutGroupSpec } from '../../policies/schema/rollout-group.ts';
import { rolloutPolicySpec } from '../../policies/schema/rollout-policy.ts';
import { unwrapped } from '../../policies/schema/schema-walk.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { reviewPolicies } from '../../review/review.ts';
import type { Side } from '../../review/sides.ts';

interface Leaf {
  readonly path: string;
  readonly schema: z.ZodType;
}

/** Returns the fields without fields of their own. A list of objects has the fields of its objects. */
function leavesOf(schema: unknown, path = ''): readonly Leaf[] {
  const inner = unwrapped(schema);
  const element = inner instanceof z.ZodArray ? unwrapped(inner.element) : inner;
  if (element instanceof z.ZodObject) {
    return Object.entries(element.shape).flatMap(([key, part]) => leavesOf(part, path === '' ? key : `${path}.${key}`));
  }
  return inner === undefined ? [] : [{ path, schema: inner }];
}

/** Returns the path of the setting of the group that a setting of a zone replaces. */
function groupPath(path: string): string {
  return path
    .replace(/^members\.zones\.(?=(?:replicas|scaling|protect)\.)/, '')
    .replace(/^members\.zones\.maxUnavailable$/, 'rollout.maxUnavailable');
}

const kinds: readonly (readonly [DirectedKind, z.ZodType])[] = [
  ['RolloutGroup', rolloutGroupSpec],
  ['RolloutPolicy', rolloutPolicySpec],
];
const leaves = kinds.flatMap(([kind, spec]) =>
  leavesOf(spec).map(({ path, schema }) => ({ kind, path, schema, looser: looserValues(kind, groupPath(path)) })),
);

const endpoint = { port: 8080, path: '/prepare' };
const approval = { count: 3, from: ['one', 'two'], expires: '1h' };

/** A group with every directed setting. */
const group = {
  members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `x-${name}`, ...(name === 'b' ? { follows: 'a' } : {}) })) },
  replicas: { count: 6, bounds: { min: 4, max: 9 } },
  scaling: {
    duringRollout: 'wait',
    up: { followersWaitFor: 'leaderReady' },
    down: {
      betweenZones: '1h',
      delayed: { after: '1h', endpoint, onUnreachable: 'hold' },
      prepare: { endpoint, onFailure: 'hold' },
    },
  },
  rollout: {
    strategy: 'onDelete',
    rotateBy: 'evict',
    maxUnavailable: 2,
    minInterval: '1m',
    waves: [
      { name: 'one', zones: ['a'], pods: 1, before: { approval, gates: ['g'] }, after: { soak: '1h', approval, gates: ['g'] } },
      { name: 'rest', zones: ['a', 'b'], percent: 100, before: { approval, gates: ['g'] }, after: { soak: '1h', approval, gates: ['g'] } },
    ],
    deadlines: { progress: '1h', run: '10h' },
  },
  gates: [{ name: 'g', podsAvailable: { minReadySeconds: 30 }, every: '1m', initialDelay: '1h', consecutive: 3, failureLimit: 3 }],
  disruption: { maxUnavailable: 2, partition: { pattern: 'x-[a-z]-([0-9]+)' }, crossZoneDelay: '1h' },
  protect: { noDownscale: false, noDelete: false, noEviction: false },
};

/** A policy with every directed setting. */
const policy = {
  targets: { all: true },
  rules: [{ name: 'r', actions: ['rollout', 'scaleDown'], effect: 'requireApproval', approval: { count: 3, from: ['one', 'two'] } }],
  windows: [
    {
      name: 'w',
      kind: 'deny',
      actions: ['rollout', 'scaleDown'],
      schedule: { cron: '0 9 * * 1-4', duration: '8h', timeZone: 'UTC' },
      inFlight: 'finishZone',
    },
  ],
  limits: { maxUnavailable: 2, minReplicas: 3, maxReplicas: 9, betweenZones: '1h', minInterval: '1m' },
};

/** Parts of a group in which a setting has an effect, in the place of those of `group`. */
const companions: Readonly<Record<string, object>> = {
  'gates.consul.passing': { gates: [{ name: 'g', consul: { source: 's', service: 'x', passing: 2 } }] },
  'disruption.maxUnavailablePercent': { disruption: { maxUnavailablePercent: 20 } },
};

type Pair = readonly [strict: unknown, loose: unknown];

/** Returns a stricter and a looser value of a setting. */
function valuesOf({ looser, schema }: (typeof leaves)[number]): Pair {
  if (typeof looser === 'object') return [looser[0], looser.at(-1)];
  if (looser === 'absent') return ['a reason', undefined];
  if (looser === 'fewer' || looser === 'more') {
    const item = (schema as z.ZodArray).element;
    const names = ['g', 'one', 'two', 'scaleDown', 'rollout'].filter((name) => (item as z.ZodType).safeParse(name).success);
    const isGate = looser === 'fewer' && names.includes('g');
    return looser === 'more' ? [['one'], ['one', 'two']] : isGate ? [['g'], []] : [names.slice(0, 2), names.slice(0, 1)];
  }
  const [low, high] =
    [
      [2, 5],
      ['30s', '45s'],
    ].find(([one]) => schema.safeParse(one).success) ?? [];
  return looser === 'greater' ? [low, high] : [high, low];
}

/** Returns the value with the field at the path set, in the last item of each list. */
function withField(value: unknown, [key = '', ...rest]: readonly string[], set: unknown): unknown {
  if (Array.isArray(value)) return [...value.slice(0, -1), withField(value.at(-1), [key, ...rest], set)];
  const own = isRecord(value) ? value : {};
  const { [key]: old, ...others } = own;
  const next = rest.length === 0 ? set : withField(old, rest, set);
  return next === undefined ? others : { ...others, [key]: next };
}

function sideOf(groupSpec: unknown, policySpec: unknown): Side {
  const document = (kind: string, name: string, spec: unknown) =>
    JSON.stringify({ apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name, namespace: 'n' }, spec });
  const files = [
    { name: 'group.json', text: document('RolloutGroup', 'x', groupSpec) },
    { name: 'policy.json', text: document('RolloutPolicy', 'p', policySpec) },
  ];
  const { findings, resolution } = readPolicyFiles(files, { agentNamespace: 'rollout-group' });
  const unread = findings.filter(({ severity, code }) => severity === 'error' && code.startsWith('RG1'));
  expect(unread.map(({ message }) => message)).toEqual([]);
  expect([resolution.bundle.groups.length, resolution.bundle.policies.length]).toEqual([1, 1]);
  return { bundle: resolution.bundle, manifests: [], agentNamespace: 'rollout-group' };
}

const nowMs = Date.parse('2026-11-26T10:00:00Z');

describe('each setting of a group and a policy', () => {
  it('states which of its values permits more, or that none does in every case', () => {
    expect(leaves.filter(({ looser }) => looser === undefined).map(({ kind, path }) => `${kind} ${path}`)).toEqual([]);
    const neutral = leaves.filter(({ looser }) => looser === 'neutral').map(({ kind, path }) => `${kind} ${path}`);
    expect(neutral).toMatchInlineSnapshot(`
      [
        "RolloutGroup members.zones.name",
        "RolloutGroup members.zones.statefulSet",
        "RolloutGroup members.zones.follows",
        "RolloutGroup members.zones.replicas.count",
        "RolloutGroup members.zones.replicas.mirror.from.apiVersion",
        "RolloutGroup members.zones.replicas.mirror.from.kind",
        "RolloutGroup members.zones.replicas.mirror.from.name",
        "RolloutGroup members.zones.replicas.mirror.from.read",
        "RolloutGroup members.zones.replicas.mirror.from.fieldPath",
        "RolloutGroup members.zones.replicas.mirror.writeBack",
        "RolloutGroup members.zones.replicas.mirror.onMissing",
        "RolloutGroup members.zones.replicas.leader",
        "RolloutGroup members.zones.replicas.bounds.multipleOf",
        "RolloutGroup members.zones.replicas.bounds.parity",
        "RolloutGroup members.zones.scaling.down.delayed.endpoint.scheme",
        "RolloutGroup members.zones.scaling.down.delayed.endpoint.port",
        "RolloutGroup members.zones.scaling.down.delayed.endpoint.path",
        "RolloutGroup members.zones.scaling.down.delayed.endpoint.timeout",
        "RolloutGroup members.zones.scaling.down.prepare.endpoint.scheme",
        "RolloutGroup members.zones.scaling.down.prepare.endpoint.port",
        "RolloutGroup members.zones.scaling.down.prepare.endpoint.path",
        "RolloutGroup members.zones.scaling.down.prepare.endpoint.timeout",
        "RolloutGroup members.zones.forceReplicas",
        "RolloutGroup members.selector.matchLabels",
        "RolloutGroup members.selector.matchExpressions.key",
        "RolloutGroup members.selector.matchExpressions.operator",
        "RolloutGroup members.selector.matchExpressions.values",
        "RolloutGroup members.expect.count",
        "RolloutGroup members.expect.names",
        "RolloutGroup profile",
        "RolloutGroup groupLabel",
        "RolloutGroup replicas.count",
        "RolloutGroup replicas.mirror.from.apiVersion",
        "RolloutGroup replicas.mirror.from.kind",
        "RolloutGroup replicas.mirror.from.name",
        "RolloutGroup replicas.mirror.from.read",
        "RolloutGroup replicas.mirror.from.fieldPath",
        "RolloutGroup replicas.mirror.writeBack",
        "RolloutGroup replicas.mirror.onMissing",
        "RolloutGroup replicas.leader",
        "RolloutGroup replicas.bounds.multipleOf",
        "RolloutGroup replicas.bounds.parity",
        "RolloutGroup scaling.down.delayed.endpoint.scheme",
        "RolloutGroup scaling.down.delayed.endpoint.port",
        "RolloutGroup scaling.down.delayed.endpoint.path",
        "RolloutGroup scaling.down.delayed.endpoint.timeout",
        "RolloutGroup scaling.down.prepare.endpoint.scheme",
        "RolloutGroup scaling.down.prepare.endpoint.port",
        "RolloutGroup scaling.down.prepare.endpoint.path",
        "RolloutGroup scaling.down.prepare.endpoint.timeout",
        "RolloutGroup rollout.strategy",
        "RolloutGroup rollout.order",
        "RolloutGroup rollout.waves.name",
        "RolloutGroup rollout.waves.zones",
        "RolloutGroup rollout.waves.pods",
        "RolloutGroup rollout.waves.percent",
        "RolloutGroup rollout.schedule.kind",
        "RolloutGroup rollout.schedule.start",
        "RolloutGroup rollout.schedule.step",
        "RolloutGroup rollout.schedule.factor",
        "RolloutGroup rollout.schedule.soak",
        "RolloutGroup rollout.onFailure",
        "RolloutGroup rollout.historyLimit",
        "RolloutGroup gates.name",
        "RolloutGroup gates.prometheus.source",
        "RolloutGroup gates.prometheus.query",
        "RolloutGroup gates.consul.source",
        "RolloutGroup gates.consul.service",
        "RolloutGroup gates.consul.datacenter",
        "RolloutGroup gates.http.scheme",
        "RolloutGroup gates.http.port",
        "RolloutGroup gates.http.path",
        "RolloutGroup gates.http.timeout",
        "RolloutGroup gates.pass",
        "RolloutGroup disruption.partition.pattern",
        "RolloutGroup disruption.partition.group",
        "RolloutGroup notify.channel",
        "RolloutGroup notify.events",
        "RolloutPolicy targets.groups",
        "RolloutPolicy targets.selector.matchLabels",
        "RolloutPolicy targets.selector.matchExpressions.key",
        "RolloutPolicy targets.selector.matchExpressions.operator",
        "RolloutPolicy targets.selector.matchExpressions.values",
        "RolloutPolicy targets.all",
        "RolloutPolicy targets.namespaces",
        "RolloutPolicy inputs.metrics",
        "RolloutPolicy rules.name",
        "RolloutPolicy rules.when",
        "RolloutPolicy rules.message",
        "RolloutPolicy windows.name",
        "RolloutPolicy windows.kind",
        "RolloutPolicy windows.schedule.cron",
        "RolloutPolicy windows.schedule.duration",
        "RolloutPolicy windows.schedule.timeZone",
        "RolloutPolicy windows.ranges.from",
        "RolloutPolicy windows.ranges.to",
        "RolloutPolicy windows.ranges.reason",
      ]
    `);
  });

  const directed = leaves.filter(({ looser, path }) => looser !== 'neutral' && looser !== undefined && groupPath(path) === path);
  it.each(directed.map((leaf) => [`${leaf.kind} ${leaf.path}`, leaf] as const))('%s is reviewed with its direction', (_, leaf) => {
    const [strict, loose] = valuesOf(leaf).map((value) => {
      const keys = leaf.path.split('.');
      if (leaf.kind === 'RolloutPolicy') return sideOf(group, withField(policy, keys, value));
      return sideOf(withField({ ...group, ...companions[leaf.path] }, keys, value), policy);
    });
    if (strict === undefined || loose === undefined) throw new Error(`${leaf.path} has no values`);
    const directions = (before: Side, after: Side) => {
      const { effects } = reviewPolicies({ before, after }, nowMs);
      return [...new Set(effects.map(({ direction }) => direction))].sort();
    };
    expect([directions(strict, loose), directions(loose, strict)]).toEqual([['loosened'], ['tightened']]);
  });
});
