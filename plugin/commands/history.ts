// The verb history: lists the runs of groups, or shows one run in full.
import { type ShownRun, shownRuns } from '../../engine/publish/run-record.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, notFoundFailure } from '../failure.ts';
import { readGroups, scopeOf } from '../live/groups.ts';
import { readImages, readRuns } from '../live/history.ts';
import { chosenGroups, type GroupChoice, refuseSeveral } from '../live/named-group.ts';
import { releaseLines } from '../live/removed-group.ts';
import { type GroupName, nameOf } from '../live/target.ts';
import { writeDocument } from '../output/formats.ts';
import { renderRun, renderRuns } from '../output/history.ts';

export interface HistoryOptions extends ConnectionFlags, Omit<GroupChoice, 'groups'> {
  readonly group?: string;
  readonly run?: string;
  readonly output: 'table' | 'json' | 'yaml';
}

export function run(context: CommandContext, options: HistoryOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const { group, selector, allNamespaces } = options;
    const groups = await chosenGroups(cluster, defined({ groups: group === undefined ? [] : [group], selector, allNamespaces }));
    refuseSeveral(groups, options.output);
    for (const name of groups) {
      if (groups.length > 1) context.stdout.write(`${nameOf(name)}\n`);
      await writeHistory(context, cluster, options, name);
    }
    return exitCodes.done;
  });
}

async function writeHistory(context: CommandContext, cluster: Cluster, options: HistoryOptions, name: GroupName): Promise<void> {
  const { runs: records, unreadable } = await readRuns(cluster, name);
  const isOpen = records.some(({ outcome }) => outcome === 'running') && (await isDefined(cluster, name));
  const shown = shownRuns(records, isOpen, context.nowMs());
  const runs = await readImages(cluster, name.namespace, shown);
  for (const object of unreadable)
    context.stderr.write(`note: RolloutRun ${name.namespace}/${object} has an unknown version and is not shown\n`);
  // Run records remain after the deletion of their group. Without records, the group itself must exist.
  if (runs.length === 0) await readGroups(cluster, scopeOf([name]));
  if (options.run === undefined) await writeRuns(context, options, name, runs);
  else await writeRun(context, options, runNamed(runs, options.run, nameOf(name)));
}

async function writeRun({ stdout }: CommandContext, { output }: HistoryOptions, record: ShownRun): Promise<void> {
  if (output === 'table') stdout.write(renderRun(record, { ...stdout, isWide: false }));
  else await writeDocument(stdout, output, { kind: 'Run', run: record });
}

async function writeRuns(context: CommandContext, { output }: HistoryOptions, group: GroupName, runs: readonly ShownRun[]): Promise<void> {
  const { stdout, stderr } = context;
  if (output !== 'table') return writeDocument(stdout, output, { kind: 'RunList', group, runs });
  const [newest] = runs;
  if (newest === undefined) {
    stderr.write(`no run of ${nameOf(group)} is recorded\n`);
    return;
  }
  stdout.write(renderRuns(runs, { ...stdout, isWide: false }));
  suggestNext(context, `history ${nameOf(group)} ${newest.id}`);
}

/** Reports whether a run of the group can still continue: false if the group does not exist or is being released. */
async function isDefined(cluster: Cluster, name: GroupName): Promise<boolean> {
  try {
    const { listing } = await readGroups(cluster, scopeOf([name]));
    return releaseLines(listing, name).length === 0;
  } catch (error) {
    if (error instanceof Failure) return error.exitCode !== exitCodes.notFound;
    throw error;
  }
}

/** Returns the run with this id or unique prefix. Throws Failure if no run or several runs match. */
function runNamed(runs: readonly ShownRun[], id: string, group: string): ShownRun {
  const found = runs.filter((record) => record.id === id || record.id.startsWith(id));
  const [record, ...others] = found;
  const exact = found.find((candidate) => candidate.id === id);
  if (exact !== undefined) return exact;
  if (record !== undefined && others.length === 0) return record;
  throw notFoundFailure(record === undefined ? `${group} has no run ${id}` : `${found.length} runs of ${group} start with ${id}`, {
    todo: `kubectl rollout-group history ${group}`,
  });
}
