// Failures of sources.
import { exitCodes, Failure } from '../failure.ts';
import { maxFileCount } from './limits.ts';

/** Returns the failure for a path that cannot be read. */
export function unreadable(name: string, error: NodeJS.ErrnoException): Failure {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
    return new Failure({
      exitCode: exitCodes.notFound,
      what: `${name} does not exist`,
      todo: 'name a file, a directory, - or git:REV[:PATH]',
    });
  }
  const why = error.code === 'EACCES' ? 'the permission to read it is missing' : (error.code ?? error.message);
  return new Failure({ exitCode: exitCodes.notFound, what: `${name} cannot be read`, why });
}

/** Returns the failure for a source without files: most often a wrong path, which must not pass as "no findings". */
export function emptySource(shownAs: string): Failure {
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `${shownAs} holds no .yaml, .yml or .json file`,
    todo: 'name the directory that holds policies or manifests',
  });
}

/** Returns the failure for a source with too many files. */
export function tooMany(shownAs: string): Failure {
  return new Failure({
    exitCode: exitCodes.usage,
    what: `${shownAs} holds more than ${maxFileCount} files`,
    todo: 'name only the directories that hold policies and manifests',
  });
}

/** Returns the failure for a source above the size limit. */
export function tooLarge(name: string, bytes: number, limitBytes: number): Failure {
  return new Failure({
    exitCode: exitCodes.usage,
    what: `${name} is larger than ${limitBytes / 1_048_576} MiB`,
    why: `${bytes} bytes were found, and the whole source is read into memory`,
    todo: 'name only the files that hold policies and manifests',
  });
}

/** Returns the failure for `-` without piped input. */
export function nothingPiped(): Failure {
  return new Failure({
    exitCode: exitCodes.usage,
    what: 'standard input is a terminal, so - reads nothing',
    todo: 'pipe a file into the command, or name a file or directory',
  });
}
