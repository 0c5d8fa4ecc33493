// The verb review on pull requests whose rollout-group.yaml, charts and overlays are hostile: what the tools get on their command line.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { hashText } from '../../policies/values/hash.ts';
import { findTool } from '../control-plane/binaries.ts';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const scratch = new ScratchRepository();
const tools = mkdtempSync(join(tmpdir(), 'tools-'));
const called = join(tools, 'called');
const nowMs = Date.parse('2026-11-26T10:00:00Z');

/** Creates a branch whose rollout-group.yaml has one environment with these fields. */
function branch(name: string, fields: string, change: () => void = () => undefined): void {
  scratch.branch(name, () => {
    scratch.write('rollout-group.yaml', `environments: [{ name: staging, policies: policies, ${fields} }]\n`);
    change();
  });
}

async function reviewed(base: string, head: string) {
  return runInProcess(['review', '--base', base, '--head', head], { cwd: scratch.root, env: { PATH: tools } });
}

/** Returns the command lines of the tools, without the name of the temporary folder. */
function commandLines(): readonly string[] {
  const text = existsSync(called) ? readFileSync(called, 'utf8') : '';
  return [
    ...new Set(
      text
        .replaceAll(/\S*rollout-group-review-\w+/g, 'EXPORT')
        .split('\n')
        .filter(Boolean),
    ),
  ];
}

/** A tool that writes its command line, its environment and the files of the export, two levels deep. */
function script(name: string): string {
  const root = 'for last; do root="${last%/charts/*}"; root="${root%/overlay}"; done';
  const lines = [
    `echo "${name} $*" >> ${called}`,
    `/usr/bin/env > ${tools}/${name}.env`,
    root,
    `cd "$root"; echo * */* > ${tools}/${name}.files`,
  ];
  return `#!/bin/sh\n${lines.join('\n')}\n`;
}

beforeAll(() => {
  symlinkSync(execFileSync('which', ['git'], { encoding: 'utf8' }).trim(), join(tools, 'git'));
  for (const name of ['helm', 'kustomize']) writeFileSync(join(tools, name), script(name), { mode: 0o755 });
  scratch.write('charts/ingester/Chart.yaml', 'name: ingester\n');
  scratch.write('charts/--post-renderer=sh/Chart.yaml', 'name: ingester\n');
  scratch.write('overlay/kustomization.yaml', 'resources: []\n');
  scratch.write('values/staging.yaml', 'image: x\n');
  scratch.commit('charts');
});

beforeEach(() => rmSync(called, { force: true }));

afterAll(() => {
  scratch.remove();
  rmSync(tools, { recursive: true });
});

describe('the command line of a tool', () => {
  it('has its flags first and no name from the repository except paths in the export', async () => {
    branch('plain', 'manifests: [charts/ingester, overlay], values: values/staging.yaml');
    expect((await reviewed('plain', 'plain')).status).toBe(0);
    expect([...commandLines()].sort()).toEqual([
      'helm template --values EXPORT/values/staging.yaml release-name EXPORT/charts/ingester',
      'kustomize build EXPORT/overlay',
    ]);
  });

  it('has an environment without credentials, plugins of helm and repositories of Git', async () => {
    branch('environment', 'manifests: [charts/ingester, overlay]');
    const env = { PATH: tools, HOME: '/nonexistent', GITHUB_TOKEN: 'canary', KUSTOMIZE_PLUGIN_HOME: '/x', HELM_PLUGINS: '/x' };
    await runInProcess(['review', '--base', 'environment', '--head', 'environment'], { cwd: scratch.root, env });
    for (const name of ['helm', 'kustomize']) {
      const set = { PATH: tools, HOME: '/nonexistent', LC_ALL: 'C', GIT_ALLOW_PROTOCOL: 'none', HELM_NO_PLUGINS: '1' };
      expect(
        readFileSync(join(tools, `${name}.env`), 'utf8')
          .split('\n')
          .filter((one) => !/^(?:PWD|_|SHLVL|OLDPWD)?(?:=|$)/.test(one))
          .sort(),
      ).toEqual(
        Object.entries(set)
          .map((pair) => pair.join('='))
          .sort(),
      );
    }
  });

  it('has no flag from a directory that a flag of review names', async () => {
    const words = ['review', '--base', 'main', '--head', 'main', '--manifests', 'charts/--post-renderer=sh'];
    expect((await runInProcess(words, { cwd: scratch.root, env: { PATH: tools } })).status).toBe(0);
    expect(commandLines()).toEqual(['helm template release-name EXPORT/charts/--post-renderer=sh']);
  });

  it.each(['manifests', 'policies', 'tests', 'values', 'assumptions'])('has no flag from %s', async (field) => {
    const path = 'charts/--post-renderer=sh';
    const fields = { name: 'staging', manifests: ['manifests'], [field]: field === 'assumptions' ? path : [path] };
    scratch.branch(`flag-${field}`, () => scratch.write('rollout-group.yaml', JSON.stringify({ environments: [fields] })));
    expect(await reviewed('main', `flag-${field}`)).toMatchObject({
      status: 4,
      stderr: expect.stringContaining(`environments[0] has the path ${path}; a path is relative to the root`),
    });
    expect(commandLines()).toEqual([]);
  });
});

describe('a values file', () => {
  const chart = 'manifests: charts/ingester';

  it.each(['../rv/secret.yaml', 'values/../../rv/secret.yaml', '/etc/passwd'])('is not read at %s', async (path) => {
    const name = `path-${path.length}`;
    branch(name, `${chart}, values: ["${path}"]`);
    expect(await reviewed('main', name)).toMatchObject({ status: 4, stderr: expect.stringContaining(`has the path ${path}`) });
    expect(commandLines()).toEqual([]);
  });

  it.each<readonly [string, string, number, string]>([
    ['missing', 'values/missing.yaml', 10, 'has no values/missing.yaml'],
    ['a link', 'values/link.yaml', 10, 'values/link.yaml is a symbolic link'],
    ['a directory', 'charts', 10, 'charts is not a file'],
    ['two files for helm', 'a,/etc/passwd', 3, 'has a comma'],
  ])('is not passed to helm if it is %s', async (label, path, status, text) => {
    const name = label.replaceAll(' ', '-');
    branch(name, `${chart}, values: ["${path}"]`, () => {
      scratch.write('a,/etc/passwd', 'image: x\n');
      symlinkSync('/etc/passwd', join(scratch.root, 'values/link.yaml'));
    });
    expect(await reviewed(name, name)).toMatchObject({ status, stderr: expect.stringContaining(text) });
    expect(commandLines()).toEqual([]);
  });
});

describe('the files of a revision', () => {
  it('are written for helm only from the chart and its values, and for kustomize without files above the limit', async () => {
    branch('large', 'manifests: [charts/ingester, overlay], values: values/staging.yaml', () =>
      scratch.write('media/video.bin', 'x'.repeat(17 * 1_048_576)),
    );
    expect((await reviewed('large', 'large')).stderr).toBe('');
    const written = (name: string) =>
      readFileSync(join(tools, `${name}.files`), 'utf8')
        .trim()
        .split(' ');
    expect(written('helm')).toEqual(['charts', 'values', 'charts/ingester', 'values/staging.yaml']);
    expect(written('kustomize')).toEqual(expect.arrayContaining(['manifests', 'overlay']));
    expect(written('kustomize')).not.toContain('media');
  });

  it('include every file of a chart, because helm reads a missing file as empty', async () => {
    branch('large-chart', 'manifests: charts/ingester', () => scratch.write('charts/ingester/large.txt', 'x'.repeat(17 * 1_048_576)));
    const ended = await reviewed('large-chart', 'large-chart');
    expect(ended).toMatchObject({ stderr: expect.stringContaining('charts/ingester/large.txt is larger than 16 MiB') });
    expect(commandLines()).toEqual([]);
  });
});

const hasGo = spawnSync('go', ['version']).status === 0 || process.env['CI'] !== undefined;
if (!hasGo) process.stderr.write('SKIPPED test/plugin/review-render.test.ts: Go is not installed, so Helm and Kustomize cannot be built\n');

/** As a chart writes its manifests: the names start with the release, and no object has a namespace. */
const templated = (manifest: string): string =>
  manifest
    .replace(/^( +)namespace: mimir\n/gm, '')
    .replace(/image: grafana\/mimir:\S+/, 'image: grafana/mimir:{{ .Values.tag }}')
    .replace(/^ {2}name: ingester-zone-(\w)$/gm, '  name: {{ .Release.Name }}-zone-$1');

describe.skipIf(!hasGo)('Kustomize and Helm', () => {
  const real = new ScratchRepository();
  const path = mkdtempSync(join(tmpdir(), 'tools-'));
  const zones = ['a', 'b', 'c'];
  const overlay = (tag: string): string => `resources: [../../base]\nnamespace: mimir\nimages: [{ name: grafana/mimir, newTag: ${tag} }]\n`;
  const file = (release: string): string =>
    [
      'environments:',
      '  - { name: staging, policies: policies, manifests: overlays/staging }',
      `  - { name: production, policies: policies, manifests: chart, values: [values/all.yaml, values/production.yaml]${release} }`,
    ].join('\n');
  const settings = ', release: ingester, namespace: mimir';

  async function reviewOf(head: string, ...words: readonly string[]) {
    const base = words.includes('--base') ? [] : ['--base', 'main'];
    const args = ['review', ...base, '--head', head, '--width', '120', ...words];
    return runInProcess(args, { cwd: real.root, env: { PATH: path, HOME: '/nonexistent' }, nowMs });
  }

  beforeAll(async () => {
    const say = (line: string): void => void process.stderr.write(`${line}\n`);
    for (const name of ['helm', 'kustomize'] as const) symlinkSync(await findTool(name, say), join(path, name));
    symlinkSync(execFileSync('which', ['git'], { encoding: 'utf8' }).trim(), join(path, 'git'));
    for (const zone of zones) {
      const manifest = readFileSync(`examples/mimir-ingester/manifests/ingester-zone-${zone}.yaml`, 'utf8');
      real.write(`base/zone-${zone}.yaml`, manifest.replace(/^( +)namespace: mimir\n/gm, ''));
      real.write(`chart/templates/zone-${zone}.yaml`, templated(manifest));
    }
    real.write('base/kustomization.yaml', `resources: [${zones.map((zone) => `zone-${zone}.yaml`)}]\n`);
    real.write('overlays/staging/kustomization.yaml', overlay('2.17.1'));
    real.write('chart/Chart.yaml', 'apiVersion: v2\nname: ingester\nversion: 1.0.0\n');
    real.write('chart/values.yaml', 'tag: 0.0.0\n');
    real.write('values/all.yaml', 'tag: 1.0.0\n');
    real.write('values/production.yaml', 'tag: 2.17.1\n');
    real.write('rollout-group.yaml', file(settings));
    real.commit('overlay and chart');
    real.branch('image', () => {
      real.write('overlays/staging/kustomization.yaml', overlay('9.0.0'));
      real.write('values/production.yaml', 'tag: 9.1.0\n');
    });
    real.branch('shorter', () => real.replace('policies/ingester.yaml', '13h', '1h'));
  }, 600_000);

  afterAll(() => {
    real.remove();
    rmSync(path, { recursive: true });
  });

  it('render both environments, with the values, the release and the namespace of the chart', async () => {
    const { stdout, stderr } = await reviewOf('image');
    expect([stdout.split('\n').slice(0, 8), stderr]).toMatchInlineSnapshot(`
      [
        [
          "Review  main..image   6 restarts",
          "ENVIRONMENT  PLAN   RESTARTS",
          "staging      waits  3",
          "production   waits  3",
          "ROLLOUT   staging: mimir/ingester: image grafana/mimir:2.17.1 -> grafana/mimir:9.0.0, 3 restarts, waits: ReplicaTemplate",
          "          ingester could not be read",
          "ROLLOUT   production: mimir/ingester: image grafana/mimir:2.17.1 -> grafana/mimir:9.1.0, 3 restarts, waits:",
          "          ReplicaTemplate ingester could not be read",
        ],
        "",
      ]
    `);
    expect((await reviewOf('shorter')).stdout.split('\n')[0]).toBe('Review  main..shorter   2 loosened');
  });

  it('show which StatefulSets are missing without the release or the namespace of the chart', async () => {
    const without = async (name: string, setting: string) => {
      real.branch(`base-${name}`, () => real.write('rollout-group.yaml', file(setting)));
      real.branch(name, () => {
        real.write('rollout-group.yaml', file(setting));
        real.write('values/production.yaml', 'tag: 9.1.0\n');
      });
      const words = ['--environment', 'production', '--base', `base-${name}`];
      const { status, stdout } = await reviewOf(name, ...words);
      return [status, stdout.replace(/\s+/g, ' ')];
    };
    expect(await without('no-release', ', namespace: mimir')).toEqual([
      0,
      expect.stringContaining(
        'NOTE mimir/ingester has no plan: the manifests contain no StatefulSet ingester-zone-a, ingester-zone-b or ingester-zone-c',
      ),
    ]);
    expect(await without('no-namespace', ', release: ingester')).toEqual([
      5,
      expect.stringMatching(
        /1 group blocked, 3 other objects BLOCKED mimir\/ingester: blocked: .* are in default \(their manifests set no namespace\)/,
      ),
    ]);
  });

  const library = '{ name: lib, version: 1.0.0, repository: "https://example.invalid" }';
  it.each([
    ['overlays/staging/kustomization.yaml', 'resources: [../nowhere]', "evalsymlink failure on 'overlays/nowhere'"],
    ['overlays/staging/kustomization.yaml', 'resources: ["https://example.invalid/a//b"]', "fatal: transport 'https' not allowed"],
    ['overlays/staging/kustomization.yaml', 'helmCharts: [{ name: x }]', 'must specify --enable-helm'],
    ['chart/templates/zone-a.yaml', 'image: {{ required "set the tag" .Values.no }}', '(ingester/templates/zone-a.yaml:1:10): set the tag'],
    ['chart/templates/zone-a.yaml', '{{ fail "a\\x1b[31mb\\n::error::c" }}', 'a [31mb ::error::c\n'],
    ['chart/templates/zone-a.yaml', 'a: b: c', 'YAML parse error on ingester/templates/zone-a.yaml'],
    ['chart/Chart.yaml', `apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [${library}]`, 'missing in charts/ directory: lib'],
    ['values/production.yaml', 'a: b: c', 'failed to parse values/production.yaml'],
  ])('name the revision, the directory and the cause: %s %s', async (path, text, cause) => {
    const name = `bad-${hashText(path + text)}`;
    real.branch(name, () => real.write(path, `${text}\n`));
    const { status, stderr } = await reviewOf(name);
    const [tool, directory] = path.startsWith('overlays') ? ['kustomize', 'overlays/staging'] : ['helm', 'chart'];
    expect([status, stderr.split('\n')[0]]).toEqual([4, `error: ${tool} could not render git:${name}:${directory}`]);
    expect(stderr).toContain(cause);
    expect(stderr).not.toContain('rollout-group-review-');
  });
});

describe('review of directories with templates', () => {
  const scratch = new ScratchRepository();
  const tools = mkdtempSync(join(tmpdir(), 'tools-'));

  beforeAll(() => {
    symlinkSync(execFileSync('which', ['git'], { encoding: 'utf8' }).trim(), join(tools, 'git'));
    symlinkSync('/bin/sh', join(tools, 'sh'));
    symlinkSync('/bin/cat', join(tools, 'cat'));
    scratch.write('overlays/production/kustomization.yaml', 'resources: [../../manifests]\n');
    scratch.write('chart/Chart.yaml', 'name: ingester\n');
    cpSync(join(scratch.root, 'manifests'), join(scratch.root, 'chart/templates'), { recursive: true });
    scratch.write('values/production.yaml', 'image: grafana/mimir:2.17.1\n');
    scratch.commit('overlay and chart');
    scratch.branch('image', () => {
      for (const folder of ['manifests', 'chart/templates'])
        for (const zone of ['a', 'b', 'c'])
          scratch.replace(`${folder}/ingester-zone-${zone}.yaml`, /image: grafana\/mimir:\S+/g, 'image: grafana/mimir:9.0.0');
    });
  });

  afterAll(() => {
    scratch.remove();
    rmSync(tools, { recursive: true });
  });

  function tool(name: string, script: string): void {
    writeFileSync(join(tools, name), `#!${join(tools, 'sh')}\n${script}\n`, { mode: 0o755 });
  }

  async function reviewed(...words: readonly string[]) {
    const args = ['review', '--base', 'main', '--head', 'image', '--policies', 'policies', ...words];
    return runInProcess(args, { cwd: scratch.root, env: { PATH: tools }, nowMs });
  }

  const folders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('rollout-group-review-'));

  it('names the missing tool, and the way without it', async () => {
    const { status, stderr } = await reviewed('--manifests', 'overlays/production');
    expect([status, stderr.split('\n')[0]]).toEqual([10, 'error: kustomize is not installed, but overlays/production must be rendered']);
    expect(stderr).toContain('commit the rendered manifests');
  });

  it('renders a Kustomize overlay and a Helm chart of each revision in a folder that is removed', async () => {
    // Other tests render at the same time.
    vi.stubEnv('TMPDIR', tools);
    onTestFinished(() => void vi.unstubAllEnvs());
    tool('kustomize', 'for file in "$2"/../../manifests/*.yaml; do echo ---; cat "$file"; done');
    expect((await reviewed('--manifests', 'overlays/production')).stdout).toContain(
      'grafana/mimir:2.17.1 -> grafana/mimir:9.0.0, 18 restarts',
    );
    tool('helm', 'for file in "$3"/templates/*.yaml; do echo ---; cat "$file"; done');
    expect((await reviewed('--manifests', 'chart/')).stdout).toContain('18 restarts');
    tool('helm', 'echo "template: bad" >&2; exit 1');
    expect(await reviewed('--manifests', 'chart')).toMatchObject({ status: 4, stderr: expect.stringContaining('why: template: bad') });
    expect(folders()).toEqual([]);
  });
});
