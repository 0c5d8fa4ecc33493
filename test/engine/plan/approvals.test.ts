import { expect, it } from 'vitest';
import { planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots } from '../../../engine/plan/world.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import { stepText } from '../../../plugin/output/plan/plan-text.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { kitNowMs, newRevision } from '../../kit/objects.ts';
import { hourMs, intent, policy, policyRule } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { afterRun, run } from '../../plugin/stop-rows.ts';

it('a plan shows the approval after a wave that also soaks, behind the soak, and counts it', () => {
  const approval = { count: 1, from: ['oncall'] };
  const waves = [
    wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 900_000, approval, gates: [] } }),
    wave('rest', ['a', 'b', 'c'], { before: { approval, gates: [] } }),
  ];
  const [planned] = planGroups(
    planInput({ groups: [group({ rollout: { waves } })], current: manifests(), desired: manifests({ image: 'grafana/mimir:2.17.1' }) }),
  ).groups;
  const kinds = planned?.waves.flatMap(({ name, steps }) => steps.map(({ kind, zone = '' }) => `${name} ${kind} ${zone}`.trim()));
  expect(kinds).toEqual(['canary roll a', 'canary soak', 'canary approval', 'rest approval', 'rest roll a', 'rest roll b', 'rest roll c']);
});

it('a plan passes the gates and waits for the approvals of a wave that adds no pod', () => {
  const approval = { count: 1, from: ['oncall'] };
  const checks = { before: { gates: ['errors'], approval }, after: { soakMs: 0, gates: ['errors'] } };
  const waves = [
    wave('canary', ['a'], { amount: { pods: 1 } }),
    wave('empty', ['a'], { amount: { percent: 10 }, ...checks }),
    wave('rest', ['a', 'b', 'c']),
  ];
  const groups = [group({ rollout: { waves }, gates: [gate()] })];
  const [planned] = planGroups(planInput({ groups, current: manifests(), desired: manifests({ image: 'grafana/mimir:2.17.1' }) })).groups;
  const kinds = planned?.waves.flatMap(({ name, steps }) => steps.map(({ kind, zone = '' }) => `${name} ${kind} ${zone}`.trim()));
  expect([planned?.outcome, kinds]).toEqual(['complete', ['canary roll a', 'empty approval', 'rest roll a', 'rest roll b', 'rest roll c']]);
});

/** The plan of a wave that needs an approval, in a group with this request in force. */
function stopped(request: Partial<IntentView>) {
  const waves = [wave('all', ['a', 'b', 'c'], { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } })];
  const input = planInput({ groups: [group({ rollout: { waves } })], desired: manifests({ image: 'grafana/mimir:2.17.1' }) });
  const running = { ...readPlanSnapshots(input).before, intents: [intent(request)] };
  const [planned] = planGroups({ ...input, running }).groups;
  const steps = planned?.waves.flatMap((one) => one.steps.map(({ kind, waitsFor }) => [kind, waitsFor].join(' ').trim()));
  return { steps, approvals: planned?.totals.approvals, waits: planned?.waits.map(({ rule }) => rule) };
}

it.each([
  ['a pause', { action: 'pause' }, 'paused'],
  ['a protection', { action: 'protect', zone: 'a' }, 'protected'],
] as const)('a plan shows the approval of a wave behind %s until a set time', (_name, request, rule) => {
  expect(stopped({ ...request, expiresMs: kitNowMs + hourMs })).toEqual({
    steps: [`wait ${rule}`, 'approval all', 'roll', 'roll', 'roll'],
    approvals: 1,
    waits: [],
  });
});

it('a plan shows the approval of a wave and that of each policy rule that waits at the same step', () => {
  const ask = (name: string, count: number) =>
    policyRule({
      name,
      effect: 'requireApproval',
      approval: { count, from: [`owners-of-${name}`] },
      message: 'with 1 of 9 approvals of the board',
    });
  const waves = [wave('all', ['a', 'b', 'c'], { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } })];
  const policies = [policy({ rules: [ask('one', 1), ask('two', 2)] })];
  const input = planInput({ groups: [group({ rollout: { waves } })], policies, desired: manifests({ image: 'grafana/mimir:2.17.1' }) });
  const [planned] = planGroups(input).groups;
  const steps = planned?.waves.flatMap((one) => one.steps.map((step) => stepText(step)));
  expect(steps).toEqual([
    'approve 1 from oncall',
    'approve 1 from owners-of-one',
    'approve 2 from owners-of-two',
    'roll a 2..0',
    'roll b 2..0',
    'roll c 2..0',
  ]);
  // One for each person.
  expect(planned?.totals.approvals).toBe(4);
});

it('a plan that only a user can continue names the approval behind the pause', () => {
  expect(stopped({ action: 'pause' }).waits).toEqual(['paused', 'approval']);
});

it('a plan that a missing webhook blocks names the approval that is missing now, and the approval of a later wave', () => {
  const approval = { count: 1, from: ['oncall'] };
  const waves = ['first', 'rest'].map((name) => wave(name, ['a', 'b', 'c'], { before: { approval, gates: [] } }));
  const spec = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: holdingPartition } } };
  const [current, desired] = [manifests({ spec }), manifests({ spec, image: 'grafana/mimir:2.17.1' })];
  const input = planInput({ groups: [group({ rollout: { strategy: 'pinned', waves } })], current, desired });
  const running = { ...readPlanSnapshots(input).before, webhookProblems: { pins: 'it does not exist' } };
  const [planned] = planGroups({ ...input, running }).groups;
  expect(planned?.outcome).toBe('blocked');
  expect(planned?.waits.map(({ rule, fact }) => [rule, fact])).toEqual([
    ['pin-webhook', 'no pod is replaced without the webhook on pod creation: it does not exist'],
    ['approval', '0 of 1 approvals from oncall'],
  ]);
  expect(planned?.checksAfterWait).toEqual([{ wave: 'rest', kinds: ['approval'] }]);
});

it.each([
  ['are in flight', { revision: newRevision, isReady: false, readyChangedMs: kitNowMs - 10_000 }],
  ['are available', { revision: newRevision }],
])('a plan shows an approval that is added to a wave while its replaced pods %s', (_name, replaced) => {
  const before = { approval: { count: 1, from: ['oncall'] }, gates: [] };
  const groups = [group({ zones: ['a', 'b'], rollout: { waves: [wave('rest', ['a', 'b'], { before })] } })];
  const desired = manifests({ image: 'grafana/mimir:2.17.1' }, ['a', 'b']).map((one) => ({
    ...one,
    status: { updateRevision: newRevision },
  }));
  const started = afterRun({ ...run, outcome: 'running', openZone: 'a', lastDisruptionMs: kitNowMs - 1000 });
  const running = snapshotOf({ groups, ...started, podChanges: { 'ingester-zone-a': { 2: replaced } } });
  const [planned] = planGroups(planInput({ groups, current: manifests({}, ['a', 'b']), desired, running })).groups;
  const steps = planned?.waves.flatMap((one) => one.steps.map((step) => stepText(step)));
  expect([steps, planned?.totals.approvals]).toEqual([['approve 1 from oncall', 'roll a 1..0', 'roll b 2..0'], 1]);
});
