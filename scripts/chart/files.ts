// Lists the generated files in deploy/helm and deploy/kustomize.
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { compatDefinitions } from '../../install/compat.ts';
import { agentObjects, definitionsOf } from '../../install/installation.ts';
import { type InstallObject, installObject } from '../../install/object.ts';
import { everyOptions } from '../../install/registered-policies.ts';
import { agentName, usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { dashboardFiles } from '../generated/dashboards.ts';
import { chartObjects, definedKind, isKind } from './chart.ts';
import { connectionTest } from './connection-test.ts';
import { kustomizeFiles } from './kustomize.ts';
import { documents, type Entries, escaped, ifKey, inserted, isBlock, isEntries, lines, type Tree } from './template.ts';
import { memberPattern, valuesSchema, valuesYaml } from './values.ts';

const folder = 'deploy/helm/rollout-group';
const from = (what: string) => `Generated from ${what} by npm run generate.`;

/** Returns each generated file in deploy/helm and deploy/kustomize with its content. */
export function deployFiles(): ReadonlyMap<string, string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const [rule, boards] = monitoringObjects(usualAgentNamespace);
  const further = { monitoring: [rule, ...boards.map((board) => withLabels(board, { grafana_dashboard: '1' }))] };
  return new Map([...chartFiles(), ...kustomizeFiles(`rollout-group-agent:${version}`, further)]);
}

function withLabels(object: Entries, labels: Entries): Entries {
  const metadata = object['metadata'] as Entries;
  return { ...object, metadata: { ...metadata, labels: { ...(metadata['labels'] as Entries), ...labels } } };
}

function chartFiles(): ReadonlyMap<string, string> {
  const objects = chartObjects();
  const ofKinds = (...names: readonly string[]): string =>
    `{{- /* ${from('install/ and scripts/chart/')} */}}\n${documents(chosen(objects, (object) => names.some((name) => isKind(object, name))))}`;
  const resources = containerResources();
  const templates: Readonly<Record<string, string>> = {
    '_names.tpl': names(chosen(objects, (object) => isKind(object, definedKind))),
    'agent.yaml': ofKinds('Secret', 'Certificate', 'Lease', 'Service', 'NetworkPolicy', 'PodDisruptionBudget', 'Deployment'),
    'definitions.yaml': definitions(),
    'monitoring.yaml': `${ofKinds('ServiceMonitor')}${monitoringTemplate()}`,
    'rights.yaml': ofKinds('ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'),
    'test.yaml': `{{- /* ${from('scripts/chart/')} */}}\n${connectionTest}`,
    'webhooks.yaml': ofKinds(
      ...['Validating', 'Mutating'].map((one) => `${one}WebhookConfiguration`),
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
    ),
    'NOTES.txt': notes,
  };
  return new Map([
    [`${folder}/Chart.yaml`, description()],
    [`${folder}/values.yaml`, valuesYaml(resources)],
    [`${folder}/values.schema.json`, `${JSON.stringify(valuesSchema(resources), null, 2)}\n`],
    ...Object.entries(templates).map(([name, content]) => [`${folder}/templates/${name}`, content] as const),
  ]);
}

function description(): string {
  const { version, homepage } = JSON.parse(readFileSync('package.json', 'utf8'));
  const home = String(homepage).replace(/#.*$/, '');
  return `# ${from('scripts/chart/')}\n${stringify({
    apiVersion: 'v2',
    name: 'rollout-group',
    description: 'The agent and the webhooks of rollout-group, which update groups of StatefulSets one zone at a time',
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: '>=1.28.0-0',
    home,
    sources: [home],
  })}`;
}

/** Returns the objects that match, in their blocks. */
function chosen(objects: readonly Tree[], isChosen: (object: Tree) => boolean): readonly Tree[] {
  return objects.flatMap((object): readonly Tree[] => {
    if (!isBlock(object)) return isChosen(object) ? [object] : [];
    const [yes, no] = [chosen(object.$then, isChosen), chosen(object.$else, isChosen)];
    return yes.length + no.length === 0 ? [] : [{ ...object, $then: yes, $else: no }];
  });
}

function containerResources(): object {
  const deployment = agentObjects(everyOptions('')).find(({ kind }) => kind === 'Deployment');
  const { spec } = deployment as unknown as {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly { readonly resources: object }[] } } };
  };
  return spec.template.spec.containers[0]?.resources ?? {};
}

/** Returns the named templates. The fields of admission policies come from the blocks, since a template that is not used does no harm. */
function names(definitionBlocks: readonly Tree[]): string {
  const flat = (one: Tree): readonly Entries[] => (isBlock(one) ? [...one.$then, ...one.$else].flatMap(flat) : isEntries(one) ? [one] : []);
  const marked = definitionBlocks.flatMap(flat).map(({ metadata = '', content = '' }) => {
    const name = isEntries(metadata) ? String(metadata['name']) : '';
    return `{{- define "${name}" }}\n${lines(content, '').join('\n')}\n{{- end }}\n`;
  });
  return `{{- /* ${from('scripts/chart/')} The templates rollout-group.marked.* have the fields that the mark of an admission policy covers. */}}
{{- define "rollout-group.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
{{- /* The end of the names of objects without a namespace, so that each installation in a cluster has its own. */}}
{{- define "rollout-group.suffix" -}}
{{ if ne .Release.Namespace "rollout-group" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}
{{- define "rollout-group.members" -}}
{{ range $index, $member := .Values.partitionMembers | uniq | sortAlpha }}{{ if $index }}, {{ end }}{{ if not (regexMatch "${memberPattern}" $member) }}{{ fail (printf "partitionMembers: %q is not NAMESPACE/NAME" $member) }}{{ end }}'{{ $member }}'{{ end }}
{{- end }}
${marked.join('')}`;
}

/** Returns the CRDs in one template. Helm upgrades them, and keeps them at an uninstallation if the values request it. */
function definitions(): string {
  const compat = new Set(compatDefinitions.map(({ metadata: { name } }) => name));
  const all = definitionsOf({ hasCompat: true });
  const ours = all.filter(({ metadata: { name } }) => !compat.has(name)).map(keptDefinition);
  const theirs = all.filter(({ metadata: { name } }) => compat.has(name)).map(keptDefinition);
  const blocks: Tree = {
    $block: 'if $.Values.crds.enabled',
    $then: [...ours, { $block: 'if $.Values.compat', $then: theirs, $else: [] }],
    $else: [],
  };
  return `{{- /* ${from('policies/schema/ and install/')} */}}\n${documents([blocks])}`;
}

function keptDefinition(definition: InstallObject): Tree {
  const object: Entries = JSON.parse(escaped(JSON.stringify(definition)));
  const annotations = { annotations: { 'helm.sh/resource-policy': 'keep' } };
  const metadata = isEntries(object['metadata'] ?? '') ? (object['metadata'] as Entries) : {};
  return { ...object, metadata: { ...metadata, [ifKey('$.Values.crds.keep', 'annotations')]: { yes: annotations, no: {} } } };
}

/** Returns the alerts and the dashboards of deploy/monitoring as objects. `change` changes all their texts. */
function monitoringObjects(
  namespace: string,
  change: (json: string) => string = (json) => json,
): readonly [rule: Entries, boards: readonly Entries[]] {
  const object = (type: readonly [string, string], suffix: string, fields: Readonly<Record<string, unknown>>): Entries =>
    JSON.parse(JSON.stringify(installObject(type, { name: `${agentName}${suffix}`, namespace }, namespace, fields)));
  const alerts = parse(readFileSync('deploy/monitoring/alerts.yaml', 'utf8'));
  const rule = object(['monitoring.coreos.com/v1', 'PrometheusRule'], '', { spec: JSON.parse(change(JSON.stringify(alerts))) });
  const boards = [...dashboardFiles()].map(([file, text]) => {
    const data = { [`rollout-group-${file}`]: change(text) };
    return object(['v1', 'ConfigMap'], `-${file.replace('.json', '')}`, { data });
  });
  return [rule, boards];
}

function monitoringTemplate(): string {
  const [rule, boards] = monitoringObjects('{{ $.Release.Namespace }}', escaped);
  const labelled = (one: Entries, value: string): Entries => withLabels(one, { further: inserted('items', `$.Values.${value}.labels`) });
  return documents([
    { $block: 'if $.Values.prometheusRule.enabled', $then: [labelled(rule, 'prometheusRule')], $else: [] },
    { $block: 'if $.Values.dashboards.enabled', $then: boards.map((board) => labelled(board, 'dashboards')), $else: [] },
  ]);
}

const notes = `The agent {{ include "rollout-group.image" . }} runs in namespace {{ .Release.Namespace }} with {{ .Values.replicas }} pods.

Check the installation:
  helm test {{ .Release.Name }} --namespace {{ .Release.Namespace }}
  kubectl rollout-group doctor --agent-namespace {{ .Release.Namespace }}

The webhooks protect StatefulSets and pods only in namespaces with the label:
  kubectl label namespace {{ if .Values.namespaces }}{{ join " " .Values.namespaces }}{{ else }}NAMESPACE{{ end }} rollout-group.dev/enforce=true
`;
