// Defines the values of the Helm chart: defaults, schema, and the values of the chart of grafana/rollout-operator that they replace.
import { stringify } from 'yaml';

interface ValueSchema {
  readonly type: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly items?: object;
  readonly properties?: Readonly<Record<string, ValueSchema>>;
}

const text = (description: string, value = ''): ValueSchema => ({ type: 'string', description, default: value });
const switched = (description: string, isOn = false): ValueSchema => ({ type: 'boolean', description, default: isOn });
const list = (description: string, items: object = { type: 'object' }): ValueSchema => ({ type: 'array', description, items, default: [] });
const map = (description: string, value: object = {}): ValueSchema => ({ type: 'object', description, default: value });
const group = (description: string, properties: Readonly<Record<string, ValueSchema>>): ValueSchema => ({
  type: 'object',
  description,
  properties,
});
const texts = (pattern: string) => ({ type: 'string', pattern });
/** NAMESPACE/NAME. The template checks it too: the text becomes part of a CEL expression, and Helm can skip the schema. */
export const memberPattern = '^[a-z0-9-]+/[a-z0-9.-]+$';
const dnsLabel = '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$';

const installationValues: Readonly<Record<string, ValueSchema>> = {
  image: group('The image of the agent.', {
    repository: text(
      'The repository, with the registry. No public registry has the image: copy it from the release into a registry.',
      'rollout-group-agent',
    ),
    tag: text('The tag; empty means the version of the chart.'),
    digest: { ...text('The digest, for example sha256:0123...; it replaces the tag.'), pattern: '^(sha256:[0-9a-f]{64})?$' },
    pullPolicy: { ...text('The pull policy; empty means the default of Kubernetes.'), enum: ['', 'Always', 'IfNotPresent', 'Never'] },
  }),
  imagePullSecrets: list('Secrets for the registry, for example [{ name: registry }].'),
  replicas: {
    type: 'integer',
    description: 'The number of pods of the agent. All pods answer webhooks, one pod acts. With one pod there is no PodDisruptionBudget.',
    minimum: 1,
    default: 3,
  },
  namespaces: list(
    'The namespaces with groups. The agent gets a Role in each. Empty means the whole cluster, with ClusterRoles.',
    texts(dnsLabel),
  ),
  secrets: list(
    'The Secrets in the namespace of the release that MetricSources and NotificationChannels name.',
    texts(dnsLabel.replace('[-a-z0-9]{0,61}', '[-.a-z0-9]{0,251}')),
  ),
  extraRules: list(
    'RBAC rules that are added to the role for namespaces with groups: the rights on the objects from which zones take their replicas. The command `kubectl rollout-group install --policies` prints them.',
  ),
  partitionMembers: list(
    'The StatefulSets of groups of the strategy `partition`, as NAMESPACE/NAME. The admission policy protects them also in the middle of a rollout.',
    texts(memberPattern),
  ),
  compat: switched('Also install the kinds and webhook configurations of grafana/rollout-operator, under their own names.'),
  readCommits: switched('Let the agent read Applications of Argo CD and Kustomizations of Flux, for the commits of rollouts.'),
  admissionPolicies: switched('Install the ValidatingAdmissionPolicies, which need Kubernetes 1.30.', true),
  crds: group('The CustomResourceDefinitions, which all installations in a cluster share.', {
    enabled: switched('Install and upgrade the CRDs. Set it to false in all releases of a cluster except one.', true),
    keep: switched('Keep the CRDs, and with them all groups, policies and records, when the release is uninstalled.', true),
  }),
  certificate: group('The certificate of the webhooks. By default the agent creates and renews it.', {
    issuer: group('The issuer of cert-manager that issues the certificate.', {
      name: text('The name; empty means no issuer.'),
      kind: { ...text('The kind of the issuer.', 'Issuer'), enum: ['Issuer', 'ClusterIssuer'] },
    }),
    secret: group('A Secret of the type kubernetes.io/tls with a certificate for rollout-group-agent.NAMESPACE.svc.', {
      name: text('The name; empty means no Secret.'),
      ca: text('The CA certificate in PEM format, which the API server trusts. Required with a name.'),
    }),
  }),
};

const monitoringValues: Readonly<Record<string, ValueSchema>> = {
  serviceMonitor: group('A ServiceMonitor, for the Prometheus Operator.', {
    enabled: switched('Create the ServiceMonitor.'),
    labels: map('Labels by which Prometheus selects it.'),
    annotations: map('Annotations.'),
    interval: { ...text('The interval between scrapes; empty means the default of Prometheus.'), type: ['string', 'null'] },
    scrapeTimeout: { ...text('The timeout of a scrape; empty means the default of Prometheus.'), type: ['string', 'null'] },
    relabelings: list('Relabelings before a scrape.'),
  }),
  prometheusRule: group('The alerts of deploy/monitoring, for the Prometheus Operator.', {
    enabled: switched('Create the PrometheusRule.'),
    labels: map('Labels by which Prometheus selects it.'),
  }),
  dashboards: group('The dashboards of deploy/monitoring as ConfigMaps, for the sidecar of Grafana.', {
    enabled: switched('Create the ConfigMaps.'),
    labels: map('Labels by which the sidecar selects them.', { grafana_dashboard: '1' }),
  }),
};

/** Returns the schema of all values. `resources`: the resources of the container that `install` defines. */
function valueSchemas(resources: object): Readonly<Record<string, ValueSchema>> {
  return {
    ...installationValues,
    ...monitoringValues,
    serviceAccount: group('The ServiceAccount rollout-group-agent.', { annotations: map('Annotations.') }),
    podAnnotations: map('Annotations of the pods.'),
    podLabels: map('Further labels of the pods.'),
    priorityClassName: text('The PriorityClass of the pods.'),
    resources: map('The resources of the container.', resources),
    nodeSelector: map('Labels of the nodes on which the pods may run.'),
    tolerations: list('Tolerations of the pods.'),
    affinity: map('The affinity; empty means that pods prefer different nodes.'),
    topologySpreadConstraints: list('The spread of the pods; empty means evenly over zones, as far as possible.'),
    hostAliases: list('Entries for /etc/hosts of the pods.'),
    extraArgs: list('Further flags of the agent, for example --log.level=debug. If a flag occurs twice, the last value counts.', {
      type: 'string',
    }),
    extraEnv: list('Environment variables, for example NODE_EXTRA_CA_CERTS or HTTPS_PROXY.'),
    extraEnvFrom: list('ConfigMaps and Secrets with environment variables.'),
    extraVolumes: list('Further volumes, for example with a CA certificate.'),
    extraVolumeMounts: list('Mounts of the further volumes.'),
  };
}

/** Returns values.schema.json. Unknown values are errors, so that a value of another chart is not ignored. */
export function valuesSchema(resources: object): object {
  const closed = ({ properties, ...rest }: ValueSchema): object =>
    properties === undefined ? rest : { ...rest, additionalProperties: false, properties: mapValues(properties, closed) };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...closed({
      type: 'object',
      properties: { ...valueSchemas(resources), global: map('Values that Helm shares with charts of which this one is a part.') },
    }),
  };
}

/** Returns values.yaml with the description of each value. */
export function valuesYaml(resources: object): string {
  return `# Generated from scripts/chart/values.ts by npm run generate.\n\n${valueLines(valueSchemas(resources), '').join('\n')}\n`;
}

function valueLines(schemas: Readonly<Record<string, ValueSchema>>, indent: string): readonly string[] {
  return Object.entries(schemas).flatMap(([name, { description, default: value, properties }], index) => {
    const gap = index > 0 && indent === '' ? [''] : [];
    const comment = wrapped(description ?? '', 98 - indent.length).map((line) => `${indent}# ${line}`);
    if (properties !== undefined) return [...gap, ...comment, `${indent}${name}:`, ...valueLines(properties, `${indent}  `)];
    const yaml = stringify({ [name]: value }, { lineWidth: 0 })
      .trimEnd()
      .split('\n');
    return [...gap, ...comment, ...yaml.map((line) => `${indent}${line}`)];
  });
}

function wrapped(description: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of description.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value) => Result,
): Readonly<Record<string, Result>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

/** A value of the chart of grafana/rollout-operator (0.51): `same`, another value of this chart, or no counterpart with the reason. */
type Counterpart =
  | { readonly kind: 'same' }
  | { readonly kind: 'moved'; readonly to: string; readonly note: string }
  | { readonly kind: 'none'; readonly why: string };

const same: Counterpart = { kind: 'same' };
const none = (why: string): Counterpart => ({ kind: 'none', why });
const moved = (to: string, note: string): Counterpart => ({ kind: 'moved', to, note });

/** Maps each value of the chart of grafana/rollout-operator. A value below a listed name has the counterpart of that name. */
export const grafanaValues: Readonly<Record<string, Counterpart>> = {
  'image.registry': moved('image.repository', 'prepend the registry to `image.repository`'),
  'image.repository': moved('image.repository', 'the image of this agent'),
  'image.tag': moved('image.tag', 'the version of this agent'),
  'image.pullPolicy': same,
  imagePullSecrets: same,
  hostAliases: same,
  hostNetwork: none('the restricted Pod Security standard forbids it'),
  nameOverride: none('the names are fixed, because the webhooks and `doctor` find the agent by its name'),
  fullnameOverride: none('the names are fixed'),
  'serviceAccount.create': none('the ServiceAccount is always created'),
  'serviceAccount.name': none('the name is fixed'),
  'serviceAccount.annotations': same,
  'crds.enabled': same,
  annotations: none('the Deployment has no further annotations; use `podAnnotations`'),
  podAnnotations: same,
  podLabels: same,
  podSecurityContext: none('the pods always meet the restricted Pod Security standard'),
  securityContext: none('the pods always meet the restricted Pod Security standard'),
  extraArgs: same,
  extraEnv: same,
  extraEnvFrom: same,
  resources: same,
  minReadySeconds: none('a pod is ready when it answers webhooks'),
  revisionHistoryLimit: none('the default of Kubernetes'),
  nodeSelector: same,
  tolerations: same,
  affinity: same,
  priorityClassName: same,
  'global.commonLabels': none('the labels identify the installation'),
  'serviceMonitor.enabled': same,
  'serviceMonitor.namespace': none('the ServiceMonitor is in the namespace of the release'),
  'serviceMonitor.namespaceSelector': none('the ServiceMonitor selects the namespace of the release'),
  'serviceMonitor.annotations': same,
  'serviceMonitor.labels': same,
  'serviceMonitor.interval': same,
  'serviceMonitor.scrapeTimeout': same,
  'serviceMonitor.relabelings': same,
  'webhooks.enabled': moved('compat', '`true` installs the same webhook configurations'),
  'webhooks.timeoutSeconds': none('10 seconds, as the default there'),
  'webhooks.failurePolicy': none('`Fail`, as the default there'),
  'webhooks.selfSignedCertSecretName': none('the name is fixed'),
  'webhooks.objectSelector': none('requests for `/scale` and evictions do not contain the labels of the object'),
  namespaceSelector: none('use `namespaces`; the original watches only its own namespace'),
};

/** Returns the rows of the table in docs/helm.md. */
export function grafanaTable(): readonly string[] {
  return Object.entries(grafanaValues).map(([name, counterpart]) => `| \`${name}\` | ${counterpartText(name, counterpart)} |`);
}

function counterpartText(name: string, counterpart: Counterpart): string {
  switch (counterpart.kind) {
    case 'same':
      return `\`${name}\``;
    case 'moved':
      return `\`${counterpart.to}\`: ${counterpart.note}`;
    case 'none':
      return `no value: ${counterpart.why}`;
    default:
      return counterpart satisfies never;
  }
}
