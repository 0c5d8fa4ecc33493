import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { publishedDecision, samePublished } from '../../../engine/publish/decision.ts';
import { readPublished } from '../../../engine/publish/read.ts';
import { groupStatus } from '../../../engine/publish/status.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { ago, exception, freeze, hourMs, intent, ledgerOf, line, minuteMs, policy, policyRule, runOf } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const until = kitNowMs + hourMs;

/** An idle group with these circumstances. */
function idle(overrides: SnapshotOverrides = {}, definition = group({ zones: ['a', 'b'] })) {
  const snapshot = snapshotOf({ groups: [definition], ...overrides });
  const decision = decideGroup(snapshot, definition);
  return { snapshot, decision, published: publishedDecision({ group: definition, decision, snapshot, atMs: snapshot.nowMs }) };
}

function saying(action: IntentView['action'], more: Partial<IntentView> = {}): SnapshotOverrides {
  return { intents: [intent({ name: `${action}.ingester`, action, reason: 'INC-441', ...more })] };
}

function anonymous({ requestedBy: _requester, ...rest }: IntentView): IntentView {
  return rest;
}

const cancel = 'kubectl rollout-group cancel mimir/ingester';
const override = 'kubectl rollout-group override mimir/ingester --rule';

describe('a stop while no step is due', () => {
  it('ends with an approval of the rule by the user who rejected it', () => {
    const ask = policyRule({ name: 'ask', effect: 'requireApproval', approval: { count: 1, from: ['oncall'] } });
    const { decision } = idle({ policies: [policy({ rules: [ask] })], ...saying('reject', { rule: 'safety/ask', expiresMs: until }) });
    expect(decision.stops.map(({ alternatives }) => alternatives)).toEqual([
      ['kubectl rollout-group approve mimir/ingester --rule safety/ask (as kim)'],
    ]);
  });

  it('offers the retry and the rollback of a failed run only while the agent runs, and the undo only if every StatefulSet exists', () => {
    const definition = group({ zones: ['a', 'b'], rollout: { strategy: 'pinned' } });
    const ledgers = [ledgerOf({ run: runOf({ outcome: 'failed', target: { a: newRevision, b: newRevision } }) })];
    const statefulSets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, updateStrategy: 'RollingUpdate' }));
    const waysOf = (overrides: SnapshotOverrides) =>
      idle({ ledgers, statefulSets, ...overrides }, definition).decision.stops.flatMap(({ endsWith, alternatives = [] }) => [
        endsWith,
        ...alternatives,
      ]);
    const [retry, rollback, ...others] = waysOf({});
    expect([retry, rollback]).toEqual(
      ['retry mimir/ingester', 'abort mimir/ingester --rollback'].map((verb) => `kubectl rollout-group ${verb}`),
    );
    expect(waysOf({ unattended: [{ namespace: 'mimir', group: 'ingester', fact: 'agent not running' }] })).toEqual(others);
    // An undo writes the templates of all StatefulSets.
    const [undo, ...template] = others;
    expect([undo, waysOf({ absent: ['ingester-zone-a'] })]).toEqual([
      'kubectl rollout-group undo mimir/ingester',
      [retry, rollback, ...template],
    ]);
  });

  it.each([
    ['pause', saying('pause', { expiresMs: until }), 'the group is paused by kim (INC-441)', 'kubectl rollout-group resume mimir/ingester'],
    [
      'pause of a zone',
      saying('pause', { zone: 'a', expiresMs: until }),
      'zone a is paused by kim (INC-441)',
      'kubectl rollout-group resume mimir/ingester --zone a',
    ],
    [
      'abort without a verified requester',
      { intents: [anonymous(intent({ action: 'abort', runId: 'run-1', expiresMs: until }))] },
      'the group is paused by an abort without a verified requester',
      'kubectl rollout-group resume mimir/ingester',
    ],
    ['protection', saying('protect', { expiresMs: until }), 'kim (INC-441) protects the group', `${cancel} protect.ingester`],
    [
      'protection of pods',
      saying('protect', { zone: 'b', ordinals: [0, 1], expiresMs: until }),
      'kim (INC-441) protects pods 0-1 of zone b',
      `${cancel} protect.ingester`,
    ],
    [
      'window',
      { policies: [policy({ windows: [freeze()] })] },
      'a deny window blocks rollout',
      `${override} window --duration 1h --reason REASON --yes`,
    ],
  ])('is in the decision, in the published decision and in a condition: %s', (_, overrides, fact, endsWith) => {
    const { decision, published } = idle(overrides);
    expect([decision.phase, decision.outcome, decision.waits]).toEqual(['Done', 'done', []]);
    expect(decision.stops).toMatchObject([{ fact, untilMs: until, isBlocking: true, endsWith }]);
    expect(decision.wakeAtMs).toBe(until);
    expect(readPublished(JSON.stringify(published))).toMatchObject({ stops: [{ fact, endsWith }] });
    const { conditions } = groupStatus(published);
    expect(conditions.find(({ type }) => type === 'Stopped')).toMatchObject({
      status: 'True',
      message: expect.stringMatching(
        new RegExp(
          `^${fact.replace(/[()]/g, '\\$&')}.* ${fact.includes('window') ? 'windows allow the action from' : 'until'} 2026-03-02T13:00:00Z. To end it: ${endsWith}$`,
        ),
      ),
    });
    expect(samePublished(published, idle().published)).toBe(false);
  });

  it('is a hold or a denial by policy, but not a missing approval, an unknown or a false condition', () => {
    const rules = [
      policyRule({ name: 'moves', effect: 'hold', message: 'storage moves' }),
      policyRule({ name: 'never', effect: 'deny' }),
      policyRule({ name: 'ask', effect: 'requireApproval' }),
      policyRule({ name: 'unread', effect: 'hold', when: { '>': [{ var: 'inputs.metrics.queue' }, 1] } }),
      policyRule({ name: 'other', effect: 'hold', when: { '==': [{ var: 'target.name' }, 'other'] } }),
    ];
    const { stops } = idle({ policies: [policy({ rules })] }).decision;
    expect(stops.map(({ rule, fact, zones }) => [rule, fact, zones])).toEqual([
      ['safety/moves', 'storage moves', ['a', 'b']],
      ['safety/never', 'the rule always applies', ['a', 'b']],
    ]);
  });

  it('ends with an edit if no exception may end it', () => {
    const rules = [
      policyRule({ name: 'moves', effect: 'hold', onUnknown: 'requireApproval', source: { object: 'RolloutPolicy mimir/safety' } }),
    ];
    const { stops } = idle({ policies: [policy({ rules })] }).decision;
    expect(stops).toMatchObject([
      { rule: 'safety/moves', endsWith: 'kubectl edit rolloutpolicy safety -n mimir, and change the rule safety/moves' },
    ]);
  });

  it('ends with another exception if the current one does not allow enough', () => {
    const small = exception('window', { name: 'small', allow: { podsAtMost: 0 } });
    const { stops } = idle({ policies: [policy({ windows: [freeze()] })], exceptions: [small] }).decision;
    expect(stops).toMatchObject([{ endsWith: `${cancel} small && ${override} window --duration 1h --reason REASON --yes` }]);
  });

  it('does not exist while an exception is in force', () => {
    const overrides = { policies: [policy({ windows: [freeze()] })] };
    const { stops, permitted } = idle({ ...overrides, exceptions: [exception('window')] }).decision;
    expect([stops, permitted]).toMatchObject([[], [{ rule: 'window', exception: 'exception-1' }]]);
  });

  it.each([
    ['finishPod', ['a deny window blocks rollout', 'the storage moves']],
    ['finishAll', ['the storage moves']],
  ] as const)('is in the decision during a soak, but a window that allows the run to finish is not: %s', (inFlight, facts) => {
    const soaked = group({
      zones: ['a', 'b'],
      rollout: { waves: [wave('first', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['b'])] },
    });
    const rules = [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })];
    const target = { a: newRevision, b: newRevision };
    const soaking = {
      statefulSets: [
        statefulSet({ name: 'ingester-zone-a', status: { currentRevision: newRevision, updateRevision: newRevision } }),
        outdatedStatefulSet({ name: 'ingester-zone-b' }),
      ],
      ledgers: [ledgerOf({ run: runOf({ target, lastDisruptionMs: ago(minuteMs), waveAvailableMs: ago(minuteMs) }) })],
      policies: [policy({ windows: [freeze({ inFlight })], rules })],
    };
    const { decision } = idle(soaking, soaked);
    expect([decision.waits.map(({ rule }) => rule), decision.stops.map(({ fact }) => fact)]).toEqual([['soak'], facts]);
    const permitted = idle({ ...soaking, exceptions: [exception('safety/moves')] }, soaked).decision.permitted;
    expect(permitted).toMatchObject([{ rule: 'safety/moves', exception: 'exception-1' }]);
  });

  describe('of a zone that follows later', () => {
    const abc = ['a', 'b', 'c'];
    const before = { gates: [], approval: { from: [], count: 1 } };
    const definition = group({ zones: abc, rollout: { waves: [wave('first', ['a']), wave('rest', ['b', 'c'], { before })] } });
    const done = { currentRevision: newRevision, updateRevision: newRevision };
    const sets = (...updated: readonly string[]) =>
      abc.map((zone) => {
        const set = { name: `ingester-zone-${zone}` };
        return updated.includes(zone) ? statefulSet({ ...set, status: done }) : outdatedStatefulSet(set);
      });
    const run = runOf({ wave: 1, lastDisruptionMs: ago(minuteMs), waveStartedMs: ago(minuteMs) });
    const approval = intent({ wave: 'rest', runId: run.id, digest: digestOfWaves(definition) });
    const states = {
      idle: { statefulSets: sets(...abc) },
      'zone a rolls': { statefulSets: sets(), ledgers: [ledgerOf({ run: runOf({ lastDisruptionMs: ago(minuteMs), openZone: 'a' }) })] },
      'wave rest waits': { statefulSets: sets('a'), ledgers: [ledgerOf({ run })] },
      'zone b rolls': { statefulSets: sets('a'), ledgers: [ledgerOf({ run })], intents: [approval] },
    };
    const inC = { '==': [{ var: 'target.zone' }, 'c'] };
    const under = (state: keyof typeof states, overrides: SnapshotOverrides) =>
      idle({ ...states[state], ...overrides }, definition).decision;

    it.each(Object.keys(states) as (keyof typeof states)[])('is a rule that progress does not change: %s', (state) => {
      const rules = [
        policyRule({ name: 'never', effect: 'deny', when: inC }),
        policyRule({ name: 'moves', effect: 'hold', when: inC }),
        policyRule({ name: 'early', effect: 'deny', when: { and: [inC, { '<': [{ var: 'now' }, until] }] } }),
      ];
      const { stops } = under(state, { policies: [policy({ rules })] });
      expect(stops.map(({ rule, zones, untilMs }) => [rule, zones, untilMs])).toEqual([
        ['safety/never', ['c'], undefined],
        ['safety/moves', ['c'], undefined],
        ['safety/early', ['c'], until],
      ]);
      const allowed = under(state, {
        policies: [policy({ rules: rules.slice(0, 1) })],
        exceptions: [exception('safety/never', { zone: 'c' })],
      });
      expect([allowed.stops, allowed.permitted]).toMatchObject([[], [{ rule: 'safety/never', exception: 'exception-1' }]]);
    });

    it.each(['zone a rolls', 'wave rest waits', 'zone b rolls'] as const)(
      'is not a rule that progress ends, a missing approval or a window that allows the run to finish: %s',
      (state) => {
        const rules = [
          policyRule({ name: 'order', effect: 'deny', when: { and: [inC, { '<': [{ var: 'group.zones.0.updated' }, 3] }] } }),
          policyRule({ name: 'phase', effect: 'hold', when: { and: [inC, { '==': [{ var: 'group.phase' }, 'Rolling'] }] } }),
          policyRule({ name: 'ask', effect: 'requireApproval', when: inC }),
        ];
        expect(under(state, { policies: [policy({ rules, windows: [freeze({ inFlight: 'finishAll' })] })] }).stops).toEqual([]);
      },
    );

    it('is a rejection of a policy rule in this run', () => {
      const rules = [policyRule({ name: 'ask', effect: 'requireApproval', approval: { from: [], count: 1 }, when: inC })];
      const intents = [intent({ name: 'no', action: 'reject', rule: 'safety/ask', runId: 'run-1', reason: 'INC-441' })];
      expect(under('wave rest waits', { policies: [policy({ rules })], intents }).stops).toMatchObject([
        { rule: 'safety/ask', zones: ['c'], endsWith: `${cancel} no` },
      ]);
    });
  });

  it('by settings names the location of the setting', () => {
    const sources = { 'zones.a.paused': line(3), 'zones.b.paused': line(4) };
    const paused = group({ zones: [{ name: 'a', paused: true }, 'b'], sources });
    expect(idle({}, paused).decision.stops).toMatchObject([
      { rule: 'paused', fact: 'zone a is paused by its settings', zones: ['a'], endsWith: expect.stringContaining(':3, then apply it') },
    ]);
    const object = group({
      zones: [{ name: 'a', paused: true }],
      sources: { 'zones.a.paused': { object: 'RolloutGroup mimir/ingester' } },
    });
    expect(idle({}, object).decision.stops).toMatchObject([
      { endsWith: 'kubectl edit rolloutgroup ingester -n mimir, and set paused: false' },
    ]);
    const places = Object.fromEntries(
      ['a', 'b'].map((zone) => [`zones.${zone}.paused`, { object: `StatefulSet mimir/ingester-zone-${zone}` }]),
    );
    const adopted = group({ zones: ['a', 'b'].map((name) => ({ name, paused: true })), sources: places });
    expect(idle({}, adopted).decision.stops.map(({ zones, endsWith }) => [zones, endsWith])).toEqual([
      [['a'], 'kubectl edit statefulset ingester-zone-a -n mimir, and set paused: false'],
      [['b'], 'kubectl edit statefulset ingester-zone-b -n mimir, and set paused: false'],
    ]);
  });

  it('has its zones in the order of the group', () => {
    const undone = ['b', 'a'].map((zone) => ({ zone, revision: 'rev-9' }));
    const order = idle(saying('undo', { undone })).decision.stops.map(({ zones }) => zones);
    expect(order).toEqual([['a', 'b']]);
  });

  it('by undo blocks only when the revision is applied again', () => {
    const undone = (revision: string) => saying('undo', { undone: [{ zone: 'a', revision }] });
    const fact = (revision: string) => `kim (INC-441) undid the revisions ${revision} of zone a`;
    expect(idle(undone('rev-9')).decision.stops).toMatchObject([{ rule: 'undone', fact: fact('rev-9'), isBlocking: false }]);
    const { snapshot } = idle();
    const current = snapshot.statefulSets[0]?.status.updateRevision ?? '';
    expect(idle(undone(current)).decision.stops).toMatchObject([{ fact: fact(current), isBlocking: true, zones: ['a'] }]);
    // A cancel rolls the undone revision out, so the stop also names the ways that do not.
    const waysOf = (...zones: readonly string[]) =>
      idle(saying('undo', { undone: zones.map((zone) => ({ zone, revision: current })) })).decision.stops.map(
        ({ alternatives }) => alternatives,
      );
    const again = 'kubectl rollout-group undo mimir/ingester';
    expect(waysOf('a', 'b')).toEqual([[again, 'apply another pod template']]);
    expect(waysOf('a')).toEqual([[`${again} --zone a`, 'apply another pod template']]);
    expect(idle(undone('rev-9')).decision.stops[0]).not.toHaveProperty('alternatives');
    // A zone that has another template is not blocked.
    const both = saying('undo', {
      undone: [
        { zone: 'a', revision: current },
        { zone: 'b', revision: 'rev-9' },
      ],
    });
    expect(idle(both).decision.stops).toMatchObject([{ isBlocking: true, zones: ['a'] }]);
    // The undo returned zone a to its present template, or a later rollout gave the zone another one.
    const overtaken = (...to: readonly [a: string, b?: string]) => {
      const undone = to.map((revision, index) => ({ zone: ['a', 'b'][index] ?? '', revision: 'rev-9', to: revision ?? '' }));
      // An undo to a template from before the previous one is a rollout, and so are its other returns with skipOnRollback: false.
      const times = { startedMs: ago(minuteMs), completedMs: ago(minuteMs) };
      const run = runOf({ outcome: 'completed', ...times, target: { a: current, b: current }, previous: { a: 'rev-9' } });
      const by = { user: 'kim', groups: [], atMs: ago(hourMs) };
      return idle({ ...saying('undo', { undone, requestedBy: by }), ledgers: [ledgerOf({ run })] }).decision.stops;
    };
    expect(overtaken(current)).toMatchObject([{ rule: 'undone', isBlocking: false }]);
    expect(overtaken('rev-8', current)).toMatchObject([{ rule: 'undone', isBlocking: false }]);
    expect(overtaken('rev-8')).toEqual([]);
    expect(overtaken('rev-8', 'rev-8')).toEqual([]);
  });

  it('is the first of several if it blocks the next step', () => {
    const protect = (zone: string, ordinal: number) =>
      intent({ name: `protect.${9 - ordinal}.${zone}`, action: 'protect', zone, ordinals: [ordinal], reason: 'INC-441' });
    const statefulSets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, replicas: 1 }));
    const { stops } = idle({ statefulSets, intents: [protect('b', 7), protect('a', 7), protect('a', 0)] }).decision;
    expect(stops.map(({ fact }) => fact.replace(/.* protects /, ''))).toEqual(['a-0', 'a-7', 'b-7']);
    // Other pods are outdated, and these protections stop no step.
    expect(stops.map(({ isBlocking }) => isBlocking)).toEqual([true, false, false]);
  });

  it('blocks only if the paused or protected zone has outdated pods, or no zone has any', () => {
    const statefulSets = [statefulSet({ name: 'ingester-zone-a' }), outdatedStatefulSet({ name: 'ingester-zone-b' })];
    const blocking = (action: 'pause' | 'protect', zone: string, given: SnapshotOverrides = { statefulSets }) =>
      idle({ ...given, intents: [intent({ action, zone })] }).decision.stops.map(({ isBlocking }) => isBlocking);
    for (const action of ['pause', 'protect'] as const) {
      expect([blocking(action, 'a'), blocking(action, 'b'), blocking(action, 'a', {})]).toEqual([[false], [true], [true]]);
    }
  });

  it('blocks if the pause keeps its zone from removing replicas, also if only other zones have outdated pods', () => {
    const counted = group({ zones: ['a', { name: 'b', replicas: { kind: 'count', count: 2 } }] });
    const statefulSets = [outdatedStatefulSet({ name: 'ingester-zone-a' }), statefulSet({ name: 'ingester-zone-b' })];
    const blocking = (zone: string) =>
      idle({ statefulSets, intents: [intent({ action: 'pause', zone })] }, counted).decision.stops.map(({ isBlocking }) => isBlocking);
    expect([blocking('b'), blocking('a')]).toEqual([[true], [true]]);
  });

  it('names the pods that the StatefulSet controller still replaces, because the partition exposes them', () => {
    const lowered = { replicas: 3, updateStrategy: 'RollingUpdate', partition: 1 } as const;
    const statefulSets = ['a', 'b'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...lowered }));
    const facts = (given: SnapshotOverrides) =>
      idle({ statefulSets, ...given }, group({ zones: ['a', 'b'], rollout: { strategy: 'partition' } })).decision.stops.map(
        ({ fact }) => fact,
      );
    const exposed = (names: string, they: string) => `; the StatefulSet controller still replaces ${names}: the partition exposes ${they}`;
    expect(facts(saying('protect', { zone: 'b', ordinals: [0, 1] }))).toEqual([
      `kim (INC-441) protects pods 0-1 of zone b${exposed('ingester-zone-b-1', 'it')}`,
    ]);
    expect(facts(saying('pause', { zone: 'a' }))).toEqual([
      `zone a is paused by kim (INC-441)${exposed('ingester-zone-a-1 and ingester-zone-a-2', 'them')}`,
    ]);
  });

  it('wakes the group when it begins, and ends with the request', () => {
    const closing = freeze({ ranges: [{ fromMs: until, toMs: until + hourMs }] });
    const { stops, wakeAtMs } = idle({ policies: [policy({ windows: [closing] })] }).decision;
    expect([stops, wakeAtMs]).toEqual([[], until]);
    expect(idle({ ...saying('pause', { expiresMs: ago(minuteMs) }) }).decision.stops).toEqual([]);
  });
});
