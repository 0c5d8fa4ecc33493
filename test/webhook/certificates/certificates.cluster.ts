// What a certificate in a Secret and its authority in webhook configurations come to on a real API server, with no more rights than they need.
import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { connectionProcess, processEnv } from '../../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../../cluster/connection/transport.ts';
import { loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type Certificates, startCertificates } from '../../../webhook/certificates/certificates.ts';
import { configurationResources } from '../../../webhook/certificates/webhook-configurations.ts';
import type { WebhookEnv } from '../../../webhook/env.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { isAccepted } from './world.ts';

const patience = { timeout: 30_000, interval: 50 };
const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const kinds = ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'];

/** Somebody with the rights of the original and no others: of Secrets, nothing but to create, get and update them. */
async function connect({ client, identityOf }: ControlPlane, namespace: string): Promise<WebhookEnv> {
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  const identity = identityOf({ user: `webhook-of-${namespace}`, groups: [] });
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const subjects = [{ kind: 'User', name: identity.user }];
  const name = `webhook-of-${namespace}`;
  const secretRules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['create', 'get', 'update'] }];
  await client.create(`${rbac}/namespaces/${namespace}/roles`, { metadata: { name }, rules: secretRules });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', name };
  await client.create(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { ...roleRef, kind: 'Role' },
    subjects,
  });
  const rules = [{ apiGroups: ['admissionregistration.k8s.io'], resources: kinds, verbs: ['list', 'watch', 'patch'] }];
  await client.create(`${rbac}/clusterroles`, { metadata: { name }, rules });
  await client.create(`${rbac}/clusterrolebindings`, { metadata: { name }, roleRef: { ...roleRef, kind: 'ClusterRole' }, subjects });
  const process = { ...connectionProcess(), env: {}, homeDir: '/nonexistent' };
  const http = new KubernetesTransport(await loadConnection({ kubeconfig: identity.kubeconfig }, process), {
    userAgent: 'rollout-group-test/1',
  });
  onTestFinished(() => http.close());
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const env = { ...processEnv(http), log: silent, pods: { call: () => Promise.reject(new Error('no pod is called')) } };
  // The API server learns of new bindings by a watch of its own.
  await vi.waitFor(() => getObject(env, resources.secrets, { namespace, name: 'none' }, { site: 'test' }), patience);
  await vi.waitFor(() => listObjects(env, configurationResources.ValidatingWebhook, { site: 'test' }), patience);
  return env;
}

function start(env: WebhookEnv, namespace: string): Certificates {
  const certificates = startCertificates({
    env,
    namespace,
    randomBytes,
    files: { read: () => Promise.reject(new Error('no files')), watch: () => () => undefined },
    certificate: {
      kind: 'self-signed',
      secretName: 'certificate',
      service: 'operator',
      clusterDomain: 'cluster.local.',
      organization: 'Example',
      lifetimeMs: 86_400_000,
      injectsAuthority: true,
    },
  });
  onTestFinished(() => certificates.stop());
  return certificates;
}

function configuration(name: string, namespace: string) {
  const entry = {
    clientConfig: { service: { name: 'operator', namespace, path: '/x' } },
    rules: [{ apiGroups: ['nobody.example'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nothings'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    failurePolicy: 'Ignore',
  };
  const labels = { 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': namespace };
  return { metadata: { name, labels }, webhooks: ['a', 'b'].map((one) => ({ name: `${one}.${name}.grafana.com`, ...entry })) };
}

describeOnControlPlane('the certificate of the webhook', (controlPlane) => {
  it('three replicas agree on one certificate, write its authority to old and new configurations, and restore it', async () => {
    const env = await connect(controlPlane(), 'certificates');
    const { client } = controlPlane();
    await client.create(configurations, configuration('before', 'certificates'));
    const replicas = [1, 2, 3].map(() => start(env, 'certificates'));
    await client.create(configurations, configuration('after', 'certificates'));
    const bundles = async (name: string): Promise<readonly string[]> => {
      const { items } = await listObjects(env, configurationResources.ValidatingWebhook, { site: 'test' });
      const webhooks = (items.find(({ metadata }) => metadata.name === name)?.['webhooks'] ?? []) as readonly {
        readonly clientConfig: { readonly caBundle?: string };
      }[];
      return webhooks.map(({ clientConfig: { caBundle = '' } }) => Buffer.from(caBundle, 'base64').toString('utf8'));
    };
    const isTrusted = async (): Promise<void> => {
      const all = [...(await bundles('before')), ...(await bundles('after'))];
      expect(all).toHaveLength(4);
      const accepted = replicas.flatMap((replica) =>
        all.map((bundle) => isAccepted(replica.current(), bundle, 'operator.certificates.svc')),
      );
      expect(new Set(accepted)).toEqual(new Set([true]));
    };
    await vi.waitFor(isTrusted, patience);
    expect(new Set(replicas.map((replica) => replica.current()?.cert)).size).toBe(1);
    // As a tool does that applies its own file.
    const stripped = { webhooks: configuration('before', 'certificates').webhooks };
    await client.patch(`${configurations}/before`, 'merge', stripped);
    await vi.waitFor(isTrusted, patience);
    expect(replicas.flatMap((replica) => replica.degradations())).toEqual([]);
    const samples = replicas[0]?.failurePolicies().filter(({ policy, value }) => policy === 'Ignore' && value === 1) ?? [];
    expect(samples.map(({ webhook }) => webhook)).toHaveLength(4);
  });
});
