// Notifications of a StatefulsetRollout: a Slack channel, and the API of the requester.
import type { Finding } from '../../findings/finding.ts';
import { type ForeignObject, foreignFinding, type Request } from '../foreign.ts';
import { slug } from '../names.ts';
import { addressOf } from '../url.ts';

interface NotifyReading {
  readonly wishes: readonly Request[];
  readonly uses: readonly { readonly key: string; readonly events: readonly string[] }[];
  readonly findings: readonly Finding[];
}

const slackSecret = { name: 'slack', key: 'token' } as const;
const callbackSecret = { name: 'bedrock-callback', key: 'signing-key' } as const;
const slackId = /^[CDG][A-Z0-9]{6,30}$/;

export function notifyOf(
  object: ForeignObject,
  { channel, callbackUrl }: { readonly channel: string | undefined; readonly callbackUrl: string | undefined },
): NotifyReading {
  const parts = [...(channel ? [slackOf(object, channel)] : []), ...(callbackUrl ? [callbackOf(object, callbackUrl)] : [])];
  return {
    wishes: parts.flatMap((part) => part.wishes),
    uses: parts.flatMap((part) => part.uses),
    findings: parts.flatMap((part) => part.findings),
  };
}

/** A message goes to the ID of a channel. Its name alone may be another channel tomorrow, and only Slack knows what it is today. */
function slackOf(object: ForeignObject, channel: string): NotifyReading {
  const path = ['spec', 'channel'];
  if (!slackId.test(channel)) {
    const message = `the Slack channel ${channel} is a name, and a NotificationChannel needs a channel ID; no notification is sent`;
    const hint =
      'write a NotificationChannel with the ID that Slack shows in the details of the channel, and name it in spec.notify of the group';
    return { wishes: [], uses: [], findings: [foreignFinding(object, 'RG7005', path, { message, hint })] };
  }
  const key = `slack ${channel}`;
  const wish: Request = {
    kind: 'NotificationChannel',
    key,
    base: `slack-${channel.toLowerCase()}`,
    spec: { slack: { token: slackSecret, channel } },
    namespace: object.namespace,
  };
  const message = `the NotificationChannel reads its token from the Secret ${slackSecret.name} of the agent's namespace`;
  const hint = `put the bot token there under the key ${slackSecret.key}`;
  const events = ['started', 'waiting', 'failed', 'completed'];
  return { wishes: [wish], uses: [{ key, events }], findings: [foreignFinding(object, 'RG7004', path, { message, hint })] };
}

function callbackOf(object: ForeignObject, text: string): NotifyReading {
  const path = ['spec', 'bapi', 'bapiUrl'];
  const address = addressOf(text);
  if (address === undefined || address.url.startsWith('http:')) {
    const message = 'spec.bapi.bapiUrl is not an https address; no callback is sent';
    const hint = 'write a NotificationChannel with an https address, and name it in spec.notify of the group';
    return { wishes: [], uses: [], findings: [foreignFinding(object, 'RG7005', path, { message, hint })] };
  }
  const key = `callback ${address.url}`;
  const wish: Request = {
    kind: 'NotificationChannel',
    key,
    base: slug(address.host, 54) || 'callback',
    spec: { callback: { url: address.url, signingKey: callbackSecret } },
    namespace: object.namespace,
  };
  const left = address.hasUser || address.hasQuery ? ['user, query and fragment of the address are left out'] : [];
  const message = `callbacks are signed with the key in the Secret ${callbackSecret.name} of the agent's namespace, and have another body`;
  const hint = `put a random text there under the key ${callbackSecret.key}, and teach the receiver the body in docs/notifications.md`;
  return {
    wishes: [wish],
    uses: [{ key, events: ['failed', 'completed'] }],
    findings: [
      foreignFinding(object, 'RG7004', path, { message, hint }),
      ...left.map((part) => foreignFinding(object, 'RG7002', path, { message: part })),
    ],
  };
}
