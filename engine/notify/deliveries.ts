// Chooses the next delivery to a channel about a run: events first, then the edit of the main message, then pages.
import type { PodLines, RunFacts } from './facts.ts';
import { channelNotes, type NotedEvent, notesLimits, type RunNotes } from './notes.ts';
import { eventMessage, type GroupName, mainMessage, pageCount, pageMessage } from './texts.ts';

type Manner = 'messages' | 'events';

export type Delivery =
  /** A new message: the main message of the run, a reply in its thread, or a page of its pods. */
  | {
      readonly kind: 'post';
      readonly key: string;
      readonly text: string;
      /** The handle of the thread; absent if the message is in no thread. */
      readonly thread?: string;
      /** True if the channel shows the message outside its thread too. Readers get no notification when the main message is edited. */
      readonly isBroadcast: boolean;
    }
  | { readonly kind: 'edit'; readonly key: string; readonly handle: string; readonly text: string }
  | { readonly kind: 'tell'; readonly key: string; readonly event: NotedEvent }
  /** Records that every message of the ended run has its final text. */
  | { readonly kind: 'close'; readonly key: string };

export interface LiveRun {
  readonly facts: RunFacts;
  readonly pods: PodLines;
}

const mainKey = 'main';

export interface DeliveryState {
  readonly name: GroupName;
  readonly run: RunNotes;
  readonly channel: string;
  readonly manner: Manner;
  /** The observed state; undefined for a past run and before the first observation. */
  readonly live: LiveRun | undefined;
  /** True if another run has followed. */
  readonly isPast: boolean;
  /** Reports whether the message of this key already has this text. */
  readonly isShown: (key: string, text: string) => boolean;
}

/** Returns the events that have not been delivered. The main message of a run announces its start. */
export function undelivered(run: RunNotes, channel: string): readonly NotedEvent[] {
  const { done } = channelNotes(run, channel);
  return run.events.filter(
    ({ id, kind, to }) => to.includes(channel) && !done.includes(id) && !(kind === 'started' && done.includes(mainKey)),
  );
}

/** Reports whether the run has no message left to send. */
export function isSettled(run: RunNotes, channel: string): boolean {
  if (undelivered(run, channel).length > 0) return false;
  const { done, closedBy } = channelNotes(run, channel);
  const last = run.events.findLast(({ to }) => to.includes(channel))?.id;
  return !done.includes(mainKey) || (run.outcome !== 'running' && closedBy === last);
}

/** Returns the next delivery; undefined if there is nothing to send. */
export function nextDelivery(state: DeliveryState): Delivery | undefined {
  const { run, channel, manner } = state;
  const events = run.events.filter(({ to }) => to.includes(channel));
  if (events.length === 0) return undefined;
  const { done } = channelNotes(run, channel);
  if (manner === 'messages') return nextMessage(state, events);
  const event = events.find(({ id }) => !done.includes(id));
  return event === undefined ? undefined : { kind: 'tell', key: event.id, event };
}

function nextMessage(state: DeliveryState, events: readonly NotedEvent[]): Delivery | undefined {
  const { name, run, channel, live, isPast } = state;
  const { done, handles, closedBy } = channelNotes(run, channel);
  const facts = live?.facts;
  if (!done.includes(mainKey)) {
    return { kind: 'post', key: mainKey, text: mainMessage(name, run, facts), isBroadcast: false };
  }
  const thread = handles[mainKey];
  const inThread = thread === undefined ? {} : { thread };
  const event = events.find(({ id, kind }) => kind !== 'started' && !done.includes(id));
  if (event !== undefined) {
    const isBroadcast = thread !== undefined && (event.kind === 'failed' || event.kind === 'waiting');
    return { kind: 'post', key: event.id, text: eventMessage(name, run, event), ...inThread, isBroadcast };
  }
  const last = events.at(-1)?.id ?? '';
  // Before the first observation, the message in the channel may be newer than the stored notes.
  if ((run.outcome !== 'running' && closedBy === last) || (live === undefined && !isPast)) return undefined;
  const edit = thread === undefined ? undefined : edited(state, mainKey, mainMessage(name, run, facts));
  const page = thread === undefined || live === undefined ? undefined : nextPage(state, live.pods, thread);
  return edit ?? page ?? (run.outcome === 'running' ? undefined : { kind: 'close', key: last });
}

function nextPage(state: DeliveryState, pods: PodLines, thread: string): Delivery | undefined {
  const { done } = channelNotes(state.run, state.channel);
  const known = done.filter((key) => key.startsWith('page-')).length;
  const pages = Math.max(known, pageCount(pods.count, notesLimits.pages));
  for (let page = 1; page <= pages; page += 1) {
    const key = `page-${page}`;
    const text = pageMessage(pods, page);
    if (!done.includes(key)) return { kind: 'post', key, text, thread, isBroadcast: false };
    const edit = edited(state, key, text);
    if (edit !== undefined) return edit;
  }
  return undefined;
}

function edited({ run, channel, isShown }: DeliveryState, key: string, text: string): Delivery | undefined {
  const handle = channelNotes(run, channel).handles[key];
  return handle === undefined || isShown(key, text) ? undefined : { kind: 'edit', key, handle, text };
}
