import { describe, expect, it } from 'vitest';
import type { Action, GroupDecision } from '../../../engine/decision.ts';
import { describeAction, describeActions } from '../../../engine/plan/action-text.ts';

describe('an action in a few words', () => {
  const set = { namespace: 'mimir', zone: 'a', statefulSet: 'ingester-zone-a', uid: '', resourceVersion: '' };
  const pod = { ...set, pod: 'ingester-zone-a-2', ordinal: 2 };
  it.each<[Action, string]>([
    [{ kind: 'evictPod', ...pod, because: 'outdated' }, 'replace ingester-zone-a-2'],
    [{ kind: 'deletePod', ...pod, because: 'outdated' }, 'replace ingester-zone-a-2'],
    [{ kind: 'deletePod', ...pod, because: 'stuck' }, 'cure ingester-zone-a-2'],
    [{ kind: 'scaleStatefulSet', ...set, from: 3, to: 5 }, 'scale ingester-zone-a 3 to 5'],
    [{ kind: 'callPods', ...set, call: 'delayed', method: 'POST', ordinals: [3, 4] }, 'prepare ingester-zone-a 3,4'],
    [{ kind: 'callPods', ...set, call: 'prepare', method: 'DELETE', ordinals: [4] }, 'withdraw ingester-zone-a 4'],
    [
      { kind: 'writeBackReplicas', namespace: 'mimir', apiVersion: 'x/v1', resourceKind: 'ReplicaTemplate', name: 'ingester', replicas: 5 },
      'tell ReplicaTemplate ingester 5 replicas',
    ],
    [{ kind: 'advanceCurrentRevision', ...set, revision: 'rev-2' }, 'advance the current revision of ingester-zone-a'],
  ])('%j is "%s"', (action, expected) => {
    expect(describeAction(action)).toBe(expected);
  });

  it('joins others in one line, and skips waits', () => {
    const decision = (actions: readonly Action[]) => ({ actions }) as GroupDecision;
    const replace: Action = { kind: 'evictPod', ...pod, because: 'outdated' };
    expect(describeActions(decision([replace, { kind: 'scaleStatefulSet', ...set, from: 1, to: 2 }]))).toBe(
      'replace ingester-zone-a-2, scale ingester-zone-a 1 to 2',
    );
    expect(describeActions(decision([]))).toBe('');
  });
});
