import { describe, expect, it } from 'vitest';
import { isExempt } from '../../engine/judge/judge.ts';
import { installation } from '../../install/installation.ts';
import type { InstallOptions } from '../../install/object.ts';
import { annotationKeys } from '../../policies/adopt/keys.ts';
import { group, optionsOf, scopeOf, type Webhook, webhooksIn } from './given.ts';

function webhooks(changes: Partial<InstallOptions> = {}): readonly Webhook[] {
  return webhooksIn(installation(optionsOf(changes)));
}

/** What reaches an endpoint, and what happens without an answer. */
function rowOf({ name, clientConfig, rules, failurePolicy, sideEffects, matchConditions = [] }: Webhook): string {
  const what = rules.map(
    ({ operations, apiGroups, apiVersions, resources }) =>
      `${operations.join('+')} ${apiGroups.join()}/${apiVersions.join()} ${resources.join('+')}`,
  );
  return `${name} ${clientConfig.service.path} ${what.join('; ')} ${failurePolicy} ${sideEffects}: ${matchConditions.map((one) => one.name).join(', ')}`;
}

function namedWebhook(name: string, changes: Partial<InstallOptions> = {}): Webhook {
  const found = webhooks(changes).find((one) => one.name.startsWith(name));
  if (found === undefined) throw new Error(`there is no webhook ${name}`);
  return found;
}

function conditionOf({ matchConditions = [] }: Webhook, name: string): string {
  const found = matchConditions.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no condition ${name}`);
  return found.expression;
}

/** Brackets and quotes close in their order; that the rest is CEL too, only an API server can tell. */
function isBalanced(expression: string): boolean {
  const open: string[] = [];
  const pairs: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
  for (const [token] of expression.replace(/'[^']*'/g, '').matchAll(/[()[\]{}']/g)) {
    if (token === "'") return false;
    if (pairs[token] === undefined) open.push(token);
    else if (open.pop() !== pairs[token]) return false;
  }
  return open.length === 0;
}

const scope = scopeOf(group);
const every = [webhooks(), webhooks({ scope, isMembersOnly: true }), webhooks({ scope, hasCompat: true, namespace: 'ops' })].flat();

describe('our webhooks', () => {
  it('are complete, and receive no other request', () => {
    expect(webhooks().map(rowOf)).toMatchInlineSnapshot(`
      [
        "statefulset-update.enforce.rollout-group.dev /admission/enforce UPDATE apps/v1 statefulsets+statefulsets/status Fail NoneOnDryRun: is-not-the-agent, changes-what-is-guarded",
        "statefulset-delete.enforce.rollout-group.dev /admission/enforce DELETE apps/v1 statefulsets Fail NoneOnDryRun: is-no-namespace-deletion, is-not-terminating",
        "statefulset-scale.enforce.rollout-group.dev /admission/enforce UPDATE apps/v1 statefulsets/scale Fail NoneOnDryRun: is-not-the-agent, removes-replicas",
        "pod-eviction.enforce.rollout-group.dev /admission/enforce CREATE /v1 pods/eviction Fail NoneOnDryRun: is-not-the-agent, is-no-pod-of-the-agent, has-an-ordinal",
        "pod-delete.enforce.rollout-group.dev /admission/enforce DELETE /v1 pods Ignore NoneOnDryRun: is-not-the-agent, is-no-node, is-no-controller-of-kubernetes, is-not-terminating, is-of-a-statefulset",
        "pod-update.enforce.rollout-group.dev /admission/enforce UPDATE /v1 pods+pods/status Ignore NoneOnDryRun: is-not-the-agent, is-no-node, is-no-controller-of-kubernetes, is-not-terminating, is-of-a-statefulset, takes-the-pod-away",
        "statefulset-growth.enforce.rollout-group.dev /admission/enforce UPDATE apps/v1 statefulsets Ignore NoneOnDryRun: is-not-the-agent, only-adds-replicas",
        "statefulset-scale-up.enforce.rollout-group.dev /admission/enforce UPDATE apps/v1 statefulsets/scale Ignore NoneOnDryRun: is-not-the-agent, adds-replicas",
        "policies.validate.rollout-group.dev /admission/validate CREATE+UPDATE rollout-group.dev/v1alpha1 rolloutgroups+rolloutpolicies+metricsources+notificationchannels Ignore None: says-something-new",
        "requests.validate.rollout-group.dev /admission/validate CREATE+UPDATE rollout-group.dev/v1alpha1 rolloutexceptions+rolloutintents Fail None: says-something-new, creates-no-stop",
        "stops.validate.rollout-group.dev /admission/validate CREATE rollout-group.dev/v1alpha1 rolloutintents Ignore None: creates-a-stop",
        "stamp.rollout-group.dev /admission/stamp CREATE+UPDATE rollout-group.dev/v1alpha1 rolloutexceptions+rolloutintents Fail None: says-something-new, creates-no-stop",
        "stops.stamp.rollout-group.dev /admission/stamp CREATE rollout-group.dev/v1alpha1 rolloutintents Ignore None: creates-a-stop",
        "pinned.rollout-group.dev /admission/pin-pod CREATE /v1 pods Ignore None: is-made-for-a-statefulset",
      ]
    `);
  });

  it('name exact groups, versions, resources and operations, in namespaces only', () => {
    for (const { rules } of every) {
      expect(JSON.stringify(rules)).not.toContain('*');
      expect(rules.map((rule) => rule.scope)).toEqual(['Namespaced']);
    }
  });

  it('receive other versions of their resources, request reviews in v1 and answer in time', () => {
    for (const one of every) {
      expect(one).toMatchObject({ matchPolicy: 'Equivalent', admissionReviewVersions: ['v1'] });
      expect(one.timeoutSeconds).toBe(one.name.endsWith('.rollout-group.dev') ? 5 : 10);
    }
  });

  it('select no objects, because requests for /scale and /eviction have no labels', () => {
    const selecting = every.filter((one) => one.objectSelector !== undefined);
    expect(new Set(selecting.map(({ name }) => name))).toEqual(new Set(['pinned.rollout-group.dev']));
  });

  it('enforce only in opted-in namespaces, and stamp requesters everywhere', () => {
    const optedIn = { matchLabels: { 'rollout-group.dev/enforce': 'true' } };
    for (const { name, clientConfig, namespaceSelector } of webhooks()) {
      expect([name, namespaceSelector]).toEqual([name, clientConfig.service.path === '/admission/enforce' ? optedIn : undefined]);
    }
  });

  it('receive no request of the agent, except deletions of StatefulSets, which the agent never sends', () => {
    for (const one of webhooks({ namespace: 'ops' }).filter(({ clientConfig }) => clientConfig.service.path === '/admission/enforce')) {
      if (one.name.startsWith('statefulset-delete')) continue;
      expect(conditionOf(one, 'is-not-the-agent')).toBe("request.userInfo.username != 'system:serviceaccount:ops:rollout-group-agent'");
    }
  });

  it('receive no request that may have no name: the items of a deleted collection', () => {
    const deletes = every.filter(({ rules }) => rules.some(({ operations }) => operations.includes('DELETE')));
    expect(deletes.length).toBeGreaterThan(3);
    for (const { matchConditions = [] } of deletes) {
      expect(
        matchConditions.filter(({ expression }) => expression.includes('request.name)') || expression.includes('request.name ')),
      ).toEqual([]);
    }
  });

  it('have conditions with distinct names and balanced brackets', () => {
    for (const { matchConditions = [] } of every) {
      expect(new Set(matchConditions.map(({ name }) => name)).size).toBe(matchConditions.length);
      // As the API server limits them.
      expect(matchConditions.length).toBeLessThanOrEqual(64);
      for (const { name, expression } of matchConditions) {
        expect([name, isBalanced(expression)]).toEqual([name, true]);
        expect(name).toMatch(/^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/);
      }
    }
  });

  it('read the annotations that protect, and not the annotations that control an adopted group', () => {
    const expression = conditionOf(namedWebhook('statefulset-update'), 'changes-what-is-guarded');
    const { lastDownscale, preparePath, preparePort } = annotationKeys;
    const looked = Object.values(annotationKeys).filter((key) => expression.includes(`'${key}'`));
    expect(looked).toEqual([lastDownscale, preparePath, preparePort]);
  });

  it('exempt the pods of the agent that the process exempts, and no others', () => {
    const pattern = /matches\('([^']*)'\)/.exec(conditionOf(namedWebhook('pod-eviction'), 'is-no-pod-of-the-agent'))?.[1];
    const own = { namespace: 'rollout-group', names: ['rollout-group-agent'] };
    const names = ['5d4f8c7b9-x7k2p', '84b6d-x7k2p', 'x-x7k2p', 'longer-than-a-hash-x7k2p', '5d4f8c7b9f12-x7k2p', '0', '12345', 'db-0'];
    const spared = names.filter((end) => {
      const name = `rollout-group-agent-${end}`;
      const isSpared = new RegExp(pattern ?? 'none').test(name);
      expect(isExempt({ kind: 'pod', namespace: 'rollout-group', name }, { own }), name).toBe(isSpared);
      return isSpared;
    });
    expect(spared).toEqual(['5d4f8c7b9-x7k2p', '84b6d-x7k2p']);
  });

  it('receive only named StatefulSets on request', () => {
    const only = { scope, isMembersOnly: true };
    expect(conditionOf(namedWebhook('statefulset-scale.', only), 'is-a-member')).toBe(
      "request.namespace + '/' + request.name in ['mimir/ingester-zone-a', 'mimir/ingester-zone-b']",
    );
    expect(conditionOf(namedWebhook('statefulset-delete', only), 'is-a-member')).toBe(
      "request.namespace + '/' + oldObject.metadata.name in ['mimir/ingester-zone-a', 'mimir/ingester-zone-b']",
    );
    expect(conditionOf(namedWebhook('pod-delete', only), 'is-a-pod-of-a-member')).toBe(
      "(request.namespace + '/' + oldObject.metadata.name).matches('^(mimir/ingester-zone-a|mimir/ingester-zone-b)-[0-9]+$')",
    );
  });
});

describe('the webhook that pins pods', () => {
  const pinned = (namespace: string) => group.replace('strategy: onDelete', 'strategy: pinned').replaceAll('mimir', namespace);
  const configurationsOf = (changes: Partial<InstallOptions>) =>
    installation(optionsOf(changes)).filter(({ metadata }) => metadata.name.startsWith('0-rollout-group-pinned'));

  it('is registered if a group has that strategy, or may have it', () => {
    expect(configurationsOf({})).toHaveLength(1);
    expect(configurationsOf({ scope: scopeOf(pinned('mimir')) })).toHaveLength(1);
    expect(configurationsOf({ scope: scopeOf(group, { namespaces: ['loki'] }) })).toHaveLength(1);
    expect(configurationsOf({ scope })).toEqual([]);
    expect(configurationsOf({ scope: scopeOf(group, { namespaces: ['mimir'] }) })).toEqual([]);
  });

  it('is called before and after webhooks that add containers, only for pods of StatefulSets, in every namespace', () => {
    const [found] = configurationsOf({ namespace: 'ops' });
    expect(found).toMatchObject({ kind: 'MutatingWebhookConfiguration', metadata: { name: '0-rollout-group-pinned-ops' } });
    const others = [
      '00-first',
      '1-injector',
      'aws-load-balancer-webhook',
      'istio-sidecar-injector',
      'linkerd-proxy-injector-webhook-config',
    ];
    expect([...others, found?.metadata.name].sort()[0]).toBe(found?.metadata.name);
    expect(found?.metadata.labels).toMatchObject({ 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': 'ops' });
    const [row] = webhooksIn(configurationsOf({}));
    expect(row).toMatchObject({ reinvocationPolicy: 'IfNeeded', failurePolicy: 'Ignore', sideEffects: 'None', timeoutSeconds: 5 });
    expect(row?.objectSelector).toEqual({
      matchExpressions: ['statefulset.kubernetes.io/pod-name', 'controller-revision-hash'].map((key) => ({ key, operator: 'Exists' })),
    });
    expect(row?.namespaceSelector).toBeUndefined();
  });

  it('receives only groups of that strategy on request', () => {
    const both = scopeOf(`${pinned('loki')}---\n${group}`);
    const [row] = webhooksIn(configurationsOf({ scope: both, isMembersOnly: true }));
    if (row === undefined) throw new Error('there is no such webhook');
    expect(conditionOf(row, 'is-a-member')).toContain("in ['loki/ingester-zone-a', 'loki/ingester-zone-b']");
  });
});

describe('the webhooks of grafana/rollout-operator', () => {
  const compat = installation(optionsOf({ scope, hasCompat: true })).filter(({ metadata }) => metadata.name.endsWith('-mimir'));

  it('are the webhooks of the original, under its names', () => {
    expect(compat.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'ValidatingWebhookConfiguration no-downscale-mimir',
      'MutatingWebhookConfiguration prepare-downscale-mimir',
      'ValidatingWebhookConfiguration pod-eviction-mimir',
      'ValidatingWebhookConfiguration zpdb-validation-mimir',
    ]);
    expect(webhooksIn(compat).map(rowOf)).toMatchInlineSnapshot(`
      [
        "no-downscale-mimir.grafana.com /admission/no-downscale UPDATE apps/v1 statefulsets+statefulsets/scale Fail None: ",
        "prepare-downscale-mimir.grafana.com /admission/prepare-downscale UPDATE apps/v1 statefulsets+statefulsets/scale Fail NoneOnDryRun: ",
        "pod-eviction-mimir.grafana.com /admission/pod-eviction CREATE /v1 pods/eviction Fail NoneOnDryRun: is-no-pod-of-the-agent",
        "zpdb-validation-mimir.grafana.com /admission/zpdb-validation CREATE+UPDATE rollout-operator.grafana.com/v1 zoneawarepoddisruptionbudgets Fail None: ",
      ]
    `);
  });

  it('apply to the namespace of the groups, with the name of the namespace of the agent', () => {
    for (const { metadata } of compat) {
      expect(metadata.labels).toMatchObject({ 'grafana.com/inject-rollout-operator-ca': 'true', 'grafana.com/namespace': 'rollout-group' });
    }
    for (const { namespaceSelector } of webhooksIn(compat)) {
      expect(namespaceSelector).toEqual({ matchLabels: { 'kubernetes.io/metadata.name': 'mimir' } });
    }
  });

  it('apply to the namespace of the agent if no other is named', () => {
    const names = installation(optionsOf({ hasCompat: true, namespace: 'mimir' })).map(({ metadata }) => metadata.name);
    expect(names).toEqual(expect.arrayContaining(['no-downscale-mimir', 'pod-eviction-mimir']));
  });
});
