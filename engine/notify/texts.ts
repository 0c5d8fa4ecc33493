// Writes the texts of notifications: sentences for people, Slack messages, the body of a callback, and the status of a commit.
import { formatDuration } from '../../policies/duration.ts';
import { instantText, minuteText } from '../../policies/instant.ts';
import { cut } from '../../policies/text/shorten.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { Hold, PodLines, Progress, RunFacts } from './facts.ts';
import type { NotedEvent, RunNotes } from './notes.ts';

export interface GroupName {
  readonly namespace: string;
  readonly group: string;
}

function eventSentence(run: RunNotes, event: NotedEvent): string {
  const subject = `the ${run.kind}`;
  switch (event.kind) {
    case 'started':
      return `${subject} began`;
    case 'waiting':
      return `${subject} waits${event.hold === undefined ? '' : `: ${holdText(event.hold)}`}`;
    case 'failed':
      return `${subject} failed: ${event.failure ?? 'a limit was exceeded'}`;
    case 'completed':
      return `${subject} is complete${tookText(run)}`;
    case 'superseded':
      return `${subject} ended early: another run replaced it`;
    default:
      return event.kind satisfies never;
  }
}

function whatNext(event: Pick<NotedEvent, 'kind' | 'hold'>): string | undefined {
  if (event.kind === 'failed')
    return 'No further pod is replaced until a person acts, unless the group rolls back or continues a rollback.';
  if (event.kind !== 'waiting') return undefined;
  return event.hold?.rule === 'approval' ? 'The run continues after approval.' : 'The wait has no known end. A person may have to act.';
}

function holdText({ rule, fact, limit }: Hold): string {
  return `${rule}: ${fact}${limit === undefined ? '' : ` (${limit})`}`;
}

function progressText({ percent, pods, updated, available, wave }: Progress): string {
  const place = wave === undefined ? '' : `, wave ${wave.name} (${wave.place} of ${wave.count})`;
  return `${percent} % done: ${updated} of ${pods} pods updated, ${available} available${place}`;
}

function tookText({ startedMs, endedMs }: RunNotes): string {
  if (endedMs === undefined || endedMs < startedMs) return '';
  return ` after ${formatDuration(Math.round((endedMs - startedMs) / 1000) * 1000)}`;
}

function explainCommand({ namespace, group }: GroupName): string {
  return `kubectl rollout-group explain ${group} -n ${namespace}`;
}

const stateTexts = {
  running: 'is under way',
  completed: 'is complete',
  failed: 'has failed',
  superseded: 'ended early: another run replaced it',
} as const satisfies Record<RunNotes['outcome'], string>;

export const podsPerPage = 50;

/** The maximum length of a message in characters. Slack's chat.update accepts 4,000, and escapes make some characters longer. */
const longestMessage = 3900;
const longestPart = 600;
const maxZones = 20;
/** The maximum length of a name in characters, so that 50 lines with a name and a state fit in one message. */
const longestName = 60;

const signs: Readonly<Record<string, string>> = {
  running: ':arrows_counterclockwise:',
  waiting: ':double_vertical_bar:',
  started: ':arrow_forward:',
  failed: ':x:',
  completed: ':white_check_mark:',
  superseded: ':fast_forward:',
};

/** Escapes the three special characters of Slack and the backtick, which ends code, in foreign text. */
export function escaped(text: string): string {
  return text.replace(/[&<>`]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[character] ?? "'");
}

/** Returns foreign text on one line, so that no line of it looks like a line of the message. */
function inline(text: string, most = longestPart): string {
  return escaped(cut(text.replace(/\s+/g, ' ').trim(), most));
}

/** Returns the current message of a run. `live` is the observed state, if the run is still observed. */
export function mainMessage(name: GroupName, run: RunNotes, live: RunFacts | undefined): string {
  const last = run.events.at(-1);
  const now = run.outcome === 'running' ? live : undefined;
  const progress = live ?? last?.progress;
  const sign = run.outcome === 'running' && now?.hold !== undefined ? signs['waiting'] : signs[run.outcome];
  const origin = [
    run.commit === undefined ? '' : `commit ${inline(run.commit, 60)}`,
    run.cause === undefined ? '' : inline(run.cause, 200),
  ];
  const ended = run.endedMs === undefined ? '' : `, ended ${minuteText(run.endedMs)}`;
  const until = now?.hold?.untilMs === undefined ? '' : `, until ${minuteText(now.hold.untilMs)} at the earliest`;
  const lines = [
    `${sign} *${inline(`${name.namespace}/${name.group}`)}*: the ${run.kind} ${now?.hold === undefined ? stateTexts[run.outcome] : 'waits'}`,
    run.outcome === 'running' ? inline(live?.goal ?? run.goal) : '',
    progress === undefined ? '' : inline(progressText(progress)),
    now?.hold === undefined ? '' : `Blocked by ${inline(holdText(now.hold))}${until}`,
    ...(run.outcome === 'failed' && last?.failure !== undefined ? [`Why: ${inline(last.failure)}`] : []),
    zonesText(live),
    `Started ${minuteText(run.startedMs)}${ended}${origin.map((part) => (part === '' ? '' : ` · ${part}`)).join('')}`,
    `\`${inline(explainCommand(name), 600)}\``,
  ];
  return cut(lines.filter((line) => line !== '').join('\n'), longestMessage);
}

function zonesText(live: RunFacts | undefined): string {
  if (live === undefined || live.zones.length < 2) return '';
  const zones = live.zones.slice(0, maxZones).map(({ zone, updated, pods }) => `${inline(zone, longestName)} ${updated}/${pods}`);
  return `Zones: ${zones.join(', ')}${live.zones.length > maxZones ? ` and ${live.zones.length - maxZones} more` : ''}`;
}

export function eventMessage(name: GroupName, run: RunNotes, event: NotedEvent): string {
  const lines = [
    `${signs[event.kind]} *${inline(`${name.namespace}/${name.group}`)}*: ${inline(eventSentence(run, event))}`,
    inline(progressText(event.progress)),
    whatNext(event) ?? '',
    event.kind === 'completed' ? '' : `\`${inline(explainCommand(name), 600)}\``,
  ];
  return cut(lines.filter((line) => line !== '').join('\n'), longestMessage);
}

export function pageCount(pods: number, most: number): number {
  return Math.min(most, Math.ceil(pods / podsPerPage));
}

/** Returns page `page`, counted from 1, with up to 50 pods in their order. */
export function pageMessage({ lines, count }: PodLines, page: number): string {
  const first = podsPerPage * (page - 1);
  const shown = lines.slice(first, first + podsPerPage);
  if (shown.length === 0) return `Pods from ${first + 1} on were removed: the group has ${count} pods.`;
  const texts = shown.map(({ pod, state }) => `${state.padEnd(8)} ${pod.length <= longestName ? pod : `…${pod.slice(1 - longestName)}`}`);
  return [`Pods ${first + 1} to ${first + shown.length} of ${count}`, '```', ...texts, '```'].join('\n');
}

/** The version of the body. A new field does not change the version. */
const callbackFormat = 'rollout-group.dev/notification/v1';

export function callbackBody({ namespace, group }: GroupName, run: RunNotes, event: NotedEvent): string {
  const { percent, pods, updated, available, wave } = event.progress;
  return canonicalJson({
    format: callbackFormat,
    id: event.id,
    event: event.kind,
    at: instantText(event.atMs),
    group: { namespace, name: group },
    run: { id: run.key, kind: run.kind, startedAt: instantText(run.startedMs), commit: run.commit, cause: run.cause },
    // After `started` and `waiting` the run continues.
    result: event.kind === 'started' || event.kind === 'waiting' ? 'running' : event.kind,
    reason: cut(event.failure ?? (event.hold === undefined ? eventSentence(run, event) : holdText(event.hold)), 600),
    rule: event.hold?.rule,
    percent,
    counts: { pods, updated, available },
    wave: wave === undefined ? undefined : { name: wave.name, place: wave.place, count: wave.count },
  });
}

/** Returns the signed text: the time (Unix seconds) and the body, so that a signature is invalid at another time. */
export function signedText(timestamp: string, body: string): string {
  return `${timestamp}.${body}`;
}

export interface CommitStatus {
  readonly sha: string;
  readonly state: string;
  /** The name of the status. A new status replaces the earlier status of the same name. */
  readonly name: string;
  readonly description: string;
}

/** The commit states of a service, and its limits in characters. */
interface Service {
  readonly states: Readonly<Record<NotedEvent['kind'], string>>;
  readonly longestDescription: number;
}

/** The maximum length of the name of a status in GitHub and GitLab, in characters. */
const longestStatus = 255;

/** The statuses of GitHub: error, failure, pending, success (https://docs.github.com/en/rest/commits/statuses). */
const github: Service = {
  states: { started: 'pending', waiting: 'pending', failed: 'failure', completed: 'success', superseded: 'error' },
  longestDescription: 140,
};

/** The statuses of GitLab: pending, running, success, failed, canceled, skipped (https://docs.gitlab.com/api/commits/). */
const gitlab: Service = {
  states: { started: 'running', waiting: 'running', failed: 'failed', completed: 'success', superseded: 'canceled' },
  longestDescription: 255,
};

const services = { github, gitlab } as const;

/** A whole commit id, SHA-1 or SHA-256: the name of a branch or a part of an id may name another commit later. */
const commitId = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Returns the status of the commit of a run; undefined if the run names no whole commit id. */
export function commitStatus(service: keyof typeof services, name: GroupName, run: RunNotes, event: NotedEvent): CommitStatus | undefined {
  const sha = run.commit?.trim().toLowerCase() ?? '';
  if (!commitId.test(sha)) return undefined;
  const { states, longestDescription } = services[service];
  const { percent } = event.progress;
  const ends = event.kind === 'completed' ? '' : `${percent} %, `;
  return {
    sha,
    state: states[event.kind],
    name: cut(`rollout-group/${name.namespace}/${name.group}`, longestStatus),
    description: cut(`${ends}${eventSentence(run, event)}`.replace(/\s+/g, ' '), longestDescription),
  };
}
