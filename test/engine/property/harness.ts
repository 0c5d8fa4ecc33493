// Runs the engine over many random groups and asks the oracle; bundled on its own, so that a deliberately broken engine can be put under it.

import { decideGroup } from '../../../engine/decide/decide.ts';
import { type AdmissionRequest, type GroupDecision, type RuleOutcome, type RuleResult, replacedBy } from '../../../engine/decision.ts';
import { violationsOf } from '../../../engine/invariants/invariants.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { decidedLedger } from '../../../engine/ledger/ledger.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import { writeOf } from '../../../engine/rules/refused-write.ts';
import type { RefusedWrite, Snapshot } from '../../../engine/snapshot.ts';
import { createWorld } from '../../../engine/world/world.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import { judgeDecision } from '../../kit/oracle.ts';
import { judgePartitions, partitionedCase } from '../../kit/partition-cases.ts';
import { judgePins, pinnedCase } from '../../kit/pinned-cases.ts';
import { type RandomCase, randomCase } from '../../kit/random-groups.ts';
import { rounds } from '../../kit/share.ts';
import { oscillationViolations, type ReplicaWrite, replicaWrites } from '../oscillation.ts';

interface Found {
  readonly seed: number;
  readonly what: string;
}

export interface PropertyReport {
  readonly groups: number;
  readonly found: readonly Found[];
  /** How often each rule answered in each way, by `rule outcome`. */
  readonly answers: ReadonlyMap<string, number>;
  readonly replacements: number;
  readonly scales: number;
}

/** Turns of a whole run. A group that waits for readings takes a turn for each, so its virtual days would take minutes. */
const maxTurns = rounds(4_000, 400);

/**
 * One decision per seed, judged by the oracle and by the engine's own invariants, and a second one after the API server rejected all writes
 * of the first. Stops after `most` findings.
 */
export function checkDecisions(firstSeed: number, groups: number, most = 5): PropertyReport {
  const found: Found[] = [];
  const answers = new Map<string, number>();
  let replacements = 0;
  let scales = 0;
  let seed = firstSeed;
  const decided = (one: RandomCase): GroupDecision => {
    const decision = decideGroup(one.snapshot, one.group);
    countAnswers(
      answers,
      decision.steps.flatMap((step) => step.results),
    );
    countAnswers(answers, decision.warnings);
    for (const what of [...judgeDecision(one.snapshot, one.group, decision), ...violationsOf({ ...one, decision })])
      found.push({ seed, what });
    return decision;
  };
  for (; seed < firstSeed + groups && found.length < most; seed += 1) {
    const one = randomCase(seed);
    const decision = decided(one);
    for (const { snapshot, request } of askedOf(one)) countAnswers(answers, judge(snapshot, request).results);
    for (const action of decision.actions) {
      if (action.kind === 'deletePod' || action.kind === 'evictPod') replacements += 1;
      if (action.kind === 'scaleStatefulSet') scales += 1;
    }
    const refusedWrites = refusalsOf(decision, one.snapshot.nowMs);
    if (refusedWrites.length === 0) continue;
    const again = refusalsOf(decided({ ...one, snapshot: { ...one.snapshot, refusedWrites } }), one.snapshot.nowMs);
    const repeated = again.filter((write) => refusedWrites.some((refused) => isSameValue(refused, write)));
    for (const { kind, target } of repeated) found.push({ seed, what: `${kind} of ${target} is repeated before its time` });
  }
  return { groups: seed - firstSeed, found, answers, replacements, scales };
}

function refusalsOf({ actions }: GroupDecision, nowMs: number): readonly RefusedWrite[] {
  return actions.flatMap((action) => {
    const write = writeOf(action);
    return write === undefined ? [] : [{ ...write, message: 'denied', untilMs: nowMs + 5000 }];
  });
}

/** One decision per seed for a group of the strategy `partition`, and a whole run for one seed in ten. */
export function checkPartitions(firstSeed: number, groups: number, most = 5): PropertyReport {
  const found: Found[] = [];
  const answers = new Map<string, number>();
  let replacements = 0;
  let seed = firstSeed;
  for (; seed < firstSeed + groups && found.length < most; seed += 1) {
    const one = partitionedCase(seed);
    if (one === undefined) continue;
    const judged = (seen: RandomCase, decision: GroupDecision): void => {
      replacements += decision.actions.flatMap(replacedBy).length;
      for (const what of [...judgePartitions(seen, decision), ...judgeDecision(seen.snapshot, seen.group, decision)])
        found.push({ seed, what });
    };
    const decision = decideGroup(one.snapshot, one.group);
    countAnswers(
      answers,
      decision.steps.flatMap((step) => step.results),
    );
    countAnswers(answers, decision.warnings);
    for (const request of templatesFor(one)) countAnswers(answers, judge(one.snapshot, request).results);
    judged(one, decision);
    for (const what of violationsOf({ ...one, decision })) found.push({ seed, what });
    if (seed % 10 !== 0) continue;
    runForward(createWorld(one.snapshot, defaultAssumptions, 'p50'), one.group, {
      maxTurns,
      onTurn: (turn, { snapshot }) => judged({ ...one, snapshot }, turn.decision),
    });
  }
  return { groups: seed - firstSeed, found, answers, replacements, scales: 0 };
}

export interface PinReport extends PropertyReport {
  /** Whole runs that came to their end, with every pod at the update revision. */
  readonly ended: number;
}

/** One decision per seed for a group of the strategy `pinned`, and a whole run for one seed in ten. */
export function checkPins(firstSeed: number, groups: number, most = 5): PinReport {
  const found: Found[] = [];
  const answers = new Map<string, number>();
  let replacements = 0;
  let ended = 0;
  let seed = firstSeed;
  for (; seed < firstSeed + groups && found.length < most; seed += 1) {
    const one = pinnedCase(seed);
    if (one === undefined) continue;
    const judged = (seen: RandomCase, decision: GroupDecision): void => {
      replacements += decision.actions.flatMap(replacedBy).length;
      // A run that goes back goes away from what the StatefulSets ask for, which is all that is looked at here.
      if (decision.run?.rolledBack !== undefined) return;
      const { snapshot, group } = seen;
      const [before] = snapshot.ledgers;
      const after = before === undefined ? [] : judgePins(seen, decision, decidedLedger(before, decision, { snapshot, group }));
      for (const what of [...after, ...judgeDecision(snapshot, group, decision)]) found.push({ seed, what });
    };
    const decision = decideGroup(one.snapshot, one.group);
    countAnswers(
      answers,
      decision.steps.flatMap((step) => step.results),
    );
    countAnswers(answers, decision.warnings);
    for (const request of templatesFor(one)) countAnswers(answers, judge(one.snapshot, request).results);
    judged(one, decision);
    for (const what of violationsOf({ ...one, decision })) found.push({ seed, what });
    if (seed % 10 !== 0) continue;
    const run = runForward(createWorld(one.snapshot, defaultAssumptions, 'p50'), one.group, {
      maxTurns,
      onTurn: (turn, { snapshot }) => judged({ ...one, snapshot }, turn.decision),
    });
    if (run.end !== 'done' || run.last.decision.run?.rolledBack !== undefined) continue;
    ended += 1;
    for (const what of leftAtTheEnd(run.world.snapshot, one.group)) found.push({ seed, what });
  }
  return { groups: seed - firstSeed, found, answers, replacements, scales: 0, ended };
}

/** A run is over when every pod runs what its StatefulSet asks for. Nothing is said of pods then, for the StatefulSet controller makes them so by itself. */
function leftAtTheEnd({ statefulSets, pods, ledgers }: Snapshot, { zones }: GroupDefinition): readonly string[] {
  const pinned = ledgers.flatMap(({ pins = [] }) => pins);
  return statefulSets.flatMap(({ name, replicas, status, updateStrategy }) => {
    const listed = pods.find(({ statefulSet }) => statefulSet === name)?.pods ?? [];
    const own = 'unknown' in listed ? [] : listed;
    const behind = own.filter(({ ordinal, revision }) => ordinal < replicas && revision !== status.updateRevision);
    const zone = zones.find(({ statefulSet }) => statefulSet === name)?.name;
    // Under OnDelete the current revision never moves on, and what pods run is noted for the day on which that ends.
    const said = updateStrategy === 'OnDelete' ? [] : pinned.filter((one) => one.zone === zone);
    return [
      ...behind.map((pod) => `L1: ${pod.name} is behind at the end`),
      ...said.map(({ ordinal, revision }) => `L4: pod ${ordinal} of zone ${zone} is pinned to ${revision} at the end`),
    ];
  });
}

/** A new template for each member. */
function templatesFor({ snapshot }: RandomCase): readonly AdmissionRequest[] {
  return snapshot.statefulSets.map(({ namespace, name: statefulSet, replicas, updateStrategy: strategy }) => {
    return {
      kind: 'update',
      namespace,
      statefulSet,
      from: replicas,
      to: replicas,
      isTemplateChanged: true,
      strategy,
      via: 'apply',
      dryRun: false,
    };
  });
}

/** Whole runs: every decision on the way is judged, and replicas do not go back and forth. */
export function checkRuns(firstSeed: number, groups: number, most = 5): PropertyReport {
  const found: Found[] = [];
  let replacements = 0;
  let scales = 0;
  let seed = firstSeed;
  for (; seed < firstSeed + groups && found.length < most; seed += 1) {
    const { snapshot, group } = randomCase(seed);
    const writes: ReplicaWrite[] = [];
    const opened: string[] = [];
    const world = createWorld(snapshot, defaultAssumptions, 'p50');
    runForward(world, group, {
      untilMs: snapshot.nowMs + 48 * 3_600_000,
      onTurn: ({ decision }, { snapshot: seen }) => {
        const open = seen.ledgers.find((ledger) => ledger.group === group.name)?.run?.openZone;
        for (const what of judgeDecision(seen, group, decision)) found.push({ seed, what });
        const written = replicaWrites({ decision, snapshot: seen });
        scales += written.length;
        writes.push(...written);
        for (const action of decision.actions) {
          if (action.kind === 'deletePod' || action.kind === 'evictPod') replacements += 1;
        }
        const begun = decision.actions.find((action) => action.kind === 'deletePod' || action.kind === 'evictPod');
        if (begun !== undefined && 'zone' in begun && begun.zone !== open) opened.push(begun.zone);
      },
    });
    for (const what of oscillationViolations(writes)) found.push({ seed, what });
    if (new Set(opened).size !== opened.length && group.rollout.waves.length === 1 && group.profile === 'native')
      found.push({ seed, what: `S8: zones are begun again: ${opened.join(' ')}` });
  }
  return { groups: seed - firstSeed, found, answers: new Map(), replacements, scales };
}

function countAnswers(answers: Map<string, number>, results: readonly RuleResult[]): void {
  for (const { rule, outcome } of results) {
    const key = answerKey(rule.includes('/') ? 'policy/rule' : rule, outcome);
    answers.set(key, (answers.get(key) ?? 0) + 1);
  }
}

/** The key under which an answer is counted. */
export function answerKey(rule: string, outcome: RuleOutcome): string {
  return `${rule} ${outcome}`;
}

interface Asked {
  readonly snapshot: Snapshot;
  readonly request: AdmissionRequest;
}

/** Requests in the state as it is, and in states that admission alone knows of: what was announced, what has left its group, and what goes with its namespace. */
function askedOf(one: RandomCase): readonly Asked[] {
  const { group, snapshot, seed } = one;
  const zone = group.zones[seed % group.zones.length];
  const set = snapshot.statefulSets.find(({ name }) => name === zone?.statefulSet);
  const usual = requestsFor(one).map((request) => ({ snapshot, request }));
  if (zone === undefined || set === undefined) return usual;
  const target = { namespace: group.namespace, statefulSet: set.name, dryRun: false };
  const change = { from: set.replicas, to: Math.max(0, set.replicas - 1) };
  const update: AdmissionRequest = {
    kind: 'update',
    ...target,
    ...change,
    isTemplateChanged: false,
    strategy: set.updateStrategy,
    via: 'update',
  };
  const claim = { verb: 'scaleDown', zone: zone.name, uid: set.uid, ...change, atMs: snapshot.nowMs, epoch: 1 } as const;
  const announced = { ...snapshot, ledgers: snapshot.ledgers.map((ledger) => ({ ...ledger, claims: [claim] })) };
  const departures = [{ statefulSet: set.name, uid: set.uid, group: 'former', untilMs: snapshot.nowMs + 1 }];
  return [
    ...usual,
    { snapshot, request: { ...update, to: change.from, firstOrdinal: set.firstOrdinal + 1 } },
    { snapshot, request: { ...update, relabels: ['rollout-group'] } },
    { snapshot: announced, request: update },
    { snapshot: { ...snapshot, departures }, request: update },
    { snapshot: { ...snapshot, endingNamespaces: [group.namespace] }, request: update },
  ];
}

function requestsFor({ group, snapshot, seed }: RandomCase): readonly AdmissionRequest[] {
  const zone = group.zones[seed % group.zones.length];
  if (zone === undefined) return [];
  const target = { namespace: group.namespace, statefulSet: zone.statefulSet, dryRun: seed % 7 === 0 };
  const from = snapshot.statefulSets.find((set) => set.name === zone.statefulSet)?.replicas ?? 1;
  const pod = { namespace: group.namespace, pod: `${zone.statefulSet}-${seed % 5}`, dryRun: false };
  return [
    { kind: 'scale', ...target, from, to: Math.max(0, from - 1), via: 'scale' },
    { kind: 'scale', ...target, from, to: from + 1, via: 'patch' },
    {
      kind: 'update',
      ...target,
      from,
      to: from,
      isTemplateChanged: true,
      strategy: seed % 3 === 0 ? 'RollingUpdate' : 'OnDelete',
      via: 'apply',
    },
    { kind: 'deleteStatefulSet', ...target },
    { kind: 'restart', ...target },
    { kind: 'evictPod', ...pod },
    { kind: 'deletePod', ...pod },
  ];
}
