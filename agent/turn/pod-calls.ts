// Calls pods, so that they prepare for their removal or cancel the preparation. Pods may reject calls, hang or report wrong times.
import { inParallel } from '../../cluster/pods.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import type { PodAnswer } from '../../engine/decide/preparations.ts';
import { messageOf } from '../../policies/error-message.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AgentEnv } from '../env.ts';

const maxBodyBytes = 65_536;
/** The most by which the clock of a pod may be ahead of the clock of the agent. */
const clockErrorMs = 30_000;

export interface CalledPod {
  readonly ordinal: number;
  readonly uid: string;
  readonly name: string;
  /** Returns the address of the call. Throws if no address can be built. */
  readonly url: () => string;
}

interface CallOptions {
  readonly call: 'delayed' | 'prepare';
  readonly timeoutMs: number;
  /** Returns the longest duration of a call that is sent now, in milliseconds, so that the call ends before another process may act. */
  readonly leftMs: () => number;
}

/** The shortest time left with which a call is still begun, unless the timeout of the call is shorter. */
const shortestCallMs = 1_000;

/**
 * Asks pods to prepare (POST), in their order and 32 at a time. After the first failure no further call begins, but calls in flight finish.
 * With `delayed` a pod must answer `{"timestamp": <unix seconds>}`, the time since which it is prepared. A time that is missing, not
 * positive or more than 30 s ahead is a failure. Returns the answers of the pods that were called.
 */
export async function askToPrepare(env: AgentEnv, pods: readonly CalledPod[], options: CallOptions): Promise<readonly PodAnswer[]> {
  let hasFailed = false;
  return await inParallel(pods, async (pod) => {
    const timeoutMs = allowedMs(options);
    if (hasFailed || timeoutMs === undefined) return undefined;
    const answer = await sendCall(env, pod, { ...options, timeoutMs, method: 'POST', site: 'pods.prepare' });
    hasFailed ||= answer.result === 'failed';
    return answer;
  });
}

/** Cancels preparations (DELETE). Calls every pod, also after failures. 404 and 409 mean that the pod was not prepared. */
export async function cancelPreparation(env: AgentEnv, pods: readonly CalledPod[], options: CallOptions): Promise<readonly PodAnswer[]> {
  return await inParallel(pods, async (pod) => {
    const timeoutMs = allowedMs(options);
    if (timeoutMs === undefined) return undefined;
    return await sendCall(env, pod, { ...options, timeoutMs, method: 'DELETE', site: 'pods.withdraw' });
  });
}

/** Returns the timeout of a call that is sent now; undefined if too little time is left to begin a call. */
function allowedMs({ timeoutMs, leftMs }: CallOptions): number | undefined {
  const allowed = Math.min(timeoutMs, Math.floor(leftMs()));
  return allowed >= Math.min(timeoutMs, shortestCallMs) ? allowed : undefined;
}

interface Request extends Omit<CallOptions, 'leftMs'> {
  readonly method: 'POST' | 'DELETE';
  readonly site: string;
}

async function sendCall({ pods, clock, log }: AgentEnv, pod: CalledPod, { method, site, call, timeoutMs }: Request): Promise<PodAnswer> {
  const identity = { ordinal: pod.ordinal, podUid: pod.uid };
  const failed = (message: string): PodAnswer => {
    log.error('pod call failed', { pod: pod.name, method, call, problem: message });
    return { ...identity, result: 'failed', message };
  };
  try {
    const { status, body } = await pods.call({ method, url: pod.url(), timeoutMs, maxBodyBytes, site });
    if (method === 'DELETE' && (status === 409 || status === 404)) {
      log.info('pod had no preparation to cancel', { pod: pod.name, call, status });
      return { ...identity, result: 'done' };
    }
    if (status < 200 || status > 299) return failed(`it answered ${status}`);
    if (method === 'DELETE' || call === 'prepare') return { ...identity, result: 'done' };
    const reportedMs = reportedTime(body, clock.nowMs());
    return typeof reportedMs === 'string' ? failed(reportedMs) : { ...identity, result: 'done', reportedMs };
  } catch (error) {
    return failed(messageOf(error).slice(0, 256));
  }
}

/** Returns the reported time in milliseconds, or its problem as text. The text contains nothing of the body except its timestamp. */
function reportedTime(body: string, nowMs: number): number | string {
  const value = tryParseJson(body);
  if (value === undefined) return 'its answer is not JSON';
  const { timestamp } = asJsonObject(value);
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp)) return 'its answer has no timestamp';
  if (timestamp <= 0) return `its timestamp is ${timestamp}`;
  const reportedMs = Math.floor(timestamp * 1000);
  return reportedMs > nowMs + clockErrorMs ? 'its timestamp is in the future' : reportedMs;
}
