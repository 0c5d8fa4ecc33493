// Records the notifications of a group: its last runs, their events and the deliveries per channel, all within limits.

import type { NotifyDefinition } from '../../policies/definition.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { sha256 } from '../../policies/values/hash.ts';
import { changeOf, recordedKind } from '../run/origin.ts';
import type { Hold, Progress, RunFacts } from './facts.ts';
import type { ChannelNotes, NotedEvent, Notes, RunNotes, SendingMark } from './notes-document.ts';

export type { ChannelNotes, NotedEvent, Notes, RunNotes, SendingMark };

/** The limits of notes. Beyond the limits, no wait is reported, and the oldest runs are dropped even if deliveries are pending. */
export const notesLimits = { runs: 3, events: 40, channels: 20, pages: 100 } as const;

export interface Observation {
  readonly facts: RunFacts;
  readonly notify: readonly NotifyDefinition[];
  readonly atMs: number;
  /** The block that has lasted long enough for a notification and has no known end. */
  readonly lasting?: Hold;
}

export function emptyNotes(namespace: string, group: string): Notes {
  return { namespace, group, runs: [] };
}

/** Returns the notes after an observation of a run; the same value if nothing changed. Observations of earlier runs change nothing. */
export function noted(before: Notes, seen: Observation): Notes {
  const { run } = seen.facts;
  const notes = withoutOldProblems(before, seen.notify);
  const last = notes.runs.at(-1);
  if (last === undefined) return withRun(notes, run.outcome === 'running' ? started(seen) : { ...newNotes(seen), outcome: run.outcome });
  if (last.id === run.id) return replaced(notes, last, continued(last, seen));
  if (run.startedMs < last.startedMs || notes.runs.some(({ id }) => id === run.id)) return notes;
  if (last.outcome === 'running' && last.key === changeOf(run)) {
    const { commit: _commit, cause: _cause, ...joined } = last;
    return replaced(notes, last, continued({ ...joined, id: run.id, target: run.target, ...originOf(seen) }, seen));
  }
  const ended = last.outcome === 'running' ? superseded(last, seen) : last;
  return withRun(replaced(notes, last, ended), continued(started(seen), seen));
}

function withoutOldProblems(notes: Notes, notify: readonly NotifyDefinition[]): Notes {
  const named = new Set(notify.map(({ channel }) => channel));
  const old = Object.keys(notes.problems ?? {}).filter((channel) => !named.has(channel));
  return old.reduce((now, channel) => withProblem(now, channel, undefined, 0), notes);
}

function newNotes(seen: Observation): RunNotes {
  const { run, goal } = seen.facts;
  return {
    key: changeOf(run),
    id: run.id,
    kind: recordedKind(run),
    target: run.target,
    previous: run.previous,
    startedMs: run.startedMs,
    goal,
    outcome: 'running',
    events: [],
    channels: {},
    ...originOf(seen),
  };
}

function originOf({ facts: { commit, cause } }: Observation): Pick<RunNotes, 'commit' | 'cause'> {
  return { ...(commit === undefined ? {} : { commit }), ...(cause === undefined ? {} : { cause }) };
}

function started(seen: Observation): RunNotes {
  return withEvent(newNotes(seen), seen, { kind: 'started', about: '' });
}

function continued(run: RunNotes, seen: Observation): RunNotes {
  const { run: now } = seen.facts;
  const { outcome } = now;
  if (outcome === run.outcome) {
    const { lasting, facts } = seen;
    if (outcome !== 'running' || lasting === undefined) return run;
    const about = `${lasting.rule} ${facts.wave?.place ?? ''}${now.id === run.key ? '' : ` ${now.id}`}`;
    return withEvent(run, seen, { kind: 'waiting', about });
  }
  const { endedMs: _endedMs, ...rest } = run;
  // No event announces a retry. An event announces its result.
  if (now.outcome === 'running') return { ...rest, outcome: now.outcome };
  const endedMs = now.outcome === 'completed' ? now.completedMs : now.failedMs;
  return withEvent({ ...rest, outcome: now.outcome, endedMs }, seen, { kind: now.outcome, about: `${endedMs}` });
}

/** Ends a superseded run with its last known progress, because the observed progress is that of the next run. */
function superseded(run: RunNotes, seen: Observation): RunNotes {
  const progress = run.events.at(-1)?.progress ?? progressOf(seen.facts);
  return withEvent({ ...run, outcome: 'superseded', endedMs: seen.atMs }, seen, { kind: 'superseded', about: '', progress });
}

/** A new event. `about` distinguishes events of one kind. Without `progress`, the event has the observed progress. */
type NewEvent = Pick<NotedEvent, 'kind'> & { readonly about: string; readonly progress?: Progress };

function withEvent(run: RunNotes, seen: Observation, { kind, about, progress = progressOf(seen.facts) }: NewEvent): RunNotes {
  const { facts, notify, atMs, lasting } = seen;
  const id = idOf(facts.namespace, facts.group, run.key, kind, about);
  if (run.events.some((event) => event.id === id)) return run;
  if (kind === 'waiting' && run.events.length >= notesLimits.events) return run;
  const wantsEvent = ({ events }: NotifyDefinition): boolean =>
    kind === 'superseded' ? events.includes('completed') || events.includes('failed') : events.includes(kind);
  const to = [...new Set(notify.filter(wantsEvent).map(({ channel }) => channel))].slice(0, notesLimits.channels);
  if (to.length === 0) return run;
  const failure = facts.run.outcome === 'failed' ? facts.run.failure : undefined;
  const event: NotedEvent = {
    id,
    kind,
    atMs,
    progress,
    to,
    ...(kind === 'waiting' && lasting !== undefined ? { hold: lasting } : {}),
    ...(kind === 'failed' ? { failure: (failure ?? 'a limit was exceeded').slice(0, 400) } : {}),
  };
  return { ...run, events: [...run.events, event] };
}

function progressOf({ percent, pods, updated, available, wave }: RunFacts): Progress {
  return { percent, pods, updated, available, ...(wave === undefined ? {} : { wave }) };
}

/** Returns a hash of the parts with 128 bits. */
export function idOf(...parts: readonly string[]): string {
  return sha256(canonicalJson(parts)).slice(0, 32);
}

function withRun(notes: Notes, run: RunNotes): Notes {
  return { ...notes, runs: [...notes.runs, run].slice(-notesLimits.runs) };
}

function replaced(notes: Notes, before: RunNotes, after: RunNotes): Notes {
  return before === after ? notes : { ...notes, runs: notes.runs.map((run) => (run === before ? after : run)) };
}

const noDeliveries: ChannelNotes = { done: [], handles: {} };

export function channelNotes(run: RunNotes, channel: string): ChannelNotes {
  return run.channels[channel] ?? noDeliveries;
}

/** Changes the notes of one channel about one run. Returns the same value if the run is unknown or nothing changes. */
export function withChannel(notes: Notes, runKey: string, channel: string, change: (known: ChannelNotes) => ChannelNotes): Notes {
  const run = notes.runs.find(({ key }) => key === runKey);
  if (run === undefined) return notes;
  const before = channelNotes(run, channel);
  const after = change(before);
  return before === after ? notes : replaced(notes, run, { ...run, channels: { ...run.channels, [channel]: after } });
}

/** Records that this sender is about to send a message. Returns the same notes if the message was delivered. */
export function sending(known: ChannelNotes, key: string, by: string, atMs: number): ChannelNotes {
  return known.done.includes(key) ? known : { ...known, sending: { ...known.sending, [key]: { by, atMs } } };
}

/** Records that a delivery arrived, with the handle for later edits, or that it was abandoned. */
export function done(known: ChannelNotes, key: string, how: { readonly handle?: string; readonly refused?: string }): ChannelNotes {
  if (known.done.includes(key)) return known;
  const { sending: underWay = {}, ...rest } = known;
  const { [key]: _arrived, ...others } = underWay;
  return {
    ...rest,
    ...(Object.keys(others).length === 0 ? {} : { sending: others }),
    done: [...known.done, key],
    ...(how.refused === undefined ? {} : { refused: { ...known.refused, [key]: how.refused.slice(0, 200) } }),
    handles: how.handle === undefined ? known.handles : { ...known.handles, [key]: how.handle },
  };
}

export function withProblem(notes: Notes, channel: string, text: string | undefined, atMs: number): Notes {
  const known = notes.problems?.[channel];
  if (known?.text === text) return notes;
  const { [channel]: _known, ...others } = notes.problems ?? {};
  if (text === undefined) return { ...notes, problems: others };
  return { ...notes, problems: { ...others, [channel]: { text: text.slice(0, 400), sinceMs: known?.sinceMs ?? atMs } } };
}
