// Lint checks of metric sources and of the gates and policies that use them.
import { durationMs, formatDuration } from '../duration.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { inputEveryMs } from '../integrations/metric-input.ts';
import type { Loaded } from '../load.ts';
import { ofKind } from '../resolve/resolve.ts';
import { suggestion } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import type { LintCheck, LintContext } from './context.ts';

type Source = Loaded<'MetricSource'>;
type Provider = 'prometheus' | 'consul';

/** One use of a metric source. */
interface Use {
  readonly document: Places;
  readonly path: Path;
  readonly namespace: string;
  readonly source: string;
  readonly provider: Provider;
  /** Interval between two queries. */
  readonly every: { readonly ms: number; readonly text: string; readonly path: Path };
}

/** Returns every use of a metric source. Gates without a source, such as HTTP probes, are left out. */
function usesOf({ groups, policies }: LintContext): readonly Use[] {
  const ofGates = groups.flatMap((group) =>
    (group.value.spec.gates ?? []).flatMap((gate, index) =>
      (['prometheus', 'consul'] as const).flatMap((provider): Use[] => {
        const source = gate[provider]?.source;
        if (source === undefined) return [];
        const gatePath: Path = ['spec', 'gates', index];
        const every = { ms: durationMs(gate.every), text: `every ${gate.every}`, path: [...gatePath, 'every'] };
        return [{ document: group, path: [...gatePath, provider, 'source'], namespace: group.namespace, source, provider, every }];
      }),
    ),
  );
  const ofPolicies = policies.flatMap((policy) =>
    Object.entries(policy.value.spec.inputs?.metrics ?? {}).map(([name, metric]): Use => {
      const path: Path = ['spec', 'inputs', 'metrics', name];
      const ms = inputEveryMs(durationMs(metric.maxAge));
      const every = { ms, text: `maxAge ${metric.maxAge} (every ${formatDuration(ms)})`, path: [...path, 'maxAge'] };
      const { namespace } = policy;
      return { document: policy, path: [...path, 'source'], namespace, source: metric.source, provider: 'prometheus', every };
    }),
  );
  return [...ofGates, ...ofPolicies];
}

/** Reports sources that do not exist or are not usable. If the files define no source, only the agent can check the name. */
export const checkSourceUses: LintCheck = (context) => {
  const sources = ofKind(context.load.documents, 'MetricSource');
  const broken = context.load.unusable.filter(({ kind }) => kind === 'MetricSource').map(({ name }) => name);
  return usesOf(context).flatMap((use): readonly Finding[] => {
    if (broken.includes(use.source)) return [];
    const source = sources.find(({ name }) => name === use.source);
    if (source !== undefined) return useFindings(use, source);
    const names = [...sources.map(({ name }) => name), ...broken];
    const place = use.document.place(use.path);
    if (names.length === 0 || context.isCluster)
      return [finding('RG2206', place, `the metric source ${use.source} is not in the files: only the agent can check it`)];
    return [finding('RG2501', place, `the metric source ${use.source} does not exist`, { hint: suggestion(use.source, names) })];
  });
};

function useFindings({ document, path, namespace, source: name, provider, every }: Use, source: Source): readonly Finding[] {
  const { spec } = source.value;
  const place = document.place(path);
  if (spec[provider] === undefined) {
    const other = provider === 'prometheus' ? 'Consul' : 'Prometheus';
    return [finding('RG2503', place, `the metric source ${name} is of the wrong kind: it is ${other}, not ${providerName[provider]}`)];
  }
  const { namespaces } = spec.usableFrom;
  const isShorter = every.ms < durationMs(spec.limits.minInterval);
  return [
    ...(namespaces.includes(namespace)
      ? []
      : [finding('RG2502', place, `the metric source ${name} is not usable from ${namespace}: usableFrom lists ${namespaces.join(', ')}`)]),
    ...(isShorter
      ? [
          finding(
            'RG2506',
            document.find(every.path) ?? place,
            `${every.text} is too frequent: the metric source ${name} allows one query every ${spec.limits.minInterval}`,
          ),
        ]
      : []),
  ];
}

const providerName: Readonly<Record<Provider, string>> = { prometheus: 'Prometheus', consul: 'Consul' };

/** Reports sources in the wrong namespace or with unsafe credentials. */
export const checkSources: LintCheck = ({ load, agentNamespace }) =>
  ofKind(load.documents, 'MetricSource').flatMap((source) => [...namespaceFindings(source, agentNamespace), ...credentialFindings(source)]);

/** A source without a namespace belongs to the agent's policy directory. */
function namespaceFindings(source: Source, agentNamespace: string): readonly Finding[] {
  const { namespace } = source.value.metadata;
  if (namespace === undefined || namespace === agentNamespace) return [];
  const message = `the metric source ${source.name} is ignored: its namespace is ${namespace}, the agent reads ${agentNamespace}`;
  return [finding('RG2504', source.place(['metadata', 'namespace']), message)];
}

function credentialFindings(source: Source): readonly Finding[] {
  const { prometheus, consul } = source.value.spec;
  const findings: Finding[] = [];
  if (prometheus?.bearerToken && prometheus.basicAuth) {
    const place = source.place(['spec', 'prometheus', 'basicAuth'], 'key');
    findings.push(finding('RG2009', place, 'spec.prometheus has bearerToken and basicAuth, which exclude each other'));
  }
  const shown: readonly (readonly [provider: Provider, url: string | undefined, field: string | undefined])[] = [
    ['prometheus', prometheus?.url, prometheus?.bearerToken ? 'bearerToken' : prometheus?.basicAuth && 'basicAuth'],
    ['consul', consul?.url, consul?.token && 'token'],
  ];
  for (const [provider, url, field] of shown) {
    if (field === undefined || url === undefined || !url.startsWith('http:')) continue;
    const message = `the metric source ${source.name} is not encrypted: ${field} is sent over http`;
    findings.push(finding('RG2505', source.place(['spec', provider, 'url']), message));
  }
  return findings;
}
