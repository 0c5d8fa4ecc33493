// Renders the runs of a group as a table, or one run in full.
import { replacedPodCount, type ShownRun, type ShownZone } from '../../engine/publish/run-record.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { counted, listed } from '../../policies/wording.ts';
import type { ImageChange } from '../live/facts.ts';
import { shortRevision } from './group-text.ts';
import { changeText, shortImage } from './image-text.ts';
import { spanText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { shortPods } from './pod-text.ts';
import type { Style } from './terminal.ts';
import { type ItemColumn, inZones, itemTable, paragraph, reasonSuffix } from './text.ts';

const columns = (runs: readonly ShownRun[], look: TableLook, unattended: string | undefined): readonly ItemColumn<ShownRun>[] => [
  { title: 'RUN', align: 'left', cell: ({ id }) => id },
  { title: 'KIND', align: 'left', leastWidth: 70, cell: ({ kind }) => kind },
  { title: 'TO', align: 'left', isFlexible: true, cell: targetText },
  { title: 'REPLACED', align: 'right', cell: podsText },
  { title: 'START', align: 'left', cell: ({ startedAt }) => startedAt.slice(isNarrow(look) ? 5 : 0, 16).replace('T', ' ') },
  { title: 'TOOK', align: 'right', leastWidth: 70, cell: ({ took }) => (took === undefined ? '-' : spanText(took)) },
  { title: 'WAITED', align: 'right', leastWidth: narrow, cell: ({ waited }) => spanText(waited) },
  { title: 'RESULT', align: 'left', cell: ({ outcome }) => outcome },
  { title: 'NOTE', align: 'left', isBelow: true, cell: (run) => noteOf(run, runs, unattended) },
];

/** Below this width, the list has no year and not every column. */
const narrow = 90;

function isNarrow({ columns: width }: TableLook): boolean {
  return width !== undefined && width < narrow;
}

const styles: Readonly<Record<ShownRun['outcome'], Style>> = {
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  superseded: 'dim',
  cancelled: 'yellow',
  abandoned: 'dim',
};

/** Returns the table. `unattended` says that the agent of the group does not run: a running run then does not continue. */
export function renderRuns(runs: readonly ShownRun[], look: TableLook, unattended?: string): string {
  const lines = itemTable(columns(runs, look, unattended), runs, look, (line, { outcome }) =>
    line.replace(` ${outcome}`, () => ` ${look.paint(styles[outcome], outcome)}`),
  );
  return `${[...lines, summary(runs)].join('\n')}\n`;
}

/** Returns the zones that the run changes or whose pods it replaced, or all zones if no zone changes. */
function changedZones({ zones, steps }: ShownRun): readonly ShownZone[] {
  const hasReplaced = (zone: string): boolean => steps.some((step) => step.action === 'replace' && step.zone === zone);
  const changed = zones.filter(
    ({ zone, fromRevision, toRevision }) => fromRevision !== toRevision || toRevision === undefined || hasReplaced(zone),
  );
  return changed.length === 0 ? zones : changed;
}

/**
 * Returns `3/9` if 3 of 9 pods of the changed zones were replaced; `-` if the record has no number of pods, as for a change of replicas. A
 * completed rollback leaves the pods that kept the earlier revision, so it has only the number of replaced pods.
 */
function podsText(run: ShownRun): string {
  const counts = changedZones(run).flatMap(({ pods }) => (pods === undefined ? [] : [pods]));
  if (counts.length === 0) return '-';
  if (run.kind === 'rollback' && run.outcome === 'completed') return `${replacedPodCount(run)}`;
  return `${replacedPodCount(run)}/${counts.reduce((sum, count) => sum + count, 0)}`;
}

/** Returns the target of all zones, or each target with its zones: `mimir:2.16.0 in a; mimir:2.17.1 in b and c`. */
function targetText(run: ShownRun): string {
  const targets = changedZones(run).flatMap((zone): readonly { readonly name: string; readonly text: string }[] => {
    if (zone.toRevision !== undefined) return [{ name: zone.zone, text: revisionText(zone, run.kind) }];
    return zone.toReplicas === undefined ? [] : [{ name: zone.zone, text: `${zone.toReplicas}` }];
  });
  const parts = [...groupBy(targets, ({ text }) => text)].map(([text, zones]) =>
    inZones(text, zones.length === run.zones.length ? undefined : zones.map(({ name }) => name)),
  );
  return parts.join('; ') || '-';
}

/**
 * Returns the changed images, as `mimir:2.17.1 and 1 more`; else the changed fields; else the number or the hash of the revision. A rollback
 * that changes only the annotation of a restart removes the restart.
 */
function revisionText(zone: ShownZone, kind: ShownRun['kind']): string {
  const { fromRevision, toRevision = '', statefulSet = '', fromImages, toImages = {}, changedFields = [], revisionNumber } = zone;
  const changed = fromImages === undefined || fromRevision === toRevision ? Object.values(toImages) : changesOf(zone).map(({ to }) => to);
  const [first, ...others] = changed.map(shortImage);
  if (first !== undefined) return `${first}${others.length > 0 ? ` and ${others.length} more` : ''}`;
  const fields = changedFields.length === 0 ? undefined : fieldsText(changedFields);
  if (fields !== undefined && (fields !== restart || kind !== 'rollback')) return fields;
  return revisionNumber === undefined ? shortRevision(toRevision, statefulSet) : `revision ${revisionNumber}`;
}

const restart = 'restart';

/**
 * Returns `restart` if only the annotation of `kubectl rollout restart` changed; `env LOG_LEVEL` if only one or two environment variables
 * changed; else the first path, as `containers[app].env and 2 more`.
 */
function fieldsText(changed: readonly string[]): string {
  const paths = changed.filter((path) => !path.endsWith('annotations[kubectl.kubernetes.io/restartedAt]'));
  if (paths.length === 0) return restart;
  const names = paths.map((path) => /\.env\[([^\]]+)\]/.exec(path)?.[1]);
  const known = [...new Set(names)].filter((name) => name !== undefined);
  if (names.every((name) => name !== undefined) && known.length <= 2) return `env ${known.join(', ')}`;
  const [first = '', ...others] = paths;
  return `${first.replace(/^spec\.template\.(?:spec\.)?/, '')}${others.length === 0 ? '' : ` and ${others.length} more`}`;
}

function changesOf({ fromImages = {}, toImages = {} }: ShownZone): readonly ImageChange[] {
  return Object.entries(toImages).flatMap(([container, to]) => {
    const from = fromImages[container];
    return from === undefined || from === to ? [] : [{ from, to }];
  });
}

function noteOf(run: ShownRun, runs: readonly ShownRun[], unattended: string | undefined): string {
  const { outcome, failure, waiting, cause, commit, earlierIds = [] } = run;
  if (outcome === 'abandoned') return 'the group was deleted, or another run started, before this run ended';
  if (outcome === 'failed' && failure !== undefined) return failure;
  const revisions = revisionsText(run);
  const next = outcome === 'superseded' ? runs.slice(0, runs.indexOf(run)).findLast(({ kind }) => kind !== 'scale') : undefined;
  const parts = [
    outcome === 'running' ? unattended : undefined,
    next && `superseded by ${next.id}${reasonSuffix(next.cause)}`,
    waiting && `${waiting.rule}: ${waiting.fact}`,
    earlierIds.length === 0 ? undefined : `continues ${earlierIds.at(-1)}`,
    outcome === 'cancelled' ? (run.kind === 'scale' ? cancellationText(run) : undoText(run)) : undefined,
    cause,
    commit,
    revisions,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

/** Returns `undo by anna` if an undo, the last one of the run, reverted the change. */
function undoText({ people = [], startedAt }: ShownRun): string | undefined {
  const undo = people.findLast(({ action, at }) => action === 'undo' && Date.parse(at) >= Date.parse(startedAt));
  return undo && `undo by ${undo.by ?? unverified}`;
}

/** Returns `cancelled by bob (traffic peak)` if a person cancelled the decrease of a zone. */
function cancellationText({ people = [] }: ShownRun): string | undefined {
  const cancel = people.findLast(({ action }) => action === 'cancel');
  return cancel && `cancelled by ${cancel.by ?? unverified}${reasonSuffix(cancel.reason)}`;
}

const unverified = 'unverified requester';

/** Returns `revision 3 in a, 2 in b and c` if the numbers differ, since `undo --to-revision` then means another template in each zone. */
function revisionsText(run: ShownRun): string | undefined {
  const numbered = run.zones.flatMap(({ zone, revisionNumber }) => (revisionNumber === undefined ? [] : [{ zone, revisionNumber }]));
  const byNumber = [...groupBy(numbered, ({ revisionNumber }) => `${revisionNumber}`)];
  if (byNumber.length < 2) return undefined;
  const texts = byNumber.map(([number, same]) =>
    inZones(
      number,
      same.map(({ zone }) => zone),
    ),
  );
  return `revision ${texts.join(', ')}`;
}

function summary(runs: readonly ShownRun[]): string {
  const ended = runs.filter(({ outcome }) => outcome === 'completed' || outcome === 'failed');
  const took = ended.flatMap((run) => (run.took === undefined ? [] : [run.took])).sort((a, b) => a - b);
  const completed = ended.filter(({ outcome }) => outcome === 'completed').length;
  const middle = took.slice(Math.ceil(took.length / 2) - 1, Math.floor(took.length / 2) + 1);
  const median = middle.length === 0 ? '' : `; median duration ${spanText(middle.reduce((sum, one) => sum + one, 0) / middle.length)}`;
  return `${counted(runs.length, 'run')}; ${completed} completed, ${ended.length - completed} failed${median}`;
}

export function renderRun(run: ShownRun, look: TableLook): string {
  const line = (label: string, text: string): readonly string[] => paragraph(`  ${label.padEnd(9)}`, text, look.columns);
  const head = `${run.group} ${run.kind} ${run.id}`;
  const lines = [
    `${look.paint('bold', head)}   ${look.paint(styles[run.outcome], run.outcome.toUpperCase())}`,
    ...line('start', run.startedAt),
    ...(run.endedAt === undefined ? [] : line('end', `${run.endedAt}${run.took === undefined ? '' : `, after ${spanText(run.took)}`}`)),
    ...(run.failure === undefined ? [] : line('failure', run.failure)),
    ...(run.earlierIds === undefined ? [] : line('earlier', `the change began as ${listed(run.earlierIds, 'and')}`)),
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
  return `${at.slice(0, 16).replace('T', ' ')} ${by ?? unverified}: ${action}${subject}${reasonSuffix(reason)}`;
}

function zoneText(shown: ShownZone): string {
  const { zone, statefulSet = '', fromRevision, toRevision, fromReplicas, toReplicas, revisionNumber } = shown;
  const number = revisionNumber === undefined ? '' : `, revision ${revisionNumber}`;
  const hashes = `${shortRevision(fromRevision ?? '?', statefulSet)} -> ${shortRevision(toRevision ?? '?', statefulSet)}${number}`;
  const { changedFields = [] } = shown;
  const change = changeText(changesOf(shown), '->') ?? (changedFields.length > 0 ? fieldsText(changedFields) : undefined);
  const revision = toRevision === undefined ? [] : [change === undefined ? hashes : `${change} (${hashes})`];
  const replicas = toReplicas === undefined ? [] : [`${fromReplicas ?? '?'} -> ${counted(toReplicas, 'replica')}`];
  return `${zone} ${[...revision, ...replicas].join(', ')}`.trim();
}

function stepLines({ steps, stepsOmitted, zones }: ShownRun, look: TableLook): readonly string[] {
  const stepColumns: readonly ItemColumn<ShownRun['steps'][number]>[] = [
    { title: 'START', align: 'left', cell: ({ startedAt }) => startedAt.slice(11, 19) },
    { title: 'WAVE', align: 'left', isFlexible: true, cell: ({ wave }) => wave ?? '-' },
    { title: 'ZONE', align: 'left', isFlexible: true, cell: ({ zone }) => zone ?? '-' },
    { title: 'ACTION', align: 'left', cell: ({ action, count }) => (count > 1 ? `${action} x${count}` : action) },
    { title: 'ORDINALS', align: 'left', isFlexible: true, cell: ({ pods }) => pods ?? '-' },
    { title: 'FAILED', align: 'right', cell: ({ failures = '-' }) => `${failures}` },
    { title: 'TOOK', align: 'right', cell: ({ startedAt, endedAt }) => spanText((Date.parse(endedAt) - Date.parse(startedAt)) / 1000) },
    { title: 'WHAT', align: 'left', isBelow: true, cell: ({ what, message }) => shortPods(`${what}${reasonSuffix(message)}`, zones) },
  ];
  const omitted = stepsOmitted === undefined ? [] : [look.paint('dim', `${counted(stepsOmitted, 'step')} in the middle not recorded`)];
  return [...itemTable(stepColumns, steps, look), ...omitted];
}
