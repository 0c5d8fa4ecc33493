// Types the commands of "Try it on a cluster" in docs/getting-started.md into a shell next to `npm run cluster`.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWithBinaries } from '../control-plane/suite.ts';

/** Every line of the section that a person would type, in order. */
function typedLines(): readonly string[] {
  const page = readFileSync('docs/getting-started.md', 'utf8');
  const section = page.split(/^## /m).find((part) => part.startsWith('Try it on a cluster\n')) ?? '';
  return [...section.matchAll(/^```\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) => block.trim().split('\n'));
}

/** Without kubectl its plugin is called by its own name, as the page says. */
function hasKubectl(): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'kubectl')));
}

interface Typed {
  readonly line: string;
  readonly output: string;
  readonly status: number;
}

const mark = '--- typed:';
/** A line that never ends is better seen, by what it did not say, than waited for. */
const longestWalkSeconds = 120;

/** Types the lines into one shell, as a person does, and splits what it says by line. */
async function type(lines: readonly string[]): Promise<readonly Typed[]> {
  const instead = hasKubectl() ? [] : ['kubectl() { shift; kubectl-rollout_group "$@"; }'];
  const script = [...instead, ...lines.flatMap((line) => [line, `echo "${mark} $?"`])].join('\n');
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], LANG: 'C.UTF-8' };
  const shell = spawn('timeout', [`${longestWalkSeconds}`, 'bash', '-c', `exec 2>&1\n${script}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  const said = await text(shell.stdout);
  const parts = said.split(new RegExp(`^${mark} (\\d+)\\n`, 'm'));
  return lines.map((line, index) => ({ line, output: parts[index * 2] ?? '', status: Number(parts[index * 2 + 1] ?? -1) }));
}

describeWithBinaries('the walk through a cluster in docs/getting-started.md', () => {
  let cluster: ChildProcess | undefined;
  let typed: readonly Typed[] = [];
  const outputOf = (verb: string): string =>
    typed.find(({ line }) => line.includes(`rollout-group ${verb} `))?.output ?? `${verb} was not typed`;

  beforeAll(async () => {
    rmSync('next.plan', { force: true });
    cluster = spawn(process.execPath, ['scripts/run.mjs', 'scripts/cluster.ts'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await untilSaid(cluster, 'Ctrl-C stops it');
    typed = await type(typedLines());
  });

  afterAll(async () => {
    const ended = new Promise((settle) => cluster?.on('exit', settle));
    cluster?.kill('SIGTERM');
    await ended;
    rmSync('next.plan', { force: true });
  });

  it('every command ends with success', () => {
    expect(typed.length).toBeGreaterThan(10);
    expect(typed.filter(({ status }) => status !== 0)).toEqual([]);
  });

  it('shows the group, what a new image leads to, and that it was carried out', () => {
    expect(outputOf('get')).toMatch(/^store-gateway +Done +\S+ +- +12\/12 +12\/12 /m);
    expect(outputOf('doctor')).toMatch(/^\d+ checks, 0 failed, 0 warnings$/m);
    expect(outputOf('plan')).toContain('12 pods restart');
    expect(outputOf('apply')).toContain('3 objects applied as plan');
    expect(outputOf('pause')).toContain('mimir/store-gateway paused (reads are slow)');
    expect(outputOf('explain')).toContain('mimir/store-gateway is ');
    expect(outputOf('resume')).toContain('mimir/store-gateway resumed');
    expect(outputOf('status')).toMatch(/done updated=12\/12 available=12\/12\n$/);
    expect(outputOf('history')).toMatch(/ completed\s*$/m);
    expect(outputOf('events')).toContain('RolloutFinished');
  });

  it('refuses the plan once more, since it is stale', async () => {
    const settings = typedLines().filter((line) => line.startsWith('export '));
    const again = await type([...settings, 'kubectl rollout-group apply next.plan --yes']);
    expect(again.at(-1)?.status).toBe(9);
  });
});

function untilSaid(child: ChildProcess, words: string): Promise<void> {
  let said = '';
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes(words)) resolve();
    });
    child.on('exit', () => reject(new Error(`npm run cluster ended: ${said}`)));
  });
}
