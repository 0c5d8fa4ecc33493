// Tests of plan, diff and apply while the API server refuses their dry runs. apply.cluster.ts runs them on its control plane.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { bundleOf, serveKinds } from './apply-kit.ts';
import { filesOf, type Person, person, readerRules, writerRules } from './live-people.ts';

interface World {
  readonly controlPlane: ControlPlane;
  readonly namespace: string;
  readonly writer: Person;
  /** Distinguishes the tests of one control plane. */
  readonly number: number;
}

const admission = '/apis/admissionregistration.k8s.io/v1';

/** A webhook at which nobody listens, for one resource of the namespace. */
function brokenWebhook(namespace: string, [group, resource]: readonly [group: string, resource: string]): object {
  return {
    metadata: { name: `broken-${namespace}-${resource}` },
    webhooks: [
      {
        name: `${resource}.rollout-group.dev`,
        clientConfig: { url: 'https://127.0.0.1:1/admission' },
        rules: [{ apiGroups: [group], apiVersions: ['*'], resources: [resource], operations: ['CREATE', 'UPDATE'] }],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
}

/** A policy of the cluster that denies every decrease of replicas in the namespace. */
async function denyDownscales({ client }: ControlPlane, namespace: string): Promise<void> {
  const name = `no-downscale-${namespace}`;
  await client.create(`${admission}/validatingadmissionpolicies`, {
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['statefulsets'], operations: ['UPDATE'] }],
      },
      validations: [{ expression: 'object.spec.replicas >= oldObject.spec.replicas', message: 'replicas must not decrease' }],
    },
  });
  await client.create(`${admission}/validatingadmissionpolicybindings`, {
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
}

export function itShowsRefusedChanges(world: () => World): void {
  it('shows the consequence of removed fields, and the denial, while the API server denies the dry run', async () => {
    const { controlPlane, namespace, writer, number } = world();
    const { client } = controlPlane;
    await serveKinds(controlPlane, namespace);
    const manifest = (more: object, grace: object) => {
      const object = statefulSet({ name: 'denied-zone-a', replicas: 3, image: 'example.com/server:1' }) as {
        readonly metadata: object;
        readonly spec: { readonly template: { readonly spec: object } };
      };
      const { replicas: _replicas, template, ...spec } = object.spec as typeof object.spec & { readonly replicas: number };
      return {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { ...object.metadata, namespace },
        spec: { ...spec, ...more, template: { ...template, spec: { ...template.spec, ...grace } } },
      };
    };
    const definition = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'denied', namespace },
      spec: {
        members: { zones: [{ name: 'a', statefulSet: 'denied-zone-a' }] },
        protect: { noDownscale: true },
        rollout: { strategy: 'onDelete' },
      },
    };
    const folder = filesOf({ 'group.json': definition, 'a.json': manifest({ replicas: 3 }, { terminationGracePeriodSeconds: 7 }) });
    const bundle = bundleOf(writer, folder);
    expect(bundle('apply -f . --yes')).toMatchObject({ status: 0 });
    writeFileSync(join(folder, 'a.json'), JSON.stringify(manifest({}, {})));
    const tried = bundle('diff -f .');
    expect(tried).toMatchObject({ status: 1, stdout: expect.stringMatching(/spec\.replicas\s+- 3\s+\+ 1 +DENIED by no-downscale/) });
    expect(tried.stdout).toMatch(/terminationGracePeriodSeconds\s+- 7\s+\+ 30/);
    const planned = bundle('plan -f . --group denied');
    expect(planned).toMatchObject({ status: 5, stdout: expect.stringMatching(/3 -> 1.*\n(?:.*\n)*.*DENIED(?:.*\n)*.*no-downscale/) });

    // The right to patch is missing: 403.
    const reader = bundleOf(await person(controlPlane, namespace, `denied-${number}`, readerRules), folder);
    expect(reader('diff -f .')).toMatchObject({ stdout: tried.stdout, stderr: expect.stringContaining('is computed here') });

    await denyDownscales(controlPlane, namespace);
    await expect.poll(() => bundle('diff -f .').stdout, { timeout: 20_000, interval: 300 }).toContain('replicas must not decrease');
    const denied = bundle('diff -f .');
    expect(denied.stderr).toMatch(/refused the dry run, so the result is computed here, without changes by webhooks$/m);
    expect(denied).toMatchObject({ status: 1, stdout: expect.stringContaining(tried.stdout) });
    expect(denied.stdout).toMatch(/DENIED +StatefulSet .*denied-zone-a: .*replicas must not decrease/);
    expect(bundle('plan -f . --group denied')).toMatchObject({
      status: 5,
      stdout: expect.stringContaining(planned.stdout.split('STARTS')[0] ?? ''),
    });
    expect(bundle('apply -f . --yes')).toMatchObject({ status: 5, stderr: expect.stringContaining('no-downscale') });
    expect(bundle('diff -f . --force-conflicts')).toMatchObject({ status: 1, stdout: denied.stdout });

    await client.create(`${admission}/mutatingwebhookconfigurations`, brokenWebhook(namespace, ['apps', 'statefulsets']));
    const note = /^note: StatefulSet .*: webhook statefulsets\.rollout-group\.dev of 127\.0\.0\.1:1 did not answer: .*connection refused$/m;
    await expect.poll(() => bundle('diff -f .').stderr, { timeout: 20_000, interval: 300 }).toMatch(note);
    expect(bundle('diff -f .')).toMatchObject({ status: 1, stdout: tried.stdout });
    expect((await client.get<{ readonly spec: { readonly replicas: number } }>(pathOfSet(namespace))).spec.replicas).toBe(3);
  });

  it('shows a denial by a quota the same way in plan, diff and apply', async () => {
    const { controlPlane, namespace, writer } = world();
    const quota = { metadata: { name: 'services' }, spec: { hard: { services: '0' } } };
    const quotas = `/api/v1/namespaces/${namespace}/resourcequotas`;
    await controlPlane.client.create(quotas, quota);
    // The controller that counts does not run here.
    const status = { hard: { services: '0' }, used: { services: '0' } };
    await controlPlane.client.patch(`${quotas}/services/status`, 'merge', { status });
    const services = ['x', 'y'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: { ports: [{ port: 80 }] },
    }));
    const bundle = bundleOf(writer, filesOf({ 'services.json': { apiVersion: 'v1', kind: 'List', items: services } }));
    const denial = new RegExp(`2 objects \\(Service ${namespace}/x, Service ${namespace}/y\\)\\s+exceeded quota: services`);
    await expect.poll(() => bundle('plan -f .').stdout, { timeout: 10_000, interval: 300 }).toMatch(denial);
    const plan = bundle('plan -f .');
    expect([plan.status, plan.stderr.match(/refused the dry run/g)]).toEqual([5, ['refused the dry run']]);
    expect(bundle('plan -f . -o markdown').stdout).toContain('exceeded quota: services');
    expect(bundle('diff -f .')).toMatchObject({ status: 1, stdout: expect.stringMatching(/DENIED {2}2 objects .*: exceeded quota/) });
    for (const flags of ['--dry-run=client', '--dry-run=server', '--yes'])
      expect(bundle(`apply -f . ${flags}`), flags).toMatchObject({ status: 5, stdout: expect.stringMatching(denial) });
  });

  it('names the agent that does not run if its webhook does not answer', async () => {
    const { controlPlane, namespace, number } = world();
    const { client } = controlPlane;
    await serveKinds(controlPlane, namespace);
    const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list'] };
    const user = await person(controlPlane, namespace, `unserved-${number}`, [...writerRules, leases]);
    const change = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'ingester-zone-a', namespace, labels: { tier: 'x' } } };
    const bundle = bundleOf(user, filesOf({ 'a.json': change }));
    await client.create(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, {
      metadata: { name: 'rollout-group-agent' },
      spec: {
        holderIdentity: 'gone',
        leaseDurationSeconds: 15,
        renewTime: new Date(Date.now() - 60_000).toISOString().replace('Z', '000Z'),
      },
    });
    for (const of of [['apps', 'statefulsets'] as const, ['rollout-group.dev', 'rolloutintents'] as const])
      await client.create(`${admission}/mutatingwebhookconfigurations`, brokenWebhook(namespace, of));
    const cause =
      /did not answer: .*connection refused\n {2}why: agent not running: Lease expired \d+s ago\n {2}do: {2}start the agent, then repeat/;
    const apply = `apply -f . --yes -n ${namespace}`;
    const pause = `pause ingester -n ${namespace}`;
    await expect.poll(() => bundle(pause).stderr, { timeout: 20_000, interval: 300 }).toMatch(cause);
    expect(bundle(pause)).toMatchObject({ status: 12, stderr: expect.stringContaining('webhook rolloutintents.rollout-group.dev') });
    await expect.poll(() => bundle(apply).stderr, { timeout: 20_000, interval: 300 }).toMatch(cause);
    expect(bundle(apply)).toMatchObject({ status: 12, stderr: expect.stringContaining('nothing was applied: StatefulSet') });
  });
}

function pathOfSet(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/statefulsets/denied-zone-a`;
}
