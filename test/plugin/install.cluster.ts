// An installation on a real API server: every object is taken, every condition compiles, and tells what policy guards from everything else.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubernetesObject, Method, Reply } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { TestGroup } from '../control-plane/group.ts';
import { serviceAccount } from '../control-plane/identities.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type Pod, statefulSet } from '../control-plane/workloads.ts';
import { type Ended, runInProcess } from './in-process.ts';

interface Configuration extends KubernetesObject {
  readonly webhooks: readonly { readonly name: string; readonly clientConfig: object; readonly failurePolicy: string }[];
}

interface Failure {
  readonly message?: string;
}

const policies = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members: { zones: [{ name: a, statefulSet: ingester-zone-a }, { name: b, statefulSet: ingester-zone-b }] }
  rollout: { strategy: onDelete }
`;

const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const mutating = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const dryRun = 'dryRun=All';

let folder: string;
let cp: ControlPlane;
let admin: ApiClient;

function verb(words: readonly string[]): Promise<Ended> {
  return runInProcess(words, { cwd: folder, env: { KUBECONFIG: cp.identities.admin.kubeconfig, HOME: tmpdir() } });
}

const installed = ['install', '-f', 'policies.yaml', '--create-namespace', '--enforce', '--apply'];

/** Every webhook is somebody who never answers, and without an answer everything is refused: so it shows who would have been asked. */
async function deafen(path: string, name: string): Promise<void> {
  const { webhooks } = await admin.get<Configuration>(`${path}/${name}`);
  const deaf = webhooks.map((one) => ({ ...one, clientConfig: { url: 'https://127.0.0.1:1/deaf' }, failurePolicy: 'Fail' }));
  await admin.patch(`${path}/${name}`, 'merge', { webhooks: deaf });
}

/** The webhook that is asked, or `nobody`; what fails for another reason is neither. */
function askedOf({ status, body }: Reply<Failure>): string {
  if (status < 300) return 'nobody';
  return /failed calling webhook "([^"]+)\.rollout-group\.dev"/.exec(body.message ?? '')?.[1] ?? `${status}: ${body.message}`;
}

async function asks(method: Method, path: string, body?: unknown, type?: string, client = admin): Promise<string> {
  return askedOf(await client.ask<Failure>(method, `${path}${path.includes('?') ? '&' : '?'}${dryRun}`, body, type));
}

const sets = '/apis/apps/v1/namespaces/mimir/statefulsets';
const pods = '/api/v1/namespaces/mimir/pods';
const merge = 'application/merge-patch+json';
const patchSet = (patch: unknown, suffix = '', type = merge) => asks('PATCH', `${sets}/ingester-zone-a${suffix}`, patch, type);

function evict(name: string, client = admin, namespace = 'mimir'): Promise<string> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  return asks('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, eviction, undefined, client);
}

describeOnControlPlane('an installation', (controlPlane) => {
  beforeAll(async () => {
    cp = controlPlane();
    admin = cp.client;
    folder = mkdtempSync(join(tmpdir(), 'install-'));
    writeFileSync(join(folder, 'policies.yaml'), policies);
    const replicas = 3;
    await new TestGroup(admin, { namespace: 'mimir', zones: ['a', 'b'], replicas }).create();
    await new TestGroup(admin, { namespace: 'plain', zones: ['a'], replicas }).create();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('is accepted as a whole by the API server in a dry run', async () => {
    for (const flags of [['--compat'], ['--compat', '--members-only']]) {
      const { status, stderr } = await verb([...installed, ...flags, '--dry-run', 'server', '-q']);
      expect([status, stderr]).toEqual([0, '']);
    }
    expect(await admin.list(configurations)).toEqual([]);
  });

  it('is applied with our field manager, and runs under the restricted Pod Security standard', async () => {
    const { status, stderr } = await verb([...installed, '-q']);
    expect([status, stderr]).toEqual([0, '']);
    await admin.until<Pod>('/api/v1/namespaces/rollout-group/pods', 'three pods of the agent', (items) => items.length === 3);
    const { metadata } = await admin.get<KubernetesObject>('/api/v1/namespaces/mimir');
    expect(metadata.labels).toMatchObject({ 'rollout-group.dev/enforce': 'true' });
  });

  it('changes nothing if it is applied again', async () => {
    const versions = async () => (await admin.list(configurations)).map(({ metadata }) => metadata.resourceVersion);
    const before = await versions();
    expect((await verb([...installed, '-q'])).status).toBe(0);
    expect(await versions()).toEqual(before);
  });

  it('does not take fields of another field manager', async () => {
    const path = `${configurations}/rollout-group?fieldManager=helm&force=true`;
    const { webhooks } = await admin.get<Configuration>(`${configurations}/rollout-group`);
    await admin.patch(path, 'apply', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'rollout-group' },
      webhooks: webhooks.slice(0, 1).map((one) => ({ ...one, timeoutSeconds: 7 })),
    });
    const { status, stderr } = await verb([...installed, '-q']);
    expect(status).toBe(5);
    expect(stderr).toMatch(/ValidatingWebhookConfiguration .*rollout-group belongs to another field manager[\s\S]*helm owns/);
    expect((await verb(['uninstall', '--apply', '-q'])).status).toBe(0);
    expect((await verb([...installed, '-q'])).status).toBe(0);
  });

  describe('sends only', () => {
    beforeAll(async () => {
      await deafen(configurations, 'rollout-group');
      await deafen(mutating, 'rollout-group');
      // The API server hears of its configurations a moment later.
      for (let attempt = 0; attempt < 200 && (await patchSet({ spec: { replicas: 2 } })) === 'nobody'; attempt += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    });

    const update = 'statefulset-update.enforce';
    const group = { labels: { 'rollout-group': null } };

    it.each<[string, unknown, string]>([
      ['fewer replicas', { spec: { replicas: 2 } }, update],
      ['replicas null, which is 1', { spec: { replicas: null } }, update],
      ['no replicas', { spec: { replicas: 0 } }, update],
      ['another image', { spec: { template: { metadata: { annotations: { a: 'b' } } } } }, update],
      ['another strategy', { spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } } }, update],
      ['other ordinals', { spec: { ordinals: { start: 2 } } }, update],
      ['the label of the group removed', { metadata: group }, update],
      ['the label of the group changed', { metadata: { labels: { 'rollout-group': 'other' } } }, update],
      ['a label added', { metadata: { labels: { 'grafana.com/no-downscale': 'true' } } }, update],
      ['where pods are asked to prepare', { metadata: { annotations: { 'grafana.com/prepare-downscale-http-path': '/other' } } }, update],
      ['another annotation of an adopted group', { metadata: { annotations: { 'grafana.com/rollout-paused': 'true' } } }, 'nobody'],
      ['the label removed and fewer replicas in one request', { metadata: group, spec: { replicas: 1 } }, update],
      ['more replicas and another image', { spec: { replicas: 4, template: { metadata: { annotations: { a: 'b' } } } } }, update],
      ['more replicas', { spec: { replicas: 4 } }, 'statefulset-growth.enforce'],
      ['the same replicas', { spec: { replicas: 3 } }, 'nobody'],
      ['an annotation of somebody else', { metadata: { annotations: { team: 'storage' } } }, 'nobody'],
      ['fewer revisions kept', { spec: { revisionHistoryLimit: 5 } }, 'nobody'],
      ['a finalizer', { metadata: { finalizers: ['example.com/x'] } }, 'nobody'],
    ])('an update of a StatefulSet: %s', async (_what, patch, asked) => {
      expect(await patchSet(patch)).toBe(asked);
    });

    it('every write to it', async () => {
      const { metadata, ...rest } = await admin.get<KubernetesObject & { readonly spec: object }>(`${sets}/ingester-zone-a`);
      const applied = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'ingester-zone-a' }, spec: { replicas: 2 } };
      expect([
        await patchSet([{ op: 'replace', path: '/spec/replicas', value: 2 }], '', 'application/json-patch+json'),
        await patchSet({ spec: { replicas: 2 } }, '', 'application/strategic-merge-patch+json'),
        await patchSet(applied, '?fieldManager=me&force=true', 'application/apply-patch+yaml'),
        await asks('PUT', `${sets}/ingester-zone-a`, { ...rest, metadata, spec: { ...rest.spec, replicas: 2 } }),
      ]).toEqual([update, update, update, update]);
    });

    it('a status update that removes the label, and no other status update', async () => {
      expect(await patchSet({ metadata: group }, '/status')).toBe(update);
      // The API server does take it away by that path, where nobody is asked.
      const plain = '/apis/apps/v1/namespaces/plain/statefulsets/ingester-zone-a/status';
      const { body } = await admin.ask('PATCH', `${plain}?${dryRun}`, { metadata: group }, merge);
      expect(body.metadata.labels?.['rollout-group']).toBeUndefined();
      expect(await patchSet({ status: { observedGeneration: 1 } }, '/status')).toBe('nobody');
    });

    it.each([
      [2, 'statefulset-scale.enforce'],
      [0, 'statefulset-scale.enforce'],
      [3, 'nobody'],
      [4, 'statefulset-scale-up.enforce'],
    ])('a scale from 3 to %i', async (to, asked) => {
      expect(await patchSet({ spec: { replicas: to } }, '/scale')).toBe(asked);
    });

    it('the deletion of StatefulSets', async () => {
      const asked = 'statefulset-delete.enforce';
      expect(await asks('DELETE', `${sets}/ingester-zone-a`)).toBe(asked);
      expect(await asks('DELETE', `${sets}/ingester-zone-a?propagationPolicy=Orphan`)).toBe(asked);
      expect(await asks('DELETE', sets)).toBe(asked);
    });

    it('evictions and deletions of pods by users, and none by nodes, controllers and the agent', async () => {
      const { clientOf, identities, identityOf } = cp;
      const one = `${pods}/ingester-zone-a-0`;
      const controller = clientOf(identityOf(serviceAccount('kube-system', 'statefulset-controller')));
      expect({
        evicted: await evict('ingester-zone-a-0'),
        deleted: await asks('DELETE', one),
        forced: await asks('DELETE', `${one}?gracePeriodSeconds=0`),
        collection: await asks('DELETE', pods),
        byNode: await asks('DELETE', one, undefined, undefined, clientOf(identities.kubelet)),
        byController: await asks('DELETE', one, undefined, undefined, controller),
        byAgent: await asks('DELETE', one, undefined, undefined, clientOf(identities.agent)),
        evictedByAgent: await evict('ingester-zone-a-0', clientOf(identities.agent)),
      }).toEqual({
        evicted: 'pod-eviction.enforce',
        deleted: 'pod-delete.enforce',
        forced: 'pod-delete.enforce',
        collection: 'pod-delete.enforce',
        byNode: 'nobody',
        byController: 'nobody',
        byAgent: 'nobody',
        evictedByAgent: 'nobody',
      });
    });

    it('no request of the agent, although its namespace is opted in', async () => {
      await admin.patch('/api/v1/namespaces/rollout-group', 'merge', { metadata: { labels: { 'rollout-group.dev/enforce': 'true' } } });
      const [pod] = await admin.list<Pod>('/api/v1/namespaces/rollout-group/pods');
      const name = pod?.metadata.name ?? '';
      const deployment = '/apis/apps/v1/namespaces/rollout-group/deployments/rollout-group-agent';
      // The PodDisruptionBudget of the agent denies evictions until its pods are healthy.
      await expect.poll(() => evict(name, admin, 'rollout-group'), { timeout: 30_000 }).toBe('nobody');
      expect(await asks('DELETE', `/api/v1/namespaces/rollout-group/pods/${name}`)).toBe('nobody');
      expect(await asks('PATCH', `${deployment}/scale`, { spec: { replicas: 1 } }, merge)).toBe('nobody');
      expect(await asks('PATCH', deployment, { spec: { template: { metadata: { annotations: { a: 'b' } } } } }, merge)).toBe('nobody');
    });

    it('no request of namespaces that are not opted in', async () => {
      const plain = '/apis/apps/v1/namespaces/plain/statefulsets/ingester-zone-a';
      expect([
        await asks('PATCH', plain, { spec: { replicas: 1 } }, merge),
        await asks('PATCH', `${plain}/scale`, { spec: { replicas: 1 } }, merge),
        await asks('DELETE', plain),
        await asks('DELETE', '/api/v1/namespaces/plain/pods/ingester-zone-a-0'),
        await evict('ingester-zone-a-0', admin, 'plain'),
      ]).toEqual(['nobody', 'nobody', 'nobody', 'nobody', 'nobody']);
    });

    it('requests for our kinds', async () => {
      const ours = '/apis/rollout-group.dev/v1alpha1/namespaces/plain';
      const apiVersion = 'rollout-group.dev/v1alpha1';
      const metadata = { name: 'one' };
      const rolloutGroup = { members: { zones: [{ name: 'a', statefulSet: 'a' }] }, rollout: { strategy: 'onDelete' } };
      const exception = {
        rule: 'zone-gap',
        target: { group: 'a' },
        allow: { anything: true },
        reason: 'x',
        expires: '2030-01-01T00:00:00Z',
      };
      expect([
        await asks('POST', `${ours}/rolloutgroups`, { apiVersion, kind: 'RolloutGroup', metadata, spec: rolloutGroup }),
        await asks('POST', `${ours}/rolloutintents`, {
          apiVersion,
          kind: 'RolloutIntent',
          metadata,
          spec: { group: 'a', action: 'abort' },
        }),
        await asks('POST', `${ours}/rolloutexceptions`, { apiVersion, kind: 'RolloutException', metadata, spec: exception }),
      ]).toEqual(['policies.validate', 'stamp', 'stamp']);
    });

    it('no request while a namespace with protected StatefulSets is deleted', async () => {
      const labels = { 'rollout-group.dev/enforce': 'true' };
      await admin.create('/api/v1/namespaces', { metadata: { name: 'doomed', labels } });
      await admin.create('/apis/apps/v1/namespaces/doomed/statefulsets', statefulSet({ name: 'set', replicas: 2 }));
      await admin.until<Pod>('/api/v1/namespaces/doomed/pods', 'two pods', (items) => items.length === 2);
      await admin.delete('/api/v1/namespaces/doomed');
      await admin.until('/api/v1/namespaces', 'the namespace gone', (items) => items.every(({ metadata }) => metadata.name !== 'doomed'));
    });
  });

  it('is removed completely, and the guarded objects are free again', async () => {
    const { status, stdout } = await verb(['uninstall', '--apply']);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^(ValidatingAdmissionPolicy\w* rollout-group-requested-by deleted\n){2}(\w+WebhookConfiguration rollout-group deleted\n){2}/,
    );
    const labelled = 'labelSelector=rollout-group.dev/installation%3Drollout-group';
    for (const path of [
      configurations,
      mutating,
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/rbac.authorization.k8s.io/v1/roles',
    ]) {
      expect(await admin.list(`${path}?${labelled}`)).toEqual([]);
    }
    for (let attempt = 0; attempt < 200 && (await patchSet({ spec: { replicas: 2 } })) !== 'nobody'; attempt += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await patchSet({ spec: { replicas: 2 } })).toBe('nobody');
  });
});
