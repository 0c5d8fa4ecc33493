import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import { groupsToPlan } from '../../../engine/plan/groups.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { readPlanSnapshots, requestedWorld } from '../../../engine/plan/world.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { defined } from '../../../policies/values/defined.ts';
import { group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { hourMs } from '../../kit/questions.ts';

const desired = manifests({ image: 'grafana/mimir:2.17.1' });

type Approvals = 'given' | 'missing';

function waved(zones: readonly string[], canary: string): GroupDefinition {
  const waves = [
    wave('canary', [canary], { amount: { pods: 1 }, after: { soakMs: 5_000, gates: [] } }),
    wave('rest', zones, { before: { approval: { count: 1, from: ['oncall'] }, gates: [] } }),
  ];
  return group({ zones: [...zones], rollout: { waves } });
}

/** The plan of a change of only the group, an hour after the change of the templates. */
function planOf(before: GroupDefinition, after: GroupDefinition, [approvals, planned]: readonly [Approvals, Approvals]) {
  const first = planInput({ groups: [before], desired, assumptions: { ...defaultAssumptions, approvals } });
  const start = requestedWorld(first, readPlanSnapshots(first), before).world;
  const { world } = runForward(start, before, { untilMs: start.snapshot.nowMs + hourMs });
  const { hasAssumedTimes: _times, ...running } = world.snapshot;
  const change = { groups: groupsToPlan([after], [before]), groupsBefore: [before], desiredGroups: [after] };
  return planGroups(
    planInput({
      ...change,
      assumptions: { ...defaultAssumptions, approvals: planned },
      current: desired,
      desired,
      running,
      nowMs: running.nowMs,
    }),
  ).groups[0];
}

function stepsOf(before: GroupDefinition, after: GroupDefinition): readonly string[] | undefined {
  return planOf(before, after, ['missing', 'given'])?.waves.flatMap(({ name, steps }) =>
    steps.map(({ kind, zone = '' }) => `${name} ${kind} ${zone}`.trim()),
  );
}

describe('a plan that only removes a zone while the run waits for an approval', () => {
  const before = waved(['a', 'b', 'c'], 'a');

  it('starts the waves again, as the agent does, with the new canary', () => {
    expect(stepsOf(before, waved(['b', 'c'], 'b'))).toEqual([
      'canary roll b',
      'canary soak',
      'rest approval',
      'rest roll b',
      'rest roll c',
    ]);
  });

  it('soaks the same canary again', () => {
    expect(stepsOf(before, waved(['a', 'b'], 'a'))).toEqual(['canary soak', 'rest approval', 'rest roll a', 'rest roll b']);
  });

  it('shows no pod of the removed zone, also if the plan waits', () => {
    const plan = planOf(before, waved(['a', 'b'], 'a'), ['missing', 'missing']);
    expect([plan?.outcome, plan?.zones.map(({ zone, restarts, afterWait }) => [zone, restarts, afterWait?.length])]).toEqual([
      'waits',
      [
        ['a', 2, 2],
        ['b', 3, 3],
        ['c', 0, undefined],
      ],
    ]);
  });
});

it('a plan that removes a zone at rest has no step', () => {
  expect(planOf(waved(['a', 'b', 'c'], 'a'), waved(['b', 'c'], 'b'), ['given', 'given'])).toMatchObject({
    outcome: 'unchanged',
    waves: [],
  });
});

describe('a plan that deletes the group and changes the image', () => {
  const summary = (strategy: 'onDelete' | 'partition' | 'pinned', rollout: object) => {
    const before = group({ rollout: { ...waved(['a', 'b', 'c'], 'a').rollout, strategy, ...rollout } });
    const updateStrategy = { type: strategy === 'onDelete' ? 'OnDelete' : 'RollingUpdate' };
    const [current, next] = ['grafana/mimir:2.16.0', 'grafana/mimir:2.17.1'].map((image) => manifests({ image, spec: { updateStrategy } }));
    const groups = { groups: groupsToPlan([], [before]), groupsBefore: [before], desiredGroups: [] };
    const [plan] = planGroups(planInput({ ...groups, ...defined({ current, desired: next }) })).groups;
    const steps = plan?.waves.flatMap(({ name, steps }) =>
      steps.map(({ kind, zone, pods }) => `${name} ${kind} ${zone} ${pods.join(' ')}`),
    );
    const { restarts, approvals } = plan?.totals ?? {};
    return {
      steps,
      restarts,
      approvals,
      risks: plan?.risks.map(({ code, message }) => `${code} ${message.replace(/^.*apply there/, '')}`),
    };
  };

  it.each([
    ['onDelete', {}, ', and outdated pods stay outdated'],
    ['pinned', {}, ', and outdated pods stay outdated; a partition that the agent set stays, so a new template reaches no pod'],
    ['partition', {}, ', and outdated pods stay outdated; a partition that the agent set stays, so a new template reaches no pod'],
    [
      'pinned',
      { onPolicyDeleted: 'release' },
      '; the agent then releases the zones one by one (onPolicyDeleted: release), and the StatefulSet controller replaces all outdated pods',
    ],
  ] as const)('has no wave and no approval under %s %o', (strategy, rollout, effect) => {
    const { steps, restarts, approvals, risks } = summary(strategy, rollout);
    expect({ steps, restarts, approvals, risks }).toEqual({
      steps: [],
      restarts: 'onPolicyDeleted' in rollout ? 9 : 0,
      approvals: 0,
      risks: [`RG5014 ${effect}`],
    });
  });
});
