// A rollout as it goes on: one frame for a terminal that can redraw, one line per transition for everything else.
import type { GroupDecision } from '../../engine/decision.ts';
import { factText, spanText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph, shorten } from './plan/table-layout.ts';
import { plural } from './plural.ts';

/** The pods of one zone. */
export interface ZoneProgress {
  readonly zone: string;
  /** Updated and available. */
  readonly done: number;
  /** Going, coming, or not ready. */
  readonly inFlight: number;
  /** Available on an old revision. */
  readonly toDo: number;
}

/** What is shown of a decision: of one just made, or of one that was published. */
type MomentDecision = Pick<GroupDecision, 'namespace' | 'group' | 'phase' | 'outcome' | 'waits' | 'wave'> & {
  readonly actions: readonly { readonly kind: string; readonly zone?: string }[];
};

/** A moment of a rollout. */
export interface Moment {
  readonly decision: MomentDecision;
  readonly zones: readonly ZoneProgress[];
  /** The instant of the decision. */
  readonly nowMs: number;
  /** Since the start. */
  readonly elapsedSeconds: number;
  /** What the rollout brings: `mimir:2.16.0 -> 2.17.1`. */
  readonly change?: string | undefined;
  /** When it is likely to end; undefined when nobody can know. */
  readonly totalSeconds: number | undefined;
  /** Of zones that are not done, when they likely are: `about 16m`. */
  readonly zoneEnds?: Readonly<Record<string, string>>;
  /** More lines below the zones, each a label and a text. */
  readonly more?: readonly (readonly [string, string])[];
}

/** The lines of one frame: a headline, a bar per zone, and what is waited for. */
export function renderFrame(moment: Moment, look: TableLook): readonly string[] {
  const { decision, zones, elapsedSeconds, totalSeconds, more = [], change = '' } = moment;
  const wave = decision.wave === undefined ? '' : `   wave ${decision.wave.index + 1}/${decision.wave.count} ${decision.wave.name}`;
  const clock = `   +${spanText(elapsedSeconds)}${totalSeconds === undefined ? '' : ` of about ${spanText(totalSeconds)}`}`;
  const name = `${decision.namespace}/${decision.group}`;
  const phase = decision.phase.toUpperCase();
  const room = look.columns === undefined ? Number.POSITIVE_INFINITY : Math.max(0, look.columns - name.length - phase.length - 3);
  const hasRoom = change !== '' && wave.length + change.length + clock.length + 3 <= room;
  const rest = hasRoom ? `${wave}   ${change}${clock}` : wave + clock;
  const style = decision.outcome === 'done' ? 'green' : 'cyan';
  const width = Math.max(0, ...zones.map(({ zone }) => zone.length));
  return [
    `${look.paint('bold', name)}   ${look.paint(style, phase)}${shorten(rest, room, look.glyphs.ellipsis)}`,
    ...zones.map((zone) => zoneLine(zone, Math.min(width, 24), moment, look)),
    `  ${look.paint('yellow', nowText(moment, (look.columns ?? 100) - 2, look))}`,
    ...(change === '' || hasRoom ? [] : paragraph('  change: ', change, look.columns)),
    ...more.flatMap(([label, text]) => paragraph(`  ${label}: `, text, look.columns)),
  ];
}

function zoneLine(progress: ZoneProgress, nameWidth: number, { zoneEnds = {} }: Moment, look: TableLook): string {
  const { zone, done, inFlight, toDo } = progress;
  const total = done + inFlight + toDo;
  const forEnds = Math.max(0, ...Object.values(zoneEnds).map((end) => end.length + 2));
  const width = Math.max(10, Math.min(40, (look.columns ?? 80) - nameWidth - 44 - (look.columns === undefined ? 0 : forEnds)));
  const count = `${done}/${total}`.padStart(7);
  const text = [zoneText(progress), zoneEnds[zone]].filter((part) => part !== undefined).join(', ');
  return `  ${shorten(zone, nameWidth, look.glyphs.ellipsis).padEnd(nameWidth)} ${count} ${bar(progress, width, look)}  ${text}`;
}

/** Three fills, which differ without colour: done, in flight, to do. What there is at least one of is always seen. */
function bar({ done, inFlight, toDo }: ZoneProgress, width: number, { glyphs, paint }: TableLook): string {
  const total = Math.max(1, done + inFlight + toDo);
  const cells = (count: number) => (count === 0 ? 0 : Math.max(1, Math.round((count / total) * width)));
  const flying = Math.min(cells(inFlight), width);
  const finished = toDo + inFlight === 0 ? width : Math.min(cells(done), width - flying - (toDo > 0 ? 1 : 0));
  const rest = Math.max(0, width - finished - flying);
  return `[${paint('green', glyphs.full.repeat(finished))}${paint('cyan', glyphs.half.repeat(flying))}${glyphs.empty.repeat(rest)}]`;
}

function zoneText({ done, inFlight, toDo }: ZoneProgress): string {
  if (inFlight > 0) return `${inFlight} in flight, ${toDo} to go`;
  if (toDo === 0) return 'done';
  return done === 0 ? 'waits for its turn' : `${toDo} to go`;
}

function nowText(moment: Moment, width: number, look: TableLook): string {
  const { decision, zones, nowMs } = moment;
  if (decision.outcome === 'done') return 'done';
  const flying = zones.filter((zone) => zone.inFlight > 0).map((zone) => `${plural(zone.inFlight, 'pod')} of ${zone.zone}`);
  if (flying.length > 0) return shorten(`now: ${flying.join(', ')} on the way`, width, look.glyphs.ellipsis);
  const [wait] = decision.waits;
  if (decision.outcome === 'act' || wait === undefined) return `now: ${workingZones(moment).join(', ')}`;
  const at = wait.earliestMs === undefined ? '' : `, at the earliest in ${spanText((wait.earliestMs - nowMs) / 1000)}`;
  return shorten(`waits: ${wait.rule}, ${factText(wait)}${at}`, width, look.glyphs.ellipsis);
}

/** One line that a log keeps: when, what, how far. */
export function transitionLine(moment: Moment): string {
  const { decision, zones, elapsedSeconds } = moment;
  const sum = (count: (zone: ZoneProgress) => number) => zones.reduce((total, zone) => total + count(zone), 0);
  const all = sum((zone) => zone.done + zone.inFlight + zone.toDo);
  const wave = decision.wave === undefined ? '' : ` wave=${decision.wave.index + 1}/${decision.wave.count} name=${decision.wave.name}`;
  const [wait] = decision.waits;
  const working = workingZones(moment);
  const where = working.length === 0 ? '' : ` zone=${working.join(',')}`;
  const waiting = working.length === 0 && wait !== undefined ? ` waits=${wait.rule}` : '';
  const name = `${decision.namespace}/${decision.group}`;
  return `${clockText(elapsedSeconds)} ${name} ${decision.phase.toLowerCase()}${wave}${where} updated=${sum((zone) => zone.done)}/${all}${waiting}`;
}

/** What has to change for a new line: phase, wave, the zone at work, a zone that is finished, what is waited for when nothing moves. */
export function transitionKey(moment: Moment): string {
  const { decision, zones } = moment;
  const working = workingZones(moment);
  const finished = zones.filter((zone) => zone.inFlight + zone.toDo === 0).length;
  const waits = working.length === 0 ? decision.waits.map((wait) => wait.rule) : [];
  return [decision.outcome === 'done', decision.wave?.index, finished, ...working, ...waits].join(' ');
}

/** Zones with pods in flight, or from which pods are about to go. */
function workingZones({ decision, zones }: Moment): readonly string[] {
  const acting = new Set(decision.actions.flatMap(({ zone }) => (zone === undefined ? [] : [zone])));
  return zones.filter((zone) => zone.inFlight > 0 || acting.has(zone.zone)).map((zone) => zone.zone);
}

/** `+01:31:30`, of equal width, so that lines can be sorted. */
function clockText(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return `+${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}
