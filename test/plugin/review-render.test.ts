// The verb review on pull requests whose rollout-group.yaml, charts and overlays are hostile: what the tools get on their command line.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const scratch = new ScratchRepository();
const tools = mkdtempSync(join(tmpdir(), 'tools-'));
const called = join(tools, 'called');

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
  it('has its flags first and no name from the repository that is not a path in the export', async () => {
    branch('plain', 'manifests: [charts/ingester, overlay], values: values/staging.yaml');
    expect((await reviewed('plain', 'plain')).status).toBe(0);
    expect([...commandLines()].sort()).toEqual([
      'helm template --values EXPORT/values/staging.yaml release-name EXPORT/charts/ingester',
      'kustomize build EXPORT/overlay',
    ]);
  });

  it('comes with an environment without credentials, plugins of helm and repositories of Git', async () => {
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
  ])('is not given to helm if it is %s', async (label, path, status, text) => {
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

  it('are not fewer than a chart has, because helm reads a missing file as empty', async () => {
    branch('large-chart', 'manifests: charts/ingester', () => scratch.write('charts/ingester/large.txt', 'x'.repeat(17 * 1_048_576)));
    const ended = await reviewed('large-chart', 'large-chart');
    expect(ended).toMatchObject({ stderr: expect.stringContaining('charts/ingester/large.txt is larger than 16 MiB') });
    expect(commandLines()).toEqual([]);
  });
});
