// URIs of sources, which forges match with the files of a repository.
import { isAbsolute, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Returns a relative reference for files of the work tree and of revisions, or a `file:` URI for absolute paths. */
export function sourceUri(name: string): string {
  const path = repositoryPath(name);
  return isAbsolute(path) ? pathToFileURL(path).href : path.split('/').map(encodeURIComponent).join('/');
}

/** Returns the path without `git:REV:` and leading `./`, or `stdin` for standard input. */
export function repositoryPath(name: string): string {
  if (name === '-') return 'stdin';
  return normalize(name.replace(/^git:[^:]*:/, '')).replaceAll('\\', '/');
}
