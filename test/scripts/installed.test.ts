import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

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
