// Posts and edits messages through Slack's Web API. If the answer to a post is lost, `find` gets the message by the key in its metadata.
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import type { ChannelDefinition } from '../../policies/integrations/channel.ts';
import type { HttpResponse } from '../env.ts';
import {
  bearer,
  bodyOf,
  type Call,
  type Found,
  longBodyBytes,
  type Outcome,
  outcomeOf,
  pauseOf,
  type Sending,
  type Service,
  type ServiceParts,
  sendRequest,
  skewMs,
} from './service.ts';

type SlackChannel = Extract<ChannelDefinition, { readonly service: 'slack' }>;

/** The metadata type of the messages that the agent posts. */
const slackEventType = 'rollout_group_notification';

/** The number of messages on a page, and the most pages that are read to find a message. */
const perPage = 200;
const maxPages = 10;

/** Errors after which a retry cannot succeed. Only a changed setting can repair an error that is in no set of this file. */
const permanentErrors: ReadonlySet<string> = new Set([
  ...['message_not_found', 'cant_update_message', 'edit_window_closed', 'msg_too_long', 'no_text', 'invalid_blocks'],
  ...['metadata_too_large', 'invalid_metadata_format', 'invalid_metadata_schema', 'message_limit_exceeded'],
]);
const temporaryErrors: ReadonlySet<string> = new Set(['internal_error', 'fatal_error', 'request_timeout', 'service_unavailable']);
const rateLimitErrors: ReadonlySet<string> = new Set(['ratelimited', 'rate_limited']);
/** Errors about a thread that does not exist or that accepts no reply. The message is then posted outside the thread. */
const threadErrors: ReadonlySet<string> = new Set(['thread_not_found', 'invalid_thread_ts', 'cannot_reply_to_message']);

export function slackService(parts: ServiceParts, channel: SlackChannel): Service {
  const request = async (method: string, site: Call['site'], given: JsonObject): Promise<HttpResponse> => {
    const headers = { ...(await bearer(parts, channel.token)), 'Content-Type': 'application/json; charset=utf-8' };
    return await sendRequest(parts, channel, {
      method: 'POST',
      url: `${channel.url}/${method}`,
      headers,
      body: JSON.stringify(given),
      site,
    });
  };
  const answered = (response: HttpResponse): Answered => readAnswer(response, parts.env.clock.nowMs());

  const post = async (text: string, key: string, thread: string | undefined, isBroadcast: boolean) => {
    const metadata = { event_type: slackEventType, event_payload: { key } };
    const inThread = thread === undefined ? {} : { thread_ts: thread, ...(isBroadcast ? { reply_broadcast: true } : {}) };
    const message = { channel: channel.channel, text, metadata, unfurl_links: false, unfurl_media: false, ...inThread };
    return answered(await request('chat.postMessage', 'notify.send', message));
  };

  return {
    send: async ({ delivery, key }) => {
      switch (delivery.kind) {
        case 'edit': {
          const edited = answered(
            await request('chat.update', 'notify.edit', { channel: channel.channel, ts: delivery.handle, text: delivery.text }),
          );
          return edited.outcome;
        }
        case 'post': {
          const posted = await post(delivery.text, key, delivery.thread, delivery.isBroadcast);
          const isAlone = delivery.thread !== undefined && threadErrors.has(posted.error ?? '');
          return isAlone ? (await post(delivery.text, key, undefined, false)).outcome : posted.outcome;
        }
        default:
          return { kind: 'refused', problem: 'a Slack channel accepts only messages' };
      }
    },
    find: (sending, sinceMs) => find(parts, channel, sending, sinceMs),
  };
}

interface Answered {
  readonly outcome: Outcome;
  readonly error?: string;
}

function readAnswer(response: HttpResponse, nowMs: number): Answered {
  if (response.status !== 200) return { outcome: outcomeOf(response, nowMs) };
  const { ok, ts, error } = bodyOf(response);
  if (ok === true) return { outcome: { kind: 'arrived', ...(typeof ts === 'string' ? { handle: ts } : {}) } };
  // `problem` contains `error` only if `error` has the form of Slack's error codes.
  const name = typeof error === 'string' && /^[a-z0-9_]{1,60}$/.test(error) ? error : 'without an error code';
  const problem = `Slack answered ${name}`;
  if (rateLimitErrors.has(name)) return { outcome: { kind: 'busy', problem, afterMs: pauseOf(response.headers, nowMs) }, error: name };
  if (temporaryErrors.has(name) || ok !== false) return { outcome: { kind: 'unknown', problem }, error: name };
  return { outcome: { kind: permanentErrors.has(name) ? 'refused' : 'unavailable', problem }, error: name };
}

/** Searches the channel, or the thread, for the message with the key. Includes some time before `sinceMs`, because clocks differ. */
async function find(parts: ServiceParts, channel: SlackChannel, { delivery, key }: Sending, sinceMs: number): Promise<Found> {
  if (delivery.kind !== 'post') return { kind: 'absent' };
  const method = delivery.thread === undefined ? 'conversations.history' : 'conversations.replies';
  const from = { channel: channel.channel, oldest: `${Math.max(0, Math.floor((sinceMs - skewMs) / 1000))}`, include_all_metadata: 'true' };
  const thread: Readonly<Record<string, string>> = delivery.thread === undefined ? {} : { ts: delivery.thread };
  let cursor = '';
  for (let page = 0; page < maxPages; page += 1) {
    const query = new URLSearchParams({ ...from, ...thread, limit: `${perPage}`, ...(cursor === '' ? {} : { cursor }) });
    const headers = await bearer(parts, channel.token);
    const url = `${channel.url}/${method}?${query}`;
    const response = await sendRequest(parts, channel, { method: 'GET', url, headers, maxBodyBytes: longBodyBytes, site: 'notify.find' });
    const { outcome } = readAnswer(response, parts.env.clock.nowMs());
    if (outcome.kind !== 'arrived') return outcome;
    const { handle, nextCursor } = readPage(response, key);
    if (handle !== undefined) return { kind: 'arrived', handle };
    if (nextCursor === '') return { kind: 'absent' };
    cursor = nextCursor;
  }
  return { kind: 'absent' };
}

/** Returns the timestamp of the message with the key, if the page has it, and the next cursor, empty on the last page. */
function readPage(response: HttpResponse, key: string): { readonly handle: string | undefined; readonly nextCursor: string } {
  const { messages, response_metadata: more } = bodyOf(response);
  const found = (Array.isArray(messages) ? messages : []).find((message) => keyOf(message) === key);
  const ts = isJsonObject(found) ? found['ts'] : undefined;
  const next = isJsonObject(more) ? more['next_cursor'] : undefined;
  return { handle: typeof ts === 'string' ? ts : undefined, nextCursor: typeof next === 'string' ? next : '' };
}

function keyOf(message: unknown): unknown {
  const metadata = isJsonObject(message) ? message['metadata'] : undefined;
  if (!isJsonObject(metadata) || metadata['event_type'] !== slackEventType) return undefined;
  return isJsonObject(metadata['event_payload']) ? metadata['event_payload']['key'] : undefined;
}
