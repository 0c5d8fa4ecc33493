// Pods that a scale-up starts at a template that the rollout may not bring to them: the judge, the decision, the plan and `scale` agree.
import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { judge } from '../../../engine/judge/judge.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { forecastScale } from '../../../engine/plan/estimate.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import { podsNamed, type Snapshot, type StatefulSetView } from '../../../engine/snapshot.ts';
import { createWorld, step } from '../../../engine/world/world.ts';
import type { WaveDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { defined } from '../../../policies/values/defined.ts';
import { type GroupOverrides, gate, group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, type StatefulSetOverrides } from '../../kit/objects.ts';
import { freeze, hourMs, intent, ledgerOf, policy, policyRule, type RunFields, runOf, updatedPods } from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

type Strategy = 'onDelete' | 'partition' | 'pinned';
const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 24 * hourMs, gates: [] } }), wave('rest', ['a', 'b'])];
const failed = { outcome: 'failed', failure: 'no pod became available for 20m' } as const;
const images = { ingester: 'grafana/mimir:2.17.2' };

interface State extends SnapshotOverrides {
  readonly strategy?: Strategy;
  readonly run?: RunFields;
  readonly set?: StatefulSetOverrides;
  readonly scaled?: GroupOverrides['zones'];
  /** Replaces the waves of the group. */
  readonly order?: readonly WaveDefinition[];
}

/** Two zones of three pods with a new template. The highest pod of zone a is updated. */
function stateOf({ strategy = 'onDelete', run, set, scaled = ['a', 'b'], order = waves, ...overrides }: State) {
  const one = group({ zones: scaled, rollout: { strategy, waves: order }, gates: [gate()] });
  const partition = strategy === 'partition' ? 2 : holdingPartition;
  const update = strategy === 'onDelete' ? {} : { updateStrategy: 'RollingUpdate' as const, partition };
  const statefulSets = one.zones.map(({ statefulSet: name }) => outdatedStatefulSet({ name, images, ...update, ...set }));
  const target = { a: newRevision, b: newRevision };
  const ledgers = run === undefined ? [] : [ledgerOf({ run: runOf({ target, previous: { a: oldRevision, b: oldRevision }, ...run }) })];
  const pods = podsIn({ a: { 2: { revision: newRevision } } });
  return { one, snapshot: snapshotOf({ groups: [one], statefulSets, ledgers, ...pods, ...overrides }) };
}

const scale = { kind: 'scale', namespace: 'mimir', statefulSet: 'ingester-zone-a', from: 3, to: 5, via: 'scale', dryRun: true } as const;
const warned = (state: State) => judge(stateOf(state).snapshot, scale).warnings;
const start = `the scale-up of zone a to 5 starts pods 3-4 of ingester-zone-a at update revision ${newRevision} (grafana/mimir:2.17.2)`;

describe('a scale-up by hand', () => {
  it.each<Strategy>(['onDelete', 'partition'])('under %s warns that new pods start at the revision of a failed run', (strategy) => {
    expect(warned({ strategy, run: failed })).toEqual([`${start}, although the run failed: ${failed.failure}`]);
  });

  it('warns of a stop, and of pods before their wave', () => {
    const pause = { intents: [intent({ action: 'pause', name: 'pause.ingester' })] };
    expect(warned({ run: { wave: 1 }, ...pause })).toEqual([`${start}, although the group is paused by kim`]);
    expect(warned({ run: { wave: 0 } })).toEqual([`${start}, before their wave`]);
  });

  it('warns of a pause also in a zone without pods, but not if its template is not new', () => {
    const { snapshot } = stateOf({ intents: [intent({ action: 'pause', name: 'pause.ingester' })] });
    const empty = (status: Partial<StatefulSetView['status']> = {}): Snapshot => ({
      ...snapshot,
      statefulSets: snapshot.statefulSets.map((set) =>
        set.name === scale.statefulSet ? { ...set, replicas: 0, status: { ...set.status, replicas: 0, ...status } } : set,
      ),
      pods: snapshot.pods.map((list) => (list.statefulSet === scale.statefulSet ? { ...list, pods: [] } : list)),
    });
    const text = `the scale-up of zone a to 3 starts pods 0-2 of ingester-zone-a at update revision ${newRevision} (grafana/mimir:2.17.2)`;
    const up = { ...scale, from: 0, to: 3 };
    expect(judge(empty(), up).warnings).toEqual([`${text}, although the group is paused by kim`]);
    expect(judge(empty({ currentRevision: newRevision }), up).warnings).toEqual([]);
  });

  it.each<[string, State]>([
    ['the wave includes the pods', { run: { wave: 1 } }],
    ['no rollout is open', { set: { status: { updateRevision: oldRevision } }, pods: [] }],
    ['pins and the partition keep the earlier revision', { strategy: 'pinned', run: failed }],
    ['the partition holds new ordinals back', { strategy: 'partition', run: failed, set: { partition: holdingPartition } }],
    [
      'a protection is of other pods',
      { run: { wave: 1 }, intents: [intent({ action: 'protect', name: 'protect.a-0', zone: 'a', ordinals: [0] })] },
    ],
  ])('has no warning if %s', (_why, state) => {
    expect(warned(state)).toEqual([]);
  });

  it('warns under pinned in a zone that the failed run has updated completely', () => {
    const status = { currentRevision: newRevision, updateRevision: newRevision };
    const pods = podsIn({ a: updatedPods() });
    expect(warned({ strategy: 'pinned', run: failed, set: { status }, ...pods })).toEqual([
      `${start}, although the run failed: ${failed.failure}`,
    ]);
  });

  it('does not build billions of pods', () => {
    const { snapshot } = stateOf({ run: failed });
    expect(judge(snapshot, { ...scale, to: 2_000_000_000 }).warnings).toEqual([]);
    expect(judge(snapshot, { ...scale, from: -2_000_000_000 }).warnings).toEqual([]);
  });

  it.each<Strategy>(['onDelete', 'partition', 'pinned'])('names the revision that the controller gives the pods under %s', (strategy) => {
    const state: State = { strategy, run: failed };
    const { snapshot } = stateOf(state);
    const world = createWorld(snapshot, defaultAssumptions, 'p50');
    const after = step(world, { kind: 'setReplicas', namespace: 'mimir', statefulSet: 'ingester-zone-a', replicas: 5 });
    const pods = podsNamed(after.snapshot, 'mimir', 'ingester-zone-a') ?? [];
    const made = 'unknown' in pods ? [] : pods.filter(({ ordinal }) => ordinal > 2).map(({ revision }) => revision === newRevision);
    const isWarned = warned(state).length > 0;
    expect(made).toEqual([isWarned, isWarned]);
  });
});

describe('a scale-up by hand before the first pod of its wave', () => {
  const approval = { count: 1, from: [] };
  const approved = { before: { approval, gates: [] } };
  const all = (more: Partial<WaveDefinition> = approved): readonly WaveDefinition[] => [wave('all', ['a', 'b'], more)];
  const staged = [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b'], approved)];
  const outdated = podsIn({ a: {} });
  const blocked = (why: string) => `${start}, although ${why}`;
  const unapproved = blocked('approval blocks their wave: 0 of 1 approvals');
  const reviewed = { policies: [policy({ rules: [policyRule({ effect: 'requireApproval', when: true })] })] };

  it.each<[string, State, string]>([
    ['the approval of the only wave is missing', { run: { wave: 0 }, order: all(), ...outdated }, unapproved],
    ['the run is not recorded yet', { order: all(), ...outdated }, unapproved],
    ['the wave after the canary has no approval', { run: { wave: 1 }, order: staged }, unapproved],
    ['the canary wave ends in this decision', { run: { wave: 0 }, order: staged }, unapproved],
    [
      'the gate of the wave has no reading',
      { run: { wave: 0 }, order: all({ before: { gates: ['errors'] } }), ...outdated },
      blocked('gate blocks their wave: errors has no reading yet'),
    ],
    [
      'a policy rule requires an approval',
      { run: { wave: 0 }, order: all({}), ...outdated, ...reviewed },
      blocked('safety/rule blocks their wave: the condition is true; 0 of 1 approvals'),
    ],
    [
      'a window is closed',
      { run: { wave: 0 }, order: all({}), ...outdated, policies: [policy({ windows: [freeze()] })] },
      blocked('a deny window blocks rollout'),
    ],
  ])('warns if %s', (_why, state, text) => {
    expect(warned(state)).toEqual([text]);
  });

  it('warns in a later zone of the wave, which has no step yet', () => {
    const { snapshot } = stateOf({ run: { wave: 0 }, order: all(), ...outdated });
    const { warnings } = judge(snapshot, { ...scale, statefulSet: 'ingester-zone-b' });
    expect(warnings).toEqual([unapproved.replace('zone a', 'zone b').replace('zone-a', 'zone-b')]);
  });

  const digest = digestOfWaves(group({ rollout: { waves: all() }, gates: [gate()] }));
  const rolling = { wave: 0, waveStartedMs: kitNowMs - hourMs, lastDisruptionMs: kitNowMs - hourMs / 2, waves: digest };
  it.each<[string, State]>([
    ['the wave is approved', { run: { wave: 0 }, order: all(), intents: [intent({ wave: 'all', digest })] }],
    ['the wave has begun', { run: rolling, order: all() }],
    ['only pods in flight block', { run: rolling, order: all({}), ...podsIn({ a: { 2: { revision: newRevision, isReady: false } } }) }],
    ['another zone is not ready', { run: { wave: 0 }, order: all({}), ...podsIn({ a: {}, b: { 0: { isReady: false } } }) }],
    ['the pods of the zone are updated', { run: { wave: 1 }, order: staged, ...podsIn({ a: updatedPods() }) }],
  ])('has no warning if %s', (_why, state) => {
    expect(warned(state)).toEqual([]);
  });

  it('shows the same in the decision, in the forecast of scale and as the risk RG5019 of a plan', () => {
    const zones = [{ name: 'a', replicas: { kind: 'count', count: 5 } as const }, 'b'];
    const own = stateOf({ run: { wave: 0 }, order: all(), scaled: zones, ...outdated });
    expect(decideGroup(own.snapshot, own.one).warnings.map(({ fact }) => fact)).toContain(unapproved);
    const { one, snapshot: running } = stateOf({ run: { wave: 0 }, order: all(), ...outdated });
    expect(forecastScale(running, one, 'a', 5).facts).toEqual([unapproved]);
    const current = manifests({}, ['a', 'b']);
    const input = planInput({ groups: [one], current, desired: [...manifests({ replicas: 5 }, ['a']), ...manifests({}, ['b'])] });
    const [plan] = planGroups({ ...input, running }).groups;
    expect(plan?.risks.filter(({ code }) => code === 'RG5019')).toMatchObject([{ message: expect.stringContaining('0 of 1 approvals') }]);
  });
});

describe('a scale-up under pinned after a rollback', () => {
  const run: RunFields = {
    kind: 'rollback',
    outcome: 'completed',
    completedMs: kitNowMs - hourMs,
    target: { a: oldRevision, b: oldRevision },
    previous: { a: newRevision, b: newRevision },
    rolledBack: { revisions: { a: newRevision, b: newRevision }, because: 'gate errors' },
  };
  const pins = 'MutatingWebhookConfiguration 0-rollout-group-pinned does not exist';
  const returned = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: oldRevision }]));
  /** Both zones had been updated completely. `update`: the revision of its template. */
  const rolledBack = (update: string, webhookProblems?: Snapshot['webhookProblems']): State => ({
    strategy: 'pinned',
    run,
    set: { status: { currentRevision: newRevision, updateRevision: update } },
    ...podsIn({ a: returned, b: returned }),
    ...defined({ webhookProblems }),
  });
  const starts = (revision: string) =>
    `the scale-up of zone a to 5 starts pods 3-4 of ingester-zone-a at ${revision} instead of ${oldRevision}, because no webhook pins new pods: `;

  it.each<[string, Snapshot['webhookProblems'], string]>([
    ['does not exist', { pins }, pins],
    ['does not cover the zone yet', { coverage: 'it does not cover mimir/a yet' }, 'it does not cover mimir/a yet'],
  ])('names the revision of new pods if the webhook on pod creation %s', (_state, problems, why) => {
    const text = starts(`update revision ${newRevision} (grafana/mimir:2.17.2)`);
    expect(warned(rolledBack(newRevision, problems))).toEqual([text + why]);
    // The template was returned, but the failed revision is still the current one.
    expect(warned(rolledBack(oldRevision, problems))).toEqual([starts(`revision ${newRevision}`) + why]);
  });

  it.each<[string, Snapshot['webhookProblems']]>([
    ['works', {}],
    ['was not read', undefined],
    ['could not be read', { pins: { unknown: 'forbidden' } }],
  ])('has no warning if the webhook %s', (_state, problems) => {
    expect(warned(rolledBack(newRevision, problems))).toEqual([]);
  });

  it('is blocked by the missing webhook in a plan, with the pod that returns later and the risk', () => {
    const { one, snapshot: running } = stateOf(rolledBack(newRevision, { pins }));
    expect(forecastScale(running, one, 'a', 5).facts).toEqual([starts(`update revision ${newRevision} (grafana/mimir:2.17.2)`) + pins]);
    const spec = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: holdingPartition } } };
    const status = { updateRevision: newRevision, currentRevision: newRevision };
    const sets = (replicas: number) =>
      [...manifests({ spec, replicas }, ['a']), ...manifests({ spec }, ['b'])].map((set) => ({ ...set, status }));
    const [plan] = planGroups({ ...planInput({ groups: [one], current: sets(3), desired: sets(5) }), running }).groups;
    expect(plan?.risks.filter(({ code }) => code === 'RG5019')).toMatchObject([{ message: expect.stringContaining('no webhook pins') }]);
    expect([plan?.outcome, plan?.waits.map(({ rule }) => rule)]).toEqual(['blocked', expect.arrayContaining(['pin-webhook'])]);
    expect(plan?.zones[0]?.afterWait).toEqual(['ingester-zone-a-4', 'ingester-zone-a-3']);
  });
});

describe('a scale-up by the agent', () => {
  const scaled = [{ name: 'a', replicas: { kind: 'count', count: 5 } as const }, 'b'];

  it('has the same warning in the decision', () => {
    const { one, snapshot } = stateOf({ run: failed, scaled });
    const { warnings } = decideGroup(snapshot, one);
    expect(warnings.map(({ rule, fact }) => [rule, fact])).toContainEqual([
      'updated-by-restart',
      `${start}, although the run failed: ${failed.failure}`,
    ]);
  });
});

describe('a preview', () => {
  it('of the verb scale has the fact, for a scale-up by hand and by the agent', () => {
    const { one, snapshot } = stateOf({ run: failed });
    expect(forecastScale(snapshot, one, 'a', 5).facts).toEqual([`${start}, although the run failed: ${failed.failure}`]);
    const counted = stateOf({ run: failed, scaled: [{ name: 'a', replicas: { kind: 'count', count: 3 } }, 'b'] });
    expect(forecastScale(counted.snapshot, counted.one, 'a', 5).facts).toEqual([`${start}, although the run failed: ${failed.failure}`]);
  });

  it('of a plan has the risk RG5019', () => {
    const { one, snapshot: running } = stateOf({ run: failed });
    const current = manifests({}, ['a', 'b']);
    const input = planInput({ groups: [one], current, desired: [...manifests({ replicas: 5 }, ['a']), ...manifests({}, ['b'])] });
    const [plan] = planGroups({ ...input, running }).groups;
    expect(plan?.risks).toMatchObject([
      { code: 'RG5019', severity: 'warning', message: expect.stringContaining('starts pods 3-4 of ingester-zone-a') },
    ]);
  });
});
