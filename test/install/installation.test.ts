import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { installation, installNotes, leftovers, removal } from '../../install/installation.ts';
import type { InstallObject } from '../../install/object.ts';
import { group, nameOf, optionsOf, scopeOf } from './given.ts';

const scope = scopeOf(group);
const full = optionsOf({ scope, hasCompat: true, hasNamespace: true, isEnforced: true });

/** Kinds in the order in which they first come. */
function kindsOf(objects: readonly InstallObject[]): readonly string[] {
  return [...new Set(objects.map(({ kind }) => kind))];
}

function objectOf(kind: string, options = full): InstallObject {
  const found = installation(options).find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`there is no ${kind}`);
  return found;
}

describe('an installation', () => {
  it('is in the order of dependencies, and opts in last', () => {
    const objects = installation(full);
    expect(kindsOf(objects)).toEqual([
      ...[
        'Namespace',
        'CustomResourceDefinition',
        'Secret',
        'Lease',
        'ServiceAccount',
        'Role',
        'RoleBinding',
        'ClusterRole',
        'ClusterRoleBinding',
      ],
      ...[
        'Service',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'Deployment',
        'ValidatingWebhookConfiguration',
        'MutatingWebhookConfiguration',
        'ValidatingAdmissionPolicy',
        'ValidatingAdmissionPolicyBinding',
      ],
    ]);
    expect(objects.at(0)).toMatchObject({ kind: 'Namespace', metadata: { name: 'rollout-group' } });
    expect(objects.at(-1)).toEqual({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'mimir', labels: { 'rollout-group.dev/enforce': 'true' } },
    });
  });

  it('has each object once', () => {
    const names = installation(full).map(nameOf);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('has the definitions of deploy/crds', () => {
    const shipped = readdirSync('deploy/crds').map((file) => parse(readFileSync(`deploy/crds/${file}`, 'utf8')));
    const installed = installation(optionsOf({ hasCompat: true })).filter(({ kind }) => kind === 'CustomResourceDefinition');
    const byName = (a: InstallObject, b: InstallObject) => (a.metadata.name < b.metadata.name ? -1 : 1);
    expect(JSON.parse(JSON.stringify([...installed].sort(byName)))).toEqual([...shipped].sort(byName));
  });

  it('creates no namespace and opts none in without a request', () => {
    expect(installation(optionsOf({ scope })).filter(({ kind }) => kind === 'Namespace')).toEqual([]);
  });

  it('can exist next to another one in the same cluster with the same kinds', () => {
    const isShared = ({ kind }: InstallObject) => kind === 'CustomResourceDefinition';
    const other = new Set(
      installation({ ...full, namespace: 'other', isEnforced: false, hasCompat: false })
        .filter((one) => !isShared(one))
        .map(nameOf),
    );
    expect(
      installation({ ...full, isEnforced: false })
        .map(nameOf)
        .filter((name) => other.has(name)),
    ).toEqual([]);
  });

  it('runs under the restricted Pod Security standard, within limits, and has health probes', () => {
    const { spec } = objectOf('Deployment') as unknown as {
      readonly spec: { readonly template: { readonly spec: { readonly containers: readonly object[] } & object } };
    };
    const pod = spec.template.spec;
    expect(pod).toMatchObject({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      serviceAccountName: 'rollout-group-agent',
    });
    expect(pod.containers).toEqual([
      expect.objectContaining({
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        startupProbe: expect.anything(),
        livenessProbe: expect.anything(),
        readinessProbe: expect.anything(),
      }),
    ]);
    expect(JSON.stringify(spec)).not.toMatch(/hostNetwork|hostPath|hostPID|hostPort|privileged/);
  });

  it('has a disruption budget for more than one pod', () => {
    expect(kindsOf(installation({ ...full, replicas: 1 }))).not.toContain('PodDisruptionBudget');
    expect(objectOf('PodDisruptionBudget')).toMatchObject({ spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' } });
  });

  it('selects its own pods with the Service, the budget and the policy', () => {
    const labels = { 'app.kubernetes.io/name': 'rollout-group-agent', 'rollout-group.dev/installation': 'rollout-group' };
    expect(objectOf('Service')).toMatchObject({ spec: { selector: labels } });
    expect(objectOf('PodDisruptionBudget')).toMatchObject({ spec: { selector: { matchLabels: labels } } });
    expect(objectOf('NetworkPolicy')).toMatchObject({ spec: { podSelector: { matchLabels: labels } } });
    expect(objectOf('Deployment')).toMatchObject({ spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } });
  });

  it('covers the namespaces in the scope', () => {
    const args = (changes: Parameters<typeof optionsOf>[0]) => JSON.stringify(objectOf('Deployment', optionsOf(changes)));
    expect(args({ scope })).toContain('"-namespaces=mimir"');
    expect(args({})).toContain('"-namespaces=*"');
  });

  it('passes the registered webhooks to the agent', () => {
    const args = (hasCompat: boolean) => JSON.stringify(objectOf('Deployment', optionsOf({ hasCompat })));
    for (const hasCompat of [false, true]) expect(args(hasCompat)).toContain('"-intents.stamped=true"');
    expect(args(true)).toContain('"-prepare-downscale.registered=true"');
    expect(args(false)).not.toContain('-prepare-downscale.registered');
  });
});

describe('a removal', () => {
  it('deletes the webhooks first, and keeps namespaces and kinds', () => {
    const kinds = kindsOf(removal(full, { hasDefinitions: false }));
    expect(kinds.slice(0, 5)).toEqual([
      ...['ValidatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicy'],
      ...['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'Deployment'],
    ]);
    // The agent could create the Secret and the Lease again while it has the rights.
    expect(kinds.slice(-3)).toEqual(['ServiceAccount', 'Lease', 'Secret']);
    expect(kinds).not.toContain('Namespace');
    expect(kinds).not.toContain('CustomResourceDefinition');
  });

  it('deletes the other installed objects, and the kinds last on request', () => {
    const names = (objects: readonly InstallObject[]) => objects.map(nameOf).sort();
    const without = installation(full).filter(({ kind }) => kind !== 'Namespace');
    expect(names(removal(full, { hasDefinitions: true }))).toEqual(names(without));
    expect(kindsOf(removal(full, { hasDefinitions: true })).at(-1)).toBe('CustomResourceDefinition');
  });

  it('names the remaining objects, and the command that deletes them', () => {
    expect(leftovers(optionsOf({ scope }), { hasDefinitions: false }).map(({ command }) => command)).toEqual([
      'kubectl delete crd rolloutgroups.rollout-group.dev rolloutpolicies.rollout-group.dev rolloutexceptions.rollout-group.dev rolloutintents.rollout-group.dev rolloutruns.rollout-group.dev metricsources.rollout-group.dev notificationchannels.rollout-group.dev',
      'kubectl delete configmap -l rollout-group.dev/document -n mimir',
      'kubectl delete secret rollout-group-agent-tls-issued -n rollout-group --ignore-not-found',
      'kubectl label namespace -l rollout-group.dev/enforce rollout-group.dev/enforce-',
    ]);
    expect(leftovers(optionsOf(), { hasDefinitions: true }).map(({ command }) => command)).not.toContain(expect.stringContaining('crd'));
  });
});

describe('the notices of an installation', () => {
  it('about permissions in the whole cluster, missing enforcement, and guesses', () => {
    const custom = scopeOf(group.replace('kind: ReplicaTemplate', 'kind: Fancy'));
    expect(installNotes(optionsOf({ scope: custom }))).toEqual([
      'namespaces without the label rollout-group.dev/enforce=true are not enforced; to set it, run: kubectl label namespace mimir rollout-group.dev/enforce=true',
      'the plural of Fancy is assumed to be fancies; to check it, run: kubectl api-resources',
    ]);
    expect(installNotes(optionsOf({ scope, isEnforced: true, isMembersOnly: true }))).toEqual([
      'webhooks receive requests only for the StatefulSets named now; install again after you add a group',
    ]);
    expect(installNotes(optionsOf({ scope, hasCompat: true, isEnforced: true }))).toEqual([
      'the webhooks of --compat do not need the label rollout-group.dev/enforce=true: while no agent runs, they deny updates of StatefulSets and evictions in mimir',
    ]);
    expect(installNotes(optionsOf({ hasCompat: true })).at(-1)).toMatch(/evictions in rollout-group$/);
    expect(installNotes(optionsOf())).toHaveLength(2);
  });
});
