// Keys of Secrets in the agent's namespace, read by name whenever a channel uses one. Nothing of them is kept or told.
import { type SecretKey, secretProblemText, secretReader } from '../../cluster/request/secret.ts';
import type { AgentEnv } from '../env.ts';

/** The key is not there, or is no text that can be shown to a service. What is said of it may be read by anybody: it names no Secret. */
export class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
}

export const secretSite = 'notify.secret';

export type ReadSecret = (key: SecretKey, form: 'token' | 'text') => Promise<string>;

/**
 * Reads a key from the API server at each call. A `token` must fit into a header: one line of printable ASCII, without a final line break.
 * Rejects with SecretUnusable, ApiFailure or TransportFailure; none of them names a value.
 */
export function channelSecretReader(env: Pick<AgentEnv, 'kubernetes'>, namespace: string, timeoutMs: number): ReadSecret {
  return async (key, form) => {
    const found = await secretReader(env, { namespace, site: secretSite, timeoutMs: () => timeoutMs })(key);
    if ('problem' in found) throw new SecretUnusable(secretProblemText(found.problem, 'the channel'));
    const value = form === 'token' ? found.text.trim() : found.text;
    if (form === 'token' && !/^[\x21-\x7e]+$/.test(value)) {
      throw new SecretUnusable('the key in the Secret of the channel is not a token: it has more than one line or word');
    }
    return value;
  };
}
