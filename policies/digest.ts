// Computes the digest of policies, which does not change if a policy moves to another place or file.
import type { PolicyBundle } from './definition.ts';
import { canonicalJson } from './values/canonical-json.ts';
import { sha256 } from './values/hash.ts';

/** The fields with positions, which the digest omits. A text field with one of these names is no position, so it is included. */
const positions: ReadonlySet<string> = new Set(['source', 'sources', 'limitSources']);

/** Returns the SHA-256 of the bundle in hexadecimal digits, without positions in files and objects. */
export function policyDigest({ groups, policies, exceptions }: PolicyBundle): string {
  return plainDigest({ groups, policies, exceptions });
}

/** Returns the SHA-256 of a definition in hexadecimal digits, without positions in files and objects. */
export function plainDigest(definition: unknown): string {
  const isPosition = (key: string, value: unknown): boolean => positions.has(key) && typeof value === 'object';
  const plain: unknown = JSON.parse(JSON.stringify(definition, (key, value: unknown) => (isPosition(key, value) ? undefined : value)));
  return sha256(canonicalJson(plain));
}
