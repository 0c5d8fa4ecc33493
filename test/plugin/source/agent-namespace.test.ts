import { describe, expect, it } from 'vitest';
import { agentNamespaceOf } from '../../../plugin/source/cluster/live-plan.ts';
import { done } from '../live-kit.ts';
import { leaseObject, publishedObject } from '../live-objects.ts';
import { clusterOf } from '../served-objects.ts';

const leaseIn = (namespace: string, holder: string) => ({
  ...leaseObject(holder, 0),
  metadata: { name: 'rollout-group-agent', namespace },
});
const two = [leaseIn('agents-a', 'one'), leaseIn('agents-b', 'two')];
const decided = (namespace: string, leader: string) => publishedObject({ ...done, namespace, leader });

describe('the namespace of the agent', () => {
  it('is where the only Lease is, with or without a holder, and the usual one without any', async () => {
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: [leaseIn('ops', '')] } }), ['mimir'])).toBe('ops');
    expect(await agentNamespaceOf(clusterOf({}), ['mimir'])).toBe('rollout-group');
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: two }, forbidden: ['leases'] }), ['mimir'])).toBe('rollout-group');
  });

  it('is, of several agents, that of the one which published for the namespaces in question', async () => {
    const cluster = clusterOf({ objects: { leases: two, configmaps: [decided('loki', 'one'), decided('mimir', 'two')] } });
    expect(await agentNamespaceOf(cluster, ['mimir'])).toBe('agents-b');
    expect(await agentNamespaceOf(cluster, ['loki'])).toBe('agents-a');
    await expect(agentNamespaceOf(cluster, ['loki', 'mimir'])).rejects.toThrow('several of them decide here');
    await expect(agentNamespaceOf(cluster, undefined)).rejects.toThrow('several of them decide here');
  });

  it('is, of several agents, that of the one next to the group', async () => {
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: [...two, leaseIn('mimir', 'three')] } }), ['mimir'])).toBe('mimir');
  });

  it('must be named when nothing tells', async () => {
    const desiredObjects = agentNamespaceOf(clusterOf({ objects: { leases: two } }), ['mimir']);
    await expect(desiredObjects).rejects.toMatchObject({
      exitCode: 3,
      message: 'agents run in the namespaces agents-a, agents-b, and which of them decides here is unknown',
      details: { todo: 'name one with --agent-namespace, such as --agent-namespace agents-a' },
    });
  });
});
