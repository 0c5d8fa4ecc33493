// Reads and watches the directory of policy files, in which git-sync or a ConfigMap volume may swap symbolic links at any time.
import { createHash } from 'node:crypto';
import { readdir, readFile, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { watchDirectory } from '../../cluster/connection/process-env.ts';
import type { Timers } from '../../cluster/env.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { PolicyDirectory } from '../env.ts';

interface PolicyDirectoryOptions {
  readonly path: string;
  /** The interval of reads without a change event, in milliseconds. */
  readonly rereadMs: number;
  readonly timers: Timers;
}

type PolicyFiles = Awaited<ReturnType<PolicyDirectory['read']>>;

const fileLimit = 1000;
const byteLimit = 16 * 1024 * 1024;
const depthLimit = 8;
/** The most attempts to read a directory whose links are swapped during the read. */
const readLimit = 3;
/** The pause between a change event and the read, because files are often written one after the other. */
const settleMs = 200;

/** Opens the directory with its .yaml, .yml and .json files in all subfolders. Names that begin with a dot are ignored. */
export function openPolicyDirectory({ path, rereadMs, timers }: PolicyDirectoryOptions): PolicyDirectory {
  /** The digest of the last read, or its error. */
  let lastSeen: string | undefined;
  const read = async (): Promise<PolicyFiles> => {
    try {
      const files = await readAtOnce(path);
      lastSeen = digest(files);
      return files;
    } catch (error) {
      lastSeen = `unreadable: ${messageOf(error)}`;
      throw error;
    }
  };
  return {
    read,
    watch: (onChange) => {
      const watches: (() => void)[] = [];
      let isStopped = false;
      let cancelTimer = (): void => undefined;
      const rereadFiles = async (): Promise<void> => {
        const before = lastSeen;
        await read().catch(() => undefined);
        if (isStopped) return;
        await listen();
        planReread(rereadMs);
        if (before !== undefined && before !== lastSeen) onChange();
      };
      const planReread = (delayMs: number): void => {
        cancelTimer();
        if (!isStopped) cancelTimer = timers.after(delayMs, () => void rereadFiles());
      };
      /** Replaces the watches, because after a swap of links the path names another directory. */
      const listen = async (): Promise<void> => {
        for (const end of watches.splice(0)) end();
        const real = await realpath(path).catch(() => path);
        if (isStopped) return;
        for (const one of new Set([real, dirname(path)])) watches.push(watchDirectory(one, () => planReread(settleMs)));
      };
      // The first read is soon, because a watch does not report changes from before its start.
      void listen();
      planReread(Math.min(settleMs, rereadMs));
      return () => {
        isStopped = true;
        cancelTimer();
        for (const end of watches.splice(0)) end();
      };
    },
  };
}

/** Reads all files of one version of the directory. If a link is swapped during the read, all files are read again. */
async function readAtOnce(path: string): Promise<PolicyFiles> {
  for (let attempt = 1; ; attempt += 1) {
    const before = await stateOf(path);
    const files: { name: string; text: string }[] = [];
    try {
      await collect(before, { folder: '', depth: 0 }, files);
    } catch (error) {
      if (attempt < readLimit && (await stateOf(path)).mark !== before.mark) continue;
      throw error;
    }
    if ((await stateOf(path)).mark === before.mark || attempt === readLimit) {
      return files.sort((a, b) => (a.name < b.name ? -1 : 1));
    }
  }
}

interface DirectoryState {
  readonly root: string;
  /** A text that changes when the link at the path or the link `..data` is swapped. */
  readonly mark: string;
}

async function stateOf(path: string): Promise<DirectoryState> {
  const root = await realpath(path);
  // In a ConfigMap volume every file is a link through `..data`.
  const data = await readlink(join(root, '..data')).catch(() => '');
  return { root, mark: `${root}\n${data}` };
}

async function collect(
  state: DirectoryState,
  { folder, depth }: { readonly folder: string; readonly depth: number },
  files: { name: string; text: string }[],
): Promise<void> {
  if (depth > depthLimit) throw new Error(`the policy directory is nested deeper than ${depthLimit} folders`);
  for (const entry of await readdir(join(state.root, folder))) {
    if (entry.startsWith('.')) continue;
    const name = folder === '' ? entry : `${folder}/${entry}`;
    const found = await stat(join(state.root, name));
    if (found.isDirectory()) await collect(state, { folder: name, depth: depth + 1 }, files);
    if (!found.isFile() || !/\.(?:ya?ml|json)$/.test(entry)) continue;
    const bytes = files.reduce((sum, file) => sum + file.text.length, found.size);
    if (files.length >= fileLimit) throw new Error(`the policy directory has more than ${fileLimit} files`);
    if (bytes > byteLimit) throw new Error(`the policy directory has more than ${byteLimit / 1024 / 1024} MiB`);
    files.push({ name, text: await readFile(join(state.root, name), 'utf8') });
  }
}

function digest(files: PolicyFiles): string {
  const hash = createHash('sha256');
  for (const { name, text } of files) hash.update(`${name.length}:${name}${text.length}:${text}`);
  return hash.digest('hex');
}
