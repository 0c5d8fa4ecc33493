// The text under a key of a Secret, read when it is used. Nothing of it is kept or told.
import type { ClusterEnv } from '../env.ts';
import { asJsonObject } from './json.ts';
import { getObject } from './read.ts';
import { type KubernetesObject, resources } from './resource.ts';

/** As objects name it, in a namespace that they do not choose. */
export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

/** `absent`: there is no such Secret. `keyless`: it has not that key. `empty`: nothing but blanks is under it. */
type SecretProblem = 'absent' | 'keyless' | 'empty';

export type SecretText = { readonly text: string } | { readonly problem: SecretProblem };

/** Rejects with ApiFailure or TransportFailure. */
export type SecretReader = (key: SecretKey) => Promise<SecretText>;

interface SecretReaderOptions {
  readonly namespace: string;
  readonly site: string;
  /** Asked before each request, in milliseconds. What it throws is thrown on. */
  readonly timeoutMs: () => number;
}

/** Reads each Secret once, however many of its keys are asked for. To be made for each use: what is revoked counts at the next one. */
export function secretReader(env: Pick<ClusterEnv, 'kubernetes'>, { namespace, site, timeoutMs }: SecretReaderOptions): SecretReader {
  const reads = new Map<string, Promise<KubernetesObject | undefined>>();
  return async ({ name, key }) => {
    const read = reads.get(name) ?? getObject(env, resources.secrets, { namespace, name }, { site, timeoutMs: timeoutMs() });
    reads.set(name, read);
    return textOf(await read, key);
  };
}

function textOf(secret: KubernetesObject | undefined, key: string): SecretText {
  if (secret === undefined) return { problem: 'absent' };
  const data = asJsonObject(secret['data']);
  const encoded = Object.hasOwn(data, key) ? data[key] : undefined;
  if (typeof encoded !== 'string') return { problem: 'keyless' };
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  return text.trim() === '' ? { problem: 'empty' } : { text };
}

/** Returns a text without the name or content of the Secret. `of` names the object that refers to it, with its article. */
export function secretProblemText(problem: SecretProblem, of: string): string {
  const said = { absent: 'does not exist', keyless: 'does not have the named key', empty: 'has an empty key' } as const;
  return `the Secret of ${of} ${said[problem]}`;
}

/** Returns the problem as part of a sentence for the author of the reference. */
export function namedSecretProblem({ name, key }: SecretKey, problem: SecretProblem, namespace: string): string {
  if (problem === 'absent') return `Secret ${name} does not exist in namespace ${namespace}`;
  return `Secret ${name} in namespace ${namespace} has ${problem === 'keyless' ? 'no' : 'an empty'} key ${key}`;
}
