// Messages for Slack: one for a run, replies in its thread for what happens, and pages of 50 pods.
import type { PodLine, RunFacts } from './facts.ts';
import type { NotedEvent, RunNotes } from './notes.ts';
import {
  cut,
  eventSentence,
  explainCommand,
  type GroupName,
  holdText,
  progressText,
  stateText,
  subjectOf,
  timeText,
  whatNext,
} from './words.ts';

/** Pods on one page. */
export const podsPerPage = 50;

/** chat.update takes 4,000 characters of text; escapes make some longer. */
const longestMessage = 3900;
const longestPart = 600;
const mostZones = 20;
/** 50 lines of this and a word stay below the limit of a message. */
const longestName = 60;

const signs: Readonly<Record<string, string>> = {
  running: ':arrows_counterclockwise:',
  waiting: ':double_vertical_bar:',
  started: ':arrow_forward:',
  failed: ':x:',
  completed: ':white_check_mark:',
  superseded: ':fast_forward:',
};

/** Escapes the three special characters of Slack, and the one that ends code, in foreign text. */
export function escaped(text: string): string {
  return text.replace(/[&<>`]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character] ?? "'");
}

/** Texts of others on one line: a line of theirs must not look like one of ours. */
function inline(text: string, most = longestPart): string {
  return escaped(cut(text.replace(/\s+/g, ' ').trim(), most));
}

/** Returns the current message of a run; `live` while the run is observed. */
export function mainMessage(name: GroupName, run: RunNotes, live: RunFacts | undefined): string {
  const last = run.events.at(-1);
  const now = run.outcome === 'running' ? live : undefined;
  const progress = live ?? last?.progress;
  const sign = run.outcome === 'running' && now?.hold !== undefined ? signs['waiting'] : signs[run.outcome];
  const origin = [
    run.commit === undefined ? '' : `commit ${inline(run.commit, 60)}`,
    run.cause === undefined ? '' : inline(run.cause, 200),
  ];
  const ended = run.endedMs === undefined ? '' : `, ended ${timeText(run.endedMs)}`;
  const lines = [
    `${sign} *${inline(`${name.namespace}/${name.group}`)}*: ${subjectOf(run)} ${stateText(run, now)}`,
    run.outcome === 'running' ? inline(live?.goal ?? run.goal) : '',
    progress === undefined ? '' : inline(progressText(progress)),
    ...(now?.hold === undefined ? [] : [`Held by ${inline(holdText(now.hold))}${untilText(now.hold.untilMs)}`]),
    ...(run.outcome === 'failed' && last?.failure !== undefined ? [`Why: ${inline(last.failure)}`] : []),
    zonesText(live),
    `Started ${timeText(run.startedMs)}${ended}${origin.map((part) => (part === '' ? '' : ` · ${part}`)).join('')}`,
    `\`${inline(explainCommand(name), 600)}\``,
  ];
  return cut(lines.filter((line) => line !== '').join('\n'), longestMessage);
}

function untilText(untilMs: number | undefined): string {
  return untilMs === undefined ? '' : `, until ${timeText(untilMs)} at the earliest`;
}

function zonesText(live: RunFacts | undefined): string {
  if (live === undefined || live.zones.length < 2) return '';
  const zones = live.zones.slice(0, mostZones).map(({ zone, updated, pods }) => `${inline(zone, longestName)} ${updated}/${pods}`);
  return `Zones: ${zones.join(', ')}${live.zones.length > mostZones ? ` and ${live.zones.length - mostZones} more` : ''}`;
}

/** A reply in the thread. */
export function eventMessage(name: GroupName, run: RunNotes, event: NotedEvent): string {
  const lines = [
    `${signs[event.kind]} *${inline(`${name.namespace}/${name.group}`)}*: ${inline(eventSentence(run, event))}`,
    inline(progressText(event.progress)),
    whatNext(event) ?? '',
    event.kind === 'completed' ? '' : `\`${inline(explainCommand(name), 600)}\``,
  ];
  return cut(lines.filter((line) => line !== '').join('\n'), longestMessage);
}

/** Returns the number of pages for this many pods; pages are never removed. */
export function pageCount(pods: number, most: number): number {
  return Math.min(most, Math.ceil(pods / podsPerPage));
}

/** Page `page` (from 1 on) holds the pods 50(page - 1) + 1 to 50 page, in their order. */
export function pageMessage(pods: readonly PodLine[], page: number): string {
  const first = podsPerPage * (page - 1);
  const shown = pods.slice(first, first + podsPerPage);
  if (shown.length === 0) return `Pods from ${first + 1} on were removed: the group has ${pods.length} pods.`;
  const lines = shown.map(({ pod, state }) => `${state.padEnd(8)} ${pod.length <= longestName ? pod : `…${pod.slice(1 - longestName)}`}`);
  return [`Pods ${first + 1} to ${first + shown.length} of ${pods.length}`, '```', ...lines, '```'].join('\n');
}
