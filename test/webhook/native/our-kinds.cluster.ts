// Our kinds on a real API server behind the endpoints that stamp and validate them, registered as an installation registers them.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectionProcess, processClock } from '../../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../../cluster/connection/transport.ts';
import { loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { installation } from '../../../install/installation.ts';
import { endpointPaths } from '../../../install/object.ts';
import { stampEndpoint } from '../../../webhook/native/stamp-endpoint.ts';
import { validateEndpoint } from '../../../webhook/native/validate-endpoint.ts';
import type { ApiClient, KubernetesObject, Reply } from '../../control-plane/client.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { optionsOf, webhooksIn } from '../../install/given.ts';
import { changingSource, closeAll, serve } from '../server/served.ts';

interface Asked extends KubernetesObject {
  readonly spec: {
    readonly action?: string;
    readonly requestedBy?: { readonly user: string; readonly groups: readonly string[]; readonly at: string };
  };
}

interface Failure {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
}

const ours = '/apis/rollout-group.dev/v1alpha1/namespaces/default';
const apiVersion = 'rollout-group.dev/v1alpha1';
const agentNamespace = 'rollout-group';
const configurations = '/apis/admissionregistration.k8s.io/v1';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const forged = { user: 'root', groups: ['system:masters'], at: '2026-01-01T00:00:00Z' };

describeOnControlPlane(
  'our kinds behind the webhook',
  (controlPlane) => {
    let ada: ApiClient;
    let eve: ApiClient;
    let http: KubernetesTransport;

    beforeAll(async () => {
      const { client, authority, identities, clientOf, identityOf } = controlPlane();
      const own = { ...connectionProcess(), env: {}, homeDir: '/nonexistent' };
      const connection = await loadConnection({ kubeconfig: identities.admin.kubeconfig }, own);
      http = new KubernetesTransport(connection, { userAgent: 'rollout-group-test/1' });
      const { certificate, privateKey } = authority.issueForServer();
      const env = { clock: processClock, kubernetes: http };
      const endpoints = [stampEndpoint(env), validateEndpoint(env, { agentNamespace, groups: () => ({ unknown: 'not read' }) })];
      const { port } = await serve({ endpoints, tls: changingSource({ cert: certificate, key: privateKey }) });
      const objects = installation(optionsOf());
      for (const one of objects) if (one.kind === 'CustomResourceDefinition') await client.create(definitions, one);
      for (const kind of ['Mutating', 'Validating']) {
        const name = `${kind}WebhookConfiguration`;
        const webhooks = webhooksIn(objects.filter((one) => one.kind === name))
          .filter(({ clientConfig }) => clientConfig.service.path !== endpointPaths.enforce)
          .map((one) => ({
            ...one,
            failurePolicy: 'Fail',
            clientConfig: {
              url: `https://127.0.0.1:${port}${one.clientConfig.service.path}`,
              caBundle: Buffer.from(authority.certificate).toString('base64'),
            },
          }));
        await client.create(`${configurations}/${name.toLowerCase()}s`, { metadata: { name: 'rollout-group' }, webhooks });
      }
      const rbac = '/apis/rbac.authorization.k8s.io/v1';
      const rules = [{ apiGroups: ['rollout-group.dev'], resources: ['*'], verbs: ['*'] }];
      await client.create(`${rbac}/clusterroles`, { metadata: { name: 'writers' }, rules });
      await client.create(`${rbac}/clusterrolebindings`, {
        metadata: { name: 'writers' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'writers' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'writers' }],
      });
      ada = clientOf(identityOf({ user: 'ada', groups: ['writers', 'oncall'] }));
      eve = clientOf(identityOf({ user: 'eve', groups: ['writers'] }));
      // Until the API server serves the kinds, knows of the rights and asks both webhooks.
      const isAsked = async (): Promise<boolean> => {
        const stamped = await ask(ada, 'POST', 'rolloutintents?dryRun=All', intent('first'));
        const refused = await ask(ada, 'POST', 'rolloutgroups?dryRun=All', groupOf('first', { zones: 2 }));
        return (
          stamped.body.spec?.requestedBy !== undefined && refused.status === 422 && /admission webhook/.test(refused.body.message ?? '')
        );
      };
      for (let attempt = 0; attempt < 400 && !(await isAsked()); attempt += 1) await new Promise((resolve) => setTimeout(resolve, 50));
    });
    afterAll(async () => {
      await closeAll();
      await http.close();
    });

    function ask(
      client: ApiClient,
      method: 'POST' | 'PATCH' | 'PUT' | 'DELETE',
      path: string,
      body?: unknown,
      type?: string,
    ): Promise<Reply<Asked & Failure>> {
      return client.askUntilJudged<Asked & Failure>(method, `${ours}/${path}`, body, type);
    }

    function intent(name: string, spec: object = {}): object {
      return {
        apiVersion,
        kind: 'RolloutIntent',
        metadata: { name },
        spec: { group: 'ingester', action: 'approve', wave: 'rest', ...spec },
      };
    }

    /** With two zones of one name it has an error that no schema sees. */
    function groupOf(name: string, { zones }: { readonly zones: number }): object {
      const all = Array.from({ length: zones }, (_, index) => ({ name: 'a', statefulSet: `set-${index}` }));
      return { apiVersion, kind: 'RolloutGroup', metadata: { name }, spec: { members: { zones: all }, rollout: { strategy: 'onDelete' } } };
    }

    const merge = 'application/merge-patch+json';

    it('an intent names its creator, with any value in the object', async () => {
      for (const [name, spec] of [
        ['plain', {}],
        ['forged', { requestedBy: forged }],
      ] as const) {
        const { status, body } = await ask(ada, 'POST', 'rolloutintents', intent(name, spec));
        expect([status, body.spec.requestedBy]).toEqual([
          201,
          { user: 'ada', groups: expect.arrayContaining(['oncall', 'writers']), at: expect.any(String) },
        ]);
      }
    });

    it('an exception does too, also with a generated name', async () => {
      const spec = { rule: 'zone-gap', target: { group: 'a' }, allow: { anything: true }, reason: 'x', expires: '2030-01-01T00:00:00Z' };
      const exception = await ask(ada, 'POST', 'rolloutexceptions', {
        apiVersion,
        kind: 'RolloutException',
        metadata: { name: 'one' },
        spec,
      });
      expect([exception.status, exception.body.spec.requestedBy?.user]).toEqual([201, 'ada']);
      const named = await ask(ada, 'POST', 'rolloutintents', { ...intent(''), metadata: { generateName: 'approve-' } });
      expect([named.status, named.body.spec.requestedBy?.user]).toEqual([201, 'ada']);
    });

    it('no user writes the name of another user, by any kind of write', async () => {
      const { body } = await ask(ada, 'POST', 'rolloutintents', intent('hers', { action: 'pause' }));
      const stamp = body.spec.requestedBy;
      const writes: readonly (readonly [unknown, string, string])[] = [
        [{ spec: { requestedBy: forged } }, merge, ''],
        [{ spec: { requestedBy: null } }, merge, ''],
        [[{ op: 'replace', path: '/spec/requestedBy/user', value: 'root' }], 'application/json-patch+json', ''],
        [[{ op: 'remove', path: '/spec/requestedBy' }], 'application/json-patch+json', ''],
        [intent('hers', { action: 'pause', requestedBy: forged }), 'application/apply-patch+yaml', '?fieldManager=eve&force=true'],
      ];
      for (const [patch, type, query] of writes) {
        const { status, body: after } = await ask(eve, 'PATCH', `rolloutintents/hers${query}`, patch, type);
        expect([status, after.spec?.requestedBy]).toEqual([200, stamp]);
      }
      // What it asks for is hers from then on, and nobody else's.
      const { body: changed } = await ask(eve, 'PATCH', 'rolloutintents/hers', { spec: { action: 'approve' } }, merge);
      expect([changed.spec.action, changed.spec.requestedBy?.user, changed.spec.requestedBy?.groups.includes('oncall')]).toEqual([
        'approve',
        'eve',
        false,
      ]);
    });

    it('metadata changes by other users keep the stamp', async () => {
      const { body } = await ask(ada, 'POST', 'rolloutintents', intent('labelled'));
      const { body: after } = await ask(eve, 'PATCH', 'rolloutintents/labelled', { metadata: { labels: { a: 'b' } } }, merge);
      expect(after.spec).toEqual(body.spec);
    });

    it('a source is accepted with or without its Secret, with a warning to its author', async () => {
      const { client } = controlPlane();
      await client.create('/api/v1/namespaces', { metadata: { name: agentNamespace } });
      const place = `/apis/rollout-group.dev/v1alpha1/namespaces/${agentNamespace}/metricsources?dryRun=All`;
      const key = (name: string) => ({ name: 'login', key: name });
      const source = {
        apiVersion,
        kind: 'MetricSource',
        metadata: { name: 'prod' },
        spec: {
          prometheus: { url: 'https://prometheus', basicAuth: { username: key('user'), password: key('password') } },
          usableFrom: { namespaces: ['mimir'] },
        },
      };
      const written = async () => {
        const request = { method: 'POST', path: place, body: JSON.stringify(source), timeoutMs: 10_000, site: 'test' } as const;
        const { status, headers } = await http.request(request);
        return [status, headers['warning']];
      };
      expect(await written()).toEqual([201, '299 - "Secret login does not exist in namespace rollout-group: gates wait for it"']);
      const secrets = `/api/v1/namespaces/${agentNamespace}/secrets`;
      await client.create(secrets, { metadata: { name: 'login' }, stringData: { user: 'prometheus' } });
      expect(await written()).toEqual([201, '299 - "Secret login in namespace rollout-group has no key password: gates wait for it"']);
      await client.patch(`${secrets}/login`, 'merge', { stringData: { password: 'hunter2' } });
      expect(await written()).toEqual([201, undefined]);
    });

    it('a group with an error that the schema does not find is denied with the finding of lint, and a valid one is accepted', async () => {
      const { status, body } = await ask(ada, 'POST', 'rolloutgroups', groupOf('wrong', { zones: 2 }));
      expect([status, body.reason]).toEqual([422, 'Invalid']);
      expect(body.message).toMatch(
        /admission webhook "policies\.validate\.rollout-group\.dev" denied the request: RolloutGroup default\/wrong has an error:\nRG2103 /,
      );
      expect((await ask(ada, 'POST', 'rolloutgroups', groupOf('right', { zones: 1 }))).status).toBe(201);
      const zones = [{ op: 'add', path: '/spec/members/zones/-', value: { name: 'a', statefulSet: 'other' } }];
      expect((await ask(ada, 'PATCH', 'rolloutgroups/right', zones, 'application/json-patch+json')).status).toBe(422);
      expect((await ask(ada, 'DELETE', 'rolloutgroups/right')).status).toBe(200);
    });
  },
  { isStill: true },
);
