// What every verb keeps: exit codes, streams, and what happens when things go wrong. Verbs of a plan have their own tests.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, cpSync, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verbs } from '../../plugin/verbs/all.ts';
import { runInProcess } from './in-process.ts';
import { rightGroup, wrongGroup } from './policies.ts';
import { builtFolder, folderWith, runPlugin } from './process.ts';

describe('exit codes', () => {
  const folder = () =>
    folderWith({
      'right.yaml': rightGroup,
      'wrong.yaml': wrongGroup,
      'unformatted.yaml': rightGroup.replace('  name: ingester\n  namespace: mimir', '  namespace: mimir\n  name: ingester'),
    });
  const ofProcess: readonly (readonly [args: string, status: number])[] = [
    ['', 0],
    ['--help', 0],
    ['-h', 0],
    ['lint --help', 0],
    ['--version', 0],
    ['version', 0],
    ['version --client', 0],
    ['docs', 0],
    ['docs RG2003', 0],
    ['docs nonsense', 10],
    ['lint right.yaml', 0],
    ['lint wrong.yaml', 4],
    ['lint right.yaml missing.yaml', 10],
    ['lint right.yaml --nonsense', 3],
    ['fmt --check right.yaml', 0],
    ['schema', 0],
    ['init --from-dir missing --out out', 10],
    ['test missing', 10],
    ['plan --detailed-exitcode --nonsense', 1],
  ];
  for (const [args, status] of ofProcess) {
    it(`${status} for the process "${args}"`, () =>
      expect(runPlugin(args.split(' ').filter(Boolean), { cwd: folder() }).status).toBe(status));
  }

  const ofProgram: readonly (readonly [args: string, status: number])[] = [
    ['version -o json', 0],
    ['version --client -o json', 0],
    ['lint -f right.yaml', 0],
    ['lint git:HEAD', 10],
    ['lint', 3],
    ['lint right.yaml -o nonsense', 3],
    ['fmt --check unformatted.yaml', 4],
    ['fmt --check --write right.yaml', 3],
    ['fmt --write -', 3],
    ['fmt missing.yaml', 10],
    ['schema RolloutGroup.spec', 0],
    ['schema RolloutGroup.nonsense', 10],
    ['schema Nonsense', 10],
    ['schema -o jsonschema', 3],
    ['completion bash', 0],
    ['completion tcsh', 3],
    ['completion install --dir missing', 10],
    ['init --from-dir right.yaml --out out', 10],
    ['init', 3],
    ['nonsense', 3],
    ['-q', 3],
    ['version --width 39', 3],
    ['version --color sometimes', 3],
  ];
  for (const [args, status] of ofProgram) {
    it(`${status} for "${args}"`, async () => expect((await runInProcess(args.split(' '), { cwd: folder() })).status).toBe(status));
  }
});

describe('streams', () => {
  it('a result is on standard output alone, and an error on standard error alone', () => {
    const cwd = folderWith({ 'service.yaml': 'apiVersion: v1\nkind: Service\nmetadata: { name: ingester }\n' });
    expect(runPlugin(['lint', 'service.yaml'], { cwd })).toEqual({ status: 0, stdout: 'no findings in 1 file\n', stderr: '' });
    expect(runPlugin(['lint', 'missing.yaml', '-o', 'json'], { cwd })).toEqual({
      status: 10,
      stdout: '',
      stderr: 'error: missing.yaml does not exist\n  do:  name a file, a directory, - or git:REV[:PATH]\n',
    });
  });

  it('a pipe never receives an escape byte, even when a file contains one and colour is on in the environment of a terminal', async () => {
    const cwd = folderWith({ 'evil.yaml': `${wrongGroup}  "\u009bred": "\u202e"\n# \u009b31m\n` });
    for (const format of ['text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown']) {
      const { status, stdout, stderr } = await runInProcess(['lint', '.', '-o', format], {
        cwd,
        env: { TERM: 'xterm-256color', COLORTERM: 'truecolor' },
      });
      expect(status).toBe(4);
      expect(stdout).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
      expect(stderr).toBe('');
    }
    expect(runPlugin(['--help']).stdout + runPlugin(['nonsense']).stderr).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  it('--color=always colours a pipe, --no-color wins over FORCE_COLOR, for results, help and errors', async () => {
    const cwd = folderWith({ 'wrong.yaml': wrongGroup });
    const escapes = async (args: readonly string[], env = {}) => {
      const { stdout, stderr } = await runInProcess(args, { cwd, env });
      return [stdout, stderr].map((text) => text.includes('\u001b['));
    };
    const found = [
      escapes(['lint', '.', '--color=always']),
      escapes(['lint', '.', '--color', 'always'], { NO_COLOR: '1' }),
      escapes(['lint', '.', '--no-color'], { FORCE_COLOR: '1' }),
      escapes(['lint', '.'], { FORCE_COLOR: '1' }),
      escapes(['lint', '.'], { FORCE_COLOR: '1', NO_COLOR: '1' }),
      escapes(['lint', '--help', '--color=always']),
      escapes(['lint', 'missing', '--color=always']),
      escapes(['lint', 'missing', '--no-color'], { FORCE_COLOR: '1' }),
    ];
    expect(await Promise.all(found)).toEqual([
      [true, false],
      [true, false],
      [false, false],
      [true, false],
      [false, false],
      [true, false],
      [false, true],
      [false, false],
    ]);
  });

  it('a large result reaches a slow pipe completely', async () => {
    const cwd = folderWith(
      Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`${index}.yaml`, wrongGroup.replaceAll('ingester', `group-${index}`)])),
    );
    const child = spawn(process.execPath, [join(builtFolder(), 'kubectl-rollout_group'), 'lint', '.', '-o', 'json'], { cwd });
    let text = '';
    // Nothing is read until the program has filled the pipe and wants to end.
    await new Promise((resolve) => child.stdout.once('readable', resolve));
    for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk;
    expect(text.length).toBeGreaterThan(300_000);
    expect(JSON.parse(text).findings).toHaveLength(600);
  });

  it('a reader that closes the pipe ends it quietly, with the verdict unchanged', async () => {
    const cwd = folderWith(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`${index}.yaml`, wrongGroup])));
    const child = spawn(process.execPath, [join(builtFolder(), 'kubectl-rollout_group'), 'lint', '.'], { cwd });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      stderr += chunk;
    });
    const status = await new Promise((resolve) => child.on('close', resolve));
    expect({ status, stderr }).toEqual({ status: 4, stderr: '' });
  });

  it.skipIf(!existsSync('/dev/full'))('a result that does not fit on the disk is an error, also when it would have been a verdict', () => {
    const cwd = folderWith({ 'wrong.yaml': wrongGroup });
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    for (const args of [['lint', '.'], ['--help'], ['version', '--client', '-o', 'json']]) {
      const { status, stderr } = spawnSync(process.execPath, [join(builtFolder(), 'kubectl-rollout_group'), ...args], {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', full, 'pipe'],
      });
      expect({ status, stderr }).toEqual({ status: 11, stderr: 'error: standard output cannot be written\n  why: ENOSPC\n' });
    }
  });

  it('- reads standard input, once for two mentions', () => {
    expect(runPlugin(['lint', '-', '-f', '-'], { stdin: wrongGroup }).stdout).toContain(
      '2 findings (2 errors, 0 warnings, 0 notices) in 1 file',
    );
  });
});

describe('when it cannot go on', () => {
  it('an unknown verb is answered with the nearest one and not run', async () => {
    expect(await runInProcess(['lnit', '.'])).toEqual({
      status: 3,
      stdout: '',
      stderr: 'error: unknown command "lnit"\n  do:  Did you mean one of init, lint? See kubectl rollout-group --help\n',
    });
  });

  it.each([
    ['lint --frob test', 'lint'],
    ['--width 80 status test --frob', 'status'],
    ['get plan explain --frob', 'get'],
    ['-n test get --frob', 'get'],
    ['--frob', undefined],
  ])('after an unknown flag, %s names the help of its verb', async (line, verb) => {
    const help = `kubectl rollout-group ${verb === undefined ? '' : `${verb} `}--help\n`;
    expect(await runInProcess(line.split(' '))).toMatchObject({ status: 3, stderr: expect.stringMatching(new RegExp(` ${help}$`)) });
  });

  it('a missing argument is answered in two lines that name the help of the verb', async () => {
    expect((await runInProcess(['explain'])).stderr).toBe(
      'error: missing required argument "group"\n  do:  kubectl rollout-group explain --help\n',
    );
  });

  it('a defect has a crash id and no stack trace, which -v=1 adds, and the id is the same wherever it is installed', () => {
    const broken = () => {
      const dist = folderWith({});
      cpSync(builtFolder(), dist, { recursive: true });
      for (const chunk of readdirSync(join(dist, 'chunks'))) if (chunk.startsWith('lint-')) rmSync(join(dist, 'chunks', chunk));
      return dist;
    };
    const [first, second] = [broken(), broken()].map((dist) => runPlugin(['lint', '.'], { dist }));
    const id = (text = '') => /\(crash ([0-9a-f]{8})\)/.exec(text)?.[1];
    expect(first?.status).toBe(70);
    expect(first?.stdout).toBe('');
    expect(first?.stderr.split('\n')).toHaveLength(4);
    expect(first?.stderr).not.toMatch(/^\s+at /m);
    expect(id(first?.stderr)).toMatch(/^[0-9a-f]{8}$/);
    expect(id(second?.stderr)).toBe(id(first?.stderr));
    expect(runPlugin(['lint', '.', '-v=1'], { dist: broken() }).stderr).toMatch(/^\s+at /m);
  });
});

it('every verb has a summary of one line, examples that begin with it, and a help that runs', () => {
  for (const { name, summary, examples, isHidden } of verbs) {
    expect(summary.length).toBeLessThanOrEqual(80);
    expect(summary).not.toMatch(/\.$/);
    for (const example of examples) expect(example.split(' ')[0]).toBe(name);
    if (isHidden !== true) expect(examples.length).toBeGreaterThan(0);
  }
});
