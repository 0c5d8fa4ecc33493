// The verb simulate: the plan carried out many times by the agent itself on a virtual clock, while things go wrong, with judges at every commit.
import { decideGroup } from '../../engine/decide/decide.ts';
import { readPlanSnapshots, requestedWorld } from '../../engine/plan/world.ts';
import { isUnknown, type Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { durationMs as parsedMs } from '../../policies/duration.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { usageFailure } from '../failure.ts';
import { writeErrors } from '../output/file-errors.ts';
import { writeDocument } from '../output/formats.ts';
import { plural } from '../output/plural.ts';
import { type GroupSimulation, renderSimulation } from '../output/simulate.ts';
import { progressLine } from '../simulation/progress.ts';
import { simulateGroup } from '../simulation/runs.ts';
import { simulatedGroup } from '../simulation/scenario.ts';
import { eventsOf, parseFault, parseFaults, refuseUnknownFault } from '../source/faults.ts';
import { type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';
import { absenceNotes } from '../source/plan-notes.ts';
import { programName } from '../verbs/wording.ts';

export interface SimulateOptions extends PlanInputOptions {
  readonly seed?: number;
  readonly runs?: number;
  readonly fail?: readonly string[];
  readonly faults?: string;
  readonly until?: string;
  readonly output: 'table' | 'json';
}

const defaultRuns = 8;
const defaultSeed = 1;
/** Letters name zones in a scenario. */
const mostZones = 26;

export async function run(context: CommandContext, options: SimulateOptions): Promise<ExitCode> {
  const { seed = defaultSeed, runs = defaultRuns } = options;
  const requests = (options.fail ?? []).map(parseFault);
  const faults = parseFaults(options.faults, requests.length > 0);
  const untilMs = options.until === undefined ? undefined : limitMs(options.until);
  const { input, errors, policies: documents = [] } = await readPlanInputs(context, options);
  if (errors.length > 0) return writeErrors(context, errors);
  const absent = input.absent ?? [];
  for (const note of absenceNotes(absent)) context.stderr.write(`left out: ${note}\n`);
  const snapshots = readPlanSnapshots(input);
  const worlds = input.groups.map((group) => ({ group, ...requestedWorld(input, snapshots, group, 'p50') }));
  const refused = worlds.flatMap((one) => one.refused);
  for (const { what } of refused) context.stderr.write(`refused and left out: ${what}; plan says why\n`);
  refuseUnknownFault(requests, input.groups, (request) =>
    worlds.some(({ group, world }) => eventsOf([request], group, podsOf(world.snapshot)).length > 0),
  );
  const isWhole = (group: { readonly namespace: string; readonly name: string }): boolean =>
    !absent.some((one) => one.namespace === group.namespace && one.group === group.name);
  // Policies are given whole where the change is about one group of several.
  const foreign = worlds.filter(({ group, world }) => isWhole(group) && !hasMember(world.snapshot, group)).map(({ group }) => group);
  if (foreign.length > 0) {
    const names = foreign.map(({ namespace, name }) => `${namespace}/${name}`).sort();
    context.stderr.write(`left out: no manifest of a StatefulSet of ${names.join(', ')} is given\n`);
  }
  const busy = worlds.filter(
    ({ group, world }) => isWhole(group) && !foreign.includes(group) && decideGroup(world.snapshot, group).outcome !== 'done',
  );
  const large = busy.find(({ group }) => group.zones.length > mostZones);
  if (large !== undefined)
    throw usageFailure(`${large.group.name} has ${large.group.zones.length} zones, and a run has at most ${mostZones}`);
  // A plan that nothing binds to the calendar gives the same runs at any time.
  const startMs = snapshots.usesCalendar ? input.nowMs : undefined;
  const progress = progressLine(context);
  const results: GroupSimulation[] = [];
  for (const { group, world, refused: refusals } of busy) {
    const requested = eventsOf(requests, group, podsOf(world.snapshot));
    const simulated = simulatedGroup({
      input,
      documents,
      group,
      world,
      faults,
      requested,
      untilMs,
      startMs,
      refusedZones: refusals.flatMap(({ zone }) => (zone === undefined ? [] : [zone])),
    });
    const name = `${group.namespace}/${group.name}`;
    const simulation = await simulateGroup(simulated, { seed, runs, progress: (done) => progress.show(name, done) });
    results.push({
      namespace: group.namespace,
      group: group.name,
      zones: group.zones.map((zone) => zone.name),
      simulation,
      faults: [
        ...(requests.length > 0 ? [`${plural(requested.length, 'accident')} as asked`] : []),
        ...(faults.length > 0 ? [`faults: ${faults.join(', ')}`] : []),
        ...(requests.length + faults.length === 0 ? ['nothing goes wrong'] : []),
      ].join(', '),
      repeat: repeatText({ ...options, seed: simulation.shown.seed, runs: 1 }, { startMs, name }),
    });
  }
  progress.clear();
  if (options.output === 'table') context.stdout.write(renderSimulation(results, context.stdout));
  else await writeDocument(context.stdout, 'json', { kind: 'Simulation', groups: results.map(forPrograms) });
  if (results.some(({ simulation }) => simulation.violated > 0)) return exitCodes.findings;
  if (refused.length > 0 || absent.length > 0) return exitCodes.refused;
  return results.some(({ simulation }) => simulation.unfinished > 0) ? exitCodes.timedOut : exitCodes.done;
}

function limitMs(text: string): number {
  try {
    return parsedMs(text);
  } catch {
    throw usageFailure(`--until ${text} is no duration`, 'write a duration such as 4h');
  }
}

/** The command that plays the run that is shown, and no other one. The instant at which it begins belongs to it. */
function repeatText(options: SimulateOptions, { startMs, name }: { readonly startMs: number | undefined; readonly name: string }): string {
  const at = startMs === undefined ? undefined : new Date(startMs).toISOString();
  const flag = (word: string, value: string | number | undefined): readonly string[] =>
    value === undefined ? [] : [`--${word}`, shellWord(String(value))];
  const flags = (word: string, values: readonly string[] = []): readonly string[] => values.flatMap((value) => flag(word, value));
  return [
    ...[programName, 'simulate', ...flag('current', options.current), ...flag('desired', options.desired)],
    ...(options.file ?? []).flatMap((file) => ['-f', shellWord(file)]),
    ...[...flags('set', options.set), ...flag('assumptions', options.assumptions), ...flag('at', at), ...flag('group', name)],
    ...[...flag('agent-namespace', options.agentNamespace), ...flags('fail', options.fail), ...flag('faults', options.faults)],
    ...[...flag('until', options.until), ...flag('seed', options.seed), ...flag('runs', options.runs)],
  ].join(' ');
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function podsOf(snapshot: Snapshot): ReadonlyMap<string, readonly string[]> {
  return new Map(snapshot.pods.map((view) => [view.statefulSet, isUnknown(view.pods) ? [] : view.pods.map((pod) => pod.name)]));
}

function hasMember({ statefulSets }: Snapshot, { namespace, zones }: GroupDefinition): boolean {
  return zones.some(({ statefulSet }) => statefulSets.some((set) => set.namespace === namespace && set.name === statefulSet));
}

function forPrograms({ simulation: { spans: _, ...simulation }, ...group }: GroupSimulation) {
  return { ...group, ...simulation };
}
