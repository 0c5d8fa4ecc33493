import { expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import type { PlanInput } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots, requestedWorld } from '../../../engine/plan/world.ts';
import { usualOrder, type WriteOrder, writeOrder } from '../../../engine/plan/write-order.ts';
import type { GroupDefinition, WaveDefinition } from '../../../policies/definition.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { hourMs, intent, policy, policyRule } from '../../kit/questions.ts';

const [first, second] = [manifests({ image: 'grafana/mimir:2.17.1' }), manifests({ image: 'grafana/mimir:2.18.0' })];

/** A canary of one pod, then the rest of zone a and the other zones. */
function waved(before: Partial<WaveDefinition['before']>): GroupDefinition {
  const waves = [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['a', 'b', 'c'], { before: { gates: [], ...before } })];
  return group({ gates: [gate({ initialDelayMs: 24 * hourMs })], rollout: { waves } });
}

const approval = { count: 1, from: ['oncall'] };
const approved = waved({ approval });
const gated = waved({ gates: ['errors'] });
const free = waved({});

/** The cluster an hour after the first change. No approval is given. */
function stopped(before: GroupDefinition): Pick<PlanInput, 'groupsBefore' | 'before' | 'current' | 'running'> {
  const assumptions = { ...defaultAssumptions, approvals: 'missing' } as const;
  const input = planInput({ groups: [before], desired: first, assumptions });
  const start = requestedWorld(input, readPlanSnapshots(input), before).world;
  const { world } = runForward(start, before, { untilMs: start.snapshot.nowMs + hourMs });
  const { hasAssumedTimes: _times, ...running } = { ...world.snapshot, gateReadings: [] };
  return { groupsBefore: [before], before: { policies: [], exceptions: [] }, current: first, running };
}

function order(before: GroupDefinition, after: GroupDefinition, more: Partial<PlanInput> = {}): WriteOrder {
  const from = stopped(before);
  return writeOrder(planInput({ ...from, groups: [after], desired: second, nowMs: from.running?.nowMs ?? 0, ...more }));
}

type Part = WriteOrder['parts'][number];
const early = (after: readonly Part[], ...pods: readonly string[]) => ({
  group: 'mimir/ingester',
  after,
  actions: pods.map((pod) => `pod ingester-zone-${pod}`),
});

it.each([
  ['an approval', approved, free],
  ['a gate', gated, free],
  ['a pause', group({ zones: ['a', 'b', 'c'].map((name) => ({ name, paused: true })) }), group()],
])('the members are first if the group no longer has %s that stops the run', (_name, before, after) => {
  const { parts, isSafe, early: rejected } = order(before, after);
  expect([parts[0], isSafe, rejected.map(({ after: written }) => written)]).toEqual(['members', true, [['policies', 'groups']]]);
});

it('names the pods that the agent would replace at the superseded template', () => {
  expect(order(approved, free).early).toEqual([early(['policies', 'groups'], 'a-1')]);
});

it.each([
  ['nothing is under way', free, approved],
  ['the run stays stopped', approved, waved({ approval: { count: 2, from: ['oncall'] } })],
])('the policies are first if %s', (_name, before, after) => {
  expect(order(before, after)).toEqual(usualOrder);
});

it('a group that replaces a policy, or a policy that replaces a part of the group, is written so that one of both always stops the run', () => {
  const blocking = policy({ rules: [policyRule({ effect: 'hold', actions: ['rollout'] })] });
  const ofPolicies = { before: { policies: [blocking], exceptions: [] }, policies: [] };
  const toGroup = order(approved, approved, { ...ofPolicies, groupsBefore: [free], desired: first });
  expect([toGroup.parts, toGroup.isSafe]).toEqual([['groups', 'policies', 'members'], true]);
  const toPolicy = order(approved, free, { policies: [blocking], desired: first });
  expect(toPolicy).toEqual(usualOrder);
});

it('no order is safe if the group releases the superseded template and stops the new one', () => {
  const waves = [wave('canary', ['a'], { amount: { pods: 1 }, before: { approval, gates: [] } }), wave('rest', ['a', 'b', 'c'])];
  expect(order(approved, group({ rollout: { waves } }))).toEqual({
    parts: usualOrder.parts,
    isSafe: false,
    early: [early(['policies', 'groups'], 'a-1')],
  });
});

it('a paused group and a group without an agent have the usual order', () => {
  const { running } = stopped(approved);
  if (running === undefined) throw new Error('the test expected a running cluster');
  expect(order(approved, free, { running: { ...running, intents: [intent({ action: 'pause' })] } })).toEqual(usualOrder);
  const unattended = [{ namespace: 'mimir', group: 'ingester', fact: 'agent not running' }];
  expect(order(approved, free, { running: { ...running, unattended } })).toEqual(usualOrder);
});
