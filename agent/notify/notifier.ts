// Tells people of runs, through the channels that groups name: a listener of turns with a queue for each channel. Nothing waits for it.
import { messageOf } from '../../policies/error-message.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { isRunRemembered, type TurnListener } from '../report.ts';
import { groupKey } from '../wake-index.ts';
import { ChannelQueue } from './channel-queue.ts';
import { channelSource } from './channels.ts';
import { Deliverer, type NotifyResult } from './deliver.ts';
import { GroupNotifier } from './group-notifier.ts';
import { notesStore } from './notes-store.ts';
import { channelSecretReader } from './secrets.ts';

interface NotifierOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'kubernetesTimeoutMs' | 'policySources'>;
  readonly onResult?: (channel: string, result: NotifyResult) => void;
}

interface Notifier {
  readonly listener: TurnListener;
  /** From now on a lost leadership is a hand-over: what was seen is still to be stored. To be called before the agent is stopped. */
  readonly beginHandOver: () => void;
  /** Stores what was seen, waits for what is on its way, and begins nothing more: the rest is told by the next leader. */
  readonly close: () => Promise<void>;
}

/** Slack takes about one message a second in a channel, and fifty edits a minute. */
const paceMs = 1_200;
const longestTimeoutMs = 10_000;

/** Tells while this process leads. Failures are logged when they are new, counted, and tried again. */
export function createNotifier({ env, config, onResult }: NotifierOptions): Notifier {
  const groups = new Map<string, GroupNotifier>();
  const queues = new Map<string, ChannelQueue>();
  const timeoutMs = Math.min(config.kubernetesTimeoutMs, longestTimeoutMs);
  let isLeader = false;
  let isHandingOver = false;
  let isClosed = false;
  const isLeading = (): boolean => isLeader && !isHandingOver && !isClosed;
  const store = notesStore(env, { timeoutMs, mayWrite: () => isLeader || isHandingOver });
  const channels = channelSource(env, config, timeoutMs);
  /** By channel, or by group for what cannot be stored: the problem that was logged last. */
  const logged = new Map<string, string>();

  const warnOnce = (about: string, problem: string | undefined, fields: Readonly<Record<string, string>>): void => {
    if (problem === undefined) logged.delete(about);
    else if (logged.get(about) !== problem) {
      logged.set(about, problem);
      env.log.warn('notification could not be delivered', { ...fields, problem });
    }
  };

  const deliverer = new Deliverer({
    env,
    channels,
    isLeading,
    identity: config.identity,
    parts: {
      env,
      call: (request) => env.notify?.call(request) ?? Promise.reject(new Error('no service can be reached')),
      secret: channelSecretReader(env, config.agentNamespace, timeoutMs),
    },
    onResult: (channel, result, problem) => {
      onResult?.(channel, result);
      warnOnce(channel, problem, { channel });
    },
  });

  const queueOf = (channel: string): ChannelQueue => {
    const known = queues.get(channel);
    if (known !== undefined) return known;
    const created = new ChannelQueue({
      env,
      paceMs,
      step: async (key) => {
        const group = groups.get(key);
        return group === undefined ? { kind: 'idle' } : await deliverer.step(group, channel);
      },
      isUrgent: (key) => {
        const group = groups.get(key);
        return group !== undefined && deliverer.isUrgent(group, channel);
      },
    });
    queues.set(channel, created);
    return created;
  };

  const follow = (key: string, namespace: string, name: string): GroupNotifier => {
    const known = groups.get(key);
    if (known !== undefined) return known;
    const created: GroupNotifier = new GroupNotifier({
      env,
      store,
      namespace,
      name,
      onNotes: () => {
        warnOnce(key, undefined, {});
        if (isLeading()) for (const channel of created.channels) queueOf(channel).want(key);
      },
      onFailure: (error) => warnOnce(key, messageOf(error), { namespace, group: name }),
    });
    groups.set(key, created);
    return created;
  };

  const forget = (key: string): void => {
    const group = groups.get(key);
    if (group === undefined) return;
    groups.delete(key);
    void group.close(false);
    store.forget(group.namespace, group.name);
    for (const queue of queues.values()) queue.forget(key);
  };

  const listener: TurnListener = {
    turnEnded: (report) => {
      // The last turns of a hand-over are still to be stored.
      if (isClosed || !(isLeader || isHandingOver) || !isRunRemembered(report)) return;
      const { namespace, name, notify } = report.group;
      const key = groupKey(report.group);
      if (notify === undefined) forget(key);
      else follow(key, namespace, name).look(report);
    },
    groupsChanged: (all) => {
      const keys = new Set(all.map(groupKey));
      for (const key of [...groups.keys()]) if (!keys.has(key)) forget(key);
    },
    leadershipChanged: (state) => {
      isLeader = state.isLeader;
      if (isLeader || isHandingOver) return;
      // The next leader tells what is left, from what is stored.
      for (const queue of queues.values()) queue.clear();
      for (const key of [...groups.keys()]) forget(key);
      deliverer.clear();
    },
  };
  return {
    listener,
    beginHandOver: () => {
      isHandingOver = true;
    },
    close: async () => {
      isClosed = true;
      channels.stop();
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await Promise.all([...groups.values()].map((group) => group.close(true)));
    },
  };
}
