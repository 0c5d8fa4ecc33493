import { describe, expect, it } from 'vitest';
import { group, scopeOf } from './given.ts';

const mirrored = { namespace: 'mimir', group: 'rollout-operator.grafana.com', kind: 'ReplicaTemplate', names: ['ingester'] };

const none = { namespaces: [], members: [] };

describe('the scope of policies', () => {
  it('is their namespaces, their StatefulSets and the mirrored objects', () => {
    expect(scopeOf(group)).toEqual({
      namespaces: ['mimir'],
      mirrors: [{ ...mirrored, readsScale: true, writesStatus: true }],
      secrets: [],
      members: [
        { namespace: 'mimir', statefulSet: 'ingester-zone-a' },
        { namespace: 'mimir', statefulSet: 'ingester-zone-b' },
      ],
      pinned: none,
      partition: none,
    });
  });

  it('has the used strategies, and the possible ones', () => {
    const pinned = group.replace('strategy: onDelete', 'strategy: pinned').replaceAll('mimir', 'loki');
    const members = ['a', 'b'].map((zone) => ({ namespace: 'loki', statefulSet: `ingester-zone-${zone}` }));
    expect(scopeOf(`${group}---\n${pinned}`)).toMatchObject({ pinned: { namespaces: ['loki'], members }, partition: none });
    const more = scopeOf(group, { namespaces: ['mimir', 'tempo'] });
    expect([more.pinned.namespaces, more.partition.namespaces]).toEqual([['tempo'], ['tempo']]);
    const selected = pinned.replace(/members: .*/, 'members: { selector: { matchLabels: { app: ingester } }, expect: { count: 3 } }');
    expect(scopeOf(selected).pinned).toEqual({ namespaces: ['loki'], members: [] });
  });

  it('joins the mirrored objects of one kind of two groups', () => {
    const other = group
      .replaceAll('ingester', 'querier')
      .replace('writeBack: status', 'onMissing: fail')
      .replace('name: querier }', 'name: querier, read: fieldPath, fieldPath: [spec, size] }');
    expect(scopeOf(`${group}---\n${other}`).mirrors).toEqual([
      { ...mirrored, names: ['ingester', 'querier'], readsScale: true, writesStatus: true },
    ]);
  });

  it('is only namespaces if members are found by labels', () => {
    const selected = group.replace(/members: .*/, 'members: { selector: { matchLabels: { app: ingester } }, expect: { count: 3 } }');
    expect(scopeOf(selected)).toMatchObject({ namespaces: ['mimir'], members: undefined });
    expect(scopeOf(`${group}---\n${selected.replace('name: ingester,', 'name: other,')}`).members).toBeUndefined();
  });

  it('adds the namespaces that policies of the agent and users name, and not the namespace of the agent', () => {
    const policy = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: all, namespace: rollout-group }
spec: { targets: { all: true, namespaces: [loki] } }
`;
    expect(scopeOf(policy, { namespaces: ['tempo', 'loki'] }).namespaces).toEqual(['loki', 'tempo']);
    expect(scopeOf(policy.replace('namespace: rollout-group', 'namespace: tempo').replace(', namespaces: [loki]', '')).namespaces).toEqual([
      'tempo',
    ]);
  });

  it('includes adopted StatefulSets', () => {
    const set = `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: store-zone-a, namespace: loki, labels: { rollout-group: store } }
spec: { replicas: 2, updateStrategy: { type: OnDelete }, template: { metadata: { labels: { name: store-zone-a } } } }
`;
    expect(scopeOf(set)).toEqual({
      namespaces: ['loki'],
      mirrors: [],
      secrets: [],
      members: [{ namespace: 'loki', statefulSet: 'store-zone-a' }],
      pinned: none,
      partition: none,
    });
  });
});
