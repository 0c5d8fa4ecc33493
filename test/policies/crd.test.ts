import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type Kind, kinds, schemas } from '../../policies/schema/kinds.ts';
import { sampleDocuments } from './sample-documents.ts';

interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: object;
    readonly scope: string;
    readonly versions: readonly {
      readonly schema: { readonly openAPIV3Schema: Node };
      readonly subresources?: object;
      readonly additionalPrinterColumns: readonly { readonly name: string; readonly jsonPath: string }[];
    }[];
  };
}

type Node = Readonly<Record<string, unknown>>;

const allKinds = Object.keys(schemas) as Kind[];
const definitions = allKinds.flatMap((kind) => {
  const crd = customResourceDefinition(kind) as Crd | undefined;
  return crd ? [{ kind, crd }] : [];
});

function schemaOf(crd: Crd): Node {
  return crd.spec.versions[0]?.schema.openAPIV3Schema ?? {};
}

/** Every schema in a schema, with its path. */
function nodes(node: Node, path = ''): readonly { readonly path: string; readonly node: Node }[] {
  const properties = Object.entries((node['properties'] ?? {}) as Record<string, Node>);
  const inner = [
    ...properties.map(([name, property]) => [`${path}.${name}`, property] as const),
    ...(['items', 'additionalProperties'] as const).flatMap((key) =>
      typeof node[key] === 'object' ? [[`${path}[${key}]`, node[key] as Node] as const] : [],
    ),
  ];
  return [{ path, node }, ...inner.flatMap(([at, one]) => nodes(one, at))];
}

/** What the API server takes; anything else is refused or silently means something else. */
const allowedKeys = new Set([
  'type',
  'description',
  'default',
  'enum',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'items',
  'properties',
  'required',
  'additionalProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
]);

/** The rules of structural schemas that a node breaks. */
function problems(node: Node): readonly string[] {
  const isIntOrString = node['x-kubernetes-int-or-string'] === true;
  const keepsUnknown = node['x-kubernetes-preserve-unknown-fields'] === true;
  const pattern = node['pattern'];
  return [
    ...Object.keys(node).flatMap((key) => (allowedKeys.has(key) ? [] : [`has ${key}`])),
    ...(node['type'] === undefined && !isIntOrString && !keepsUnknown ? ['has no type'] : []),
    ...(node['type'] !== undefined && (isIntOrString || keepsUnknown) ? ['has a type beside an extension that replaces it'] : []),
    ...(node['properties'] !== undefined && node['additionalProperties'] !== undefined ? ['has properties and additionalProperties'] : []),
    ...(typeof node['additionalProperties'] === 'boolean' ? ['has a boolean additionalProperties'] : []),
    ...(node['type'] === 'array' && node['items'] === undefined ? ['is a list without items'] : []),
    ...(node['maximum'] === Number.MAX_SAFE_INTEGER ? ['has the largest number of JavaScript as maximum'] : []),
    ...(node['minimum'] === Number.MIN_SAFE_INTEGER ? ['has the smallest number of JavaScript as minimum'] : []),
    // The API server reads patterns with RE2, which has no look-around and no back references.
    ...(typeof pattern === 'string' && /\(\?[=!<]|\\[1-9]/.test(pattern) ? ['has a pattern that RE2 does not read'] : []),
  ];
}

describe('the CustomResourceDefinitions', () => {
  it('exist for every kind with a resource', () => {
    expect(definitions.map(({ crd }) => crd.metadata.name)).toEqual([
      'rolloutgroups.rollout-group.dev',
      'rolloutpolicies.rollout-group.dev',
      'rolloutexceptions.rollout-group.dev',
      'rolloutintents.rollout-group.dev',
      'rolloutruns.rollout-group.dev',
      'metricsources.rollout-group.dev',
      'notificationchannels.rollout-group.dev',
    ]);
    expect(customResourceDefinition('PolicyTest')).toBeUndefined();
  });

  it.each(definitions)('$kind has a structural schema', ({ crd }) => {
    expect(nodes(schemaOf(crd)).flatMap(({ path, node }) => problems(node).map((problem) => `${path} ${problem}`))).toEqual([]);
  });

  it('the check of this test finds each broken rule', () => {
    const broken: readonly Node[] = [
      { type: 'string', const: 'x' },
      { $ref: '#/x', type: 'string' },
      {},
      { type: 'integer', 'x-kubernetes-int-or-string': true },
      { type: 'object', properties: {}, additionalProperties: { type: 'string' } },
      { type: 'object', additionalProperties: false },
      { type: 'array' },
      { type: 'integer', maximum: Number.MAX_SAFE_INTEGER },
      { type: 'integer', minimum: Number.MIN_SAFE_INTEGER },
      { type: 'string', pattern: '^(?!x)' },
    ];
    expect(broken.map((node) => problems(node).length)).toEqual(broken.map(() => 1));
  });

  it.each(definitions)('$kind accepts its sample, with the defaults filled in', ({ kind, crd }) => {
    const validate = new Ajv({ strict: false, allErrors: true }).compile(schemaOf(crd));
    validate(JSON.parse(JSON.stringify(sampleDocuments.find((document) => document.kind === kind))));
    expect(validate.errors ?? []).toEqual([]);
  });

  it('fields that exclude each other have one rule each', () => {
    const rules = definitions.flatMap(({ kind, crd }) =>
      nodes(schemaOf(crd)).flatMap(({ path, node }) =>
        ((node['x-kubernetes-validations'] ?? []) as { readonly message: string }[]).map(({ message }) => `${kind}${path}: ${message}`),
      ),
    );
    expect(rules).toMatchInlineSnapshot(`
      [
        "RolloutGroup.spec.members: exactly one of zones, selector must be set",
        "RolloutGroup.spec.members.zones[items].replicas: at most one of count, mirror, leader may be set",
        "RolloutGroup.spec.replicas: at most one of count, mirror, leader may be set",
        "RolloutGroup.spec.rollout: at most one of waves, schedule may be set",
        "RolloutGroup.spec.rollout.waves[items]: exactly one of pods, percent must be set",
        "RolloutGroup.spec.gates[items]: exactly one of prometheus, consul, http, podsAvailable must be set",
        "RolloutGroup.spec.disruption: at most one of maxUnavailable, maxUnavailablePercent may be set",
        "RolloutPolicy.spec.targets: exactly one of groups, selector, all must be set",
        "RolloutPolicy.spec.windows[items]: exactly one of schedule, ranges must be set",
        "RolloutException.spec.allow: exactly one of replicasAtLeast, podsAtMost, anything must be set",
        "MetricSource.spec: exactly one of prometheus, consul must be set",
        "MetricSource.spec.prometheus: at most one of bearerToken, basicAuth may be set",
        "NotificationChannel.spec: exactly one of slack, callback, github, gitlab must be set",
      ]
    `);
  });

  it('a choice of number and percentage is an int-or-string with the limits of both', () => {
    const group = definitions.find(({ kind }) => kind === 'RolloutGroup');
    const found = nodes(group ? schemaOf(group.crd) : {}).find(({ path }) => path === '.spec.rollout.maxUnavailable');
    expect(found?.node).toEqual({
      default: 1,
      description:
        'Maximum number of unavailable pods in one zone: a number, a percentage of its replicas, or `fromBudget` (its PodDisruptionBudget).',
      'x-kubernetes-int-or-string': true,
      minimum: 0,
      maximum: 100_000,
      pattern: '^(?:[1-9]\\d?|100)%$|^fromBudget$',
    });
  });

  it('only the group has status and scale, on existing fields', () => {
    const paths = (kind: Kind) => {
      const crd = definitions.find((one) => one.kind === kind)?.crd;
      return { subresources: crd?.spec.versions[0]?.subresources, fields: crd ? nodes(schemaOf(crd)).map(({ path }) => path) : [] };
    };
    const { subresources, fields } = paths('RolloutGroup');
    const scale = {
      specReplicasPath: '.spec.replicas.count',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    };
    expect(subresources).toEqual({ status: {}, scale });
    expect(Object.values(scale).filter((path) => !fields.includes(path))).toEqual([]);
    expect(definitions.filter(({ kind }) => kind !== 'RolloutGroup').map(({ kind }) => paths(kind).subresources)).toEqual(
      definitions.slice(1).map(() => undefined),
    );
  });

  it('every printed column is a field', () => {
    const missing = definitions.flatMap(({ kind, crd }) => {
      const fields = new Set(nodes(schemaOf(crd)).map(({ path }) => path));
      const columns = crd.spec.versions.flatMap((version) => version.additionalPrinterColumns);
      return columns
        .filter(({ jsonPath }) => !jsonPath.startsWith('.metadata.') && !fields.has(jsonPath.replace(/\[\?.*?\]/, '[items]')))
        .map(({ name }) => `${kind} ${name}`);
    });
    expect(missing).toEqual([]);
  });

  it('names are the names of the registry', () => {
    expect(definitions.map(({ kind, crd }) => [kind, crd.spec.names, crd.spec.scope])).toEqual(
      definitions.map(({ kind }) => {
        const { plural, shortNames } = kinds[kind];
        const singular = kind.toLowerCase();
        const names = { kind, listKind: `${kind}List`, plural, singular, ...(shortNames && { shortNames }), categories: ['rollout-group'] };
        return [kind, names, 'Namespaced'];
      }),
    );
  });
});
