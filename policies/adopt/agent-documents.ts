// MetricSources and NotificationChannels that several converted objects wish for: one document for each server, with names that differ.
import { durationMs, formatDuration } from '../duration.ts';
import { apiVersion, type MetricSource, type NotificationChannel, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import type { NameOf, Request } from './foreign.ts';
import { shortHash } from './names.ts';

interface AgentDocuments {
  /** Without a namespace: they belong where the agent is. Sorted by kind and name. */
  readonly documents: readonly (MetricSource | NotificationChannel)[];
  readonly nameOf: NameOf;
  /** Why a wish became no document, by its key. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The pause that a MetricSource asks for by itself. */
const usualPauseMs = durationMs('15s');

export function agentDocuments(wishes: readonly Request[]): AgentDocuments {
  const byKey = new Map<string, Request[]>();
  for (const wish of wishes) byKey.set(wish.key, [...(byKey.get(wish.key) ?? []), wish]);
  const bases = [...byKey.values()].map(([first]) => `${first?.kind} ${first?.base}`);
  const nameOf: NameOf = (key) => {
    const first = byKey.get(key)?.[0];
    const isShared = bases.filter((base) => base === `${first?.kind} ${first?.base}`).length > 1;
    return isShared ? `${first?.base}-${shortHash(key)}` : (first?.base ?? '');
  };
  const problems = new Map<string, string>();
  const documents = [...byKey.entries()].flatMap(([key, same]) => {
    const [first] = same;
    const read = first?.kind === 'MetricSource' ? schemas.MetricSource : schemas.NotificationChannel;
    const document = { apiVersion, kind: first?.kind, metadata: { name: nameOf(key) }, spec: specOf(same) };
    const parsed = read.safeParse(document);
    if (parsed.success) return [parsed.data];
    problems.set(key, `of the ${first?.kind} that it needs, ${schemaProblems(read, document)}`);
    return [];
  });
  const order = (document: MetricSource | NotificationChannel) => `${document.kind} ${document.metadata.name}`;
  return { documents: documents.sort((a, b) => (order(a) < order(b) ? -1 : 1)), nameOf, problems };
}

function specOf(same: readonly Request[]): unknown {
  const namespaces = [...new Set(same.map(({ namespace }) => namespace))].sort();
  const pauseMs = Math.min(usualPauseMs, ...same.flatMap(({ everyMs }) => everyMs ?? []));
  const limits = pauseMs < usualPauseMs ? { limits: { minInterval: formatDuration(pauseMs) } } : {};
  return { ...same[0]?.spec, usableFrom: { namespaces }, ...limits };
}
