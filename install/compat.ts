// Defines the kinds and webhook configurations of grafana/rollout-operator, with the names of that operator.
import { definitionObject } from '../policies/schema/json-schema.ts';
import { isNoPodOfTheAgent } from './conditions.ts';
import type { InstallObject, InstallOptions } from './object.ts';
import { configuration, ruleOf, serviceAt, type WebhookRule } from './webhooks.ts';

const group = 'rollout-operator.grafana.com';

interface Hook {
  readonly name: string;
  readonly kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration';
  readonly rule: WebhookRule;
  readonly sideEffects: 'None' | 'NoneOnDryRun';
  /** True if pods of the agent are exempt, so that their nodes can be drained if the webhook also covers the agent's namespace. */
  readonly exemptsAgent?: true;
}

const replicas: WebhookRule = ruleOf('apps', 'v1', 'UPDATE', 'statefulsets', 'statefulsets/scale');

/** The webhooks. The path of each endpoint is `/admission/` and the name. */
const hooks: readonly Hook[] = [
  { name: 'no-downscale', kind: 'ValidatingWebhookConfiguration', rule: replicas, sideEffects: 'None' },
  { name: 'prepare-downscale', kind: 'MutatingWebhookConfiguration', rule: replicas, sideEffects: 'NoneOnDryRun' },
  // The endpoint records the requests that it allows, so it has side effects.
  {
    name: 'pod-eviction',
    kind: 'ValidatingWebhookConfiguration',
    rule: ruleOf('', 'v1', 'CREATE', 'pods/eviction'),
    sideEffects: 'NoneOnDryRun',
    exemptsAgent: true,
  },
  {
    name: 'zpdb-validation',
    kind: 'ValidatingWebhookConfiguration',
    rule: { ...ruleOf(group, 'v1', 'CREATE', 'zoneawarepoddisruptionbudgets'), operations: ['CREATE', 'UPDATE'] },
    sideEffects: 'None',
  },
];

/** Returns a configuration for each endpoint and namespace; for the agent's namespace if the scope names no namespace. */
export function compatWebhooksOf(options: InstallOptions): readonly InstallObject[] {
  const { namespace, scope } = options;
  const namespaces = scope.namespaces.length === 0 ? [namespace] : scope.namespaces;
  return namespaces.flatMap((one) => hooks.map((hook) => configurationOf(hook, one, options)));
}

function configurationOf({ name, kind, rule, sideEffects, exemptsAgent }: Hook, namespace: string, options: InstallOptions): InstallObject {
  const webhook = {
    name: `${name}-${namespace}.grafana.com`,
    clientConfig: serviceAt(options, `/admission/${name}`),
    rules: [rule],
    ...(exemptsAgent === undefined ? {} : { matchConditions: [isNoPodOfTheAgent(options)] }),
    matchPolicy: 'Equivalent',
    failurePolicy: 'Fail',
    sideEffects,
    timeoutSeconds: 10,
    admissionReviewVersions: ['v1'],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    ...(kind === 'MutatingWebhookConfiguration' ? { reinvocationPolicy: 'Never' } : {}),
  };
  return configuration([kind, `${name}-${namespace}`], options, [webhook]);
}

function objectSchema(fields: Readonly<Record<string, unknown>>): object {
  const standard = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } };
  return { type: 'object', properties: { ...standard, ...fields } };
}

const count = { type: 'integer', minimum: 0 };

/** The kinds ZoneAwarePodDisruptionBudget and ReplicaTemplate. */
export const compatDefinitions: readonly InstallObject[] = [
  definitionObject(group, 'v1', {
    names: { kind: 'ReplicaTemplate', plural: 'replicatemplates', categories: ['all'] },
    schema: objectSchema({
      spec: { type: 'object', properties: { replicas: { ...count, default: 1 }, labelSelector: { type: 'string' } } },
      status: { type: 'object', properties: { replicas: count } },
    }),
    subresources: {
      status: {},
      scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.spec.labelSelector' },
    },
    columns: [
      { name: 'StatusReplicas', type: 'string', jsonPath: '.status.replicas' },
      { name: 'SpecReplicas', type: 'string', jsonPath: '.spec.replicas' },
    ],
  }),
  definitionObject(group, 'v1', {
    names: { kind: 'ZoneAwarePodDisruptionBudget', plural: 'zoneawarepoddisruptionbudgets', shortNames: ['zpdb'] },
    schema: objectSchema({
      spec: {
        type: 'object',
        required: ['selector'],
        properties: {
          selector: {
            type: 'object',
            required: ['matchLabels'],
            properties: { matchLabels: { type: 'object', additionalProperties: { type: 'string' } } },
          },
          maxUnavailable: count,
          maxUnavailablePercentage: { ...count, maximum: 100 },
          podNamePartitionRegex: { type: 'string' },
          podNameRegexGroup: { type: 'integer', minimum: 1 },
          crossZoneEvictionDelay: { type: 'string' },
        },
      },
      status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    }),
    subresources: { status: {} },
  }),
];
