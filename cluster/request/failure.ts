// Defines the failures of a request to the API server: an error response, or no complete response.
import type { KubernetesResponse } from '../env.ts';

/** No whole answer came. Whether the request was carried out is not known, unless it never left. */
export class TransportFailure extends Error {
  override readonly name = 'TransportFailure';
  /** False when the request certainly did not reach the server. */
  readonly mayBeApplied: boolean;
  readonly site: string;

  constructor(message: string, { site, mayBeApplied, cause }: { site: string; mayBeApplied: boolean; cause?: unknown }) {
    super(message, { cause });
    this.site = site;
    this.mayBeApplied = mayBeApplied;
  }
}

/** The API server answered with a Status that is no success. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  /** HTTP status code. */
  readonly status: number;
  /** `reason` of the Status, such as Conflict or Forbidden; empty when the body was no Status. */
  readonly reason: string;
  /** `details` of the Status. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Header Retry-After. */
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
}

/** Reports whether the error is an answer of the API server with one of these HTTP status codes. */
export function isStatus(error: unknown, ...codes: readonly number[]): error is ApiFailure {
  return error instanceof ApiFailure && codes.includes(error.status);
}

/** Returns a handler for a rejected request: answers with these HTTP status codes become the value, every other error is thrown again. */
export function onStatus<const Value>(value: Value, ...codes: readonly number[]): (error: unknown) => Value {
  return (error) => {
    if (isStatus(error, ...codes)) return value;
    throw error;
  };
}

/** The least pause before the server wants to be asked again, in milliseconds; also when only the cause of the error says so. */
export function askedPauseMs(error: unknown): number | undefined {
  if (error instanceof ApiFailure) return error.retryAfterMs;
  return error instanceof Error && error.cause instanceof ApiFailure ? error.cause.retryAfterMs : undefined;
}

interface ParsedStatus {
  readonly message: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The longest text of a server that is carried on in a message. */
const longestMessage = 1024;

function parseStatus(body: string): ParsedStatus {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { message: body.slice(0, longestMessage).trim(), reason: '', details: {} };
  }
  const status = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const text = (key: string): string => (typeof status[key] === 'string' ? status[key].slice(0, longestMessage) : '');
  const details = status['details'];
  return {
    message: text('message'),
    reason: text('reason'),
    details: typeof details === 'object' && details !== null ? (details as Readonly<Record<string, unknown>>) : {},
  };
}
