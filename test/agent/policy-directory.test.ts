import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openPolicyDirectory } from '../../agent/policies/policy-directory.ts';
import { processTimers } from '../../cluster/connection/process-env.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function temporary(): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'policies-')));
  ends.push(() => rm(path, { recursive: true }));
  return path;
}

async function filled(path: string, files: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true });
    await writeFile(join(path, name), text);
  }
  return path;
}

const open = (path: string, rereadMs = 3_600_000) => openPolicyDirectory({ path, rereadMs, timers: processTimers });

/** Counts the changes that a watch tells of. */
async function watched(path: string, rereadMs?: number) {
  const directory = open(path, rereadMs);
  await directory.read();
  const told = { changes: 0 };
  const stop = directory.watch(() => {
    told.changes += 1;
  });
  ends.unshift(stop);
  return { told, directory, stop };
}

describe('the policy directory', () => {
  it('is read with its folders, by name, without other files', async () => {
    const path = await filled(await temporary(), {
      'b.yaml': 'b',
      'a.yml': 'a',
      'team/c.json': 'c',
      'README.md': 'no',
      '.git/x.yaml': 'no',
      '.hidden.yaml': 'no',
    });
    expect(await open(path).read()).toEqual([
      { name: 'a.yml', text: 'a' },
      { name: 'b.yaml', text: 'b' },
      { name: 'team/c.json', text: 'c' },
    ]);
  });

  it('fails when it is missing or too large', async () => {
    const path = await temporary();
    await expect(open(join(path, 'missing')).read()).rejects.toThrow(/ENOENT/);
    await filled(path, { 'big.yaml': 'x'.repeat(17 * 1024 * 1024) });
    await expect(open(path).read()).rejects.toThrow('the policy directory has more than 16 MiB');
  });

  it('does not follow folders without limit', async () => {
    const path = await filled(await temporary(), { 'a.yaml': 'a' });
    await symlink(path, join(path, 'again'));
    await expect(open(path).read()).rejects.toThrow('nested deeper than 8');
  });

  it('reports written and deleted files', async () => {
    const path = await filled(await temporary(), { 'a.yaml': 'a' });
    const { told, directory } = await watched(path);
    await filled(path, { 'b.yaml': 'b' });
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(1);
    await rm(join(path, 'a.yaml'));
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(2);
    expect(await directory.read()).toEqual([{ name: 'b.yaml', text: 'b' }]);
  });

  it('is a ConfigMap volume: files behind a link that is swapped', async () => {
    const path = await filled(await temporary(), { '..2026_1/a.yaml': 'old', '..2026_2/a.yaml': 'new' });
    await symlink('..2026_1', join(path, '..data'));
    await symlink('..data/a.yaml', join(path, 'a.yaml'));
    const { told, directory } = await watched(path);
    await symlink('..2026_2', join(path, '..data_tmp'));
    await rename(join(path, '..data_tmp'), join(path, '..data'));
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(1);
    expect(await directory.read()).toEqual([{ name: 'a.yaml', text: 'new' }]);
  });

  it('is the link of git-sync: the directory itself is swapped, more than once', async () => {
    const path = await filled(await temporary(), { 'rev-1/a.yaml': '1', 'rev-2/a.yaml': '2', 'rev-3/a.yaml': '3' });
    const swap = async (revision: string): Promise<void> => {
      await symlink(revision, join(path, 'next'));
      await rename(join(path, 'next'), join(path, 'current'));
    };
    await swap('rev-1');
    const { told, directory } = await watched(join(path, 'current'));
    for (const [index, revision] of ['rev-2', 'rev-3'].entries()) {
      await swap(revision);
      await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(index + 1);
    }
    expect(await directory.read()).toEqual([{ name: 'a.yaml', text: '3' }]);
  });

  it('finds changes without a watch event by reading again, such as a file in a folder', async () => {
    const path = await filled(await temporary(), { 'team/a.yaml': 'a' });
    const { told } = await watched(path, 20);
    await filled(path, { 'team/a.yaml': 'b' });
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(1);
  });

  it('reports that it can no longer be read, and that it can again', async () => {
    const path = await filled(await temporary(), { 'd/a.yaml': 'a' });
    const { told } = await watched(join(path, 'd'), 20);
    await rename(join(path, 'd'), join(path, 'away'));
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(1);
    await rename(join(path, 'away'), join(path, 'd'));
    await expect.poll(() => told.changes, { timeout: 10_000 }).toBe(2);
  });
});
