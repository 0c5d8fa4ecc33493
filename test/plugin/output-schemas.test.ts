import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cliApiVersion } from '../../plugin/output/formats.ts';
import { phases, runPhases } from '../../policies/rollout/phases.ts';
import { outputSchemas } from '../../scripts/generated/output-schemas.ts';
import { checkOutput } from './output-schema.ts';

describe('the schemas of documents for programs', () => {
  it('has a table with every phase', () => {
    const [, section = ''] = readFileSync('docs/output.md', 'utf8').split('\n## Phases\n');
    const named = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, phase]) => phase);
    expect(named).toEqual(phases);
    const [, ofConditions = ''] = /\| `group\.phase` \|(.*)/.exec(readFileSync('docs/conditions.md', 'utf8')) ?? [];
    expect([...ofConditions.matchAll(/`(\w+)`/g)].map(([, phase = '']) => phase).sort()).toEqual([...runPhases].sort());
  });

  it('are published and documented, one for each kind', () => {
    const page = readFileSync('docs/output.md', 'utf8');
    const kinds = Object.keys(outputSchemas());
    expect(kinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
    const published = readdirSync('deploy/schemas/output').filter((file) => !page.includes(`\`output/${file}\``));
    expect(published).toEqual([]);
    expect(readdirSync('deploy/schemas/output')).toHaveLength(kinds.length - 2);
  });

  // The tests of all verbs call this for everything that the plugin prints.
  it('refuse a document without its fields, and an unknown kind', () => {
    const document = { apiVersion: cliApiVersion, kind: 'Version', client: { version: '1', node: '2' } };
    expect(() => checkOutput(JSON.stringify(document))).not.toThrow();
    expect(() => checkOutput(JSON.stringify({ ...document, client: {} }))).toThrow('Version does not follow its schema');
    expect(() => checkOutput(JSON.stringify({ ...document, kind: 'Other' }))).toThrow('no schema is published for the kind Other');
  });
});
