// Reads revisions of a Git repository: blobs from the object database, not a checkout. So no link is followed, and no hook or filter runs.
import { type ExecFileException, execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getOrCreate, keptByObject } from '../../policies/values/map.ts';
import { type Failure, notFoundFailure, usageFailure } from '../failure.ts';
import {
  emptySource,
  type InputAccess,
  type InputFile,
  isDocumentFile,
  maxFileBytes,
  maxFileCount,
  maxTotalBytes,
  tooLarge,
  tooMany,
} from './input.ts';

interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly id: string;
  readonly bytes: number;
  readonly path: string;
}

/** Reads `git:REV[:PATH]`, PATH from the repository root. Throws Failure with exit code 10 for a missing path, a link or a submodule. */
export async function readGit(spec: string, access: InputAccess): Promise<readonly InputFile[]> {
  const { revision, path } = parseSpec(spec);
  const files = await readGitPath(spec, access);
  if (files === undefined) throw missing(`${spec} does not exist`, `revision ${revision} has no ${path}`);
  if (files.length === 0) throw emptySource(spec);
  return files;
}

/** The answers of Git by command. A command sees one state of the repository, so it asks each question once. */
const answersOf = keptByObject((_access: InputAccess) => new Map<string, Promise<unknown>>());

function askedOnce<Answer>(access: InputAccess, question: string, ask: () => Promise<Answer>): Promise<Answer> {
  return getOrCreate(answersOf(access), question, ask) as Promise<Answer>;
}

/** Reads as `readGit` does, but returns undefined for a missing path, and no file for a directory without documents. */
export async function readGitPath(spec: string, access: InputAccess): Promise<readonly InputFile[] | undefined> {
  const { revision, path } = parseSpec(spec);
  return await askedOnce(access, `files ${revision}:${path}`, () => readFiles(spec, access));
}

/** The result of `readAhead`: the files at a path by `TREE:PATH`, and the contents of blobs by their id. */
const readBefore = keptByObject((_access: InputAccess) => ({
  entries: new Map<string, readonly TreeEntry[]>(),
  contents: new Map<string, Buffer>(),
}));

/**
 * Reads several paths of a revision with one process for the list and one for the contents, because each process takes as long as a hundred
 * files. Reports nothing: `readGitPath` checks each path, and reads what this function leaves out.
 */
export async function readAhead(revision: string, paths: readonly string[], access: InputAccess): Promise<void> {
  const specs = paths.map((path) => parseSpec(`git:${revision}:${path}`).path);
  const tree = await resolveTree(parseSpec(`git:${revision}`).revision, access);
  const entries = await listTree(tree, specs, access);
  const { entries: known, contents } = readBefore(access);
  for (const path of specs) {
    const own = entries.filter((entry) => path === '' || entry.path === path || entry.path.startsWith(`${path}/`));
    known.set(`${tree}:${path}`, own);
  }
  const wanted = entries.filter(({ type, path, id }) => type === 'blob' && isDocumentFile(path) && !contents.has(id));
  const blobs = [...new Map(wanted.map((blob) => [blob.id, blob])).values()];
  const bytes = blobs.reduce((sum, blob) => sum + blob.bytes, 0);
  if (blobs.length > maxFileCount || bytes > maxTotalBytes) return;
  const read = await readBlobs(blobs, access);
  for (const [index, { id }] of blobs.entries()) contents.set(id, read[index] ?? Buffer.alloc(0));
}

async function readFiles(spec: string, access: InputAccess): Promise<readonly InputFile[] | undefined> {
  const { revision, path } = parseSpec(spec);
  const tree = await resolveTree(revision, access);
  const before = readBefore(access);
  const entries = before.entries.get(`${tree}:${path}`) ?? (await listTree(tree, [path], access));
  if (path !== '' && entries.length === 0) return undefined;
  const rootLength = path === '' ? 0 : path.length + 1;
  const wanted = entries.filter((entry) => entry.path === path || isDocumentFile(entry.path.slice(rootLength)));
  for (const entry of wanted) refuseLinks(entry, revision);
  const blobs = wanted.filter(({ type }) => type === 'blob').sort((a, b) => (a.path < b.path ? -1 : 1));
  checkLimits(blobs, spec);
  const unread = blobs.filter(({ id }) => !before.contents.has(id));
  const read = await readBlobs(unread, access);
  const contents = new Map(unread.map(({ id }, index) => [id, read[index]]));
  return blobs.map(({ id, path: name }) => {
    const content = before.contents.get(id) ?? contents.get(id);
    return { name: `git:${revision}:${name}`, text: content?.toString('utf8') ?? '' };
  });
}

/**
 * Writes the files of a revision at `paths` below `folder`, for tools that need files. Without paths, writes every file up to the limit: a
 * tool that needs a larger file fails. Leaves out links, submodules and names outside the folder.
 */
export async function exportTree(revision: string, paths: readonly string[], folder: string, access: InputAccess): Promise<void> {
  const tree = await resolveTree(parseSpec(`git:${revision}`).revision, access);
  const entries = await listTree(
    tree,
    paths.map((path) => parseSpec(`git:${revision}:${path}`).path),
    access,
  );
  const isInside = (path: string): boolean =>
    !path.split('/').some((part) => part === '' || part === '..' || part.toLowerCase() === '.git');
  const isExported = ({ mode, type, path, bytes }: TreeEntry): boolean =>
    type === 'blob' && mode !== '120000' && (paths.length > 0 || bytes <= maxFileBytes) && isInside(path);
  const blobs = entries.filter(isExported);
  checkLimits(blobs, `git:${revision}`);
  const contents = await readBlobs(blobs, access);
  for (const [index, { path }] of blobs.entries()) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), contents[index] ?? '');
  }
}

function parseSpec(spec: string): { readonly revision: string; readonly path: string } {
  const [, revision = '', rawPath = ''] = /^git:([^:]*)(?::(.*))?$/s.exec(spec) ?? [];
  const isRevision = revision !== '' && !/^-|\.\.|\p{Cc}|\s/u.test(revision);
  if (!isRevision) {
    throw usageFailure(`${spec} has no valid revision`, 'write git:REV or git:REV:PATH, such as git:main:policies');
  }
  const segments = rawPath.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..')) {
    throw usageFailure(`${spec} has a path outside the repository`, 'write the path from the root of the repository');
  }
  return { revision, path: segments.join('/') };
}

function resolveTree(revision: string, access: InputAccess): Promise<string> {
  return askedOnce(access, `tree ${revision}`, () => readTree(revision, access));
}

async function readTree(revision: string, access: InputAccess): Promise<string> {
  const result = await runGit(['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{tree}`], access);
  const id = result.stdout.toString('utf8').trim();
  if (result.status === 0 && /^[0-9a-f]{40,64}$/.test(id)) return id;
  // With --quiet Git prints nothing for an unknown revision, and a message for every other error.
  if (result.message === '')
    throw missing(`revision ${revision} does not exist`, `the repository of ${access.cwd} has no commit, branch or tag with this name`);
  throw missing(`revision ${revision} cannot be read`, result.message);
}

/** Lists the files at the paths; an empty path is the root, as are no paths. */
async function listTree(tree: string, paths: readonly string[], access: InputAccess): Promise<readonly TreeEntry[]> {
  const narrowed = paths.includes('') ? [] : paths;
  const result = await runGit(['ls-tree', '-r', '-z', '-l', '--full-tree', tree, '--', ...narrowed], access);
  if (result.status !== 0) throw missing('the files of the revision cannot be listed', result.message);
  const records = result.stdout.toString('utf8').split('\0').filter(Boolean);
  return records.map((record) => {
    const tab = record.indexOf('\t');
    const [mode = '', type = '', id = '', bytes = ''] = record.slice(0, tab).split(/ +/);
    return { mode, type, id, bytes: Number(bytes) || 0, path: record.slice(tab + 1) };
  });
}

/** Throws Failure for a link or submodule. A link may name any file of the machine, and a submodule another repository. */
function refuseLinks({ mode, path }: TreeEntry, revision: string): void {
  const what = mode === '120000' ? 'a symbolic link' : mode === '160000' ? 'a submodule' : undefined;
  if (what === undefined) return;
  throw missing(`git:${revision}:${path} is ${what}`, 'links and submodules are not followed in revisions', 'name the target file');
}

function checkLimits(blobs: readonly TreeEntry[], spec: string): void {
  if (blobs.length > maxFileCount) throw tooMany(spec);
  for (const { path, bytes } of blobs) if (bytes > maxFileBytes) throw tooLarge(path, bytes, maxFileBytes);
  const total = blobs.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > maxTotalBytes) throw tooLarge(spec, total, maxTotalBytes);
}

/** Reads blobs. `git cat-file --batch` prints for each object a line `ID TYPE SIZE`, then SIZE bytes and a line feed. */
async function readBlobs(blobs: readonly TreeEntry[], access: InputAccess): Promise<readonly Buffer[]> {
  if (blobs.length === 0) return [];
  const result = await runGit(['cat-file', '--batch'], access, blobs.map(({ id }) => `${id}\n`).join(''));
  let offset = 0;
  return blobs.map(({ id, path }) => {
    const lineEnd = result.stdout.indexOf(0x0a, offset);
    const [foundId, type, size] = result.stdout.toString('utf8', offset, lineEnd).split(' ');
    if (foundId !== id || type !== 'blob') throw missing(`${path} cannot be read`, 'the clone lacks it', 'git fetch --refetch --no-filter');
    const start = lineEnd + 1;
    offset = start + Number(size) + 1;
    return result.stdout.subarray(start, offset - 1);
  });
}

function missing(what: string, why: string, todo?: string): Failure {
  return notFoundFailure(what, { why, ...(todo === undefined ? {} : { todo }) });
}

const timeoutMs = 60_000;

/** The options that disable the network, hooks and replaced objects. */
const hardening = [
  '--no-pager',
  '--no-replace-objects',
  '--literal-pathspecs',
  ...['-c', 'protocol.allow=never'],
  ...['-c', 'core.hooksPath=/dev/null'],
  ...['-c', 'core.fsmonitor=false'],
];

/** The environment variables that git keeps: repository and configuration (safe.directory). Other GIT_ variables can name programs to run. */
const kept = new Set([
  'GIT_DIR',
  'GIT_COMMON_DIR',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_CEILING_DIRECTORIES',
  'GIT_DISCOVERY_ACROSS_FILESYSTEM',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
]);

/** Runs git with `input` on its standard input. `message` is the first line of its standard error, without `fatal:`. */
async function runGit(
  args: readonly string[],
  { cwd, env }: InputAccess,
  input = '',
): Promise<{ readonly status: number; readonly stdout: Buffer; readonly message: string }> {
  const options = { cwd, env: gitEnvironment(env), timeout: timeoutMs, maxBuffer: 2 * maxTotalBytes, encoding: 'buffer' } as const;
  const [error, stdout, stderr] = await new Promise<[ExecFileException | null, Buffer, Buffer]>((resolve) => {
    const child = execFile('git', [...hardening, ...args], options, (...result) => resolve(result));
    // Git may end before it has read all input. Its exit code then shows the cause.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
  if (error?.errno !== undefined) throw error.code === 'ENOENT' ? gitMissing() : error;
  // Without an exit code, git was stopped at a limit.
  if (error !== null && typeof error.code !== 'number') throw gitStopped(args[0] ?? '');
  const [message = ''] = stderr.toString('utf8').trim().split('\n');
  return { status: Number(error?.code ?? 0), stdout, message: message.replace(/^(?:fatal|error): /, '') };
}

function gitEnvironment(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || kept.has(name));
  return {
    ...Object.fromEntries(inherited),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_OPTIONAL_LOCKS: '0',
  };
}

function gitMissing(): Failure {
  return notFoundFailure('git is not installed, but a source starts with git:', {
    todo: 'install git, or name a file or directory',
  });
}

function gitStopped(command: string): Failure {
  return notFoundFailure(`git ${command} was stopped`, {
    why: `it ran longer than ${timeoutMs / 1000} seconds or answered more than ${(2 * maxTotalBytes) / 1_048_576} MiB`,
    todo: 'name a narrower path, as in git:main:policies',
  });
}
