// What the flag --agent-namespace changes, verb by verb: policies where the agent lives bind groups elsewhere.
import { describe, expect, it } from 'vitest';
import { agentNamespaceOf } from '../../plugin/source/cluster/live-plan.ts';
import { runInProcess } from './in-process.ts';
import { done } from './live-kit.ts';
import { leaseObject, publishedObject } from './live-objects.ts';
import { folderWith } from './process.ts';
import { clusterOf } from './served-objects.ts';

const statefulSet = `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ingester-zone-a, namespace: mimir, labels: { rollout-group: ingester } }
spec:
  replicas: 3
  serviceName: ingester
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { name: ingester-zone-a } }
  template:
    metadata: { labels: { name: ingester-zone-a } }
    spec: { containers: [{ name: ingester, image: "ingester:1" }] }
`;
const policyIn = (namespace: string) => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: shrinking, namespace: ${namespace} }
spec:
  targets: { all: true, namespaces: [mimir] }
  rules: [{ name: never, actions: [scaleDown, rollout], effect: deny }]
`;
const policyTest = `apiVersion: rollout-group.dev/v1alpha1
kind: PolicyTest
metadata: { name: shrinking }
spec:
  files: [policy.yaml, manifests]
  cases:
    - { name: no zone shrinks, request: { action: scaleDown, zone: ingester-zone-a, from: 3, to: 2 }, expect: { decision: deny } }
`;

const folder = (namespace: string) =>
  folderWith({ 'policy.yaml': policyIn(namespace), 'manifests/a.yaml': statefulSet, 'test.yaml': policyTest });

describe.each([
  // A policy that names namespaces which it may not is an error of lint, and nothing is planned with errors.
  ['plan --current manifests -f policy.yaml --set image=ingester:2', 5, 4],
  ['test test.yaml', 0, 4],
  ['lint policy.yaml manifests', 0, 4],
])('%s', (words, bound, unbound) => {
  const run = async (namespace: string, ...more: readonly string[]) =>
    (await runInProcess([...words.split(' '), ...more], { cwd: folder(namespace) })).status;

  it('is the namespace of the flag, or the default', async () => {
    expect(await run('ops', '--agent-namespace', 'ops')).toBe(bound);
    expect(await run('rollout-group')).toBe(bound);
  });

  it('has policies that are read as policies of that namespace', async () => {
    expect(await run('ops')).toBe(unbound);
  });
});

it('explain shows the rules that apply to the group', async () => {
  const words = 'explain ingester --current manifests -f policy.yaml --set image=ingester:2'.split(' ');
  const explained = async (...more: readonly string[]) => (await runInProcess([...words, ...more], { cwd: folder('ops') })).stdout;
  expect(await explained('--agent-namespace', 'ops')).toContain('shrinking/never');
  expect(await explained('--agent-namespace', 'rollout-group')).not.toContain('shrinking/never');
});

const leaseIn = (namespace: string, holder: string) => ({
  ...leaseObject(holder, 0),
  metadata: { name: 'rollout-group-agent', namespace },
});
const two = [leaseIn('agents-a', 'one'), leaseIn('agents-b', 'two')];
const decided = (namespace: string, leader: string) => publishedObject({ ...done, namespace, leader });

describe('the namespace of the agent', () => {
  it('is the namespace of the only Lease, with or without a holder, and the default without a Lease', async () => {
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: [leaseIn('ops', '')] } }), ['mimir'])).toBe('ops');
    expect(await agentNamespaceOf(clusterOf({}), ['mimir'])).toBe('rollout-group');
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: two }, forbidden: ['leases'] }), ['mimir'])).toBe('rollout-group');
  });

  it('is, with several agents, the namespace of the agent that published for the namespaces in question', async () => {
    const cluster = clusterOf({ objects: { leases: two, configmaps: [decided('loki', 'one'), decided('mimir', 'two')] } });
    expect(await agentNamespaceOf(cluster, ['mimir'])).toBe('agents-b');
    expect(await agentNamespaceOf(cluster, ['loki'])).toBe('agents-a');
    await expect(agentNamespaceOf(cluster, ['loki', 'mimir'])).rejects.toThrow('several of them decide here');
    await expect(agentNamespaceOf(cluster, undefined)).rejects.toThrow('several of them decide here');
  });

  it('is, with several agents, the namespace next to the group', async () => {
    expect(await agentNamespaceOf(clusterOf({ objects: { leases: [...two, leaseIn('mimir', 'three')] } }), ['mimir'])).toBe('mimir');
  });

  it('must be named if no source names it', async () => {
    const desiredObjects = agentNamespaceOf(clusterOf({ objects: { leases: two } }), ['mimir']);
    await expect(desiredObjects).rejects.toMatchObject({
      exitCode: 3,
      message: 'agents run in the namespaces agents-a, agents-b, and which of them decides here is unknown',
      details: { todo: 'name one with --agent-namespace, such as --agent-namespace agents-a' },
    });
  });
});
