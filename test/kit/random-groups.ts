// Draws random groups in random states from a seed: the input of the property tests.

import { wavesDigestOf } from '../../engine/rules/wave.ts';
import { digestOfRule, digestOfWaves } from '../../engine/run/requests.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import {
  type Claim,
  type IntentView,
  isUnknown,
  type Ledger,
  type PodView,
  type Preparation,
  type Snapshot,
  type StatefulSetView,
} from '../../engine/snapshot.ts';
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { kitNowMs, pod, statefulSet } from './objects.ts';
import { runOf } from './questions.ts';
import { type Random, randomFrom } from './random.ts';
import { type Chance, randomGroup, randomPolicies } from './random-definitions.ts';
import { snapshotOf } from './snapshots.ts';

export interface RandomCase {
  readonly seed: number;
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
}

const hourMs = 3_600_000;
const revisions = ['rev-1', 'rev-2', 'rev-3'];

/** Draws a group of one to five zones with up to thirty pods each, at rest or with problems. */
export function randomCase(seed: number): RandomCase {
  const random = randomFrom(seed);
  const chance = (share: number): boolean => random.next() < share;
  const definition = randomGroup(random, chance);
  // Most states have one or two problems: if everything is broken, the first blocking rule hides all others.
  const isCalm = chance(0.65);
  const troubled = random.below(definition.zones.length);
  const rough = chance(0.5) ? 0.01 : chance(0.5) ? 0.06 : 0.3;
  const troubleOf = (index: number): number => (!isCalm ? rough : index === troubled && chance(0.7) ? 0.25 : 0);
  const now = (share: number): boolean => chance(isCalm ? share / 10 : share);
  const sets = definition.zones.map((member) => randomSet(random, chance, member));
  const pods = sets.map((set, index) => ({
    namespace: 'mimir',
    statefulSet: set.name,
    pods: chance(0.01) ? { unknown: 'forbidden' } : randomPods(random, chance, set, troubleOf(index)),
  }));
  const known = pods.map((view) => ('unknown' in view.pods ? [] : view.pods));
  const snapshot = snapshotOf({
    groups: [definition],
    statefulSets: sets
      .filter(() => !chance(0.01))
      .map((set, index) => withStatus(random, chance, set, known[index] ?? [], troubleOf(index))),
    pods,
    policies: now(0.6) ? randomPolicies(random, chance) : [],
    exceptions: [],
    intents: now(0.03) ? { unknown: 'forbidden' } : [...randomIntents(random, chance, definition), ...randomWords(seed, definition)],
    zoneBudgets: now(0.03) ? { unknown: 'forbidden' } : chance(0.15) ? [zoneBudget(random, chance)] : [],
    podBudgets: now(0.03) ? { unknown: 'forbidden' } : randomPodBudgets(random, chance),
    replicaSources: chance(0.05) ? [] : [source(random, chance)],
    gateReadings: randomReadings(random, chance, definition),
    metrics: chance(0.8)
      ? [{ namespace: 'mimir', policy: 'safety', input: 'queue', value: random.below(200), atMs: kitNowMs - random.below(300_000) }]
      : [],
    ledgers: [randomLedger(random, chance, now, definition, sets, known)],
  });
  return { seed, group: definition, snapshot: { ...snapshot, ...randomAccess(seed), intents: withDigests(snapshot, definition) } };
}

/** Draws a right that the agent lacks, in one group of forty. */
function randomAccess(seed: number): Pick<Snapshot, 'missingAccess'> {
  const random = randomFrom(seed * 23 + 0x5bd1e995);
  if (random.next() > 0.025) return {};
  const action = random.pick(['evictPod', 'deletePod', 'patchStatefulSet'] as const);
  return { missingAccess: [{ namespaces: ['mimir'], fact: 'the agent lacks a right', ...(action === undefined ? {} : { action }) }] };
}

function randomSet(random: Random, chance: Chance, member: ZoneDefinition): StatefulSetView {
  const isRolling = chance(0.6);
  const updateRevision = isRolling ? (random.pick(revisions.slice(1)) ?? 'rev-2') : 'rev-1';
  const labels: Readonly<Record<string, string>> = chance(0.9) ? { 'rollout-group': 'ingester' } : {};
  const annotations: Readonly<Record<string, string>> = chance(0.3)
    ? { 'grafana.com/last-downscale': chance(0.05) ? 'yesterday' : new Date(kitNowMs - random.below(24) * hourMs).toISOString() }
    : {};
  return statefulSet({
    name: member.statefulSet,
    replicas: chance(0.05) ? 0 : 1 + random.below(30),
    labels,
    annotations,
    podLabels: { name: member.statefulSet, 'rollout-group': 'ingester' },
    updateStrategy: chance(0.02) ? 'RollingUpdate' : 'OnDelete',
    minReadySeconds: chance(0.3) ? 30 : 0,
    generation: 5,
    status: { currentRevision: 'rev-1', updateRevision, observedGeneration: chance(0.03) ? 4 : 5 },
  });
}

function randomPods(random: Random, chance: Chance, set: StatefulSetView, trouble: number): readonly PodView[] {
  const pods: PodView[] = [];
  const updated = random.next() < 0.4 ? random.next() : 0;
  const surplus = chance(trouble / 3) ? 1 + random.below(2) : 0;
  for (let ordinal = 0; ordinal < set.replicas + surplus; ordinal += 1) {
    if (chance(trouble / 4)) continue;
    const isUnready = chance(trouble);
    const changedMs = kitNowMs - (chance(isUnready ? 0.5 : trouble) ? random.below(240_000) : random.below(2 * hourMs) + 60_000);
    const isNew = chance(updated);
    pods.push(
      pod(set, ordinal, {
        revision: isNew ? set.status.updateRevision : (random.pick(revisions.slice(0, 2)) ?? 'rev-1'),
        isReady: !isUnready,
        containersReady: !isUnready,
        readyChangedMs: changedMs,
        phase: isUnready && chance(0.4) ? 'Pending' : 'Running',
        isTerminating: chance(trouble / 4),
        waitingReasons: isUnready && chance(0.4) ? ['CrashLoopBackOff'] : [],
        nodeReady: !chance(isUnready ? 0.2 : 0),
        readyTimeMs: changedMs,
      }),
    );
  }
  return pods;
}

function withStatus(random: Random, chance: Chance, set: StatefulSetView, pods: readonly PodView[], trouble: number): StatefulSetView {
  const within = pods.filter((candidate) => candidate.ordinal < set.replicas);
  const readyReplicas = within.filter((candidate) => candidate.containersReady && !candidate.isTerminating).length;
  const isStale = chance(trouble / 3);
  const status = {
    ...set.status,
    replicas: pods.length,
    readyReplicas: isStale ? Math.min(pods.length, readyReplicas + random.below(2)) : readyReplicas,
    updatedReplicas: within.filter((candidate) => candidate.revision === set.status.updateRevision).length,
  };
  return { ...set, status };
}

function randomIntents(random: Random, chance: Chance, definition: GroupDefinition): readonly IntentView[] {
  const intents: IntentView[] = [];
  const add = (name: string, action: IntentView['action'], extra: Partial<IntentView>): void => {
    intents.push({ namespace: 'mimir', name, group: definition.name, action, ...extra });
  };
  const requestedBy = { user: 'anna', groups: ['oncall'], atMs: kitNowMs - 60_000 };
  if (chance(0.05)) add('pause', 'pause', { requestedBy, ...(chance(0.5) ? { expiresMs: kitNowMs + hourMs } : {}) });
  for (const name of ['canary', 'rest']) {
    if (chance(0.4)) add(`approve-${name}-1`, 'approve', { wave: name, requestedBy });
    if (chance(0.3)) add(`approve-${name}-2`, 'approve', { wave: name, requestedBy: { ...requestedBy, user: 'ben' } });
    if (chance(0.1)) add(`approve-${name}-3`, 'approve', { wave: name });
    if (chance(0.05)) add(`reject-${name}`, 'reject', { wave: name, requestedBy });
  }
  if (chance(0.2)) add('approve-rule', 'approve', { rule: 'safety/queue', requestedBy });
  return random.next() < 0.5 ? intents : [...intents].reverse();
}

/** Draws approvals of the definition, as `approve` writes them. */
function withDigests({ intents, policies }: Snapshot, definition: GroupDefinition): Snapshot['intents'] {
  if (isUnknown(intents)) return intents;
  const [ofRule] = policies.flatMap((policy) => policy.rules.map((rule) => digestOfRule(policy, rule)));
  return intents.map((intent) => {
    const digest = intent.rule === undefined ? digestOfWaves(definition) : ofRule;
    return intent.action !== 'approve' || digest === undefined ? intent : { ...intent, digest };
  });
}

/** Draws requests that block or permit a step. They have a separate generator, so that the other draws do not change. */
function randomWords(seed: number, definition: GroupDefinition): readonly IntentView[] {
  const random = randomFrom(seed * 31 + 7);
  const zone = random.pick(definition.zones)?.name ?? 'a';
  const about = { namespace: 'mimir', group: definition.name, requestedBy: { user: 'anna', groups: ['oncall'], atMs: kitNowMs - 60_000 } };
  const words: readonly IntentView[] = [
    { ...about, name: 'protect', action: 'protect', zone, ...(random.next() < 0.5 ? { ordinals: [0, 1] } : {}) },
    { ...about, name: 'undo', action: 'undo', undone: [{ zone, revision: random.pick(revisions.slice(1)) ?? 'rev-2', to: 'rev-1' }] },
    // Promotes one gate only: if the whole wave were promoted, no rule would be left to answer.
    { ...about, name: 'promote', action: 'promote', gate: 'errors' },
    { ...about, name: 'promote-wave', action: 'promote' },
  ];
  return words.filter(({ action }) => random.next() < (action === 'promote' ? 0.15 : 0.04));
}

function zoneBudget(random: Random, chance: Chance) {
  const partition = chance(0.5) ? { partition: { pattern: 'ingester-zone-[a-z]-([0-9]+)', group: 1 } } : {};
  return {
    namespace: 'mimir',
    name: 'ingester',
    matchLabels: { 'rollout-group': 'ingester' },
    maxUnavailable: random.below(3),
    crossZoneDelayMs: 0,
    ...partition,
  };
}

function randomPodBudgets(random: Random, chance: Chance) {
  if (chance(0.6)) return [];
  const budget = (name: string) => ({
    namespace: 'mimir',
    name,
    selector: { matchLabels: { 'rollout-group': 'ingester' } },
    maxUnavailable: random.below(4),
  });
  return chance(0.15) ? [budget('one'), budget('two')] : [budget('one')];
}

function source(random: Random, chance: Chance) {
  const replicas = chance(0.08) ? { unknown: 'not found' } : random.below(25);
  return {
    namespace: 'mimir',
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ReplicaTemplate',
    name: 'ingester',
    replicas,
    statusReplicas: random.below(20),
  };
}

function randomReadings(random: Random, chance: Chance, definition: GroupDefinition) {
  return definition.gates.map((one) => {
    const count = random.below(5);
    const readings = Array.from({ length: count }, (_, index) => {
      const atMs = kitNowMs - (count - 1 - index) * one.everyMs - (chance(0.1) ? 10 * 60_000 : 0);
      if (chance(0.1)) return { atMs, result: 'noData' } as const;
      if (chance(0.1)) return { atMs, result: 'error', message: 'timeout' } as const;
      return { atMs, result: 'value', value: chance(0.75) ? 0.1 : chance(0.5) ? 3 : Number.NaN } as const;
    });
    return { namespace: 'mimir', group: definition.name, gate: one.name, readings };
  });
}

function randomLedger(
  random: Random,
  chance: Chance,
  now: Chance,
  definition: GroupDefinition,
  sets: readonly StatefulSetView[],
  pods: readonly (readonly PodView[])[],
): Ledger {
  const claims: Claim[] = [];
  const preparations: Preparation[] = [];
  const downscales: { zone: string; atMs: number; from: number; to: number }[] = [];
  definition.zones.forEach((member, index) => {
    const owned = pods[index] ?? [];
    const victim = random.pick(owned);
    if (victim !== undefined && now(0.1))
      claims.push({
        verb: 'deletePod',
        zone: member.name,
        uid: victim.uid,
        ordinal: victim.ordinal,
        atMs: kitNowMs - random.below(100_000),
      });
    if (chance(0.04))
      claims.push({
        verb: 'scaleDown',
        zone: member.name,
        uid: sets[index]?.uid ?? '',
        from: 5,
        to: 4,
        atMs: kitNowMs - random.below(hourMs),
      });
    if (chance(0.2)) downscales.push({ zone: member.name, atMs: kitNowMs - random.below(20) * hourMs, from: 6, to: 5 });
    for (const call of ['delayed', 'prepare'] as const) {
      if (chance(0.5)) continue;
      const state = chance(0.75) ? 'prepared' : 'failed';
      const isConfirmed = chance(0.8);
      for (const one of owned.filter(() => chance(0.95))) {
        const seenMs = kitNowMs - (state === 'failed' ? random.below(60_000) : random.below(4) * hourMs);
        preparations.push({
          zone: member.name,
          ordinal: one.ordinal,
          podUid: one.uid,
          call,
          state,
          seenMs,
          reportedMs: chance(0.9) ? seenMs : kitNowMs + 10 * hourMs,
          ...(isConfirmed ? { answeredMs: kitNowMs - random.below(70_000) } : {}),
        });
      }
    }
  });
  if (chance(0.01))
    for (let count = 0; count < 100; count += 1) claims.push({ verb: 'evictPod', zone: 'gone', uid: `other-${count}`, atMs: kitNowMs });
  const run = chance(0.7) ? { run: randomRun(random, chance, definition, sets) } : {};
  return { namespace: 'mimir', group: definition.name, claims, preparations, downscales, ...run };
}

function randomRun(random: Random, chance: Chance, definition: GroupDefinition, sets: readonly StatefulSetView[]): RunState {
  const target = Object.fromEntries(
    definition.zones.map((member, index) => [member.name, chance(0.97) ? (sets[index]?.status.updateRevision ?? '') : 'rev-0']),
  );
  const startedMs = kitNowMs - random.below(6) * hourMs;
  const outcome = chance(0.9) ? 'running' : chance(0.5) ? 'failed' : 'completed';
  return runOf({
    id: 'run-1',
    kind: chance(0.85) ? 'rollout' : 'rollback',
    target,
    previous: {},
    startedMs,
    wave: random.below(definition.rollout.waves.length),
    waveStartedMs: startedMs,
    ...wavesDigestOf(definition),
    ...(chance(0.5) ? { waveAvailableMs: kitNowMs - random.below(hourMs) } : {}),
    ...(chance(0.5) ? { openZone: random.pick(definition.zones)?.name ?? 'a' } : {}),
    ...(chance(0.6) ? { lastDisruptionMs: startedMs - (chance(0.2) ? hourMs : -random.below(hourMs)) } : {}),
    movableMs: random.below(5) * hourMs,
    movableAsOfMs: kitNowMs - 60_000,
    isMovable: chance(0.5),
    outcome,
    ...(outcome === 'failed' ? { failure: 'no pod became available for 20m', failedMs: kitNowMs - 60_000 } : {}),
  });
}
