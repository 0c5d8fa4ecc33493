import { describe, expect, it } from 'vitest';
import { digestOfRule, digestOfWaves } from '../../../engine/run/requests.ts';
import { claimEndMs } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { adopted, gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { ago, exception, freeze, hourMs, intent, ledgerOf, minuteMs, policy, policyRule, runOf, updatedPods } from '../../kit/questions.ts';
import { blockedSteps, podsIn, replacedPods, roll } from '../../kit/rolls.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const native = group();
const unready = { isReady: false, readyChangedMs: ago(minuteMs) };

describe('a wave', () => {
  const approved = group({
    rollout: { waves: [wave('canary', ['a'], { amount: { pods: 2 }, before: { approval: { count: 1, from: [] }, gates: [] } })] },
    sources: {},
  });

  it('waits for approval before its first pod, and before the next pod only if the waves have changed since', () => {
    expect(blockedSteps(roll(approved, runOf()))).toEqual(['roll/a wait: approval']);
    const digest = digestOfWaves(approved);
    const given = roll(approved, runOf(), { intents: [intent({ wave: 'canary', digest })] });
    expect([replacedPods(given), given.run?.waves]).toEqual(['a-2', digest]);
    const begun = runOf({ openZone: 'a', lastDisruptionMs: ago(30 * minuteMs), waves: digest });
    const next = podsIn({ a: { 2: { revision: newRevision } } });
    expect(replacedPods(roll(approved, begun, next))).toBe('a-1');
    const changed = { ...begun, waves: 'd'.repeat(32) };
    expect(blockedSteps(roll(approved, changed, next))).toEqual(['roll/a wait: approval']);
    const again = roll(approved, changed, { ...next, intents: [intent({ wave: 'canary', digest })] });
    expect([replacedPods(again), again.run?.waves]).toEqual(['a-1', digest]);
    expect(roll(group(), runOf()).run?.waves).toBeUndefined();
    const before = runOf({ lastDisruptionMs: ago(hourMs) - 1, startedMs: ago(2 * hourMs) });
    expect(blockedSteps(roll(approved, before))).toEqual(['roll/a wait: approval']);
  });

  it('returns to the first wave without its pods if the waves changed since the last replacement', () => {
    const waves = [wave('first', ['a']), wave('second', ['b']), wave('third', ['c'])];
    const ordered = group({ rollout: { waves }, sources: {} });
    const run = runOf({ wave: 2, lastDisruptionMs: ago(minuteMs), waves: digestOfWaves(ordered) });
    const updated = podsIn({ a: updatedPods() });
    expect(replacedPods(roll(ordered, run, updated))).toBe('c-2');
    const changed = roll(ordered, { ...run, waves: 'd'.repeat(32) }, updated);
    expect([replacedPods(changed), changed.run?.wave, changed.run?.waves]).toEqual(['b-2', 1, digestOfWaves(ordered)]);
  });

  it('records the waves when it enters one, so that a change counts also before its first pod', () => {
    const approval = { count: 1, from: [] };
    const asking = group({
      rollout: { waves: [wave('first', ['a']), wave('second', ['b', 'c'], { before: { approval, gates: [] } })] },
      sources: {},
    });
    const entered = roll(asking, runOf(), podsIn({ a: updatedPods() }));
    expect([blockedSteps(entered), entered.run?.wave, entered.run?.waves]).toEqual([['roll/b wait: approval'], 1, digestOfWaves(asking)]);
  });

  it('waits for the approval of a wave that adds no pod before the next wave', () => {
    const approval = { count: 1, from: [] };
    const waves = [
      wave('canary', ['a'], { amount: { pods: 1 } }),
      wave('mid', ['a'], { amount: { percent: 10 }, before: { approval, gates: [] } }),
      wave('rest', ['a', 'b', 'c']),
    ];
    const empty = group({ rollout: { waves }, sources: {} });
    const run = runOf({ openZone: 'a', lastDisruptionMs: ago(minuteMs) });
    const canary = podsIn({ a: { 2: { revision: newRevision } } });
    const asked = roll(empty, run, canary);
    expect([blockedSteps(asked), asked.run?.wave]).toEqual([['after/mid wait: approval'], 1]);
    const intents = [intent({ wave: 'mid', digest: digestOfWaves(empty) })];
    expect(replacedPods(roll(empty, asked.run ?? run, { ...canary, intents }))).toBe('a-1');
  });

  it('waits for zones that return to their earlier template, and then waits for approval before its first pod', () => {
    const waves = [wave('canary', ['a'], { before: { approval: { count: 1, from: [] }, gates: [] } }), wave('rest', ['b', 'c'])];
    const careful = (skipOnRollback: boolean) => group({ rollout: { waves, skipOnRollback }, sources: {} });
    const statefulSets = ['a', 'b', 'c'].map((zone) =>
      outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...(zone === 'c' ? { status: { updateRevision: oldRevision } } : {}) }),
    );
    const updated = podsIn({ a: updatedPods(), c: { 1: { revision: newRevision }, 2: { revision: newRevision } } });
    const origin = { cause: 'release 2', commit: 'c2' };
    const run = runOf({ wave: 1, openZone: 'c', lastDisruptionMs: ago(minuteMs), origin });
    expect(blockedSteps(roll(careful(false), run, { ...updated, statefulSets }))).toEqual(['roll/b act: ']);
    const first = roll(careful(true), run, { ...updated, statefulSets });
    expect([replacedPods(first), first.run?.returning, first.run?.wave, first.run?.kind]).toEqual(['c-2', ['c'], 0, 'rollback']);
    // A stuck pod of another zone is repaired meanwhile, but only with the approval that its own wave needs.
    const stuck = { ...unready, waitingReasons: ['CrashLoopBackOff'] };
    const broken = roll(careful(true), first.run, { ...podsIn({ b: { 0: stuck }, c: { 1: { revision: newRevision } } }), statefulSets });
    expect(blockedSteps(broken)).toEqual(['roll/b wait: approval']);
    const planned = { policies: [policy({ rules: [policyRule({ effect: 'requireApprovedPlan' })] })] };
    const unplanned = roll(careful(true), first.run, {
      ...podsIn({ b: { 0: stuck }, c: { 1: { revision: newRevision } } }),
      ...planned,
      statefulSets,
    });
    expect(blockedSteps(unplanned)).toEqual(['roll/b wait: approval safety/rule']);
    const back = roll(careful(true), first.run, { ...podsIn({}), statefulSets });
    expect([blockedSteps(back), back.run?.outcome]).toEqual([['after/return wait: zones-returned'], 'completed']);
    const next = roll(careful(true), back.run, { ...podsIn({}), statefulSets });
    expect(blockedSteps(next)).toEqual(['roll/a wait: approval']);
    // While a group is not frozen, no rollout starts. The completed return is then no reason for another decision each second.
    expect(back.steps[0]?.results[0]?.earliestMs).toBe(kitNowMs + 1000);
    const partitioned = group({ rollout: { waves, strategy: 'partition' } });
    const exposed = statefulSets.map((set) => ({ ...set, updateStrategy: 'RollingUpdate' as const, partition: 0 }));
    expect(roll(partitioned, back.run, { ...podsIn({}), statefulSets: exposed }).steps).toEqual([]);
    expect(next.run).toMatchObject({ kind: 'rollout', previous: { a: oldRevision, b: oldRevision, c: oldRevision } });
    expect(next.run?.returning).toBeUndefined();
    // The other zones start over with the change of the interrupted rollout, also if the return is several runs.
    expect([first.run?.origin, back.run?.origin, next.run?.origin, next.run?.interrupted]).toEqual([
      undefined,
      undefined,
      origin,
      undefined,
    ]);
    // No pod of the other zones has the template from before the return, so no later rollback may restore that template.
    const replaced = statefulSets.map((set) =>
      set.name === 'ingester-zone-b' ? { ...set, status: { ...set.status, updateRevision: 'rev-3' } } : set,
    );
    expect(roll(careful(true), back.run, { ...podsIn({}), statefulSets: replaced }).run).toMatchObject({
      kind: 'rollout',
      target: { a: newRevision, b: 'rev-3', c: oldRevision },
      previous: { a: oldRevision, b: oldRevision, c: oldRevision },
    });
  });

  it('returns a zone first, whichever of the templates of one change is written first', () => {
    const waves = [wave('canary', ['a'], { before: { approval: { count: 1, from: [] }, gates: [] } }), wave('rest', ['b', 'c'])];
    const careful = group({ rollout: { waves }, sources: {} });
    // The last run replaced the pods of zone c alone. Now zone c returns, and the other zones get another template.
    const last = { a: oldRevision, b: oldRevision, c: newRevision };
    const run = runOf({ target: last, previous: { ...last, c: oldRevision }, outcome: 'completed', completedMs: ago(minuteMs) });
    const next = { a: newRevision, b: newRevision, c: oldRevision };
    const updated = podsIn({ c: updatedPods() });
    const setsAt = (revisions: Readonly<Record<string, string>>) =>
      Object.entries(revisions).map(([zone, updateRevision]) =>
        outdatedStatefulSet({ name: `ingester-zone-${zone}`, status: { updateRevision } }),
      );
    const orders = [
      [next],
      [{ ...last, c: oldRevision }, next],
      [{ ...next, c: newRevision }, next],
      [{ ...last, a: newRevision }, { ...next, c: newRevision }, next],
    ];
    for (const writes of orders) {
      let decided = roll(careful, run, { ...updated, statefulSets: setsAt(last) });
      for (const written of writes) decided = roll(careful, decided.run, { ...updated, statefulSets: setsAt(written) });
      expect([decided.run?.kind, decided.run?.returning, decided.run?.target]).toEqual(['rollback', ['c'], next]);
      expect(decided.run?.restores).toMatchObject({ c: oldRevision });
    }
  });

  it('stops returning some zones before the others if the group no longer requires it', () => {
    const waves = [wave('canary', ['a'], { before: { approval: { count: 1, from: [] }, gates: [] } }), wave('rest', ['b', 'c'])];
    const careful = (skipOnRollback: boolean) => group({ rollout: { waves, skipOnRollback }, sources: {} });
    const statefulSets = ['a', 'b', 'c'].map((zone) =>
      outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...(zone === 'c' ? { status: { updateRevision: oldRevision } } : {}) }),
    );
    const state = { ...podsIn({ c: { 0: { revision: newRevision }, 1: { revision: newRevision } } }), statefulSets };
    const target = { a: newRevision, b: newRevision, c: oldRevision };
    const previous = { a: oldRevision, b: oldRevision, c: newRevision };
    const interrupted = { cause: 'release 2', commit: 'c2' };
    const begun = { openZone: 'c', lastDisruptionMs: ago(minuteMs) };
    const run = runOf({ kind: 'rollback', returning: ['c'], target, previous, interrupted, ...begun });
    expect(replacedPods(roll(careful(true), run, state))).toBe('c-1');
    const inOrder = roll(careful(false), run, state);
    expect(blockedSteps(inOrder)).toEqual(['roll/a wait: approval']);
    expect(inOrder.run).toMatchObject({
      kind: 'rollout',
      target,
      previous: { ...previous, c: oldRevision },
      lastDisruptionMs: ago(minuteMs),
      // The other zones continue the rollout that the return interrupted.
      origin: interrupted,
    });
    expect(inOrder.run?.returning).toBeUndefined();
    expect(inOrder.run?.id).not.toBe(run.id);
  });

  it('requests the readings of its gates, and fails after too many failures', () => {
    const gated = group({ gates: [gate()], rollout: { waves: [wave('all', ['a'], { before: { gates: ['errors'] } })] } });
    expect(roll(gated, runOf()).wantedReadings).toEqual([{ gate: 'errors', fromMs: ago(hourMs) }]);
    const readings = [{ atMs: ago(minuteMs), result: 'value' as const, value: 9 }];
    const bad = roll(gated, runOf(), { gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings }] });
    expect(blockedSteps(bad)).toEqual(['roll/a blocked: run-failed gate']);
    expect(bad.run).toMatchObject({
      outcome: 'failed',
      failedMs: kitNowMs,
      failure: 'gate errors is 9; 0 of 1 successes in a row, 1 failed',
    });
  });

  it('contains the readings of gates in mode observe', () => {
    const gated = group({
      gates: [gate({ mode: 'observe' })],
      rollout: { waves: [wave('all', ['a', 'b', 'c'], { before: { gates: ['errors'] } })] },
    });
    expect(roll(gated, runOf())).toMatchObject({ warnings: [{ rule: 'gate', outcome: 'wait' }], actions: [{ kind: 'deletePod' }] });
  });

  it('that soaks is blocked while the agent lacks the access for the next replacement', () => {
    const soaking = group({ rollout: { waves: [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } })] } });
    const pods = podsIn({ a: { 2: { revision: newRevision } } });
    const waiting = (namespace: string) =>
      blockedSteps(roll(soaking, runOf({ openZone: 'a' }), { ...pods, missingAccess: [{ namespaces: [namespace], fact: 'it lacks it' }] }));
    expect(waiting('loki')).toEqual(['after/canary wait: soak']);
    expect(waiting('mimir')).toEqual(['after/canary blocked: agent-access soak']);
    const last = group({ rollout: { rotateBy: 'evict', waves: [wave('all', ['a', 'b', 'c'], { after: { soakMs: hourMs, gates: [] } })] } });
    const updated = podsIn({ a: updatedPods(), b: updatedPods(), c: updatedPods() });
    const atEnd = (access: object) =>
      blockedSteps(roll(last, runOf(), { ...updated, missingAccess: [{ namespaces: ['mimir'], fact: 'it lacks it', ...access }] }));
    expect(atEnd({ action: 'evictPod' })).toEqual(['after/all wait: soak']);
    expect(atEnd({})).toEqual(['after/all blocked: agent-access soak']);
  });

  it('that has its pods waits for them, and names the zones', () => {
    const canary = group({ rollout: { waves: [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } })] } });
    const starting = roll(canary, runOf({ openZone: 'a' }), podsIn({ a: { 2: { revision: newRevision, isReady: false } } }));
    expect(starting.steps).toEqual([
      {
        id: 'after/canary',
        kind: 'roll',
        zone: 'a',
        pods: [],
        outcome: 'wait',
        results: [
          { rule: 'wave-available', outcome: 'wait', fact: 'zone a has 2 of 3 pods available' },
          { rule: 'progress-deadline', outcome: 'skip', fact: 'no deadline is set' },
        ],
      },
    ]);
    expect(starting.run?.isMovable).toBe(true);
    const soaking = roll(canary, runOf({ openZone: 'a' }), podsIn({ a: { 2: { revision: newRevision } } }));
    expect(blockedSteps(soaking)).toEqual(['after/canary wait: soak']);
    expect(soaking.actions).toEqual([]);
  });

  it('names an allowed eviction that has not started, and waits until its claim ends', () => {
    const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } })];
    const canary = group({ zones: [{ name: 'a', maxUnavailable: 2 }, { name: 'b' }], rollout: { waves } });
    const claim = { verb: 'evictPod', zone: 'a', uid: 'uid-ingester-zone-a-2', ordinal: 2, atMs: ago(12_000), user: 'kim' } as const;
    const ledgers = [ledgerOf({ run: runOf({ openZone: 'a' }), claims: [claim] })];
    const answers = (pods: SnapshotOverrides) => roll(canary, undefined, { ...pods, ledgers }).steps.flatMap(({ results }) => results);
    const because = 'the eviction of ingester-zone-a-2 was allowed and may still be carried out';
    const earliestMs = claimEndMs(claim);
    const waiting = answers({});
    expect(waiting).toContainEqual({
      rule: 'pods-in-flight',
      outcome: 'wait',
      fact: `1 pod of zone a is in flight: ${because}`,
      earliestMs,
    });
    expect(waiting.find(({ rule }) => rule === 'zone-budget')?.fact).toBe(`1 of at most 2 pods unavailable in zone a: ${because}`);
    const replaced = answers(podsIn({ a: { 2: { revision: newRevision } } }));
    expect(replaced[0]).toEqual({
      rule: 'wave-available',
      outcome: 'wait',
      fact: `zone a has 2 of 3 pods available: ${because}`,
      earliestMs,
    });
  });

  it('that has its pods also waits for another zone until a stuck pod there may be replaced', () => {
    const canary = group({ rollout: { waves: [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b', 'c'])] } });
    const waits = roll(canary, runOf({ openZone: 'b' }), podsIn({ a: { 2: { revision: newRevision } }, b: { 1: unready } }));
    expect(waits.steps[0]).toMatchObject({
      id: 'after/canary',
      zone: 'b',
      results: [{ rule: 'wave-available', fact: 'zone b has 2 of 3 pods available' }, {}],
    });
    expect(waits.steps[0]?.results[0]?.earliestMs).toBeUndefined();
    const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-c', pods: { unknown: 'forbidden' } }] };
    expect(blockedSteps(roll(canary, runOf(), { ...unread, ...podsIn({ a: { 2: { revision: newRevision } } }) }))).toEqual([
      'after/canary wait: wave-available',
    ]);
  });
});

describe('a run that fails', () => {
  const timed = group({ rollout: { deadlines: { progressMs: 20 * minuteMs } } });

  it('fails while a pod starts, within a wave and after it', () => {
    const within = roll(
      timed,
      runOf({ openZone: 'a', lastDisruptionMs: ago(20 * minuteMs), inFlightSinceMs: ago(20 * minuteMs) }),
      podsIn({ a: { 2: { revision: newRevision, ...unready } } }),
    );
    expect(within.run).toMatchObject({ outcome: 'failed', failure: 'no pod became available for 20m', failedMs: kitNowMs });
    expect(blockedSteps(within)).toEqual(['roll/a blocked: run-failed zone-budget']);
    const canary = { ...timed, rollout: { ...timed.rollout, waves: [wave('canary', ['a'], { amount: { pods: 1 } })] } };
    const after = roll(
      canary,
      runOf({ openZone: 'a', lastDisruptionMs: ago(20 * minuteMs), inFlightSinceMs: ago(20 * minuteMs) }),
      podsIn({ a: { 2: { revision: newRevision, ...unready } } }),
    );
    expect(after.run).toMatchObject({ outcome: 'failed', failure: 'no pod became available for 20m' });
    expect(blockedSteps(after)).toEqual(['after/canary blocked: run-failed wave-available']);
  });

  it('keeps its first failure', () => {
    const failed = runOf({ outcome: 'failed', failure: 'gate errors', failedMs: ago(hourMs), lastDisruptionMs: ago(hourMs) });
    expect(roll(timed, failed, podsIn({ a: { 2: { revision: newRevision, ...unready } } })).run).toMatchObject({
      failure: 'gate errors',
      failedMs: ago(hourMs),
    });
  });
});

describe('the time in which a run can make progress', () => {
  const run = runOf({ movableMs: hourMs, movableAsOfMs: ago(10 * minuteMs), isMovable: true, openZone: 'a' });
  const closed = { policies: [policy({ windows: [freeze()] })] };
  const asking = policyRule({ effect: 'requireApproval' });
  const requiring = { policies: [policy({ rules: [asking] })] };
  const ofRule = digestOfRule(policy(), asking);
  const approval = group({
    rollout: { waves: [wave('all', ['a', 'b', 'c'], { before: { approval: { count: 1, from: [] }, gates: [] } })] },
  });

  const none = group({ zones: [{ name: 'a', maxUnavailable: 0 }, 'b', 'c'] });
  const tomorrow = { notBeforeMs: kitNowMs + 24 * hourMs, expiresMs: kitNowMs + 25 * hourMs };
  const evicting = group({ rollout: { rotateBy: 'evict' } });
  const pdb = (name: string) => ({
    namespace: 'mimir',
    name,
    selector: { matchLabels: { 'rollout-group': 'ingester' } },
    maxUnavailable: 1,
  });

  it.each<[string, GroupDefinition, SnapshotOverrides, boolean]>([
    ['goes on while pods are on their way', native, podsIn({ a: { 2: unready } }), true],
    ['goes on while another zone is not whole', native, podsIn({ b: { 2: unready } }), true],
    ['stands still outside windows', native, closed, false],
    ['stands still while somebody paused it', native, { intents: [intent({ action: 'pause' })] }, false],
    ['stands still while a wave waits for approval', approval, {}, false],
    ['stands still while no pod may go at all', none, {}, false],
    ['stands still until an exception lets one go', none, { exceptions: [exception('zone-budget', tomorrow)] }, false],
    ['goes on while two budgets over one pod refuse it', evicting, { podBudgets: [pdb('one'), pdb('two')] }, true],
    ['stands still while a policy waits for approval', native, requiring, false],
    ['goes on once a policy has its approval', native, { ...requiring, intents: [intent({ rule: 'safety/rule', digest: ofRule })] }, true],
  ])('%s', (_name, definition, overrides, isMovable) => {
    expect(roll(definition, run, overrides).run).toMatchObject({ movableMs: hourMs + 10 * minuteMs, movableAsOfMs: kitNowMs, isMovable });
  });

  it('excludes the time while the run was blocked', () => {
    expect(roll(native, { ...run, isMovable: false }).run).toMatchObject({ movableMs: hourMs, isMovable: true });
  });
});

describe('windows that close', () => {
  const closed = (inFlight: 'finishPod' | 'finishZone' | 'finishAll') => ({ policies: [policy({ windows: [freeze({ inFlight })] })] });
  const open = runOf({ openZone: 'a', lastDisruptionMs: ago(minuteMs) });
  const aHalf = podsIn({ a: { 2: { revision: newRevision } } });
  const aDone = podsIn({ a: updatedPods() });

  it.each([
    ['let the open zone be finished', closed('finishZone'), open, aHalf, 'a-1'],
    ['let no further zone begin', closed('finishZone'), open, aDone, ''],
    ['let the whole run be finished', closed('finishAll'), open, aDone, 'b-2'],
    ['let no further pod go', closed('finishPod'), open, aHalf, ''],
    ['let no run begin', closed('finishAll'), runOf(), aHalf, ''],
    [
      'let no run begin in a zone that an earlier run left open',
      closed('finishAll'),
      runOf({ openZone: 'a', lastDisruptionMs: ago(2 * hourMs) }),
      aHalf,
      '',
    ],
  ] as const)('%s', (_name, overrides, run, more, expected) => {
    expect(replacedPods(roll(native, run, { ...overrides, ...more }))).toBe(expected);
  });
});

describe('the current revision of adopted groups', () => {
  const behind = (name: string, more = {}) =>
    statefulSet({
      name: `ingester-zone-${name}`,
      ...more,
      status: { currentRevision: 'rev-0', ...('status' in more ? (more.status as object) : {}) },
    });
  const pods = {
    podChanges: Object.fromEntries(
      ['a', 'b', 'c'].map((name) => [
        `ingester-zone-${name}`,
        Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: 'rev-1' }])),
      ]),
    ),
  };
  const advanced = (
    statefulSets: ReturnType<typeof behind>[],
    overrides: SnapshotOverrides = {},
    definition = adopted(),
    isScaling = false,
  ) =>
    roll(definition, undefined, { ...pods, ...overrides, statefulSets }, isScaling).actions.map((action) =>
      action.kind === 'advanceCurrentRevision' ? action.zone : action.kind,
    );
  const all = [behind('a'), behind('b'), behind('c')];

  it('is advanced in every complete zone', () => {
    expect(advanced(all)).toEqual(['a', 'b', 'c']);
    expect(roll(adopted(), undefined, { ...pods, statefulSets: all }).actions[0]).toEqual({
      kind: 'advanceCurrentRevision',
      namespace: 'mimir',
      zone: 'a',
      statefulSet: 'ingester-zone-a',
      uid: 'uid-ingester-zone-a',
      resourceVersion: '100',
      revision: 'rev-1',
    });
  });

  it('is unchanged if it is the update revision already, and in native groups', () => {
    expect(advanced([behind('a'), statefulSet({ name: 'ingester-zone-b' }), behind('c')])).toEqual(['a', 'c']);
    expect(advanced(all, {}, native)).toEqual([]);
  });

  it('is advanced up to the first incomplete zone', () => {
    const outdated = {
      podChanges: {
        ...pods.podChanges,
        'ingester-zone-b': { 0: { revision: 'rev-0' }, 1: { revision: 'rev-1' }, 2: { revision: 'rev-1' } },
      },
    };
    expect(advanced(all, outdated)).toEqual(['a', 'deletePod']);
    const down = {
      podChanges: {
        ...pods.podChanges,
        'ingester-zone-b': { ...pods.podChanges['ingester-zone-b'], 1: { revision: 'rev-1', containersReady: false } },
      },
    };
    expect(advanced(all, down)).toEqual([]);
  });

  it('is advanced past a paused zone', () => {
    const paused = adopted({ zones: [{ name: 'a', paused: true }, 'b', 'c'] });
    expect(advanced(all, {}, paused)).toEqual(['b', 'c']);
  });

  it('is not advanced while replicas change, two zones are not ready, or a member has another strategy', () => {
    expect(advanced(all, {}, adopted(), true)).toEqual([]);
    const missing = {
      podChanges: { ...pods.podChanges, 'ingester-zone-b': { 0: 'missing' }, 'ingester-zone-c': { 0: 'missing' } },
    } as const;
    expect(advanced(all, missing)).toEqual([]);
    expect(advanced([behind('a'), behind('b'), behind('c', { updateStrategy: 'RollingUpdate' })])).toEqual([]);
  });

  it('of a zone with outdated pods is not advanced', () => {
    expect(roll(adopted({ zones: ['a'] }), undefined, { statefulSets: [outdatedStatefulSet()] }).actions.map(({ kind }) => kind)).toEqual([
      'deletePod',
    ]);
  });
});

/** Zone a of three pods, whose first wave takes one of them, with room for more in the budget. */
function firstOf(pods: number) {
  return group({
    zones: [{ name: 'a', maxUnavailable: 3 }, { name: 'b' }, { name: 'c' }],
    rollout: { waves: [wave('first', ['a'], { amount: { pods } }), wave('rest', ['a', 'b', 'c'])] },
  });
}

const open = runOf({ openZone: 'a' });

describe('a wave with pods in flight', () => {
  it('replaces no pod beyond its number while a deleted pod is not recreated', () => {
    expect(replacedPods(roll(firstOf(1), open))).toBe('a-2');
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: 'missing' } })))).toBe('');
    expect(replacedPods(roll(firstOf(2), open, podsIn({ a: { 2: 'missing' } })))).toBe('a-1');
    expect(replacedPods(roll(firstOf(2), open, podsIn({ a: { 2: 'missing', 1: 'missing' } })))).toBe('');
  });

  it('replaces no pod while a pod terminates, and no pod while its successor starts', () => {
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { isTerminating: true } } })))).toBe('');
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { revision: newRevision, isReady: false } } })))).toBe('');
  });

  it('replaces no pod while the node of the terminating pod is down', () => {
    expect(replacedPods(roll(firstOf(1), open, podsIn({ a: { 2: { isTerminating: true, nodeReady: false } } })))).toBe('');
  });
});
