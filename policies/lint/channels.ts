// Lint checks of notification channels and of the groups that use them.

import { type Finding, finding } from '../findings/finding.ts';
import { channelOf, isLoopback } from '../integrations/channel.ts';
import type { Loaded } from '../load.ts';
import { ofKind } from '../resolve/resolve.ts';
import { suggestion } from '../wording.ts';
import { eachGroup, type LintCheck, repeats } from './context.ts';

type Channel = Loaded<'NotificationChannel'>;

/** Reports channels of groups that do not exist or are not usable. If the files define no channel, only the agent can check the name. */
export const checkChannelUses: LintCheck = (context) => {
  const channels = ofKind(context.load.documents, 'NotificationChannel');
  const broken = context.load.unusable.filter(({ kind }) => kind === 'NotificationChannel').map(({ name }) => name);
  return context.groups.flatMap((group) =>
    (group.value.spec.notify ?? []).flatMap(({ channel: name }, index): readonly Finding[] => {
      const place = group.place(['spec', 'notify', index, 'channel']);
      const channel = channels.find((one) => one.name === name);
      if (broken.includes(name)) return [];
      if (channel !== undefined) {
        const { namespaces } = channel.value.spec.usableFrom;
        const message = `the channel ${name} is not usable from ${group.namespace}: usableFrom lists ${namespaces.join(', ')}`;
        return namespaces.includes(group.namespace) ? [] : [finding('RG2512', place, message)];
      }
      const names = [...channels.map((one) => one.name), ...broken];
      if (names.length === 0 || context.isCluster)
        return [finding('RG2206', place, `the channel ${name} is not in the files: only the agent can check it`)];
      return [finding('RG2511', place, `the channel ${name} does not exist`, { hint: suggestion(name, names) })];
    }),
  );
};

export const findDuplicateChannels: LintCheck = eachGroup((group) =>
  repeats(group.value.spec.notify ?? [], ({ channel }) => channel).map(({ index }) =>
    finding(
      'RG2516',
      group.place(['spec', 'notify', index, 'channel']),
      `the channel ${group.value.spec.notify?.[index]?.channel} is named twice`,
    ),
  ),
);

/** Reports channels in the wrong namespace, without encryption or without a signature. */
export const checkChannels: LintCheck = ({ load, agentNamespace }) =>
  ofKind(load.documents, 'NotificationChannel').flatMap((channel) => [
    ...namespaceFindings(channel, agentNamespace),
    ...addressFindings(channel),
  ]);

/** A channel without a namespace belongs to the agent's policy directory. */
function namespaceFindings(channel: Channel, agentNamespace: string): readonly Finding[] {
  const { namespace } = channel.value.metadata;
  if (namespace === undefined || namespace === agentNamespace) return [];
  const message = `the channel ${channel.name} is ignored: its namespace is ${namespace}, the agent reads ${agentNamespace}`;
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
      ? [
          finding(
            'RG2514',
            channel.place(['spec', service, 'url']),
            `the channel ${channel.name} is not encrypted: its address does not use https`,
          ),
        ]
      : []),
    ...(isUnsigned
      ? [
          finding(
            'RG2515',
            channel.place(['spec', 'callback'], 'key'),
            `the channel ${channel.name} does not sign its callbacks: signingKey is missing`,
          ),
        ]
      : []),
  ];
}
