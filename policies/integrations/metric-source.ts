// A MetricSource as the agent uses it: its address, the namespaces that may use it, and its limits in milliseconds.
import { durationMs } from '../duration.ts';
import type { MetricSource } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';

type MetricSourceSpec = MetricSource['spec'];
type SecretKey = NonNullable<NonNullable<MetricSourceSpec['consul']>['token']>;

export interface MetricSourceDefinition {
  readonly name: string;
  readonly prometheus?: NonNullable<MetricSourceSpec['prometheus']>;
  readonly consul?: NonNullable<MetricSourceSpec['consul']>;
  /** Namespaces whose groups may use it. */
  readonly namespaces: readonly string[];
  /** Deadline of one query, until the whole answer is received. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** Gates and inputs with a shorter interval are not read. */
  readonly minIntervalMs: number;
}

/** Returns the definition of a valid document. */
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

/** Returns the Secret keys that a source reads. */
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
