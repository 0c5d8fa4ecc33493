// Models the metric server of gates: Prometheus answers to one query, good or bad as the scenario says, and faulty answers.
import type { GateAnswer, GateQuery } from '../../agent/env.ts';
import type { GateFault } from '../faults/fault.ts';
import type { GateAnswered } from '../oracles/oracle.ts';
import { draw } from '../random.ts';
import type { GroupShape } from '../scenario.ts';

export interface GateServer {
  /** The answer to a question that arrives now; `silence`: never. */
  readonly answer: (question: GateQuestion, fault?: GateFault) => GateAnswer | 'silence';
  /** Returns whether the gate's condition holds now. */
  readonly isPassing: () => boolean;
}

interface GateQuestion extends Pick<GateQuery, 'source' | 'query'> {
  /** Name of the requester, for example `a1`. */
  readonly process: string;
}

export interface GateServerOptions {
  readonly gate: NonNullable<GroupShape['gate']>;
  readonly seed: number;
  /** On the scheduler's clock. */
  readonly nowMs: () => number;
  /** Clock of the server, in milliseconds since 1970. */
  readonly wallMs: () => number;
  /** From this time (scheduler clock) a flipping gate passes. */
  readonly flipsUntilMs: number;
  /** Receives each answer. */
  readonly answered?: (answer: GateAnswered) => void;
}

/** Consecutive good readings that pass the gate. */
export const gateConsecutive = 3;
/** As written in the group. */
export const gateSource = 'prometheus';
export const gateQuery = 'sum(rate(request_errors_total[1m]))';

/** Length of one state of a flipping gate: three readings, but not six. */
const spellMs = 25_000;
/** Share of good states of a flipping gate. */
const passingShare = 0.6;
/** Age of a stale sample. */
const staleMs = 600_000;

/** Creates the server for one run. */
export function createGateServer({ gate, seed, nowMs, wallMs, flipsUntilMs, answered }: GateServerOptions): GateServer {
  const isPassing = (): boolean => {
    if (gate === 'passing' || nowMs() >= flipsUntilMs) return true;
    return draw(seed, `gate spell ${Math.floor(nowMs() / spellMs)}`) < passingShare;
  };
  return {
    isPassing,
    answer: ({ source, query, process }, fault) => {
      if (source !== gateSource || query !== gateQuery) return errorAnswer(400, 'bad_data', 'invalid parameter "query"');
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
        // An invalid answer would pass the gate.
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

/** The parts of a RolloutGroup spec with a gate after each zone: the gate never fails the run, it only blocks. */
export function gatedParts(zones: readonly string[]): {
  readonly gates: readonly unknown[];
  readonly waves: readonly unknown[];
} {
  const gate = {
    name: 'errors',
    prometheus: { source: gateSource, query: gateQuery },
    every: '5s',
    consecutive: gateConsecutive,
    failureLimit: 0,
    noData: 'hold',
    onError: 'hold',
    pass: { '<=': [{ var: 'value' }, 0.5] },
  };
  return {
    gates: [gate],
    waves: zones.map((zone) => ({ name: `zone-${zone}`, zones: [zone], percent: 100, after: { gates: [gate.name] } })),
  };
}

function vector(samples: readonly (readonly [number, string])[], warnings?: readonly string[]): GateAnswer {
  const result = samples.map((value) => ({ metric: {}, value }));
  const data = { resultType: 'vector', result };
  return { status: 200, body: JSON.stringify({ status: 'success', data, ...(warnings === undefined ? {} : { warnings }) }) };
}

function errorAnswer(status: number, errorType: string, error: string): GateAnswer {
  return { status, body: JSON.stringify({ status: 'error', errorType, error }) };
}
