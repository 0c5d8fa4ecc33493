// Reads a source of policies and manifests within size limits: a file, a directory, standard input or a Git revision.
import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import type { CommandContext } from '../context.ts';
import { exitCodes, Failure, notFoundFailure, usageFailure } from '../failure.ts';

/** A file with the name that findings quote: the path as typed, but without `./`; or `-`, or `git:REV:path`. */
export interface InputFile {
  readonly name: string;
  readonly text: string;
}

export type InputAccess = Pick<CommandContext, 'cwd' | 'env' | 'readStdin'>;

/**
 * Reads `-`, `git:REV[:PATH]`, a file, or the .yaml, .yml and .json files below a directory, sorted. Leaves out node_modules and names that
 * start with a dot. Throws Failure with exit code 10 if there is no file, 3 above the limits.
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
  // A file has the same name if its directory is read. So `readInputs` returns a file in two sources once.
  return found.isDirectory() ? readDirectory(path, spec) : [{ name: shownPath(spec), text: await readFile(path, spec) }];
}

/** Reads several sources in order. Returns a file in two sources once. */
export async function readInputs(specs: readonly string[], access: InputAccess): Promise<readonly InputFile[]> {
  const byName = new Map<string, InputFile>();
  for (const spec of specs) {
    for (const file of await readInput(spec, access)) byName.set(file.name, file);
  }
  return [...byName.values()];
}

/** Reports whether a file of a directory is read: it has a known extension, and no part of its path is hidden or node_modules. */
export function isDocumentFile(path: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(path) && !path.split('/').some(isLeftOut);
}

/** Reads every document file below `root`. `shownAs` is the directory as typed. */
export async function readDirectory(root: string, shownAs: string): Promise<readonly InputFile[]> {
  const paths = await list(root, shownAs);
  if (paths.length === 0) throw emptySource(shownAs);
  const files: InputFile[] = [];
  let bytes = 0;
  for (const path of paths) {
    const text = await readFile(join(root, path), shownPath(shownAs, path));
    bytes += Buffer.byteLength(text);
    if (bytes > maxTotalBytes) throw tooLarge(shownAs, bytes, maxTotalBytes);
    files.push({ name: shownPath(shownAs, path), text });
  }
  return files;
}

export async function readFile(path: string, shownAs: string): Promise<string> {
  try {
    return await readLimited(createReadStream(path), shownAs);
  } catch (error) {
    throw error instanceof Failure ? error : unreadable(shownAs, error as NodeJS.ErrnoException);
  }
}

async function list(root: string, shownAs: string): Promise<readonly string[]> {
  const found: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      throw unreadable(shownPath(shownAs, folder), error);
    });
    for (const entry of entries.filter(({ name }) => !isLeftOut(name))) {
      const path = join(folder, entry.name).split(sep).join('/');
      if (entry.isDirectory()) folders.push(withinDepth(path, shownAs));
      else if (isDocumentFile(entry.name)) found.push(entry.isFile() ? path : await withinRoot(root, path, shownAs));
    }
    if (found.length > maxFileCount) throw tooMany(shownAs);
  }
  return found.sort();
}

function isLeftOut(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules';
}

function withinDepth(path: string, shownAs: string): string {
  if (path.split('/').length <= maxDepth) return path;
  throw new Failure({ exitCode: exitCodes.usage, what: `${shownAs} has folders more than ${maxDepth} deep` });
}

/** Accepts links to files below the root, as in mounted ConfigMaps. Other links could show any file of the machine in an excerpt. */
async function withinRoot(root: string, path: string, shownAs: string): Promise<string> {
  const shown = shownPath(shownAs, path);
  const target = await realpath(join(root, path)).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(shown, error);
  });
  const fromRoot = relative(await realpath(root), target);
  if (fromRoot === '..' || fromRoot.startsWith(`..${sep}`)) {
    throw notFoundFailure(`${shown} is a link out of ${shownAs}`, { todo: 'name the target of the link' });
  }
  // Reading a named pipe would wait for a writer.
  if (!(await stat(target)).isFile()) throw notFoundFailure(`${shown} is not a regular file`);
  return path;
}

/** Returns the shown name of a file: the source as typed and the path below it, normalized and with slashes. */
export function shownPath(shownAs: string, path = ''): string {
  return join(shownAs, path).split(sep).join('/');
}

export function unreadable(name: string, error: NodeJS.ErrnoException): Failure {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
    return notFoundFailure(`${name} does not exist`, {
      todo: 'name a file, a directory, - or git:REV[:PATH]',
    });
  }
  const why = error.code === 'EACCES' ? 'the permission to read it is missing' : (error.code ?? error.message);
  return notFoundFailure(`${name} cannot be read`, { why });
}

/** Returns the failure for a source without files: most often a wrong path, which must not pass as "no findings". */
export function emptySource(shownAs: string): Failure {
  return notFoundFailure(`${shownAs} holds no .yaml, .yml or .json file`, {
    todo: 'name the directory that holds policies or manifests',
  });
}

export function tooMany(shownAs: string): Failure {
  return usageFailure(`${shownAs} holds more than ${maxFileCount} files`, 'name only the directories that hold policies and manifests');
}

export function tooLarge(name: string, bytes: number, limitBytes: number): Failure {
  return new Failure({
    exitCode: exitCodes.usage,
    what: `${name} is larger than ${limitBytes / 1_048_576} MiB`,
    why: `${bytes} bytes were found, and the whole source is read into memory`,
    todo: 'name only the files that hold policies and manifests',
  });
}

/** The maximum size of a file in bytes. Kubernetes stores objects of up to 1.5 MiB, and a rendered chart has many objects. */
export const maxFileBytes = 16 * 1_048_576;

export const maxTotalBytes = 128 * 1_048_576;

export const maxFileCount = 20_000;

export const maxDepth = 64;

/** Returns a reader that waits for standard input on its first call and returns the same text on every call. */
export function readStandardInput(stdin: Readable & { readonly isTTY?: boolean }): () => Promise<string> {
  let text: Promise<string> | undefined;
  return () => {
    text ??= stdin.isTTY
      ? Promise.reject(
          usageFailure('standard input is a terminal, so - reads nothing', 'pipe a file into the command, or name a file or directory'),
        )
      : readLimited(stdin, 'standard input');
    return text;
  };
}

export async function readLimited(stream: Readable, name: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxFileBytes) throw tooLarge(name, bytes, maxFileBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
