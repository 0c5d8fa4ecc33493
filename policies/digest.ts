// The digest of policies: what they say, wherever they say it.
import type { PolicyBundle } from './definition.ts';
import { canonicalJson } from './values/canonical-json.ts';
import { sha256 } from './values/hash.ts';

/** Fields with positions in files: moving a rule does not change the digest. A text in a field of this name is not a position. */
const positions: ReadonlySet<string> = new Set(['source', 'sources', 'limitSources']);

/** Returns the SHA-256 of the bundle in hexadecimal digits, without positions in files and objects. */
export function policyDigest({ groups, policies, exceptions }: PolicyBundle): string {
  const bundle = { groups, policies, exceptions };
  const isPosition = (key: string, value: unknown): boolean => positions.has(key) && typeof value === 'object';
  const plain: unknown = JSON.parse(JSON.stringify(bundle, (key, value: unknown) => (isPosition(key, value) ? undefined : value)));
  return sha256(canonicalJson(plain));
}
