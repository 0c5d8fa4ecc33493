// Renders the result of simulations: invariants, durations, and a timeline of the most informative simulation.
import { shorten } from '../../policies/text/shorten.ts';
import { counted } from '../../policies/wording.ts';
import type { ShownRun, Simulation } from '../simulation/runs.ts';
import { spanText } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { paragraph } from './text.ts';

export interface GroupSimulation {
  readonly namespace: string;
  readonly group: string;
  readonly zones: readonly string[];
  readonly faults: string;
  readonly simulation: Simulation;
  readonly repeat: string;
}

export function renderSimulation(groups: readonly GroupSimulation[], look: TableLook): string {
  const blocks = groups.map((group) => groupLines(group, look).join('\n'));
  return `${blocks.length === 0 ? 'nothing to simulate: no group has changes' : blocks.join('\n\n')}\n`;
}

function groupLines(group: GroupSimulation, look: TableLook): readonly string[] {
  const { simulation } = group;
  const { runs, durationMs, shown } = simulation;
  const held = runs.length - simulation.violated;
  const finished = runs.length - simulation.unfinished;
  const broken = simulation.violated === 0 ? '' : look.paint('red', `   BROKEN in ${simulation.violated}`);
  const injected = runs.reduce((sum, run) => sum + faultsOf(run.faults), 0);
  const hasProblem = shown.violations.length > 0 || shown.end !== 'done';
  return [
    look.paint('bold', `${group.namespace}/${group.group}`),
    ...paragraph('  runs        ', `${runs.length} from seed ${simulation.seed}, ${group.faults}`, look.columns),
    ...(injected === 0 ? [] : [`  injected    ${counted(injected, 'fault')}`]),
    `  invariants  held in ${held} of ${runs.length}${broken}`,
    `  finished    ${finished} of ${runs.length}`,
    ...(finished === 0
      ? []
      : [`  duration    p50 ${secondsText(durationMs.p50)}  p90 ${secondsText(durationMs.p90)}  max ${secondsText(durationMs.max)}`]),
    '',
    ...paragraph(`  seed ${shown.seed}: `, endText(shown), look.columns),
    ...shown.violations
      .slice(0, 1)
      .flatMap(({ atMs, invariant, message }) =>
        paragraph(`  ${look.paint('red', 'broken')}  `, `${invariant} at +${secondsText(atMs)}: ${message}`, look.columns),
      ),
    ...(shown.unfinished === undefined
      ? []
      : paragraph('  because ', shown.unfinished.replace(/^it did not converge within \d+ s: /, ''), look.columns)),
    ...shown.heldBy.slice(0, 3).flatMap((reason) => paragraph('  blocked by ', reason, look.columns)),
    ...renderLanes(simulation.spans, {
      lanes: [...new Set([...group.zones, ...simulation.spans.map(({ lane }) => lane)])],
      columns: look.columns,
    }),
    ...eventLines(shown, look),
    ...(hasProblem ? ['', '  Run this seed again:', `  ${group.repeat}`] : []),
  ];
}

function endText({ end, durationMs, smallest, violations }: ShownRun): string {
  const after = secondsText(durationMs);
  if (smallest === undefined) return end === 'done' ? `done after ${after}` : `not done after ${after}`;
  const { events, faults, agents } = smallest.scenario;
  const left = `${counted(events.length, 'accident')}, ${counted(faults.length, 'fault')} and ${counted(agents, 'agent')}`;
  const cut = smallest.isCutShort ? ' (search stopped early)' : '';
  return `${counted(violations.length, 'violation')}; reduced in ${smallest.triedRuns} tries to ${left}${cut}`;
}

function eventLines({ violations, timeline }: ShownRun, look: TableLook): readonly string[] {
  const [first] = violations;
  if (first === undefined) return [];
  return timeline
    .filter(({ atMs }) => atMs <= first.atMs + 1)
    .slice(-12)
    .flatMap(({ atMs, who, what }) => paragraph(`    +${secondsText(atMs).padEnd(8)} ${who.padEnd(8)} `, what, look.columns));
}

function faultsOf(counts: Readonly<Record<string, number | undefined>>): number {
  return Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

function secondsText(ms: number): string {
  return spanText(ms / 1000);
}

export interface LaneSpan {
  readonly lane: string;
  readonly kind: 'roll' | 'scale' | 'soak' | 'wait' | 'fault';
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** The marks and the words of the legend, in drawing order: later kinds cover earlier kinds. ASCII marks suit every terminal. */
const kinds: Readonly<Record<LaneSpan['kind'], readonly [mark: string, word: string]>> = {
  wait: ['.', 'wait'],
  soak: ['=', 'soak'],
  scale: ['%', 'replicas'],
  roll: ['#', 'roll'],
  fault: ['x', 'fault'],
};

/** Returns the lanes in order, an axis and a legend of the used marks; no lines if `spans` is empty. The default width is 80 columns. */
export function renderLanes(
  spans: readonly LaneSpan[],
  { lanes, columns = 80 }: { readonly lanes: readonly string[]; readonly columns: number | undefined },
): readonly string[] {
  if (spans.length === 0) return [];
  const labelWidth = Math.min(24, Math.max(...lanes.map((lane) => lane.length)));
  const width = Math.max(20, Math.min(columns, 120) - labelWidth - 6);
  const endSeconds = Math.max(1, ...spans.map((span) => span.endSeconds));
  const column = (seconds: number) => Math.min(width - 1, Math.floor((seconds / endSeconds) * width));
  const lines = lanes.map((lane) => {
    const cells = Array.from({ length: width }, () => ' ');
    for (const [kind, [mark]] of Object.entries(kinds)) {
      for (const span of spans) {
        if (span.lane !== lane || span.kind !== kind) continue;
        const last = Math.max(column(span.startSeconds), column(span.endSeconds - 0.001));
        cells.fill(mark, column(span.startSeconds), last + 1);
      }
    }
    return `  ${shorten(lane, labelWidth, '.').padEnd(labelWidth)} |${cells.join('')}|`;
  });
  const end = `+${spanText(endSeconds)}`;
  const used = Object.entries(kinds).filter(([kind]) => spans.some((span) => span.kind === kind));
  return [
    ...lines,
    `  ${' '.repeat(labelWidth)}  0${end.padStart(width - 1)}`,
    `  ${' '.repeat(labelWidth)}  ${used.map(([, [mark, word]]) => `${mark} ${word}`).join('  ')}`,
  ];
}
