// The verb get: shows the groups of a namespace, or one group with its zones and pods, once or after each change.
import { defined } from '../../policies/values/defined.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, type OutputStream, suggestNext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { createEstimator, type Estimator, estimationOf, factsOf } from '../live/facts.ts';
import { changeFilter, follow, type Screen } from '../live/follow.ts';
import { absenceFailure, type LiveGroup, type ReadGroups, readGroups, type Scope } from '../live/groups.ts';
import { chosenScope, type GroupChoice, noGroupsText } from '../live/named-group.ts';
import { allWithAgentState, listedChannelLines, type Notes, notesOn, outdatedLines } from '../live/notes.ts';
import { areAllRemoved, removedFailure } from '../live/removed-group.ts';
import { durationFlag, nameOf, timeoutFlag } from '../live/target.ts';
import {
  type CustomColumns,
  groupDocument,
  isColumns,
  type ResultDocument,
  type ResultFormat,
  writeColumns,
  writeLines,
  writeResult,
} from '../output/formats.ts';
import { type PodDetail, renderGroups, renderTree } from '../output/get.ts';
import { heartbeatLine, renderStatus, statusLine } from '../output/status.ts';

export interface GetOptions extends ConnectionFlags, GroupChoice {
  readonly watch?: boolean;
  readonly timeout?: string;
  readonly heartbeat: string;
  readonly pods: PodDetail;
  readonly output: 'table' | 'wide' | 'name' | 'jsonl' | ResultFormat | CustomColumns;
}

export async function run(context: CommandContext, options: GetOptions): Promise<ExitCode> {
  if (options.watch === true && !['table', 'wide', 'name', 'jsonl'].includes(options.output)) {
    throw usageFailure(`-o ${options.output} prints one document and cannot be watched`, 'use -o jsonl with --watch');
  }
  if (options.timeout !== undefined && options.watch !== true) throw usageFailure('--timeout needs --watch');
  return withCluster(context, options, 'read', async (cluster) => {
    const scope = await chosenScope(cluster, options);
    if (options.pods === 'all' && !isTree(scope, options)) {
      throw usageFailure('--pods=all needs exactly one group, and -o table or wide', 'name one group, or remove --pods=all');
    }
    return options.watch === true && context.cluster === undefined
      ? watch(context, cluster, scope, options)
      : once(context, cluster, scope, options);
  });
}

async function once(context: CommandContext, cluster: Cluster, scope: Scope, options: GetOptions): Promise<ExitCode> {
  const { namespace, names } = scope;
  // The groups that exist are shown before the failure for the other names.
  const some = names.length > 1 ? { namespace, names: [], only: new Set(names.map(nameOf)) } : scope;
  const read = await readGroups(cluster, some, { forEstimate: isTree(scope, options) });
  const failure = absenceFailure(cluster, read, names);
  if (failure !== undefined && read.groups.length === 0) throw failure;
  const notes = await notesOn(cluster, read);
  const shown = allWithAgentState(read, notes);
  await write(context, cluster, options, { scope, read: shown });
  writeNotes(context, noteLines(cluster, shown, notes));
  if (failure !== undefined) throw failure;
  if (read.groups.length === 0) context.stderr.write(`${noGroupsText(cluster, options)}\n`);
  suggest(context, options, shown.groups);
  return exitCodes.done;
}

function isTree({ names }: Scope, { output }: Pick<GetOptions, 'output'>): boolean {
  return names.length === 1 && (output === 'table' || output === 'wide');
}

async function write(
  context: CommandContext,
  cluster: Cluster,
  { output, pods }: GetOptions,
  { scope, read }: Pick<Shown, 'scope' | 'read'>,
): Promise<void> {
  const nowMs = cluster.env.clock.nowMs();
  const { groups } = read;
  const { stdout: stream } = context;
  switch (output) {
    case 'table':
    case 'wide':
      if (groups.length > 0)
        stream.write(tableOrTree(stream, { scope, read, nowMs, isWide: output === 'wide', pods, estimate: estimationOf }));
      return;
    case 'name':
      return stream.write(groups.map(resourceName).join(''));
    case 'jsonl':
      return writeLines(stream, groups.map(groupLine));
    default: {
      const documents = groups.map(groupDocument);
      if (isColumns(output)) return writeColumns(context, output, documents);
      const metadata = { generatedAt: new Date(nowMs).toISOString(), server: cluster.server, context: cluster.contextName };
      const [only] = scope.names.length === 1 ? documents : [];
      const document =
        only === undefined
          ? ({ kind: 'GroupList', metadata, groups: documents } as const)
          : ({ kind: 'Group', metadata, ...only } as const);
      return writeResult(context, output, document);
    }
  }
}

function groupLine(live: LiveGroup): ResultDocument {
  return { kind: 'Group', ...groupDocument(live) };
}

function resourceName({ decision }: LiveGroup): string {
  return `rolloutgroup.rollout-group.dev/${decision.group}\n`;
}

interface Shown {
  readonly scope: Scope;
  readonly read: ReadGroups;
  readonly nowMs: number;
  readonly isWide: boolean;
  readonly pods: PodDetail;
  readonly estimate: Estimator;
}

function tableOrTree(stream: OutputStream, { scope, read, nowMs, isWide, pods, estimate }: Shown): string {
  const { groups } = read;
  const [only] = groups;
  const look = { ...stream, isWide, pods };
  if (only !== undefined && scope.names.length === 1)
    return `${renderTree(only, nowMs, look, factsOf(read, only, nowMs, estimate)).join('\n')}\n`;
  return renderGroups({ groups, nowMs, hasNamespaces: scope.namespace === undefined }, look);
}

function noteLines(cluster: Cluster, read: ReadGroups, { lines }: Notes): readonly string[] {
  const nowMs = cluster.env.clock.nowMs();
  const outdated = read.groups.flatMap((live) => outdatedLines(live, read.listing, nowMs));
  return [...lines, ...outdated, ...listedChannelLines(read)];
}

async function watch(context: CommandContext, cluster: Cluster, scope: Scope, options: GetOptions): Promise<ExitCode> {
  const { stdout, stderr } = context;
  const first = await readGroups(cluster, scope);
  const notes = await notesOn(cluster, first);
  writeNotes(context, noteLines(cluster, allWithAgentState(first, notes), notes));
  const isText = options.output === 'table' || options.output === 'wide';
  const isWide = options.output === 'wide';
  const changedIn = changeFilter(isText);
  const estimate = createEstimator(() => cluster.env.clock.nowMs());
  const timeoutMs = timeoutFlag(options.timeout);
  const ending = await follow(context, cluster, {
    scope,
    notes,
    forEstimate: isTree(scope, options),
    heartbeatMs: isText ? durationFlag('--heartbeat', options.heartbeat) : 0,
    ...defined({ timeoutMs }),
    screen: isText ? screenOf(stdout, { scope, isWide, pods: options.pods, estimate }, options) : undefined,
    write: ({ groups }, nowMs) => {
      const changed = changedIn(groups);
      if (options.output === 'name') stdout.write(changed.map(resourceName).join(''));
      else if (isText) stdout.write(changed.map((live) => `${statusLine(live, nowMs)}\n`).join(''));
      else writeLines(stdout, changed.map(groupLine));
    },
    heartbeat: (read, nowMs) => {
      const waiting = read.groups.filter(({ decision }) => decision.outcome !== 'done');
      const endOf = (live: LiveGroup) => (isTree(scope, options) ? estimate(read, live, nowMs) : undefined);
      stdout.write(waiting.map((live) => `${heartbeatLine(live, nowMs, endOf(live))}\n`).join(''));
    },
    verdict: (read) => {
      const [first] = scope.names;
      // A deleted group would never become done.
      if (first !== undefined && areAllRemoved(read)) throw removedFailure(read.listing, first);
      const isDone = read.groups.length > 0 && read.groups.every(isFinished);
      return options.timeout !== undefined && isDone ? exitCodes.done : undefined;
    },
  });
  if (ending.kind === 'verdict') return ending.exitCode;
  const [stopped] = ending.read.groups.flatMap(({ unattended }) => unattended ?? []);
  stderr.write(`${stopped ?? 'the agent continues'}; only the watch has ended\n`);
  if (ending.kind === 'timeout') return exitCodes.timedOut;
  return ending.kind === 'interrupted' ? exitCodes.interrupted : exitCodes.done;
}

/** Reports whether the group is done and its decision covers the current StatefulSets. */
function isFinished({ decision, isOutdated }: LiveGroup): boolean {
  return decision.outcome === 'done' && isOutdated !== true;
}

function screenOf(stdout: OutputStream, { scope, isWide, pods, estimate }: Omit<Shown, 'read' | 'nowMs'>, flags: ConnectionFlags): Screen {
  const look = () => ({ ...stdout, isWide });
  const frame: Screen['frame'] = (read, nowMs) => tableOrTree(stdout, { scope, read, nowMs, isWide, pods, estimate }).trimEnd().split('\n');
  if (scope.names.length !== 1) return { frame, look, flags };
  const summary: Screen['frame'] = (read, nowMs) =>
    read.groups.flatMap((live) => renderStatus(live, nowMs, look(), factsOf(read, live, nowMs, estimate)));
  return { frame, other: { name: 'summary', frame: summary }, look, flags };
}

function suggest(context: CommandContext, { output }: GetOptions, groups: readonly LiveGroup[]): void {
  if (output !== 'table' && output !== 'wide') return;
  const blocked = groups.find(({ decision }) => decision.waits.length + (decision.stops ?? []).length > 0);
  if (blocked !== undefined) suggestNext(context, `explain ${nameOf(blocked.decision)}`);
}
