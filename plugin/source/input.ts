// Reads a source of policies and manifests: a file, a directory, standard input or a Git revision.
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { CommandContext } from '../context.ts';
import { unreadable } from './failures.ts';
import { readDirectory, readFile, shownPath } from './files.ts';

/** One file with the name under which findings quote it: as it was typed but without detours such as `./`, `-`, or `git:REV:path`. */
export interface InputFile {
  readonly name: string;
  readonly text: string;
}

export type InputAccess = Pick<CommandContext, 'cwd' | 'env' | 'readStdin'>;

/**
 * Reads one source: `-`, `git:REV[:PATH]`, a file of any name, or a directory with everything below it that ends in .yaml, .yml or .json, in
 * the order of names. Folders and files whose names start with a dot and node_modules are left out of directories.
 *
 * @throws Failure with exit code 10 when it does not exist or holds no such file, 3 when it is larger than the limits.
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
  // The same name as below its directory, so that a file which two sources name is known to be one.
  return found.isDirectory() ? readDirectory(path, spec) : [{ name: shownPath(spec), text: await readFile(path, spec) }];
}

/** Reads several sources, in their order; a file that two of them name is read once. */
export async function readInputs(specs: readonly string[], access: InputAccess): Promise<readonly InputFile[]> {
  const byName = new Map<string, InputFile>();
  for (const spec of specs) {
    for (const file of await readInput(spec, access)) byName.set(file.name, file);
  }
  return [...byName.values()];
}
