// Tests the namespaces that an agent watches (its own, several, or all), and an agent in a cluster with only some of the kinds.
import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type AgentProcess, startAgentProcess } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import { TestGroup } from '../control-plane/group.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface Group extends KubernetesObject {
  readonly status?: { readonly phase?: string };
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const native = '/apis/rollout-group.dev/v1alpha1/namespaces/all-c/rolloutgroups';

describeOnControlPlane('the namespaces of an agent', (controlPlane) => {
  let agent: AgentProcess | undefined;
  const groups = new Map<string, TestGroup>();
  const groupIn = (namespace: string): TestGroup => groups.get(namespace) ?? neverMade(namespace);

  beforeAll(async () => {
    const { client, identities } = controlPlane();
    for (const namespace of ['several-a', 'several-b', 'all-c']) {
      const group = new TestGroup(client, { namespace, replicas: 2 });
      await group.create();
      groups.set(namespace, group);
      await grant(client, identities.agent, namespace, agentRules());
    }
    await grantNodes(client, identities.agent);
  });
  afterEach(async () => {
    await agent?.stop();
    agent = undefined;
  });

  const start = async (...flags: readonly string[]): Promise<void> => {
    const { url, identities } = controlPlane();
    agent = await startAgentProcess({ url, identity: identities.agent, namespace: 'several-a', flags });
    await agent.untilReady();
  };

  it('several: only groups in them are rolled out', async () => {
    await start('--namespaces=several-a,several-b');
    await groupIn('all-c').setImage('example.com/server:2');
    await groupIn('several-b').setImage('example.com/server:2');
    await groupIn('several-a').setImage('example.com/server:2');
    await groupIn('several-b').untilRolled();
    await groupIn('several-a').untilRolled();
    const { auditLog, identities } = controlPlane();
    const elsewhere = (await auditLog()).filter(
      ({ user, objectRef }) => user.username === identities.agent.user && objectRef?.namespace === 'all-c',
    );
    expect(elsewhere.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
  });

  it('all, with one kind of ours installed: a group of that kind is found in any namespace, and its status is written', async () => {
    const { client, identities } = controlPlane();
    await client.create(definitions, parse(readFileSync('deploy/crds/rolloutgroups.yaml', 'utf8')));
    await client.until<Definition>(definitions, 'the kind served', (seen) =>
      seen.every(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')),
    );
    await client.patch('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test-everywhere?fieldManager=test', 'apply', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'test-everywhere' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'test-everywhere' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identities.agent.user }],
    });
    await client.patch('/apis/rbac.authorization.k8s.io/v1/clusterroles/test-everywhere?fieldManager=test', 'apply', {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'test-everywhere' },
      rules: agentRules(),
    });
    await client.create(native, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'written' },
      spec: {
        members: { zones: groupIn('all-c').sets.map((statefulSet, index) => ({ name: 'abc'[index], statefulSet })) },
        rollout: { strategy: 'onDelete' },
      },
    });
    await start('--namespaces=*');
    await groupIn('all-c').untilRolled(undefined, { isAdopted: false });
    const [written] = await client.until<Group>(native, 'Done in the status', ([group]) => group?.status?.phase === 'Done');
    expect(written?.status).toMatchObject({ phase: 'Done', updatedPods: 6, readyPods: 6 });
    const metrics = await agent?.ask('/metrics');
    // Kinds that are not installed are named there and stop nothing: groups of the other namespaces are looked after, too.
    expect(metrics?.body).toMatch(/^rollout_group_state\{namespace="several-a",group="ingester",phase="Done"\} 1$/m);
  });
});

function neverMade(namespace: string): never {
  throw new Error(`no group was made in ${namespace}`);
}
