// Gates and inputs that ask a Prometheus: one number, evaluated now.
import { readPrometheus } from '../../engine/observe/readings.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import type { GateHttp, GateQuestion } from '../env.ts';
import type { GateAsker } from './read-gate.ts';

/** The context of a query: its gate's namespace and period. */
export type GateOfSource = Pick<GateQuestion, 'namespace' | 'everyMs'> & {
  readonly written: () => GateQuestion['written'];
  /** `gate.read` when left out. */
  readonly site?: string;
};

const longestMs = 10_000;
/** One number with a few labels. What is longer has more series than a gate can use. */
const maxBodyBytes = 65_536;
/** Prometheus evaluates a query for the instant at which it is asked: only its clock, or a cache before it, makes another one of it. */
const toleranceMs = 30_000;

/** Remembers which sample came last, since the same one again is a cache's and counts once. */
export function prometheusAsker(
  gates: GateHttp,
  { source, query }: NonNullable<GateDefinition['provider']['prometheus']>,
  { namespace, everyMs, written, site = 'gate.read' }: GateOfSource,
): GateAsker {
  let evaluatedMs: number | undefined;
  return {
    longestMs,
    ask: async ({ atMs, timeoutMs }) => {
      const question = { namespace, source, written: written(), everyMs, timeoutMs, maxBodyBytes, site };
      const answer = await gates.query({ ...question, query });
      const read = readPrometheus(answer, { atMs, toleranceMs, beforeMs: evaluatedMs });
      evaluatedMs = read.evaluatedMs ?? evaluatedMs;
      return read.reading;
    },
  };
}
