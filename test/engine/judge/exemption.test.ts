import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '../../../engine/decision.ts';
import { failsOpen, isExempt, judge } from '../../../engine/judge/judge.ts';
import { group } from '../../kit/groups.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const own = { namespace: 'mimir', names: ['rollout-group-agent'] };

describe('our own workloads', () => {
  const isOwn = (kind: 'statefulSet' | 'pod', name: string, namespace = 'mimir') => isExempt({ kind, namespace, name }, { own });

  it('are not judged, by their names', () => {
    expect(isOwn('statefulSet', 'rollout-group-agent')).toBe(true);
    expect(isOwn('pod', 'rollout-group-agent-5d4f8c7b9-x7k2p')).toBe(true);
  });

  it('are not what is named alike, or lives elsewhere', () => {
    expect(isOwn('statefulSet', 'rollout-group-agent-2')).toBe(false);
    expect(isOwn('pod', 'rollout-group-agent-0')).toBe(false);
    expect(isOwn('pod', 'rollout-group-agent-x-5d4f8c7b9-x7k2p')).toBe(false);
    expect(isOwn('statefulSet', 'rollout-group-agent', 'loki')).toBe(false);
    expect(isExempt({ kind: 'statefulSet', namespace: 'mimir', name: 'rollout-group-agent' }, {})).toBe(false);
  });
});

it('requests in namespaces without an agent are not judged', () => {
  const object = { kind: 'statefulSet', namespace: 'mimir', name: 'db' } as const;
  expect(isExempt(object, { namespaces: ['loki'] })).toBe(true);
  expect(isExempt(object, { namespaces: ['loki', 'mimir'] })).toBe(false);
});

it('requests that cannot be judged pass when a denial would do more harm', () => {
  const unjudged = { onlyGrows: false, isNamespaceEnding: false };
  for (const verb of ['update', 'scale', 'delete', 'evictPod'] as const) {
    expect(failsOpen({ ...unjudged, verb })).toBe(false);
    expect(failsOpen({ ...unjudged, verb, isNamespaceEnding: true })).toBe(true);
  }
  expect(failsOpen({ ...unjudged, verb: 'deletePod' })).toBe(true);
  expect(failsOpen({ ...unjudged, verb: 'scale', onlyGrows: true })).toBe(true);
});

it('everything passes in a namespace that is being deleted, and nothing more elsewhere', () => {
  const guarded = group({ zones: [{ name: 'a', noDownscale: true, noDelete: true }, 'b'] });
  const target = { namespace: 'mimir', statefulSet: 'ingester-zone-a', dryRun: false } as const;
  const requests: readonly AdmissionRequest[] = [
    { kind: 'scale', ...target, from: 3, to: 2, via: 'scale' },
    { kind: 'deleteStatefulSet', ...target, pods: 3 },
  ];
  for (const request of requests) {
    const ask = (endingNamespaces: readonly string[]) => judge({ ...snapshotOf({ groups: [guarded] }), endingNamespaces }, request);
    expect(ask(['mimir'])).toMatchObject({ outcome: 'allow', results: [{ rule: 'namespace-ends', outcome: 'ok' }] });
    expect(ask(['loki']).outcome).toBe('deny');
  }
});
