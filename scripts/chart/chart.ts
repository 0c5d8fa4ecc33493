// Defines the objects of the Helm chart: the objects of `install`, with expressions of Helm instead of the values of flags.
import { admissionPolicyKinds, fieldsOf, markAnnotation, markedFields } from '../../install/admission-policy.ts';
import { agentObjects } from '../../install/installation.ts';
import type { InstallObject, InstallOptions } from '../../install/object.ts';
import { everyOptions } from '../../install/registered-policies.ts';
import type { InstallScope } from '../../install/scope.ts';
import { agentName, usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import { type Entries, either, ifKey, inserted, isBlock, isEntries, isList, mapLists, mapTexts, repeated, type Tree } from './template.ts';

const namespace = '{{ $.Release.Namespace }}';
const each = '{{ $namespace }}';
const everyNamespace = 'range $namespace := $.Values.namespaces | uniq | sortAlpha';
const secrets = '{{ $.Values.secrets }}';
const members = { namespace: 'PARTITION', statefulSet: 'MEMBERS' } as const;

/** The values that decide which objects and fields exist, with the options for the value that is set and that is not. */
interface Switch {
  readonly condition: string;
  readonly on: Choice;
  readonly off: Choice;
}

type Choice = (options: InstallOptions) => InstallOptions;

const unchanged: Choice = (options) => options;
const scoped =
  (change: Partial<InstallScope>): Choice =>
  (options) => ({ ...options, scope: { ...options.scope, ...change } });

const givenCertificate = {
  kind: 'secret',
  name: '{{ $.Values.certificate.secret.name }}',
  caBundle: '{{ required "certificate.secret.ca is required" $.Values.certificate.secret.ca | b64enc }}',
} as const;

/** The last switch is the outermost condition. An issuer takes precedence over a Secret. */
const switches: readonly Switch[] = [
  { condition: 'gt (int $.Values.replicas) 1', on: unchanged, off: (options) => ({ ...options, replicas: 1 }) },
  { condition: '$.Values.serviceMonitor.enabled', on: (options) => ({ ...options, hasServiceMonitor: true }), off: unchanged },
  { condition: '$.Values.readCommits', on: (options) => ({ ...options, readsCommits: true }), off: unchanged },
  { condition: '$.Values.secrets', on: scoped({ secrets: [secrets] }), off: unchanged },
  {
    condition: '$.Values.partitionMembers',
    on: scoped({ partition: { namespaces: undefined, members: [members] } }),
    off: unchanged,
  },
  {
    condition: '$.Values.certificate.secret.name',
    on: (options) => ({ certificate: givenCertificate, ...options }),
    off: unchanged,
  },
  {
    condition: '$.Values.certificate.issuer.name',
    on: (options) => ({
      ...options,
      certificate: {
        kind: 'cert-manager',
        issuer: '{{ $.Values.certificate.issuer.name }}',
        issuerKind: '{{ $.Values.certificate.issuer.kind }}',
      },
    }),
    off: unchanged,
  },
  { condition: '$.Values.compat', on: (options) => ({ ...options, hasCompat: true }), off: unchanged },
  { condition: '$.Values.admissionPolicies', on: unchanged, off: (options) => ({ ...options, hasAdmissionPolicies: false }) },
  { condition: '$.Values.namespaces', on: scoped({ namespaces: [each] }), off: unchanged },
];

const base: InstallOptions = { ...everyOptions(namespace), image: '{{ include "rollout-group.image" $ }}', replicas: 3 };

/** Returns the objects for all values, merged into one list with conditions, loops and expressions. */
export function chartObjects(): readonly Tree[] {
  const [one, all] = [switches.map(({ on }) => on), switches.map(({ off }) => off)].map((choices) =>
    agentObjects(choices.reduce((options, choose) => choose(options), { ...base, namespace: usualAgentNamespace })),
  );
  const names = new Set([...(one ?? []), ...(all ?? [])].map(({ metadata: { name } }) => name));
  // Most objects are the same in most variants. The same object is merged by its reference, in little time.
  const known = new Map<string, readonly Tree[]>();
  const treesOf = (object: InstallObject): readonly Tree[] =>
    withMark(object).map((one) => mapTexts(withLists(one), (text) => expressionOf(text, names)));
  const leaf = (options: InstallOptions): readonly Tree[] =>
    agentObjects(options).flatMap((object) => getOrCreate(known, JSON.stringify(object), () => treesOf(object)));
  const listed = (items: readonly Tree[]): readonly Tree[] =>
    items.map((item) => (item === secrets ? inserted('items', '$.Values.secrets') : item));
  return loops(merge(switches, base, leaf).map((object) => customized(mapObjects(object, (one) => mapLists(one, listed)))));
}

function merge(open: readonly Switch[], options: InstallOptions, objectsOf: (options: InstallOptions) => readonly Tree[]): readonly Tree[] {
  const last = open.at(-1);
  if (last === undefined) return objectsOf(options);
  const rest = open.slice(0, -1);
  const merged = either(last.condition, merge(rest, last.on(options), objectsOf), merge(rest, last.off(options), objectsOf));
  return isList(merged) ? merged : [];
}

/** The kind of a definition for templates: the fields of an admission policy that its mark covers. */
export const definedKind = 'Define';

/** Returns an admission policy with an expression for its mark, and the definition that the expression needs. */
function withMark(object: InstallObject): readonly Tree[] {
  const { kind, metadata, spec } = object;
  if (!admissionPolicyKinds.some((one) => one === kind)) return [treeOf(object)];
  const name = `rollout-group.marked.${kind}.${metadata.name.replace(`-${namespace}`, '')}`;
  const mark = `{{ include "${name}" $ | fromYaml | toRawJson | sha256sum | trunc 32 }}`;
  const marked = { ...metadata, annotations: { ...metadata.annotations, [markAnnotation]: mark } };
  return [
    { kind: definedKind, metadata: { name }, content: treeOf(markedFields(fieldsOf(spec))) },
    treeOf({ ...object, metadata: marked }),
  ];
}

/** Returns the object as YAML would: without undefined fields. */
function treeOf(value: object): Entries {
  return JSON.parse(JSON.stringify(value));
}

/** Adds the lists that only some variants have to the Deployment, so that values can extend them. */
function withLists(object: Tree): Tree {
  if (!isKind(object, 'Deployment')) return object;
  return changed(object, 'spec.template.spec', (spec) => {
    const container = changed(spec, 'containers.0', (one) => ({ volumeMounts: [], ...one }));
    return { ...container, volumes: spec['volumes'] ?? [] };
  });
}

/** Replaces the placeholders of the options by expressions. `names` are the names of objects in the usual namespace. */
function expressionOf(text: string, names: ReadonlySet<string>): string {
  const suffix = `-${namespace}`;
  if (text.endsWith(suffix) && names.has(text.slice(0, -suffix.length)))
    return text.replace(suffix, '{{ include "rollout-group.suffix" $ }}');
  return text
    .replace(`-namespaces=${each}`, '-namespaces={{ $.Values.namespaces | uniq | sortAlpha | join "," }}')
    .replace(`'${members.namespace}/${members.statefulSet}'`, '{{ include "rollout-group.members" $ }}');
}

/** Repeats the objects and list items that name a namespace with groups. */
function loops(objects: readonly Tree[]): readonly Tree[] {
  const named = (item: Tree): boolean => typeof item === 'string' && item.includes(each);
  const isOfNamespace = (item: Tree): boolean => isEntries(item) && JSON.stringify(item['metadata'] ?? '').includes(each);
  const inner = objects.map((object) =>
    mapObjects(object, (one) => (isOfNamespace(one) ? one : mapLists(one, (items) => repeated(items, everyNamespace, named)))),
  );
  const outer = (items: readonly Tree[]): readonly Tree[] =>
    repeated(items, everyNamespace, isOfNamespace).map((item) =>
      isBlock(item) && item.$block !== everyNamespace ? { ...item, $then: outer(item.$then), $else: outer(item.$else) } : item,
    );
  return outer(inner);
}

/** Changes the objects in blocks too. */
function mapObjects(object: Tree, change: (object: Tree) => Tree): Tree {
  if (!isBlock(object)) return change(object);
  return {
    ...object,
    $then: object.$then.map((one) => mapObjects(one, change)),
    $else: object.$else.map((one) => mapObjects(one, change)),
  };
}

/** Returns the name without the suffix of an unusual namespace. */
function nameOf({ metadata = '' }: Entries): string {
  return isEntries(metadata) ? String(metadata['name']).replace(/\{\{.*\}\}$/, '') : '';
}

export function isKind(object: Tree, kind: string): object is Entries {
  return isEntries(object) && object['kind'] === kind;
}

/** Adds the values that extend an object, and have no flag of `install`. */
function customized(object: Tree): Tree {
  return mapObjects(object, (one) => {
    if (!isEntries(one)) return one;
    switch (one['kind']) {
      case 'Deployment':
        return customDeployment(one);
      case 'ServiceAccount':
        return changed(one, 'metadata', (metadata) => ({ ...metadata, ...optional('annotations', 'serviceAccount.annotations') }));
      case 'ServiceMonitor':
        return customMonitor(one);
      case 'Role':
      case 'ClusterRole':
        return nameOf(one) === agentName ? { ...one, rules: [...listIn(one, 'rules'), inserted('items', '$.Values.extraRules')] } : one;
      default:
        return one;
    }
  });
}

function customDeployment(object: Entries): Entries {
  const withPod = changed(object, 'spec.template.spec', (pod) => {
    const { affinity, topologySpreadConstraints, volumes, containers, ...rest } = pod;
    const { issuer, secret } = { issuer: '$.Values.certificate.issuer.name', secret: '$.Values.certificate.secret.name' };
    const container = changed({ containers: containers ?? [] }, 'containers.0', (one) => customContainer(one, `${issuer} ${secret}`));
    return {
      ...rest,
      ...optional('imagePullSecrets'),
      ...optional('priorityClassName'),
      ...optional('hostAliases'),
      ...optional('nodeSelector'),
      ...optional('tolerations'),
      ...optional('affinity', 'affinity', affinity),
      ...optional('topologySpreadConstraints', 'topologySpreadConstraints', topologySpreadConstraints),
      ...container,
      ...extended('volumes', { items: volumes, by: 'extraVolumes', or: `${issuer} ${secret}` }),
    };
  });
  const withMetadata = changed(withPod, 'spec.template.metadata', ({ labels, ...metadata }) => ({
    ...metadata,
    ...optional('annotations', 'podAnnotations'),
    labels: { ...(isEntries(labels ?? '') ? (labels as Entries) : {}), further: inserted('items', '$.Values.podLabels') },
  }));
  return changed(withMetadata, 'spec', (spec) => ({ ...spec, replicas: inserted('scalar', '$.Values.replicas') }));
}

function customContainer(container: Entries, certificate: string): Entries {
  const { volumeMounts, ...rest } = container;
  return {
    ...rest,
    ...optional('imagePullPolicy', 'image.pullPolicy'),
    args: [...listIn(container, 'args'), inserted('items', '$.Values.extraArgs')],
    ...optional('env', 'extraEnv'),
    ...optional('envFrom', 'extraEnvFrom'),
    resources: inserted('yaml', '$.Values.resources'),
    ...extended('volumeMounts', { items: volumeMounts, by: 'extraVolumeMounts', or: certificate }),
  };
}

function customMonitor(object: Entries): Entries {
  const withMetadata = changed(object, 'metadata', ({ labels, ...metadata }) => ({
    ...metadata,
    ...optional('annotations', 'serviceMonitor.annotations'),
    labels: { ...(isEntries(labels ?? '') ? (labels as Entries) : {}), further: inserted('items', '$.Values.serviceMonitor.labels') },
  }));
  return changed(withMetadata, 'spec.endpoints.0', (endpoint) => ({
    ...endpoint,
    ...optional('interval', 'serviceMonitor.interval'),
    ...optional('scrapeTimeout', 'serviceMonitor.scrapeTimeout'),
    ...optional('relabelings', 'serviceMonitor.relabelings'),
  }));
}

/** The fields with a text as their value. */
const plainFields: ReadonlySet<string> = new Set(['imagePullPolicy', 'interval', 'priorityClassName', 'scrapeTimeout']);

/** Returns a field that exists if its value is not empty. `otherwise` is the content of the field for an empty value. */
function optional(field: string, value = field, otherwise?: Tree): Entries {
  return {
    [ifKey(`$.Values.${value}`, field)]: {
      yes: { [field]: plainFields.has(field) ? `{{ $.Values.${value} }}` : inserted('yaml', `$.Values.${value}`) },
      no: otherwise === undefined ? {} : { [field]: otherwise },
    },
  };
}

/** Returns a list that exists if the value, or one of the values in `or`, is not empty. */
function extended(
  field: string,
  { items, by, or }: { readonly items: Tree | undefined; readonly by: string; readonly or: string },
): Entries {
  const list = items !== undefined && isList(items) ? items : [];
  const extension = `$.Values.${by}`;
  return { [ifKey(`or ${or} ${extension}`, field)]: { yes: { [field]: [...list, inserted('items', extension)] }, no: {} } };
}

function listIn(object: Entries, field: string): readonly Tree[] {
  const items = object[field] ?? [];
  return isList(items) ? items : [];
}

/** Changes the mapping at a path of keys and indexes. */
function changed(tree: Entries, path: string, change: (entries: Entries) => Entries): Entries {
  const [first = '', ...rest] = path.split('.');
  const value = tree[first] ?? '';
  const inner = (one: Tree, names: readonly string[]): Tree => {
    const [index, ...others] = names;
    if (isList(one)) return one.map((item, at) => (String(at) === index ? inner(item, others) : item));
    if (!isEntries(one)) throw new Error(`${path} is no mapping`);
    return names.length === 0 ? change(one) : changed(one, names.join('.'), change);
  };
  return { ...tree, [first]: inner(value, rest) };
}
