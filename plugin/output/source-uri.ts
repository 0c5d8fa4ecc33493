// The names of sources as addresses that forges can match with the files of a repository.
import { isAbsolute, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A relative reference for files of the work tree and of revisions, `file:` for absolute paths. */
export function sourceUri(name: string): string {
  const path = repositoryPath(name);
  return isAbsolute(path) ? pathToFileURL(path).href : path.split('/').map(encodeURIComponent).join('/');
}

/** The path without `git:REV:` and without leading `./`; `stdin` for standard input. */
export function repositoryPath(name: string): string {
  if (name === '-') return 'stdin';
  return normalize(name.replace(/^git:[^:]*:/, '')).replaceAll('\\', '/');
}
