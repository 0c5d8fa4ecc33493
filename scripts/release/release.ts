// Writes all artefacts of a release: the image of the agent, the archives of the plugin, the packages for npm and Helm, and their descriptions.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, normalize, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compress, type TarFile, tar } from '../../plugin/report/tar.ts';
import { type Artefact, bill, bundledComponents, provenance } from './documents.ts';
import { packImage } from './image.ts';
import { allInputs, fileFromNpm, nodeInputs, nodeVersion, packageFile, ReleaseError, sha256Of } from './inputs.ts';
import { deploymentFiles, krewManifest, npmPackage, pluginArchives } from './plugin-archives.ts';

export interface Product {
  readonly version: string;
  readonly commit: string;
  /** True if the work tree differs from the commit. */
  readonly isChanged: boolean;
  /** The time of the commit, which is the time of all artefacts. */
  readonly time: string;
  readonly source: string;
  /** The address under which the archives will be found. */
  readonly baseUrl: string;
}

/** What the bundler reported about a file of the bundle. */
interface Output {
  readonly imports: readonly { readonly path: string }[];
  readonly inputs: Readonly<Record<string, unknown>>;
}

const usage = 'npm run release -- VERSION [--output FOLDER] [--base-url URL] [--allow-changes]';
/** In the file system of the repository, because the build moves the bundle there. */
const bundleFolder = 'node_modules/.release';

try {
  await main();
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exitCode = error.exitCode;
}

async function main(): Promise<void> {
  const { product, output } = readArguments();
  for (const input of allInputs) packageFile(input);
  // The compressed bytes depend on the version of Node.js, so that a pinned version compresses.
  if (process.versions.node !== nodeVersion) return continueWithPinnedNode();
  const startedAt = Date.now();
  const folder = mkdtempSync(`${resolve(output)}-`);
  try {
    const rows = await writeArtefacts(product, folder);
    rmSync(output, { recursive: true, force: true });
    chmodSync(folder, 0o755);
    renameSync(folder, output);
    process.stdout.write(`${table(rows)}\n${output}/ written in ${Math.round((Date.now() - startedAt) / 1000)} s\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readArguments(): { readonly product: Product; readonly output: string } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { output: { type: 'string', default: 'release' }, 'base-url': { type: 'string' }, 'allow-changes': { type: 'boolean' } },
  });
  const [version = ''] = positionals;
  if (positionals.length !== 1 || !/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/.test(version))
    throw new ReleaseError(`a version such as 1.2.3 or 1.2.3-rc.1 is missing\n  run: ${usage}`);
  const changes = git('status', '--porcelain');
  if (changes !== '' && values['allow-changes'] !== true)
    throw new ReleaseError(
      `the work tree has changes, which no commit describes:\n${changes}\n  Commit the changes, or add --allow-changes.`,
    );
  if (existsSync(values.output) && !existsSync(join(values.output, 'SHA256SUMS')))
    throw new ReleaseError(
      `${values.output} is no earlier release, which this one would replace: it has no SHA256SUMS\n  Name another folder.`,
    );
  const source: string = JSON.parse(readFileSync('package.json', 'utf8')).homepage.replace(/#.*$/, '');
  const time = new Date(Number(git('log', '-1', '--format=%ct')) * 1000).toISOString().replace('.000', '');
  const baseUrl = values['base-url'] ?? `${source}/releases/download/v${version}`;
  return {
    product: { version, commit: git('rev-parse', 'HEAD'), isChanged: changes !== '', time, source, baseUrl },
    output: values.output,
  };
}

function git(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) throw new ReleaseError(`git ${args[0]} failed: ${stderr.trim()}`);
  return stdout.trim();
}

/** Runs this script again with the Node.js that the release contains. */
async function continueWithPinnedNode(): Promise<void> {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const input = nodeInputs.find((one) => one.os === process.platform && one.architecture === architecture);
  if (input === undefined) throw new ReleaseError('a release needs Linux');
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-node-'));
  try {
    const node = join(folder, 'node');
    writeFileSync(node, fileFromNpm(input, 'bin/node'), { mode: 0o755 });
    const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' });
    // As in scripts/run.mjs.
    process.on('SIGINT', () => {});
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
    const [code] = await once(child, 'exit');
    process.exitCode = code ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Row extends Artefact {
  readonly bytes: number;
}

async function writeArtefacts(product: Product, folder: string): Promise<readonly Row[]> {
  const outputs = buildBundle(product);
  const agent = bundleFiles(outputs, ['rollout-group-agent.js']);
  const plugin = bundleFiles(outputs, ['kubectl-rollout_group.js', 'chunks/thread.mjs']);
  const image = await packImage(product, agent);
  const archives = await pluginArchives(product, plugin);
  const bundled = bundledComponents(Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs)));
  const npm = await npmPackage(product, bundleFiles(outputs, Object.keys(outputs)));
  const written: readonly { readonly name: string; readonly data: Buffer | string }[] = [
    { name: 'image.tar', data: image.archive },
    ...archives,
    npm,
    ...(await deploymentFiles(product)),
    await siteArchive(product),
    { name: 'krew-manifest.yaml', data: krewManifest(product, archives) },
    { name: 'rollout-group.spdx.json', data: bill(product, bundled) },
  ];
  const images: readonly Row[] = image.images.map(({ descriptor, compressedBytes }) => ({
    name: `image ${descriptor.platform.os}/${descriptor.platform.architecture}`,
    bytes: compressedBytes,
    sha256: descriptor.digest.replace('sha256:', ''),
  }));
  // In a registry, the image of all platforms has the digest of its index.
  const index: Row = { name: 'image', bytes: image.archive.length, sha256: image.digest.replace('sha256:', '') };
  const described = written.map(({ name, data }) => save(folder, name, data));
  const files = [...described, save(folder, 'provenance.intoto.json', provenance(product, [...images, index, ...described], bundled))];
  writeFileSync(join(folder, 'SHA256SUMS'), files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''));
  return [...images, index, ...files];
}

function save(folder: string, name: string, data: Buffer | string): Row {
  writeFileSync(join(folder, name), data);
  return { name, bytes: Buffer.byteLength(data), sha256: sha256Of(data) };
}

/** Builds the executables with this version. Returns what the bundler reported about each file. */
function buildBundle({ version }: Product): Readonly<Record<string, Output>> {
  mkdirSync('node_modules', { recursive: true });
  const args = ['scripts/build.mjs', '--quiet', '--version', version, '--into', bundleFolder];
  if (spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0) throw new ReleaseError('the bundle cannot be built');
  return JSON.parse(readFileSync(`${bundleFolder}.json`, 'utf8'));
}

/** Builds the documentation site. Returns its archive. */
async function siteArchive({ version }: Product): Promise<{ readonly name: string; readonly data: Buffer }> {
  const name = `rollout-group-docs-${version}`;
  const parent = mkdtempSync(join(tmpdir(), 'rollout-group-docs-'));
  try {
    const args = ['scripts/run.mjs', 'scripts/site/site.ts', '--output', join(parent, name), '--version', version];
    if (spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0)
      throw new ReleaseError('the documentation site cannot be built');
    const files = readdirSync(parent, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
    const packed = files.map((file) => ({ path: relative(parent, file), data: readFileSync(file) }));
    return { name: `${name}.tar.gz`, data: await compress(tar(packed)) };
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

/** Returns the files that these files load, at once or later, with their licences. */
function bundleFiles(outputs: Readonly<Record<string, Output>>, entries: readonly string[]): readonly TarFile[] {
  const found = new Set(entries);
  for (const file of found) {
    for (const { path } of outputs[file]?.imports ?? []) if (normalize(path) in outputs) found.add(normalize(path));
    if (`${file}.LEGAL.txt` in outputs) found.add(`${file}.LEGAL.txt`);
  }
  return [...found, 'package.json', 'LICENSE'].map((file) => {
    // Executables have no extension.
    const path = /^[^/]+\.js$/.test(file) ? file.slice(0, -3) : file;
    return { path, data: readFileSync(join(bundleFolder, path)), isExecutable: path !== file };
  });
}

function table(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const size = (bytes: number) =>
    (bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`).padStart(9);
  const lines = rows.map(({ name, bytes, sha256 }) => `${name.padEnd(width)}  ${size(bytes)}  ${sha256}`);
  return [`${'ARTEFACT'.padEnd(width)}  ${'SIZE'.padStart(9)}  SHA256`, ...lines].join('\n');
}
