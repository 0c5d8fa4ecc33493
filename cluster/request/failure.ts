// Defines the failures of a request to the API server: an error response, or no complete response.
import type { KubernetesResponse } from '../env.ts';
import { asJsonObject } from './json.ts';

/** The failure of a request without a complete, valid answer, or of a request that was not sent. */
export class TransportFailure extends Error {
  override readonly name = 'TransportFailure';
  /** False if the server certainly did not apply the request. */
  readonly mayBeApplied: boolean;
  readonly site: string;

  constructor(message: string, { site, mayBeApplied, cause }: { site: string; mayBeApplied: boolean; cause?: unknown }) {
    super(message, { cause });
    this.site = site;
    this.mayBeApplied = mayBeApplied;
  }
}

/** The failure of a request that the API server answered with an error. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  /** `reason` of the Status, such as Conflict or Forbidden; empty without a Status. */
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The delay of the header Retry-After, at most two minutes. */
  readonly retryAfterMs?: number;
  readonly site: string;

  constructor(response: KubernetesResponse, site: string) {
    const parsed = parseStatus(response.body);
    super(parsed.message || `the API server answered ${response.status}`);
    this.status = response.status;
    this.reason = parsed.reason;
    this.details = parsed.details;
    this.site = site;
    const seconds = Number(response.headers['retry-after'] ?? Number.NaN);
    if (Number.isFinite(seconds) && seconds >= 0) this.retryAfterMs = Math.min(seconds * 1000, 120_000);
  }

  /** Reports whether a webhook denied the request or did not answer. In both cases the server applied nothing. The HTTP status varies. */
  get isDenied(): boolean {
    return /^admission webhook ".*" denied the request|failed calling webhook "/.test(this.message);
  }
}

/** The failure for a caller that needs current objects while a watch cache is older than the API server. */
export class StaleCache extends Error {
  override readonly name = 'StaleCache';
}

/** Reports whether the error is an answer of the API server with one of these HTTP status codes. */
export function isStatus(error: unknown, ...codes: readonly number[]): error is ApiFailure {
  return error instanceof ApiFailure && codes.includes(error.status);
}

/** Reports whether the server refuses a new object because its namespace is being deleted or does not exist. */
export function isNamespaceGone(error: unknown): boolean {
  if (isStatus(error, 404)) return error.details['kind'] === 'namespaces';
  const causes = isStatus(error, 403) ? error.details['causes'] : undefined;
  return Array.isArray(causes) && causes.some((cause) => asJsonObject(cause)['reason'] === 'NamespaceTerminating');
}

/** Returns a handler for a rejected request: answers with these HTTP status codes become the value, every other error is thrown again. */
export function onStatus<const Value>(value: Value, ...codes: readonly number[]): (error: unknown) => Value {
  return (error) => {
    if (isStatus(error, ...codes)) return value;
    throw error;
  };
}

/** Returns the minimum delay in milliseconds that the server requests in this error or in its cause. */
export function askedPauseMs(error: unknown): number | undefined {
  if (error instanceof ApiFailure) return error.retryAfterMs;
  return error instanceof Error && error.cause instanceof ApiFailure ? error.cause.retryAfterMs : undefined;
}

/** The maximum number of characters that a message quotes from a text of the server. */
const longestMessage = 1024;

function parseStatus(body: string): Pick<ApiFailure, 'message' | 'reason' | 'details'> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { message: body.slice(0, longestMessage).trim(), reason: '', details: {} };
  }
  const status = asJsonObject(value);
  const text = (key: string): string => (typeof status[key] === 'string' ? status[key].slice(0, longestMessage) : '');
  return { message: text('message'), reason: text('reason'), details: asJsonObject(status['details']) };
}
