// Sends one request with the channel's credentials and returns the outcome. Errors contain no address and no credential.
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import type { Delivery } from '../../engine/notify/deliveries.ts';
import type { RunNotes } from '../../engine/notify/notes.ts';
import type { GroupName } from '../../engine/notify/words.ts';
import type { ChannelDefinition, SecretKey } from '../../policies/integrations/channel.ts';
import type { AgentEnv, NotifyRequest, NotifyResponse } from '../env.ts';
import type { Outcome } from './outcome.ts';
import { type ReadSecret, SecretUnusable, secretSite } from './secrets.ts';

/** Something that is to be sent. */
export interface Sending {
  readonly name: GroupName;
  readonly run: RunNotes;
  readonly delivery: Exclude<Delivery, { readonly kind: 'close' }>;
  /** The same for the same message in the same channel, and for nothing else. */
  readonly key: string;
}

/** `absent`: it has not arrived, as far as the service knows. */
export type Found = Outcome | { readonly kind: 'absent' };

/** One channel of one service. */
export interface Service {
  readonly send: (sending: Sending) => Promise<Outcome>;
  /** Reports whether the notification arrived at or after `sinceMs` (wall clock of the sender). */
  readonly find: (sending: Sending, sinceMs: number) => Promise<Found>;
}

/** Dependencies of a service. */
export interface ServiceParts {
  readonly env: Pick<AgentEnv, 'clock'>;
  readonly call: (request: NotifyRequest) => Promise<NotifyResponse>;
  readonly secret: ReadSecret;
}

/** Timeout of one request without its Secrets. */
export const callTimeoutMs = 10_000;
const maxBodyBytes = 65_536;
/** A page of messages with their metadata. */
export const longBodyBytes = 4 * 1024 * 1024;

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly maxBodyBytes?: number;
  readonly site: 'notify.send' | 'notify.edit' | 'notify.find';
}

/** Asks the service of the channel. Rejects when no whole answer came. */
export async function ask({ call, secret }: ServiceParts, { ca }: Pick<ChannelDefinition, 'ca'>, request: Call): Promise<NotifyResponse> {
  const authorities = ca === undefined ? {} : { ca: await secret(ca, 'text') };
  return await call({ timeoutMs: callTimeoutMs, maxBodyBytes, ...request, ...authorities });
}

/** The header with a token. */
export async function bearer({ secret }: Pick<ServiceParts, 'secret'>, token: SecretKey): Promise<Readonly<Record<string, string>>> {
  return { Authorization: `Bearer ${await secret(token, 'token')}` };
}

/** Returns the outcome of an error before any request to the service was sent. */
export function problemBefore(error: unknown): Exclude<Outcome, { readonly kind: 'arrived' }> | undefined {
  if (error instanceof SecretUnusable) return { kind: 'unavailable', problem: error.message };
  if ((error instanceof ApiFailure || error instanceof TransportFailure) && error.site === secretSite) {
    const why = error instanceof ApiFailure ? ` (HTTP ${error.status})` : '';
    const problem = `the Secret of the channel cannot be read${why}`;
    return error instanceof ApiFailure && error.status < 429 ? { kind: 'unavailable', problem } : { kind: 'busy', problem, afterMs: 5000 };
  }
  return undefined;
}

/** Returns the body as an object; an empty one if it is not an object. */
export function bodyOf({ body }: NotifyResponse): JsonObject {
  try {
    const value: unknown = JSON.parse(body);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
