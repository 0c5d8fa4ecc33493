import { describe, expect, it } from 'vitest';
import { decide } from '../../engine/decide/decide.ts';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { judge } from '../../engine/judge/judge.ts';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { emptySnapshot, type IntentView, isUnknown, type Known, type Snapshot } from '../../engine/snapshot.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import type { ExceptionDefinition } from '../../policies/definition.ts';
import { loadPolicies } from '../../policies/load.ts';
import { resolvePolicies, statefulSetsOf } from '../../policies/resolve/resolve.ts';
import { gate, group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, statefulSet } from '../kit/objects.ts';
import { randomFrom } from '../kit/random.ts';
import { randomCase } from '../kit/random-groups.ts';
import { rounds } from '../kit/share.ts';
import { snapshotOf } from '../kit/snapshots.ts';

const permutations = rounds(200, 50);

type Shuffle = <Item>(items: readonly Item[]) => readonly Item[];

/** The same items in an order that the seed determines (Fisher and Yates). */
function shuffler(seed: number): Shuffle {
  const random = randomFrom(seed);
  return (items) => {
    const shuffled = [...items];
    for (let index = shuffled.length - 1; index > 0; index -= 1) {
      const other = random.below(index + 1);
      const [one, two] = [shuffled[index], shuffled[other]];
      if (one !== undefined && two !== undefined) [shuffled[index], shuffled[other]] = [two, one];
    }
    return shuffled;
  };
}

function known<Item>(list: Known<readonly Item[]>): readonly Item[] {
  return isUnknown(list) ? [] : list;
}

/**
 * Every list of a snapshot in another order. Zones, waves, gates, and the rules and windows of one policy stay as they are: their order is what
 * somebody wrote.
 */
function shuffled(snapshot: Snapshot, shuffle: Shuffle): Snapshot {
  const shuffleKnown = <Item>(list: Known<readonly Item[]>): Known<readonly Item[]> => (isUnknown(list) ? list : shuffle(list));
  return {
    ...snapshot,
    groups: shuffle(snapshot.groups),
    policies: shuffle(snapshot.policies),
    exceptions: shuffle(snapshot.exceptions),
    intents: shuffleKnown(snapshot.intents),
    statefulSets: shuffle(snapshot.statefulSets),
    pods: shuffle(snapshot.pods).map((view) => ({ ...view, pods: shuffleKnown(view.pods) })),
    zoneBudgets: shuffleKnown(snapshot.zoneBudgets),
    podBudgets: shuffleKnown(snapshot.podBudgets),
    replicaSources: shuffle(snapshot.replicaSources),
    gateReadings: shuffle(snapshot.gateReadings).map((view) => ({ ...view, readings: shuffle(view.readings) })),
    metrics: shuffle(snapshot.metrics),
    ledgers: shuffle(snapshot.ledgers).map((ledger) => ({
      ...ledger,
      claims: shuffle(ledger.claims),
      downscales: shuffle(ledger.downscales),
      preparations: shuffle(ledger.preparations),
    })),
  };
}

/** Random groups in one snapshot, each in its own namespace, with exceptions for the first ones. */
function richSnapshot(seeds: readonly number[]): Snapshot {
  const random = seeds.map((seed, index): Snapshot => {
    const text = JSON.stringify(randomCase(seed).snapshot);
    return JSON.parse(text.replaceAll('"namespace":"mimir"', `"namespace":"team-${index}"`));
  });
  const parts = [...random, gatedSnapshot(), shrunkSnapshot()];
  const all = <Item>(list: (part: Snapshot) => readonly Item[]): readonly Item[] => parts.flatMap(list);
  const merged: Snapshot = {
    ...emptySnapshot(kitNowMs),
    groups: all((part) => part.groups),
    policies: all((part) => part.policies),
    intents: [...all((part) => known(part.intents)), pause('alice'), pause('bob')],
    statefulSets: all((part) => part.statefulSets),
    pods: all((part) => part.pods),
    zoneBudgets: all((part) => known(part.zoneBudgets)),
    podBudgets: all((part) => known(part.podBudgets)),
    replicaSources: all((part) => part.replicaSources),
    gateReadings: all((part) => part.gateReadings),
    metrics: all((part) => part.metrics),
    ledgers: all((part) => part.ledgers),
  };
  return { ...merged, exceptions: ['zone-gap', 'zone-budget', 'window', 'zone-budget'].map(exception) };
}

/** A group whose first wave waits for a gate, with readings that pass and fail. */
function gatedSnapshot(): Snapshot {
  const waves = [wave('canary', ['a'], { after: { soakMs: 0, gates: ['errors'] } }), wave('rest', ['b'])];
  const gated = group({ namespace: 'gated', zones: ['a', 'b'], gates: [gate({ consecutive: 3, failureLimit: 9 })], rollout: { waves } });
  const updated = { updateRevision: newRevision };
  const a = statefulSet({ namespace: 'gated', name: 'ingester-zone-a', status: { ...updated, currentRevision: newRevision } });
  const b = statefulSet({ namespace: 'gated', name: 'ingester-zone-b', status: updated });
  const readings = [0.9, 0.1, 0.2, 0.8, 0.3].map((value, index) => ({ atMs: kitNowMs - index * 60_000, result: 'value' as const, value }));
  const view = { namespace: 'gated', group: 'ingester', gate: 'errors', readings };
  const times = { startedMs: kitNowMs - 600_000, waveStartedMs: kitNowMs - 600_000, waveAvailableMs: kitNowMs - 300_000 };
  const run = { id: 'run', kind: 'rollout' as const, target: { a: newRevision, b: newRevision }, previous: {}, wave: 0, ...times };
  const moved = { movableMs: 0, movableAsOfMs: kitNowMs, isMovable: false, outcome: 'running' as const };
  const ledger = { namespace: 'gated', group: 'ingester', claims: [], downscales: [], preparations: [], run: { ...run, ...moved } };
  return snapshotOf({ groups: [gated], statefulSets: [a, b], gateReadings: [view], ledgers: [ledger] });
}

/** A follower that waits for the later of two decreases of its leader. */
function shrunkSnapshot(): Snapshot {
  const namespace = 'shrunk';
  const member = { betweenZonesMs: 3_600_000 };
  const definition = group({
    namespace,
    zones: [
      { name: 'a', ...member },
      { name: 'b', follows: 'a', ...member },
    ],
  });
  const a = statefulSet({ namespace, name: 'ingester-zone-a', replicas: 2 });
  const downscales = [50, 10, 30].map((minutes) => ({ zone: 'a', atMs: kitNowMs - minutes * 60_000, from: 3, to: 2 }));
  const ledger = { namespace, group: 'ingester', claims: [], downscales, preparations: [] };
  return snapshotOf({ groups: [definition], statefulSets: [a], ledgers: [ledger] });
}

/** Two people paused the same group: only one of them is named. */
function pause(user: string): IntentView {
  const requestedBy = { user, groups: [], atMs: kitNowMs };
  return { namespace: 'team-1', name: `pause-by-${user}`, group: 'ingester', action: 'pause', requestedBy };
}

function exception(rule: string, index: number): ExceptionDefinition {
  const expiresMs = kitNowMs + 3_600_000;
  return {
    namespace: `team-${index % 3}`,
    name: `exception-${index}`,
    rule,
    group: 'ingester',
    allow: { podsAtMost: 2 },
    reason: 'test',
    expiresMs,
    source: {},
  };
}

/** One request of each kind against a member of every group. */
function requests(snapshot: Snapshot): readonly AdmissionRequest[] {
  return snapshot.groups.flatMap(({ namespace, zones }): readonly AdmissionRequest[] => {
    const statefulSet = zones.at(-1)?.statefulSet ?? '';
    const pod = `${statefulSet}-0`;
    const from = snapshot.statefulSets.find((set) => set.namespace === namespace && set.name === statefulSet)?.replicas ?? 1;
    const base = { namespace, dryRun: false };
    return [
      { kind: 'scale', statefulSet, from, to: from - 1, via: 'scale', ...base },
      { kind: 'scale', statefulSet, from, to: from + 1, via: 'scale', ...base },
      { kind: 'evictPod', pod, ...base },
      { kind: 'deletePod', pod, ...base },
      { kind: 'deleteStatefulSet', statefulSet, ...base },
    ];
  });
}

function answers(snapshot: Snapshot, asked: readonly AdmissionRequest[]): string {
  return JSON.stringify([decide(snapshot), asked.map((request) => judge(snapshot, request))]);
}

const zones = ['a', 'b', 'c'];

function manifests(image: string, replicas: number): readonly unknown[] {
  const namespace = 'mimir';
  const sets = zones.map((zone) => {
    const name = `ingester-zone-${zone}`;
    const labels = { 'rollout-group': 'ingester', name };
    const containers = [{ name: 'ingester', image }];
    return {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { namespace, name, labels: { 'rollout-group': 'ingester' } },
      spec: {
        replicas,
        serviceName: name,
        updateStrategy: { type: 'OnDelete' },
        template: { metadata: { labels }, spec: { containers } },
      },
    };
  });
  const pods = zones.map((zone) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: `ingester-zone-${zone}-1`, labels: { name: `ingester-zone-${zone}` } },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }));
  const metadata = { namespace, name: 'ingester' };
  const budgets = [
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { maxUnavailable: 1, selector: {} } },
    {
      apiVersion: 'rollout-operator.grafana.com/v1',
      kind: 'ZoneAwarePodDisruptionBudget',
      metadata,
      spec: { maxUnavailable: 1, selector: { matchLabels: { 'rollout-group': 'ingester' } } },
    },
    { apiVersion: 'rollout-operator.grafana.com/v1', kind: 'ReplicaTemplate', metadata, spec: { replicas } },
  ];
  return [...sets, ...pods, ...budgets];
}

const files = [
  { name: 'limits.yaml', text: policyText('RolloutPolicy', 'limits', ['targets: { all: true }', 'limits: { minInterval: 1m }']) },
  { name: 'freeze.yaml', text: policyText('RolloutPolicy', 'freeze', ['targets: { all: true }', freezeWindow()]) },
  {
    name: 'exception.yaml',
    text: policyText('RolloutException', 'zone-gap', [
      'rule: zone-gap',
      'target: { group: ingester }',
      'allow: { anything: true }',
      'reason: test',
      'expires: "2026-04-01T00:00:00Z"',
    ]),
  },
];

function freezeWindow(): string {
  return 'windows: [{ name: night, kind: deny, actions: [rollout], schedule: { cron: "0 22 * * *", duration: 8h, timeZone: Etc/UTC } }]';
}

function policyText(kind: string, name: string, spec: readonly string[]): string {
  const head = ['apiVersion: rollout-group.dev/v1alpha1', `kind: ${kind}`, `metadata: { name: ${name}, namespace: mimir }`, 'spec:'];
  return [...head, ...spec.map((line) => `  ${line}`), ''].join('\n');
}

function planText(shuffle: Shuffle): string {
  const current = shuffle(manifests('mimir:2.15', 4));
  const desired = shuffle(manifests('mimir:2.16', 3));
  const { documents, manifests: objects } = loadPolicies(shuffle(files));
  const adoption = adoptGroups(current);
  const { bundle } = resolvePolicies(documents, { statefulSets: statefulSetsOf(objects), adoption });
  return JSON.stringify(
    planGroups({ ...bundle, policyDigest: 'digest', current, desired, assumptions: defaultAssumptions, nowMs: kitNowMs }),
  );
}

describe('the same input in another order', () => {
  it(`has the same decisions and judgements, over ${permutations} permutations of a snapshot of many groups`, () => {
    const snapshot = richSnapshot(Array.from({ length: 12 }, (_, index) => index + 1));
    const asked = requests(snapshot);
    const expected = answers(snapshot, asked);
    expect(
      decide(snapshot).groups.flatMap(({ actions }) => actions).length,
      'a snapshot in which nothing happens shows little',
    ).toBeGreaterThan(3);
    for (let seed = 1; seed <= permutations; seed += 1) {
      const other = shuffled(snapshot, shuffler(seed));
      expect(JSON.stringify(other), `seed ${seed} is another order`).not.toBe(JSON.stringify(snapshot));
      if (answers(other, asked) !== expected) expect.fail(`seed ${seed} gives another answer`);
    }
  });

  it(`has the same decisions and judgements, over ${2 * permutations} random groups`, () => {
    const different: number[] = [];
    for (let seed = 1; seed <= 2 * permutations; seed += 1) {
      const { snapshot } = randomCase(seed);
      const asked = requests(snapshot);
      if (answers(shuffled(snapshot, shuffler(seed)), asked) !== answers(snapshot, asked)) different.push(seed);
    }
    expect(different).toEqual([]);
  });

  it(`has the same plan, over ${permutations} orders of manifests and policy files`, () => {
    const expected = planText((items) => items);
    expect(JSON.parse(expected).groups[0].waves.length).toBeGreaterThan(0);
    for (let seed = 1; seed <= permutations; seed += 1) {
      if (planText(shuffler(seed)) !== expected) expect.fail(`seed ${seed} gives another plan`);
    }
  });
});
