// The executable on a real API server: restart and scale know who the user is, and that no approval can count.
import { beforeAll, expect, it } from 'vitest';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { bundleOf, serveKinds } from './apply-kit.ts';
import { filesOf, memberOf, type Person, writerRules } from './live-people.ts';

const namespace = 'known';
const apiVersion = 'rollout-group.dev/v1alpha1';
const name = 'ingester-zone-a';
const rules = [
  ...writerRules,
  { apiGroups: ['apps'], resources: ['statefulsets/scale'], verbs: ['get', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] },
];
const group = {
  apiVersion,
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace },
  spec: {
    members: { zones: [{ name: 'a', statefulSet: name }] },
    replicas: { leader: true },
    rollout: { strategy: 'onDelete', waves: [{ name: 'all', zones: ['a'], percent: 100, before: { approval: { count: 1, from: ['oncall'] } } }] },
  },
};
const policy = {
  apiVersion,
  kind: 'RolloutPolicy',
  metadata: { name: 'calm', namespace },
  spec: {
    targets: { all: true },
    rules: [
      {
        name: 'admins',
        actions: ['restart', 'scaleUp', 'scaleDown'],
        effect: 'deny',
        when: { '!': { in: ['admins', { var: 'user.groups' }] } },
      },
    ],
  },
};

/** Permits every user to read the webhook configurations, which a plan reads. */
async function permitWebhooks({ client }: ControlPlane): Promise<void> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const resources = ['mutatingwebhookconfigurations'];
  const metadata = { name: 'test-webhooks' };
  const readers = [{ apiGroups: ['admissionregistration.k8s.io'], resources, verbs: ['get'] }];
  await client.create(`${rbac}/clusterroles`, { metadata, rules: readers });
  await client.create(`${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  });
}

describeOnControlPlane('verbs in the cluster', (controlPlane) => {
  const manifest = (image: string): object => ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    ...statefulSet({ name, replicas: 1, nodeZone: 'zone-a', image }),
  });
  let admin: Person;
  let guest: Person;

  beforeAll(async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    await permitWebhooks(controlPlane());
    await client.create(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, manifest('example.com/server:1'));
    const path = `/apis/${apiVersion}/namespaces/${namespace}`;
    await client.create(`${path}/rolloutgroups`, group);
    await client.create(`${path}/rolloutpolicies`, policy);
    admin = await memberOf(controlPlane(), namespace, { user: 'ada', groups: ['admins'] }, rules);
    guest = await memberOf(controlPlane(), namespace, { user: 'gus', groups: ['dev'] }, rules);
  });

  it.each(['restart ingester --dry-run=server', 'scale ingester --replicas 2 --dry-run=server'])(
    '%s passes for a user whom a rule about the user permits, and for no other user',
    (line) => {
      const denied = bundleOf(guest, '.')(`${line} -n ${namespace}`);
      expect([denied.status, denied.stderr]).toEqual([5, expect.stringContaining('calm/admins')]);
      const passed = bundleOf(admin, '.')(`${line} -n ${namespace}`);
      expect([passed.status, passed.stderr]).toEqual([0, expect.not.stringContaining('calm/admins')]);
    },
  );

  it('restart names the same missing webhook as plan, and no approval that cannot be given', () => {
    const fact = /no webhook records requesters, so no approval counts: MutatingWebhookConfiguration rollout-group does not\s+exist/;
    const cwd = filesOf({ 'a.json': manifest('example.com/server:2') });
    const planned = bundleOf(admin, cwd)(`plan --live --desired a.json -n ${namespace} -o json`);
    expect([planned.status, planned.stdout]).toEqual([5, expect.stringMatching(fact)]);
    const { status, stdout, stderr } = bundleOf(admin, cwd)(`restart ingester --yes -n ${namespace}`);
    expect([status, stderr]).toEqual([0, expect.stringMatching(fact)]);
    expect(stdout).toContain('once nothing blocks it');
    expect(stdout).not.toContain('waits for the approval');
  });
});
