// A MetricSource as the agent uses it: where metrics come from, who may use it, and its limits with durations in milliseconds.
import { durationMs } from '../duration.ts';
import type { MetricSource } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';

type MetricSourceSpec = MetricSource['spec'];
type SecretKey = NonNullable<NonNullable<MetricSourceSpec['consul']>['token']>;

export interface MetricSourceDefinition {
  readonly name: string;
  readonly prometheus?: NonNullable<MetricSourceSpec['prometheus']>;
  readonly consul?: NonNullable<MetricSourceSpec['consul']>;
  /** Whose groups may use it. */
  readonly namespaces: readonly string[];
  /** Of one question, until its whole answer is there. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** A gate, and an input of a policy, that asks more often is not read. */
  readonly minIntervalMs: number;
}

/** The definition of a document that fits its schema. */
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

/** Keys of Secrets that a source reads. */
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
