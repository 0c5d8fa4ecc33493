// Reads files and directories: in a stable order, and never outside the root.
import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { exitCodes, Failure } from '../failure.ts';
import { emptySource, tooLarge, tooMany, unreadable } from './failures.ts';
import type { InputFile } from './input.ts';
import { maxDepth, maxFileCount, maxTotalBytes } from './limits.ts';
import { readLimited } from './stdin.ts';

/** Reports whether a file of a directory is read: by its extension, and not in hidden directories or node_modules. */
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
    bytes += text.length;
    if (bytes > maxTotalBytes) throw tooLarge(shownAs, bytes, maxTotalBytes);
    files.push({ name: shownPath(shownAs, path), text });
  }
  return files;
}

/** Reads one file, a pipe or a device as UTF-8. */
export async function readFile(path: string, shownAs: string): Promise<string> {
  try {
    return await readLimited(createReadStream(path), shownAs);
  } catch (error) {
    throw error instanceof Failure ? error : unreadable(shownAs, error as NodeJS.ErrnoException);
  }
}

/** Returns the paths below the root, with slashes, sorted. */
async function list(root: string, shownAs: string): Promise<readonly string[]> {
  const found: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      throw unreadable(shownPath(shownAs, folder ?? ''), error);
    });
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (isLeftOut(entry.name)) continue;
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

/** Mounted ConfigMaps contain links to files next to them. A link out of the root could show any file of the machine in an excerpt. */
async function withinRoot(root: string, path: string, shownAs: string): Promise<string> {
  const shown = shownPath(shownAs, path);
  const target = await realpath(join(root, path)).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(shown, error);
  });
  const fromRoot = relative(await realpath(root), target);
  if (fromRoot === '..' || fromRoot.startsWith(`..${sep}`)) {
    const what = `${shown} is a link out of ${shownAs}`;
    throw new Failure({ exitCode: exitCodes.notFound, what, todo: 'name the target of the link' });
  }
  // Reading a named pipe would wait for a writer.
  if (!(await stat(target)).isFile()) throw new Failure({ exitCode: exitCodes.notFound, what: `${shown} is not a regular file` });
  return path;
}

/** Returns the shown name of a file: the source as typed, with slashes and without `.` or `..`. */
export function shownPath(shownAs: string, path = ''): string {
  return join(shownAs, path).split(sep).join('/');
}
