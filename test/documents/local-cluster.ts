// Starts the cluster of `npm run cluster` as its terminal shows it.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { eventually } from '../control-plane/webhook.ts';

export interface LocalCluster {
  readonly child: ChildProcessWithoutNullStreams;
  readonly said: () => string;
  /** Waits until the cluster says something that matches, also before the call. */
  readonly until: (words: RegExp) => Promise<RegExpMatchArray>;
  /** Sends SIGTERM. Returns the exit code. */
  readonly stop: () => Promise<number | null>;
}

/** Matches what the cluster says about an agent: its pod, its process id and its log. */
export const agentStart = /^the agent (\S+) runs: pid (\d+), log (\S+)$/m;

/** Runs the script of package.json as npm does, without its build, which would replace the executables of other suites. */
export async function startCluster(words: string): Promise<LocalCluster> {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
  const child = spawn('sh', ['-c', `${scripts.cluster} --ready 1 ${words}`], { stdio: 'pipe' });
  let said = '';
  const ended = new Promise<number | null>((settle) => child.on('close', settle));
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  const cluster: LocalCluster = {
    child,
    said: () => said,
    until: async (expected) => {
      const found = await eventually(
        `${expected}`,
        async () => expected.exec(said) ?? child.exitCode ?? said,
        (one) => typeof one !== 'string',
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
  await cluster.until(/^r starts an agent/m);
  return cluster;
}

/** Returns the file that a cluster named when it was ready. */
export function kubeconfigOf({ said }: LocalCluster): string {
  return /KUBECONFIG="(.*)"/.exec(said())?.[1] ?? '';
}
