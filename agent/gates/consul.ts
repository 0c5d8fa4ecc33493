// Gates that ask a Consul: how many instances of a service pass, or do not.
import { readConsul } from '../../engine/observe/readings.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import type { GateHttp } from '../env.ts';
import type { GateOfSource } from './prometheus.ts';
import type { GateAsker } from './read-gate.ts';

const longestMs = 10_000;
/** Some 2 KiB for each instance; a source may allow less. */
const maxBodyBytes = 16_777_216;
/** The server that answers may be a follower. */
const toleranceMs = 30_000;

export function consulAsker(
  gates: GateHttp,
  { source, service, datacenter, passing }: NonNullable<GateDefinition['provider']['consul']>,
  { namespace, everyMs, written }: GateOfSource,
): GateAsker {
  return {
    longestMs,
    ask: async ({ atMs, timeoutMs }) => {
      const question = { namespace, source, written: written(), everyMs, timeoutMs, maxBodyBytes, site: 'gate.read' };
      const answer = await gates.health({ ...question, service, datacenter });
      return readConsul(answer, { atMs, counts: passing === undefined ? 'notPassing' : 'passing', toleranceMs });
    },
  };
}
