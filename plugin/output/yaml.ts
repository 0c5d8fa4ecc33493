// Writes YAML without aliases and without folded lines, so that all parsers read the same value.
import { stringify } from 'yaml';

/** Returns a document with a final newline. Omits absent values, like JSON. */
export function toYaml(value: unknown): string {
  return stringify(JSON.parse(JSON.stringify(value)), { aliasDuplicateObjects: false, lineWidth: 0, version: '1.1' });
}
