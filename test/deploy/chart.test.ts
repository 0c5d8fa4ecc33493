// The Helm chart and the Kustomize files have the objects of `install`, for the same settings.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { installation } from '../../install/installation.ts';
import type { InstallObject, InstallOptions } from '../../install/object.ts';
import { mirrorRules, type PolicyRule } from '../../install/rights.ts';
import { everywhere } from '../../install/scope.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import { kustomizeComponents, kustomizeOptions } from '../../scripts/chart/kustomize.ts';
import { grafanaTable, grafanaValues } from '../../scripts/chart/values.ts';
import { findTool } from '../control-plane/binaries.ts';
import { nameOf, optionsOf, rulesIn } from '../install/given.ts';

const chart = 'deploy/helm/rollout-group';
const isRun = spawnSync('go', ['version']).status === 0 || process.env['CI'] !== undefined;
if (!isRun) process.stderr.write('SKIPPED test/deploy/chart.test.ts: Go is not installed, so Helm cannot be built\n');

type Values = Readonly<Record<string, unknown>>;

/** Runs a command with text on its standard input, and returns its output. */
function run(command: string, args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { input, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

function objectsIn(text: string): readonly InstallObject[] {
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as InstallObject | null) ?? []);
}

/** The objects by their names, as a server would read them. */
function byName(objects: readonly InstallObject[]): Readonly<Record<string, unknown>> {
  const names = objects.map(nameOf);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  return Object.fromEntries(objects.map((object) => [nameOf(object), JSON.parse(JSON.stringify(object))]));
}

interface Case {
  readonly name: string;
  readonly values: Values;
  readonly options: Partial<InstallOptions>;
}

const ca = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const members = [
  { namespace: 'loki', statefulSet: 'ingester' },
  { namespace: 'mimir', statefulSet: 'ingester.zone-a' },
];

/** Each setting that the chart and `install` have in common. */
const settings: readonly Case[] = [
  { name: 'with one replica', values: { replicas: 1 }, options: { replicas: 1 } },
  { name: 'with a ServiceMonitor', values: { serviceMonitor: { enabled: true } }, options: { hasServiceMonitor: true } },
  { name: 'that reads commits', values: { readCommits: true }, options: { readsCommits: true } },
  { name: 'for grafana/rollout-operator', values: { compat: true }, options: { hasCompat: true } },
  { name: 'without admission policies', values: { admissionPolicies: false }, options: { hasAdmissionPolicies: false } },
  { name: 'with a priority', values: { priorityClassName: 'high' }, options: { priorityClass: 'high' } },
  {
    name: 'with a certificate of cert-manager',
    values: { certificate: { issuer: { name: 'ca', kind: 'ClusterIssuer' } } },
    options: { certificate: { kind: 'cert-manager', issuer: 'ca', issuerKind: 'ClusterIssuer' } },
  },
  {
    name: 'with a certificate of the user',
    values: { certificate: { secret: { name: 'tls', ca } } },
    options: { certificate: { kind: 'secret', name: 'tls', caBundle: Buffer.from(ca).toString('base64') } },
  },
  {
    name: 'for named namespaces',
    values: { namespaces: ['mimir', 'loki', 'mimir'] },
    options: { scope: { ...everywhere, namespaces: ['loki', 'mimir'] } },
  },
  {
    name: 'that reads Secrets of metric sources',
    values: { secrets: ['prometheus', 'slack'] },
    options: { scope: { ...everywhere, secrets: ['prometheus', 'slack'] } },
  },
  {
    name: 'for members of groups of the strategy partition',
    values: { partitionMembers: ['mimir/ingester.zone-a', 'loki/ingester'] },
    options: { scope: { ...everywhere, partition: { namespaces: undefined, members } } },
  },
];

/** All settings at once, except for the exclusive ones. */
function allBut(left: readonly string[]): Case {
  const used = settings.filter(({ name }) => !left.includes(name));
  const scope = Object.assign({}, everywhere, ...used.map(({ options }) => changed(options.scope)));
  return {
    name: `with everything but ${left.join(' and ')}`,
    values: Object.assign({}, ...used.map(({ values }) => values)),
    options: { ...Object.assign({}, ...used.map(({ options }) => options)), scope },
  };
}

/** The fields of a scope that differ from those of every namespace. */
function changed(scope: InstallOptions['scope'] = everywhere): Partial<InstallOptions['scope']> {
  return Object.fromEntries(Object.entries(scope).filter(([key, value]) => value !== everywhere[key as keyof typeof everywhere]));
}

const exclusive = 'with a certificate of the user';
const cases: readonly Case[] = [
  { name: 'with defaults', values: {}, options: {} },
  ...settings,
  allBut([exclusive]),
  ...settings.filter(({ name }) => name !== exclusive).map(({ name }) => allBut([exclusive, name])),
  allBut(['with a certificate of cert-manager']),
];

function contentOf({ kind, spec, data }: InstallObject): object {
  return { kind, content: spec ?? data };
}

/** The content of deploy/monitoring, where the other files are generated from. */
function monitoringContent(): readonly object[] {
  const folder = 'deploy/monitoring';
  const boards = readdirSync(`${folder}/dashboards`);
  const alerts = parse(readFileSync(`${folder}/alerts.yaml`, 'utf8'));
  return [
    { kind: 'PrometheusRule', content: alerts },
    ...boards.map((file) => ({
      kind: 'ConfigMap',
      content: { [`rollout-group-${file}`]: readFileSync(`${folder}/dashboards/${file}`, 'utf8') },
    })),
  ];
}

interface Workload {
  readonly spec: { readonly template: InstallObject & { readonly spec: { readonly containers: readonly object[] } } };
}

/** Values of the chart of grafana/rollout-operator. */
const grafanaExample: Values = {
  image: { registry: 'registry.example.com', repository: 'rollout-group-agent', tag: '1', pullPolicy: 'Always' },
  ...{ fullnameOverride: 'rollout-operator', minReadySeconds: 10, nodeSelector: { disk: 'ssd' }, priorityClassName: 'high' },
  ...{ extraArgs: ['-log.level=warn'], extraEnv: [{ name: 'A', value: '1' }], resources: { limits: { memory: '1Gi' } } },
  ...{ webhooks: { enabled: true }, serviceMonitor: { enabled: true, labels: { team: 'a' }, interval: '15s', scrapeTimeout: null } },
};

function getOrCreateIn(place: Record<string, unknown>, name: string): Record<string, unknown> {
  place[name] ??= {};
  return place[name] as Record<string, unknown>;
}

/** Converts values by the table in the documentation. Returns also a note for each value without a counterpart. */
function fromGrafana(values: Values): { readonly values: Values; readonly notes: readonly string[] } {
  const result: Record<string, unknown> = {};
  const notes: string[] = [];
  const put = (path: string, value: unknown): void => {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let place = result;
    for (const name of names) place = getOrCreateIn(place, name);
    place[last] = path === 'image.repository' && place[last] !== undefined ? `${place[last]}/${value}` : value;
  };
  const walk = (value: unknown, path: string): void => {
    const row = grafanaValues[path];
    if (row?.kind === 'none') notes.push(`${path}: ${row.why}`);
    else if (row !== undefined) put(row.kind === 'moved' ? row.to : path, value);
    else for (const [name, inner] of Object.entries(value as Values)) walk(inner, path === '' ? name : `${path}.${name}`);
  };
  walk(values, '');
  return { values: result, notes };
}

describe.skipIf(!isRun)('the Helm chart', () => {
  let helm: string;

  beforeAll(async () => {
    helm = await findTool('helm', (line) => process.stderr.write(`${line}\n`));
  }, 600_000);

  const render = (values: Values, namespace = 'rollout-group'): readonly InstallObject[] =>
    objectsIn(run(helm, ['template', 'release', chart, '--namespace', namespace, '--skip-tests', '--values', '-'], JSON.stringify(values)));
  const common = { image: { repository: 'example.com/rollout-group-agent', tag: '1' }, crds: { enabled: false } };
  const isNoDefinition = ({ kind }: InstallObject): boolean => kind !== 'CustomResourceDefinition';

  it('has no problems that helm lint finds', () => {
    for (const { values } of [cases[0], allBut([exclusive])].flatMap((one) => one ?? [])) {
      expect(run(helm, ['lint', '--strict', '--quiet', chart, '--values', '-'], JSON.stringify(values))).not.toMatch(/WARN|ERROR/);
    }
  });

  it.each(cases)('installs the objects of install $name', ({ values, options }) => {
    // A namespace may look like a number.
    for (const namespace of values === cases[0]?.values ? ['rollout-group', '007'] : ['007']) {
      const wanted = installation(optionsOf({ namespace, ...options })).filter(isNoDefinition);
      expect(byName(render({ ...common, ...values }, namespace))).toEqual(byName(wanted));
    }
  });

  it('refuses a member that would change the CEL expression of an admission policy, also without the schema of the values', () => {
    const args = ['template', 'release', chart, '--skip-schema-validation', '--values', '-'];
    const member = "a/b' in ['a/b'] || '";
    const given = (partitionMembers: readonly string[]) => JSON.stringify({ ...common, partitionMembers });
    expect(() => run(helm, args, given([member]))).toThrow(`partitionMembers: ${JSON.stringify(member)} is not NAMESPACE/NAME`);
    expect(run(helm, args, given(['mimir/ingester-zone-a']))).toContain("'mimir/ingester-zone-a'");
  });

  it('has the default image and resources of install, and the version of the package', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    const wanted = installation(optionsOf({ image: `rollout-group-agent:${version}`, hasCompat: true }));
    expect(byName(render({ crds: { keep: false }, compat: true }))).toEqual(byName(wanted));
    expect(parse(readFileSync(`${chart}/Chart.yaml`, 'utf8'))).toMatchObject({ version, appVersion: version });
  });

  it('keeps the CRDs when it is uninstalled, unless the values say otherwise, and can leave them out', () => {
    const definitions = (crds: object) => render({ crds, compat: true }).filter(({ kind }) => kind === 'CustomResourceDefinition');
    const kept = definitions({});
    expect(kept).toHaveLength(installation(optionsOf({ hasCompat: true })).filter((one) => !isNoDefinition(one)).length);
    expect(kept.every(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep')).toBe(true);
    expect(definitions({ keep: false }).every(({ metadata }) => metadata.annotations === undefined)).toBe(true);
    expect(definitions({ enabled: false })).toEqual([]);
  });

  it('adds the rules for mirrored objects to the role of each namespace, and to no other', () => {
    const rules: readonly PolicyRule[] = mirrorRules({
      group: 'example.com',
      kind: 'Fancy',
      names: ['a'],
      readsScale: true,
      writesStatus: false,
    });
    const extended = (values: Values): readonly string[] =>
      render({ ...values, extraRules: rules }).flatMap((object) =>
        rulesIn(object).some(({ apiGroups }) => apiGroups.includes('example.com')) ? nameOf(object) : [],
      );
    expect(extended({})).toEqual(['ClusterRole /rollout-group-agent']);
    expect(extended({ namespaces: ['loki', 'mimir'] })).toEqual(['Role loki/rollout-group-agent', 'Role mimir/rollout-group-agent']);
  });

  it('passes the settings of pods on', () => {
    const pod = {
      ...{ imagePullSecrets: [{ name: 'registry' }], hostAliases: [{ ip: '10.0.0.1', hostnames: ['a'] }], nodeSelector: { disk: 'ssd' } },
      ...{ tolerations: [{ key: 'a', operator: 'Exists' }], affinity: { nodeAffinity: {} }, priorityClassName: '1' },
      topologySpreadConstraints: [{ maxSkew: 2, topologyKey: 'a', whenUnsatisfiable: 'DoNotSchedule' }],
    };
    const container = { resources: { limits: { memory: '1Gi' } } };
    const values = {
      ...{ ...pod, ...container, podAnnotations: { a: '1' }, podLabels: { b: 'true' }, serviceAccount: { annotations: { c: '2' } } },
      ...{ extraArgs: ['--log.level=debug'], extraEnv: [{ name: 'A', value: '1' }], extraEnvFrom: [{ secretRef: { name: 'a' } }] },
      ...{ extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }], extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }] },
      ...{ certificate: { secret: { name: 'tls', ca } }, image: { digest: `sha256:${'0'.repeat(64)}`, pullPolicy: 'Always' } },
    };
    const objects = render(values);
    const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
      readonly spec: { readonly template: InstallObject };
    };
    const { template } = deployment.spec;
    expect(template.metadata).toMatchObject({
      annotations: { a: '1' },
      labels: { b: 'true', 'app.kubernetes.io/name': 'rollout-group-agent' },
    });
    expect(template['spec']).toMatchObject({
      ...pod,
      volumes: [{ name: 'certificate', secret: { secretName: 'tls' } }, ...values.extraVolumes],
      containers: [
        {
          ...{ ...container, env: values.extraEnv, envFrom: values.extraEnvFrom, imagePullPolicy: 'Always' },
          image: `rollout-group-agent@${values.image.digest}`,
          args: expect.arrayContaining(values.extraArgs),
          volumeMounts: [{ name: 'certificate', mountPath: '/certificate', readOnly: true }, ...values.extraVolumeMounts],
        },
      ],
    });
    expect(objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata.annotations).toEqual({ c: '2' });
  });

  it('has the alerts and the dashboards of deploy/monitoring as they are', () => {
    const labels = { team: 'a' };
    const objects = render({ prometheusRule: { enabled: true, labels }, dashboards: { enabled: true, labels } });
    const content = objects.filter(({ metadata }) => metadata.labels?.['team'] === 'a').map(contentOf);
    expect(content).toHaveLength(monitoringContent().length);
    expect(content).toEqual(expect.arrayContaining([...monitoringContent()]));
  });

  it('converts every value of the chart of grafana/rollout-operator', () => {
    const { values, notes } = fromGrafana(grafanaExample);
    const objects = render(values);
    const { spec } = objects.find(({ kind }) => kind === 'Deployment') as unknown as Workload;
    expect(spec.template.spec).toMatchObject({ nodeSelector: { disk: 'ssd' }, priorityClassName: 'high' });
    expect(spec.template.spec.containers[0]).toMatchObject({
      ...{
        image: 'registry.example.com/rollout-group-agent:1',
        imagePullPolicy: 'Always',
        args: expect.arrayContaining(['-log.level=warn']),
      },
      ...{ env: [{ name: 'A', value: '1' }], resources: { limits: { memory: '1Gi' }, requests: { cpu: '100m', memory: '128Mi' } } },
    });
    const monitor = objects.find(({ kind }) => kind === 'ServiceMonitor');
    expect(monitor).toMatchObject({ metadata: { labels: { team: 'a' } }, spec: { endpoints: [{ interval: '15s' }] } });
    expect(objects.filter(({ metadata }) => metadata.name.startsWith('no-downscale-'))).toHaveLength(1);
    expect(notes).toEqual(['fullnameOverride: the names are fixed', 'minReadySeconds: a pod is ready when it answers webhooks']);
    expect(() => render(grafanaExample)).toThrow('fullnameOverride');
    const page = readFileSync('docs/helm.md', 'utf8').split('\n');
    expect(page.filter((line) => grafanaTable().includes(line))).toEqual(grafanaTable());
  });

  it.each([
    [{ replicas: 0 }, 'replicas'],
    [{ webhooks: { enabled: true } }, 'webhooks'],
    [{ namespaces: ['Not_A_Name'] }, 'namespaces'],
    [{ certificate: { secret: { name: 'tls' } } }, 'certificate.secret.ca is required'],
  ])('refuses the values %j', (values, said) => {
    expect(() => render(values)).toThrow(said);
  });
});

describe('the files for Kustomize', () => {
  const names = Object.keys(kustomizeComponents);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

  /** Builds the base with these components. */
  function build(components: readonly string[]): readonly InstallObject[] {
    const folder = mkdtempSync(join(tmpdir(), 'kustomize-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const at = (path: string): string => relative(folder, `deploy/kustomize/${path}`);
    const kustomization = { resources: [at('base')], components: components.map((name) => at(`components/${name}`)) };
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    return objectsIn(run('kubectl', ['kustomize', folder]));
  }

  it.each([[], ...names.map((name) => [name]), names].map((components) => ({ components })))(
    'have the objects of install with the components $components',
    ({ components }) => {
      const options = Object.assign(
        {},
        kustomizeOptions(`rollout-group-agent:${version}`),
        ...components.map((name) => kustomizeComponents[name]),
      );
      const built = build(components);
      const isOfMonitoring = ({ kind }: InstallObject): boolean => kind === 'PrometheusRule' || kind === 'ConfigMap';
      const sorted = (objects: readonly InstallObject[]) => byName(objects.map(withSortedLists));
      expect(sorted(built.filter((object) => !isOfMonitoring(object)))).toEqual(sorted(installation(options)));
      const content = built.filter(isOfMonitoring).map(contentOf);
      expect(content).toHaveLength(components.includes('monitoring') ? monitoringContent().length : 0);
      expect(content).toEqual(expect.arrayContaining(content.length === 0 ? [] : [...monitoringContent()]));
    },
  );
});

/** Sorts the lists whose order has no effect. A component adds to the end of a list. */
function withSortedLists(object: InstallObject): InstallObject {
  return JSON.parse(JSON.stringify(object), (key, value) => {
    if (!['rules', 'resourceNames', 'args'].includes(key) || !Array.isArray(value)) return value;
    return value.toSorted((a: unknown, b: unknown) => compareText(canonicalJson(a), canonicalJson(b)));
  });
}
