import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../plugin/failure.ts';
import { readInput, readInputs, readStandardInput } from '../../plugin/source/input.ts';
import { folderWith } from './process.ts';

const environment = { PATH: process.env['PATH'], HOME: '/nonexistent', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
const access = (cwd: string, env: Readonly<Record<string, string>> = {}) => ({
  cwd,
  env: { ...environment, ...env },
  readStdin: async () => 'piped',
});

async function failureOf(spec: string, cwd: string, env?: Readonly<Record<string, string>>): Promise<readonly [number, string]> {
  const error: unknown = await readInput(spec, access(cwd, env)).catch((thrown) => thrown);
  if (error instanceof Failure) return [error.exitCode, error.details.what];
  throw new Error(`${spec} should have failed, not ${JSON.stringify(error)}`);
}

describe('files and directories', () => {
  it('a directory is read with everything below it, sorted, without hidden folders, node_modules and other files', async () => {
    const cwd = folderWith({
      'p/b.yaml': 'b',
      'p/a/z.yml': 'z',
      'p/a.json': '{}',
      'p/README.md': 'no',
      'p/.git/config.yaml': 'no',
      'p/.hidden.yaml': 'no',
      'p/node_modules/x/x.yaml': 'no',
    });
    const expected = [
      { name: 'p/a.json', text: '{}' },
      { name: 'p/a/z.yml', text: 'z' },
      { name: 'p/b.yaml', text: 'b' },
    ];
    expect(await readInput('p', access(cwd))).toEqual(expected);
    expect(await readInput('./p/', access(cwd))).toEqual(expected);
  });

  it('a file is read with any name, and named as in the argument, as a direct path', async () => {
    const cwd = folderWith({ 'p/policy.txt': 'x' });
    expect(await readInput('./p//policy.txt', access(cwd))).toEqual([{ name: 'p/policy.txt', text: 'x' }]);
    expect(await readInput(join(cwd, 'p/policy.txt'), access(cwd))).toEqual([{ name: join(cwd, 'p/policy.txt'), text: 'x' }]);
  });

  it('a file in two sources is read once', async () => {
    const cwd = folderWith({ 'p/a.yaml': 'a', 'p/b.yaml': 'b' });
    expect((await readInputs(['./p/b.yaml', 'p', 'p/../p/a.yaml', '-', '-'], access(cwd))).map(({ name }) => name)).toEqual([
      'p/b.yaml',
      'p/a.yaml',
      '-',
    ]);
  });

  it('links of a mounted ConfigMap are followed, and a link out of the directory is an error', async () => {
    const cwd = folderWith({ 'mount/..data/policy.yaml': 'x', 'secret.yaml': 'secret' });
    symlinkSync('..data/policy.yaml', join(cwd, 'mount/policy.yaml'));
    expect(await readInput('mount', access(cwd))).toEqual([{ name: 'mount/policy.yaml', text: 'x' }]);
    symlinkSync('../secret.yaml', join(cwd, 'mount/other.yaml'));
    expect(await failureOf('mount', cwd)).toEqual([10, 'mount/other.yaml is a link out of mount']);
  });

  it('a named pipe in a directory is rejected without a wait', async () => {
    const cwd = folderWith({ 'p/a.yaml': 'a' });
    expect(spawnSync('mkfifo', [join(cwd, 'p/b.yaml')]).status).toBe(0);
    expect(await failureOf('p', cwd)).toEqual([10, 'p/b.yaml is not a regular file']);
  });

  it('a cycle of folders ends', async () => {
    const cwd = folderWith({ 'p/a.yaml': 'a' });
    symlinkSync('..', join(cwd, 'p/up'));
    expect((await readInput('p', access(cwd))).map(({ name }) => name)).toEqual(['p/a.yaml']);
  });

  it('a missing path, and a directory without a document, are not found', async () => {
    const cwd = folderWith({ 'docs/a.md': '' });
    expect(await failureOf('missing', cwd)).toEqual([10, 'missing does not exist']);
    expect(await failureOf('docs', cwd)).toEqual([10, 'docs holds no .yaml, .yml or .json file']);
    expect(await failureOf('docs/a.md/b', cwd)).toEqual([10, 'docs/a.md/b does not exist']);
  });

  it('a file above the limit is rejected', async () => {
    const cwd = folderWith({ 'large.yaml': 'x'.repeat(16 * 1_048_576 + 1) });
    expect(await failureOf('large.yaml', cwd)).toEqual([3, 'large.yaml is larger than 16 MiB']);
  });
});

describe('standard input', () => {
  it('is read once and has the same text every time', async () => {
    const read = readStandardInput(Readable.from([Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)]));
    expect(await Promise.all([read(), read()])).toEqual(['é', 'é']);
  });

  it('does not wait at a terminal', async () => {
    const read = readStandardInput(Object.assign(new Readable(), { isTTY: true }));
    await expect(read()).rejects.toMatchObject({ exitCode: 3 });
  });
});

describe('revisions of Git', () => {
  function git(cwd: string, ...args: readonly string[]): void {
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
    const { status, stderr } = spawnSync('git', [...identity, ...args], { cwd, encoding: 'utf8', env: environment });
    if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  }

  function repository(files: Readonly<Record<string, string>>): string {
    const cwd = folderWith(files);
    git(cwd, 'init', '--quiet', '--initial-branch=main');
    git(cwd, 'add', '--all');
    git(cwd, 'commit', '--quiet', '--message=first');
    return cwd;
  }

  it('are read from the object database, not from the work tree, from any folder of it', async () => {
    const cwd = repository({ 'policies/b.yaml': 'old', 'policies/a.json': '{}', 'policies/note.md': '', 'other.yaml': 'o' });
    writeFileSync(join(cwd, 'policies/b.yaml'), 'new');
    writeFileSync(join(cwd, 'policies/c.yaml'), 'not committed');
    const expected = [
      { name: 'git:HEAD:policies/a.json', text: '{}' },
      { name: 'git:HEAD:policies/b.yaml', text: 'old' },
    ];
    expect(await readInput('git:HEAD:policies', access(cwd))).toEqual(expected);
    expect(await readInput('git:HEAD:./policies/', access(join(cwd, 'policies')))).toEqual(expected);
    expect((await readInput('git:main', access(cwd))).map(({ name }) => name)).toEqual([
      'git:main:other.yaml',
      'git:main:policies/a.json',
      'git:main:policies/b.yaml',
    ]);
    expect(await readInput('git:HEAD:policies/note.md', access(cwd))).toEqual([{ name: 'git:HEAD:policies/note.md', text: '' }]);
  });

  it('are read from bare repositories, with bytes and names as they are', async () => {
    const text = 'a: "é\u0000"\r\n\n';
    const cwd = repository({ 'größe und\ttab.yaml': text, 'empty.yaml': '' });
    git(cwd, 'clone', '--quiet', '--bare', '.', 'bare.git');
    expect(await readInput('git:main', access(join(cwd, 'bare.git')))).toEqual([
      { name: 'git:main:empty.yaml', text: '' },
      { name: 'git:main:größe und\ttab.yaml', text },
    ]);
  });

  it('distinguish a missing repository, revision and path', async () => {
    const cwd = repository({ 'a.yaml': 'a' });
    expect(await failureOf('git:HEAD', folderWith({}))).toEqual([10, 'revision HEAD cannot be read']);
    expect(await failureOf('git:nowhere', cwd)).toEqual([10, 'revision nowhere does not exist']);
    expect(await failureOf('git:HEAD:b', cwd)).toEqual([10, 'git:HEAD:b does not exist']);
    expect(await failureOf('git:HEAD', cwd, { PATH: '/nonexistent' })).toEqual([10, 'git is not installed, but a source starts with git:']);
  });

  it('are named in a form that cannot be an option, a range or a way out', async () => {
    const cwd = repository({ 'a.yaml': 'a' });
    for (const spec of ['git:', 'git:--output=/tmp/x', 'git:a..b', 'git:HEAD x'])
      expect(await failureOf(spec, cwd)).toEqual([3, `${spec} has no valid revision`]);
    expect(await failureOf('git:HEAD:../a.yaml', cwd)).toEqual([3, 'git:HEAD:../a.yaml has a path outside the repository']);
  });

  it('do not follow links and submodules', async () => {
    const cwd = repository({ 'p/a.yaml': 'a' });
    symlinkSync('/etc/hostname', join(cwd, 'p/link.yaml'));
    git(cwd, 'add', '--all');
    git(cwd, 'update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},vendor`);
    git(cwd, 'commit', '--quiet', '--message=links');
    expect(await failureOf('git:HEAD:p', cwd)).toEqual([10, 'git:HEAD:p/link.yaml is a symbolic link']);
    expect(await failureOf('git:HEAD:vendor', cwd)).toEqual([10, 'git:HEAD:vendor is a submodule']);
    expect(await readInput('git:HEAD:p/a.yaml', access(cwd))).toEqual([{ name: 'git:HEAD:p/a.yaml', text: 'a' }]);
  });

  it('run no hook, filter or program that the repository or the environment names', async () => {
    const cwd = repository({ 'p/a.yaml': 'a', '.gitattributes': '*.yaml filter=evil diff=evil' });
    const evil = `touch ${join(cwd, 'ran')} #`;
    for (const key of [
      'filter.evil.smudge',
      'filter.evil.clean',
      'diff.evil.textconv',
      'core.fsmonitor',
      'core.pager',
      'core.sshCommand',
    ]) {
      git(cwd, 'config', key, evil);
    }
    mkdirSync(join(cwd, 'before'));
    expect(await readInput('git:HEAD:p', access(cwd, { GIT_EXTERNAL_DIFF: evil, GIT_PAGER: evil, GIT_TRACE: join(cwd, 'ran') }))).toEqual([
      { name: 'git:HEAD:p/a.yaml', text: 'a' },
    ]);
    await expect(readInput('ran', access(cwd))).rejects.toMatchObject({ exitCode: 10 });
  });
});
