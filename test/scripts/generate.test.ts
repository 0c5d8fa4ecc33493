import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'rollout-group-generate-'));
const script = join(folder, 'generate.mjs');
const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };

// These files are written by hand, and other files are generated from them.
beforeAll(() => {
  for (const path of ['deploy/argo-cd/health', 'deploy/monitoring', 'package.json']) cpSync(path, join(folder, path), { recursive: true });
});
beforeAll(() => build({ entryPoints: ['scripts/generate.ts'], outfile: script, bundle: true, platform: 'node', format: 'esm', banner }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the script in a folder of its own. */
function generate(...args: readonly string[]) {
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: folder, encoding: 'utf8' });
  return { status, lines: stderr.split('\n').filter((line) => line !== '') };
}

it('--check names files that are missing, stale or left over, and passes once they are generated', () => {
  const missing = generate('--check');
  expect([missing.status, missing.lines.every((line) => line.endsWith('is missing: run npm run generate'))]).toEqual([1, true]);
  expect(existsSync(join(folder, 'deploy/crds'))).toBe(false);

  expect(generate()).toEqual({ status: 0, lines: [] });
  expect(generate('--check')).toEqual({ status: 0, lines: [] });

  writeFileSync(join(folder, 'deploy/schemas/plan.json'), '{}');
  writeFileSync(join(folder, 'docs/kinds/oldkind.md'), '');
  expect(generate('--check')).toEqual({
    status: 1,
    lines: [
      'deploy/schemas/plan.json is stale: run npm run generate',
      'docs/kinds/oldkind.md is not generated any more: run npm run generate',
    ],
  });

  expect(generate()).toEqual({ status: 0, lines: [] });
  expect(existsSync(join(folder, 'docs/kinds/oldkind.md'))).toBe(false);
});

it('its output in this repository is up to date', () => {
  generate();
  for (const file of ['deploy/crds/rolloutgroups.yaml', 'deploy/helm/rollout-group/templates/agent.yaml'])
    expect(readFileSync(join(folder, file), 'utf8')).toBe(readFileSync(file, 'utf8'));
});
