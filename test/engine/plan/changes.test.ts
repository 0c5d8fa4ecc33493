import { describe, expect, it } from 'vitest';
import { type PlanInput, planGroups } from '../../../engine/plan/plan.ts';
import { group } from '../../kit/groups.ts';
import { manifest, manifests, planInput } from '../../kit/manifests.ts';
import { policy, policyRule } from '../../kit/questions.ts';

function plan(overrides: Partial<PlanInput>) {
  const [one] = planGroups(planInput(overrides)).groups;
  if (one === undefined) throw new Error('the test expected a plan of a group');
  return one;
}

const changesOf = (overrides: Partial<PlanInput>) => plan(overrides).changes;
const image = 'grafana/mimir:2.17.1';
const guarded = group({ zones: [{ name: 'a', noDownscale: true }, { name: 'b', noDelete: true }, 'c'] });

describe('the changes of a plan', () => {
  it('are empty if manifests differ only in notation', () => {
    expect(changesOf({ desired: manifests({ metadata: { creationTimestamp: '2026-01-01T00:00:00Z' } }).toReversed() })).toEqual([]);
  });

  it('appear once for zones with the same change, in the order of the zones', () => {
    expect(changesOf({ desired: [manifest('c', { image }), manifest('a', { image }), manifest('b')] })).toEqual([
      {
        kind: 'template',
        zones: ['a', 'c'],
        field: 'spec.template.spec.containers[ingester].image',
        before: 'grafana/mimir:2.16.0',
        after: image,
        consequence: 'restart',
      },
    ]);
  });

  it('distinguish replicas, settings and templates', () => {
    const desired = [manifest('a', { replicas: 5 }), manifest('b', { spec: { minReadySeconds: 30 } }), manifest('c', { image })];
    expect(changesOf({ desired }).map(({ kind, zones, field, consequence }) => [kind, zones.join(), field, consequence])).toEqual([
      ['replicas', 'a', 'spec.replicas', 'scaleUp'],
      ['settings', 'b', 'spec.minReadySeconds', 'none'],
      ['template', 'c', 'spec.template.spec.containers[ingester].image', 'restart'],
    ]);
  });

  it('contain no replicas if another source sets them', () => {
    expect(changesOf({ desired: manifests({ replicas: undefined }) })).toEqual([]);
  });
});

describe('the source object of replicas', () => {
  const replicas = {
    kind: 'mirror',
    apiVersion: 'rollout-operator.grafana.com/v1',
    resourceKind: 'ReplicaTemplate',
    name: 'ingester',
    read: 'scale',
    writeBack: 'none',
    onMissing: 'hold',
  } as const;
  const mirrored = group({
    zones: [
      { name: 'a', replicas },
      { name: 'b', follows: 'a' },
    ],
  });
  const template = (number: number | undefined, namespace = 'mimir') => ({
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ReplicaTemplate',
    metadata: { name: 'ingester', namespace },
    spec: { replicas: number ?? 'many' },
  });
  const between = (current: readonly unknown[], desired: readonly unknown[]) => {
    const sets = manifests({ replicas: undefined }, ['a', 'b']);
    return plan({ groups: [mirrored], current: [...sets, ...current], desired: [...sets, ...desired] });
  };

  it('is a separate change, before the changes of the members', () => {
    const up = between([template(3)], [template(5)]);
    expect(up.changes).toEqual([
      { kind: 'source', zones: ['a', 'b'], field: 'ReplicaTemplate ingester', before: 3, after: 5, consequence: 'scaleUp' },
    ]);
    expect(up.zones.map(({ replicasBefore, replicasAfter }) => [replicasBefore, replicasAfter])).toEqual([
      [3, 5],
      [3, 5],
    ]);
    expect(between([template(5)], [template(3)]).changes).toMatchObject([
      { kind: 'source', before: 5, after: 3, consequence: 'scaleDown' },
    ]);
  });

  it('names no zone that mirrors another object', () => {
    const zones = [
      { name: 'a', replicas },
      { name: 'b', follows: 'a' },
      { name: 'c', replicas: { ...replicas, name: 'other' } },
    ];
    const sets = manifests({ replicas: undefined }, ['a', 'b', 'c']);
    const { changes } = plan({ groups: [group({ zones })], current: [...sets, template(3)], desired: [...sets, template(5)] });
    expect(changes).toMatchObject([{ kind: 'source', zones: ['a', 'b'] }]);
  });

  it('is no change if it is equal, new, unreadable or another object', () => {
    expect(between([template(3)], [template(3)]).changes).toEqual([]);
    expect(between([], [template(3)]).changes).toEqual([]);
    expect(between([template(3)], [template(undefined)]).changes).toEqual([]);
    expect(between([template(3), template(3, 'loki')], [template(3), template(5, 'loki')]).changes).toEqual([]);
  });
});

describe('a member that is created', () => {
  it('is a change, and its pods start', () => {
    const created = plan({ current: manifests({}, ['a', 'b']), desired: manifests() });
    expect(created.changes).toEqual([{ kind: 'created', zones: ['c'], field: 'metadata.name', consequence: 'scaleUp' }]);
    expect(created.zones[2]).toEqual({ zone: 'c', statefulSet: 'ingester-zone-c', replicasBefore: 0, replicasAfter: 3, restarts: 0 });
    expect(created.outcome).toBe('complete');
    expect(created.totals).toMatchObject({ p50Seconds: 60, p90Seconds: 180 });
  });
});

describe('a member that is deleted', () => {
  it('is a change without restarts', () => {
    const deleted = plan({ desired: manifests({}, ['a', 'b']) });
    expect(deleted.changes).toEqual([{ kind: 'deleted', zones: ['c'], field: 'metadata.name', consequence: 'none' }]);
    expect(deleted.refused).toEqual([]);
  });

  it('is denied if it is protected', () => {
    const refused = plan({ groups: [guarded], desired: manifests({}, ['a', 'c']) });
    expect(refused.changes).toEqual([{ kind: 'deleted', zones: ['b'], field: 'metadata.name', consequence: 'refused' }]);
    expect(refused.outcome).toBe('blocked');
    expect(refused.refused).toMatchObject([
      {
        what: 'delete StatefulSet ingester-zone-b',
        zone: 'b',
        message: 'delete of statefulset/ingester-zone-b in namespace mimir is denied by no-delete: zone b must not be deleted',
        results: [
          { rule: 'no-delete', outcome: 'no' },
          { rule: 'window', outcome: 'skip' },
        ],
      },
    ]);
  });

  it('is no change if it never existed', () => {
    expect(plan({ current: manifests({}, ['a', 'b']), desired: manifests({}, ['a', 'b']) }).changes).toEqual([]);
  });
});

describe('a denied change', () => {
  it('is shown with the request and the reason, and is not carried out', () => {
    const refused = plan({ groups: [guarded], desired: [manifest('a', { replicas: 2, image }), manifest('b'), manifest('c')] });
    expect(refused.changes.map(({ kind, zones, consequence }) => [kind, zones.join(), consequence])).toEqual([
      ['replicas', 'a', 'refused'],
      ['template', 'a', 'refused'],
    ]);
    expect(refused.refused).toMatchObject([
      {
        what: 'scale StatefulSet ingester-zone-a from 3 to 2',
        zone: 'a',
        message:
          'scale of statefulset/ingester-zone-a from 3 to 2 in namespace mimir is denied by no-downscale: zone a must not shrink (limit: noDownscale)',
      },
    ]);
    expect(refused.waves).toEqual([]);
    expect(refused.zones[0]).toMatchObject({ replicasBefore: 3, replicasAfter: 3, restarts: 0 });
  });

  it('does not affect the changes of other zones', () => {
    const policies = [policy({ rules: [policyRule({ when: { '==': [{ var: 'target.zone' }, 'b'] } })] })];
    const refused = plan({ desired: manifests({ image }), policies });
    expect(refused.refused.map(({ what }) => what)).toEqual(['update StatefulSet ingester-zone-b']);
    expect(refused.changes.map(({ zones, consequence }) => [zones.join(), consequence])).toEqual([
      ['a,c', 'restart'],
      ['b', 'refused'],
    ]);
    expect(refused.zones.map(({ restarts }) => restarts)).toEqual([3, 0, 3]);
  });
});
