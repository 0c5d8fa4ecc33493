import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { installation } from '../../install/installation.ts';
import type { InstallOptions } from '../../install/object.ts';
import { type PolicyRule, pluralOf } from '../../install/rights.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { group, nameOf, optionsOf, rulesIn, scopeOf } from './given.ts';

function rolesOf(options: InstallOptions): Readonly<Record<string, readonly string[]>> {
  const roles = installation(options).filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole');
  return Object.fromEntries(roles.map((role) => [nameOf(role), rulesIn(role).map(text)]));
}

function text({ apiGroups, resources, verbs, resourceNames }: PolicyRule): string {
  const named = resourceNames === undefined ? '' : ` ${resourceNames.join(',')}`;
  return `${apiGroups.join()} ${resources.join(',')}${named}: ${verbs.join(',')}`.trim();
}

/** `verb resource.group`. */
function permissions(rules: readonly PolicyRule[]): readonly string[] {
  return rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((one) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}${one && `.${one}`}`))),
  );
}

const named = optionsOf({ scope: scopeOf(group) });
const everything = [optionsOf(), named, optionsOf({ hasCompat: true }), { ...named, hasCompat: true, namespace: 'ops' }];

describe('the permissions of the agent', () => {
  it('include Applications and Kustomizations only if the agent reads commits', () => {
    const rules = (readsCommits: boolean) => rolesOf(optionsOf({ readsCommits }))['ClusterRole /rollout-group-agent-commits'];
    expect(rules(true)).toEqual(['argoproj.io applications: get', 'kustomize.toolkit.fluxcd.io kustomizations: get']);
    expect(rules(false)).toBeUndefined();
  });

  it('are Roles in each named namespace, and in the cluster only nodes and configurations', () => {
    expect(rolesOf(named)).toMatchInlineSnapshot(`
      {
        "ClusterRole /rollout-group-agent-nodes": [
          "nodes: list,watch",
        ],
        "ClusterRole /rollout-group-agent-webhooks": [
          "admissionregistration.k8s.io validatingwebhookconfigurations,mutatingwebhookconfigurations: list,watch",
          "admissionregistration.k8s.io validatingwebhookconfigurations rollout-group: patch",
          "admissionregistration.k8s.io mutatingwebhookconfigurations rollout-group: patch",
        ],
        "Role mimir/rollout-group-agent": [
          "pods: get,list,watch,delete,patch",
          "pods/eviction: create",
          "apps statefulsets: get,list,watch,patch",
          "apps statefulsets/status: update",
          "policy poddisruptionbudgets: list,watch",
          "rollout-operator.grafana.com zoneawarepoddisruptionbudgets: list,watch",
          "configmaps: get,list,create,update",
          "events.k8s.io events: create,patch",
          "rollout-group.dev rolloutgroups: get,list,watch",
          "rollout-group.dev rolloutgroups/status: patch",
          "rollout-group.dev rolloutpolicies,rolloutexceptions,rolloutintents: list,watch",
          "rollout-group.dev rolloutruns: get,list,create,patch,delete",
          "namespaces: get",
          "rollout-operator.grafana.com replicatemplates ingester: get,list,watch",
          "rollout-operator.grafana.com replicatemplates/scale ingester: get",
          "rollout-operator.grafana.com replicatemplates/status ingester: patch",
        ],
        "Role rollout-group/rollout-group-agent-own": [
          "coordination.k8s.io leases: create",
          "coordination.k8s.io leases rollout-group-agent: get,update",
          "secrets: create",
          "secrets rollout-group-agent-tls: get,list,watch,update",
          "events.k8s.io events: create,patch",
          "rollout-group.dev rolloutgroups,rolloutpolicies,rolloutexceptions,rolloutintents: list,watch",
          "rollout-group.dev metricsources,notificationchannels: get",
        ],
      }
    `);
  });

  it('name only the Secrets of metric sources in the namespace of the agent', () => {
    const source = (name: string, provider: string, namespace = 'rollout-group'): string =>
      `---\napiVersion: rollout-group.dev/v1alpha1\nkind: MetricSource\nmetadata: { name: ${name}, namespace: ${namespace} }\nspec:\n  ${provider}\n  usableFrom: { namespaces: [mimir] }\n`;
    const key = (name: string): string => `{ name: ${name}, key: value }`;
    const sources = [
      source(
        'prod',
        `prometheus: { url: "https://p", basicAuth: { username: ${key('login')}, password: ${key('login')} }, ca: ${key('ca')} }`,
      ),
      source('dc', `consul: { url: "https://c", token: ${key('acl')} }`),
      source('theirs', `consul: { url: "https://c", token: ${key('somebody-elses')} }`, 'mimir'),
    ];
    const roles = rolesOf(optionsOf({ scope: scopeOf(`${group}${sources.join('')}`) }));
    const secrets = Object.entries(roles).flatMap(([role, rules]) =>
      rules.filter((one) => one.startsWith('secrets')).map((one) => [role, one]),
    );
    expect(secrets).toEqual([
      ['Role rollout-group/rollout-group-agent-own', 'secrets: create'],
      ['Role rollout-group/rollout-group-agent-own', 'secrets rollout-group-agent-tls: get,list,watch,update'],
      ['Role rollout-group/rollout-group-agent-own', 'secrets acl,ca,login: get'],
    ]);
  });

  it('are in a ClusterRole if no namespace is named', () => {
    const roles = rolesOf(optionsOf());
    expect(Object.keys(roles)).toEqual([
      'Role rollout-group/rollout-group-agent-own',
      'ClusterRole /rollout-group-agent',
      'ClusterRole /rollout-group-agent-nodes',
      'ClusterRole /rollout-group-agent-webhooks',
    ]);
    // What groups there will be is not known, so that it may pinned pods, too.
    const mayPin = 'apps controllerrevisions: get';
    const all = roles['ClusterRole /rollout-group-agent'];
    expect(all?.slice(0, -3)).toEqual([...(rolesOf(named)['Role mimir/rollout-group-agent']?.slice(0, -3) ?? []), mayPin]);
  });

  it('include revisions only if a group pins pods', () => {
    const pinned = group.replace('strategy: onDelete', 'strategy: pinned').replaceAll('mimir', 'loki');
    const roles = rolesOf(optionsOf({ scope: scopeOf(`${group}---\n${pinned}`) }));
    const reading = Object.entries(roles).filter(([, rules]) => rules.some((one) => one.includes('controllerrevisions')));
    expect(reading.map(([role]) => role)).toEqual(['Role loki/rollout-group-agent']);
  });

  it('contain no wildcard, and no permission to escalate', () => {
    const hostile = /\*|escalate|bind|impersonate|exec|attach|portforward|proxy|deletecollection/;
    for (const options of everything) {
      for (const [role, rules] of Object.entries(rolesOf(options)))
        expect(
          rules.filter((one) => hostile.test(one)),
          role,
        ).toEqual([]);
    }
  });

  it('read no Secret except the certificate, and delete only pods and records', () => {
    for (const options of everything) {
      const rules = installation(options).flatMap(rulesIn);
      const secrets = rules.filter(({ resources }) => resources.includes('secrets'));
      expect(secrets.map(text)).toEqual(['secrets: create', 'secrets rollout-group-agent-tls: get,list,watch,update']);
      expect([...new Set(permissions(rules).filter((one) => one.startsWith('delete')))]).toEqual([
        'delete pods',
        'delete rolloutruns.rollout-group.dev',
      ]);
    }
  });

  it('are at least the permissions of deploy/rbac.yaml', () => {
    interface Document {
      readonly kind: string;
      readonly rules?: readonly PolicyRule[];
    }
    const shipped = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8')).flatMap((one) => (one.toJS() as Document).rules ?? []);
    const given = new Set(permissions(installation(optionsOf()).flatMap(rulesIn)));
    expect(permissions(shipped).filter((one) => !given.has(one))).toEqual([]);
  });

  it('name exactly the installed configurations', () => {
    for (const options of everything) {
      const objects = installation(options);
      const written = objects
        .filter(({ metadata }) => metadata.name.startsWith('rollout-group-agent-webhooks'))
        .flatMap(rulesIn)
        .flatMap(({ resources, resourceNames = [] }) => resourceNames.map((name) => `${resources[0]} ${name}`));
      const installed = objects
        .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
        .map(({ kind, metadata }) => `${kind.toLowerCase()}s ${metadata.name}`);
      expect([...written].sort()).toEqual([...installed].sort());
    }
  });

  it('are bound to the account of the agent, each Role by its binding', () => {
    for (const options of everything) {
      const objects = installation(options);
      const roles = objects.filter(({ kind }) => /^(?:Cluster)?Role$/.test(kind));
      for (const role of roles) {
        const binding = objects.find((one) => nameOf(one) === nameOf({ ...role, kind: `${role.kind}Binding` }));
        expect(binding).toMatchObject({
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: role.metadata.name },
          subjects: [{ kind: 'ServiceAccount', name: 'rollout-group-agent', namespace: options.namespace }],
        });
      }
    }
  });
});

it.each([
  ['ReplicaTemplate', 'replicatemplates'],
  ['Policy', 'policies'],
  ['Gateway', 'gateways'],
  ['Ingress', 'ingresses'],
  ['Box', 'boxes'],
  ['HorizontalPodAutoscaler', 'horizontalpodautoscalers'],
])('the assumed plural of %s is %s', (kind, plural) => {
  expect(pluralOf(kind)).toBe(plural);
});

it('puts the account into the default namespace of the agent', () => {
  const documents = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8')).map((document): unknown => document.toJS());
  const account = documents.find((one) => Reflect.get(Object(one), 'kind') === 'ServiceAccount');
  expect(account).toMatchObject({ metadata: { namespace: usualAgentNamespace } });
});
