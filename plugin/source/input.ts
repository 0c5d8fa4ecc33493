// Reads a source of policies and manifests: a file, a directory, standard input or a Git revision.
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { CommandContext } from '../context.ts';
import { unreadable } from './failures.ts';
import { readDirectory, readFile, shownPath } from './files.ts';

/** A file with the name that findings quote: as typed without detours such as `./`, or `-`, or `git:REV:path`. */
export interface InputFile {
  readonly name: string;
  readonly text: string;
}

export type InputAccess = Pick<CommandContext, 'cwd' | 'env' | 'readStdin'>;

/**
 * Reads one source: `-`, `git:REV[:PATH]`, a file, or a directory with every .yaml, .yml and .json file below it, sorted by name. Leaves
 * out names that start with a dot and node_modules.
 *
 * @throws Failure with exit code 10 without such a file, 3 above the limits.
 */
export async function readInput(spec: string, access: InputAccess): Promise<readonly InputFile[]> {
  if (spec === '-') return [{ name: '-', text: await access.readStdin() }];
  if (spec.startsWith('git:')) {
    const { readGit } = await import('./git.ts');
    return readGit(spec, access);
  }
  const path = resolve(access.cwd, spec);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(spec, error);
  });
  // Equal to the name below its directory, so that a file in two sources is read once.
  return found.isDirectory() ? readDirectory(path, spec) : [{ name: shownPath(spec), text: await readFile(path, spec) }];
}

/** Reads several sources in order; a file in two of them is read once. */
export async function readInputs(specs: readonly string[], access: InputAccess): Promise<readonly InputFile[]> {
  const byName = new Map<string, InputFile>();
  for (const spec of specs) {
    for (const file of await readInput(spec, access)) byName.set(file.name, file);
  }
  return [...byName.values()];
}
