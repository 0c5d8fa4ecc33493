// Finds the executables of the control plane: in KUBEBUILDER_ASSETS, in the cache, or built from the Go modules in this folder.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Paths are relative to the root of the repository, where npm starts every script. */
const modules = resolve('test/control-plane');

interface Executable {
  readonly name: string;
  readonly package: string;
  /** The folder of the Go module that pins the package. */
  readonly module: string;
}

const executables: readonly Executable[] = [
  { name: 'etcd', package: 'go.etcd.io/etcd/server/v3', module: join(modules, 'etcd') },
  { name: 'kube-apiserver', package: 'k8s.io/kubernetes/cmd/kube-apiserver', module: modules },
  { name: 'kube-controller-manager', package: 'k8s.io/kubernetes/cmd/kube-controller-manager', module: modules },
  { name: 'kube-scheduler', package: 'k8s.io/kubernetes/cmd/kube-scheduler', module: modules },
  { name: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok', module: modules },
];

/** The packages of Helm that have the version of Kubernetes for which charts are rendered without a cluster. */
const capabilities = ['helm.sh/helm/v3/pkg/chartutil', 'helm.sh/helm/v3/pkg/lint/rules'];

/** These tools are built apart from the control plane, which starts without them. */
const tools = {
  helm: { name: 'helm', package: 'helm.sh/helm/v3/cmd/helm', module: join(modules, 'renderers') },
  kustomize: { name: 'kustomize', package: 'sigs.k8s.io/kustomize/kustomize/v5', module: join(modules, 'renderers') },
  crane: { name: 'crane', package: 'github.com/google/go-containerregistry/cmd/crane', module: join(modules, 'crane') },
} as const satisfies Readonly<Record<string, Executable>>;

/** Returns the path of a tool, in a folder of its own. Builds the tool if the cache lacks it. Throws without Go or its modules. */
export async function findTool(name: keyof typeof tools, progress: (line: string) => void): Promise<string> {
  const tool = tools[name];
  const release = version(tool.package.replace(/\/cmd\/.*/, ''), tool.module);
  const folder = join(cacheRoot(), `${name}-${release}_${process.platform}-${process.arch}`);
  if (isExecutable(join(folder, name))) return join(folder, name);
  const failure = await buildInto(folder, [tool], progress);
  if (failure !== undefined) throw new Error(failure);
  return join(folder, name);
}

export type Binaries =
  | { readonly kind: 'found'; readonly folder: string; readonly source: 'KUBEBUILDER_ASSETS' | 'cache' | 'build' }
  | { readonly kind: 'missing'; readonly reason: string };

/**
 * Finds a folder with all five executables, and builds the missing ones: in minutes with a cold Go build cache, in seconds with a warm
 * one. An assets folder counts only if it is complete, so that all parts of a control plane have one version. `progress` receives one line
 * per step. Never throws: the caller decides what a missing control plane means.
 */
export async function findBinaries(progress: (line: string) => void): Promise<Binaries> {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  const lacking = assets === undefined ? [] : missingIn(assets);
  if (assets !== undefined && lacking.length === 0) return { kind: 'found', folder: assets, source: 'KUBEBUILDER_ASSETS' };
  if (assets !== undefined) progress(`KUBEBUILDER_ASSETS is not used, for ${assets} lacks ${names(lacking)}`);

  const folder = cacheFolder();
  const unbuilt = missingIn(folder);
  if (unbuilt.length === 0) return { kind: 'found', folder, source: 'cache' };
  const go = spawnSync('go', ['version'], { encoding: 'utf8' });
  if (go.status !== 0) {
    return { kind: 'missing', reason: `Go is not installed, and neither KUBEBUILDER_ASSETS nor ${folder} holds ${names(unbuilt)}` };
  }
  const reason = await buildInto(folder, unbuilt, progress);
  return reason === undefined ? { kind: 'found', folder, source: 'build' } : { kind: 'missing', reason };
}

/** Builds the executables one after another. Returns the failure. */
async function buildInto(folder: string, unbuilt: readonly Executable[], progress: (line: string) => void): Promise<string | undefined> {
  mkdirSync(folder, { recursive: true });
  for (const [index, executable] of unbuilt.entries()) {
    progress(`building ${executable.name} (${index + 1} of ${unbuilt.length}), the first time takes minutes ...`);
    const startedAt = Date.now();
    const failure = await build(executable, folder);
    if (failure !== undefined) return `${executable.name} cannot be built: ${failure}`;
    progress(`built ${executable.name} in ${Math.round((Date.now() - startedAt) / 1000)} s`);
  }
  return undefined;
}

/** The version of Kubernetes: that of KUBERNETES_VERSION, such as v1.34.4, else the pinned one. */
function kubernetesVersion(): string {
  return process.env['KUBERNETES_VERSION'] || version('k8s.io/kubernetes', modules);
}

/**
 * Returns the arguments of `go build` for another version of Kubernetes: a module file that requires only this version. go completes the
 * file from the module of Kubernetes. Without KUBERNETES_VERSION, and for other packages, there are no arguments.
 */
function moduleArguments({ package: built }: Executable, folder: string): readonly string[] {
  const pinned = version('k8s.io/kubernetes', modules);
  const wanted = kubernetesVersion();
  if (wanted === pinned || !built.startsWith('k8s.io/kubernetes/')) return [];
  const staging = (text: string): string => text.replace(/^v1\./, 'v0.');
  const replaced = /^replace \([^)]*\)$/m.exec(readFileSync(join(modules, 'go.mod'), 'utf8'))?.[0] ?? '';
  const file = join(folder, 'kubernetes.mod');
  const lines = [
    'module kubernetes',
    'go 1.26.0',
    `require k8s.io/kubernetes ${wanted}`,
    replaced.replaceAll(staging(pinned), staging(wanted)),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return ['-mod=mod', `-modfile=${file}`];
}

/** A folder outside the work tree, named by a hash of its content, so that branches with other versions do not overwrite it. */
function cacheFolder(): string {
  const versions = [
    `kubernetes-${kubernetesVersion()}`,
    `kwok-${version('sigs.k8s.io/kwok', modules)}`,
    `etcd-${version('go.etcd.io/etcd/server/v3', join(modules, 'etcd'))}`,
    `${process.platform}-${process.arch}`,
  ];
  return join(cacheRoot(), versions.join('_'));
}

function cacheRoot(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'rollout-group', 'control-plane');
}

/** Returns the version of a dependency of a Go module. Throws if the module does not require it. */
function version(required: string, module: string): string {
  const file = join(module, 'go.mod');
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .map((text) =>
      text
        .replace(/^require /, '')
        .trim()
        .split(' '),
    )
    .find(([name, value]) => name === required && value?.startsWith('v'));
  if (line?.[1] === undefined) throw new Error(`${file} does not require ${required}`);
  return line[1];
}

function missingIn(folder: string): readonly Executable[] {
  return executables.filter(({ name }) => !isExecutable(join(folder, name)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function names(list: readonly Executable[]): string {
  return list.map(({ name }) => name).join(', ');
}

/**
 * Builds under a temporary name and renames the result, so that an interrupted or second build leaves no incomplete executable. Returns
 * the failure.
 */
async function build(executable: Executable, folder: string): Promise<string | undefined> {
  const partial = join(folder, `.${executable.name}-${process.pid}`);
  const flags = ['-trimpath', '-buildvcs=false', '-ldflags', linkerFlags(executable)];
  const args = ['build', ...moduleArguments(executable, folder), ...flags, '-o', partial, executable.package];
  // Without cgo no C compiler is needed, and the executables run in any image.
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  const go = spawn('go', args, { cwd: executable.module, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  go.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4000);
  });
  const stop = () => go.kill();
  process.once('exit', stop);
  const code = await new Promise<number>((settle) => {
    go.on('error', () => settle(1));
    go.on('close', (status) => settle(status ?? 1));
  });
  process.removeListener('exit', stop);
  if (code === 0) {
    renameSync(partial, join(folder, executable.name));
    return undefined;
  }
  rmSync(partial, { force: true });
  return said.trim().split('\n').slice(-3).join(' ') || `go build ended with code ${code}`;
}

/** Sets the versions through the linker. Otherwise Kubernetes reports v0.0.0, which clients and feature gates read. */
function linkerFlags({ name: built, module }: Executable): string {
  const kubernetes = kubernetesVersion();
  const [major = '', minor = ''] = kubernetes.slice(1).split('.');
  const set: readonly (readonly [string, string])[] =
    built === tools.helm.name
      ? [
          ['helm.sh/helm/v3/internal/version.version', version('helm.sh/helm/v3', module)],
          ...capabilities.flatMap((path) => [[`${path}.k8sVersionMajor`, major] as const, [`${path}.k8sVersionMinor`, minor] as const]),
        ]
      : built in tools
        ? []
        : Object.entries({ gitVersion: kubernetes, gitMajor: major, gitMinor: minor }).map(([name, value]) => [
            `k8s.io/component-base/version.${name}`,
            value,
          ]);
  return ['-s', '-w', ...set.map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}
