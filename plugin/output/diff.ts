// Renders differences as text, or runs an external program on the current and the desired objects.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diffLines } from 'diff';
import { withoutSecrets } from '../../engine/diff/field-secrets.ts';
import { namesText, type PlannedChange } from '../../engine/plan/document.ts';
import { blockingResults, isUntilPerson } from '../../engine/rule.ts';
import { instantText } from '../../policies/instant.ts';
import { counted } from '../../policies/wording.ts';
import type { CommandContext } from '../context.ts';
import type {
  Difference,
  GroupDifference,
  GroupSiblings,
  KeptField,
  ObjectDifference,
  ObjectPair,
  ValueWriter,
  ZonePart,
} from '../difference.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { waitsBesidesStops } from './explain.ts';
import { podsText, valueText } from './plan/changes.ts';
import { deniedText, exceptionText, factText, stopAndEndText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph, piecesOf } from './text.ts';
import { toYaml } from './yaml.ts';

export function renderDifference({ groups, objects, denied = [] }: Difference, look: TableLook): string {
  const same = objects.length === 0 ? 'no differences' : 'no differences in StatefulSets';
  const lines = [...groups.flatMap((group) => groupLines(group, same, look)), ...objects.flatMap((object) => objectLines(object, look))];
  const denials = denied.flatMap((denial) => paragraph('DENIED  ', `${namesText(denial.objects)}: ${deniedText(denial)}`, look.columns));
  return `${[...(lines.length === 0 ? ['no differences'] : lines), ...denials.map((line) => look.paint('red', line))].join('\n')}\n`;
}

function groupLines(group: GroupDifference, same: string, look: TableLook): readonly string[] {
  const name = look.paint('bold', `${group.namespace}/${group.group}`);
  const effects = unexplainedEffects(group);
  const kept = (group.kept ?? []).flatMap((one) => paragraph('  KEPT  ', keptText(one, group), look.columns));
  if (group.parts.length + effects.length === 0) return [`${name}   ${same}`, ...kept];
  return [
    group.parts.length === 0 ? `${name}   ${same}` : name,
    ...group.parts.flatMap((part) => [
      ...paragraph('  ', zonesTitle(part, group), look.columns),
      ...part.changes.flatMap((change) => plannedLines(change, group, look)),
    ]),
    ...effects.flatMap((effect) => paragraph('  ', effect, look.columns)),
    ...kept,
    ...(group.stops ?? []).flatMap((stop) => paragraph('  STOPPED  ', stopAndEndText(stop, undefined), look.columns)),
    ...waitsBesidesStops(group)
      .filter(isUntilPerson)
      .flatMap((result) => paragraph('  BLOCKED  ', `by ${result.rule}: ${factText(result)}`, look.columns)),
    ...(group.permitted ?? []).flatMap((result) => paragraph('  EXCEPTION  ', exceptionText(result, undefined), look.columns)),
  ];
}

function keptText({ field, manager, zones, atMs }: KeptField, group: GroupDifference): string {
  const places = zones.length === group.zones.length ? '' : ` in ${zones.join(', ')}`;
  return `${manager} wrote ${field}${places}${timeText(atMs)}: the manifests do not have the field, and an apply keeps it`;
}

function timeText(atMs: number | undefined): string {
  return atMs === undefined ? '' : ` at ${instantText(atMs)}`;
}

function writerNotes(writers: readonly ValueWriter[] = [], all: readonly string[] = []): readonly string[] {
  return writers.map(({ manager, operation, subresource, atMs, zones = all }) => {
    const places = zones.length === all.length ? '' : ` in ${zones.join(', ')}`;
    if (manager === undefined) return `no manager owns the old value${places}`;
    return `written by ${manager} (${[operation, subresource].filter((word) => word !== undefined).join(' ')})${places}${timeText(atMs)}`;
  });
}

/**
 * Returns the restarts and scales of the plan in zones where no shown change has this effect. The restarts that follow when a person
 * ends a stop are no effect, for example if the revision was rolled back.
 */
function unexplainedEffects({ zones, parts, stops = [] }: GroupDifference): readonly string[] {
  const held = stops.flatMap((stop) => (stop.isBlocking && stop.untilMs === undefined ? stop.zones : []));
  const shown = parts.flatMap(({ changes }) => changes);
  const isCaused = (zone: string, kinds: readonly string[]): boolean =>
    shown.some((one) => one.zones.includes(zone) && [one.kind, one.consequence].some((name) => kinds.includes(name)));
  return zones.flatMap(({ zone, restarts: all, afterWait = [], replicasBefore: from, replicasAfter: to }) => {
    const restarts = held.includes(zone) ? all - afterWait.length : all;
    return [
      ...(restarts === 0 || isCaused(zone, ['restart']) ? [] : [`the rollout restarts ${counted(restarts, 'pod')} of ${zone}`]),
      ...(from === to || isCaused(zone, ['replicas', 'created', 'deleted'])
        ? []
        : [`the rollout scales ${zone} from ${from} to ${counted(to, 'pod')}`]),
    ];
  });
}

function zonesTitle({ zones }: ZonePart, group: GroupDifference): string {
  const names = zones.join(', ');
  if (zones.length === 1) return group.zones.length === 1 ? names : `${names} only`;
  return zones.length === group.zones.length ? `${names}  (same change)` : names;
}

function plannedLines(change: ZonePart['changes'][number], group: GroupDifference, look: TableLook): readonly string[] {
  if (change.kind === 'created' || change.kind === 'deleted') {
    return notedLines([`    ${sign(change.kind === 'created' ? '+' : '-', 'the StatefulSet', look)}`], notesOf(change, group), look);
  }
  const notes = [...notesOf(change, group), ...writerNotes(change.writers, change.zones)];
  return [...paragraph('    ', change.field, look.columns), ...notedLines(valueLines(change, look), notes, look)];
}

function valueLines({ before, after }: { readonly before?: unknown; readonly after?: unknown }, look: TableLook): readonly string[] {
  if (before === undefined && after === undefined) return ['      same entries, different order'];
  const lines = (mark: '-' | '+', value: unknown) =>
    (Array.isArray(value) ? value : value === undefined ? [] : [value]).flatMap((one) => textLines(mark, valueText(one), look));
  const isText = typeof before === 'string' && typeof after === 'string' && `${before}${after}`.includes('\n');
  return isText ? changedLines(before, after, look) : [...lines('-', before), ...lines('+', after)];
}

function changedLines(before: string, after: string, look: TableLook): readonly string[] {
  return diffLines(before, after).flatMap(({ added, removed, value }) =>
    added || removed ? textLines(added ? '+' : '-', value.replace(/\n$/, ''), look) : [],
  );
}

/** Puts a sign before each line, so that no line of the text looks like output of this command. Breaks lines that are too long. */
function textLines(mark: '-' | '+', text: string, look: TableLook): readonly string[] {
  const parts = (line: string): readonly string[] => (look.columns === undefined ? [line] : piecesOf(line, look.columns - 8));
  return text
    .split('\n')
    .flatMap((line) => parts(line).map((part, index) => `      ${sign(mark, part, look).replace(mark, index === 0 ? mark : ' ')}`));
}

function sign(mark: '-' | '+', text: string, { paint }: TableLook): string {
  return paint(mark === '-' ? 'red' : 'green', `${mark} ${text}`);
}

const noteColumn = 48;

/** Puts the first note next to the last value, and the other notes below it. */
function notedLines(lines: readonly string[], notes: readonly string[], look: TableLook): readonly string[] {
  const last = lines.at(-1) ?? '';
  const painted = (note: string): string => look.paint(note.trimStart().startsWith('DENIED') ? 'red' : 'dim', note);
  const [first, ...rest] = notes.map(painted);
  if (first === undefined) return lines;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour takes no room on the screen.
  const width = last.replace(/\u001b\[\d+m/g, '').length;
  const column = Math.max(width + 2, noteColumn);
  if (notes.some((note) => column + note.length > (look.columns ?? Number.POSITIVE_INFINITY)))
    return [...lines, ...notes.flatMap((note) => paragraph(' '.repeat(8), note, look.columns)).map(painted)];
  return [...lines.slice(0, -1), `${last}${' '.repeat(column - width)}${first}`, ...rest.map((note) => `${' '.repeat(column)}${note}`)];
}

function notesOf(change: PlannedChange, group: GroupDifference): readonly string[] {
  const refusals = group.refused.filter((refusal) => refusal.zone !== undefined && change.zones.includes(refusal.zone));
  const rules = refusals.flatMap((refusal) => blockingResults(refusal.results));
  const hints = new Set(refusals.flatMap(({ hint }) => hint ?? []));
  if (refusals.length > 0) return [`DENIED by ${[...new Set(rules.map((result) => result.rule))].join(', ') || 'policy'}`, ...hints];
  const { running } = change;
  const pods = running?.length === 0 ? 'the pods have it' : running && `in pods: ${podsText(change, running)}`;
  return [...(pods === undefined ? [] : [pods]), consequenceNote(change, group)];
}

function consequenceNote(change: PlannedChange, group: GroupDifference): string {
  const zones = group.zones.filter(({ zone }) => change.zones.includes(zone));
  if (change.kind === 'deleted') return 'deletes its pods';
  if (change.kind === 'created') return `adds ${counted(sumOf(zones.map(({ replicasAfter }) => replicasAfter)), 'pod')}`;
  switch (change.consequence) {
    case 'restart': {
      // Pods that already run the requested template do not restart, so the count can be 0.
      const count = sumOf(zones.map(({ restarts }) => restarts));
      return `restarts ${count === 0 ? 'no pod' : counted(count, 'pod')}`;
    }
    case 'scaleUp':
    case 'scaleDown':
      return `${change.consequence === 'scaleUp' ? 'adds' : 'removes'} ${replicaPods(change)}`;
    case 'refused':
      return 'DENIED by the API server: the field is immutable';
    case 'none':
      return 'no restart';
  }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function replicaPods({ before, after, zones }: PlannedChange): string {
  const [from, to] = [Number(before ?? 1), Number(after ?? 1)];
  if (!Number.isInteger(to - from)) return 'pods';
  const [first, last] = to > from ? [from, to - 1] : [from - 1, to];
  const ordinals = first === last ? `-${first}` : ` ${first}..${last}`;
  return zones.map((zone) => `${zone}${ordinals}`).join(', ');
}

function objectLines({ object, operation, changes }: ObjectDifference, look: TableLook): readonly string[] {
  const name = look.paint('bold', object);
  return operation === 'changed' ? [name, ...changes.flatMap((change) => fieldLines(change, look))] : [`${name}   ${operation}`];
}

function fieldLines(change: ObjectDifference['changes'][number], look: TableLook): readonly string[] {
  const notes = [...(change.consequence === 'restart' ? ['restarts its pods'] : []), ...writerNotes(change.writers)];
  return [...paragraph('    ', change.path, look.columns), ...notedLines(valueLines(change, look), notes, look)];
}

export function renderSiblings(groups: readonly GroupSiblings[], look: TableLook): string {
  const lines = groups.flatMap(({ namespace, group, siblings, missing, perZone }) => {
    const name = look.paint('bold', `${namespace}/${group}`);
    const absent = missing.map((zone) => `  ${zone}: no StatefulSet found`);
    const settings = perZone.map((path) => `  ${path} is different in every zone`);
    if (siblings.length === 0 && missing.length === 0) return [`${name}   no differences between zones`, ...settings];
    const different = siblings.flatMap(({ zone, comparedWith, changes }) => [
      `  ${zone} differs from ${comparedWith} in ${counted(changes.length, 'field')}`,
      ...changes.flatMap((change) => fieldLines({ ...change, consequence: 'none' }, look)),
    ]);
    return [name, ...absent, ...different, ...settings];
  });
  return `${(lines.length === 0 ? ['no groups'] : lines).join('\n')}\n`;
}

/** Runs the program in KUBECTL_EXTERNAL_DIFF, else diff, on two folders of files. Prints its output, and returns 1 if it found differences. */
export function externalDiff(context: CommandContext, pairs: readonly ObjectPair[]): ExitCode {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-diff-'));
  try {
    writeSide(join(folder, 'CURRENT'), pairs, 'before');
    writeSide(join(folder, 'DESIRED'), pairs, 'after');
    const [program = 'diff', ...flags] = (context.env['KUBECTL_EXTERNAL_DIFF'] ?? '').split(' ').filter((word) => word !== '');
    const all = program === 'diff' && flags.length === 0 ? ['-u', '-N', '-r'] : flags;
    const { status, stdout, error } = spawnSync(program, [...all, 'CURRENT', 'DESIRED'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 256 * 1_048_576,
    });
    if (error !== undefined || status === null || status > 1) {
      throw new Failure({
        exitCode: exitCodes.usage,
        what: `${program} could not compare the manifests`,
        why: error?.message ?? `the program exited with ${status}`,
      });
    }
    context.stdout.write(stdout);
    return status === 1 ? exitCodes.differences : exitCodes.done;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeSide(folder: string, pairs: readonly ObjectPair[], side: 'before' | 'after'): void {
  mkdirSync(folder);
  for (const pair of pairs) {
    const object = pair[side];
    const other = side === 'before' ? pair.after : pair.before;
    if (object === undefined) continue;
    writeFileSync(join(folder, `${pair.object.replace(/[^\w.-]+/g, '.')}.yaml`), toYaml(withoutSecrets(object, other, side)));
  }
}
