// Sends one request with the channel's credentials and derives the outcome from the response. Errors contain no address and no credential.

import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { asJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { type SecretKey, secretProblemText, secretReader } from '../../cluster/request/secret.ts';
import type { Delivery } from '../../engine/notify/deliveries.ts';
import type { RunNotes } from '../../engine/notify/notes.ts';
import type { GroupName } from '../../engine/notify/texts.ts';
import type { ChannelDefinition } from '../../policies/integrations/channel.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AgentEnv, HttpResponse, NotifyRequest } from '../env.ts';

export interface Sending {
  readonly name: GroupName;
  readonly run: RunNotes;
  readonly delivery: Exclude<Delivery, { readonly kind: 'close' }>;
  /** The id of the notification. A Slack message contains this id in its metadata. */
  readonly key: string;
}

/** The answer to the search for a notification. `absent`: the service does not have it. */
export type Found = Outcome | { readonly kind: 'absent' };

export interface Service {
  readonly send: (sending: Sending) => Promise<Outcome>;
  /** Finds the notification if it arrived at or after `sinceMs` (wall clock of the sender). */
  readonly find: (sending: Sending, sinceMs: number) => Promise<Found>;
}

export interface ServiceParts {
  readonly env: Pick<AgentEnv, 'clock'>;
  readonly call: (request: NotifyRequest) => Promise<HttpResponse>;
  readonly secret: ReadSecret;
}

/** The timeout of one request, without the reads of its Secrets. */
export const callTimeoutMs = 10_000;
const maxBodyBytes = 65_536;
/** The maximum size of a response with a page of messages or commit statuses, in bytes. */
export const longBodyBytes = 4 * 1024 * 1024;
/** The largest expected difference between the clocks of a service and of the cluster. */
export const skewMs = 120_000;

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly maxBodyBytes?: number;
  readonly site: 'notify.send' | 'notify.edit' | 'notify.find';
}

/** Sends a request to the service of the channel. Rejects if the response is missing or incomplete, or if the CA cannot be read. */
export async function sendRequest({ call, secret }: ServiceParts, { ca }: ChannelDefinition, request: Call): Promise<HttpResponse> {
  const trusted = ca === undefined ? {} : { ca: await secret(ca, 'text') };
  return await call({ timeoutMs: callTimeoutMs, maxBodyBytes, ...request, ...trusted });
}

export async function bearer({ secret }: Pick<ServiceParts, 'secret'>, token: SecretKey): Promise<Readonly<Record<string, string>>> {
  return { Authorization: `Bearer ${await secret(token, 'token')}` };
}

/** Returns the outcome if the error is a failed read of a Secret, so that no request was sent; undefined for other errors. */
export function problemBefore(error: unknown): Exclude<Outcome, { readonly kind: 'arrived' }> | undefined {
  if (error instanceof SecretUnusable) return { kind: 'unavailable', problem: error.message };
  if ((error instanceof ApiFailure || error instanceof TransportFailure) && error.site === secretSite) {
    const why = error instanceof ApiFailure ? ` (HTTP ${error.status})` : '';
    const problem = `the Secret of the channel cannot be read${why}`;
    return error instanceof ApiFailure && error.status < 429 ? { kind: 'unavailable', problem } : { kind: 'busy', problem, afterMs: 5000 };
  }
  return undefined;
}

/** Returns the body as a JSON object; `{}` if the body is not a JSON object. */
export function bodyOf({ body }: HttpResponse): JsonObject {
  return asJsonObject(tryParseJson(body));
}

export type Outcome =
  /** The notification arrived. `handle` is the id for later edits; absent if the service has no edits. */
  | { readonly kind: 'arrived'; readonly handle?: string }
  /** Not delivered; a retry cannot succeed. */
  | { readonly kind: 'refused'; readonly problem: string }
  /** Not delivered; a setting must change first. */
  | { readonly kind: 'unavailable'; readonly problem: string }
  /** Not delivered; a retry may succeed after the pause. */
  | { readonly kind: 'busy'; readonly problem: string; readonly afterMs: number }
  /** Delivery is uncertain. */
  | { readonly kind: 'unknown'; readonly problem: string };

const longestPauseMs = 3_600_000;
const usualPauseMs = 30_000;

/** Returns the outcome of a failed response. Its body is dropped, because it may repeat the request. */
export function outcomeOf(response: HttpResponse, nowMs: number): Exclude<Outcome, { readonly kind: 'arrived' }> {
  const { status, headers } = response;
  const problem = `the service answered ${status}`;
  // GitHub reports its rate limit as 403 with a pause or an empty quota. Without them 403 means that permission is missing.
  const isLimited = status === 403 && (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0');
  if (status === 429 || status === 408 || status === 425 || isLimited) return { kind: 'busy', problem, afterMs: pauseOf(headers, nowMs) };
  if (status >= 300 && status < 400) return { kind: 'unavailable', problem: `${problem}, a redirect, which the agent does not follow` };
  if (status === 401 || status === 403 || status === 404 || status === 407) return { kind: 'unavailable', problem };
  if (status >= 400 && status < 500) return { kind: 'refused', problem };
  return { kind: 'unknown', problem };
}

/** Returns the pause before a retry in milliseconds, from Retry-After or else the reset time of the quota, at most 1 h; 30 s by default. */
export function pauseOf(headers: HttpResponse['headers'], nowMs: number): number {
  const after = headers['retry-after'];
  const seconds = Number(after ?? Number.NaN);
  const resetMs = Number(headers['x-ratelimit-reset'] ?? Number.NaN) * 1000;
  const wanted = Number.isFinite(seconds) ? seconds * 1000 : after === undefined ? resetMs - nowMs : Date.parse(after) - nowMs;
  return Number.isFinite(wanted) ? Math.min(longestPauseMs, Math.max(1000, wanted)) : usualPauseMs;
}

/** The error for a missing Secret, or a missing or invalid key. Users of the group see its message, so it does not name the Secret. */
class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
}

const secretSite = 'notify.secret';

type ReadSecret = (key: SecretKey, form: 'token' | 'text') => Promise<string>;

/**
 * Returns a function that reads a key of a Secret at each call. A `token` must be one word of printable ASCII; space around it is dropped.
 * The function rejects with SecretUnusable, ApiFailure or TransportFailure. No error contains the value of a key.
 */
export function channelSecretReader(env: Pick<AgentEnv, 'kubernetes'>, namespace: string, timeoutMs: number): ReadSecret {
  return async (key, form) => {
    const found = await secretReader(env, { namespace, site: secretSite, timeoutMs: () => timeoutMs })(key);
    if ('problem' in found) throw new SecretUnusable(secretProblemText(found.problem, 'the channel'));
    const value = form === 'token' ? found.text.trim() : found.text;
    if (form === 'token' && !/^[\x21-\x7e]+$/.test(value)) {
      throw new SecretUnusable('the key in the Secret of the channel is not a token: it must be one word of printable ASCII');
    }
    return value;
  };
}
