// Callbacks of anybody's own: one POST of JSON for each event, signed, and the same again until it is taken.
import { createHmac } from 'node:crypto';
import { callbackBody, signedText } from '../../engine/notify/callback-body.ts';
import type { ChannelDefinition } from '../../policies/integrations/channel.ts';
import { outcomeOf } from './outcome.ts';
import { ask, type Service, type ServiceParts } from './service.ts';

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
      const response = await ask(parts, channel, { method: 'POST', url: channel.url, headers, body, site: 'notify.send' });
      return response.status >= 200 && response.status < 300 ? { kind: 'arrived' } : outcomeOf(response, parts.env.clock.nowMs());
    },
    // A callback has no query API. It receives the event again with the same id.
    find: async () => ({ kind: 'absent' }),
  };
}

/** HMAC-SHA256 over `timestamp.body`, in hexadecimal digits. */
function signatureOf(key: string, timestamp: string, body: string): string {
  return createHmac('sha256', key).update(signedText(timestamp, body)).digest('hex');
}
