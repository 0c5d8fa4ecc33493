// Models the gate providers of one process: a network with latency in front of the metric server.
import type { GateAnswer, GateHttp } from '../../agent/env.ts';
import type { GateServer } from '../cluster/gate-server.ts';
import { podVerb } from '../faults/source.ts';
import { type Life, makeCall, sendingLatencyMs } from './life.ts';

interface GatePortOptions {
  readonly life: Life;
  readonly server: GateServer;
}

/** A port with faults (F22) under the key `PROCESS/gate.read#N`; the process may die or be suspended there. */
export function gateHttp({ life, server }: GatePortOptions): GateHttp {
  return {
    query: ({ source, query, site, timeoutMs, maxBodyBytes }) =>
      makeCall<GateAnswer>(life, {
        site,
        verb: podVerb,
        timeoutMs,
        timedOut: () => new Error(`no answer within ${timeoutMs} ms`),
        send: (sending) => {
          const { point } = sending;
          const fault = life.faults.ofGate(point);
          life.scheduler.after(sendingLatencyMs(life, point), () => {
            const answer = server.answer({ source, query, process: life.name }, fault);
            if (sending.hasDied() || answer === 'silence') return;
            if (answer.body.length > maxBodyBytes) sending.failed(new Error(`the answer is longer than ${maxBodyBytes} bytes`));
            else sending.replied(answer);
          });
        },
      }),
    health: () => Promise.reject(new Error('no Consul is modelled')),
  };
}
