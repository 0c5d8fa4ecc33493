// Keys of Secrets in the agent's namespace, read by name whenever one is used. Nothing of them is kept or told.
import { asJsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import type { SecretKey } from '../../policies/channel.ts';
import type { AgentEnv } from '../env.ts';

/** The key is not there, or is no text that can be shown to a service. What is said of it may be read by anybody: it names no Secret. */
export class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
}

export const secretSite = 'notify.secret';

export type ReadSecret = (key: SecretKey, form: 'token' | 'text') => Promise<string>;

/**
 * Reads a key. As `token` it must fit into a header: one line of printable ASCII, without the line end that editors leave behind. Rejects with
 * SecretUnusable, ApiFailure or TransportFailure; none of them names a value.
 */
export function secretReader(env: Pick<AgentEnv, 'kubernetes'>, namespace: string, timeoutMs: number): ReadSecret {
  return async ({ name, key }, form) => {
    const object = await getObject(env, resources.secrets, { namespace, name }, { site: secretSite, timeoutMs });
    if (object === undefined) throw new SecretUnusable('the Secret of the channel does not exist');
    const encoded = asJsonObject(object['data'])[key];
    if (typeof encoded !== 'string') throw new SecretUnusable('the Secret of the channel has not the key that it names');
    const text = Buffer.from(encoded, 'base64').toString('utf8');
    const value = form === 'token' ? text.trim() : text;
    if (value === '') throw new SecretUnusable('the Secret of the channel has an empty key');
    if (form === 'token' && !/^[\x21-\x7e]+$/.test(value)) {
      throw new SecretUnusable('the key in the Secret of the channel is no token: it has more than one line or word');
    }
    return value;
  };
}
