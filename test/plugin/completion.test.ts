import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { completionsFor } from '../../plugin/candidates.ts';
import { deadlineMs, readNames, withinDeadline } from '../../plugin/cluster-names.ts';
import { fakeApiServer } from './api-server.ts';
import { rolling } from './live-kit.ts';
import { publishedObject } from './live-objects.ts';
import { history } from './live-requests-kit.ts';
import { builtFolder, folderWith, runExecutable, runPlugin } from './process.ts';

/** What follows the words, the last of which is being typed; `|` stands for the cursor. */
async function offered(line: string): Promise<readonly [values: readonly string[], directive: number]> {
  const { candidates, directive } = await completionsFor(line.replace(/\|$/, '').split(' '));
  return [candidates.map(({ value }) => value), directive];
}

describe('completion', () => {
  it('offers the verbs by prefix', async () => {
    expect(await offered('|')).toEqual([
      [
        ...[
          'init',
          'lint',
          'fmt',
          'test',
          'schema',
          'plan',
          'diff',
          'review',
          'comment',
          'simulate',
          'apply',
          'get',
          'status',
          'explain',
          'events',
          'history',
          'report',
        ],
        ...[
          'pause',
          'resume',
          'approve',
          'reject',
          'promote',
          'abort',
          'retry',
          'undo',
          'restart',
          'scale',
          'override',
          'cancel',
          'protect',
        ],
        ...['install', 'uninstall', 'doctor', 'completion', 'docs', 'version'],
      ],
      4,
    ]);
    expect(await offered('s|')).toEqual([['schema', 'simulate', 'status', 'scale'], 4]);
    expect(await offered('--color always s|')).toEqual([['schema', 'simulate', 'status', 'scale'], 4]);
    expect(await offered('lint x s|')).toEqual([[], 0]);
  });

  it('offers the flags of the verb and the flags of every verb', async () => {
    expect(await offered('fmt --|')).toEqual([
      ['--check', '--write', '--quiet', '--v', '--color', '--no-color', '--ascii', '--width', '--help'],
      4,
    ]);
    expect(await offered('plan --det|')).toEqual([['--detailed-exitcode'], 4]);
    expect(await offered('--q|')).toEqual([['--quiet'], 4]);
  });

  it('offers the values of a flag, after a blank and after an equals sign', async () => {
    const formats = ['text', 'json', 'jsonl', 'sarif', 'junit', 'github', 'markdown'];
    expect(await offered('lint -o |')).toEqual([formats, 4]);
    expect(await offered('lint --output s|')).toEqual([['sarif'], 4]);
    expect(await offered('lint --output=j|')).toEqual([['--output=json', '--output=jsonl', '--output=junit'], 4]);
    expect(await offered('plan --color=n|')).toEqual([['--color=never'], 4]);
    expect(await offered('lint --strict |')).toEqual([[], 0]);
  });

  it('leaves files and directories to the shell', async () => {
    expect(await offered('lint |')).toEqual([[], 0]);
    expect(await offered('lint -f |')).toEqual([[], 0]);
    expect(await offered('init --out |')).toEqual([[], 16]);
    expect(await offered('plan -n |')).toEqual([[], 4]);
    expect(await offered('lint -- --str|')).toEqual([[], 0]);
  });

  it('offers kinds, codes and shells, once', async () => {
    expect(await offered('schema Rollout|')).toEqual([
      ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent', 'RolloutRun'],
      4,
    ]);
    expect(await offered('completion |')).toEqual([['bash', 'zsh', 'fish', 'powershell', 'install'], 4]);
    expect(await offered('completion bash |')).toEqual([[], 4]);
    expect(await offered('version |')).toEqual([[], 4]);
  });

  it('prints candidates, descriptions and the directive for kubectl, and nothing else', () => {
    expect(runExecutable('kubectl_complete-rollout_group', ['docs', 'RG200'])).toMatchObject({ status: 0, stderr: '' });
    expect(runExecutable('kubectl_complete-rollout_group', ['si']).stdout).toBe(
      'simulate\tRun the plan on a virtual clock, with failures\n:4\n',
    );
    expect(runPlugin(['__complete', 'si']).stdout).toBe(runExecutable('kubectl_complete-rollout_group', ['si']).stdout);
    expect(runExecutable('kubectl_complete-rollout_group', ['docs', 'exit']).stdout).toBe('exit-codes\tExit codes\n:4\n');
  });
});

describe('completion from the cluster', () => {
  it.each([
    ['pod', 'ingester', ['ingester-zone-a-0', 'ingester-zone-c-19'], 60],
    ['pod', undefined, ['ingester-zone-b-11'], 60],
    ['pod', 'other', [], 0],
    ['revision', 'ingester', ['1', '2', '3'], 3],
  ] as const)('offers each %s of %s', async (subject, group, some, count) => {
    const { url } = await fakeApiServer([publishedObject(rolling), ...history]);
    const names = await readNames({ server: url, namespace: 'mimir' }, { subject, group, timeoutMs: 5000 });
    expect([names.length, names]).toEqual([count, expect.arrayContaining([...some])]);
  });
});

describe('the deadline of completion', () => {
  /** Asks a cluster that never answers, at this time after the start of the process; `waits` are the delays of the timers. */
  async function ask(sinceStartMs: number) {
    const asked: number[] = [];
    const waits: number[] = [];
    const clock = { nowMs: () => 0, monotonicMs: () => sinceStartMs };
    const timers = {
      after: (delayMs: number, callback: () => void) => {
        waits.push(delayMs);
        queueMicrotask(callback);
        return () => undefined;
      },
    };
    const silence = (timeoutMs: number): Promise<never> => {
      asked.push(timeoutMs);
      return new Promise(() => undefined);
    };
    await expect(withinDeadline({ clock, timers }, silence)).rejects.toThrow('too late');
    return { asked, waits };
  }

  it('counts from the start of the process, not from the first request', async () => {
    expect(deadlineMs).toBeLessThan(300);
    expect(await ask(100)).toEqual({ asked: [deadlineMs - 100], waits: [deadlineMs - 100] });
  });

  it('gives the cluster as much time as the program needed to start on a busy machine', async () => {
    expect(await ask(deadlineMs - 1)).toEqual({ asked: [deadlineMs - 1], waits: [deadlineMs - 1] });
    expect(await ask(2000)).toEqual({ asked: [2000], waits: [2000] });
  });
});

describe('completion scripts', () => {
  it.skipIf(spawnSync('bash', ['--version']).error !== undefined)('complete words and files in bash (skipped without bash)', () => {
    const cwd = folderWith({
      'policy.yaml': '',
      'kubectl-rollout_group': `#!/bin/sh\nexec node "${process.cwd()}/dist/kubectl-rollout_group" "$@"\n`,
    });
    const script = `chmod +x kubectl-rollout_group; PATH="$PWD:$PATH"; source /dev/stdin <<< "$(kubectl-rollout_group completion bash)"
      COMP_WORDS=(kubectl-rollout_group lint --output=s); COMP_CWORD=2; _kubectl_rollout_group; echo "\${COMPREPLY[@]}"
      COMP_WORDS=(kubectl-rollout_group si); COMP_CWORD=1; _kubectl_rollout_group; echo "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' });
    expect({ stdout, stderr }).toEqual({ stdout: '--output=sarif\nsimulate\n', stderr: '' });
  });

  it('call the same program in other shells', () => {
    for (const shell of ['zsh', 'fish', 'powershell'])
      expect(runPlugin(['completion', shell]).stdout).toContain('kubectl-rollout_group __complete');
  });
});

describe('completion install', () => {
  const name = 'kubectl_complete-rollout_group';

  it('writes an executable that kubectl finds, and is safe to repeat', () => {
    const cwd = folderWith({});
    const first = runPlugin(['completion', 'install', '--dir', '.'], { cwd, env: { PATH: `${cwd}:/usr/bin:/bin` } });
    expect([first.status, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toContain(`${name} written`);
    expect(statSync(join(cwd, name)).mode & 0o111).toBe(0o111);
    expect(runPlugin(['completion', 'install', '--dir', '.'], { cwd }).stdout).toContain(`${name} already exists`);
  });

  it('writes it where kubectl finds the plugin, for example a link of krew', () => {
    const cwd = folderWith({});
    symlinkSync(join(builtFolder(), 'kubectl-rollout_group'), join(cwd, 'kubectl-rollout_group'));
    const { stdout } = runPlugin(['completion', 'install'], { env: { PATH: `${cwd}:${process.env['PATH']}` } });
    expect(stdout).toContain(`${join(cwd, name)} written`);
  });

  it('does not change a file of another program', () => {
    const cwd = folderWith({ [name]: '#!/bin/sh\necho mine\n' });
    expect(runPlugin(['completion', 'install', '--dir', '.'], { cwd }).status).toBe(3);
    expect(readFileSync(join(cwd, name), 'utf8')).toBe('#!/bin/sh\necho mine\n');
  });

  it('reports a directory that is not on the PATH', () => {
    const cwd = folderWith({});
    expect(runPlugin(['completion', 'install', '--dir', cwd], { cwd }).stderr).toBe(
      `warning: ${cwd} is not on the PATH, so kubectl does not find the file\n`,
    );
    expect(existsSync(join(cwd, name))).toBe(true);
  });
});
