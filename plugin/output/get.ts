// Renders groups for get: a table with one line per group, or one group with its zones and its pods in flight.
import { ordinalRanges, ordinalsIn } from '../../engine/amount.ts';
import { type Stop, updatedWord } from '../../engine/decision.ts';
import type { PublishedDecision, PublishedPod, PublishedWait, PublishedZone } from '../../engine/publish/published.ts';
import { gatesWithReading, leftMemberText, openExceptions } from '../../engine/publish/status.ts';
import { updatedRevision } from '../../engine/publish/template-change.ts';
import { strategyTraits } from '../../policies/strategies.ts';
import { shorten } from '../../policies/text/shorten.ts';
import { counted } from '../../policies/wording.ts';
import type { Facts } from '../live/facts.ts';
import type { LiveGroup } from '../live/groups.ts';
import {
  asOfText,
  endText,
  factMsOf,
  goalText,
  marks,
  metricText,
  partText,
  phaseStyles,
  phaseTitle,
  podTotals,
  readingText,
  seenAtMs,
  shortRevision,
  shownStops,
  summaryText,
  unreadZones,
  warningTexts,
  waveText,
  zoneWaitText,
} from './group-text.ts';
import { changeText } from './image-text.ts';
import { ageText, deadlineText, exceptionAndEndText, factText, passesText, shortDigest, stopAndEndText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { podText, shortPods } from './pod-text.ts';
import { alignTable, type Column, type ItemColumn, itemTable, paragraph, type Row, reasonSuffix } from './text.ts';
import { countedLimit, downText, noWaveParts, unreadText, type ZoneProgress, zoneProgress } from './zone-progress.ts';

interface GroupsTable {
  readonly groups: readonly LiveGroup[];
  readonly nowMs: number;
  readonly hasNamespaces: boolean;
}

export function renderGroups({ groups, nowMs, hasNamespaces }: GroupsTable, look: TableLook): string {
  const isWide = look.isWide === true;
  const isShort = look.columns !== undefined && look.columns < 110 && !isWide;
  const age = ({ from }: LiveGroup, atMs: number, here: string): string => (from === 'here' ? here : ageText(atMs, nowMs));
  const columns: readonly ItemColumn<LiveGroup>[] = [
    { title: 'NAMESPACE', align: 'left', isFlexible: true, cell: ({ decision }) => decision.namespace },
    { title: 'NAME', align: 'left', isFlexible: true, cell: ({ decision }) => decision.group },
    { title: 'PHASE', align: 'left', cell: (live) => `${pastMark(live)}${live.decision.phase}` },
    { title: 'FOR', align: 'right', cell: (live) => age(live, live.decision.phaseSinceMs, '-') },
    { title: 'WAVE', align: 'left', isFlexible: true, cell: ({ decision }) => waveText(decision, { isShort }) || '-' },
    { title: 'UPDATED', align: 'right', cell: (live) => `${pastMark(live)}${partText(live.decision, 'updated')}` },
    { title: 'READY', align: 'right', cell: (live) => `${pastMark(live)}${partText(live.decision, 'available')}` },
    { title: 'AS OF', align: 'right', leastWidth: 70, cell: (live) => age(live, live.decision.decidedMs, 'now') },
    { title: 'DEFINED', align: 'left', cell: ({ decision }) => decision.origin ?? '-' },
    { title: 'POLICY', align: 'left', cell: ({ decision }) => shortDigest(decision.policyDigest) || '-' },
    { title: 'LEADER', align: 'left', isFlexible: true, cell: ({ decision }) => decision.leader ?? '-' },
    { title: 'INFO', align: 'left', isFlexible: true, isText: true, cell: (live) => summaryText(live, { isShort, nowMs }) },
  ];
  const hidden = [...(hasNamespaces ? [] : ['NAMESPACE']), ...(isWide ? [] : ['DEFINED', 'POLICY', 'LEADER'])];
  const shown = columns.filter(({ title }) => !hidden.includes(title));
  const lines = itemTable(shown, groups, { ...look, columns: isWide ? undefined : look.columns }, (line, { decision: { phase } }) =>
    line.replace(` ${phase} `, () => ` ${look.paint(phaseStyles[phase], phase)} `),
  );
  return `${lines.join('\n')}\n`;
}

/** Returns `was ` for a decision that may not show the present state: no agent acts, the agent has just started, or a member changed since. */
function pastMark({ from, unattended, starting, isOutdated }: LiveGroup): string {
  return from === 'agent' && (unattended !== undefined || starting !== undefined || isOutdated === true) ? 'was ' : '';
}

const treeColumns: readonly Column[] = [
  { title: 'NAME', align: 'left', isFlexible: true },
  { title: 'STATE', align: 'left' },
  { title: 'REVISION', align: 'left', isFlexible: true },
  { title: 'READY', align: 'right' },
  { title: 'FOR', align: 'right' },
  { title: 'INFO', align: 'left', isFlexible: true, isText: true },
];

interface TreeLook extends TableLook {
  /** The display of pods that are not in flight; default `ranges`. */
  readonly pods?: PodDetail;
}

/** Returns the lines of one group: its headline and zones, then every section that is not empty. */
export function renderTree(live: LiveGroup, nowMs: number, look: TreeLook, facts: Facts = {}): readonly string[] {
  const { decision } = live;
  const { metrics = [] } = decision;
  const { estimation } = facts;
  const seenMs = seenAtMs(live, nowMs);
  const waits = decision.waits.flatMap((wait) => waitLines(wait, { nowMs, seenMs, factMs: factMsOf(live, nowMs) }, look));
  const stops = shownStops(decision).flatMap((stop) => stopLines(stop, nowMs, look));
  const left = (decision.left ?? []).flatMap((one) => paragraph('  ', leftMemberText(one), look.columns));
  const exceptions = openExceptions(decision, nowMs).flatMap((result) =>
    paragraph('  ', exceptionAndEndText(result, decision, nowMs), look.columns),
  );
  const rows = decision.zones.flatMap((zone) => zoneRows(zone, { decision, nowMs: seenMs, look, facts }));
  const { header, lines } = alignTable(treeColumns, rows, { width: look.columns, ellipsis: look.glyphs.ellipsis });
  return [
    ...headLines(live, nowMs, look, changeText(facts.changes ?? [], look.glyphs.arrow)),
    ...(live.unattended === undefined
      ? []
      : paragraph('', `${live.unattended}; nothing is carried out`, look.columns).map((line) => look.paint('red', line))),
    ...(estimation === undefined ? [] : paragraph('', `end ${endText(estimation, nowMs)}`, look.columns)),
    ...(decision.deadline === undefined
      ? []
      : paragraph('', `deadline: ${deadlineText(decision.deadline, nowMs, live.unattended)}`, look.columns)),
    '',
    ...(live.unattended === undefined || live.from === 'here' ? [] : [look.paint('dim', asOfText(decision, nowMs))]),
    look.paint('bold', header),
    ...lines.flatMap((line) => line.split('\n')),
    ...section('blocked by', waits, look),
    ...section('stopped by', stops, look),
    ...section('left the group', left, look),
    ...section(
      'warnings',
      warningTexts(decision, nowMs).flatMap((text) => paragraph('  ', text, look.columns)),
      look,
    ),
    ...section('exceptions', exceptions, look),
    ...section('gates', decision.outcome === 'done' ? [] : gateLines(decision, nowMs), look),
    ...section('metrics', decision.outcome === 'done' ? [] : metrics.map((metric) => `  ${metricText(metric, nowMs)}`), look),
    ...section('last', lastLines(decision, nowMs, look), look),
    ...(decision.omitted.length === 0 ? [] : [look.paint('dim', `  not shown: ${decision.omitted.join(', ')}`)]),
  ];
}

function headLines(live: LiveGroup, nowMs: number, look: TableLook, change = ''): readonly string[] {
  const { decision, from } = live;
  const was = pastMark(live);
  const name = `${decision.namespace}/${decision.group}`;
  const phase = `${was}${phaseTitle(decision.phase)}`;
  const wave = decision.wave === undefined ? '' : `   wave ${waveText(decision)}`;
  const counts = countsText(decision, was);
  const room = look.columns === undefined ? Number.POSITIVE_INFINITY : Math.max(0, look.columns - name.length - phase.length - 3);
  const hasRoom = change !== '' && wave.length + change.length + counts.length + 6 <= room;
  const rest = hasRoom ? `${wave}   ${change}   ${counts}` : `${wave}   ${counts}`;
  // In a narrow terminal, the counts follow in a line.
  const [first, below] = rest.length <= room ? [rest, []] : [wave, [counts]];
  const decided = from === 'here' ? 'decided by this command' : `decided ${ageText(decision.decidedMs, nowMs)} ago`;
  const facts = [
    ...(change === '' || hasRoom ? [] : [change]),
    goalText(decision, unreadZones(decision)),
    decided,
    ...(decision.leader === undefined ? [] : [`by ${decision.leader}`]),
    ...(decision.origin === undefined ? [] : [`defined by ${decision.origin}`]),
    ...(decision.strategy === undefined || !strategyTraits[decision.strategy].holdsPartition ? [] : [`strategy ${decision.strategy}`]),
    `policy ${shortDigest(decision.policyDigest) || '-'}`,
    ...(decision.openClaims === 0 ? [] : [counted(decision.openClaims, 'open claim')]),
  ];
  const head = `${look.paint('bold', name)}   ${look.paint(phaseStyles[decision.phase], phase)}${shorten(first, room, look.glyphs.ellipsis)}`;
  const bullet = ` ${look.glyphs.bullet} `;
  return [head, ...below, ...paragraph('', facts.join(bullet), look.columns).map((line) => look.paint('dim', line))];
}

function countsText(decision: PublishedDecision, was: string): string {
  const { desired, updated, available, areKnown } = podTotals(decision);
  if (!areKnown) return '? updated   ? available';
  return `${was}${updated} of ${desired} ${updatedWord(decision.zones)}   ${was}${available} available`;
}

interface Tree {
  readonly decision: PublishedDecision;
  readonly nowMs: number;
  readonly look: TreeLook;
  readonly facts: Facts;
}

function zoneRows(zone: PublishedZone, tree: Tree): readonly Row[] {
  const { decision, nowMs, look } = tree;
  const name = zoneName(zone, tree);
  if (unreadZones(decision).includes(zone.zone))
    return [{ cells: [name, zone.unread === 'missing' ? 'missing' : 'unknown', '-', '?', '-', unreadText(zone)] }];
  const progress = zoneProgress(zone, decision.pods);
  const row: Row = {
    cells: [
      name,
      zoneState(progress),
      revisionText(zone, look.glyphs.arrow),
      `${zone.available}/${zone.replicas}`,
      flightText(zone, decision, nowMs),
      zoneInfo(progress, zone, decision),
    ],
  };
  return [row, ...podRows(zone, decision, nowMs, look.pods ?? 'ranges')];
}

/** Returns the revisions of outdated pods, and the revision of updated pods after an arrow; `-` if none is known. */
function revisionText(zone: PublishedZone, arrow: string): string {
  const { revisions, statefulSet } = zone;
  const target = updatedRevision(zone);
  const outdated = revisions.flatMap(({ revision }) => (revision === target ? [] : shortRevision(revision, statefulSet)));
  const parts = [outdated.join(', '), target === undefined ? '' : shortRevision(target, statefulSet)];
  return parts.filter((part) => part !== '').join(arrow) || '-';
}

/** Returns the longest time that a published pod of the zone has been in its state, or `-`. */
function flightText({ zone }: PublishedZone, { pods }: PublishedDecision, nowMs: number): string {
  const starts = pods.flatMap((pod) => (pod.zone === zone && pod.sinceMs !== undefined ? [pod.sinceMs] : []));
  return starts.length === 0 ? '-' : ageText(Math.min(...starts), nowMs);
}

function zoneName({ zone }: PublishedZone, { decision, facts }: Tree): string {
  const role = facts.roles?.get(zone);
  return role === undefined ? zone : `${zone.padEnd(Math.max(...decision.zones.map((one) => one.zone.length)))}  ${role}`;
}

function zoneState({ done, inFlight, failing, toDo }: ZoneProgress): string {
  if (failing > 0) return 'failing';
  if (inFlight > 0) return 'in flight';
  if (toDo === 0) return 'done';
  return done === 0 ? 'outdated' : 'partial';
}

function zoneInfo(progress: ZoneProgress, zone: PublishedZone, decision: PublishedDecision): string {
  const { inFlight, toDo, inNoWave = 0, done } = progress;
  const left = toDo - inNoWave;
  const wait = inFlight === 0 && left > 0 ? zoneWaitText(decision, zone.zone) : undefined;
  const down = downText(progress);
  const parts = [
    ...down,
    ...(left > 0 && (down.length > 0 || done > 0 || wait === undefined) ? [`${left} to go`] : []),
    ...(wait === undefined ? [] : [wait]),
    ...noWaveParts(progress),
    ...strategyText(zone),
  ];
  return parts.join(', ');
}

function strategyText({ partition, pinned }: PublishedZone): readonly string[] {
  return [...(partition === undefined ? [] : [`partition ${partition}`]), ...(pinned === undefined ? [] : [`pinned ${pinned}`])];
}

function waitLines(
  wait: PublishedWait,
  { nowMs, seenMs, factMs }: { readonly nowMs: number; readonly seenMs: number; readonly factMs: number | undefined },
  look: TableLook,
): readonly string[] {
  const { outcome, rule, zones, sinceMs } = wait;
  const where = zones.length === 0 ? '' : ` (${zones.join(', ')})`;
  const head = `  ${marks[outcome]} ${rule}${where} for ${ageText(sinceMs, seenMs)}: `;
  const lines = paragraph('    ', `${head.trimStart()}${factText(wait, factMs)}; ${passesText(wait, nowMs)}`, look.columns);
  const mark = marks[outcome];
  return lines.map((line, index) =>
    index === 0 ? line.slice(2).replace(mark, () => look.paint(outcome === 'no' ? 'red' : 'yellow', mark)) : line,
  );
}

function stopLines(stop: Stop, nowMs: number, { columns }: TableLook): readonly string[] {
  const where = stop.zones.length === 0 ? '' : `${stop.zones.join(', ')}: `;
  return paragraph('  ', `${where}${stopAndEndText(stop, nowMs)}`, columns);
}

function gateLines(decision: PublishedDecision, nowMs: number): readonly string[] {
  return gatesWithReading(decision).map(({ gate, mode, latest, readings }) => {
    const watched = mode === 'observe' ? ', observe only' : '';
    return `  ${gate}: ${readingText(latest)} ${ageText(latest.atMs, nowMs)} ago, ${counted(readings, 'reading')}${watched}`;
  });
}

/** Returns the newest action of the last turn with actions, and the number of the other actions of that turn. */
function lastLines({ actions, zones }: PublishedDecision, nowMs: number, look: TableLook): readonly string[] {
  const last = actions.at(-1);
  if (last === undefined) return [];
  const more = actions.length > 1 ? `, and ${actions.length - 1} more` : '';
  return paragraph(
    '  ',
    `${shortPods(last.what, zones)}: ${last.result}${reasonSuffix(last.message)}, ${ageText(last.atMs, nowMs)} ago${more}`,
    look.columns,
  );
}

function section(title: string, lines: readonly string[], { paint }: TableLook): readonly string[] {
  return lines.length === 0 ? [] : ['', paint('bold', title), ...lines];
}

export type PodDetail = 'ranges' | 'all';

/** Returns the rows of the pods of a zone. The published status names the pods with a state; of other pods only the revision is known. */
function podRows(zone: PublishedZone, { pods }: PublishedDecision, nowMs: number, detail: PodDetail): readonly Row[] {
  const moving = pods.filter((pod) => pod.zone === zone.zone);
  const every = detail === 'all' ? allRows(zone, moving, nowMs) : undefined;
  if (every !== undefined) return every;
  return [...moving.map((pod) => movingRow(pod, nowMs)), ...(zone.revisions.length > 1 ? rangeRows(zone, moving) : [])];
}

/** Returns one row per pod, sorted by ordinal; undefined if the ordinals cannot be parsed or are more than `countedLimit`. */
function allRows(zone: PublishedZone, moving: readonly PublishedPod[], nowMs: number): readonly Row[] | undefined {
  const { revisions, statefulSet } = zone;
  const rows = new Map<number, Row>();
  for (const { revision, ordinals: ranges } of revisions) {
    const ordinals = ordinalsIn(ranges, countedLimit - rows.size);
    if (ordinals === undefined) return undefined;
    const state = revision === updatedRevision(zone) ? 'updated' : 'outdated';
    const short = shortRevision(revision, statefulSet);
    for (const ordinal of ordinals)
      rows.set(ordinal, { cells: [`  ${podText(zone.zone, `${statefulSet}-${ordinal}`)}`, state, short, '', '', ''] });
  }
  for (const pod of moving) {
    const ordinal = Number(pod.pod.slice(statefulSet.length + 1));
    rows.set(ordinal, movingRow(pod, nowMs, rows.get(ordinal)?.cells[2]));
  }
  return [...rows].sort(([a], [b]) => a - b).map(([, row]) => row);
}

function movingRow({ zone, pod, state, reason, node, sinceMs }: PublishedPod, nowMs: number, revision = ''): Row {
  const info = [reason, node === undefined || node === '' ? undefined : node].filter((part) => part !== undefined).join(', ');
  return { cells: [`  ${podText(zone, pod)}`, state, revision, '0/1', sinceMs === undefined ? '' : ageText(sinceMs, nowMs), info] };
}

/** Returns one row per revision, so that 200 pods fit on a screen. Pods in flight have their own rows. */
function rangeRows(zone: PublishedZone, moving: readonly PublishedPod[]): readonly Row[] {
  const { revisions, statefulSet } = zone;
  const shown = new Set(moving.map(({ pod }) => Number(pod.slice(statefulSet.length + 1))));
  return revisions.flatMap(({ revision, ordinals }) => {
    const others = ordinalsIn(ordinals, countedLimit)?.filter((ordinal) => !shown.has(ordinal));
    if (others?.length === 0) return [];
    const state = revision === updatedRevision(zone) ? 'updated' : 'outdated';
    const ranges = others === undefined ? ordinals : ordinalRanges(others);
    return [{ cells: [`  ${ranges}`, state, shortRevision(revision, statefulSet), '', '', ''] }];
  });
}
