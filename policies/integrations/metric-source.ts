// Converts MetricSources to the form that the agent uses, and computes how often the agent reads metric inputs of policies.
import type { PolicyDefinition } from '../definition.ts';
import { durationMs } from '../duration.ts';
import type { MetricSource } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';

type MetricSourceSpec = MetricSource['spec'];
type SecretKey = NonNullable<NonNullable<MetricSourceSpec['consul']>['token']>;

export interface MetricSourceDefinition {
  readonly name: string;
  readonly prometheus?: NonNullable<MetricSourceSpec['prometheus']>;
  readonly consul?: NonNullable<MetricSourceSpec['consul']>;
  /** The namespaces whose groups and policies may use the source. */
  readonly namespaces: readonly string[];
  /** The deadline of one query, until the whole answer is received. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** The minimum interval between queries. Gates and inputs with a shorter interval are not read. */
  readonly minIntervalMs: number;
}

export function metricSourceOf({ metadata, spec }: MetricSource): MetricSourceDefinition {
  const { prometheus, consul, usableFrom, limits } = spec;
  return {
    name: metadata.name,
    ...defined({ prometheus, consul }),
    namespaces: usableFrom.namespaces,
    timeoutMs: durationMs(limits.timeout),
    maxResponseBytes: limits.maxResponseBytes,
    minIntervalMs: durationMs(limits.minInterval),
  };
}

export function sourceSecretKeys({ prometheus, consul }: Pick<MetricSourceSpec, 'prometheus' | 'consul'>): readonly SecretKey[] {
  const keys = [
    prometheus?.bearerToken,
    prometheus?.basicAuth?.username,
    prometheus?.basicAuth?.password,
    prometheus?.ca,
    consul?.token,
    consul?.ca,
  ];
  return keys.flatMap((key) => key ?? []);
}

const longestMs = 60_000;
const usualMs = 15_000;
const shortestMs = 1_000;

/**
 * Returns the read interval of an input with this `maxAge`, both in milliseconds. From a `maxAge` of 60 s on, the interval is a quarter of
 * it. For a shorter `maxAge`, it is 15 s, or half of `maxAge` if that is shorter. It is always from 1 s to 60 s.
 */
export function inputEveryMs(maxAgeMs: number): number {
  return Math.max(shortestMs, Math.min(longestMs, Math.max(maxAgeMs / 4, Math.min(usualMs, maxAgeMs / 2))));
}

/** Returns the inputs whose names occur in a condition or message, sorted. The list may include inputs that no condition reads. */
export function inputsRead({ metrics, rules }: Pick<PolicyDefinition, 'metrics' | 'rules'>): readonly string[] {
  const texts = rules.map(({ when, message }) => JSON.stringify([when ?? null, message ?? ''])).filter((text) => text.includes('inputs'));
  return Object.keys(metrics)
    .filter((name) => texts.some((text) => text.includes(name)))
    .sort();
}
