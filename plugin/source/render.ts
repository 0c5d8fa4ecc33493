// Renders directories of a revision with kustomize or helm. The files of the revision are written into a temporary folder, without a checkout.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { cut } from '../../policies/text/shorten.ts';
import { exitCodes, Failure, notFoundFailure, usageFailure } from '../failure.ts';
import type { Environment } from './environments.ts';
import { exportTree, readGit, readGitPath } from './git.ts';
import { type InputAccess, type InputFile, maxFileBytes } from './input.ts';

type Tool = 'kustomize' | 'helm';

type ChartSettings = Pick<Environment, 'values' | 'release' | 'namespace'>;

const timeoutMs = 60_000;
const stopped = `it ran longer than ${timeoutMs / 1000} seconds or wrote more than ${maxFileBytes / 1_048_576} MiB`;

/** Reads directories of revisions, and renders those with a kustomization.yaml or a Chart.yaml. */
export class Renderer {
  readonly #access: InputAccess;
  readonly #folders: Map<string, Promise<string>> = new Map();
  #isClosed = false;

  constructor(access: InputAccess) {
    this.#access = access;
  }

  /** Returns the documents of a path; undefined if the revision lacks the path. Renders a chart with the values of the environment. */
  async read(revision: string, path: string, { values, release, namespace }: ChartSettings): Promise<readonly InputFile[] | undefined> {
    const files = await readGitPath(`git:${revision}:${path}`, this.#access);
    const tool = toolOf(files ?? [], revision, path);
    if (tool === undefined) return files;
    for (const file of tool === 'helm' ? values : []) await this.#requireValues(revision, file);
    // A kustomization can name files in each directory of the repository, but a chart only its own.
    const folder = await this.#exported(revision, tool === 'helm' ? [path, ...values] : []);
    const directory = join(folder, path);
    const flags = [
      ...values.flatMap((file) => ['--values', join(folder, file)]),
      ...(namespace === undefined ? [] : ['--namespace', namespace]),
    ];
    const args = tool === 'kustomize' ? ['build', directory] : ['template', ...flags, release ?? 'release-name', directory];
    const text = await this.#run(tool, args, { folder, revision, path });
    // The places of findings are lines of the rendered text, not of a file in the repository.
    return [{ name: `git:${revision}:${path}/rendered.yaml`, text }];
  }

  /** Removes the temporary folders. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const folders = await Promise.allSettled(this.#folders.values());
    for (const folder of folders) if (folder.status === 'fulfilled') await rm(folder.value, { recursive: true, force: true });
  }

  /** Throws Failure unless the revision has the file, not as a link or a directory. helm splits the value of its flag at commas. */
  async #requireValues(revision: string, file: string): Promise<void> {
    const spec = `git:${revision}:${file}`;
    const [found] = await readGit(spec, this.#access);
    if (found?.name !== `git:${revision}:${posix.normalize(file)}`) throw notFoundFailure(`${spec} is not a file`);
    if (/[,"\p{Cc}]/u.test(file)) throw usageFailure(`${spec} has a comma, a quote or a control character`, 'rename the values file');
  }

  async #exported(revision: string, paths: readonly string[]): Promise<string> {
    // After the failure of one side of a review, the other side may still be reading.
    if (this.#isClosed) throw new Error('the renderer is closed');
    const key = [revision, ...paths].join('\0');
    const known = this.#folders.get(key) ?? exportTo(revision, paths, this.#access);
    this.#folders.set(key, known);
    return known;
  }

  async #run(
    tool: Tool,
    args: readonly string[],
    { folder, revision, path }: { readonly folder: string; readonly revision: string; readonly path: string },
  ): Promise<string> {
    const { env, cwd } = this.#access;
    const options = { cwd, env: toolEnvironment(env), timeout: timeoutMs, maxBuffer: maxFileBytes, encoding: 'utf8' } as const;
    return new Promise((resolve, reject) => {
      execFile(tool, args, options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else if (error.code === 'ENOENT') reject(toolMissing(tool, path));
        // Without an exit code, the tool was stopped at a limit.
        else reject(toolFailed(tool, `git:${revision}:${path}`, typeof error.code === 'number' ? causeIn(stderr, folder) : stopped));
      });
    });
  }
}

async function exportTo(revision: string, paths: readonly string[], access: InputAccess): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rollout-group-review-'));
  try {
    await exportTree(revision, paths, folder, access);
    return folder;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

function toolOf(files: readonly InputFile[], revision: string, path: string): Tool | undefined {
  const has = (name: string): boolean => files.some((file) => file.name === `git:${revision}:${posix.join(path, name)}`);
  if (has('kustomization.yaml') || has('kustomization.yml')) return 'kustomize';
  return has('Chart.yaml') ? 'helm' : undefined;
}

/** Returns the environment of a tool: without variables that name programs or credentials, plugins of helm, and repositories of Git. */
function toolEnvironment(env: InputAccess['env']): NodeJS.ProcessEnv {
  return { PATH: env['PATH'], HOME: env['HOME'], LC_ALL: 'C', GIT_ALLOW_PROTOCOL: 'none', HELM_NO_PLUGINS: '1' };
}

function toolMissing(tool: Tool, what: string): Failure {
  return notFoundFailure(`${tool} is not installed, but ${what} must be rendered`, {
    todo: `install ${tool}, or commit the rendered manifests and name their directory`,
  });
}

const longestCause = 600;

/**
 * Returns the error that a tool wrote, in one line, with paths from the root of the repository. Leaves out warnings, hints on flags, and
 * control characters, because a template can write any text.
 */
function causeIn(stderr: string, folder: string): string {
  const [, text = stderr] = /^Error: (.*)/ms.exec(stderr) ?? [];
  const cause = text.replaceAll(`${folder}/`, '').replace(/^Use --debug flag .*/m, '');
  return cut(cause.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim(), longestCause);
}

function toolFailed(tool: Tool, what: string, why: string): Failure {
  return new Failure({ exitCode: exitCodes.findings, what: `${tool} could not render ${what}`, why });
}
