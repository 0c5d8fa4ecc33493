// The verb simulate: simulates the rollout many times with the real agent and a virtual clock, injects faults, and checks every write.
import { decideGroup } from '../../engine/decide/decide.ts';
import { unmodelledPods } from '../../engine/observe/manifests.ts';
import { readPlanSnapshots, requestedWorld } from '../../engine/plan/world.ts';
import { isUnknown, type Snapshot, setNamed } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { durationFlag } from '../live/target.ts';
import { writeErrors } from '../output/findings.ts';
import { writeDocument } from '../output/formats.ts';
import { type GroupSimulation, renderSimulation } from '../output/simulate.ts';
import { type Progress, simulateGroup } from '../simulation/runs.ts';
import { eventsOf, parseFault, parseFaults, refuseUnknownFault, simulatedGroup } from '../simulation/scenario.ts';
import { type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';
import { absenceNotes } from '../source/plan-notes.ts';
import { startThreads, type Threads } from '../threads.ts';
import { programName } from '../verbs/verb.ts';
import { flagWords, inputWords } from './plan.ts';

export interface SimulateOptions extends PlanInputOptions {
  readonly seed?: number;
  readonly runs?: number;
  readonly fail?: readonly string[];
  readonly faults?: string;
  readonly until?: string;
  readonly fromReport?: string;
  readonly output: 'table' | 'json';
}

const defaultRuns = 8;
const defaultSeed = 1;
/** The maximum number of zones: a scenario names its zones a to z. */
const maxZones = 26;

type SimulatedWorld = ReturnType<typeof requestedWorld>;

export async function run(context: CommandContext, options: SimulateOptions): Promise<ExitCode> {
  const { seed = defaultSeed, runs = defaultRuns } = options;
  const requests = (options.fail ?? []).map(parseFault);
  const faults = parseFaults(options.faults, requests.length > 0);
  const untilMs = options.until === undefined ? undefined : durationFlag('--until', options.until, 'write a duration such as 4h');
  const inputs = await readSimulated(context, options);
  if ('errors' in inputs) return writeErrors(context, inputs.errors);
  const { input, policies: documents } = inputs;
  const absent = input.absent ?? [];
  for (const note of absenceNotes(absent)) context.stderr.write(`left out: ${note}\n`);
  const snapshots = readPlanSnapshots(input);
  const worlds = input.groups.map((group) => requestedWorld(input, snapshots, group));
  const refused = worlds.flatMap((one) => one.refused);
  for (const { what } of refused) context.stderr.write(`denied and left out: ${what}; run plan to see why\n`);
  refuseUnknownFault(requests, input.groups, (request) =>
    worlds.some(({ group, world }) => eventsOf([request], group, podsOf(world.snapshot)).length > 0),
  );
  // If the plan does not depend on the calendar, its simulations are the same at every start time.
  const startMs = snapshots.usesCalendar ? input.nowMs : undefined;
  const progress = progressLine(context);
  const results: GroupSimulation[] = [];
  const changing = changingWorlds(context, { worlds, before: snapshots.before, absent });
  for (const one of changing) refuseLargeSets(one, snapshots.before);
  const threads = startThreads(runs, ['play']);
  try {
    for (const { group, world, refused: refusals } of changing) {
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
      const simulation = await simulateGroup(simulated, {
        seed,
        runs,
        progress: (done) => progress.show(name, done),
        ...playersIn(threads),
      });
      results.push({
        namespace: group.namespace,
        group: group.name,
        zones: group.zones.map((zone) => zone.name),
        simulation,
        faults: faultsText(requests.length > 0 ? requested.length : undefined, faults),
        repeat: repeatText({ ...options, seed: simulation.shown.seed, runs: 1 }, { startMs, name }),
      });
    }
  } finally {
    await threads?.end();
  }
  progress.clear();
  if (options.output === 'table') context.stdout.write(renderSimulation(results, context.stdout));
  else await writeDocument(context.stdout, 'json', { kind: 'Simulation', groups: results.map(forPrograms) });
  return exitCodeOf(results, refused.length > 0 || absent.length > 0);
}

/** Returns a player for each thread. Without threads, this thread plays. */
function playersIn(threads: Threads | undefined) {
  const players = threads && Array.from({ length: threads.count }, () => (scenario: Scenario) => threads.compute('play', scenario));
  return defined({ players });
}

/** Reads the files, or the report if the context has one. */
async function readSimulated(context: CommandContext, options: SimulateOptions): ReturnType<typeof readPlanInputs> {
  if (context.cluster === undefined) return readPlanInputs(context, options);
  const [{ withCluster }, { readSimulationInputs }] = await Promise.all([
    import('../connection.ts'),
    import('../source/cluster/live-plan.ts'),
  ]);
  return withCluster(context, {}, 'read', (cluster) => readSimulationInputs(context, options, cluster));
}

function exitCodeOf(results: readonly GroupSimulation[], isPartLeftOut: boolean): ExitCode {
  if (results.some(({ simulation }) => simulation.violated > 0)) return exitCodes.findings;
  if (isPartLeftOut) return exitCodes.refused;
  return results.some(({ simulation }) => simulation.unfinished > 0) ? exitCodes.timedOut : exitCodes.done;
}

interface Simulated {
  readonly worlds: readonly SimulatedWorld[];
  readonly before: Snapshot;
  /** The groups that lack a manifest. */
  readonly absent: readonly { readonly namespace: string; readonly group: string }[];
}

/** Returns the worlds whose group is not done or scales. Leaves out groups that lack a manifest. Throws Failure if a group has too many zones. */
function changingWorlds({ stderr }: CommandContext, { worlds, before, absent }: Simulated): readonly SimulatedWorld[] {
  const complete = worlds.filter(({ group }) => !absent.some((one) => one.namespace === group.namespace && one.group === group.name));
  // The policies can define more groups than the manifests contain.
  const foreign = complete.filter(({ group, world }) => !hasMember(world.snapshot, group));
  if (foreign.length > 0) {
    const names = foreign.map(({ group }) => `${group.namespace}/${group.name}`).sort();
    stderr.write(`left out: the manifests contain no StatefulSet of ${names.join(', ')}\n`);
  }
  const changing = complete.filter(
    (one) => !foreign.includes(one) && (decideGroup(one.world.snapshot, one.group).outcome !== 'done' || isScaled(before, one)),
  );
  const large = changing.find(({ group }) => group.zones.length > maxZones);
  if (large === undefined) return changing;
  throw usageFailure(`${large.group.name} has ${large.group.zones.length} zones; simulate supports at most ${maxZones}`);
}

/** Reports whether the change starts pods without the agent: with `leader: true` only the StatefulSet controller scales. */
function isScaled(before: Snapshot, { group, world: { snapshot } }: SimulatedWorld): boolean {
  const replicasIn = (one: Snapshot, name: string) => setNamed(one, group.namespace, name)?.replicas;
  return group.zones.some(({ statefulSet }) => replicasIn(before, statefulSet) !== replicasIn(snapshot, statefulSet));
}

/** Throws Failure if a StatefulSet of the group has, or may get, more pods than can be modelled. */
function refuseLargeSets({ group, world }: SimulatedWorld, before: Snapshot): void {
  const { namespace, zones } = group;
  const mirrored = world.snapshot.replicaSources.map(({ replicas }) => (isUnknown(replicas) ? 0 : replicas));
  for (const { statefulSet, forceReplicas = 0, replicas } of zones) {
    const sets = [before, world.snapshot].map((snapshot) => setNamed(snapshot, namespace, statefulSet)?.replicas ?? 0);
    const wanted = replicas.kind === 'count' ? replicas.count : 0;
    const large = unmodelledPods(statefulSet, Math.max(...sets, ...mirrored, forceReplicas, wanted));
    if (large !== undefined) throw usageFailure(large);
  }
}

function faultsText(requestedCount: number | undefined, faults: readonly string[]): string {
  const parts = [
    ...(requestedCount === undefined ? [] : [`${counted(requestedCount, 'requested accident')}`]),
    ...(faults.length > 0 ? [`random faults: ${faults.join(', ')}`] : []),
  ];
  return parts.length === 0 ? 'no faults' : parts.join(', ');
}

/** Returns the command that repeats the shown run. The command names the start time only if the plan depends on the calendar. */
function repeatText(options: SimulateOptions, { startMs, name }: { readonly startMs: number | undefined; readonly name: string }): string {
  const at = startMs === undefined ? undefined : new Date(startMs).toISOString();
  return [
    ...[programName, 'simulate', ...inputWords(options)],
    ...[...flagWords('--assumptions', options.assumptions), ...flagWords('--at', at), ...flagWords('--group', name)],
    ...[...flagWords('--agent-namespace', options.agentNamespace), ...flagWords('--fail', options.fail)],
    ...[...flagWords('--faults', options.faults), ...flagWords('--until', options.until)],
    ...[...flagWords('--seed', options.seed), ...flagWords('--runs', options.runs)],
  ].join(' ');
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

const firstAfterMs = 1000;
const everyMs = 200;
/** The control sequence that erases the line and returns to its first column. */
const erase = '\r\u001b[K';

export function progressLine({ stderr, nowMs, quiet, env }: CommandContext) {
  const startedMs = nowMs();
  let shownMs = Number.NEGATIVE_INFINITY;
  const isWanted = stderr.isTerminal && !quiet && env['TERM'] !== 'dumb';
  return {
    show: (group: string, { what, done, of }: Progress) => {
      const now = nowMs();
      if (!isWanted || now - startedMs < firstAfterMs || now - shownMs < everyMs) return;
      shownMs = now;
      const text = what === 'run' ? `run ${done + 1} of ${of}` : `an invariant broke; shrinking the run, try ${done + 1} of ${of} at most`;
      stderr.raw.write(`${erase}${group}: ${text}`.slice(0, (stderr.columns ?? 80) + erase.length - 1));
    },
    clear: () => {
      if (Number.isFinite(shownMs)) stderr.raw.write(erase);
    },
  };
}
