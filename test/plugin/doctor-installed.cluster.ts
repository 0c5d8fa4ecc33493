// Doctor looks at an agent with exactly the rights that `install` prints, on an API server with the feature gate MaxUnavailableStatefulSet.
import { tmpdir } from 'node:os';
import { beforeAll, expect, it, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { collectionPath, resourceOf } from '../../cluster/request/resource.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { installation } from '../../install/installation.ts';
import { certificateSecret } from '../../install/object.ts';
import { pluralOf } from '../../install/rights.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { group as mirroring, optionsOf, rulesIn, scopeOf } from '../install/given.ts';
import { runInProcess } from './in-process.ts';
import { person } from './live-people.ts';

const groupOf = (name: string, strategy: string) => `---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ${name}, namespace: mimir }
spec: { members: { zones: [{ name: a, statefulSet: ${name}-a }] }, replicas: { leader: true }, rollout: { strategy: ${strategy} } }
`;
const policies = `${mirroring}${groupOf('ledger', 'pinned')}${groupOf('store', 'partition')}`;
const objects = installation(optionsOf({ hasCompat: true, scope: scopeOf(policies) }));
const inCluster = /^Cluster|Definition$|WebhookConfiguration$/;

function pathOf({ apiVersion, kind, metadata }: Pick<(typeof objects)[number], 'apiVersion' | 'kind' | 'metadata'>): string {
  return collectionPath(resourceOf(apiVersion, pluralOf(kind), kind, !inCluster.test(kind)), metadata.namespace);
}

describeOnControlPlane(
  'doctor of an installation',
  (controlPlane) => {
    beforeAll(async () => {
      const { client } = controlPlane();
      for (const name of ['mimir', 'rollout-group']) await client.create('/api/v1/namespaces', { metadata: { name } });
      for (const one of objects) if (/Definition$|Role|^ServiceAccount$/.test(one.kind)) await client.create(pathOf(one), one);
      for (const name of ['ingester-zone-a', 'ingester-zone-b', 'ledger-a', 'store-a']) {
        const strategy = name.startsWith('ingester') ? 'OnDelete' : 'RollingUpdate';
        await client.create('/apis/apps/v1/namespaces/mimir/statefulsets', statefulSet({ name, replicas: 1, strategy }));
      }
      for (const document of parseAllDocuments(policies)) {
        const one = document.toJS();
        await vi.waitFor(() => client.create(pathOf(one), one), { timeout: 10_000 });
      }
      const deployment = objects.find(({ kind }) => kind === 'Deployment');
      const pods = '/api/v1/namespaces/rollout-group/pods';
      await client.create(pods, { metadata: { name: 'agent-1' }, spec: fieldAt(deployment, ['spec', 'template', 'spec']) });
      await client.create('/apis/coordination.k8s.io/v1/namespaces/rollout-group/leases', {
        metadata: { name: agentName },
        spec: { holderIdentity: 'agent-1', leaseDurationSeconds: 3600, renewTime: `${new Date().toISOString().slice(0, -1)}000Z` },
      });
      // The last objects, because no webhook answers here.
      for (const one of objects) if (one.kind.endsWith('WebhookConfiguration')) await client.create(pathOf(one), one);
    });

    async function found(check: string, kubeconfig = controlPlane().identities.admin.kubeconfig): Promise<readonly string[]> {
      const { stdout, stderr } = await runInProcess(['doctor', '-n', 'mimir', '-o', 'json'], {
        env: { KUBECONFIG: kubeconfig, HOME: tmpdir() },
      });
      if (stdout === '') throw new Error(stderr);
      const { checks }: { readonly checks: readonly Record<'check' | 'verdict' | 'message', string>[] } = JSON.parse(stdout);
      return checks.filter((one) => one.check === check).map(({ verdict, message }) => `${verdict} ${message}`);
    }

    const account = `rollout-group/${agentName}`;

    it('finds every permission of the agent in the roles of `install`', async () => {
      expect(await found('RBAC')).toEqual([`ok ${account} has all rights that it needs`]);
    });

    it.each([
      [
        'secrets',
        `warn ${account} may not get, list, watch, update secrets in rollout-group: the certificate of the webhooks in Secret ${certificateSecret} is not created or renewed`,
      ],
      [
        'mutatingwebhookconfigurations',
        ...['0-rollout-group-pinned', 'rollout-group'].map(
          (name) =>
            `warn ${account} may not patch mutatingwebhookconfigurations (admissionregistration.k8s.io) in the cluster: caBundle and new StatefulSets are not written to ${name}`,
        ),
      ],
      [
        'leases',
        `FAIL ${account} may not get, update leases (coordination.k8s.io) in rollout-group: the agent takes no action without its Lease`,
      ],
    ])('names the lost permission on the named %s', async (resource, ...expected) => {
      const { client } = controlPlane();
      const isNamed = ({ resources, resourceNames }: ReturnType<typeof rulesIn>[number]) =>
        resources.includes(resource) && resourceNames !== undefined;
      const role = objects.find((one) => /Role$/.test(one.kind) && rulesIn(one).some(isNamed));
      if (role === undefined) throw new Error(`no role names ${resource}`);
      const path = `${pathOf(role)}/${role.metadata.name}`;
      // A right on another object does not count.
      const rules = rulesIn(role).map((rule) => (isNamed(rule) ? { ...rule, resourceNames: ['other'] } : rule));
      await client.patch(path, 'merge', { rules });
      try {
        await expect.poll(async () => (await found('RBAC')).toSorted(), { timeout: 10_000 }).toEqual(expected);
      } finally {
        await client.patch(path, 'merge', { rules: rulesIn(role) });
      }
    });

    it('warns of the feature gate only for the strategy partition, and only if the gate can be read', async () => {
      const warning =
        'warn v1.36.3 counts unready pods against maxUnavailable, because the feature gate MaxUnavailableStatefulSet is on: a broken revision of mimir/store-a may block its own fix';
      expect(await found('Kubernetes')).toEqual([warning]);
      const visitor = await person(controlPlane(), 'mimir', 'visitor', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
      expect(await found('Kubernetes', visitor.identity.kubeconfig)).toEqual(['ok v1.36.3 has no known problem for these groups']);
    });
  },
  { isStill: true, featureGates: 'MaxUnavailableStatefulSet=true' },
);
