// Checks metric sources and notification channels for lint, their uses in groups and policies, and PromQL queries.
import { durationMs, formatDuration } from '../duration.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { channelOf, isLoopback } from '../integrations/channel.ts';
import { inputEveryMs } from '../integrations/metric-source.ts';
import { queryProblem } from '../integrations/promql.ts';
import type { Loaded, LoadedDocument } from '../load.ts';
import { ofKind } from '../resolve/resolve.ts';
import { suggestion } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachGroup, type LintCheck, type LintContext, repeats } from './context.ts';

/** The kinds in the agent's namespace that groups and policies use by name. */
const sharedKinds = {
  MetricSource: { noun: 'metric source', missing: 'RG2501', notUsable: 'RG2502', ignored: 'RG2504' },
  NotificationChannel: { noun: 'channel', missing: 'RG2511', notUsable: 'RG2512', ignored: 'RG2513' },
} as const;

type SharedKind = keyof typeof sharedKinds;
type Provider = 'prometheus' | 'consul';

interface Use {
  readonly document: Places;
  readonly path: Path;
  readonly namespace: string;
  readonly name: string;
}

interface SourceUse extends Use {
  readonly provider: Provider;
  readonly every: { readonly ms: number; readonly text: string; readonly path: Path };
}

const checkSourceUses: LintCheck = (context) =>
  sourceUses(context).flatMap((use) => useFindings(context, 'MetricSource', use, (source) => sourceUseFindings(use, source)));

const checkChannelUses: LintCheck = eachGroup((group, context) =>
  (group.value.spec.notify ?? []).flatMap(({ channel: name }, index) => {
    const use: Use = { document: group, path: ['spec', 'notify', index, 'channel'], namespace: group.namespace, name };
    return useFindings(context, 'NotificationChannel', use, ({ value }) =>
      namespaceFindings('NotificationChannel', use, value.spec.usableFrom.namespaces),
    );
  }),
);

/** Checks the document of this name, or reports that it does not exist. If no document has the kind, the finding is only a notice. */
function useFindings<K extends SharedKind>(
  { load, isCluster }: LintContext,
  kind: K,
  { document, path, name }: Use,
  check: (found: Loaded<K>) => readonly Finding[],
): readonly Finding[] {
  const documents = ofKind(load.documents, kind);
  const broken = load.unusable.filter((one) => one.kind === kind).map((one) => one.name);
  if (broken.includes(name)) return [];
  const found = documents.find((one) => one.name === name);
  if (found !== undefined) return check(found);
  const { noun, missing } = sharedKinds[kind];
  const place = document.place(path);
  const names = [...documents.map((one) => one.name), ...broken];
  if (names.length === 0 || isCluster)
    return [finding('RG2206', place, `the ${noun} ${name} is not in the files: only the agent can check it`)];
  return [finding(missing, place, `the ${noun} ${name} does not exist`, { hint: suggestion(name, names) })];
}

function namespaceFindings(kind: SharedKind, { document, path, namespace, name }: Use, namespaces: readonly string[]): readonly Finding[] {
  if (namespaces.includes(namespace)) return [];
  const { noun, notUsable } = sharedKinds[kind];
  const message = `the ${noun} ${name} is not usable from ${namespace}: usableFrom lists ${namespaces.join(', ')}`;
  return [finding(notUsable, document.place(path), message)];
}

function sourceUseFindings(use: SourceUse, source: Loaded<'MetricSource'>): readonly Finding[] {
  const { document, path, name, provider, every } = use;
  const { usableFrom, limits, ...providers } = source.value.spec;
  const place = document.place(path);
  if (providers[provider] === undefined) {
    const [actual, needed] = provider === 'prometheus' ? ['Consul', 'Prometheus'] : ['Prometheus', 'Consul'];
    return [finding('RG2503', place, `the metric source ${name} is of the wrong kind: it is ${actual}, not ${needed}`)];
  }
  const findings = namespaceFindings('MetricSource', use, usableFrom.namespaces);
  if (every.ms >= durationMs(limits.minInterval)) return findings;
  const message = `${every.text} is too frequent: the metric source ${name} allows one query every ${limits.minInterval}`;
  return [...findings, finding('RG2506', document.find(every.path) ?? place, message)];
}

/** Returns every use of a metric source. Gates without a source, such as HTTP probes, are omitted. */
function sourceUses({ groups, policies }: LintContext): readonly SourceUse[] {
  const ofGates = groups.flatMap((group) =>
    (group.value.spec.gates ?? []).flatMap((gate, index) =>
      (['prometheus', 'consul'] as const).flatMap((provider): SourceUse[] => {
        const name = gate[provider]?.source;
        if (name === undefined) return [];
        const path: Path = ['spec', 'gates', index];
        const every = { ms: durationMs(gate.every), text: `every ${gate.every}`, path: [...path, 'every'] };
        return [{ document: group, path: [...path, provider, 'source'], namespace: group.namespace, name, provider, every }];
      }),
    ),
  );
  const ofPolicies = policies.flatMap((policy) =>
    Object.entries(policy.value.spec.inputs?.metrics ?? {}).map(([metricName, metric]): SourceUse => {
      const path: Path = ['spec', 'inputs', 'metrics', metricName];
      const ms = inputEveryMs(durationMs(metric.maxAge));
      const every = { ms, text: `maxAge ${metric.maxAge} (every ${formatDuration(ms)})`, path: [...path, 'maxAge'] };
      const { namespace } = policy;
      return { document: policy, path: [...path, 'source'], namespace, name: metric.source, provider: 'prometheus', every };
    }),
  );
  return [...ofGates, ...ofPolicies];
}

const findDuplicateChannels: LintCheck = eachGroup((group) =>
  repeats(group.value.spec.notify ?? [], ({ channel }) => channel).map(({ index, item }) =>
    finding('RG2516', group.place(['spec', 'notify', index, 'channel']), `the channel ${item.channel} is named twice`),
  ),
);

/** Reports sources and channels that the agent ignores because they are in another namespace. */
const findIgnoredIntegrations: LintCheck = ({ load, agentNamespace }) =>
  load.documents.flatMap((document) => {
    const { namespace } = document.value.metadata;
    if (!isShared(document) || namespace === undefined || namespace === agentNamespace) return [];
    const { noun, ignored } = sharedKinds[document.kind];
    const message = `the ${noun} ${document.name} is ignored: its namespace is ${namespace}, the agent reads ${agentNamespace}`;
    return [finding(ignored, document.place(['metadata', 'namespace']), message)];
  });

function isShared(document: LoadedDocument): document is Loaded<'MetricSource'> | Loaded<'NotificationChannel'> {
  return Object.hasOwn(sharedKinds, document.kind);
}

/** Reports sources with two kinds of credentials, or with credentials that are sent over http. */
const checkSourceCredentials: LintCheck = ({ load }) =>
  ofKind(load.documents, 'MetricSource').flatMap((source) => {
    const { prometheus, consul } = source.value.spec;
    const place = source.place(['spec', 'prometheus', 'basicAuth'], 'key');
    const conflict = 'spec.prometheus has bearerToken and basicAuth, which exclude each other';
    const sent: readonly (readonly [provider: Provider, url: string | undefined, field: string | undefined])[] = [
      ['prometheus', prometheus?.url, prometheus?.bearerToken ? 'bearerToken' : prometheus?.basicAuth && 'basicAuth'],
      ['consul', consul?.url, consul?.token && 'token'],
    ];
    return [
      ...(prometheus?.bearerToken && prometheus.basicAuth ? [finding('RG2009', place, conflict)] : []),
      ...sent.flatMap(([provider, url, field]) => {
        if (field === undefined || !url?.startsWith('http:')) return [];
        const message = `the metric source ${source.name} is not encrypted: ${field} is sent over http`;
        return [finding('RG2505', source.place(['spec', provider, 'url']), message)];
      }),
    ];
  });

const checkChannelSecurity: LintCheck = ({ load }) =>
  ofKind(load.documents, 'NotificationChannel').flatMap((channel) => {
    const definition = channelOf(channel.value);
    if (definition === undefined) return [];
    const { service, url } = definition;
    const isOpen = url.startsWith('http:') && !isLoopback(url);
    const open = `the channel ${channel.name} is not encrypted: its address does not use https`;
    const isUnsigned = definition.service === 'callback' && definition.signingKey === undefined;
    const unsigned = `the channel ${channel.name} does not sign its callbacks: signingKey is missing`;
    return [
      ...(isOpen ? [finding('RG2514', channel.place(['spec', service, 'url']), open)] : []),
      ...(isUnsigned ? [finding('RG2515', channel.place(['spec', 'callback'], 'key'), unsigned)] : []),
    ];
  });

const checkQueries: LintCheck = ({ groups, policies }) => [
  ...groups.flatMap((group) =>
    (group.value.spec.gates ?? []).flatMap(({ name, prometheus }, index) =>
      queryFindings(group, ['spec', 'gates', index, 'prometheus', 'query'], `the gate ${name}`, prometheus?.query),
    ),
  ),
  ...policies.flatMap((policy) =>
    Object.entries(policy.value.spec.inputs?.metrics ?? {}).flatMap(([name, { query }]) =>
      queryFindings(policy, ['spec', 'inputs', 'metrics', name, 'query'], `the metric ${name}`, query),
    ),
  ),
];

function queryFindings(document: Places, path: Path, user: string, query: string | undefined): readonly Finding[] {
  const problem = query === undefined ? undefined : queryProblem(query);
  if (problem === undefined) return [];
  return [finding('RG2507', document.place(path), `the query of ${user} ${problem.message}, at character ${problem.at + 1}`)];
}

export const integrationChecks: readonly LintCheck[] = [
  checkSourceUses,
  checkChannelUses,
  findDuplicateChannels,
  findIgnoredIntegrations,
  checkSourceCredentials,
  checkChannelSecurity,
  checkQueries,
];
