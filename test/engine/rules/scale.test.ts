import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../../engine/decision.ts';
import { resultsOf } from '../../../engine/rule.ts';
import { type ScaleQuestion, scaleCeiling, scaleDownChecks, scaleUpRules } from '../../../engine/rules/scale.ts';
import type { Claim } from '../../../engine/snapshot.ts';
import type { GroupDefinition, ReplicasDefinition } from '../../../policies/definition.ts';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, newRevision, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  contextWith,
  hourMs,
  intent,
  ledgerOf,
  line,
  minuteMs,
  outdatedSets,
  policy,
  runOf,
  scaleQuestion,
  withFields,
  zoneIn,
} from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const sources = {
  'zones.a.scaling': line(1),
  'zones.b.scaling': line(2),
  'zones.a.replicas': line(3),
  'zones.b.replicas': line(3),
  'zones.b.follows': line(4),
  'zones.a.protect': line(5),
};

interface Given extends Partial<Omit<ScaleQuestion, 'zone' | 'context'>> {
  readonly build?: typeof group;
  readonly a?: Omit<ZoneOverrides, 'name'>;
  readonly b?: Omit<ZoneOverrides, 'name'>;
  readonly zone?: string;
  readonly state?: SnapshotOverrides;
}

/** What one rule answers about a change of zone a, whose follower is b. */
function ask(
  rule: string,
  { build = group, a = {}, b = {}, zone = 'a', state = {}, to = 2, ...question }: Given = {},
): RuleResult | undefined {
  const definition: GroupDefinition = build({ zones: [{ name: 'a', ...a }, { name: 'b', follows: 'a', ...b }, 'c'], sources });
  const context = contextWith(definition, state);
  const asked = scaleQuestion(context, to, { ...question, zone: zoneIn(context, zone) });
  const check = (to > asked.from ? scaleUpRules : scaleDownChecks).find(({ id }) => id === rule);
  const policies = { results: [], warnings: [], effects: [] };
  return check === undefined ? undefined : resultsOf(check, { ...asked, policies })[0];
}

const running = runOf();
const down = { podChanges: { 'ingester-zone-c': { 1: { isReady: false } } } };

describe('the rules of a change of replicas', () => {
  it('are evaluated in reading order', () => {
    expect(scaleUpRules.map(({ id }) => id)).toEqual([
      'view-complete',
      'scaling-hold',
      'scale-ceiling',
      'leader-ready',
      'rollout-in-progress',
    ]);
  });

  it('have results under their own names', () => {
    expect(scaleUpRules.map(({ id }) => ask(id, { to: 4 })?.rule)).toEqual(scaleUpRules.map(({ id }) => id));
    // Other checks have a result only for some questions.
    const others = ['agent-access', 'replica-source', 'protected', 'delayed-downscale', 'policies'];
    const ids = scaleDownChecks.map(({ id }) => id).filter((id) => !others.includes(id));
    expect(ids.map((id) => ask(id)?.rule)).toEqual(ids);
  });
});

describe('view-complete', () => {
  const rule = 'view-complete';
  it('is unknown if a zone could not be read, its own zone first', () => {
    expect(ask(rule)).toEqual({ rule, outcome: 'ok', fact: 'every zone was read' });
    const unread = (name: string) => ({ namespace: 'mimir', statefulSet: `ingester-zone-${name}`, pods: { unknown: 'forbidden' } });
    const fact = (name: string) => ({ rule, outcome: 'unknown', fact: `the pods of ingester-zone-${name} could not be read: forbidden` });
    expect(ask(rule, { state: { pods: [unread('c')] } })).toEqual(fact('c'));
    expect(ask(rule, { zone: 'c', state: { pods: [unread('a'), unread('c')] } })).toEqual(fact('c'));
  });
});

describe('scaling-hold', () => {
  const rule = 'scaling-hold';
  const free = { rule, outcome: 'ok', fact: 'no setting blocks scaling' };
  const held = (fact: string) => ({ rule, outcome: 'no', fact, source: line(1) });

  it('denies changes that the settings block', () => {
    expect(ask(rule)).toEqual(free);
    expect(ask(rule, { a: { scalingHold: 'its settings are wrong' } })).toEqual(held('its settings are wrong'));
    expect(ask(rule, { a: { scalingHold: 'its settings are wrong' }, to: 4 })).toEqual(held('its settings are wrong'));
    expect(ask(rule, { a: { scaleDownHold: 'its delay is wrong' } })).toEqual(held('its delay is wrong'));
    expect(ask(rule, { a: { scaleDownHold: 'its delay is wrong' }, to: 4 })).toEqual(free);
  });

  it('denies requests of other clients only if the settings block a downscale', () => {
    expect(ask(rule, { a: { scalingHold: 'its settings are wrong' }, asker: 'admission' })).toEqual(free);
    expect(ask(rule, { a: { scaleDownHold: 'its delay is wrong' }, asker: 'admission' })).toEqual(held('its delay is wrong'));
  });
});

describe('scale-ceiling', () => {
  const rule = 'scale-ceiling';
  const most = (max: number) => ({ a: { bounds: { max, multipleOf: 1, parity: 'any' } } }) as const;
  const limited = { policies: [policy({ limits: { maxReplicas: 5 }, limitSources: { maxReplicas: line(9) } })] };
  const answer = (outcome: string, limit: number, source: object) => ({
    rule,
    outcome,
    fact: 'zone a would have 6 replicas',
    limit: `at most ${limit}`,
    source,
  });

  it.each<[string, Given, object]>([
    ['is ok at the maximum', { ...most(6), to: 6 }, answer('ok', 6, line(3))],
    ['refuses more', { ...most(5), to: 6 }, answer('no', 5, line(3))],
    ['is lowered by a policy', { ...most(6), to: 6, state: limited }, answer('no', 5, line(9))],
    ['is not raised by one', { ...most(4), to: 6, state: limited }, answer('no', 4, line(3))],
    ['is skipped where none is set', { to: 6 }, { rule, outcome: 'skip', fact: 'no ceiling is set' }],
    [
      'is skipped for a number that a person forces',
      { ...most(5), to: 6, isForced: true },
      { rule, outcome: 'skip', fact: 'replicas are forced' },
    ],
  ])('%s', (_name, given, expected) => {
    expect(ask(rule, given)).toEqual(expected);
  });

  it('is the same rule as in admission', () => {
    expect(scaleUpRules.map(({ evaluate }) => evaluate)).toContain(scaleCeiling);
  });
});

describe('leader-ready', () => {
  const rule = 'leader-ready';
  const waiting: Given = { zone: 'b', to: 4, b: { followersWaitFor: 'leaderReady' } };
  const details = { limit: 'all ready', source: line(2) };
  const skip = { rule, outcome: 'skip', fact: 'the zone waits for no leader', source: line(2) };

  it('is skipped if the zone waits for no other zone', () => {
    expect(ask(rule, { zone: 'b', to: 4 })).toEqual(skip);
    expect(ask(rule, { zone: 'a', to: 4, a: { followersWaitFor: 'leaderReady' } })).toEqual({ ...skip, source: line(1) });
  });

  it('waits for every pod of the leader', () => {
    expect(ask(rule, waiting)).toEqual({ rule, outcome: 'ok', fact: 'leader zone a has 3 of 3 pods ready', ...details });
    const starting = { 'ingester-zone-a': { 2: { isReady: true, readyChangedMs: ago(minuteMs) } } };
    const statefulSets = [statefulSet({ minReadySeconds: 90 })];
    expect(ask(rule, { ...waiting, state: { statefulSets, podChanges: starting } })).toEqual({
      rule,
      outcome: 'wait',
      fact: 'leader zone a has 2 of 3 pods ready',
      ...details,
      earliestMs: kitNowMs + 30_000,
    });
  });

  it('uses the status in adopted groups', () => {
    const statefulSets = [statefulSet({ status: { readyReplicas: 2 } })];
    expect(ask(rule, { ...waiting, build: adopted, state: { statefulSets } })).toMatchObject({
      outcome: 'wait',
      fact: 'leader zone a has 2 of 3 pods ready',
    });
  });
});

describe('rollout-in-progress', () => {
  const rule = 'rollout-in-progress';
  const source = line(1);
  const rolling = { statefulSets: outdatedSets(), podChanges: { 'ingester-zone-c': { 2: { revision: newRevision, isReady: false } } } };
  const open = runOf({ openZone: 'c' });
  const evicted = (by: Partial<Claim>): SnapshotOverrides => {
    const claim: Claim = { verb: 'evictPod', zone: 'c', uid: 'uid-evicted', ordinal: 2, atMs: ago(minuteMs), ...by };
    const podChanges = { 'ingester-zone-c': { 2: { isReady: false } } };
    return { statefulSets: outdatedSets(), ledgers: [ledgerOf({ claims: [claim] })], podChanges };
  };

  it.each<[string, Given, string, string]>([
    ['grows while nothing rolls', {}, 'ok', 'no pod is being replaced'],
    ['grows between two replacements', { run: open }, 'ok', 'no pod is being replaced'],
    ['does not grow during a replacement', { run: open, state: rolling }, 'wait', 'pods of zone c are being replaced'],
    [
      'does not grow while a later template makes the broken successor outdated',
      { run: open, state: evicted({ epoch: 1 }) },
      'wait',
      'pods of zone c are being replaced',
    ],
    [
      'grows while the outdated successor of a pod that another client evicted starts',
      { run: open, state: evicted({ user: 'drain' }) },
      'ok',
      'no pod is being replaced',
    ],
    ['grows when the run is over', { run: withFields(open, { outcome: 'failed' }), state: rolling }, 'ok', 'no pod is being replaced'],
    [
      'grows during a rollout that allows it',
      { run: open, state: rolling, a: { duringRollout: 'allow' } },
      'ok',
      'the zone may grow during a rollout',
    ],
  ])('a zone %s', (_name, given, outcome, fact) => {
    expect(ask(rule, { to: 4, ...given })).toEqual({ rule, outcome, fact, source });
  });

  it.each<[string, Given, string, string]>([
    ['shrinks while nothing rolls', {}, 'ok', 'no rollout runs'],
    ['shrinks when the run is over', { run: withFields(running, { outcome: 'completed' }) }, 'ok', 'no rollout runs'],
    ['shrinks when the run has failed', { run: withFields(running, { outcome: 'failed' }) }, 'ok', 'no rollout runs'],
    ['does not shrink during a rollout', { run: running }, 'wait', 'a rollout runs'],
    [
      'shrinks during a rollout that allows it',
      { run: running, a: { duringRollout: 'allow' } },
      'ok',
      'no rollout replaces pods of another zone',
    ],
    [
      'does not shrink while another zone is open',
      { run: open, a: { duringRollout: 'allow' } },
      'wait',
      'a rollout replaces pods of zone c',
    ],
    [
      'shrinks while it is open itself',
      { run: runOf({ openZone: 'a' }), a: { duringRollout: 'allow' } },
      'ok',
      'no rollout replaces pods of another zone',
    ],
    ['shrinks when a person forces it', { run: running, isForced: true }, 'skip', 'the downscale does not wait for a rollout'],
    ['of an adopted group shrinks', { run: running, build: adopted }, 'skip', 'the downscale does not wait for a rollout'],
  ])('a zone %s', (_name, given, outcome, fact) => {
    expect(ask(rule, given)).toEqual({ rule, outcome, fact, source });
  });
});

describe('no-downscale', () => {
  const rule = 'no-downscale';
  it('denies every downscale of a protected zone', () => {
    expect(ask(rule)).toEqual({ rule, outcome: 'ok', fact: 'the zone may shrink' });
    const no = { rule, outcome: 'no', fact: 'zone a must not shrink', source: line(5) };
    expect(ask(rule, { a: { noDownscale: true } })).toEqual({ ...no, limit: 'noDownscale' });
    expect(ask(rule, { a: { noDownscale: true }, build: adopted })).toEqual({ ...no, limit: 'grafana.com/no-downscale=true' });
  });
});

describe('scale-floor', () => {
  const rule = 'scale-floor';
  const least = (min: number) => ({ a: { bounds: { min, multipleOf: 1, parity: 'any' } } }) as const;
  const limited = { policies: [policy({ limits: { minReplicas: 2 }, limitSources: { minReplicas: line(9) } })] };
  const answer = (outcome: string, to: number, limit: number, source?: object) => ({
    rule,
    outcome,
    fact: `zone a would have ${to === 1 ? '1 replica' : `${to} replicas`}`,
    limit: `at least ${limit}`,
    ...(source === undefined ? {} : { source }),
  });

  it.each<[string, Given, object]>([
    ['keeps one pod', { to: 1 }, answer('ok', 1, 1)],
    ['refuses nothing at all, and names no field, because none permits it', { to: 0 }, answer('no', 0, 1)],
    ['names no field that permits nothing at all, also if the zone has a minimum', { ...least(1), to: 0 }, answer('no', 0, 1)],
    ['is the minimum of the zone', { ...least(2), to: 1 }, answer('no', 1, 2, line(3))],
    ['is raised by a policy', { to: 1, state: limited }, answer('no', 1, 2, line(9))],
    ['is not lowered by one', { ...least(3), to: 2, state: limited }, answer('no', 2, 3, line(3))],
    ['is skipped for a number that a person forces', { to: 0, isForced: true }, { rule, outcome: 'skip', fact: 'replicas are forced' }],
    ['of adopted groups may be nothing', { to: 0, build: adopted }, { rule, outcome: 'skip', fact: 'no floor is set' }],
    ['of adopted groups is that of a policy', { to: 1, build: adopted, state: limited }, answer('no', 1, 2, line(9))],
  ])('%s', (_name, given, expected) => {
    expect(ask(rule, given)).toEqual(expected);
  });
});

describe('leader-floor', () => {
  const rule = 'leader-floor';
  const skip = { rule, outcome: 'skip', fact: 'the zone waits for no leader' };
  const sets = (leader: number) => ({
    statefulSets: [statefulSet({ replicas: leader }), statefulSet({ name: 'ingester-zone-b', replicas: 6 })],
  });
  const follower = (leader: number, to: number): Given => ({ zone: 'b', to, state: sets(leader) });
  const details = { limit: 'at least 4', source: line(4) };

  it('keeps a follower at its leader', () => {
    const fact = 'leader zone a has 4 replicas and 4 pods';
    expect(ask(rule, follower(4, 4))).toEqual({ rule, outcome: 'ok', fact, ...details });
    expect(ask(rule, follower(4, 3))).toEqual({ rule, outcome: 'wait', fact, ...details });
  });

  it('waits until the surplus pods of the leader are deleted, and counts replicas without a pod', () => {
    const [leader, second] = sets(2).statefulSets;
    const context = contextWith(group({ zones: ['a', { name: 'b', follows: 'a' }] }), sets(4));
    const state = {
      statefulSets: [leader, second].flatMap((one) => one ?? []),
      pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: zoneIn(context).pods }],
    };
    expect(ask(rule, { zone: 'b', to: 3, state })).toMatchObject({
      outcome: 'wait',
      fact: 'leader zone a has 2 replicas and 4 pods',
      limit: 'at least 4',
    });
    const missing = { ...sets(4), podChanges: { 'ingester-zone-a': { 3: 'missing' } } } as const;
    expect(ask(rule, { zone: 'b', to: 3, state: missing })).toMatchObject({ outcome: 'wait', limit: 'at least 4' });
  });

  it('is skipped for other zones', () => {
    expect(ask(rule)).toEqual(skip);
    expect(ask(rule, { ...follower(4, 3), isForced: true })).toEqual(skip);
    expect(ask(rule, { ...follower(4, 3), build: adopted })).toEqual(skip);
  });
});

describe('other-zones-ready', () => {
  const rule = 'other-zones-ready';
  const prepare = { endpoint: { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' }, onFailure: 'deny' } as const;
  const ok = { rule, outcome: 'ok', fact: 'all pods of every other zone are available' };
  const skip = { rule, outcome: 'skip', fact: 'the downscale does not wait for other zones' };

  it('waits for the pods of every other zone', () => {
    expect(ask(rule)).toEqual(ok);
    expect(ask(rule, { state: down })).toEqual({ rule, outcome: 'wait', fact: 'zone c has 2 of 3 pods available', limit: 'all available' });
    expect(ask(rule, { zone: 'c', state: down })).toEqual(ok);
    expect(ask(rule, { state: down, isForced: true })).toEqual(skip);
  });

  it('checks adopted zones that prepare, by containers and status, forced or not', () => {
    const adoptedA: Given = { build: adopted, a: { prepare } };
    const broken = { podChanges: { 'ingester-zone-c': { 1: { containersReady: false } } } };
    const waits = {
      rule,
      outcome: 'wait',
      fact: 'zone c has 1 pod not ready and 0 not updated',
      limit: 'all ready and updated',
    };
    expect(ask(rule, { build: adopted, state: broken })).toEqual(skip);
    expect(ask(rule, adoptedA)).toEqual(ok);
    expect(ask(rule, { ...adoptedA, state: broken })).toEqual(waits);
    expect(ask(rule, { ...adoptedA, state: broken, isForced: true })).toEqual(waits);
    const outdated = { statefulSets: [statefulSet({ name: 'ingester-zone-c', status: { updatedReplicas: 1 } })] };
    expect(ask(rule, { ...adoptedA, state: outdated })).toEqual({ ...waits, fact: 'zone c has 0 pods not ready and 2 not updated' });
    const more = { statefulSets: [statefulSet({ name: 'ingester-zone-c', status: { replicas: 4, updatedReplicas: 3 } })] };
    expect(ask(rule, { ...adoptedA, state: more })).toMatchObject({ outcome: 'wait' });
  });
});

describe('paused', () => {
  const rule = 'paused';
  const paused = { intents: [intent({ action: 'pause' })] };
  it('applies to the agent only', () => {
    expect(ask(rule)).toEqual({ rule, outcome: 'ok', fact: 'no pause applies' });
    expect(ask(rule, { state: paused })).toMatchObject({ outcome: 'wait', fact: 'the group is paused by kim' });
    expect(ask(rule, { state: { intents: [intent({ action: 'pause', zone: 'b' })] } })).toMatchObject({ outcome: 'ok' });
    expect(ask(rule, { state: paused, asker: 'admission' })).toEqual({ rule, outcome: 'skip', fact: 'a pause blocks only the agent' });
  });
});

describe('replicas-owned', () => {
  const rule = 'replicas-owned';
  const source = line(3);
  const mirror = { kind: 'mirror', resourceKind: 'ReplicaTemplate', name: 'ingester' } as ReplicasDefinition;
  const others: Given = { asker: 'admission' };
  const claim: Claim = { verb: 'scaleDown', zone: 'a', uid: 'uid-ingester-zone-a', from: 3, to: 2, atMs: kitNowMs };
  const announced = (to: number, verb: Claim['verb'] = 'scaleDown') => ({ ledgers: [ledgerOf({ claims: [{ ...claim, to, verb }] })] });

  it.each<[string, Given, string, string]>([
    ['lets zones that are scaled directly be scaled', others, 'ok', 'the replicas are written directly'],
    ['sends whoever scales a follower to its leader', { ...others, zone: 'b' }, 'no', 'zone b follows zone a; scale zone a instead'],
    [
      'names the group that sets the replicas of the leader if a follower is scaled',
      { ...others, zone: 'b', a: { replicas: { kind: 'count', count: 3 } } },
      'no',
      'zone b follows zone a; scale RolloutGroup ingester instead',
    ],
    [
      'names the group if a member is scaled by hand',
      { ...others, a: { replicas: { kind: 'count', count: 3 } } },
      'no',
      'the group sets the replicas; scale RolloutGroup ingester instead',
    ],
    [
      'names the mirrored object if a member is scaled',
      { ...others, a: { replicas: mirror } },
      'no',
      'the replicas are mirrored; scale ReplicaTemplate ingester instead',
    ],
    [
      'lets through what the agent announced',
      { ...others, a: { replicas: mirror }, state: announced(2) },
      'ok',
      'the agent opened a claim for this scale-down',
    ],
  ])('%s', (_name, given, outcome, fact) => {
    expect(ask(rule, given)).toEqual({ rule, outcome, fact, source });
  });

  it('permits only a claimed downscale', () => {
    expect(ask(rule, { ...others, a: { replicas: mirror }, state: announced(1) })).toMatchObject({ outcome: 'no' });
    expect(ask(rule, { ...others, a: { replicas: mirror }, state: announced(2, 'evictPod') })).toMatchObject({ outcome: 'no' });
  });

  it('does not apply to the agent and to adopted groups', () => {
    const skip = { rule, outcome: 'skip', fact: 'the group does not own the replicas' };
    expect(ask(rule, { a: { replicas: mirror } })).toEqual(skip);
    expect(ask(rule, { ...others, a: { replicas: mirror }, build: adopted })).toEqual(skip);
  });
});

describe('zone-gap', () => {
  it('is evaluated as in the test of its file', () => {
    const state = { ledgers: [ledgerOf({ downscales: [{ zone: 'b', atMs: ago(minuteMs), from: 4, to: 3 }] })] };
    expect(ask('zone-gap', { a: { betweenZonesMs: hourMs }, state })).toMatchObject({ outcome: 'wait', limit: '1h' });
  });
});
