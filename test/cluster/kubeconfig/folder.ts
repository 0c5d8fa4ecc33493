// A folder with kubeconfig files for one test, and a process that sees it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ConnectionProcess } from '../../../cluster/kubeconfig/kubeconfig.ts';

export interface KubeconfigFolder {
  readonly path: (name: string) => string;
  /** Answers the path. Folders are made. */
  readonly write: (name: string, content: string | object, mode?: number) => string;
  /** The folder is home, with a service account in `account`; time stands still at 0 until `time` is changed. */
  readonly process: (env?: Readonly<Record<string, string>>, changes?: Partial<ConnectionProcess>) => ConnectionProcess;
  readonly time: { nowMs: number };
}

/** Removed when the test is over. */
export function kubeconfigFolder(): KubeconfigFolder {
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const time = { nowMs: 0 };
  const path = (name: string): string => join(folder, name);
  return {
    path,
    time,
    write: (name, content, mode = 0o600) => {
      mkdirSync(dirname(path(name)), { recursive: true });
      writeFileSync(path(name), typeof content === 'string' ? content : JSON.stringify(content), { mode });
      return path(name);
    },
    process: (env = {}, changes = {}) => ({
      env,
      homeDir: folder,
      serviceAccountDir: path('account'),
      isWindows: false,
      isTerminal: false,
      pluginStderr: 'inherit',
      readFile: (file) => readFile(file),
      clock: { nowMs: () => time.nowMs, monotonicMs: () => time.nowMs },
      ...changes,
    }),
  };
}

interface Parts {
  readonly name?: string;
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly current?: string | false;
}

/** A kubeconfig with one cluster, user and context of one name. */
export function kubeconfig({ name = 'main', cluster, user, context, current }: Parts = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: `https://${name}.example:6443`, ...cluster } }],
    users: [{ name, user: { token: `token of ${name}`.replaceAll(' ', '-'), ...user } }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
    ...(current !== false && { 'current-context': current ?? name }),
  };
}
