// Renders the runs of a group as a table, or one run in full.
import type { ShownRun, ShownZone } from '../../engine/publish/run-record.ts';
import type { ImageChange } from '../live/facts.ts';
import { changeText, shortImage, shortRevision } from './group-text.ts';
import { spanText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { shortPods } from './pod-text.ts';
import type { Style } from './terminal.ts';
import { alignTable, type Column, paragraph, plural, reasonSuffix } from './text.ts';

const columns: readonly Column[] = [
  { title: 'RUN', align: 'left' },
  { title: 'KIND', align: 'left' },
  { title: 'TO', align: 'left', isFlexible: true },
  { title: 'PODS', align: 'right' },
  { title: 'START', align: 'left' },
  { title: 'TOOK', align: 'right' },
  { title: 'WAITED', align: 'right' },
  { title: 'RESULT', align: 'left' },
  { title: 'NOTE', align: 'left', isFlexible: true },
];

const styles: Readonly<Record<ShownRun['outcome'], Style>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  superseded: 'dim',
  cancelled: 'yellow',
  abandoned: 'dim',
};

/** Returns the table with a summary line. */
export function renderRuns(runs: readonly ShownRun[], look: TableLook): string {
  const rows = runs.map((run) => ({
    cells: [
      run.id,
      run.kind,
      targetText(run),
      podsText(run),
      `${run.startedAt.slice(0, 16).replace('T', ' ')}`,
      run.took === undefined ? '-' : spanText(run.took),
      spanText(run.waited),
      run.outcome,
      noteOf(run),
    ],
  }));
  const fit = { width: look.columns, ellipsis: look.glyphs.ellipsis };
  const { header, lines } = alignTable(columns, rows, fit);
  const painted = lines.map((line, index) => {
    const outcome = runs[index]?.outcome;
    return outcome === undefined ? line : line.replace(` ${outcome}`, () => ` ${look.paint(styles[outcome], outcome)}`);
  });
  return `${[look.paint('bold', header), ...painted, summary(runs)].join('\n')}\n`;
}

/** Returns `3/9`: the pods that the agent replaced, of all pods; `-` if the record does not count them. */
function podsText({ zones, steps }: ShownRun): string {
  const counts = zones.flatMap(({ pods }) => (pods === undefined ? [] : [pods]));
  const replaced = steps.filter(({ action }) => action === 'replace').reduce((sum, { count }) => sum + count, 0);
  return counts.length === 0 ? '-' : `${replaced}/${counts.reduce((sum, count) => sum + count, 0)}`;
}

/** Returns the target images or revisions, or the target replicas. */
function targetText({ zones }: ShownRun): string {
  const targets = zones.flatMap((zone) => {
    if (zone.toRevision !== undefined) return [revisionText(zone)];
    return zone.toReplicas === undefined ? [] : [`${zone.toReplicas}`];
  });
  return [...new Set(targets)].join(',') || '-';
}

/** Returns the images that change, such as `mimir:2.17.1`; else the other changes; else the number or the hash of the revision. */
function revisionText(zone: ShownZone): string {
  const { toRevision = '', statefulSet = '', fromImages, toImages = {}, changedFields = [], revisionNumber } = zone;
  const changed = fromImages === undefined ? Object.values(toImages) : changesOf(zone).map(({ to }) => to);
  const [first, ...others] = changed.map(shortImage);
  if (first !== undefined) return `${first}${others.length > 0 ? ` and ${others.length} more` : ''}`;
  if (changedFields.length > 0) return fieldsText(changedFields);
  return revisionNumber === undefined ? shortRevision(toRevision, statefulSet) : `revision ${revisionNumber}`;
}

/** Returns `env LOG_LEVEL`, or `template (3 fields)` for other changes. */
function fieldsText(paths: readonly string[]): string {
  const names = paths.map((path) => /\.env\[([^\]]+)\]/.exec(path)?.[1]);
  const known = [...new Set(names)].filter((name) => name !== undefined);
  return names.every((name) => name !== undefined) && known.length <= 2
    ? `env ${known.join(', ')}`
    : `template (${plural(paths.length, 'field')})`;
}

function changesOf({ fromImages = {}, toImages = {} }: ShownZone): readonly ImageChange[] {
  return Object.entries(toImages).flatMap(([container, to]) => {
    const from = fromImages[container];
    return from === undefined || from === to ? [] : [{ from, to }];
  });
}

function noteOf({ outcome, failure, waiting, cause, commit }: ShownRun): string {
  if (outcome === 'abandoned') return 'the group was deleted, or another run started, before this run ended';
  if (failure !== undefined) return failure;
  if (waiting !== undefined) return `${waiting.rule}: ${waiting.fact}`;
  return [cause, commit].filter((part) => part !== undefined).join(', ');
}

function summary(runs: readonly ShownRun[]): string {
  const ended = runs.filter(({ outcome }) => outcome === 'completed' || outcome === 'failed');
  const took = ended.flatMap((run) => (run.took === undefined ? [] : [run.took])).sort((a, b) => a - b);
  const completed = ended.filter(({ outcome }) => outcome === 'completed').length;
  const median = took[Math.floor((took.length - 1) / 2)];
  return `${plural(runs.length, 'run')}; ${completed} of ${ended.length} ended runs completed${median === undefined ? '' : `; median duration ${spanText(median)}`}`;
}

export function renderRun(run: ShownRun, look: TableLook): string {
  const line = (label: string, text: string): readonly string[] => paragraph(`  ${label.padEnd(9)}`, text, look.columns);
  const head = `${run.group} ${run.kind} ${run.id}`;
  const lines = [
    `${look.paint('bold', head)}   ${look.paint(styles[run.outcome], run.outcome.toUpperCase())}`,
    ...line('start', run.startedAt),
    ...(run.endedAt === undefined ? [] : line('end', `${run.endedAt}${run.took === undefined ? '' : `, after ${spanText(run.took)}`}`)),
    ...(run.failure === undefined ? [] : line('failure', run.failure)),
    ...(run.cause === undefined ? [] : line('cause', run.cause)),
    ...(run.commit === undefined ? [] : line('commit', run.commit)),
    ...run.zones.flatMap((zone) => line('zone', zoneText(zone))),
    ...(run.people ?? []).flatMap((request) => line('request', requestText(request))),
    ...run.waits.flatMap((wait) => line('waited', `${spanText(wait.seconds)} for ${wait.rule}: ${wait.fact}`)),
    ...(run.waiting === undefined ? [] : line('waits', `${run.waiting.rule}: ${run.waiting.fact}, since ${run.waiting.since}`)),
    ...(run.steps.length === 0 ? [] : ['', ...stepLines(run, look)]),
  ];
  return `${lines.join('\n')}\n`;
}

/** Returns `2026-08-22 12:31 anna: approve wave rest (canary is fine)`. */
function requestText({ action, by, at, reason, about }: NonNullable<ShownRun['people']>[number]): string {
  const subject = about === undefined ? '' : ` ${about}`;
  return `${at.slice(0, 16).replace('T', ' ')} ${by ?? 'unverified requester'}: ${action}${subject}${reasonSuffix(reason)}`;
}

function zoneText(shown: ShownZone): string {
  const { zone, statefulSet = '', fromRevision, toRevision, fromReplicas, toReplicas } = shown;
  const hashes = `${shortRevision(fromRevision ?? '?', statefulSet)} -> ${shortRevision(toRevision ?? '?', statefulSet)}`;
  const { changedFields = [] } = shown;
  const change = changeText(changesOf(shown), '->') ?? (changedFields.length > 0 ? fieldsText(changedFields) : undefined);
  const revision = toRevision === undefined ? [] : [change === undefined ? hashes : `${change} (${hashes})`];
  const replicas = toReplicas === undefined ? [] : [`${fromReplicas ?? '?'} -> ${toReplicas} replicas`];
  return `${zone} ${[...revision, ...replicas].join(', ')}`.trim();
}

const stepColumns: readonly Column[] = [
  { title: 'START', align: 'left' },
  { title: 'WAVE', align: 'left' },
  { title: 'ZONE', align: 'left' },
  { title: 'ACTION', align: 'left' },
  { title: 'ORDINALS', align: 'left', isFlexible: true },
  { title: 'FAILED', align: 'right' },
  { title: 'TOOK', align: 'right' },
  { title: 'WHAT', align: 'left', isFlexible: true },
];

function stepLines({ steps, stepsOmitted, zones }: ShownRun, look: TableLook): readonly string[] {
  const rows = steps.map(({ startedAt, endedAt, wave, zone, action, pods, count, failures, what, message }) => ({
    cells: [
      startedAt.slice(11, 19),
      wave ?? '-',
      zone ?? '-',
      count > 1 ? `${action} x${count}` : action,
      pods ?? '-',
      failures === undefined ? '-' : `${failures}`,
      spanText((Date.parse(endedAt) - Date.parse(startedAt)) / 1000),
      shortPods(message === undefined ? what : `${what} (${message})`, zones),
    ],
  }));
  const fit = { width: look.columns, ellipsis: look.glyphs.ellipsis };
  const { header, lines } = alignTable(stepColumns, rows, fit);
  const omitted = stepsOmitted === undefined ? [] : [look.paint('dim', `${plural(stepsOmitted, 'step')} in the middle not recorded`)];
  return [look.paint('bold', header), ...lines, ...omitted];
}
