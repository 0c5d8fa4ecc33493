import { expect, it } from 'vitest';
import { planGroups } from '../../../engine/plan/plan.ts';
import { group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';

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
