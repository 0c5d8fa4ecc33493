// The REST API of GitHub and of GitHub Enterprise: comments on a pull request, and commit statuses.
import { isRecord } from '../../policies/values/is-record.ts';
import type { CommentOutcome } from './comment-text.ts';
import type { Comment, Forge } from './forge.ts';
import type { ForgeHttp } from './forge-http.ts';

/** The limit of GitHub for a comment, in characters. */
export const gitHubCharacters = 65_536;

export const gitHubHeaders = (token: string): Readonly<Record<string, string>> => ({
  Authorization: `Bearer ${token}`,
  Accept: 'application/vnd.github+json',
  'X-GitHub-Api-Version': '2022-11-28',
});

export const gitHubPermissionHint =
  'give the job `permissions: pull-requests: write`, and `statuses: write` for --status. The token of a pull request from a fork can only read: docs pull-requests';

const states: Readonly<Record<CommentOutcome, string>> = {
  complete: 'success',
  unchanged: 'success',
  blocked: 'failure',
  waits: 'pending',
};

/** Returns the pull request `number` of the repository OWNER/NAME. */
export function gitHub(http: ForgeHttp, repository: string, number: string): Forge {
  const repo = `/repos/${repository}`;
  const of = `pull request ${number} of ${repository}`;
  return {
    headCommit: async () => {
      const { value } = await http.send({ method: 'GET', path: `${repo}/pulls/${number}`, intent: `read ${of}` });
      return textAt(value, 'state') === 'open' ? textAt(value, 'head', 'sha') : undefined;
    },
    ownComments: async () => {
      const isOwn = await authorTest(http);
      const intent = `read the comments on ${of}`;
      const listed = await http.list({ path: `${repo}/issues/${number}/comments?per_page=100`, intent });
      return listed.filter(isOwn).flatMap(commentOf);
    },
    create: async (body) => {
      const path = `${repo}/issues/${number}/comments`;
      const { value } = await http.send({ method: 'POST', path, body: { body }, intent: `create a comment on ${of}` });
      return { id: Number(fieldOf(value, 'id')), body };
    },
    update: async (id, body) => {
      const path = `${repo}/issues/comments/${id}`;
      return (
        (await http.send({ method: 'PATCH', path, body: { body }, intent: `update a comment on ${of}`, accepts: [404] })).status !== 404
      );
    },
    remove: async (id) => {
      const path = `${repo}/issues/comments/${id}`;
      await http.send({ method: 'DELETE', path, intent: `delete a second comment on ${of}`, accepts: [404] });
    },
    setStatus: async ({ commit, context, outcome, description, targetUrl }) => {
      const body = { state: states[outcome], context, description, ...(targetUrl !== undefined && { target_url: targetUrl }) };
      const intent = `set the status ${context} of commit ${commit}`;
      await http.send({ method: 'POST', path: `${repo}/statuses/${commit}`, body, intent, isRepeatable: true });
    },
  };
}

/** Returns the numbers of the open pull requests of the repository whose latest commit is `commit`. `head` is OWNER:BRANCH. */
export async function pullRequestsAt(http: ForgeHttp, repository: string, head: string, commit: string): Promise<readonly string[]> {
  const path = `/repos/${repository}/pulls?state=open&per_page=100&head=${encodeURIComponent(head)}`;
  const listed = await http.list({ path, intent: `read the pull requests of ${repository}` });
  return listed.filter((one) => textAt(one, 'head', 'sha') === commit).map((one) => String(fieldOf(one, 'number')));
}

/** Returns a test for comments of the owner of the token. GitHub does not tell an app, such as that of a job, its login: it is a bot. */
async function authorTest(http: ForgeHttp): Promise<(comment: unknown) => boolean> {
  const { status, value } = await http.send({ method: 'GET', path: '/user', intent: 'read the user of the token', accepts: [403, 404] });
  const login = status === 200 ? textAt(value, 'login') : undefined;
  return (comment) => (login === undefined ? textAt(comment, 'user', 'type') === 'Bot' : textAt(comment, 'user', 'login') === login);
}

/** Returns an item of a list as a comment, or an empty list for anything else. */
export function commentOf(item: unknown): readonly Comment[] {
  const [id, body] = [fieldOf(item, 'id'), fieldOf(item, 'body')];
  return typeof id === 'number' && typeof body === 'string' ? [{ id, body }] : [];
}

export function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

/** Returns the text at the end of a path of fields; empty if there is no text. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = path.reduce(fieldOf, value);
  return typeof found === 'string' ? found : '';
}
