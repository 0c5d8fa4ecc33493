// Queries metric sources for gates and metric inputs: one number of a Prometheus, or the health of a service of a Consul.
import { readConsul, readPrometheus } from '../../engine/observe/readings.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import type { GateHttp, SourceQuery } from '../env.ts';
import type { GateClient } from './read-gate.ts';

/** The context of a query: the namespace and the interval of its gate or metric input. */
export type GateOfSource = Pick<SourceQuery, 'namespace' | 'everyMs'> & {
  readonly written: () => SourceQuery['written'];
  /** The place in the code that sends the query; `gate.read` if absent. */
  readonly site?: string;
};

const longestMs = 10_000;
/** The most by which a Prometheus sample may be older or newer than its query, and a Consul server may be behind its leader. */
const toleranceMs = 30_000;

/** Queries Prometheus. Remembers the time of the last sample, so that a sample that a cache repeats counts only once. */
export function prometheusClient(
  gates: GateHttp,
  { source, query }: NonNullable<GateDefinition['provider']['prometheus']>,
  { namespace, everyMs, written, site = 'gate.read' }: GateOfSource,
): GateClient {
  let evaluatedMs: number | undefined;
  return {
    longestMs,
    query: async ({ atMs, timeoutMs }) => {
      const question = { namespace, source, written: written(), everyMs, timeoutMs, site };
      const answer = await gates.query({ ...question, query });
      const read = readPrometheus(answer, { atMs, toleranceMs, beforeMs: evaluatedMs });
      evaluatedMs = read.evaluatedMs ?? evaluatedMs;
      return read.reading;
    },
  };
}

/** Counts the instances of a Consul service that fail their checks or, if the gate sets `passing`, that pass them. */
export function consulClient(
  gates: GateHttp,
  { source, service, datacenter, passing }: NonNullable<GateDefinition['provider']['consul']>,
  { namespace, everyMs, written, site = 'gate.read' }: GateOfSource,
): GateClient {
  return {
    longestMs,
    query: async ({ atMs, timeoutMs }) => {
      const question = { namespace, source, written: written(), everyMs, timeoutMs, site };
      const answer = await gates.health({ ...question, service, datacenter });
      return readConsul(answer, { atMs, counts: passing === undefined ? 'notPassing' : 'passing', toleranceMs });
    },
  };
}
