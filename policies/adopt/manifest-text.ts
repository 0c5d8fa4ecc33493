// A Kubernetes object of another group as YAML text, in the order in which its fields came.
import { Document } from 'yaml';
import { documentStyle, yamlText } from '../yaml/style.ts';

export function manifestText(manifest: Readonly<Record<string, unknown>>): string {
  return yamlText(new Document(manifest, { ...documentStyle, aliasDuplicateObjects: false }));
}
