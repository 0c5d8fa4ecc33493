// Reads the text under a key of a Secret for each use, without storing or logging it.
import type { ClusterEnv } from '../env.ts';
import { asJsonObject } from './json.ts';
import { getObject } from './read.ts';
import { type KubernetesObject, resources } from './resource.ts';

/** A reference to a key of a Secret. It contains no namespace, so its author cannot choose a namespace. */
export interface SecretKey {
  readonly name: string;
  readonly key: string;
}

/** `absent`: the Secret does not exist. `keyless`: the Secret lacks the key. `empty`: the value is blank. */
type SecretProblem = 'absent' | 'keyless' | 'empty';

export type SecretText = { readonly text: string } | { readonly problem: SecretProblem };

/** Reads the text under a key. Rejects with ApiFailure or TransportFailure. */
export type SecretReader = (key: SecretKey) => Promise<SecretText>;

interface SecretReaderOptions {
  readonly namespace: string;
  readonly site: string;
  /** Returns the timeout of the next request. An exception rejects the read. */
  readonly timeoutMs: () => number;
}

/** Returns a reader that reads each Secret once. Create a reader for each use, so that a changed Secret takes effect. */
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

/** Returns a text without the name or content of the Secret. `of` names the object that refers to the Secret, with an article. */
export function secretProblemText(problem: SecretProblem, of: string): string {
  const problems = { absent: 'does not exist', keyless: 'does not have the named key', empty: 'has an empty value' } as const;
  return `the Secret of ${of} ${problems[problem]}`;
}

export function namedSecretProblem({ name, key }: SecretKey, problem: SecretProblem, namespace: string): string {
  if (problem === 'absent') return `Secret ${name} does not exist in namespace ${namespace}`;
  return `Secret ${name} in namespace ${namespace} has ${problem === 'keyless' ? 'no' : 'an empty value for'} key ${key}`;
}
