// Finds NotificationChannels for the notifier, in the policy directory or as objects of the agent's namespace.
import { getObject } from '../../cluster/request/read.ts';
import { type ChannelDefinition, channelOf, isLoopback } from '../../policies/integrations/channel.ts';
import { loadPolicies } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import { resourceOfKind, schemas } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';

export type Channels = ReturnType<typeof channelSource>;

const notificationChannels = resourceOfKind('NotificationChannel');

/** The time after which a channel is read again. */
const cacheMs = 30_000;

type FoundChannel = ChannelDefinition | { readonly problem: string };

export function channelSource(
  env: AgentEnv,
  { agentNamespace, policySources }: Pick<AgentConfig, 'agentNamespace' | 'policySources'>,
  timeoutMs: number,
) {
  const known = new Map<string, { readonly channel: FoundChannel; readonly atMs: number }>();
  const directory = policySources.includes('directory') ? env.policyDirectory : undefined;
  let files: ReadonlyMap<string, FoundChannel> | undefined;
  const unwatch = directory?.watch(() => {
    files = undefined;
    known.clear();
  });

  const inFiles = async (): Promise<ReadonlyMap<string, FoundChannel>> => {
    if (directory === undefined) return new Map();
    files ??= channelsIn(await directory.read(), agentNamespace);
    return files;
  };

  const asObject = async (name: string): Promise<FoundChannel> => {
    if (!policySources.includes('objects')) return { problem: `the channel ${name} is not defined in the policy directory` };
    const target = { namespace: agentNamespace, name };
    const object = await getObject(env, notificationChannels, target, { site: 'notify.channel', timeoutMs });
    if (object === undefined) return { problem: `there is no NotificationChannel ${agentNamespace}/${name}` };
    const { apiVersion, kind = 'NotificationChannel', spec } = object;
    const read = schemas.NotificationChannel.safeParse({ apiVersion, kind, metadata: target, spec });
    const channel = read.success ? channelOf(read.data) : undefined;
    return channel ?? { problem: `the NotificationChannel ${agentNamespace}/${name} does not match its schema` };
  };

  const readChannel = async (name: string): Promise<FoundChannel> => {
    const nowMs = env.clock.monotonicMs();
    const remembered = known.get(name);
    if (remembered !== undefined && nowMs - remembered.atMs < cacheMs) return remembered.channel;
    const channel = (await inFiles()).get(name) ?? (await asObject(name));
    known.set(name, { channel, atMs: nowMs });
    return channel;
  };

  return {
    /** Returns the channel for groups of the namespace, or the problem. A changed object counts within 30 s. Rejects if a read fails. */
    find: async (name: string, namespace: string): Promise<FoundChannel> => {
      const channel = await readChannel(name);
      if ('problem' in channel) return channel;
      if (!channel.namespaces.includes(namespace)) return { problem: `the channel ${name} is not available to namespace ${namespace}` };
      if (channel.url.startsWith('http:') && !isLoopback(channel.url)) {
        return { problem: `the channel ${name} has an http address, which is allowed only for localhost` };
      }
      return channel;
    },
    stop: () => unwatch?.(),
  };
}

/** Returns by name the channels of the agent's namespace in policy files. A document without a namespace belongs to this namespace. */
function channelsIn(files: Parameters<typeof loadPolicies>[0], agentNamespace: string): ReadonlyMap<string, FoundChannel> {
  const documents = ofKind(loadPolicies(files, { namespace: agentNamespace }).documents, 'NotificationChannel');
  return new Map(
    documents
      .filter(({ namespace }) => namespace === agentNamespace)
      .map(({ name, value }) => [name, channelOf(value) ?? { problem: `the channel ${name} names no service` }]),
  );
}
