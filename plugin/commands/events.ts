// The verb events: shows the recorded decisions about groups, and with --watch each new decision.
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, usageFailure } from '../failure.ts';
import { type EventSubject, type GroupEvent, isAbout, listEvents, watchEvents } from '../live/events.ts';
import { readGroups, scopeOf } from '../live/groups.ts';
import { readRuns } from '../live/history.ts';
import { onLeaving } from '../live/keyboard.ts';
import { chosenScope, type GroupChoice } from '../live/named-group.ts';
import { durationFlag, type GroupName, timeoutFlag } from '../live/target.ts';
import { eventLine, renderEvents } from '../output/events.ts';
import { type ResultDocument, type ResultFormat, writeLines, writeResult } from '../output/formats.ts';

export interface EventsOptions extends ConnectionFlags, GroupChoice {
  readonly watch?: boolean;
  readonly timeout?: string;
  readonly since?: string;
  readonly output: 'table' | 'jsonl' | ResultFormat;
}

export async function run(context: CommandContext, options: EventsOptions): Promise<ExitCode> {
  if (options.watch === true && options.output !== 'table' && options.output !== 'jsonl') {
    throw usageFailure(`-o ${options.output} prints one document and cannot be watched`, 'use -o jsonl with --watch');
  }
  if (options.timeout !== undefined && options.watch !== true) throw usageFailure('--timeout needs --watch');
  const timeoutMs = timeoutFlag(options.timeout);
  const sinceMs = options.since === undefined ? undefined : durationFlag('--since', options.since);
  return withCluster(context, options, 'read', async (cluster) => {
    const { namespace, isWanted } = await wanted(cluster, options);
    const fromMs = sinceMs === undefined ? 0 : cluster.env.clock.nowMs() - sinceMs;
    const isShown = (event: GroupEvent): boolean => event.atMs >= fromMs && isWanted(event);
    if (options.watch === true && context.cluster === undefined) return watch(context, cluster, options, { namespace, isShown, timeoutMs });
    const events = (await listEvents(cluster, namespace)).filter(isShown);
    await write(context, options, events, { nowMs: cluster.env.clock.nowMs(), hasNamespaces: namespace === undefined });
    const about = options.selector === undefined ? '' : ` about groups with the labels ${options.selector}`;
    if (events.length === 0) context.stderr.write(`no events${about}; by default the API server keeps events for one hour\n`);
    return exitCodes.done;
  });
}

interface Wanted {
  readonly namespace: string | undefined;
  readonly isWanted: (event: GroupEvent) => boolean;
}

async function wanted(cluster: Cluster, options: EventsOptions): Promise<Wanted> {
  const scope = await chosenScope(cluster, options);
  const { namespace } = scope;
  if (scope.names.length === 0 && scope.only === undefined) return { namespace, isWanted: () => true };
  const subjects =
    scope.names.length > 0
      ? await Promise.all(scope.names.map((name) => subjectOf(cluster, name)))
      : (await readGroups(cluster, scope)).groups.map(({ decision }) => decision);
  const about = subjects.map(isAbout);
  return { namespace, isWanted: (event) => about.some((isAboutGroup) => isAboutGroup(event)) };
}

/** Returns the subject of the events. The run records of a deleted group name its StatefulSets. Throws Failure if both are missing. */
async function subjectOf(cluster: Cluster, name: GroupName): Promise<EventSubject> {
  try {
    const [live] = (await readGroups(cluster, scopeOf([name]))).groups;
    return live?.decision ?? { ...name, zones: [] };
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== exitCodes.notFound) throw error;
    const { runs } = await readRuns(cluster, name).catch(() => ({ runs: [] }));
    if (runs.length === 0) throw error;
    const sets = runs.flatMap(({ zones }) => zones.flatMap(({ statefulSet }) => (statefulSet === undefined ? [] : [statefulSet])));
    return { ...name, zones: [...new Set(sets)].map((statefulSet) => ({ statefulSet })) };
  }
}

async function write(
  context: CommandContext,
  { output }: EventsOptions,
  events: readonly GroupEvent[],
  { nowMs, hasNamespaces }: { readonly nowMs: number; readonly hasNamespaces: boolean },
): Promise<void> {
  const { stdout: stream } = context;
  if (output === 'jsonl') return writeLines(stream, events.map(eventDocument));
  if (output !== 'table') return writeResult(context, output, { kind: 'EventList', events: events.map(eventDocument) });
  if (events.length > 0) stream.write(renderEvents(events, nowMs, hasNamespaces, { ...stream, isWide: false }));
}

function eventDocument({ uid, resourceVersion: _version, atMs, ...event }: GroupEvent): ResultDocument {
  return { kind: 'Event', at: new Date(atMs).toISOString(), ...event, id: uid };
}

interface Watched extends Pick<Wanted, 'namespace'> {
  readonly isShown: (event: GroupEvent) => boolean;
  /** Undefined to watch until Ctrl-C. */
  readonly timeoutMs: number | undefined;
}

/** Prints the existing events by time, then new events until Ctrl-C, the end of the pipe or the timeout. */
async function watch(
  { stdout, stderr }: CommandContext,
  cluster: Cluster,
  { output }: EventsOptions,
  { namespace, isShown, timeoutMs }: Watched,
): Promise<ExitCode> {
  const seen = new Map<string, number>();
  const show = (event: GroupEvent): void => {
    if (!isShown(event) || seen.get(event.uid) === event.count) return;
    seen.set(event.uid, event.count);
    if (output === 'table') stdout.write(`${eventLine(event)}\n`);
    else writeLines(stdout, [eventDocument(event)]);
  };
  for (const event of await listEvents(cluster, namespace)) show(event);
  const exitCode = await new Promise<ExitCode>((resolve) => {
    const stop = watchEvents(cluster, namespace, show);
    const end = (code: ExitCode) => () => {
      forget();
      stop();
      cancel?.();
      resolve(code);
    };
    const forget = onLeaving(stdout.raw, end(exitCodes.interrupted));
    const cancel = timeoutMs === undefined ? undefined : cluster.env.timers.after(timeoutMs, end(exitCodes.timedOut));
  });
  stderr.write('only the watch has ended\n');
  return exitCode;
}
