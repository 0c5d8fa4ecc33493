// The digest of policies: what they say, wherever they say it.
import type { PolicyBundle } from './definition.ts';
import { canonicalJson } from './values/canonical-json.ts';
import { sha256 } from './values/hash.ts';

/** Fields that tell only where something is written, so that moving a rule changes nothing. A text under such a name is something else. */
const positions: ReadonlySet<string> = new Set(['source', 'sources', 'limitSources']);

/** SHA-256 of the bundle in hexadecimal digits, positions in files and objects left out. */
export function policyDigest({ groups, policies, exceptions }: PolicyBundle): string {
  const bundle = { groups, policies, exceptions };
  const isPosition = (key: string, value: unknown): boolean => positions.has(key) && typeof value === 'object';
  const plain: unknown = JSON.parse(JSON.stringify(bundle, (key, value: unknown) => (isPosition(key, value) ? undefined : value)));
  return sha256(canonicalJson(plain));
}
