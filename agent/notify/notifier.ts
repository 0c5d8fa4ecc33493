// Sends notifications about runs to the channels that groups name. Each group has *notes*, a stored record of the events of its runs, from
// which any leader sends notifications. The notifier listens to turns, and no turn waits for it.
import { messageOf } from '../../policies/error-message.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { isRunRemembered, type TurnListener } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import { ChannelQueue } from './channel-queue.ts';
import { type Channels, channelSource } from './channels.ts';
import { Deliverer, type NotifyResult } from './deliver.ts';
import { GroupNotifier, sharedNotes } from './group-notifier.ts';
import { channelSecretReader } from './service.ts';

interface NotifierOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'kubernetesTimeoutMs' | 'policySources'>;
  readonly onResult?: (channel: string, result: NotifyResult) => void;
}

/** The pause between requests for a channel. Slack accepts about one message a second in a channel, and fifty edits a minute. */
const paceMs = 1_200;
const longestTimeoutMs = 10_000;

/** Sends notifications while this process leads. Failures are counted and retried, and each new problem is logged once. */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #groups = new Map<string, GroupNotifier>();
  readonly #queues = new Map<string, ChannelQueue>();
  readonly #timeoutMs: number;
  #isLeader = false;
  #isHandingOver = false;
  #isClosed = false;
  readonly #channels: Channels;
  /** The last logged problem of each channel, and of each group whose notes cannot be stored. */
  readonly #logged = new Map<string, string>();
  readonly #deliverer: Deliverer;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      // The notes of the last turns must be stored before the hand-over ends.
      if (this.#isClosed || !(this.#isLeader || this.#isHandingOver) || !isRunRemembered(report)) return;
      const { namespace, name, notify } = report.group;
      const key = groupKey(report.group);
      if (notify === undefined) this.#forget(key);
      else this.#follow(key, namespace, name).noteTurn(report);
    },
    groupsChanged: (all) => {
      for (const key of removedKeys(this.#groups.keys(), all)) this.#forget(key);
    },
    leadershipChanged: (state) => {
      this.#isLeader = state.isLeader;
      if (this.#isLeader || this.#isHandingOver) return;
      // The next leader sends the remaining notifications from the stored notes.
      for (const queue of this.#queues.values()) queue.clear();
      for (const key of [...this.#groups.keys()]) this.#forget(key);
      this.#deliverer.clear();
    },
  };

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(this.#options.config.kubernetesTimeoutMs, longestTimeoutMs);
    this.#channels = channelSource(this.#options.env, this.#options.config, this.#timeoutMs);
    this.#deliverer = new Deliverer({
      env: this.#options.env,
      channels: this.#channels,
      isLeading: () => this.#isLeading(),
      identity: this.#options.config.identity,
      parts: {
        env: this.#options.env,
        call: (request) => this.#options.env.notify?.call(request) ?? Promise.reject(new Error('no service can be reached')),
        secret: channelSecretReader(this.#options.env, this.#options.config.agentNamespace, this.#timeoutMs),
      },
      onResult: (channel, result, problem) => {
        this.#options.onResult?.(channel, result);
        this.#warnOnce(channel, problem, { channel });
      },
    });
  }

  /** Begins the hand-over, in which pending notes are stored also after the loss of leadership. Call this before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Stores pending notes and waits for requests in flight. The next leader sends the remaining notifications. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#channels.stop();
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    await Promise.all([...this.#groups.values()].map((group) => group.close(true)));
  }

  #isLeading(): boolean {
    return this.#isLeader && !this.#isHandingOver && !this.#isClosed;
  }

  #warnOnce(about: string, problem: string | undefined, fields: Readonly<Record<string, string>>): void {
    if (problem === undefined) this.#logged.delete(about);
    else if (this.#logged.get(about) !== problem) {
      this.#logged.set(about, problem);
      this.#options.env.log.warn('notifications failed', { ...fields, problem });
    }
  }

  #queueOf(channel: string): ChannelQueue {
    const create = (): ChannelQueue =>
      new ChannelQueue({
        env: this.#options.env,
        paceMs,
        step: async (key) => {
          const group = this.#groups.get(key);
          return group === undefined ? { kind: 'idle' } : await this.#deliverer.step(group, channel);
        },
        isUrgent: (key) => {
          const group = this.#groups.get(key);
          return group !== undefined && this.#deliverer.isUrgent(group, channel);
        },
      });
    return getOrCreate(this.#queues, channel, create);
  }

  #follow(key: string, namespace: string, name: string): GroupNotifier {
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const { env } = this.#options;
    const mayWrite = (): boolean => this.#isLeader || this.#isHandingOver;
    const created: GroupNotifier = new GroupNotifier({
      env,
      stored: sharedNotes({ env, timeoutMs: this.#timeoutMs, mayWrite }, namespace, name),
      namespace,
      name,
      onNotes: () => {
        this.#warnOnce(key, undefined, {});
        if (this.#isLeading()) for (const channel of created.channels) this.#queueOf(channel).queueGroup(key);
      },
      onFailure: (error) => this.#warnOnce(key, messageOf(error), { namespace, group: name }),
    });
    this.#groups.set(key, created);
    return created;
  }

  #forget(key: string): void {
    const group = this.#groups.get(key);
    if (group === undefined) return;
    this.#groups.delete(key);
    void group.close(false);
    for (const queue of this.#queues.values()) queue.forget(key);
  }
}
