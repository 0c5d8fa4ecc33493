// The verb history: past rollouts of a group, or the steps of one.
import { type ShownRun, shownRuns } from '../../engine/publish/run-outcome.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { readGroups, scopeOf } from '../live/read.ts';
import { releaseLines } from '../live/removed-group.ts';
import { readRuns } from '../live/runs.ts';
import { type GroupName, groupNamed, nameOf } from '../live/target.ts';
import { writeDocument } from '../output/formats.ts';
import { renderRun, renderRuns } from '../output/history.ts';

export interface HistoryOptions extends ConnectionFlags {
  readonly group: string;
  readonly run?: string;
  readonly output: 'table' | 'json' | 'yaml';
}

export function run(context: CommandContext, options: HistoryOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const name = groupNamed(options.group, cluster);
    const { runs: records, unreadable } = await readRuns(cluster, name);
    const runs = shownRuns(records, !records.some(({ outcome }) => outcome === 'running') || (await isDefined(cluster, name)));
    const { stdout, stderr } = context;
    for (const object of unreadable)
      stderr.write(`note: RolloutRun ${name.namespace}/${object} was written by another version and is not shown\n`);
    // Records outlive their group; without any the group itself must be there.
    if (runs.length === 0) await readGroups(cluster, scopeOf([name]));
    const look = { ...stdout, isWide: false };
    if (options.run !== undefined) {
      const record = runNamed(runs, options.run, nameOf(name));
      if (options.output === 'table') stdout.write(renderRun(record, look));
      else await writeDocument(stdout, options.output, { kind: 'Run', run: record });
      return exitCodes.done;
    }
    if (options.output !== 'table') await writeDocument(stdout, options.output, { kind: 'RunList', group: name, runs });
    else if (runs.length > 0) stdout.write(renderRuns(runs, look));
    else stderr.write(`no rollout of ${nameOf(name)} has been recorded yet\n`);
    const [newest] = runs;
    if (newest !== undefined && options.output === 'table') suggestNext(context, `history ${nameOf(name)} ${newest.id}`);
    return exitCodes.done;
  });
}

/** Whether a run of it may go on: false only when it is certain that nothing defines it. */
async function isDefined(cluster: Cluster, name: GroupName): Promise<boolean> {
  try {
    const { listing } = await readGroups(cluster, scopeOf([name]));
    return releaseLines(listing, name).length === 0;
  } catch (error) {
    if (error instanceof Failure) return error.exitCode !== exitCodes.notFound;
    throw error;
  }
}

/** By its id, or by the beginning of it when that is enough. @throws Failure otherwise. */
function runNamed(runs: readonly ShownRun[], id: string, group: string): ShownRun {
  const found = runs.filter((record) => record.id === id || record.id.startsWith(id));
  const [record, ...others] = found;
  const exact = found.find((candidate) => candidate.id === id);
  if (exact !== undefined) return exact;
  if (record !== undefined && others.length === 0) return record;
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: record === undefined ? `there is no run ${id} of ${group}` : `${id} is the beginning of ${found.length} runs of ${group}`,
    todo: `kubectl rollout-group history ${group}`,
  });
}
