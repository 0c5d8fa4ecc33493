// The words of notifications: what a person needs who is woken by one, in plain text and without a look at anything else.
import { formatDuration } from '../../policies/duration.ts';
import { instantText } from '../../policies/instant.ts';
import type { Hold, Progress, RunFacts } from './facts.ts';
import type { NotedEvent, RunNotes } from './notes.ts';

/** The group of a run. */
export interface GroupName {
  readonly namespace: string;
  readonly group: string;
}

/** `the rollout`, `the rollback`. */
export function subjectOf({ kind }: Pick<RunNotes, 'kind'>): string {
  return `the ${kind}`;
}

/** Returns the event as a sentence without the name of the group. */
export function eventSentence(run: RunNotes, event: NotedEvent): string {
  const subject = subjectOf(run);
  switch (event.kind) {
    case 'started':
      return `${subject} began`;
    case 'waiting':
      return `${subject} waits${event.hold === undefined ? '' : `: ${holdText(event.hold)}`}`;
    case 'failed':
      return `${subject} failed: ${event.failure ?? 'a limit was passed'}`;
    case 'completed':
      return `${subject} is complete${tookText(run)}`;
    case 'superseded':
      return `${subject} came to no end: another target took its place`;
    default:
      return event.kind satisfies never;
  }
}

/** Returns the next action of the reader; undefined if no action is needed. */
export function whatNext(event: Pick<NotedEvent, 'kind' | 'hold'>): string | undefined {
  if (event.kind === 'failed') return 'No further pod is replaced until a person acts. Replaced pods stay updated.';
  if (event.kind !== 'waiting') return undefined;
  return event.hold?.rule === 'approval' ? 'It continues when it is approved.' : 'It does not end by itself: a person must act.';
}

export function holdText({ rule, fact, limit }: Hold): string {
  return `${rule}: ${fact}${limit === undefined ? '' : ` (${limit})`}`;
}

/** `34 % done: 102 of 300 pods are new, 297 available`, with the wave under way. */
export function progressText({ percent, pods, updated, available, wave }: Progress): string {
  const place = wave === undefined ? '' : `, wave ${wave.name} (${wave.place} of ${wave.count})`;
  return `${percent} % done: ${updated} of ${pods} pods are new, ${available} available${place}`;
}

function tookText({ startedMs, endedMs }: RunNotes): string {
  return endedMs === undefined || endedMs < startedMs ? '' : ` after ${durationText(endedMs - startedMs)}`;
}

/** In whole seconds. */
function durationText(ms: number): string {
  return formatDuration(Math.max(0, Math.round(ms / 1000)) * 1000);
}

/** `2026-11-02 09:00 UTC`. */
export function timeText(ms: number): string {
  return `${(instantText(ms) ?? '').slice(0, 16).replace('T', ' ')} UTC`;
}

/** The command that says more. */
export function explainCommand({ namespace, group }: GroupName): string {
  return `kubectl rollout-group explain ${group} -n ${namespace}`;
}

/** Returns the state of the run as a predicate. */
export function stateText({ outcome }: RunNotes, live: RunFacts | undefined): string {
  switch (outcome) {
    case 'running':
      return live?.hold === undefined ? 'is under way' : 'waits';
    case 'completed':
      return 'is complete';
    case 'failed':
      return 'has failed';
    case 'superseded':
      return 'came to no end, another target took its place';
    default:
      return outcome satisfies never;
  }
}

/** At most that many UTF-16 units, with a sign that something was cut; never half of a pair. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most - 1);
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}
