// Renders the progress of a rollout: a frame for a terminal, one line per transition for logs.
import { type GroupDecision, isAtRest, updatedWord } from '../../engine/decision.ts';
import type { PublishedPod } from '../../engine/publish/published.ts';
import { leftMemberText, noWaveTexts, openExceptions, stopTitle, waitsForAllowed } from '../../engine/publish/status.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { secondText } from '../../policies/instant.ts';
import { shorten } from '../../policies/text/shorten.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import type { Estimation, Facts } from '../live/facts.ts';
import type { LiveGroup } from '../live/groups.ts';
import {
  currentRoll,
  endText,
  partText,
  phaseStyles,
  phaseTitle,
  type RollSteps,
  shownStops,
  startingText,
  summaryText,
  troubledPods,
  troubleText,
  unreadZones,
  warningTexts,
  waveText,
  zoneEndText,
  zoneWaitText,
} from './group-text.ts';
import { changeText } from './image-text.ts';
import { ageText, deadlineText, exceptionAndEndText, factText, leftText, spanText, stopAndEndText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph } from './text.ts';
import { downText, noWaveParts, type ZoneProgress, zoneProgress } from './zone-progress.ts';

export function renderStatus(live: LiveGroup, nowMs: number, look: TableLook, facts: Facts = {}): readonly string[] {
  return renderFrame({ ...momentOf(live, nowMs, facts), change: changeText(facts.changes ?? [], look.glyphs.arrow) }, look);
}

function momentOf({ decision, unattended, starting: newAgent }: LiveGroup, nowMs: number, { estimation }: Facts): Moment {
  const zones = decision.zones.map((zone) => zoneProgress(zone, decision.pods));
  const { run, phaseSinceMs } = decision;
  const startedMs = run?.startedMs ?? phaseSinceMs;
  const endedMs = run?.completedMs ?? run?.failedMs;
  const elapsedSeconds = Math.max(0, (endedMs ?? nowMs) - startedMs) / 1000;
  const trouble = troubleText(decision);
  const starting = startingText(decision, estimation, nowMs);
  return {
    decision,
    ...defined({ unattended }),
    zones,
    nowMs,
    elapsedSeconds,
    totalSeconds: undefined,
    ...(endedMs === undefined ? {} : { clock: `took ${spanText(elapsedSeconds)}` }),
    ...(run === undefined && isAtRest(decision) ? { clock: '' } : {}),
    zoneEnds: defined(Object.fromEntries(zones.map(({ zone }) => [zone, zoneEndText(estimation, zone, nowMs)]))),
    more: [
      ...(newAgent === undefined ? [] : [['agent', newAgent] as const]),
      ...(trouble === '' ? [] : [['trouble', trouble] as const]),
      ...shownStops(decision).map((stop) => ['stopped', stopAndEndText(stop, nowMs)] as const),
      ...(decision.left ?? []).map((one) => ['left', leftMemberText(one)] as const),
      ...openExceptions(decision, nowMs).map((result) => ['exception', exceptionAndEndText(result, decision, nowMs)] as const),
      ...warningTexts(decision, nowMs).map((text) => ['warning', text] as const),
      ...(starting === undefined ? [] : [['pod', starting] as const]),
      ...(estimation === undefined ? [] : [['end', endText(estimation, nowMs)] as const]),
      ...(decision.deadline === undefined ? [] : [['deadline', deadlineText(decision.deadline, nowMs, unattended)] as const]),
    ],
  };
}

/** Returns one log line: `2026-08-22T12:31:04Z mimir/ingester rolling wave=2/3 name=rest zone=b updated=27/60 available=55/60`. */
export function statusLine(live: LiveGroup, nowMs: number): string {
  const { decision } = live;
  return [secondText(nowMs), `${decision.namespace}/${decision.group}`, ...factsOf(live, nowMs)].join(' ');
}

/** Returns the log line printed at regular intervals, with the duration of the phase and, if estimated, the end and the missing approvals. */
export function heartbeatLine(live: LiveGroup, nowMs: number, estimation?: Estimation): string {
  const { decision } = live;
  const line = [secondText(nowMs), 'heartbeat', `${decision.namespace}/${decision.group}`, ...factsOf(live, nowMs)].join(' ');
  return `${line} for=${ageText(decision.phaseSinceMs, nowMs)}${endField(estimation)}`;
}

function endField(estimation: Estimation): string {
  if (estimation === undefined) return '';
  if (isUnknown(estimation)) return ' end=?';
  const { end, approvals } = estimation;
  const range = `${secondText(end.p50Ms)}..${end.p90Ms === undefined ? '' : secondText(end.p90Ms)}`;
  return ` end=${range}${approvals === 0 ? '' : ` missing-approvals=${approvals}`}`;
}

function factsOf(live: LiveGroup, nowMs: number): readonly string[] {
  const { decision, unattended } = live;
  const unread = unreadZones(decision);
  const { wave } = decision;
  const info = summaryText(live, { nowMs });
  const stops = [...new Set((decision.stops ?? []).map(stopTitle))];
  const exceptions = openExceptions(decision, nowMs).map(({ exception }) => exception);
  const hasProblem =
    decision.waits.length + stops.length + exceptions.length + (decision.left ?? []).length > 0 ||
    (isAtRest(decision) && noWaveTexts(decision.zones).length > 0) ||
    troubledPods(decision).length > 0 ||
    unattended !== undefined;
  const working = decision.zones.filter((zone) => zone.available < zone.replicas && !unread.includes(zone.zone)).map(({ zone }) => zone);
  return [
    decision.phase.toLowerCase(),
    ...(wave === undefined ? [] : [`wave=${Math.min(wave.index + 1, wave.count)}/${wave.count}`, `name=${wave.name}`]),
    ...(working.length === 0 ? [] : [`zone=${working.join(',')}`]),
    `${decision.zones.every(({ isReturned }) => isReturned === true) ? 'returned' : 'updated'}=${partText(decision, 'updated')}`,
    `available=${partText(decision, 'available')}`,
    ...(decision.waits.length === 0 ? [] : [`waits=${[...new Set(decision.waits.map(({ rule }) => rule))].join(',')}`]),
    ...(stops.length === 0 ? [] : [`stops=${stops.join(',')}`]),
    ...(exceptions.length === 0 ? [] : [`exceptions=${exceptions.join(',')}`]),
    ...(info === '' || !hasProblem ? [] : [JSON.stringify(info)]),
  ];
}

/** Returns a key of the phase, wave, zones, failing pods, waits, stops, exceptions and agent state. A new key is a transition. */
export function statusKey({ decision, unattended }: LiveGroup): string {
  const zones = decision.zones.map((zone) => [
    zone.zone,
    zone.available < zone.replicas,
    zone.updated === zone.replicas,
    zone.replicas,
    zone.podsInNoWave,
  ]);
  const waits = decision.waits.map(({ rule, outcome }) => [rule, outcome]);
  const stops = (decision.stops ?? []).map(({ rule, fact }) => [rule, fact]);
  const troubled = troubledPods(decision).map(({ pod }) => pod);
  return JSON.stringify([
    decision.phase,
    waveText(decision),
    decision.run?.outcome,
    zones,
    waits,
    stops,
    (decision.permitted ?? []).map(({ fact }) => fact),
    (decision.unusedExceptions ?? []).map(({ exception }) => exception),
    (decision.left ?? []).map(({ fact }) => fact),
    troubled,
    unattended !== undefined,
  ]);
}

/** The part of a decision that is shown. The decision comes from this command or from the published status. */
type MomentDecision = Pick<GroupDecision, 'namespace' | 'group' | 'phase' | 'outcome'> &
  RollSteps & {
    readonly actions: readonly { readonly kind: string; readonly zone?: string }[];
    /** The pods with a state. Absent in a simulation, whose decisions name no pods. */
    readonly pods?: readonly PublishedPod[];
  };

export interface Moment {
  readonly decision: MomentDecision;
  /** The reason why nothing is carried out. */
  readonly unattended?: string;
  readonly zones: readonly ZoneProgress[];
  readonly nowMs: number;
  readonly elapsedSeconds: number;
  /** The time in the headline; empty for no time. Default: the elapsed time, and the total duration. */
  readonly clock?: string;
  /** Image change: `mimir:2.16.0 -> 2.17.1`. */
  readonly change?: string | undefined;
  readonly totalSeconds: number | undefined;
  /** The estimated time until each unfinished zone is done: `about 16m`. */
  readonly zoneEnds?: Readonly<Record<string, string | undefined>>;
  /** Further lines below the zones, each a label and a text. */
  readonly more?: readonly (readonly [string, string])[];
}

/** Returns the lines of one frame: a headline, a bar per zone, the current work or wait, and `moment.more`. */
export function renderFrame(moment: Moment, look: TableLook): readonly string[] {
  const { decision, zones, elapsedSeconds, totalSeconds, more = [], change = '' } = moment;
  const wave = decision.wave === undefined ? '' : `   wave ${waveText(decision)}`;
  const time = moment.clock ?? `+${spanText(elapsedSeconds)}${totalSeconds === undefined ? '' : ` of about ${spanText(totalSeconds)}`}`;
  const clock = time === '' ? '' : `   ${time}`;
  const name = `${decision.namespace}/${decision.group}`;
  const phase = phaseTitle(decision.phase);
  const room = look.columns === undefined ? Number.POSITIVE_INFINITY : Math.max(0, look.columns - name.length - phase.length - 3);
  const hasRoom = change !== '' && wave.length + change.length + clock.length + 3 <= room;
  const rest = hasRoom ? `${wave}   ${change}${clock}` : wave + clock;
  const width = Math.max(0, ...zones.map(({ zone }) => zone.length));
  return [
    `${look.paint('bold', name)}   ${look.paint(phaseStyles[decision.phase], phase)}${shorten(rest, room, look.glyphs.ellipsis)}`,
    ...zones.map((zone) => zoneLine(zone, Math.min(width, 24), moment, look)),
    ...paragraph('  ', nowText(moment), look.columns).map((line) => `  ${look.paint('yellow', line.slice(2))}`),
    ...(change === '' || hasRoom ? [] : paragraph('  change: ', change, look.columns)),
    ...more.flatMap(([label, text]) => paragraph(`  ${label}: `, text, look.columns)),
  ];
}

function zoneLine(progress: ZoneProgress, nameWidth: number, { decision, zoneEnds = {} }: Moment, look: TableLook): string {
  const { zone, updated } = progress;
  const total = totalOf(progress);
  const forEnds = Math.max(0, ...Object.values(zoneEnds).map((end = '') => end.length + 2));
  const room = (look.columns ?? 80) - nameWidth - 44 - (look.columns === undefined ? 0 : forEnds);
  // A narrow terminal has no room for the word.
  const word = room < 18 ? '' : ` ${updatedWord([progress])}`;
  const width = Math.max(10, Math.min(40, room - word.length));
  const count = (progress.unread === undefined ? `${updated}/${total}` : '?').padStart(7);
  const parts = [zoneText(progress, decision), zoneEnds[zone]].filter((part) => part !== undefined).join(', ');
  const left = (look.columns ?? Number.POSITIVE_INFINITY) - nameWidth - word.length - width - 15;
  const text = shorten(parts, left, look.glyphs.ellipsis);
  return `  ${shorten(zone, nameWidth, look.glyphs.ellipsis).padEnd(nameWidth)} ${count}${word} ${bar(progress, width, look)}  ${text}`;
}

function totalOf({ done, inFlight, failing, toDo }: ZoneProgress): number {
  return done + inFlight + failing + toDo;
}

/** Returns a bar with three fills that differ without colour: done, in flight or failing, outdated. Each count above 0 gets a cell. */
function bar(progress: ZoneProgress, width: number, { glyphs, paint }: TableLook): string {
  const { done, inFlight, failing, toDo, unread } = progress;
  const total = Math.max(1, totalOf(progress));
  const cells = (count: number) => (count === 0 ? 0 : Math.max(1, Math.round((count / total) * width)));
  const last = toDo > 0 ? 1 : 0;
  const flying = Math.min(cells(inFlight + failing), width - (done > 0 ? 1 : 0) - last);
  const finished = done === totalOf(progress) ? (unread === undefined ? width : 0) : Math.min(cells(done), width - flying - last);
  const rest = Math.max(0, width - finished - flying);
  return `[${paint('green', glyphs.full.repeat(finished))}${paint(failing > 0 ? 'red' : 'cyan', glyphs.half.repeat(flying))}${glyphs.empty.repeat(rest)}]`;
}

function zoneText(progress: ZoneProgress, decision: RollSteps): string {
  const { zone, done, toDo, inNoWave = 0, unread } = progress;
  if (unread !== undefined) return unread;
  if (toDo === 0 && downText(progress).length === 0) return 'done';
  const left = toDo - inNoWave;
  const down = downText(progress);
  const wait = down.length === 0 && done === 0 ? zoneWaitText(decision, zone) : undefined;
  const toGo = left === 0 && inNoWave > 0 ? [] : [wait ?? `${left} to go`];
  return [...down, ...toGo, ...noWaveParts(progress)].join(', ');
}

function doneText(zones: readonly ZoneProgress[]): string {
  return zones.some(({ inNoWave }) => inNoWave !== undefined) ? 'every wave is done' : 'done';
}

function nowText(moment: Moment): string {
  const { decision, zones, nowMs, unattended } = moment;
  if (unattended !== undefined) return `${unattended}; nothing is carried out`;
  if (decision.phase === 'RolledBack') return 'the requested revision failed; every pod keeps its earlier revision';
  if (decision.outcome === 'done') return doneText(zones);
  const inFlight = zones.filter((zone) => zone.inFlight > 0).map((zone) => `${counted(zone.inFlight, 'pod')} of ${zone.zone}`);
  if (inFlight.length > 0 && !waitsForAllowed(decision)) return `now: ${inFlight.join(', ')} in flight`;
  const [wait] = decision.waits;
  if (decision.outcome === 'act' || wait === undefined) {
    const working = workingZones(moment);
    // A decision of this command has no action that was carried out.
    const next = working.length > 0 ? undefined : (currentRoll(decision) ?? decision.steps[0])?.zone;
    return next === undefined ? `now: ${working.join(', ')}` : `next: ${next}`;
  }
  const at = wait.earliestMs === undefined || wait.earliestMs <= nowMs ? '' : `, at the earliest in ${leftText(wait.earliestMs, nowMs)}`;
  return `blocked by ${wait.rule}: ${factText(wait, nowMs)}${at}`;
}

export function transitionLine(moment: Moment): string {
  const { decision, zones, elapsedSeconds } = moment;
  const sum = (count: (zone: ZoneProgress) => number) => zones.reduce((total, zone) => total + count(zone), 0);
  const all = sum(totalOf);
  const wave = decision.wave === undefined ? '' : ` wave=${decision.wave.index + 1}/${decision.wave.count} name=${decision.wave.name}`;
  const [wait] = decision.waits;
  const working = workingZones(moment);
  const where = working.length === 0 ? '' : ` zone=${working.join(',')}`;
  const waiting = working.length === 0 && wait !== undefined ? ` waits=${wait.rule}` : '';
  const name = `${decision.namespace}/${decision.group}`;
  return `${clockText(elapsedSeconds)} ${name} ${decision.phase.toLowerCase()}${wave}${where} updated=${sum((zone) => zone.updated)}/${all}${waiting}`;
}

/** Returns a key that changes with every transition: wave, finished zones, working zones, and waits while no zone works. */
export function transitionKey(moment: Moment): string {
  const { decision, zones } = moment;
  const working = workingZones(moment);
  const finished = zones.filter((zone) => zone.done + (zone.inNoWave ?? 0) === totalOf(zone)).length;
  const waits = working.length === 0 ? decision.waits.map((wait) => wait.rule) : [];
  return [decision.outcome === 'done', decision.wave?.index, finished, ...working, ...waits].join(' ');
}

function workingZones({ decision, zones }: Moment): readonly string[] {
  const acting = new Set(decision.actions.flatMap(({ zone }) => (zone === undefined ? [] : [zone])));
  return zones.filter((zone) => zone.inFlight > 0 || acting.has(zone.zone)).map((zone) => zone.zone);
}

/** Returns `+01:31:30`. The width is constant, so that lines can be sorted. */
function clockText(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return `+${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}
