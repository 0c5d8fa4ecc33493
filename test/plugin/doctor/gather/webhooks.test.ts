import { describe, expect, it } from 'vitest';
import { isUnknown } from '../../../../engine/snapshot.ts';
import { installation } from '../../../../install/installation.ts';
import { readRegistration, readWebhookAccounts } from '../../../../plugin/doctor/gather/admission.ts';
import { optionsOf } from '../../../install/given.ts';
import { adopted } from '../../../kit/groups.ts';
import { type ClusterAnswers, clusterOf } from '../../served-objects.ts';

const groups = [adopted({ zones: ['a', 'b'] })];
const bare = installation(optionsOf()).filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
const configurations = bare.map((one) => ({
  ...one,
  webhooks: (one['webhooks'] as readonly { readonly clientConfig: object }[]).map((row) => ({
    ...row,
    clientConfig: { ...row.clientConfig, caBundle: 'Y2E=' },
  })),
}));
const namespace = (label?: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'mimir', ...(label === undefined ? {} : { labels: { 'rollout-group.dev/enforce': label } }) },
});
const objects = {
  validatingwebhookconfigurations: configurations.filter(({ kind }) => kind.startsWith('Val')),
  mutatingwebhookconfigurations: configurations.filter(({ kind }) => kind.startsWith('Mut')),
  namespaces: [namespace('true')],
  endpointslices: [
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'one', namespace: 'rollout-group', labels: { 'kubernetes.io/service-name': 'rollout-group-agent' } },
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    },
  ],
  services: [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' },
      spec: { selector: { app: 'webhook' } },
    },
  ],
  pods: [
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'webhook-1', namespace: 'rollout-group', labels: { app: 'webhook' } },
      spec: {
        serviceAccountName: 'webhook',
        containers: [
          { name: 'webhook', image: 'agent:1', args: ['-server-tls.enabled=true', '-server-tls.self-signed-cert.secret-name=pair'] },
        ],
      },
    },
  ],
};
const read = (answers: ClusterAnswers) => readRegistration(clusterOf(answers), { agentNamespace: 'rollout-group', groups, policies: [] });

describe('the registration of the webhooks', () => {
  it('is compared with the registration of an installation, and with the needs of the namespaces of groups', async () => {
    expect(await read({ objects })).toEqual({
      isRegistered: true,
      configurations: configurations.map(({ kind, metadata: { name } }) => ({ kind, name })),
      problems: [],
      namespaces: [{ name: 'mimir', isOptedIn: true }],
      services: ['rollout-group/rollout-group-agent'],
    });
    const { validatingwebhookconfigurations: _, ...without } = objects;
    expect(await read({ objects: without })).toMatchObject({
      problems: ['ValidatingWebhookConfiguration rollout-group does not exist'],
    });
    expect(await read({ objects: { namespaces: [namespace()] } })).toEqual({
      isRegistered: false,
      configurations: [],
      problems: [],
      services: [],
      namespaces: [{ name: 'mimir', isOptedIn: false }],
    });
  });

  it('names the webhook that denies downscales of groups with the labels of grafana/rollout-operator', async () => {
    const [first, ...others] = groups;
    if (first === undefined) throw new Error('there is no group');
    const guarded = [{ ...first, zones: first.zones.map((zone) => ({ ...zone, noDownscale: true })) }, ...others];
    const configuration = (path: string) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'no-downscale-mimir' },
      webhooks: [
        {
          name: 'no-downscale-mimir.grafana.com',
          clientConfig: { service: { namespace: 'mimir', name: 'rollout-operator', path } },
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'mimir' } },
        },
      ],
    });
    const named = { ...namespace(), metadata: { name: 'mimir', labels: { 'kubernetes.io/metadata.name': 'mimir' } } };
    const namespacesOf = async (path: string, answers: ClusterAnswers = {}) => {
      const cluster = clusterOf({ objects: { namespaces: [named], validatingwebhookconfigurations: [configuration(path)] }, ...answers });
      const registration = await readRegistration(cluster, { agentNamespace: 'rollout-group', groups: guarded, policies: [] });
      return isUnknown(registration) ? registration : registration.namespaces;
    };
    expect(await namespacesOf('/admission/no-downscale')).toEqual([{ name: 'mimir', isOptedIn: false, deniesDownscale: true }]);
    expect(await namespacesOf('/admission/other')).toEqual([{ name: 'mimir', isOptedIn: false }]);
  });

  it('is unknown if it may not be read', async () => {
    expect(await read({ objects, forbidden: ['mutatingwebhookconfigurations'] })).toHaveProperty('unknown');
    expect(await read({ objects, forbidden: ['namespaces'] })).toHaveProperty('unknown');
  });

  it('has no server without an authority, without a ready endpoint, and without the Service', async () => {
    const unanswered = async (answers: Parameters<typeof clusterOf>[0]) => {
      const registration = await read(answers);
      return isUnknown(registration)
        ? [registration.unknown]
        : (registration.unanswered ?? []).map(({ isNeeded, message }) => [isNeeded, message]);
    };
    const ofKind = (all: typeof bare, start: string) => all.filter(({ kind }) => kind.startsWith(start));
    const unsigned = { ...objects, validatingwebhookconfigurations: ofKind(bare, 'Val') };
    const untrusted = (name: string) =>
      `${name} has no caBundle: without it, the API server cannot call a webhook. See the log of the agent, which writes caBundle`;
    expect(await unanswered({ objects: unsigned })).toEqual([[true, untrusted('ValidatingWebhookConfiguration rollout-group')]]);
    // No group here pins pods.
    const pinned = ofKind(bare, 'Mut').find(({ metadata }) => metadata.name.includes('pinned'));
    if (pinned === undefined) throw new Error('an installation pins no pods');
    expect(
      await unanswered({ objects: { ...objects, mutatingwebhookconfigurations: [...ofKind(configurations, 'Mut'), pinned] } }),
    ).toEqual([[false, untrusted(`MutatingWebhookConfiguration ${pinned.metadata.name}`)]]);
    const annotations = { 'cert-manager.io/inject-ca-from': 'a/b' };
    const injected = ofKind(bare, 'Val').map((one) => ({ ...one, metadata: { ...one.metadata, annotations } }));
    expect(await unanswered({ objects: { ...objects, validatingwebhookconfigurations: injected } })).toEqual([
      [true, untrusted('ValidatingWebhookConfiguration rollout-group').replace('the agent', 'cert-manager')],
    ]);

    const service = 'Service rollout-group/rollout-group-agent of the webhooks';
    const idle = [true, `${service} has no ready endpoint. Run: kubectl get pods -n rollout-group`];
    expect(await unanswered({ objects: { ...objects, endpointslices: [] } })).toEqual([idle]);
    const [slice] = objects.endpointslices;
    if (slice === undefined) throw new Error('there is no slice');
    const starting = { ...slice, endpoints: [{ conditions: { ready: false } }] };
    expect(await unanswered({ objects: { ...objects, endpointslices: [starting] } })).toEqual([idle]);
    expect(await unanswered({ objects: { ...objects, services: [] } })).toEqual([[true, `${service} does not exist`]]);
    expect(await unanswered({ objects: { ...objects, endpointslices: [] }, forbidden: ['endpointslices'] })).toEqual([]);
  });

  it('leads to the accounts of the webhook processes, and to their missing permissions', async () => {
    const reviews = () => ({ status: { allowed: false } });
    const cluster = clusterOf({ objects, reviews });
    const registration = await readRegistration(cluster, { agentNamespace: 'rollout-group', groups, policies: [] });
    const [one, ...more] = await readWebhookAccounts(cluster, registration, { agentNamespace: 'rollout-group', pinned: [], known: [] });
    expect([one?.name, more]).toEqual(['rollout-group/webhook', []]);
    const rights = one === undefined || isUnknown(one.rights) ? [] : one.rights;
    const named = rights.map(({ right }) => `${right.verb} ${right.resource}`);
    expect(named).toEqual(
      expect.arrayContaining(['watch statefulsets', 'list poddisruptionbudgets', 'update configmaps', 'create events']),
    );
    expect(named).not.toContain('delete pods');
    expect(rights.filter(({ right }) => right.object === 'pair').map(({ right }) => `${right.verb} ${right.resource}`)).toEqual(
      ['get', 'list', 'watch', 'update'].map((verb) => `${verb} secrets`),
    );
    const known = [{ name: 'rollout-group/webhook', rights: [] }];
    expect(await readWebhookAccounts(cluster, registration, { agentNamespace: 'rollout-group', pinned: [], known })).toEqual([]);
    const hidden = clusterOf({ objects, reviews, forbidden: ['services'] });
    expect(await readWebhookAccounts(hidden, registration, { agentNamespace: 'rollout-group', pinned: [], known: [] })).toEqual([]);
  });
});
