// The REST API of GitLab: notes of a merge request, and commit statuses.
import type { CommentOutcome } from './comment-text.ts';
import type { Forge } from './forge.ts';
import type { ForgeHttp } from './forge-http.ts';
import { commentOf, fieldOf, textAt } from './github.ts';

/** The limit of GitLab for a note, in characters. */
export const gitLabCharacters = 1_000_000;

export const gitLabHeaders = (token: string): Readonly<Record<string, string>> => ({ 'PRIVATE-TOKEN': token });

export const gitLabPermissionHint =
  'give GITLAB_TOKEN the scope api and the role Developer, for example as a project access token: docs pull-requests';

const states: Readonly<Record<CommentOutcome, string>> = { complete: 'success', unchanged: 'success', blocked: 'failed', waits: 'pending' };

/** Returns the merge request with the internal id `number` of a project, which is an id or a path. */
export function gitLab(http: ForgeHttp, project: string, number: string): Forge {
  const base = `/projects/${encodeURIComponent(project)}`;
  const notes = `${base}/merge_requests/${number}/notes`;
  const of = `merge request ${number} of project ${project}`;
  return {
    headCommit: async () => {
      const { value } = await http.send({ method: 'GET', path: `${base}/merge_requests/${number}`, intent: `read ${of}` });
      return textAt(value, 'state') === 'opened' ? textAt(value, 'sha') : undefined;
    },
    ownComments: async () => {
      const { value } = await http.send({ method: 'GET', path: '/user', intent: 'read the user of the token' });
      const intent = `read the comments on ${of}`;
      const listed = await http.list({ path: `${notes}?sort=asc&order_by=created_at&per_page=100`, intent });
      const isOwn = (note: unknown): boolean => textAt(note, 'author', 'username') === textAt(value, 'username');
      return listed.filter((note) => isOwn(note) && fieldOf(note, 'system') !== true).flatMap(commentOf);
    },
    create: async (body) => {
      const { value } = await http.send({ method: 'POST', path: notes, body: { body }, intent: `create a comment on ${of}` });
      return { id: Number(fieldOf(value, 'id')), body };
    },
    update: async (id, body) => {
      const intent = `update a comment on ${of}`;
      return (await http.send({ method: 'PUT', path: `${notes}/${id}`, body: { body }, intent, accepts: [404] })).status !== 404;
    },
    remove: async (id) => {
      await http.send({ method: 'DELETE', path: `${notes}/${id}`, intent: `delete a second comment on ${of}`, accepts: [404] });
    },
    setStatus: async ({ commit, context, outcome, description, targetUrl }) => {
      const state = states[outcome];
      const body = { state, name: context, description, ...(targetUrl !== undefined && { target_url: targetUrl }) };
      const intent = `set the status ${context} of commit ${commit}`;
      const path = `${base}/statuses/${commit}`;
      const { status, value } = await http.send({ method: 'POST', path, body, intent, isRepeatable: true, accepts: [400] });
      // GitLab rejects a status that the commit already has.
      const current = /^Cannot transition status via :\w+ from :(\w+)/.exec(textAt(value, 'message'))?.[1];
      if (status === 400 && current !== state) await http.send({ method: 'POST', path, body, intent });
    },
  };
}
