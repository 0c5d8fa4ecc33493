// YAML for programs and people: no aliases, no folding, nothing that another parser reads differently.
import { stringify } from 'yaml';

/** A document with a final newline. Absent values are left out, as in JSON. */
export function toYaml(value: unknown): string {
  return stringify(JSON.parse(JSON.stringify(value)), { aliasDuplicateObjects: false, lineWidth: 0, version: '1.1' });
}
