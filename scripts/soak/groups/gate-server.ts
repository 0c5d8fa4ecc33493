// Models the Prometheus of a gate: answers one query with good or bad values as the scenario says, or with a faulty answer.
import type { GateAnswer } from '../../../agent/env.ts';
import type { GateServer, GateServerOptions } from '../../../simulation/cluster/world.ts';
import { draw } from '../../../simulation/random.ts';

/** The number of consecutive good readings that pass the gate. */
export const gateConsecutive = 3;
export const gateSource = 'prometheus';
export const gateQuery = 'sum(rate(request_errors_total[1m]))';

/** The length of one state of a flipping gate: long enough for three readings, too short for six. */
const spellMs = 25_000;
/** The share of good states of a flipping gate. */
const passingShare = 0.6;
const staleMs = 600_000;

export function createGateServer({ gate, seed, nowMs, wallMs, flipsUntilMs, answered }: GateServerOptions): GateServer {
  const isPassing = (): boolean => {
    if (gate === 'passing' || nowMs() >= flipsUntilMs) return true;
    return draw(seed, `gate spell ${Math.floor(nowMs() / spellMs)}`) < passingShare;
  };
  return {
    answer: ({ source, query, process }, fault) => {
      if (source !== gateSource || query !== gateQuery) {
        return { status: 400, body: JSON.stringify({ status: 'error', errorType: 'bad_data', error: 'invalid parameter "query"' }) };
      }
      const isGood = fault?.kind === 'flip' ? !isPassing() : fault === undefined && isPassing();
      answered?.({ process, atMs: nowMs(), isGood });
      const value = (isBelow: boolean): string => (isBelow ? '0' : '1.5');
      const seconds = wallMs() / 1000;
      if (fault === undefined) return vector([[seconds, value(isGood)]]);
      switch (fault.kind) {
        case 'flip':
          return vector([[seconds, value(isGood)]]);
        case 'empty':
          return vector([]);
        case 'nan':
          return vector([[seconds, 'NaN']]);
        // The values of invalid answers are good, so that a gate that accepts such an answer would pass wrongly.
        case 'stale':
          return vector([[seconds - staleMs / 1000, value(true)]]);
        case 'partial':
          return vector([[seconds, value(true)]], ['No StoreAPIs matched for this query']);
        case 'unauthorized':
          return { status: 401, body: 'Unauthorized\n' };
        case 'hang':
          return 'silence';
        default:
          return fault.kind satisfies never;
      }
    },
  };
}

/** The gate in a RolloutGroup spec. It can block the rollout run. It fails the run only if the group of the scenario sets a limit of failures. */
export const gateSpec = {
  name: 'errors',
  prometheus: { source: gateSource, query: gateQuery },
  every: '5s',
  consecutive: gateConsecutive,
  failureLimit: 0,
  noData: 'hold',
  onError: 'hold',
  pass: { '<=': [{ var: 'value' }, 0.5] },
} as const;

function vector(samples: readonly (readonly [number, string])[], warnings?: readonly string[]): GateAnswer {
  const result = samples.map((value) => ({ metric: {}, value }));
  const data = { resultType: 'vector', result };
  return { status: 200, body: JSON.stringify({ status: 'success', data, ...(warnings === undefined ? {} : { warnings }) }) };
}
