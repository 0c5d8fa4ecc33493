// Reads and writes notes as text in a ConfigMap next to the ledger. Notes that do not match the schema are unknown. Notes that are too long
// lose their oldest runs first.

import * as z from 'zod';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { Immutable } from '../../policies/values/immutable.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { isUnknown, type Known } from '../snapshot.ts';
import { emptyNotes, notesLimits } from './notes.ts';

export const notesKey = 'notifications';

/** The label value that distinguishes these ConfigMaps from ledgers. */
export const notesLabelValue = 'notifications';

/** The maximum size of the text in UTF-8 bytes. */
export const notesByteLimit = 256 * 1024;

/** Returns the name of the ConfigMap. No ledger and no published decision has this name. */
export function notesName(group: string): string {
  return `rollout-notify-${group}`;
}

const format = '1';
const text = z.string().max(512);
const name = z.string().max(253);
const id = z.string().min(1).max(128);
const count = z.int().min(0);
const revisions = z.record(name, name);

const progress = z.object({
  percent: z.int().min(0).max(100),
  pods: count,
  updated: count,
  available: count,
  wave: z.object({ name, place: count, count }).exactOptional(),
});
const hold = z.object({ rule: text, fact: text, limit: text.exactOptional(), untilMs: z.number().exactOptional() });
const event = z.object({
  /** A hash of the run and the event, so that every process computes the same id. */
  id,
  /** `superseded`: another run replaced a running run. Channels that want the end of a run receive this event. */
  kind: z.enum(['started', 'waiting', 'failed', 'completed', 'superseded']),
  /** The time of the observation, in milliseconds since 1970. */
  atMs: z.number(),
  progress,
  hold: hold.exactOptional(),
  failure: text.exactOptional(),
  to: z.array(name).max(notesLimits.channels),
});
/** The sender of a delivery in progress and its start (wall clock, in milliseconds). */
const mark = z.object({ by: text, atMs: z.number() });
const channel = z.object({
  /** The ids of events and the keys of messages that were delivered or abandoned. */
  done: z.array(id).max(500),
  /** The reasons of abandoned deliveries, by id or key. */
  refused: z.record(id, text).exactOptional(),
  /** Deliveries under way, by key. If another process began a delivery, this process must find out whether the message arrived. */
  sending: z.record(id, mark).exactOptional(),
  /** Handles of messages that are edited, by key. */
  handles: z.record(id, z.string().max(64)),
  /** The event after which every message received its final edit. */
  closedBy: id.exactOptional(),
});
const run = z.object({
  /** The id of the first run of the change. The run gets another id when more zones join; the key stays. */
  key: id,
  id,
  kind: z.enum(['rollout', 'rollback']),
  target: revisions,
  previous: revisions,
  startedMs: z.number(),
  outcome: z.enum(['running', 'completed', 'failed', 'superseded']),
  endedMs: z.number().exactOptional(),
  goal: text,
  commit: name.exactOptional(),
  cause: text.exactOptional(),
  events: z.array(event).max(notesLimits.events + 20),
  channels: z.record(name, channel),
});
const document = z.object({
  format: z.literal(format),
  namespace: name,
  group: name,
  /** The oldest run first. The last run is the run in the ledger. */
  runs: z.array(run).max(notesLimits.runs),
  problems: z.record(name, z.object({ text, sinceMs: z.number() })).exactOptional(),
});

export type NotedEvent = Immutable<z.infer<typeof event>>;
export type SendingMark = Immutable<z.infer<typeof mark>>;
export type ChannelNotes = Immutable<z.infer<typeof channel>>;
export type RunNotes = Immutable<z.infer<typeof run>>;
export type Notes = Immutable<Omit<z.infer<typeof document>, 'format'>>;

/** Encodes the notes; the same notes give the same bytes. Omits older runs if the text is too long; unknown if that is not enough. */
export function encodeNotes(notes: Notes): Known<string> {
  for (let runs = notes.runs; ; runs = runs.slice(1)) {
    const encoded = canonicalJson({ format, ...notes, runs });
    if (bytesOf(encoded) <= notesByteLimit) {
      const read = decodeNotes(encoded, notes);
      return isUnknown(read) ? read : encoded;
    }
    if (runs.length <= 1) return { unknown: `the notes on notifications are longer than ${notesByteLimit} bytes` };
  }
}

/** Decodes the notes; empty without a text. Unknown, with the reason, if they cannot be read. */
export function decodeNotes(given: string | undefined, { namespace, group }: Pick<Notes, 'namespace' | 'group'>): Known<Notes> {
  if (given === undefined) return emptyNotes(namespace, group);
  const refuse = (why: string): Known<Notes> => ({ unknown: `the notes on notifications of ${namespace}/${group} ${why}` });
  if (given.length > notesByteLimit || bytesOf(given) > notesByteLimit) return refuse(`are longer than ${notesByteLimit} bytes`);
  const value = tryParseJson(given);
  if (value === undefined) return refuse('are not JSON');
  const read = document.safeParse(given.includes('__proto__') ? undefined : value);
  if (!read.success) return refuse('cannot be read');
  if (read.data.namespace !== namespace || read.data.group !== group) return refuse('belong to another group');
  const { format: _format, ...notes } = read.data;
  return notes;
}

function bytesOf(value: string): number {
  return new TextEncoder().encode(value).length;
}
