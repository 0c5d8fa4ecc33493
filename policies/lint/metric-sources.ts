// Metric sources: whether gates and policies name one that is there for them, and whether what it says of itself can be used.
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

/** Where a source is named, and what for. */
interface Use {
  readonly document: Places;
  readonly path: Path;
  readonly namespace: string;
  readonly source: string;
  readonly provider: Provider;
  /** How often it is asked. */
  readonly every: { readonly ms: number; readonly text: string; readonly path: Path };
}

/** Every place that names a metric source. A gate without a source, such as a probe of pods, is none. */
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
      const every = { ms, text: `maxAge ${metric.maxAge} asks every ${formatDuration(ms)}, which`, path: [...path, 'maxAge'] };
      const { namespace } = policy;
      return { document: policy, path: [...path, 'source'], namespace, source: metric.source, provider: 'prometheus', every };
    }),
  );
  return [...ofGates, ...ofPolicies];
}

/** A source that files do not define may be one of the agent's own, unless they define others. */
export const knownSources: LintCheck = (context) => {
  const sources = ofKind(context.load.documents, 'MetricSource');
  const broken = context.load.unusable.filter(({ kind }) => kind === 'MetricSource').map(({ name }) => name);
  return usesOf(context).flatMap((use): readonly Finding[] => {
    if (broken.includes(use.source)) return [];
    const source = sources.find(({ name }) => name === use.source);
    if (source !== undefined) return useFindings(use, source);
    const names = [...sources.map(({ name }) => name), ...broken];
    const place = use.document.place(use.path);
    if (names.length === 0 || context.isCluster) return [finding('RG2206', place, `only the agent knows the metric source ${use.source}`)];
    return [finding('RG2501', place, `the metric source ${use.source} does not exist`, { hint: suggestion(use.source, names) })];
  });
};

function useFindings({ document, path, namespace, source: name, provider, every }: Use, source: Source): readonly Finding[] {
  const { spec } = source.value;
  const place = document.place(path);
  if (spec[provider] === undefined) {
    const other = provider === 'prometheus' ? 'Consul' : 'Prometheus';
    return [finding('RG2503', place, `the metric source ${name} is a ${other}, and is asked as ${sayProvider[provider]}`)];
  }
  const { namespaces } = spec.usableFrom;
  const isShorter = every.ms < durationMs(spec.limits.minInterval);
  return [
    ...(namespaces.includes(namespace)
      ? []
      : [finding('RG2502', place, `the metric source ${name} is there for ${namespaces.join(', ')}, not for ${namespace}`)]),
    ...(isShorter
      ? [
          finding(
            'RG2506',
            document.find(every.path) ?? place,
            `${every.text} is more often than the metric source ${name} may be asked (every ${spec.limits.minInterval})`,
          ),
        ]
      : []),
  ];
}

const sayProvider: Readonly<Record<Provider, string>> = { prometheus: 'Prometheus', consul: 'Consul' };

/** What a source says of itself. */
export const soundSources: LintCheck = ({ load, agentNamespace }) =>
  ofKind(load.documents, 'MetricSource').flatMap((source) => [...namespaceFindings(source, agentNamespace), ...credentialFindings(source)]);

/** A source whose file names no namespace is read where the file is. */
function namespaceFindings(source: Source, agentNamespace: string): readonly Finding[] {
  const { namespace } = source.value.metadata;
  if (namespace === undefined || namespace === agentNamespace) return [];
  const message = `the metric source ${source.name} is in the namespace ${namespace}; the agent reads those of ${agentNamespace}`;
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
    const message = `${field} goes to the metric source ${source.name} without encryption`;
    findings.push(finding('RG2505', source.place(['spec', provider, 'url']), message));
  }
  return findings;
}
