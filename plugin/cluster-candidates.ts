// Caches the completion candidates of the cluster for five seconds. If no answer is cached, loads the code that reads the cluster.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ConnectionFlags } from './connection.ts';

export type ClusterSubject = 'group' | 'namespace' | 'context' | 'zone' | 'wave' | 'gate' | 'rule' | 'request' | 'run' | 'pod' | 'revision';

export interface ClusterQuestion {
  readonly subject: ClusterSubject;
  readonly flags: ConnectionFlags;
  readonly group: string | undefined;
}

const cachedMs = 5_000;

/** Returns the sorted names, or an empty list after an error or the deadline. Never throws, and writes nothing to the terminal. */
export async function clusterCandidates(question: ClusterQuestion): Promise<readonly string[]> {
  const key = createHash('sha256')
    .update(JSON.stringify([question, process.env['KUBECONFIG'], process.cwd()]))
    .digest('hex')
    .slice(0, 32);
  const file = join(homedir(), '.kube', 'cache', 'rollout-group', `${key}.json`);
  try {
    const cached = readCached(file);
    if (cached !== undefined) return cached;
    const names = [...new Set(await (await import('./cluster-names.ts')).namesFor(question))].sort();
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(names), { mode: 0o600 });
    return names;
  } catch {
    return [];
  }
}

function readCached(file: string): readonly string[] | undefined {
  const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return age < cachedMs ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
