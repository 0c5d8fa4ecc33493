// Chooses the next delivery of a channel about a run: events first, then edited messages, then pages.
import type { PodLine, RunFacts } from './facts.ts';
import { channelNotes, type NotedEvent, notesLimits, type RunNotes } from './notes.ts';
import { eventMessage, type GroupName, mainMessage, pageCount, pageMessage } from './texts.ts';

/** The form of a channel: edited messages, or one delivery per event. */
type Manner = 'messages' | 'events';

export type Delivery =
  /** A new message: that of the run, a reply in its thread, a page. */
  | {
      readonly kind: 'post';
      readonly key: string;
      readonly text: string;
      /** Absent: not in a thread. */
      readonly thread?: string;
      /** The message is shown outside its thread too, because an edit notifies no reader. */
      readonly isBroadcast: boolean;
      readonly isPage: boolean;
    }
  | { readonly kind: 'edit'; readonly key: string; readonly handle: string; readonly text: string; readonly isPage: boolean }
  | { readonly kind: 'tell'; readonly key: string; readonly event: NotedEvent }
  /** The run has no message left. */
  | { readonly kind: 'close'; readonly key: string };

/** The current state of a run. */
export interface LiveRun {
  readonly facts: RunFacts;
  readonly pods: readonly PodLine[];
}

/** Key of the message of a run. */
const mainKey = 'main';

export interface Telling {
  readonly name: GroupName;
  readonly run: RunNotes;
  readonly channel: string;
  readonly manner: Manner;
  /** Absent for a superseded run and before the first observation. */
  readonly live: LiveRun | undefined;
  /** True if another run has followed. */
  readonly isPast: boolean;
  /** Reports whether the message of this key already has this text. */
  readonly isShown: (key: string, text: string) => boolean;
}

/** Returns the events that have not arrived yet. The message of a run announces its start. */
export function untold(run: RunNotes, channel: string): readonly NotedEvent[] {
  const { done } = channelNotes(run, channel);
  return run.events.filter(
    ({ id, kind, to }) => to.includes(channel) && !done.includes(id) && !(kind === 'started' && done.includes(mainKey)),
  );
}

/** Reports whether the run has no message left to send. */
export function isSettled(run: RunNotes, channel: string): boolean {
  if (untold(run, channel).length > 0) return false;
  const { done, closedBy } = channelNotes(run, channel);
  const last = run.events.findLast(({ to }) => to.includes(channel))?.id;
  return !done.includes(mainKey) || (run.outcome !== 'running' && closedBy === last);
}

/** Returns the next delivery; undefined if there is nothing to send. */
export function nextDelivery(telling: Telling): Delivery | undefined {
  const { run, channel, manner } = telling;
  const events = run.events.filter(({ to }) => to.includes(channel));
  if (events.length === 0) return undefined;
  const { done } = channelNotes(run, channel);
  if (manner === 'messages') return nextMessage(telling, events);
  const event = events.find(({ id }) => !done.includes(id));
  return event === undefined ? undefined : { kind: 'tell', key: event.id, event };
}

function nextMessage(telling: Telling, events: readonly NotedEvent[]): Delivery | undefined {
  const { name, run, channel, live, isPast } = telling;
  const { done, handles, closedBy } = channelNotes(run, channel);
  const facts = live?.facts;
  if (!done.includes(mainKey)) {
    return { kind: 'post', key: mainKey, text: mainMessage(name, run, facts), isBroadcast: false, isPage: false };
  }
  const thread = handles[mainKey];
  const inThread = thread === undefined ? {} : { thread };
  const event = events.find(({ id, kind }) => kind !== 'started' && !done.includes(id));
  if (event !== undefined) {
    const isBroadcast = thread !== undefined && (event.kind === 'failed' || event.kind === 'waiting');
    return { kind: 'post', key: event.id, text: eventMessage(name, run, event), ...inThread, isBroadcast, isPage: false };
  }
  const last = events.at(-1)?.id ?? '';
  // Before the first observation the shown message may be newer than the stored notes.
  if ((run.outcome !== 'running' && closedBy === last) || (live === undefined && !isPast)) return undefined;
  const edit = thread === undefined ? undefined : edited(telling, mainKey, mainMessage(name, run, facts), false);
  const page = thread === undefined || live === undefined ? undefined : nextPage(telling, live.pods, thread);
  return edit ?? page ?? (run.outcome === 'running' ? undefined : { kind: 'close', key: last });
}

function nextPage(telling: Telling, pods: readonly PodLine[], thread: string): Delivery | undefined {
  const { done } = channelNotes(telling.run, telling.channel);
  const known = done.filter((key) => key.startsWith('page-')).length;
  const pages = Math.max(known, pageCount(pods.length, notesLimits.pages));
  for (let page = 1; page <= pages; page += 1) {
    const key = `page-${page}`;
    const text = pageMessage(pods, page);
    if (!done.includes(key)) return { kind: 'post', key, text, thread, isBroadcast: false, isPage: true };
    const edit = edited(telling, key, text, true);
    if (edit !== undefined) return edit;
  }
  return undefined;
}

function edited({ run, channel, isShown }: Telling, key: string, text: string, isPage: boolean): Delivery | undefined {
  const handle = channelNotes(run, channel).handles[key];
  return handle === undefined || isShown(key, text) ? undefined : { kind: 'edit', key, handle, text, isPage };
}
