// Services in memory that speak what Slack, GitHub, GitLab and a receiver of callbacks have documented, for virtual time and for loopback servers alike.
import { createHmac } from 'node:crypto';

export interface Asked {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface FakeService {
  /** Every request so far, in order. */
  readonly asked: (Asked & { readonly atMs: number })[];
  readonly answer: (asked: Asked) => Answer;
  /** Answers instead, as long as it is set; undefined: as usual. */
  fault: ((asked: Asked) => Answer | undefined) | undefined;
}

function service(nowMs: () => number, handle: (asked: Asked) => Answer): FakeService {
  const fake: FakeService = {
    asked: [],
    fault: undefined,
    answer: (asked) => {
      fake.asked.push({ ...asked, atMs: nowMs() });
      return fake.fault?.(asked) ?? handle(asked);
    },
  };
  return fake;
}

interface SlackMessage {
  readonly ts: string;
  text: string;
  readonly thread_ts?: string;
  readonly isBroadcast: boolean;
  readonly metadata?: { readonly event_type: string; readonly event_payload: { readonly key: string } };
  /** When its text was changed, in milliseconds. */
  readonly editedMs: number[];
}

export const slackToken = 'xoxb-111-canary-slack';
export const slackChannel = 'C0123456789';

/** A workspace with one channel. */
export function fakeSlack(nowMs: () => number) {
  const messages: SlackMessage[] = [];
  const no = (error: string, status = 200): Answer => ({ status, body: { ok: false, error } });
  const yes = (body: object): Answer => ({ status: 200, body: { ok: true, ...body } });
  let last = 0;
  const fake = service(nowMs, ({ method, path, headers, body }) => {
    const url = new URL(path, 'http://slack');
    if (headers['authorization'] === undefined) return no('not_authed');
    if (headers['authorization'] !== `Bearer ${slackToken}`) return no('invalid_auth');
    if (method === 'POST' && !headers['content-type']?.startsWith('application/json')) return no('invalid_post_type');
    const given = method === 'POST' ? JSON.parse(body) : Object.fromEntries(url.searchParams);
    if (given.channel !== slackChannel) return no('channel_not_found');
    switch (url.pathname.split('/').at(-1)) {
      case 'chat.postMessage': {
        if (!given.text) return no('no_text');
        if (given.thread_ts !== undefined && !messages.some(({ ts }) => ts === given.thread_ts)) return no('thread_not_found');
        if (given.reply_broadcast && given.thread_ts === undefined) return no('invalid_arguments');
        last = Math.max(last + 1, Math.floor(nowMs() * 1000));
        const ts = `${Math.floor(last / 1e6)}.${`${last % 1e6}`.padStart(6, '0')}`;
        const { text, metadata, thread_ts } = given;
        messages.push({ ts, text, metadata, isBroadcast: given.reply_broadcast === true, editedMs: [], ...(thread_ts && { thread_ts }) });
        return yes({ channel: slackChannel, ts, message: { text } });
      }
      case 'chat.update': {
        const message = messages.find(({ ts }) => ts === given.ts);
        if (message === undefined) return no('message_not_found');
        if (given.text.length > 4000) return no('msg_too_long');
        message.text = given.text;
        message.editedMs.push(nowMs());
        return yes({ channel: slackChannel, ts: given.ts, text: given.text });
      }
      case 'conversations.history':
      case 'conversations.replies': {
        const thread = url.pathname.endsWith('replies') ? given.ts : undefined;
        const since = Number(given.oldest ?? 0);
        // Replies are in the history only when they were broadcast; the newest first.
        const inside = messages.filter((message) =>
          thread === undefined
            ? message.thread_ts === undefined || message.isBroadcast
            : message.ts === thread || message.thread_ts === thread,
        );
        const found = inside.filter(({ ts }) => Number(ts) > since).reverse();
        const from = Number(given.cursor ?? 0);
        const page = found.slice(from, from + Math.min(Number(given.limit ?? 100), 15));
        const next = from + page.length < found.length ? `${from + page.length}` : '';
        const shown = page.map(({ ts, text, metadata }) => ({ ts, text, ...(given.include_all_metadata === 'true' && { metadata }) }));
        return yes({ messages: shown, has_more: next !== '', response_metadata: { next_cursor: next } });
      }
      default:
        return no('unknown_method');
    }
  });
  return Object.assign(fake, { messages });
}

export const callbackKey = 'canary-signing-key';

/** Takes callbacks whose signature is right, and keeps them by id. */
export function fakeCallback(nowMs: () => number) {
  const taken: { readonly id: string; readonly body: string }[] = [];
  const fake = service(nowMs, ({ method, headers, body }) => {
    if (method !== 'POST') return { status: 405 };
    const timestamp = headers['x-rollout-group-timestamp'] ?? '';
    const signature = `sha256=${createHmac('sha256', callbackKey).update(`${timestamp}.${body}`).digest('hex')}`;
    if (headers['x-rollout-group-signature'] !== signature) return { status: 400 };
    if (Math.abs(nowMs() / 1000 - Number(timestamp)) > 300) return { status: 400 };
    taken.push({ id: headers['x-rollout-group-event'] ?? '', body });
    return { status: 204 };
  });
  return Object.assign(fake, { taken });
}

export const gitToken = 'ghp-canary-token';
export const commit = 'a1b2c3d4e5f60718293a4b5c6d7e8f9012345678';

interface GivenStatus {
  readonly state: string;
  readonly name: string;
  readonly description: string;
  readonly created_at: string;
}

/** POST /repos/{owner}/{repo}/statuses/{sha} and GET /repos/{owner}/{repo}/commits/{ref}/statuses of one repository. */
export function fakeGitHub(nowMs: () => number) {
  const statuses: GivenStatus[] = [];
  const fake = service(nowMs, ({ method, path, headers, body }) => {
    if (headers['user-agent'] === undefined) return { status: 403 };
    if (headers['authorization'] !== `Bearer ${gitToken}`) return { status: 401, body: { message: 'Bad credentials' } };
    const [pathname] = path.split('?');
    if (method === 'GET' && pathname === `/repos/acme/deploy/commits/${commit}/statuses`) {
      return { status: 200, body: [...statuses].reverse().map(({ name, ...rest }) => ({ ...rest, context: name })) };
    }
    if (method !== 'POST' || !pathname?.startsWith('/repos/acme/deploy/statuses/')) return { status: 404, body: { message: 'Not Found' } };
    if (!pathname.endsWith(`/${commit}`)) return { status: 422, body: { message: 'No commit found for SHA' } };
    const { state, context, description } = JSON.parse(body);
    const isRight = ['error', 'failure', 'pending', 'success'].includes(state) && [...description].length <= 140;
    if (!isRight) return { status: 422, body: { message: 'Validation Failed' } };
    statuses.push({ state, name: context, description, created_at: new Date(nowMs()).toISOString() });
    return { status: 201, body: { id: statuses.length, state, context } };
  });
  return Object.assign(fake, { statuses });
}

/** POST /projects/:id/statuses/:sha and GET /projects/:id/repository/commits/:sha/statuses of the project acme/deploy. */
export function fakeGitLab(nowMs: () => number) {
  const statuses: GivenStatus[] = [];
  const verbs: Readonly<Record<string, string>> = {
    running: 'run',
    success: 'success',
    failed: 'drop',
    canceled: 'cancel',
    pending: 'enqueue',
  };
  const fake = service(nowMs, ({ method, path, headers, body }) => {
    if (headers['authorization'] !== `Bearer ${gitToken}`) return { status: 401, body: { message: '401 Unauthorized' } };
    const [pathname] = path.split('?');
    const project = '/api/v4/projects/acme%2Fdeploy';
    if (method === 'GET' && pathname === `${project}/repository/commits/${commit}/statuses`) {
      return { status: 200, body: statuses.map(({ state, ...rest }) => ({ ...rest, status: state })) };
    }
    if (method !== 'POST' || pathname !== `${project}/statuses/${commit}`) return { status: 404, body: { message: '404 Not Found' } };
    const { state, name, description } = JSON.parse(body);
    if (!Object.hasOwn(verbs, state) || description.length > 255)
      return { status: 400, body: { message: 'state does not have a valid value' } };
    const current = statuses.at(-1)?.state;
    if (current === state) return { status: 400, body: { message: `Cannot transition status via :${verbs[state]} from :${current}` } };
    statuses.push({ state, name, description, created_at: new Date(nowMs()).toISOString() });
    return { status: 201, body: { id: statuses.length, status: state, name } };
  });
  return Object.assign(fake, { statuses });
}
