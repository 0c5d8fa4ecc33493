// Packs the plugin: an archive with its own Node.js for each platform, the manifest for krew, and the package for npm. Also packs the chart.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parse, stringify } from 'yaml';
import { compress, type TarFile, tar } from '../../plugin/report/tar.ts';
import { fileFromNpm, injector, type NodeInput, nodeInputs, nodeVersion, ReleaseError, sha256Of } from './inputs.ts';
import type { Product } from './release.ts';

const executable = 'kubectl-rollout_group';

/** krew starts the plugin through a link, so the script follows links to the folder of the archive. */
const launcher = `#!/bin/sh
# Starts the plugin with the Node.js next to this file.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=\${self%/*}/$target ;;
  esac
done
exec "\${self%/*}/node" "\${self%/*}/lib/${executable}" "$@"
`;

/** The script in the executable for Windows. The path of the process may be a link of krew. */
const windowsScript = `const { createRequire } = require('node:module');
const { realpathSync } = require('node:fs');
createRequire(realpathSync(process.execPath))('./lib/${executable}');
`;

export interface Archive {
  readonly name: string;
  readonly data: Buffer;
}

interface PluginArchive extends Archive {
  readonly os: string;
  readonly architecture: string;
}

/** Packs two archives at a time, because each needs 300 MB of memory. */
export async function pluginArchives({ version }: Product, bundle: readonly TarFile[]): Promise<readonly PluginArchive[]> {
  const [first] = nodeInputs;
  if (first === undefined) throw new Error('no platform is an input');
  const common: readonly TarFile[] = [
    { path: 'LICENSE', data: readFileSync('LICENSE') },
    // The packages for Windows have no licence.
    { path: 'node.LICENSE', data: fileFromNpm(first, 'LICENSE') },
    ...bundle.map((file) => ({ ...file, path: `lib/${file.path}` })),
  ];
  const pack = async (input: NodeInput): Promise<PluginArchive> => {
    const { os, architecture } = input;
    const bin = os === 'windows' ? `${executable}.exe` : executable;
    const data = await compress(tar([...common, ...(await startFiles(input, bin))]));
    return { name: `${executable}_${version}_${os}_${architecture}.tar.gz`, data, os, architecture };
  };
  const archives: PluginArchive[] = [];
  for (const os of ['linux', 'darwin', 'windows']) {
    archives.push(...(await Promise.all(nodeInputs.filter((input) => input.os === os).map(pack))));
  }
  return archives;
}

/** Returns the executable of the plugin, and Node.js if it is a file of its own. */
async function startFiles(input: NodeInput, bin: string): Promise<readonly TarFile[]> {
  if (input.os === 'windows') return [{ path: bin, data: await windowsExecutable(fileFromNpm(input, 'bin/node.exe')), isExecutable: true }];
  return [
    { path: bin, data: launcher, isExecutable: true },
    { path: 'node', data: fileFromNpm(input, 'bin/node'), isExecutable: true },
  ];
}

/** Writes the script into the executable. The running Node.js prepares the script, and must have the version of the executable. */
async function windowsExecutable(node: Buffer): Promise<Buffer> {
  if (process.versions.node !== nodeVersion) throw new Error(`Node.js ${nodeVersion} must run the release`);
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-release-'));
  try {
    const path = join(folder, 'node.exe');
    const api = join(folder, 'api.js');
    writeFileSync(path, withoutSignature(node));
    writeFileSync(api, fileFromNpm(injector, 'dist/api.js'));
    writeFileSync(join(folder, 'script.js'), windowsScript);
    // The blob contains the path of the script, so the path is relative.
    const settings = { main: 'script.js', output: 'blob', disableExperimentalSEAWarning: true };
    writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings));
    const prepared = spawnSync(process.execPath, ['--experimental-sea-config', 'settings.json'], { cwd: folder, encoding: 'utf8' });
    if (prepared.status !== 0) throw new ReleaseError(`the script for Windows cannot be prepared: ${prepared.stderr}`);
    const { inject } = createRequire(api)(api) as {
      readonly inject: (path: string, name: string, data: Buffer, options: { readonly sentinelFuse: string }) => Promise<void>;
    };
    await inject(path, 'NODE_SEA_BLOB', readFileSync(join(folder, 'blob')), {
      sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
    });
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Removes the signature of Node.js, which would not match the changed executable. It is the last part of the file. */
function withoutSignature(executable: Buffer): Buffer {
  const optionalHeader = executable.readUInt32LE(0x3c) + 24;
  const entry = optionalHeader + 112 + 4 * 8;
  const offset = executable.readUInt32LE(entry);
  if (offset + executable.readUInt32LE(entry + 4) !== executable.length) throw new Error('node.exe does not end in a signature');
  const copy = Buffer.from(executable.subarray(0, offset));
  copy.fill(0, entry, entry + 8);
  return copy;
}

interface Platform {
  readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
}

/** Returns krew-manifest.yaml with this version and with the archive of each platform, as krew and its index require it. */
export function krewManifest({ version, source, baseUrl }: Product, archives: readonly PluginArchive[]): string {
  const manifest = parse(readFileSync('krew-manifest.yaml', 'utf8'));
  const platforms = (manifest.spec.platforms as readonly Platform[]).map((platform) => {
    const { os, arch } = platform.selector.matchLabels;
    const archive = archives.find((one) => one.os === os && one.architecture === arch);
    if (archive === undefined) throw new ReleaseError(`krew-manifest.yaml has the platform ${os}/${arch}, for which no archive is packed`);
    return { ...platform, uri: `${baseUrl}/${archive.name}`, sha256: sha256Of(archive.data), files: [{ from: '*', to: '.' }] };
  });
  const spec = { ...manifest.spec, version: `v${version}`, homepage: source, platforms };
  return stringify({ ...manifest, spec }, { lineWidth: 0 });
}

/** Packs the package for npm. The bundle contains the dependencies, so the package has none. */
export async function npmPackage({ version }: Product, bundle: readonly TarFile[]): Promise<Archive> {
  const { name, description, license, homepage, repository, bugs, engines, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const executables = Object.fromEntries(Object.keys(bin).map((command) => [command, command]));
  const described = { name, version, description, license, homepage, repository, bugs, type: 'commonjs', engines, bin: executables };
  const files: readonly TarFile[] = [
    ...bundle.filter(({ path }) => path !== 'package.json'),
    { path: 'package.json', data: `${JSON.stringify(described, null, 2)}\n` },
    { path: 'README.md', data: readFileSync('README.md') },
  ];
  return { name: `${name}-${version}.tgz`, data: await compress(tar(files.map((file) => ({ ...file, path: `package/${file.path}` })))) };
}

/** Returns the package of the Helm chart, and the objects that Kustomize installs as one file, both with this version. */
export async function deploymentFiles({ version }: Product): Promise<readonly [chart: Archive, manifest: Archive]> {
  const { version: current } = JSON.parse(readFileSync('package.json', 'utf8'));
  const folder = 'deploy/helm';
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry): TarFile => {
      const path = join(entry.parentPath, entry.name);
      const text = readFileSync(path, 'utf8');
      const data = entry.name === 'Chart.yaml' ? text.replaceAll(`ersion: ${current}\n`, `ersion: ${version}\n`) : text;
      return { path: relative(folder, path), data };
    });
  const manifest = readFileSync('deploy/kustomize/base/objects.yaml', 'utf8').replaceAll(`${image}:${current}\n`, `${image}:${version}\n`);
  return [
    { name: `rollout-group-${version}.tgz`, data: await compress(tar(files)) },
    { name: 'rollout-group.yaml', data: Buffer.from(manifest) },
  ];
}

/** The default name of the image. */
const image = 'rollout-group-agent';
