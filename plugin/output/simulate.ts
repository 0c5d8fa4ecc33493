// The result of simulated runs: what held, how long it took, and the run that tells most, as lanes.
import type { SimulatedRun, Simulation } from '../../engine/plan/simulate.ts';
import type { TableLook } from './plan-table.ts';
import { paragraph } from './plan-table-layout.ts';
import { spanText } from './plan-words.ts';
import { type LaneSpan, renderLanes } from './timeline.ts';
import { plural } from './words.ts';

/** The simulation of one group, with the run that is shown. */
export interface GroupSimulation {
  readonly namespace: string;
  readonly group: string;
  readonly zones: readonly string[];
  /** What breaks in each run, in words. */
  readonly faults: string;
  readonly simulation: Simulation;
  /** The first run that broke an invariant, or did not end, or the first of all. */
  readonly shown: SimulatedRun;
  readonly spans: readonly LaneSpan[];
}

/** The text, ending in a line break. */
export function renderSimulation(groups: readonly GroupSimulation[], look: TableLook): string {
  const blocks = groups.map((group) => groupLines(group, look).join('\n'));
  return `${blocks.length === 0 ? 'nothing to simulate: no group has anything to do' : blocks.join('\n\n')}\n`;
}

function groupLines(group: GroupSimulation, look: TableLook): readonly string[] {
  const { simulation, shown } = group;
  const { runs, durationMs } = simulation;
  const held = runs.length - simulation.violated;
  const finished = runs.length - simulation.unfinished;
  const broken = simulation.violated === 0 ? '' : look.paint('red', `   BROKEN in ${simulation.violated}`);
  return [
    `${look.paint('bold', `${group.namespace}/${group.group}`)}   ${plural(runs.length, 'run')}, seed ${simulation.seed}, ${group.faults}`,
    `  invariants  held in ${held} of ${runs.length}${broken}`,
    `  finished    ${finished} of ${runs.length}`,
    ...(finished === 0
      ? []
      : [`  duration    p50 ${secondsText(durationMs.p50)}  p90 ${secondsText(durationMs.p90)}  max ${secondsText(durationMs.max)}`]),
    ...shown.violations
      .slice(0, 1)
      .flatMap(({ atMs, what }) =>
        paragraph('  broken      ', `+${secondsText(atMs)} ${what} (repeat it with --seed ${shown.seed} --runs 1)`, look.columns),
      ),
    ...shown.heldBy.slice(0, 3).flatMap((reason) => paragraph('  held by     ', reason, look.columns)),
    '',
    `  run with seed ${shown.seed}: ${endWords[shown.end]} after ${secondsText(shown.durationMs)}`,
    ...renderLanes(group.spans, { lanes: group.zones, columns: look.columns }),
    ...eventLines(shown, look),
  ];
}

const endWords: Readonly<Record<SimulatedRun['end'], string>> = { done: 'done', held: 'held', limit: 'broken off' };

/** What led to a violation: the last events before it. */
function eventLines({ violations, timeline }: SimulatedRun, look: TableLook): readonly string[] {
  const [first] = violations;
  if (first === undefined) return [];
  return timeline
    .filter(({ atMs }) => atMs <= first.atMs)
    .slice(-6)
    .flatMap(({ atMs, what }) => paragraph(`    +${secondsText(atMs).padEnd(8)} `, what, look.columns));
}

function secondsText(ms: number): string {
  return spanText(ms / 1000);
}
