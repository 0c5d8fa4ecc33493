// The verb comment: keeps one comment per environment on a pull or merge request, and sets commit statuses.
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { type CommentOutcome, type CommentText, type MarkedEnvironment, markedIn, readComment } from '../forge/comment-text.ts';
import { type Forge, postComment } from '../forge/forge.ts';
import { createForgeHttp, type ForgeHttp } from '../forge/forge-http.ts';
import { gitHub, gitHubCharacters, gitHubHeaders, gitHubPermissionHint, pullRequestsAt } from '../forge/github.ts';
import { gitLab, gitLabCharacters, gitLabHeaders, gitLabPermissionHint } from '../forge/gitlab.ts';
import { type Target, type TargetFlags, targetOf } from '../forge/target.ts';
import { readInputs } from '../source/input.ts';

export interface CommentOptions extends TargetFlags {
  readonly files: readonly string[];
  readonly environment?: string;
  readonly status?: boolean;
}

const descriptions: Readonly<Record<CommentOutcome, string>> = {
  complete: 'The plan completes',
  unchanged: 'No rollout',
  waits: 'The plan waits, for example for an approval',
  blocked: 'The rollout is blocked, or a check of the review fails',
};

export async function run(context: CommandContext, options: CommentOptions): Promise<ExitCode> {
  const target = await targetOf(context, options);
  const maxLength = target.forge === 'github' ? gitHubCharacters : gitLabCharacters;
  const files = await readInputs(options.files, context);
  const comments = files.map(({ name, text }) => readComment(name, text, maxLength, options.environment));
  const names = comments.flatMap(({ environments }) => environments.map(({ name }) => name));
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) throw usageFailure(`the environment ${repeated} is named twice`, 'give only one file for each environment');
  if (options.status === true) checkStatus(target, comments);
  const http = forgeHttp(context, target);
  try {
    await post(context, options, { http, target, comments });
  } finally {
    http.close();
  }
  return exitCodes.done;
}

function checkStatus({ commit }: Target, comments: readonly CommentText[]): void {
  if (commit === undefined) throw usageFailure('--status needs the commit of the plan', 'give --commit, for example $(git rev-parse HEAD)');
  const silent = comments.flatMap(({ environments }) => environments).find(({ outcome }) => outcome === undefined);
  if (silent !== undefined)
    throw usageFailure(`the file of ${silent.name} has no outcome for --status`, 'make the file again with this version of the plugin');
}

interface Posting {
  readonly http: ForgeHttp;
  readonly target: Target;
  readonly comments: readonly CommentText[];
}

async function post(context: CommandContext, { status = false }: CommentOptions, { http, target, comments }: Posting): Promise<void> {
  const number = target.number ?? (await numberAtHead(http, target));
  const forge = forgeOf(http, target, number ?? '0');
  const head = number === undefined ? undefined : await forge.headCommit();
  const request = target.forge === 'github' ? 'pull request' : 'merge request';
  const isCurrent = head !== undefined && (target.commit === undefined || target.commit === head);
  if (!isCurrent) context.stderr.write(`note: the ${request} is closed or has a newer commit than the file; its comment stays as it is\n`);
  for (const { environments, body } of comments) {
    const names = environments.map(({ name }) => name);
    if (isCurrent) {
      const posted = await postComment(forge, body, (text) => markedIn(text).some(({ name }) => names.includes(name)));
      context.stdout.write(`${names.join(', ')}: comment ${posted} on ${request} ${number}\n`);
    }
    for (const environment of status ? environments : []) await setStatus(context, { forge, target }, environment);
  }
}

async function setStatus(
  { stdout }: CommandContext,
  { forge, target: { commit, jobUrl } }: { readonly forge: Forge; readonly target: Target },
  { name, outcome }: MarkedEnvironment,
): Promise<void> {
  if (commit === undefined || outcome === undefined) return;
  const [status, description] = [`rollout-group/${name}`, descriptions[outcome]];
  await forge.setStatus({ commit, context: status, outcome, description, ...(jobUrl !== undefined && { targetUrl: jobUrl }) });
  stdout.write(`${name}: commit status set on ${commit} (${outcome})\n`);
}

/** Returns the open pull request whose head the target names; undefined if its head has moved or it is closed. */
async function numberAtHead(http: ForgeHttp, { repository, head = '', commit = '' }: Target): Promise<string | undefined> {
  const numbers = await pullRequestsAt(http, repository, head, commit);
  if (numbers.length > 1)
    throw usageFailure(`several pull requests have the commit ${commit}: ${numbers.join(', ')}`, 'choose one with --pull-request');
  return numbers[0];
}

function forgeOf(http: ForgeHttp, { forge, repository }: Target, number: string): Forge {
  return forge === 'github' ? gitHub(http, repository, number) : gitLab(http, repository, number);
}

function forgeHttp({ env, nowMs, stderr, verbosity }: CommandContext, { forge, api, token }: Target): ForgeHttp {
  const note = (text: string): void => stderr.write(`note: ${text}\n`);
  const trace = (text: string): void => stderr.write(`${text}\n`);
  const common = { api, token, env, nowMs, note, ...(verbosity < 6 ? {} : { trace }) };
  return createForgeHttp(
    forge === 'github'
      ? { ...common, name: 'GitHub', headers: gitHubHeaders(token), permissionHint: gitHubPermissionHint }
      : { ...common, name: 'GitLab', headers: gitLabHeaders(token), permissionHint: gitLabPermissionHint },
  );
}
