import { beforeAll, expect, it } from 'vitest';
import { holderVersionAnnotation } from '../../cluster/lease/lease.ts';
import { admissionPoliciesOf, markAnnotation, markOf } from '../../install/admission-policy.ts';
import { installation } from '../../install/installation.ts';
import { narrowed } from '../../install/narrowing.ts';
import { enforceLabel, type InstallObject } from '../../install/object.ts';
import { version } from '../../plugin/version.ts';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type Kind, kinds } from '../../policies/schema/kinds.ts';
import type { ApiClient } from '../control-plane/client.ts';
import { TestGroup } from '../control-plane/group.ts';
import type { Identity } from '../control-plane/identities.ts';
import { agentRules, grant, grantNodes, grantPins, permissionsOf, type Rule, sourceRules, without } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { optionsOf } from '../install/given.ts';
import { shareOf } from '../kit/share.ts';
import { itAgreesWithPlans } from './doctor-and-plans.ts';
import { type Person, person, readerRules } from './live-people.ts';

const namespace = 'mimir';
const groups = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
const account = 'rollout-group/rollout-group-agent';

/** What doctor reads of a namespace besides what plan does. */
const doctorRules: readonly Rule[] = [
  ...readerRules,
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] },
  { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers'], verbs: ['list'] },
  { apiGroups: ['keda.sh'], resources: ['scaledobjects'], verbs: ['list'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get'] },
  { apiGroups: ['rollout-group.dev'], resources: ['metricsources', 'notificationchannels'], verbs: ['list'] },
];

interface Shown {
  readonly check: string;
  readonly verdict: string;
  readonly message: string;
  readonly code?: string;
}

const accountsPath = '/api/v1/namespaces/rollout-group/serviceaccounts';
const rbac = '/apis/rbac.authorization.k8s.io/v1';

/** What an agent is given where its group is, and in its own namespace. */
async function grantAgent(client: ApiClient, agent: Identity, rules: readonly Rule[]): Promise<void> {
  await grant(client, agent, namespace, rules);
  await grant(client, agent, 'rollout-group', [...rules, ...sourceRules()]);
}

describeOnControlPlane('doctor', (controlPlane) => {
  let group: TestGroup;
  let doctor: Person;

  beforeAll(async () => {
    const { client, identities } = controlPlane();
    group = new TestGroup(client, { namespace, zones: ['a', 'b'], replicas: 1 });
    await group.create();
    await client.create('/api/v1/namespaces', { metadata: { name: 'rollout-group' } });
    await client.create(accountsPath, { metadata: { name: 'rollout-group-agent' } });
    await grantAgent(client, identities.agent, agentRules());
    await grantNodes(client, identities.agent);
    await grantPins(client, identities.agent);
    doctor = await person(controlPlane(), namespace, 'doctor', doctorRules);
    await grant(client, doctor.identity, 'rollout-group', doctorRules);
    await client.create(`${rbac}/clusterroles`, {
      metadata: { name: 'test-reviews' },
      rules: [
        { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
        { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get'] },
        {
          apiGroups: ['admissionregistration.k8s.io'],
          resources: [
            ...['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
            ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
          ],
          verbs: ['get'],
        },
        { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
      ],
    });
    await client.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'test-reviews' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'test-reviews' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: doctor.identity.user }],
    });
    for (const kind of Object.keys(kinds) as Kind[]) {
      const definition = customResourceDefinition(kind);
      if (definition !== undefined) await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    }
    await renew('agent-1');
  });

  const leasePath = '/apis/coordination.k8s.io/v1/namespaces/rollout-group/leases';

  function renew(holder: string): Promise<unknown> {
    const spec = { holderIdentity: holder, leaseDurationSeconds: 3600, renewTime: `${new Date().toISOString().slice(0, -1)}000Z` };
    return controlPlane().client.patch(`${leasePath}/rollout-group-agent?fieldManager=test&force=true`, 'apply', {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'rollout-group-agent', annotations: { [holderVersionAnnotation]: `${version} ${holder}` } },
      spec,
    });
  }

  async function look(
    words: readonly string[] = [],
    who = doctor,
  ): Promise<{ readonly status: number; readonly checks: readonly Shown[] }> {
    const { status, stdout, stderr } = await who.run(['doctor', '-o', 'json', ...words]);
    if (stdout === '') throw new Error(stderr);
    return { status, checks: JSON.parse(stdout).checks };
  }

  async function problems(words: readonly string[] = []): Promise<readonly string[]> {
    const { checks } = await look(words);
    return checks
      .filter(({ verdict }) => verdict !== 'ok')
      .map(({ verdict, check, code = '-', message }) => `${verdict} ${check} ${code} ${message}`);
  }

  it('reports only the missing decisions of an agent that only renews its Lease', async () => {
    expect(await problems()).toEqual(['warn decisions RG6003 mimir/ingester: the agent has published no decision']);
    const { status, checks } = await look();
    expect(status).toBe(0);
    expect(checks.find(({ check }) => check === 'RBAC')?.message).toBe(`${account} has all rights that it needs`);
    expect(checks.find(({ check }) => check === 'CRDs')?.message).toMatch(/^\d+ kinds installed in this version$/);
    expect(checks.find(({ check }) => check === 'clock')?.verdict).toBe('ok');
  });

  it('fails while the webhook that a policy needs is missing, and not for a namespace without groups', async () => {
    const { client } = controlPlane();
    await client.create(groups, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester', namespace },
      spec: {
        members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
        rollout: {
          strategy: 'onDelete',
          waves: [{ name: 'first', zones: ['a', 'b'], percent: 100, before: { approval: { count: 1, from: ['oncall'] } } }],
        },
        protect: { noDownscale: true, noDelete: true },
      },
    });
    const webhooks = async () => (await problems()).filter((line) => line.includes(' webhooks '));
    try {
      await expect
        .poll(webhooks, { timeout: 10_000 })
        .toEqual([
          'FAIL webhooks RG6027 mimir/ingester needs approvals: no webhook that records requesters is registered, so no approval counts',
          'FAIL webhooks RG6027 mimir/ingester has noDownscale and noDelete: no webhook is registered, so other clients can scale it down and delete its StatefulSets',
        ]);
      expect((await look()).status).toBe(4);
    } finally {
      await client.delete(`${groups}/ingester`);
    }
    await client.create('/api/v1/namespaces', { metadata: { name: 'unmanaged' } });
    await grant(client, doctor.identity, 'unmanaged', doctorRules);
    const { runInProcess } = await import('./in-process.ts');
    const inspect = () =>
      runInProcess(['doctor', '-n', 'unmanaged', '-o', 'json'], { env: { KUBECONFIG: doctor.identity.kubeconfig, HOME: '/' } });
    const failures = async () => {
      const { stdout, stderr } = await inspect();
      if (stdout === '') return stderr;
      const checks: readonly Shown[] = JSON.parse(stdout).checks;
      return checks.filter(({ verdict }) => verdict === 'FAIL' || verdict === 'warn').map(({ message }) => message);
    };
    await expect.poll(failures, { timeout: 10_000 }).toEqual(['no group exists here']);
    expect((await inspect()).status).toBe(0);
  });

  it('expects the agent, and no installation, to add a new StatefulSet to the webhooks', async () => {
    const { client } = controlPlane();
    const own = `/api/v1/namespaces/${namespace}`;
    const objects = installation(optionsOf()).filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
    const pathOf = ({ kind }: InstallObject) => `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`;
    const known = [{ namespace, statefulSet: 'ingester-zone-a' }];
    await client.patch(own, 'merge', { metadata: { labels: { [enforceLabel]: 'true' } } });
    try {
      for (const one of objects) {
        const webhooks = narrowed(one['webhooks'] as Parameters<typeof narrowed>[0], known);
        await client.create(pathOf(one), { ...one, webhooks });
      }
      const found = (await problems()).filter((line) => /covered|install again/.test(line));
      expect(found).toEqual([
        'warn webhooks - mimir/ingester-zone-b is not covered by the webhooks yet: the agent adds new StatefulSets within seconds. Run doctor again',
      ]);
    } finally {
      for (const one of objects) await client.ask('DELETE', `${pathOf(one)}/${one.metadata.name}`);
      await client.patch(own, 'merge', { metadata: { labels: { [enforceLabel]: null } } });
    }
  });

  /** Of groups that pinned pods alone; there is none here, and none that mirrors a ReplicaTemplate. */
  const ofPin = 'get controllerrevisions.apps';

  it('names the permission to read revisions if a group pins pods, and only there', async () => {
    const { client, identities } = controlPlane();
    const right = `${account} may not get controllerrevisions (apps) in mimir: no pod is pinned to another revision`;
    await grantAgent(client, identities.agent, without(agentRules(), ofPin));
    try {
      expect((await problems()).some((problem) => problem.includes(right))).toBe(false);
      await client.create(groups, {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutGroup',
        metadata: { name: 'ledger', namespace },
        spec: { members: { zones: [{ name: 'a', statefulSet: 'ledger-a' }] }, replicas: { leader: true }, rollout: { strategy: 'pinned' } },
      });
      await expect.poll(problems, { timeout: 10_000 }).toContainEqual(expect.stringContaining(right));
    } finally {
      await client.ask('DELETE', `${groups}/ledger`);
      await grantAgent(client, identities.agent, agentRules());
    }
  });

  const permissions = permissionsOf(agentRules()).filter((permission) => permission !== ofPin && !permission.includes('replicatemplates'));

  it.each(shareOf(permissions, 4))('names "%s" if the agent may not do it', async (permission) => {
    const { client, identities } = controlPlane();
    const [verb = '', target = ''] = permission.split(' ');
    const [resource = '', ...group] = target.split('.');
    await grantAgent(client, identities.agent, without(agentRules(), permission));
    const right = `${account} may not ${verb} ${resource}${group.length === 0 ? '' : ` (${group.join('.')})`} in `;
    try {
      await expect.poll(problems, { timeout: 10_000 }).toContainEqual(expect.stringContaining(right));
    } finally {
      await grantAgent(client, identities.agent, agentRules());
    }
  });

  it('names each missing permission of the agent, and its consequence', async () => {
    const { client, identities } = controlPlane();
    await grant(client, identities.agent, namespace, without(without(agentRules(), 'delete pods'), 'create events.events.k8s.io'));
    await expect
      .poll(problems, { timeout: 10_000 })
      .toContain(`FAIL RBAC RG6007 ${account} may not delete pods in mimir: no pod is replaced by deletion`);
    expect(await problems()).toContain(
      `warn RBAC RG6007 ${account} may not create events (events.k8s.io) in mimir: decisions leave no Events`,
    );
    expect((await look()).status).toBe(4);
    await grant(client, identities.agent, namespace, agentRules());
  });

  it('compares the stored admission policies with the policies of an installation', async () => {
    const { client } = controlPlane();
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic';
    const pluralOf = ({ kind }: InstallObject) => `${path}${kind.endsWith('Binding') ? 'ybindings' : 'ies'}`;
    const policies = async () => (await look()).checks.filter(({ check }) => check === 'policies');
    const objects = admissionPoliciesOf(optionsOf());
    try {
      for (const one of objects) await client.create(pluralOf(one), one);
      expect((await policies()).map(({ verdict }) => verdict)).toEqual(['ok']);
      // As another version wrote it: what the API server fills in beside it makes no difference to its mark.
      for (const one of objects) {
        const change = one.kind.endsWith('Binding')
          ? { matchResources: { objectSelector: { matchLabels: { a: 'b' } } } }
          : { failurePolicy: 'Ignore' };
        const spec = { ...(one['spec'] as object), ...change };
        const metadata = { ...one.metadata, annotations: { [markAnnotation]: markOf(spec) } };
        await client.delete(`${pluralOf(one)}/${metadata.name}`);
        await client.create(pluralOf(one), { ...one, metadata, spec });
      }
      const found = await policies();
      expect(found.map(({ verdict }) => verdict)).toEqual(objects.map(() => 'warn'));
      expect(found.every(({ message }) => message.includes('was installed by another version'))).toBe(true);
      for (const one of objects) {
        await client.delete(`${pluralOf(one)}/${one.metadata.name}`);
        await client.create(pluralOf(one), one);
      }
      await client.patch(`${path}ybindings/rollout-group-requested-by`, 'merge', { spec: { validationActions: ['Warn'] } });
      const refusesNobody = 'ValidatingAdmissionPolicyBinding rollout-group-requested-by denies nothing: its validationActions are Warn';
      expect(await policies()).toEqual([{ check: 'policies', verdict: 'FAIL', message: refusesNobody, code: 'RG6021' }]);
    } finally {
      for (const one of objects) await client.delete(`${pluralOf(one)}/${one.metadata.name}`);
    }
    expect(await policies()).toEqual([]);
  });

  it('names the missing Secrets of a source', async () => {
    const { client } = controlPlane();
    const sources = '/apis/rollout-group.dev/v1alpha1/namespaces/rollout-group/metricsources';
    const secrets = () => problems().then((lines) => lines.filter((line) => line.includes('Secrets')));
    await client.create(sources, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'MetricSource',
      metadata: { name: 'prod' },
      spec: {
        prometheus: { url: 'https://prometheus', bearerToken: { name: 'login', key: 'token' } },
        usableFrom: { namespaces: [namespace] },
      },
    });
    const unread = 'SKIP Secrets - no permission to get Secrets in rollout-group; whether login exists is unknown';
    expect(await secrets()).toEqual([unread]);
    await grant(client, doctor.identity, 'rollout-group', [
      ...doctorRules,
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['login'] },
    ]);
    const missing = 'warn Secrets RG6022 MetricSource rollout-group/prod: Secret login does not exist in namespace rollout-group';
    await expect.poll(secrets, { timeout: 10_000 }).toEqual([missing]);
    await client.delete(`${sources}/prod`);
    expect(await secrets()).toEqual([]);
  });

  itAgreesWithPlans(() => ({
    controlPlane: controlPlane(),
    group,
    doctor,
    problems,
    grantAgent: (rules) => grantAgent(controlPlane().client, controlPlane().identities.agent, rules),
  }));

  it('names the problems of a group', async () => {
    const { client } = controlPlane();
    await client.patch(`${group.setsPath}/ingester-zone-b`, 'merge', { spec: { updateStrategy: { type: 'RollingUpdate' } } });
    await client.create('/apis/autoscaling/v2/namespaces/mimir/horizontalpodautoscalers', {
      metadata: { name: 'ingester-b' },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'ingester-zone-b' }, minReplicas: 1, maxReplicas: 3 },
    });
    await group.annotate('ingester-zone-b', { 'grafana.com/rollout-downscale-leader': 'ingester-zone-a' });
    await client.patch(`${group.setsPath}/ingester-zone-b?fieldManager=argocd-controller&force=true`, 'apply', {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'ingester-zone-b' },
      spec: { replicas: 1 },
    });
    for (const name of ['one', 'two']) {
      await client.create('/apis/policy/v1/namespaces/mimir/poddisruptionbudgets', {
        metadata: { name },
        spec: { maxUnavailable: 1, selector: { matchLabels: { name: 'ingester-zone-a' } } },
      });
    }
    await client.create(group.podsPath, {
      metadata: { name: 'debug', labels: { name: 'ingester-zone-a' } },
      spec: { containers: [{ name: 'main', image: 'example.com/debug:1' }] },
    });
    await client.create('/apis/apps/v1/namespaces/mimir/deployments', {
      metadata: { name: 'rollout-operator' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { name: 'rollout-operator' } },
        template: {
          metadata: { labels: { name: 'rollout-operator' } },
          spec: { containers: [{ name: 'main', image: 'grafana/rollout-operator:v0.38.1' }] },
        },
      },
    });
    // No Deployment controller runs here: the pod that it would make is said to be there.
    await client.patch('/apis/apps/v1/namespaces/mimir/deployments/rollout-operator/status', 'merge', { status: { replicas: 1 } });
    await client.create('/api/v1/namespaces/mimir/configmaps', {
      metadata: { name: 'rollout-group-distributor', labels: { 'rollout-group.dev/document': 'ledger' } },
    });
    await client.delete('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rolloutintents.rollout-group.dev');
    await client.patch('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rolloutpolicies.rollout-group.dev', 'json', [
      { op: 'replace', path: '/spec/versions/0/schema/openAPIV3Schema/description', value: 'another' },
    ]);
    await expect
      .poll(async () => (await problems()).some((line) => line.includes('RolloutIntent is not installed')), { timeout: 10_000 })
      .toBe(true);
    expect(await problems()).toEqual([
      'warn decisions RG6003 mimir/ingester: the agent has published no decision',
      'warn CRDs RG6006 RolloutPolicy is installed in another version. Run: kubectl rollout-group schema RolloutPolicy -o crd | kubectl apply -f -',
      'warn CRDs RG6005 RolloutIntent is not installed',
      'FAIL operators RG6008 Deployment mimir/rollout-operator runs grafana/rollout-operator:v0.38.1 next to the agent',
      'FAIL strategy RG6013 mimir/ingester-zone-b has the updateStrategy RollingUpdate: the rollout strategy onDelete needs OnDelete',
      'warn foreign pods RG6015 Pod mimir/debug has the labels of ingester-zone-a and belongs to no owner',
      'FAIL HPA RG6009 HorizontalPodAutoscaler mimir/ingester-b scales ingester-zone-b, whose replicas the agent writes',
      'FAIL GitOps RG6011 Argo CD owns spec.replicas of mimir/ingester-zone-b',
      'FAIL PDB RG6012 one and two cover the pods of mimir/ingester-zone-a: the eviction API refuses to evict these pods',
      'warn ledgers RG6016 ConfigMap mimir/rollout-group-distributor belongs to no group. When it has no open claims, run: kubectl delete configmap rollout-group-distributor -n mimir',
    ]);
    expect((await doctor.run(['doctor', '--fix-hints'])).stdout).toContain('fix: keep one budget over the pods of the group');
  });

  it('reports a Lease without renewals, and other Leases', async () => {
    const { client } = controlPlane();
    await client.patch(`${leasePath}/rollout-group-agent`, 'merge', {
      spec: { leaseDurationSeconds: 1, renewTime: '2026-01-01T00:00:00.000000Z' },
    });
    expect(await problems()).toContainEqual(
      expect.stringMatching(
        /^FAIL agent RG6002 agent not running: Lease expired \d+d\S* ago \(rollout-group\/rollout-group-agent of agent-1\)\. Run: kubectl get pods -n rollout-group$/,
      ),
    );
    await renew('agent-1');
    await client.create('/apis/coordination.k8s.io/v1/namespaces/mimir/leases', {
      metadata: { name: 'rollout-group-agent' },
      spec: { holderIdentity: 'agent-2', leaseDurationSeconds: 3600, renewTime: `${new Date().toISOString().slice(0, -1)}000Z` },
    });
    expect(await problems()).toContainEqual(expect.stringContaining('warn one agent RG6004 2 Leases are renewed'));
    // The one beside the group is of its agent, which has no account here.
    expect(await problems()).toContainEqual(expect.stringMatching(/^SKIP RBAC - no Pod shows the account of agent-2/));
    await client.delete('/apis/coordination.k8s.io/v1/namespaces/mimir/leases/rollout-group-agent');
  });

  it('skips objects that it may not read, by name, and needs only StatefulSets', async () => {
    const statefulSets: Rule = { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['list'] };
    const visitor = await person(controlPlane(), namespace, 'visitor', [statefulSets]);
    const { checks } = await look([], visitor);
    const skipped = checks.filter(({ verdict }) => verdict === 'SKIP');
    expect(skipped.map(({ check }) => check)).toEqual(
      expect.arrayContaining(['agent', 'RBAC', 'operators', 'HPA', 'PDB', 'ledgers', 'foreign pods']),
    );
    expect(skipped.find(({ check }) => check === 'RBAC')?.message).toContain('no permission to get serviceaccounts in rollout-group');
    const named = await look(['--agent-service-account', account], visitor);
    expect(named.checks.find(({ check }) => check === 'RBAC')?.message).toContain('no permission to create subjectaccessreviews');
    const nobody = await person(controlPlane(), namespace, 'nobody', []);
    const { status, stderr } = await nobody.run(['doctor']);
    expect({ status, isNamed: stderr.includes('may not list statefulsets in namespace mimir') }).toEqual({ status: 11, isNamed: true });
  });

  it('reads the permissions of the agent from the rules for the agent itself', async () => {
    const { identities } = controlPlane();
    const { runInProcess } = await import('./in-process.ts');
    const { stdout } = await runInProcess(['doctor', '-n', namespace, '-o', 'json'], { env: { KUBECONFIG: identities.agent.kubeconfig } });
    const checks: readonly Shown[] = JSON.parse(stdout).checks;
    expect(checks.filter(({ check }) => check === 'RBAC')).toEqual([
      { check: 'RBAC', verdict: 'ok', message: `${account} has all rights that it needs` },
    ]);
  });

  it('assumes no account for an agent without an account in this cluster', async () => {
    await controlPlane().client.delete(`${accountsPath}/rollout-group-agent`);
    expect(await problems()).toContainEqual(expect.stringMatching(/^SKIP RBAC - no Pod shows the account of agent-1, and there is no/));
  });

  it('changes nothing', async () => {
    const written = (await controlPlane().auditLog()).filter(
      ({ user, verb, objectRef, requestURI }) =>
        user.username === doctor.identity.user &&
        !/^(?:get|list|watch)$/.test(verb) &&
        !/reviews$/.test(objectRef?.resource ?? '') &&
        !requestURI.includes('dryRun=All'),
    );
    expect(written).toEqual([]);
  });
});
