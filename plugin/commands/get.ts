// The verb get: the groups of a namespace, or one with its zones and pods, once or as they go on.
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { usageFailure } from '../failure.ts';
import { listedChannelLines } from '../live/channels.ts';
import { follow } from '../live/follow.ts';
import type { LiveGroup } from '../live/groups.ts';
import { notesOn } from '../live/notes.ts';
import { outdatedLines } from '../live/outdated.ts';
import { type ReadGroups, readGroups, type Scope, scopeOf } from '../live/read.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { durationFlag } from '../live/when.ts';
import { writeDocument, writeLines } from '../output/formats.ts';
import { renderGroups } from '../output/get.ts';
import { groupDocument } from '../output/group-document.ts';
import { renderTree } from '../output/group-tree.ts';
import { heartbeatLine, statusKey, statusLine } from '../output/status.ts';

export interface GetOptions extends ConnectionFlags {
  readonly groups?: readonly string[];
  readonly watch?: boolean;
  readonly heartbeat: string;
  readonly allNamespaces?: boolean;
  readonly output: 'table' | 'wide' | 'name' | 'json' | 'yaml' | 'jsonl';
}

export async function run(context: CommandContext, options: GetOptions): Promise<ExitCode> {
  if (options.watch === true && (options.output === 'yaml' || options.output === 'json')) {
    throw usageFailure(`-o ${options.output} ends with its document and cannot go on`, 'take -o jsonl with --watch');
  }
  return withCluster(context, options, 'read', (cluster) => {
    const scope = scopeWanted(cluster, options);
    return options.watch === true ? watch(context, cluster, scope, options) : once(context, cluster, scope, options);
  });
}

function scopeWanted(cluster: Cluster, { groups = [], allNamespaces }: GetOptions): Scope {
  if (groups.length > 0) return scopeOf(groups.map((text) => groupNamed(text, cluster)));
  return { namespace: allNamespaces === true ? undefined : cluster.namespace, names: [] };
}

async function once(context: CommandContext, cluster: Cluster, scope: Scope, options: GetOptions): Promise<ExitCode> {
  const read = await readGroups(cluster, scope);
  await write(context.stdout, cluster, scope, options, read);
  await writeNotes(context, cluster, read);
  if (read.groups.length === 0)
    context.stderr.write(`no groups ${scope.namespace === undefined ? 'anywhere' : `in namespace ${scope.namespace}`}\n`);
  suggest(context, options, read.groups);
  return exitCodes.done;
}

async function write(stream: OutputStream, cluster: Cluster, scope: Scope, { output }: GetOptions, { groups }: ReadGroups): Promise<void> {
  const nowMs = cluster.env.clock.nowMs();
  switch (output) {
    case 'table':
    case 'wide':
      if (groups.length > 0) stream.write(tableOrTree(stream, scope, groups, nowMs, output === 'wide'));
      return;
    case 'name':
      return stream.write(groups.map(({ decision }) => `${nameOf(decision)}\n`).join(''));
    case 'jsonl':
      return writeLines(
        stream,
        groups.map((live) => ({ kind: 'Group', ...groupDocument(live) })),
      );
    case 'json':
    case 'yaml': {
      const metadata = { generatedAt: new Date(nowMs).toISOString(), server: cluster.server, context: cluster.contextName };
      return writeDocument(stream, output, { kind: 'GroupList', metadata, groups: groups.map(groupDocument) });
    }
  }
}

function tableOrTree(stream: OutputStream, scope: Scope, groups: readonly LiveGroup[], nowMs: number, isWide: boolean): string {
  const [only] = groups;
  const look = { ...stream, isWide };
  if (only !== undefined && scope.names.length === 1) return `${renderTree(only, nowMs, look).join('\n')}\n`;
  return renderGroups({ groups, nowMs, hasNamespaces: scope.namespace === undefined }, look);
}

async function writeNotes({ stderr }: CommandContext, cluster: Cluster, read: ReadGroups): Promise<void> {
  const { lines } = await notesOn(cluster, read);
  const nowMs = cluster.env.clock.nowMs();
  const outdated = read.groups.flatMap((live) => outdatedLines(live, read.listing, nowMs));
  for (const line of [...lines, ...outdated, ...listedChannelLines(read)]) stderr.write(`${stderr.paint('yellow', 'note:')} ${line}\n`);
}

async function watch(context: CommandContext, cluster: Cluster, scope: Scope, options: GetOptions): Promise<ExitCode> {
  const { stdout, stderr } = context;
  await writeNotes(context, cluster, await readGroups(cluster, scope));
  const seen = new Map<string, string>();
  const isText = options.output === 'table' || options.output === 'wide';
  const ending = await follow(context, cluster, {
    scope,
    heartbeatMs: isText ? durationFlag('--heartbeat', options.heartbeat) : 0,
    frame: isText
      ? ({ groups }, nowMs) =>
          tableOrTree(stdout, scope, groups, nowMs, options.output === 'wide')
            .trimEnd()
            .split('\n')
      : undefined,
    write: ({ groups }, nowMs) => {
      const changed = groups.filter((live) => isNew(seen, live, isText));
      if (options.output === 'name') stdout.write(changed.map(({ decision }) => `${nameOf(decision)}\n`).join(''));
      else if (isText) stdout.write(changed.map((live) => `${statusLine(live, nowMs)}\n`).join(''));
      else
        writeLines(
          stdout,
          changed.map((live) => ({ kind: 'Group', ...groupDocument(live) })),
        );
    },
    heartbeat: ({ groups }, nowMs) => {
      const waiting = groups.filter(({ decision }) => decision.outcome !== 'done');
      stdout.write(waiting.map((live) => `${heartbeatLine(live, nowMs)}\n`).join(''));
    },
    verdict: () => undefined,
  });
  stderr.write('the rollout goes on; only the watching has ended\n');
  return ending.kind === 'interrupted' ? exitCodes.interrupted : exitCodes.done;
}

/** For people a transition; for programs every change. */
function isNew(seen: Map<string, string>, live: LiveGroup, isText: boolean): boolean {
  const key = isText ? statusKey(live) : JSON.stringify(live.decision);
  const name = nameOf(live.decision);
  if (seen.get(name) === key) return false;
  seen.set(name, key);
  return true;
}

function suggest(context: CommandContext, { output }: GetOptions, groups: readonly LiveGroup[]): void {
  if (output !== 'table' && output !== 'wide') return;
  const held = groups.find(({ decision }) => decision.waits.length > 0);
  if (held !== undefined) suggestNext(context, `explain ${nameOf(held.decision)}`);
}
