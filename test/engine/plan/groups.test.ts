import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { groupsToPlan } from '../../../engine/plan/groups.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { groupPart } from '../../../engine/plan/world.ts';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { resolvePolicies } from '../../../policies/resolve/resolve.ts';
import { group, zone } from '../../kit/groups.ts';
import { statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

describe('the groups of a plan', () => {
  it('are the requested groups if no member leaves', () => {
    const groups = [group()];
    expect(groupsToPlan(groups, [group()])).toEqual(groups);
  });

  it('keep a member that is in no group now, as it was', () => {
    const before = group({ zones: ['a', 'b', { name: 'c', noDownscale: true }] });
    const [planned] = groupsToPlan([group({ zones: ['a', 'b'] })], [before]);
    expect(planned?.zones).toEqual([zone({ name: 'a' }), zone({ name: 'b' }), zone({ name: 'c', noDownscale: true })]);
  });

  it('keep a whole group without remaining members', () => {
    expect(groupsToPlan([], [group()])).toEqual([group()]);
  });

  it('keep only the members of a removed group that no other group has now', () => {
    const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
    const other = group({ name: 'other', zones });
    expect(groupsToPlan([other], [group()]).map(({ name, zones }) => [name, zones.map((zone) => zone.name)])).toEqual([
      ['other', ['a', 'b']],
      ['ingester', ['c']],
    ]);
  });

  it('release a member that another group has now', () => {
    const other = group({ name: 'other', zones: [{ name: 'c', statefulSet: 'ingester-zone-c' }] });
    const now = [group({ zones: ['a', 'b'] }), other];
    expect(groupsToPlan(now, [group()])).toEqual(now);
  });
});

describe('a StatefulSet that drops the label which protects it and shrinks in the same change', () => {
  it('is denied by the group that it leaves', () => {
    const member = (name: string, replicas: number, labels: Readonly<Record<string, string>>) => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name, namespace: 'db', labels },
      spec: {
        replicas,
        serviceName: name,
        updateStrategy: { type: 'OnDelete' },
        template: { metadata: { labels: { name } }, spec: { containers: [] } },
      },
    });
    const labels = { 'rollout-group': 'store', 'grafana.com/no-downscale': 'true' };
    const current = [member('store-a', 3, labels), member('store-b', 3, labels)];
    const desired = [member('store-a', 1, {}), member('store-b', 3, labels)];
    const groupsOf = (objects: readonly unknown[]) => resolvePolicies([], { adoption: adoptGroups(objects) }).bundle.groups;
    const groupsBefore = groupsOf(current);
    const groups = groupsToPlan(groupsOf(desired), groupsBefore);
    const plan = planGroups({
      groups,
      groupsBefore,
      policies: [],
      exceptions: [],
      policyDigest: '',
      current,
      desired,
      assumptions: defaultAssumptions,
      nowMs: 0,
    });
    expect(plan.outcome).toBe('blocked');
    expect(
      plan.groups.flatMap((one) => one.refused.map(({ what, results }) => [what, results.find(({ outcome }) => outcome === 'no')?.rule])),
    ).toEqual([['scale StatefulSet store-a from 3 to 1', 'no-downscale']]);
  });
});

describe('the part of a snapshot for one group', () => {
  it('has the StatefulSets with only running pods that match a budget of the group', () => {
    const owner = group();
    const budget = { namespace: 'mimir', name: 'pdb', selector: { matchLabels: { team: 'metrics' } }, maxUnavailable: 1 };
    const relabelled = { 0: { labels: { team: 'metrics' } } };
    const others = ['querier', 'ruler'].map((name) => statefulSet({ name, podLabels: { name } }));
    const snapshot = snapshotOf({
      groups: [owner],
      statefulSets: others,
      podBudgets: [budget],
      everySet: { podLabels: { team: 'metrics' } },
      podChanges: { querier: relabelled },
    });
    const { statefulSets, pods } = groupPart(snapshot, owner);
    expect(statefulSets.map(({ name }) => name)).toEqual(['querier', ...owner.zones.map((zone) => zone.statefulSet)]);
    expect(pods.map((view) => view.statefulSet)).toEqual(statefulSets.map(({ name }) => name));
  });
});
