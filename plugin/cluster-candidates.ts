// Caches the completion candidates of the cluster. If the cache is older than five seconds, loads the code that reads the cluster.
import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { tryParseJson } from '../policies/values/try-parse-json.ts';
import type { ConnectionFlags } from './connection.ts';

export type ClusterSubject = 'group' | 'namespace' | 'context' | 'zone' | 'wave' | 'gate' | 'rule' | 'request' | 'run' | 'pod' | 'revision';

export interface ClusterQuestion {
  readonly subject: ClusterSubject;
  readonly flags: ConnectionFlags;
  readonly group: string | undefined;
}

const cachedMs = 5_000;
/** The age up to which cached names are offered if the cluster does not answer before the deadline. */
const staleMs = 3_600_000;

/** Returns the sorted names; after an error or the deadline, those of the last hour or []. Never throws, and writes nothing to the terminal. */
export async function clusterCandidates(question: ClusterQuestion): Promise<readonly string[]> {
  const key = hash('sha256', JSON.stringify([question, process.env['KUBECONFIG'], process.cwd()])).slice(0, 32);
  const file = join(homedir(), '.kube', 'cache', 'rollout-group', `${key}.json`);
  try {
    const cached = readCached(file, cachedMs);
    if (cached !== undefined) return cached;
    const names = [...new Set(await (await import('./cluster-names.ts')).namesFor(question))].sort();
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(names), { mode: 0o600 });
    return names;
  } catch {
    return readCached(file, staleMs) ?? [];
  }
}

/** Returns the cached names, if they are not older than this; undefined also for an unreadable file. */
function readCached(file: string, maxAgeMs: number): readonly string[] | undefined {
  const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (age >= maxAgeMs) return undefined;
  const names = tryParseJson(readFileSync(file, 'utf8'));
  return Array.isArray(names) ? names : undefined;
}
