// Types the commands of "Try it on a cluster" in docs/getting-started.md into a shell next to two clusters of `npm run cluster`.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWithBinaries } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';

/** Every line of the section that a person would type in the second terminal, in order. */
function typedLines(title: string): readonly string[] {
  const page = readFileSync('docs/getting-started.md', 'utf8');
  const section = page.split(/^###? /m).find((part) => part.startsWith(`${title}\n`)) ?? '';
  const lines = [...section.matchAll(/^```\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) => block.trim().split('\n'));
  return lines.filter((line) => !line.startsWith('npm run cluster'));
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

/** A cluster as its terminal shows it. */
interface LocalCluster {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: () => string;
  /** Waits until the cluster says something that matches, also before the call. */
  readonly until: (words: RegExp) => Promise<RegExpMatchArray>;
  /** Sends SIGTERM. Returns the exit code. */
  readonly stop: () => Promise<number | null>;
}

/** Runs the script of package.json as npm does, without its build, which would replace the executables of other suites. */
function startCluster(...flags: readonly string[]): LocalCluster {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  const child = spawn('sh', ['-c', [scripts.cluster, ...flags].join(' ')], { stdio: 'pipe' });
  let said = '';
  const ended = new Promise<number | null>((settle) => child.on('close', settle));
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  return {
    child,
    said: () => said,
    until: async (words) => {
      const found = await eventually(
        `${words}`,
        async () => words.exec(said) ?? child.exitCode ?? said,
        (found) => typeof found !== 'string',
        90_000,
      );
      if (found === null || typeof found !== 'object') throw new Error(`npm run cluster ended with ${child.exitCode}: ${said}`);
      return found;
    },
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

function isAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

const isReady = /^r starts an agent/m;
const agentStart = /^the agent (\S+) runs: pid (\d+), log (\S+)$/m;

describeWithBinaries('the walk through a cluster in docs/getting-started.md', () => {
  const clusters: LocalCluster[] = [];
  let first: LocalCluster;
  let typed: readonly Typed[] = [];
  const outputOf = (verb: string, all = typed): string =>
    all.find(({ line }) => line.includes(`rollout-group ${verb} `) || line.endsWith(`rollout-group ${verb}`))?.output ??
    `${verb} was not typed`;
  const start = (...flags: readonly string[]): LocalCluster => {
    const started = startCluster(...flags);
    clusters.push(started);
    return started;
  };

  beforeAll(async () => {
    rmSync('next.plan', { force: true });
    first = start('--ready', '1');
    await first.until(isReady);
    typed = await type(typedLines('Try it on a cluster'));
  });

  afterAll(async () => {
    await Promise.all(clusters.map((one) => one.stop()));
    rmSync('next.plan', { force: true });
  });

  it('every command ends with success', () => {
    expect(typed.length).toBeGreaterThan(12);
    expect(typed.filter(({ status }) => status !== 0)).toEqual([]);
  });

  it('starts without a warning of doctor, and shows the group, what a new image leads to, and that it was carried out', () => {
    expect(outputOf('doctor')).toMatch(/^\d+ checks: \d+ ok, 0 failed, 0 warnings$/m);
    expect(outputOf('doctor')).toContain('registered as installed, and enforced in every namespace of a group');
    expect(outputOf('get')).toMatch(/^cache +Done +\S+ +- +9\/9 +9\/9 /m);
    expect(outputOf('plan')).toContain('9 pods restart');
    expect(outputOf('apply')).toContain('3 objects applied as plan');
    expect(outputOf('explain')).toContain('0 of 1 approvals from oncall');
    expect(outputOf('approve')).toContain('wave rest approved by alice');
    expect(outputOf('pause')).toContain('shop/cache paused (reads are slow)');
    expect(outputOf('get cache')).toContain('To end it: kubectl rollout-group resume shop/cache');
    // The turns without an action that follow an eviction do not hide it.
    expect(outputOf('get cache')).toMatch(/^ {2}evict pod (?:a-[01]|[bc]-[0-2]): done, \d+s ago/m);
    expect(outputOf('resume')).toContain('shop/cache resumed');
    const last = typed.findLast(({ line }) => line.includes('rollout-group status'));
    expect(last?.output).toMatch(/done updated=9\/9 available=9\/9\n$/);
    // The StatefulSets are written one after another, so the run may continue the run of the first.
    expect(outputOf('history')).toMatch(/ completed(?: +continues [0-9a-f]{10})?\s*$/m);
    expect(outputOf('events')).toContain('RolloutFinished');
  });

  it('refuses the plan once more, an approval of another group, and to shrink a zone', async () => {
    const settings = typedLines('Try it on a cluster').filter((line) => line.startsWith('export '));
    const again = await type([
      ...settings,
      'kubectl rollout-group apply next.plan --yes',
      'kubectl rollout-group restart cache --yes',
      'kubectl rollout-group status cache --for wave=canary -q',
      'kubectl rollout-group approve cache --context bob',
      'kubectl rollout-group scale cache --zone a --replicas 2 --yes',
    ]);
    expect(again.slice(settings.length).map(({ status }) => status)).toEqual([9, 0, 0, 5, 5]);
    expect(again.at(-2)?.output).toContain('bob may not approve or reject wave rest');
  });

  it('says that the agent died, how, and starts it again with a key', async () => {
    const [, pod = '', pid = '0', log] = await first.until(agentStart);
    process.kill(Number(pid), 'SIGKILL');
    await first.until(/^Press r to start it again, or run: kill -USR2 \d+$/m);
    expect(first.said()).toContain(`the agent ${pod} (pid ${pid}) ended with signal SIGKILL. The end of ${log}:\n  ts=`);
    first.child.stdin.write('r');
    const [, , next] = await first.until(new RegExp(`${agentStart.source}[^]*${agentStart.source}`, 'm')).then((found) => found.slice(3));
    expect(isAlive(Number(next))).toBe(true);
  });

  it('runs a second cluster next to the first, in which a version fails and is rolled back', async () => {
    const second = start('--break', '--ready', '1');
    await second.until(isReady);
    expect([existsSync('.cluster/kubeconfig'), existsSync('.cluster-2/kubeconfig')]).toEqual([true, true]);
    const failing = await type(typedLines('Try a version that fails'));
    expect(failing.map(({ status }) => status)).toEqual([0, 0, 7, 0, 0, 6]);
    expect(outputOf('explain', failing)).toContain('a-2 crashes (CrashLoopBackOff)');
    expect(outputOf('abort', failing)).toContain('return to their previous revision');
    expect(failing.at(-1)?.output).toContain('rolled back: aborted by admin (the canary crashes)');
    const views = await type([
      ...typedLines('Try a version that fails').filter((line) => line.startsWith('export ')),
      'kubectl rollout-group get cache',
      'kubectl rollout-group status cache --watch=false',
      'kubectl rollout-group explain cache',
    ]);
    for (const { line, output } of views.slice(-3)) {
      expect(output, line).toContain('the update revision is blocked, because it was rolled back: aborted by admin (the canary crashes)');
      expect(output, line).toContain('retry shop/cache');
    }
  });

  it('leaves no process and no folder after SIGTERM', async () => {
    const pids = clusters.flatMap((one) => [...one.said().matchAll(new RegExp(agentStart.source, 'gm'))].map((found) => Number(found[2])));
    expect(pids).toHaveLength(3);
    expect(await Promise.all(clusters.map((one) => one.stop()))).toEqual([0, 0]);
    expect([pids.filter(isAlive), existsSync('.cluster'), existsSync('.cluster-2')]).toEqual([[], false, false]);
  });
});
