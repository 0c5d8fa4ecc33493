// Delivers the notifications of a group to a channel for the notifier. A mark is stored before a notification is sent. After a restart,
// a marked notification is not sent again if a search in Slack, GitHub or GitLab finds it. A marked callback is always sent again.
import { type Delivery, isSettled, nextDelivery, undelivered } from '../../engine/notify/deliveries.ts';
import {
  type ChannelNotes,
  channelNotes,
  done,
  idOf,
  type Notes,
  type RunNotes,
  type SendingMark,
  sending,
  withChannel,
  withProblem,
} from '../../engine/notify/notes.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { ChannelDefinition } from '../../policies/integrations/channel.ts';
import type { AgentEnv } from '../env.ts';
import type { Step } from './channel-queue.ts';
import type { Channels } from './channels.ts';
import { callbackService, commitStatusService } from './event-services.ts';
import type { GroupNotifier } from './group-notifier.ts';
import { callTimeoutMs, type Outcome, problemBefore, type Sending, type Service, type ServiceParts } from './service.ts';
import { slackService } from './slack.ts';

/** The outcome of one attempt, as the metrics count it. */
export type NotifyResult = 'sent' | 'edited' | 'found' | 'refused' | 'failed';

interface DelivererOptions {
  readonly env: AgentEnv;
  readonly parts: ServiceParts;
  readonly channels: Channels;
  readonly identity: string;
  readonly isLeading: () => boolean;
  readonly onResult: (channel: string, result: NotifyResult, problem?: string) => void;
}

/** The longest time between mark and request. A process that stalls for longer stores a new mark, because another process may then lead. */
const freshMarkMs = 12_000;
/** The time after a mark until its request has certainly ended, including the reads of Secrets. */
const settleMs = freshMarkMs + 3 * callTimeoutMs + 3_000;
/** The pause after a failure that only a changed setting can repair. */
const unavailableMs = 300_000;
/** An undelivered notification is given up this long after its event and after the end of its run. */
const givenUpMs = 24 * 3_600_000;

/** The state of a notification that this or another process began to send. */
interface Attempt {
  readonly by: string;
  /** `open`: the outcome is unknown. `unsent`: it did not arrive. `arrived`: it arrived, but the arrival is not stored yet. */
  readonly state: 'open' | 'unsent' | 'arrived';
  /** The time at which the attempt entered its state (monotonic). */
  readonly sinceMs: number;
  readonly handle?: string;
}

interface Target {
  readonly group: GroupNotifier;
  readonly channel: ChannelDefinition;
  readonly run: RunNotes;
  readonly delivery: Exclude<Delivery, { readonly kind: 'close' }>;
  /** The id of the notification, the same for every process that sends it. */
  readonly id: string;
}

/** Delivers notifications. Its methods never reject. */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #attempts = new Map<string, Attempt>();
  /** The current texts of sent messages, by id. */
  readonly #shown = new Map<string, string>();
  #count = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Forgets the state of this leadership. A new leader starts from the stored notes. */
  clear(): void {
    this.#attempts.clear();
    this.#shown.clear();
  }

  /** Returns whether the group has an event that was not reported to the channel. */
  isUrgent(group: GroupNotifier, channel: string): boolean {
    return (group.notes?.runs ?? []).some((run) => undelivered(run, channel).length > 0);
  }

  async step(group: GroupNotifier, channel: string): Promise<Step> {
    const { channels, isLeading, onResult } = this.#options;
    if (!isLeading() || group.notes === undefined || group.notes.runs.every((run) => isSettled(run, channel))) return { kind: 'idle' };
    try {
      const found = await channels.find(channel, group.namespace);
      if ('problem' in found) {
        onResult(channel, 'failed', found.problem);
        await this.#note(group, channel, found.problem);
        return { kind: 'later', who: 'group', afterMs: unavailableMs };
      }
      const next = this.#next(group, group.notes, found);
      if (next === undefined) return { kind: 'idle' };
      const { run, delivery } = next;
      if (delivery.kind === 'close') {
        await group.change((notes) => withChannel(notes, run.key, channel, (known) => ({ ...known, closedBy: delivery.key })));
        for (const key of Object.keys(channelNotes(run, channel).handles)) {
          this.#shown.delete(idOf(group.namespace, group.name, run.key, channel, key));
        }
        return { kind: 'done', isSent: false };
      }
      const id = idOf(group.namespace, group.name, run.key, channel, delivery.key);
      const target: Target = { group, channel: found, run, delivery, id };
      return delivery.kind === 'edit' ? await this.#edit(target) : await this.#deliver(target);
    } catch (error) {
      const problem = messageOf(error);
      onResult(channel, 'failed', problem);
      return { kind: 'later', who: 'group' };
    }
  }

  #next(
    group: GroupNotifier,
    notes: Notes,
    channel: ChannelDefinition,
  ): { readonly run: RunNotes; readonly delivery: Delivery } | undefined {
    const name = { namespace: group.namespace, group: group.name };
    const live = group.live();
    for (const run of notes.runs) {
      const isLive = live?.facts.run.id === run.id;
      const delivery = nextDelivery({
        name,
        run,
        channel: channel.name,
        manner: channel.service === 'slack' ? 'messages' : 'events',
        live: isLive ? live : undefined,
        isPast: run !== notes.runs.at(-1),
        isShown: (key, text) => this.#shown.get(idOf(group.namespace, group.name, run.key, channel.name, key)) === text,
      });
      if (delivery !== undefined) return { run, delivery };
    }
    return undefined;
  }

  /** Sends an edit. A repeated edit has no further effect, so it is neither marked nor recorded. */
  async #edit(target: Target): Promise<Step> {
    const { group, channel, delivery, id } = target;
    if (delivery.kind !== 'edit') return { kind: 'idle' };
    const outcome = await this.#withService(target, (service, what) => service.send(what));
    if (outcome.kind !== 'arrived' && outcome.kind !== 'refused') return await this.#later(target, outcome);
    this.#shown.set(id, delivery.text);
    const isEdited = outcome.kind === 'arrived';
    this.#options.onResult(channel.name, isEdited ? 'edited' : 'refused', isEdited ? undefined : outcome.problem);
    await this.#note(group, channel.name, undefined);
    return { kind: 'done', isSent: true };
  }

  async #deliver(target: Target): Promise<Step> {
    const { env, identity, isLeading } = this.#options;
    const { group, channel, run, delivery, id } = target;
    const known = this.#attempts.get(id);
    if (known?.state === 'arrived') return await this.#record(target, { handle: known.handle }, false);
    const mark = channelNotes(run, channel.name).sending?.[delivery.key];
    if (mark !== undefined && !(known?.by === mark.by && known.state === 'unsent')) {
      const step = await this.#resolve(target, mark);
      if (step !== undefined) return step;
    }
    this.#count += 1;
    const by = `${identity}/${this.#count}`;
    const beganMs = env.clock.monotonicMs();
    // If the write of the mark is not answered, then no request is sent under this mark.
    this.#attempts.set(id, { by, state: 'unsent', sinceMs: beganMs });
    const notes = await group.change((now) =>
      withChannel(now, run.key, channel.name, (one) => sending(one, delivery.key, by, env.clock.nowMs())),
    );
    const isOurs = marksOf(notes, run.key, channel.name)?.[delivery.key]?.by === by;
    if (!isOurs || !isLeading() || env.clock.monotonicMs() - beganMs > freshMarkMs) return { kind: 'done', isSent: false };
    this.#attempts.set(id, { by, state: 'open', sinceMs: env.clock.monotonicMs() });
    const outcome = await this.#withService(target, (service, what) => service.send(what));
    this.#attempts.set(id, { by, state: outcome.kind === 'unknown' ? 'open' : 'unsent', sinceMs: env.clock.monotonicMs() });
    if (outcome.kind === 'arrived') return await this.#arrived(target, by, outcome.handle, 'sent');
    if (outcome.kind === 'refused') return await this.#record(target, { refused: outcome.problem }, true);
    return await this.#later(target, outcome);
  }

  /** Finds the outcome of a marked notification. Returns undefined if the notification must be sent. */
  async #resolve(target: Target, mark: SendingMark): Promise<Step | undefined> {
    const { env } = this.#options;
    const { channel, id } = target;
    // The event is sent again, because the receiver of a callback recognizes it by its id.
    if (channel.service === 'callback') return undefined;
    const before = this.#attempts.get(id);
    const nowMs = env.clock.monotonicMs();
    const attempt: Attempt = before?.by === mark.by ? before : { by: mark.by, state: 'open', sinceMs: nowMs };
    this.#attempts.set(id, attempt);
    const restMs = attempt.sinceMs + settleMs - nowMs;
    if (restMs > 0) return { kind: 'later', who: 'group', afterMs: restMs };
    const found = await this.#withService(target, (service, what) => service.find(what, mark.atMs));
    if (found.kind === 'arrived') return await this.#arrived(target, mark.by, found.handle, 'found');
    // A service that cannot be queried gets the notification again: a duplicate is better than a lost notification.
    if (found.kind === 'absent' || found.kind === 'refused' || found.kind === 'unavailable') return undefined;
    return await this.#later(target, found);
  }

  async #arrived(target: Target, by: string, handle: string | undefined, how: 'sent' | 'found'): Promise<Step> {
    const { delivery, id, channel } = target;
    const { env, onResult } = this.#options;
    this.#attempts.set(id, { by, state: 'arrived', sinceMs: env.clock.monotonicMs(), ...(handle === undefined ? {} : { handle }) });
    if (delivery.kind === 'post' && how === 'sent') this.#shown.set(id, delivery.text);
    onResult(channel.name, how);
    return await this.#record(target, { handle }, true);
  }

  async #record(
    { group, channel, run, delivery, id }: Target,
    { handle, refused }: { readonly handle?: string | undefined; readonly refused?: string },
    isSent: boolean,
  ): Promise<Step> {
    if (refused !== undefined) this.#options.onResult(channel.name, 'refused', refused);
    await group.change((notes) => {
      const how = { ...(handle === undefined ? {} : { handle }), ...(refused === undefined ? {} : { refused }) };
      return withProblem(
        withChannel(notes, run.key, channel.name, (known) => done(known, delivery.key, how)),
        channel.name,
        refused,
        this.#options.env.clock.nowMs(),
      );
    });
    this.#attempts.delete(id);
    return { kind: 'done', isSent };
  }

  async #later(target: Target, outcome: Exclude<Outcome, { readonly kind: 'arrived' | 'refused' }>): Promise<Step> {
    const { env, onResult } = this.#options;
    const { group, channel, run, delivery } = target;
    onResult(channel.name, 'failed', outcome.problem);
    const atMs = delivery.kind === 'tell' ? delivery.event.atMs : (run.events.find(({ id }) => id === delivery.key)?.atMs ?? run.startedMs);
    if (delivery.kind !== 'edit' && run.outcome !== 'running' && env.clock.nowMs() - Math.max(atMs, run.endedMs ?? 0) > givenUpMs) {
      return await this.#record(target, { refused: `given up after a day: ${outcome.problem}` }, true);
    }
    if (outcome.kind === 'busy') return { kind: 'later', who: 'channel', afterMs: outcome.afterMs };
    if (outcome.kind === 'unknown') return { kind: 'later', who: 'channel' };
    await this.#note(group, channel.name, outcome.problem);
    return { kind: 'later', who: 'channel', afterMs: unavailableMs };
  }

  /** Records the problem of the channel in the notes, next to the delivered notifications. */
  async #note(group: GroupNotifier, channel: string, problem: string | undefined): Promise<void> {
    if (group.notes?.problems?.[channel]?.text === problem) return;
    await group.change((notes) => withProblem(notes, channel, problem, this.#options.env.clock.nowMs()));
  }

  /** Sends a request to the service. An error becomes an outcome. */
  async #withService<Result>(
    { group, channel, run, delivery, id }: Target,
    question: (service: Service, what: Sending) => Promise<Result>,
  ): Promise<Result | Exclude<Outcome, { readonly kind: 'arrived' }>> {
    try {
      const what = { name: { namespace: group.namespace, group: group.name }, run, delivery, key: id };
      return await question(serviceOf(this.#options.parts, channel), what);
    } catch (error) {
      return problemBefore(error) ?? { kind: 'unknown', problem: messageOf(error) };
    }
  }
}

function serviceOf(parts: ServiceParts, channel: ChannelDefinition): Service {
  switch (channel.service) {
    case 'slack':
      return slackService(parts, channel);
    case 'callback':
      return callbackService(parts, channel);
    default:
      return commitStatusService(parts, channel);
  }
}

function marksOf({ runs }: Notes, runKey: string, channel: string): ChannelNotes['sending'] {
  const run = runs.find(({ key }) => key === runKey);
  return run === undefined ? undefined : channelNotes(run, channel).sending;
}
