// The verb simulate: the plan carried out many times on a virtual clock while pods are lost, with the invariants asked at every decision.
import { decideGroup } from '../../engine/decide.ts';
import type { Turn } from '../../engine/plan/forward.ts';
import { type SimulatedRun, type SimulationOptions, simulate } from '../../engine/plan/simulate.ts';
import { readPlanSnapshots, requestedWorld } from '../../engine/plan/world.ts';
import { isUnknown, type Snapshot } from '../../engine/snapshot.ts';
import type { World } from '../../engine/world/model.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs as parsedMs } from '../../policies/duration.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { usageFailure } from '../failure.ts';
import { laneSpans } from '../lanes.ts';
import { writeErrors } from '../output/file-errors.ts';
import { writeDocument } from '../output/formats.ts';
import { type GroupSimulation, renderSimulation } from '../output/simulate.ts';
import { plural } from '../output/words.ts';
import { type FaultRequest, faultsOf, parseFault, refuseUnknownFault } from '../source/faults.ts';
import { type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';

export interface SimulateOptions extends PlanInputOptions {
  readonly seed?: number;
  readonly runs?: number;
  readonly fail?: readonly string[];
  readonly until?: string;
  readonly output: 'table' | 'json';
}

const defaultRuns = 20;
const defaultSeed = 1;
/** Random losses per run, unless the losses are named. */
const randomFaults = 3;

export async function run(context: CommandContext, options: SimulateOptions): Promise<ExitCode> {
  const requests = (options.fail ?? []).map(parseFault);
  const untilMs = options.until === undefined ? undefined : limitMs(options.until);
  const { input, errors } = await readPlanInputs(context, options);
  if (errors.length > 0) return writeErrors(context, errors);
  const snapshots = readPlanSnapshots(input);
  const worlds = input.groups.map((group) => ({ group, ...requestedWorld(input, snapshots, group, 'p50') }));
  const refused = worlds.flatMap((one) => one.refused);
  for (const { what } of refused) context.stderr.write(`refused and left out: ${what}; plan says why\n`);
  refuseUnknownFault(requests, input.groups, (request) =>
    worlds.some(({ group, world }) => faultsOf([request], group, podsOf(world.snapshot)).length > 0),
  );
  const busy = worlds.filter(({ group, world }) => decideGroup(world.snapshot, group).outcome !== 'done');
  const results = busy.map(({ group, world }) => simulateGroup(group, world, requests, { ...options, untilMs }));
  if (options.output === 'table') context.stdout.write(renderSimulation(results, context.stdout));
  else await writeDocument(context.stdout, 'json', { kind: 'Simulation', groups: results.map(forPrograms) });
  if (results.some(({ simulation }) => simulation.violated > 0)) return exitCodes.findings;
  return refused.length > 0 ? exitCodes.refused : exitCodes.done;
}

function limitMs(text: string): number {
  try {
    return parsedMs(text);
  } catch {
    throw usageFailure(`--until ${text} is no duration`, 'write a duration such as 4h');
  }
}

function simulateGroup(
  group: GroupDefinition,
  world: World,
  requests: readonly FaultRequest[],
  { seed = defaultSeed, runs = defaultRuns, untilMs }: Pick<SimulateOptions, 'seed' | 'runs'> & { readonly untilMs: number | undefined },
): GroupSimulation {
  const limit = untilMs === undefined ? {} : { untilMs };
  const undisturbed = simulate(world, group, { seed, runs: 1, faultsPerRun: 0, faults: [], ...limit });
  const settings: SimulationOptions = {
    seed,
    runs,
    faultsPerRun: requests.length > 0 ? 0 : randomFaults,
    faults: faultsOf(requests, group, podsOf(world.snapshot)),
    // What is lost after the end of a run says nothing about it.
    faultsWithinMs: Math.max(1, undisturbed.durationMs.max),
    ...limit,
  };
  const simulation = simulate(world, group, settings);
  const telling =
    simulation.runs.find((one) => one.violations.length > 0) ?? simulation.runs.find((one) => one.end !== 'done') ?? simulation.runs[0];
  const turns: Turn[] = [];
  const again = simulate(world, group, { ...settings, seed: telling?.seed ?? seed, runs: 1, onTurn: (turn) => turns.push(turn) });
  const shown = again.runs[0] ?? { seed, end: 'held', durationMs: 0, turns: 0, violations: [], timeline: [], heldBy: [] };
  return {
    namespace: group.namespace,
    group: group.name,
    zones: group.zones.map((zone) => zone.name),
    faults:
      requests.length > 0 ? `${plural(settings.faults.length, 'pod')} lost as asked` : `${randomFaults} random losses of pods in each`,
    simulation,
    shown,
    spans: [...laneSpans(turns), ...faultSpans(shown, group)],
  };
}

/** Faults have no length; they mark the column in which they happen. */
function faultSpans(
  { timeline, durationMs }: Pick<SimulatedRun, 'timeline' | 'durationMs'>,
  group: GroupDefinition,
): GroupSimulation['spans'] {
  return timeline.flatMap(({ atMs, what }) => {
    if (atMs > durationMs) return [];
    const pod = /^(?:fault: pod fails|pod is replaced) (\S+)$/.exec(what)?.[1];
    const zone = group.zones.find((one) => pod?.startsWith(`${one.statefulSet}-`));
    return zone === undefined ? [] : [{ lane: zone.name, kind: 'fault' as const, startSeconds: atMs / 1000, endSeconds: atMs / 1000 }];
  });
}

function podsOf(snapshot: Snapshot): ReadonlyMap<string, readonly string[]> {
  return new Map(snapshot.pods.map((view) => [view.statefulSet, isUnknown(view.pods) ? [] : view.pods.map((pod) => pod.name)]));
}

/** Only the run that is shown keeps its events; a thousand runs would be a gigabyte. */
function forPrograms({ simulation, shown, spans: _, ...group }: GroupSimulation) {
  return { ...group, ...simulation, runs: simulation.runs.map(({ timeline: _events, ...run }) => run), shown };
}
