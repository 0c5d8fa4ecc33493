// Sends events as commit statuses to GitHub and GitLab, and as callbacks. A callback is signed if its channel has a signing key.

import { createHmac } from 'node:crypto';
import { isJsonObject } from '../../cluster/request/json.ts';
import { type CommitStatus, callbackBody, commitStatus, signedText } from '../../engine/notify/texts.ts';
import type { ChannelDefinition } from '../../policies/integrations/channel.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { HttpResponse } from '../env.ts';
import {
  bearer,
  bodyOf,
  type Call,
  type Found,
  longBodyBytes,
  type Outcome,
  outcomeOf,
  type Sending,
  type Service,
  type ServiceParts,
  sendRequest,
  skewMs,
} from './service.ts';

type StatusChannel = Extract<ChannelDefinition, { readonly service: 'github' | 'gitlab' }>;

const noCommit: Outcome = {
  kind: 'refused',
  problem:
    'the change has no full commit id: neither in the annotation rollout-group.dev/commit nor from Argo CD or Flux (install --read-commits)',
};

export function commitStatusService(parts: ServiceParts, channel: StatusChannel): Service {
  const request = async (call: Omit<Call, 'headers' | 'body'>, body?: object): Promise<HttpResponse> => {
    const headers = { ...(await bearer(parts, channel.token)), ...headersOf(channel), ...(body && { 'Content-Type': 'application/json' }) };
    return await sendRequest(parts, channel, { ...call, headers, ...(body && { body: JSON.stringify(body) }) });
  };
  return {
    send: async (sending) => {
      const status = statusOf(channel, sending);
      if (status === undefined) return noCommit;
      const { sha, state, name, description } = status;
      const isGitHub = channel.service === 'github';
      const body = { state, description, [isGitHub ? 'context' : 'name']: name };
      const url = `${projectUrl(channel)}/statuses/${sha}`;
      const response = await request({ method: 'POST', url, site: 'notify.send' }, body);
      if (response.status >= 200 && response.status < 300) return { kind: 'arrived' };
      if (channel.service === 'gitlab' && isCurrentState(response, state)) return { kind: 'arrived' };
      return outcomeOf(response, parts.env.clock.nowMs());
    },
    find: async (sending, sinceMs): Promise<Found> => {
      const status = statusOf(channel, sending);
      if (status === undefined) return noCommit;
      const response = await request({ method: 'GET', url: listUrl(channel, status), maxBodyBytes: longBodyBytes, site: 'notify.find' });
      if (response.status !== 200) return outcomeOf(response, parts.env.clock.nowMs());
      return hasStatus(response, status, sinceMs - skewMs) ? { kind: 'arrived' } : { kind: 'absent' };
    },
  };
}

function statusOf({ service }: StatusChannel, { name, run, delivery }: Sending): CommitStatus | undefined {
  return delivery.kind === 'tell' ? commitStatus(service, name, run, delivery.event) : undefined;
}

function headersOf({ service }: StatusChannel): Readonly<Record<string, string>> {
  return service === 'github'
    ? { Accept: 'application/vnd.github+json', 'X-GitHub-Api-Version': '2022-11-28' }
    : { Accept: 'application/json' };
}

function projectUrl(channel: StatusChannel): string {
  return channel.service === 'github'
    ? `${channel.url}/repos/${channel.repository}`
    : `${channel.url}/projects/${encodeURIComponent(channel.project)}`;
}

function listUrl(channel: StatusChannel, { sha, name }: CommitStatus): string {
  return channel.service === 'github'
    ? `${projectUrl(channel)}/commits/${sha}/statuses?per_page=100`
    : `${projectUrl(channel)}/repository/commits/${sha}/statuses?${new URLSearchParams({ name, all: 'true', per_page: '100' })}`;
}

/** Returns whether GitLab rejected the request because the commit status already has this state. */
function isCurrentState(response: HttpResponse, state: string): boolean {
  const { message } = bodyOf(response);
  const from = typeof message === 'string' ? /^Cannot transition status via :\w+ from :(\w+)/.exec(message)?.[1] : undefined;
  return response.status === 400 && from === state;
}

/** Returns whether the commit got this status at `sinceMs` or later. An older status may come from an earlier run of the same commit. */
function hasStatus({ body }: HttpResponse, { name, state, description }: CommitStatus, sinceMs: number): boolean {
  const list = tryParseJson(body);
  return (Array.isArray(list) ? list : []).some(
    (one) =>
      isJsonObject(one) &&
      (one['context'] ?? one['name']) === name &&
      (one['state'] ?? one['status']) === state &&
      one['description'] === description &&
      typeof one['created_at'] === 'string' &&
      Date.parse(one['created_at']) >= sinceMs,
  );
}

type CallbackChannel = Extract<ChannelDefinition, { readonly service: 'callback' }>;

export function callbackService(parts: ServiceParts, channel: CallbackChannel): Service {
  return {
    send: async ({ name, run, delivery }) => {
      if (delivery.kind !== 'tell') return { kind: 'refused', problem: 'a callback channel accepts only events' };
      const body = callbackBody(name, run, delivery.event);
      const timestamp = `${Math.floor(parts.env.clock.nowMs() / 1000)}`;
      const key = channel.signingKey === undefined ? undefined : await parts.secret(channel.signingKey, 'token');
      const signature = key === undefined ? {} : { 'X-Rollout-Group-Signature': `sha256=${signatureOf(key, timestamp, body)}` };
      const headers = {
        'Content-Type': 'application/json',
        'X-Rollout-Group-Event': delivery.event.id,
        'X-Rollout-Group-Timestamp': timestamp,
        ...signature,
      };
      const response = await sendRequest(parts, channel, { method: 'POST', url: channel.url, headers, body, site: 'notify.send' });
      return response.status >= 200 && response.status < 300 ? { kind: 'arrived' } : outcomeOf(response, parts.env.clock.nowMs());
    },
    // A callback has no query API. The event is sent again with the same id.
    find: async () => ({ kind: 'absent' }),
  };
}

function signatureOf(key: string, timestamp: string, body: string): string {
  return createHmac('sha256', key).update(signedText(timestamp, body)).digest('hex');
}
