import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { agentAccess } from '../../../engine/rules/agent-access.ts';
import type { AgentAction, MissingAccess, RefusedWrite } from '../../../engine/snapshot.ts';
import type { RolloutDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { contextWith, outdatedSets } from '../../kit/questions.ts';

function lacks(action?: AgentAction, namespaces: readonly string[] = ['mimir']): readonly MissingAccess[] {
  return [{ namespaces, fact: 'the agent lacks it', ...(action === undefined ? {} : { action }) }];
}

describe('the access that a step of the agent needs', () => {
  const actions = ['evictPod', 'deletePod', 'patchStatefulSet', 'pinPod', undefined] as const;

  it.each<readonly [string, Partial<RolloutDefinition>, readonly (AgentAction | undefined)[]]>([
    ['evicts', { rotateBy: 'evict' }, ['evictPod', undefined]],
    ['deletes', { rotateBy: 'delete' }, ['deletePod', undefined]],
    ['lowers partitions', { strategy: 'partition', rotateBy: 'evict' }, ['patchStatefulSet', undefined]],
    ['pins pods', { strategy: 'pinned', rotateBy: 'evict' }, ['evictPod', 'pinPod', undefined]],
  ])('is the access for the calls of a rollout: it %s', (_, rollout, needed) => {
    const blocked = (step: 'roll' | 'scale') =>
      actions.filter((action) => agentAccess(contextWith(group({ rollout }), { missingAccess: lacks(action) }), step) !== undefined);
    expect(blocked('roll')).toEqual(needed);
    expect(blocked('scale')).toEqual(['patchStatefulSet', undefined]);
  });

  it('blocks only groups of its namespaces', () => {
    const definition = group({ rollout: { rotateBy: 'evict' } });
    const decided = (missingAccess: readonly MissingAccess[]) =>
      decideGroup(contextWith(definition, { statefulSets: outdatedSets(), missingAccess }).snapshot, definition);
    expect(decided(lacks('evictPod', ['loki'])).actions).not.toEqual([]);
    const { actions, waits } = decided(lacks('evictPod'));
    expect(actions).toEqual([]);
    expect(waits).toMatchObject([{ rule: 'agent-access', outcome: 'no', fact: 'the agent lacks it' }]);
  });
});

describe('the permission that the API server denied', () => {
  const denied = (verb: string, resource: string, group = '') =>
    `x "y" is forbidden: User "system:serviceaccount:rollouts:agent" cannot ${verb} resource "${resource}" in API group "${group}" in the namespace "mimir"`;
  const refused = (kind: RefusedWrite['kind'], message: string): RefusedWrite => {
    return { kind, message, namespace: 'mimir', target: 'x', untilMs: 0 };
  };
  const accessOf = (rollout: Partial<RolloutDefinition>, ...refusedWrites: readonly RefusedWrite[]) =>
    agentAccess(contextWith(group({ rollout }), { refusedWrites }), 'roll');

  it.each<readonly [RefusedWrite['kind'], string, Partial<RolloutDefinition>, string]>([
    ['evictPod', denied('create', 'pods/eviction'), { rotateBy: 'evict' }, 'create pods/eviction in mimir: no pod is replaced by eviction'],
    ['deletePod', denied('delete', 'pods'), { rotateBy: 'delete' }, 'delete pods in mimir: no pod is replaced by deletion'],
    [
      'setPartition',
      denied('patch', 'statefulsets', 'apps'),
      { strategy: 'partition' },
      'patch statefulsets (apps) in mimir: no replicas and no partitions are written',
    ],
  ])('is named by the answer to %s', (kind, answer, rollout, what) => {
    const fact = `rollouts/agent may not ${what}`;
    const write = refused(kind, answer);
    expect(accessOf(rollout, write, { ...write, target: 'z' })).toEqual({ rule: 'agent-access', outcome: 'no', fact });
  });

  it('is not the cause of every answer 403', () => {
    const webhook = 'admission webhook "a.example.com" denied the request: no User "x" cannot';
    expect(accessOf({ rotateBy: 'delete' }, refused('deletePod', webhook), refused('deletePod', ''))).toBeUndefined();
  });

  it('blocks only the group that is named, if one is', () => {
    const definition = group({ rollout: { rotateBy: 'evict' } });
    const blocks = (name: string) =>
      agentAccess(contextWith(definition, { missingAccess: lacks('evictPod').map((one) => ({ ...one, group: name })) }), 'roll') !==
      undefined;
    expect([blocks(definition.name), blocks('another')]).toEqual([true, false]);
  });
});
