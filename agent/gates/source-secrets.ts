// Credentials of metric sources: keys of Secrets in the agent's own namespace, read when they are used and never kept.
import type { ClusterEnv } from '../../cluster/env.ts';
import { ApiFailure } from '../../cluster/request/failure.ts';
import { type SecretKey, type SecretText, secretProblemText, secretReader } from '../../cluster/request/secret.ts';

/** The text of a key. Rejects with an Error that anybody may read: it names neither the Secret nor what is in it. */
export type CredentialReader = (key: SecretKey) => Promise<string>;

/** Reads each Secret once, however many of its keys are asked for. To be made for each question. */
export function credentialReader(
  env: Pick<ClusterEnv, 'kubernetes'>,
  { namespace, leftMs }: { readonly namespace: string; readonly leftMs: () => number },
): CredentialReader {
  const read = secretReader(env, { namespace, site: 'gate.secret', timeoutMs: leftMs });
  return async (key) => {
    let found: SecretText;
    try {
      found = await read(key);
    } catch (error) {
      const why = error instanceof ApiFailure ? ` (HTTP ${error.status})` : '';
      throw new Error(`the Secret of the metric source cannot be read${why}`);
    }
    if ('problem' in found) throw new Error(secretProblemText(found.problem, 'the metric source'));
    // Secrets made from files often end with a line break.
    return found.text.replace(/\r?\n$/, '');
  };
}

/** Characters of a header value (RFC 9110, 5.5) without leading and trailing spaces. */
const fieldValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Returns a token for a header. Throws if it has invalid characters. */
export function keyOf(token: string): string {
  if (!fieldValue.test(token))
    throw new Error('the token in the Secret of the metric source has characters that are not allowed in a header');
  return token;
}

/** `Authorization` with a bearer token (RFC 6750). */
export function bearerOf(token: string): string {
  return `Bearer ${keyOf(token)}`;
}

/** `Authorization` with a user and a password (RFC 7617), in UTF-8. */
export function passwordOf(username: string, password: string): string {
  if (username.includes(':')) throw new Error('the user name in the Secret of the metric source has a colon');
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
