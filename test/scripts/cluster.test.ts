import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readOptions } from '../../scripts/cluster/options.ts';
import { stagesWith } from '../../scripts/cluster/stages.ts';

interface Stage {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly delay?: object };
}

describe('npm run cluster', () => {
  it('reads the example, the start time of pods, and the version that fails', () => {
    expect(readOptions([])).toEqual({ example: 'examples/quick-start', readySeconds: 5, isBroken: false });
    expect(readOptions(['examples/kafka', '--ready', '20s'])).toEqual({ example: 'examples/kafka', readySeconds: 20, isBroken: false });
    expect(readOptions(['--break'])).toMatchObject({ isBroken: true });
    for (const words of [['--ready', '0'], ['--ready', 'soon'], ['nowhere'], ['examples/kafka', 'examples/consul']])
      expect(() => readOptions(words), words.join(' ')).toThrow();
  });

  it('starts pods in the requested time, and fails those with an image of --break', () => {
    const text = stagesWith(20, ['registry.example.com/cache:1.1.0']);
    const stages = parseAllDocuments(text).map((document) => document.toJS() as Stage);
    const ready = stages.find(({ metadata }) => metadata.name === 'pod-ready');
    expect(ready?.spec.delay).toMatchObject({ durationMilliseconds: 20_000, jitterDurationMilliseconds: 24_000 });
    expect(text).toContain('IN("registry.example.com/cache:1.1.0")');
    expect(stagesWith(20, [])).not.toContain('IN(');
  });
});

const locked = { '': { version: '0' }, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '1.0.0', optional: true } };

it.each([
  ['a package for another platform is missing', { 'node_modules/a': { version: '1.0.0' } }, 0],
  ['a package has another version', { 'node_modules/a': { version: '1.0.1' } }, 1],
  ['a package is missing', {}, 1],
])('packages are installed only if they differ from the lock file: %s', (_, packages, status) => {
  const cwd = mkdtempSync(join(tmpdir(), 'installed-'));
  mkdirSync(join(cwd, 'node_modules'));
  const marker = join(cwd, 'node_modules/.package-lock.json');
  writeFileSync(marker, JSON.stringify({ packages }));
  // A copy of the directory can have an older time than the lock file.
  utimesSync(marker, 0, 0);
  writeFileSync(join(cwd, 'package-lock.json'), JSON.stringify({ packages: locked }));
  // Without a PATH, npm is not found, and the script fails.
  const ended = spawnSync(process.execPath, [resolve('scripts/installed.mjs')], { cwd, env: { PATH: '' } });
  rmSync(cwd, { recursive: true, force: true });
  expect(ended.status).toBe(status);
});
