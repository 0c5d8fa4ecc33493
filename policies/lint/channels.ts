// Notification channels: whether groups name one that is there for them, and whether what it says of itself can be used.

import { type Finding, finding } from '../findings/finding.ts';
import { channelOf, isLoopback } from '../integrations/channel.ts';
import type { Loaded } from '../load.ts';
import { ofKind } from '../resolve/resolve.ts';
import { suggestion } from '../wording.ts';
import { eachGroup, type LintCheck, repeats } from './context.ts';

type Channel = Loaded<'NotificationChannel'>;

/** A channel that files do not define may be one of the agent's own, unless they define others. */
export const knownChannels: LintCheck = (context) => {
  const channels = ofKind(context.load.documents, 'NotificationChannel');
  const broken = context.load.unusable.filter(({ kind }) => kind === 'NotificationChannel').map(({ name }) => name);
  return context.groups.flatMap((group) =>
    (group.value.spec.notify ?? []).flatMap(({ channel: name }, index): readonly Finding[] => {
      const place = group.place(['spec', 'notify', index, 'channel']);
      const channel = channels.find((one) => one.name === name);
      if (broken.includes(name)) return [];
      if (channel !== undefined) {
        const { namespaces } = channel.value.spec.usableFrom;
        const message = `the channel ${name} is there for ${namespaces.join(', ')}, not for ${group.namespace}`;
        return namespaces.includes(group.namespace) ? [] : [finding('RG2512', place, message)];
      }
      const names = [...channels.map((one) => one.name), ...broken];
      if (names.length === 0 || context.isCluster) return [finding('RG2206', place, `only the agent knows the channel ${name}`)];
      return [finding('RG2511', place, `the channel ${name} does not exist`, { hint: suggestion(name, names) })];
    }),
  );
};

export const uniqueChannels: LintCheck = eachGroup((group) =>
  repeats(group.value.spec.notify ?? [], ({ channel }) => channel).map(({ index }) =>
    finding(
      'RG2516',
      group.place(['spec', 'notify', index, 'channel']),
      `the channel ${group.value.spec.notify?.[index]?.channel} is named twice`,
    ),
  ),
);

/** What a channel says of itself. */
export const soundChannels: LintCheck = ({ load, agentNamespace }) =>
  ofKind(load.documents, 'NotificationChannel').flatMap((channel) => [
    ...namespaceFindings(channel, agentNamespace),
    ...addressFindings(channel),
  ]);

/** A channel whose file names no namespace is read where the file is. */
function namespaceFindings(channel: Channel, agentNamespace: string): readonly Finding[] {
  const { namespace } = channel.value.metadata;
  if (namespace === undefined || namespace === agentNamespace) return [];
  const message = `the channel ${channel.name} is in the namespace ${namespace}; the agent reads those of ${agentNamespace}`;
  return [finding('RG2513', channel.place(['metadata', 'namespace']), message)];
}

function addressFindings(channel: Channel): readonly Finding[] {
  const definition = channelOf(channel.value);
  if (definition === undefined) return [];
  const { service, url } = definition;
  const isOpen = url.startsWith('http:') && !isLoopback(url);
  const isUnsigned = definition.service === 'callback' && definition.signingKey === undefined;
  return [
    ...(isOpen
      ? [finding('RG2514', channel.place(['spec', service, 'url']), `the address of the channel ${channel.name} is without https`)]
      : []),
    ...(isUnsigned
      ? [finding('RG2515', channel.place(['spec', 'callback'], 'key'), `what the channel ${channel.name} sends is not signed`)]
      : []),
  ];
}
