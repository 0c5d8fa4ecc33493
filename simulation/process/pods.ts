// Models the calls of a process to pods and to gate providers, with latency and with the faults of each call.

import type { GateAnswer, GateHttp, PodHttp, PodRequest, PodResponse } from '../../agent/env.ts';
import type { PodCall, PodReply } from '../cluster/cluster.ts';
import type { GateServer } from '../cluster/world.ts';
import type { PodFault } from '../faults/fault.ts';
import { podVerb } from '../faults/source.ts';
import { numberAt, parsed } from '../objects.ts';
import type { PodCalled } from '../oracles/oracle.ts';
import { runStartMs } from './clock.ts';
import { type Life, makeCall, type Sending, sendingLatencyMs } from './life.ts';

interface PodsOptions {
  readonly life: Life;
  /** True for the calls of webhooks, which need no Lease. */
  readonly isWebhook?: boolean;
  /** Applies the effects of the call and returns the answer of the model of the pods; undefined if no pod listens. */
  readonly podAnswer: (call: PodCall) => PodReply | undefined;
  readonly podCalled: (call: PodCalled) => void;
}

/** Creates the port for calls to pods, with faults as in `PodFault`. The process may crash or be suspended at each call. */
export function createPods({ life, isWebhook = false, podAnswer, podCalled }: PodsOptions): PodHttp {
  const hear = (request: PodRequest, sentAtMs: number, fault: PodFault | undefined): PodReply | undefined => {
    const { method } = request;
    // A GET is a probe of a gate. The model of the pods answers no probe.
    if (method === 'GET') return undefined;
    const url = new URL(request.url);
    const path = url.pathname + url.search;
    const answer = podAnswer({ method, host: url.hostname, path });
    if (answer === undefined) return undefined;
    const { namespace, pod, uid } = answer;
    const atMs = life.scheduler.nowMs();
    const reportedMs = reportedBy(answer, fault, request.maxBodyBytes);
    const report = reportedMs === undefined ? {} : { reportedMs };
    podCalled({ process: life.name, atMs, sentAtMs, namespace, pod, uid, method, path, ...(isWebhook ? { isWebhook } : {}), ...report });
    return answer;
  };
  const arrive = (request: PodRequest, sending: Sending<PodResponse>, sentAtMs: number, fault: PodFault | undefined): void => {
    const isReceived = fault?.kind !== 'hang' && fault?.kind !== 'refuse';
    const answer = isReceived ? hear(request, sentAtMs, fault) : undefined;
    if (fault !== undefined && isReceived && answer === undefined) life.faults.missed?.('F21');
    if (sending.hasDied() || fault?.kind === 'hang') return;
    const result = answer === undefined ? new Error('connect ECONNREFUSED') : resultOf(answer, fault, request.maxBodyBytes);
    if (result instanceof Error) sending.failed(result);
    else sending.replied(result);
  };
  return {
    call: (request) =>
      makeCall<PodResponse>(life, {
        site: request.site,
        verb: podVerb,
        timeoutMs: request.timeoutMs,
        timedOut: () => new Error(`no complete answer within ${request.timeoutMs} ms`),
        send: (sending) => {
          const sentAtMs = life.scheduler.nowMs();
          const fault = life.faults.ofPodCall(life.places.next('pod', request.site));
          life.scheduler.after(sendingLatencyMs(life, sending.point), () => arrive(request, sending, sentAtMs, fault));
        },
      }),
  };
}

/** Returns the time in the answer that reaches the caller, in milliseconds since the simulation began; undefined without a time. */
function reportedBy(answer: PodReply, fault: PodFault | undefined, maxBodyBytes: number): number | undefined {
  const result = resultOf(answer, fault, maxBodyBytes);
  const seconds = result instanceof Error || result.status > 299 ? undefined : timestampIn(result.body);
  return seconds === undefined ? undefined : seconds * 1000 - runStartMs;
}

/** Returns the answer that reaches the caller after the fault. */
function resultOf({ status, body }: PodReply, fault: PodFault | undefined, maxBodyBytes: number): PodResponse | Error {
  switch (fault?.kind) {
    case 'replyLost':
      return new Error('socket hang up');
    case 'error':
      return { status: 500, body: 'injected: internal error' };
    case 'redirect':
      return { status: 302, body: '' };
    case 'hugeBody':
      return new Error(`the answer is longer than ${maxBodyBytes} bytes`);
    case 'lie':
      return { status, body: withWrongTime(body, fault.byMs ?? 0) };
    case 'noTimestamp':
      return { status, body: '{}' };
    default:
      return Buffer.byteLength(body) > maxBodyBytes ? new Error(`the answer is longer than ${maxBodyBytes} bytes`) : { status, body };
  }
}

/** Returns the body with another `timestamp` in seconds; unchanged if it has no timestamp. */
function withWrongTime(body: string, byMs: number): string {
  const timestamp = timestampIn(body);
  if (timestamp === undefined) return body;
  return JSON.stringify({ ...(JSON.parse(body) as object), timestamp: timestamp + Math.round(byMs / 1000) });
}

/** Returns `timestamp` of a JSON text in seconds; undefined if it has no timestamp. */
function timestampIn(body: string): number | undefined {
  return numberAt(parsed(body), 'timestamp');
}

/** Creates the port for gate queries with faults (F22). The process may crash or be suspended at each query. */
export function gateHttp({ life, server }: { readonly life: Life; readonly server: GateServer }): GateHttp {
  return {
    query: ({ source, query, site, timeoutMs }) =>
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
            sending.replied(answer);
          });
        },
      }),
    health: () => Promise.reject(new Error('no Consul is modelled')),
  };
}
