// Finds the pull or merge request of a comment: in flags, or in the documented environment of GitHub Actions and GitLab CI.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { CommandContext } from '../context.ts';
import { exitCodes, Failure, usageFailure } from '../failure.ts';
import { fieldOf, textAt } from './github.ts';

export interface TargetFlags {
  readonly forge?: 'github' | 'gitlab';
  readonly api?: string;
  readonly repository?: string;
  readonly pullRequest?: string;
  readonly commit?: string;
}

export interface Target {
  readonly forge: 'github' | 'gitlab';
  readonly api: string;
  /** OWNER/NAME at GitHub; the id or the path of the project at GitLab. */
  readonly repository: string;
  /** The pull request; undefined if only its head is known. */
  readonly number: string | undefined;
  /** The head of a pull request as OWNER:BRANCH, of an event workflow_run. */
  readonly head?: string;
  /** The commit that the comment describes; undefined if neither a flag nor the environment names it. */
  readonly commit: string | undefined;
  readonly token: string;
  /** The page of the CI job; undefined outside of CI. */
  readonly jobUrl: string | undefined;
}

type Env = CommandContext['env'];

/** Returns the target. Throws a Failure that names the missing flag or variable. */
export async function targetOf({ env, cwd }: Pick<CommandContext, 'env' | 'cwd'>, flags: TargetFlags): Promise<Target> {
  const forge = flags.forge ?? (env['GITHUB_REPOSITORY'] ? 'github' : env['CI_PROJECT_ID'] ? 'gitlab' : undefined);
  if (forge === undefined)
    throw usageFailure(
      'it is unknown whether to use GitHub or GitLab: this is no job of GitHub Actions or GitLab CI',
      'give --forge github or --forge gitlab',
    );
  const found = forge === 'github' ? await ofGitHub(env, cwd, flags.pullRequest) : ofGitLab(env);
  const { api = found.api, repository = found.repository, pullRequest: number = found.number, commit = found.commit } = flags;
  const names = forge === 'github' ? /^(?!\.+\/|.*\/\.+$)[\w.-]+\/[\w.-]+$/ : /^[\w./-]+$/;
  if (!names.test(repository ?? '')) throw usageFailure('no repository is named', 'give --repository OWNER/NAME');
  if (number === undefined ? found.head === undefined : !/^[1-9]\d{0,9}$/.test(number))
    throw usageFailure('no pull request is named, and this job does not belong to one', 'give --pull-request NUMBER');
  if (commit !== undefined && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(commit))
    throw usageFailure('the commit is not a full id of 40 or 64 hexadecimal digits', 'give --commit, for example $(git rev-parse HEAD)');
  return { ...found, forge, api, repository: repository ?? '', number, commit, token: tokenOf(forge, env) };
}

type Found = Pick<Target, 'api' | 'number' | 'head' | 'commit' | 'jobUrl'> & { readonly repository: string | undefined };

async function ofGitHub(env: Env, cwd: string, given: string | undefined): Promise<Found> {
  const event = env['GITHUB_EVENT_PATH'] ? await readEvent(resolve(cwd, env['GITHUB_EVENT_PATH'])) : undefined;
  const [pull, run] = [fieldOf(event, 'pull_request'), fieldOf(event, 'workflow_run')];
  const number = fieldOf(pull, 'number') ?? /^refs\/pull\/(\d+)\//.exec(env['GITHUB_REF'] ?? '')?.[1];
  const commit = textAt(pull, 'head', 'sha') || textAt(run, 'head_sha');
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: id } = env;
  return {
    api: env['GITHUB_API_URL'] || 'https://api.github.com',
    repository,
    number: number === undefined ? undefined : String(number),
    // The list of pull requests of the event is empty for a fork, so the pull request is found by its head.
    ...(run !== undefined &&
      given === undefined && { head: `${textAt(run, 'head_repository', 'owner', 'login')}:${textAt(run, 'head_branch')}` }),
    commit: commit === '' ? undefined : commit,
    jobUrl: server && id ? `${server}/${repository}/actions/runs/${id}` : undefined,
  };
}

async function readEvent(path: string): Promise<unknown> {
  try {
    return tryParseJson(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function ofGitLab(env: Env): Found {
  return {
    api: env['CI_API_V4_URL'] || 'https://gitlab.com/api/v4',
    repository: env['CI_PROJECT_ID'],
    number: env['CI_MERGE_REQUEST_IID'] || undefined,
    // The commit of a pipeline for merged results is on no branch.
    commit: env['CI_MERGE_REQUEST_SOURCE_BRANCH_SHA'] || env['CI_COMMIT_SHA'] || undefined,
    jobUrl: env['CI_JOB_URL'],
  };
}

function tokenOf(forge: Target['forge'], env: Env): string {
  const variable = forge === 'github' ? 'GITHUB_TOKEN' : 'GITLAB_TOKEN';
  const token = env[variable]?.trim() ?? '';
  if (token !== '') return token;
  const isJobToken = forge === 'gitlab' && Boolean(env['CI_JOB_TOKEN']);
  throw new Failure({
    exitCode: exitCodes.notAllowed,
    what: `${variable} is not set`,
    ...(isJobToken && { why: 'CI_JOB_TOKEN can write neither notes nor commit statuses' }),
    todo: `set ${variable} in the environment: docs pull-requests`,
  });
}
