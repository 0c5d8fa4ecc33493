// Writes the generated files. With --check it writes nothing, and reports files that are outdated, missing or no longer generated.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { compatDefinitions } from '../install/compat.ts';
import { customResourceDefinition, editorSchema } from '../policies/schema/json-schema.ts';
import { apiGroup, type Kind, kinds } from '../policies/schema/kinds.ts';
import { deployFiles } from './chart/files.ts';
import { dashboardFiles } from './generated/dashboards.ts';
import { outputSchemas, policyFileSchema } from './generated/output-schemas.ts';
import { agentMarkdown, findingsMarkdown, kindMarkdown, rulesMarkdown } from './generated/pages.ts';

/** These folders contain only generated files, so a file that is no longer generated is found. */
const generatedFolders = ['deploy/crds', 'deploy/helm', 'deploy/kustomize', 'deploy/monitoring/dashboards', 'deploy/schemas', 'docs/kinds'];

/** Returns every generated file with its content. */
function generatedFiles(): ReadonlyMap<string, string> {
  const all = Object.keys(kinds) as Kind[];
  return new Map([
    ...all.map((kind) => [schemaFile(kind), json(editorSchema(kind))] as const),
    ['deploy/schemas/policies.json', json(policyFileSchema((kind) => schemaFile(kind).replace('deploy/schemas/', '')))],
    ...Object.entries(outputSchemas()).map(([kind, schema]) => [outputFile(kind), json(schema)] as const),
    ...all.flatMap((kind) => {
      const definition = customResourceDefinition(kind);
      return definition ? [[`deploy/crds/${kinds[kind].plural}.yaml`, yaml(definition)] as const] : [];
    }),
    ...compatDefinitions.map((definition) => [definitionFile(definition.metadata.name), yaml(definition, 'install/')] as const),
    ['deploy/argo-cd/argocd-cm.yaml', argoCdSettings({ RolloutGroup: apiGroup, RolloutRun: apiGroup })],
    ['deploy/argo-cd/argocd-cm-statefulsets.yaml', argoCdSettings({ StatefulSet: 'apps' })],
    ...[...dashboardFiles()].map(([name, text]) => [`deploy/monitoring/dashboards/${name}`, text] as const),
    ...all.map((kind) => [`docs/kinds/${kind.toLowerCase()}.md`, kindMarkdown(kind)] as const),
    ...deployFiles(),
    ['docs/agent.md', agentMarkdown()],
    ['docs/findings.md', findingsMarkdown()],
    ['docs/rules.md', rulesMarkdown()],
  ]);
}

/** Returns the file of the JSON Schema of an output document. */
function outputFile(kind: string): string {
  const isLarge = kind === 'Plan' || kind === 'Review';
  return `deploy/schemas/${isLarge ? '' : 'output/'}${kind.toLowerCase()}.json`;
}

function schemaFile(kind: Kind): string {
  return `deploy/schemas/${kind.toLowerCase()}.json`;
}

/** Returns the file of the CRD with this name (`plural.group`). */
function definitionFile(name: string): string {
  return `deploy/crds/${name.split('.')[0]}.yaml`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function yaml(value: object, from = 'policies/schema/'): string {
  return `# Generated from ${from} by npm run generate.\n${stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

/** Returns a patch for the ConfigMap of Argo CD with the health checks of these kinds, each with its API group. */
function argoCdSettings(groups: Readonly<Record<string, string>>): string {
  const data = Object.entries(groups).map(([kind, group]) => [
    `resource.customizations.health.${group}_${kind}`,
    readFileSync(`deploy/argo-cd/health/${kind}.lua`, 'utf8'),
  ]);
  const metadata = { name: 'argocd-cm', namespace: 'argocd' };
  return yaml({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: Object.fromEntries(data) }, 'deploy/argo-cd/health/');
}

function leftOver(expected: ReadonlyMap<string, string>): readonly string[] {
  return generatedFolders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !expected.has(file))
    .sort();
}

const files = generatedFiles();
const stale = [...files].filter(([file, content]) => !existsSync(file) || readFileSync(file, 'utf8') !== content);
const surplus = leftOver(files);

if (process.argv.includes('--check')) {
  for (const [file] of stale) console.error(`${file} is ${existsSync(file) ? 'stale' : 'missing'}: run npm run generate`);
  for (const file of surplus) console.error(`${file} is not generated any more: run npm run generate`);
  if (stale.length + surplus.length > 0) process.exitCode = 1;
} else {
  for (const [file, content] of stale) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  for (const file of surplus) rmSync(file);
}
