// Plays one run: the scenario to its end, judged, with a timeline and the end state.

import type { FaultClass, PlacedFault, Point } from './faults/fault.ts';
import type { Oracle, Scene, Violation } from './oracles/oracle.ts';
import type { Leak } from './process/agents.ts';
import type { Scenario } from './scenario.ts';
import type { Json, ModelObject } from './server/request.ts';
import { Run } from './stage.ts';

export interface TimelineEntry {
  readonly atMs: number;
  /** `people`, `fault`, `a1` (a process), `cluster`, `verdict`. */
  readonly who: string;
  readonly what: string;
}

export interface RunOptions {
  /** Keeps the timeline, which takes memory. */
  readonly isTold?: boolean;
  /** Ends at the first violation. */
  readonly isShort?: boolean;
  /** Overrides the final quiet of the scenario, in virtual milliseconds. */
  readonly quietMs?: number;
  /** Ends faults as soon as all events happened and the group is as requested, instead of after `safetyMs`. */
  readonly endsWhenConverged?: boolean;
  /** Receives everything after the judges. */
  readonly observer?: RunObserver;
}

interface RunObserver extends Oracle {
  /** A line of a watch reached the process. */
  readonly lineArrived?: (point: Point, line: string) => void;
}

export interface RunResult {
  readonly violations: readonly Violation[];
  /** Why it did not converge, did not become quiet, or left something behind; undefined otherwise. */
  readonly unfinished?: string;
  /** When the group converged for good, within five seconds; not before `safetyMs` without `endsWhenConverged`. */
  readonly convergedMs?: number;
  /** Faults by class. */
  readonly faults: Readonly<Partial<Record<FaultClass, number>>>;
  /** Faults with a place: with `rates` empty and these as `faults`, the scenario gives the same run. */
  readonly placed: readonly PlacedFault[];
  /** Crashes by `site moment`. */
  readonly crashes: Readonly<Record<string, number>>;
  /** Effective requests of agents by `verb resource[/subresource]`, without Leases. */
  readonly writes: Readonly<Record<string, number>>;
  /** End state of each StatefulSet and mirrored object, by name. */
  readonly endState: Readonly<Record<string, string>>;
  readonly events: number;
  /** End on the scheduler's clock. */
  readonly endMs: number;
  /** Hash of everything in order: equal for equal runs. */
  readonly traceHash: string;
  readonly timeline: readonly TimelineEntry[];
}

/** Plays the scenario with the real loop of the agent. Never rejects for errors of the agent: they are in the result. */
export async function runScenario(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  const run = new Run(scenario, options);
  const { scheduler } = run;
  const isOver = (): boolean => options.isShort === true && run.violations.length > 0;
  let unfinished: string | undefined;
  let convergedMs: number | undefined;
  try {
    const look = lookout(run);
    if (options.endsWhenConverged !== true) await scheduler.runUntil(scenario.safetyMs, isOver);
    else await runUntilConverged(run, scenario, look, isOver);
    if (!isOver()) unfinished = await heal(run, scenario, { look, isOver, quietMs: options.quietMs ?? scenario.quietMs ?? usualQuietMs });
    convergedMs = look.sinceMs();
    if (!isOver()) unfinished ??= await leave(run);
  } catch (error) {
    run.violated('error', `something threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  for (const problem of run.agents.defects()) run.violated('error', problem);
  run.agents.close();
  return {
    violations: run.violations,
    ...(unfinished === undefined ? {} : { unfinished }),
    ...(convergedMs === undefined ? {} : { convergedMs }),
    faults: run.faults.counts(),
    placed: run.faults.placed(),
    crashes: run.faults.crashes(),
    writes: run.writes,
    endState: endStateOf(run.scene),
    events: scheduler.eventCount(),
    endMs: scheduler.nowMs(),
    traceHash: run.trace.hash(),
    timeline: run.timeline,
  };
}

/** Interval of the convergence check. */
const lookEveryMs = 5000;
/** Default time without writes at the end: everything periodic happens within five minutes. */
const usualQuietMs = 330_000;
/** Earliest check: the initial request is applied one part after the other. */
const firstLookMs = 30_000;

interface Lookout {
  /** The missing parts of the end state. */
  readonly missing: () => string | undefined;
  /** Time since which nothing is missing, as far as checked. */
  readonly sinceMs: () => number | undefined;
}

function lookout(run: Run): Lookout {
  let sinceMs: number | undefined;
  return {
    missing: () => {
      const missing = run.missing();
      sinceMs = missing === undefined ? (sinceMs ?? run.scheduler.nowMs()) : undefined;
      return missing;
    },
    sinceMs: () => sinceMs,
  };
}

/** Injects faults until the group converged and no event is left, or for the time of the scenario. */
async function runUntilConverged({ scheduler }: Run, { events, safetyMs }: Scenario, look: Lookout, isOver: () => boolean): Promise<void> {
  const fromMs = Math.min(safetyMs, Math.max(firstLookMs, (events.at(-1)?.atMs ?? 0) + lookEveryMs));
  await scheduler.runUntil(Math.min(fromMs, firstLookMs), isOver);
  while (!isOver() && scheduler.nowMs() < safetyMs) {
    if (look.missing() === undefined && scheduler.nowMs() >= fromMs) return;
    await scheduler.runUntil(Math.min(safetyMs, scheduler.nowMs() + lookEveryMs), isOver);
  }
}

interface Healing {
  readonly look: Lookout;
  readonly isOver: () => boolean;
  readonly quietMs: number;
}

/** Ends faults, and waits until the group converged and is quiet. Returns why not; undefined on success. */
async function heal(run: Run, { safetyMs, healingMs }: Scenario, { look, isOver, quietMs }: Healing): Promise<string | undefined> {
  run.beginHealing();
  const endMs = safetyMs + healingMs;
  let wasMissing: string | undefined = 'it was not checked';
  while (!isOver() && run.scheduler.nowMs() < endMs) {
    await run.scheduler.runUntil(Math.min(endMs, run.scheduler.nowMs() + lookEveryMs), isOver);
    const missing = look.missing();
    // Earlier writes belong to the way there.
    if (missing !== undefined || wasMissing !== undefined) run.beginQuiet();
    wasMissing = missing;
    if (missing === undefined && run.scheduler.nowMs() - run.quietSinceMs() >= quietMs) {
      run.endJudgement();
      return undefined;
    }
  }
  if (isOver()) return undefined;
  if (wasMissing !== undefined) return `it did not converge within ${Math.round(healingMs / 1000)} s: ${wasMissing}`;
  return `it never became quiet: ${run.lastWrite()}`;
}

/** Longest shutdown of the agents: turns get 15 s, and the release of the Lease is one request. */
const leavingMs = 60_000;

/** Stops the agents and checks for leaks. */
async function leave({ agents, scheduler }: Run): Promise<string | undefined> {
  let leaks: readonly Leak[] | undefined;
  const ended = agents.end().then((found) => {
    leaks = found;
  });
  await scheduler.runUntil(scheduler.nowMs() + leavingMs, () => leaks !== undefined);
  if (leaks === undefined) return `the agents did not end within ${leavingMs / 1000} s`;
  await ended;
  return leaks.length === 0 ? undefined : `left behind: ${leaks.map(({ process, what }) => `${what} by ${process}`).join(', ')}`;
}

const mirrored = ['replicatemplates.rollout-operator.grafana.com', 'rolloutgroups.rollout-group.dev'];

/** Returns each StatefulSet with its pods, and the replica counts of mirrored objects, by name. */
function endStateOf(scene: Pick<Scene, 'namespace' | 'statefulSets' | 'list' | 'get'>): Readonly<Record<string, string>> {
  const state: Record<string, string> = {};
  for (const name of scene.statefulSets) {
    const set = scene.get('statefulsets.apps', scene.namespace, name);
    state[name] = set === undefined ? 'nothing' : statefulSetText(set, podsOf(scene, set));
  }
  for (const resource of mirrored) {
    for (const object of scene.list(resource, scene.namespace)) {
      const replicas = part(object, 'status')['replicas'];
      if (replicas !== undefined) state[`${object.kind} ${object.metadata.name}`] = `${replicas} replicas in its status`;
    }
  }
  return state;
}

function podsOf(scene: Pick<Scene, 'namespace' | 'list'>, set: ModelObject): readonly ModelObject[] {
  return scene
    .list('pods', scene.namespace)
    .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid, controller }) => controller === true && uid === set.metadata.uid));
}

function statefulSetText(set: ModelObject, pods: readonly ModelObject[]): string {
  const spec = part(set, 'spec');
  const template = part(part(spec, 'template'), 'spec');
  const images = pods.map((pod) => imagesOf(part(pod, 'spec'))).sort();
  return `${spec['replicas']} replicas of ${imagesOf(template)}, ${pods.length} pods of ${[...new Set(images)].join(' and ') || 'nothing'}`;
}

function imagesOf(podSpec: Json): string {
  const containers = (podSpec['containers'] ?? []) as readonly { readonly image?: string }[];
  return containers.map(({ image }) => image ?? 'no image').join(' with ');
}

function part(value: Json, name: string): Json {
  return (value[name] ?? {}) as Json;
}
