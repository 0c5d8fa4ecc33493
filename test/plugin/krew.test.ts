import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { builtFolder } from './process.ts';

const manifest = parse(readFileSync('krew-manifest.yaml', 'utf8'));
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

it('the krew manifest names this plugin, this version and an executable that the build makes', () => {
  expect([manifest.apiVersion, manifest.kind, manifest.metadata, manifest.spec.version]).toEqual([
    'krew.googlecontainertools.github.com/v1alpha2',
    'Plugin',
    { name: 'rollout-group' },
    `v${version}`,
  ]);
  expect(manifest.spec.shortDescription.length).toBeLessThanOrEqual(50);
  for (const { bin } of manifest.spec.platforms) expect(existsSync(join(builtFolder(), bin))).toBe(true);
});

it('the archive that the krew manifest describes has the licence next to the executable', () => {
  expect(existsSync(join(builtFolder(), 'LICENSE'))).toBe(true);
});

it('the krew manifest leaves address and checksum to the release', () => {
  for (const platform of manifest.spec.platforms) expect(Object.keys(platform).sort()).toEqual(['bin', 'files', 'selector']);
});
