// The verb history: lists the runs of groups, or shows one run in full.
import { type ShownRun, shownRuns } from '../../engine/publish/run-record.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, notFoundFailure } from '../failure.ts';
import { type ReadGroups, readGroups, scopeOf } from '../live/groups.ts';
import { readImages, readRuns } from '../live/history.ts';
import { chosenGroups, type GroupChoice, noGroupsText } from '../live/named-group.ts';
import { notesOn } from '../live/notes.ts';
import { releaseLines } from '../live/removed-group.ts';
import { type GroupName, nameOf } from '../live/target.ts';
import { type CustomColumns, isColumns, type ResultDocument, type ResultFormat, writeColumns, writeResult } from '../output/formats.ts';
import { seenAtMs } from '../output/group-text.ts';
import { renderRun, renderRuns } from '../output/history.ts';

export interface HistoryOptions extends ConnectionFlags, Omit<GroupChoice, 'groups'> {
  readonly group?: string;
  readonly run?: string;
  readonly output: 'table' | ResultFormat | CustomColumns;
}

export function run(context: CommandContext, options: HistoryOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const { group, selector, allNamespaces, run: id, output } = options;
    const groups = await chosenGroups(cluster, defined({ groups: [group ?? []].flat(), selector, allNamespaces }));
    if (groups.length === 0) context.stderr.write(`${noGroupsText(cluster, options)}\n`);
    const lists: GroupRuns[] = [];
    for (const name of groups) lists.push({ name, ...(await runsOf(context, cluster, name)) });
    const [only, ...others] = lists;
    if (id !== undefined && only !== undefined) await writeRun(context, options, runNamed(only.runs, id, nameOf(only.name)));
    else if (output !== 'table') {
      const runs = lists.flatMap((one) => one.runs.map((run) => ({ namespace: one.name.namespace, ...run })));
      const document = { kind: 'RunList', ...(group !== undefined && { group: only?.name }), runs } as const;
      await writeFor(context, output, { document, rows: runs });
    } else for (const list of lists) writeRuns(context, list, others.length > 0);
    return exitCodes.done;
  });
}

interface GroupRuns {
  readonly name: GroupName;
  readonly runs: readonly ShownRun[];
  /** Says that the agent of the group does not run. */
  readonly unattended?: string;
}

async function runsOf(context: CommandContext, cluster: Cluster, name: GroupName): Promise<Omit<GroupRuns, 'name'>> {
  const { runs: records, unreadable } = await readRuns(cluster, name);
  const open = records.some(({ outcome }) => outcome === 'running') ? await readDefined(cluster, name) : undefined;
  const { unattended: stopped } = open === undefined ? {} : await notesOn(cluster, open);
  const unattended = stopped?.get(nameOf(name));
  const live = open?.groups.find(({ decision }) => nameOf(decision) === nameOf(name));
  const nowMs = context.nowMs();
  // Without its agent, later states of a run are unknown.
  const seenMs = live === undefined ? nowMs : seenAtMs({ ...live, ...defined({ unattended }) }, nowMs);
  const shown = shownRuns(records, open !== undefined, seenMs);
  const runs = await readImages(cluster, name.namespace, shown);
  for (const object of unreadable)
    context.stderr.write(`note: RolloutRun ${name.namespace}/${object} has an unknown version and is not shown\n`);
  // Run records remain after the deletion of their group. Without records, the group itself must exist.
  if (runs.length === 0) await readGroups(cluster, scopeOf([name]));
  return { runs, ...defined({ unattended }) };
}

async function writeRun(context: CommandContext, { output }: HistoryOptions, record: ShownRun): Promise<void> {
  const { stdout } = context;
  if (output === 'table') stdout.write(renderRun(record, { ...stdout, isWide: false }));
  else await writeFor(context, output, { document: { kind: 'Run', run: record }, rows: [record] });
}

/** Writes the document, or for custom columns one row per run. */
async function writeFor(
  context: CommandContext,
  output: Exclude<HistoryOptions['output'], 'table'>,
  { document, rows }: { readonly document: ResultDocument; readonly rows: readonly object[] },
): Promise<void> {
  return isColumns(output) ? writeColumns(context, output, rows) : writeResult(context, output, document);
}

function writeRuns(context: CommandContext, { name: group, runs, unattended }: GroupRuns, hasTitle: boolean): void {
  const { stdout, stderr } = context;
  if (hasTitle) stdout.write(`${nameOf(group)}\n`);
  const [newest] = runs;
  if (newest === undefined) {
    stderr.write(`no run of ${nameOf(group)} is recorded\n`);
    return;
  }
  stdout.write(renderRuns(runs, { ...stdout, isWide: false }, unattended));
  suggestNext(context, `history ${nameOf(group)} ${newest.id}`);
}

/** Reads the group of a run that can still continue; undefined if the group does not exist or is being released. */
async function readDefined(cluster: Cluster, name: GroupName): Promise<Pick<ReadGroups, 'groups' | 'problems'> | undefined> {
  try {
    const read = await readGroups(cluster, scopeOf([name]));
    return releaseLines(read.listing, name).length === 0 ? read : undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return error.exitCode === exitCodes.notFound ? undefined : { groups: [], problems: [] };
  }
}

/** Returns the run with this id or unique prefix, also of an earlier id. Throws Failure if no run or several runs match. */
function runNamed(runs: readonly ShownRun[], id: string, group: string): ShownRun {
  const idsOf = ({ id: current, earlierIds = [] }: ShownRun): readonly string[] => [current, ...earlierIds];
  const found = runs.filter((record) => idsOf(record).some((one) => one.startsWith(id)));
  const [record, ...others] = found;
  const exact = found.find((candidate) => idsOf(candidate).includes(id));
  if (exact !== undefined) return exact;
  if (record !== undefined && others.length === 0) return record;
  throw notFoundFailure(record === undefined ? `${group} has no run ${id}` : `${found.length} runs of ${group} start with ${id}`, {
    todo: `kubectl rollout-group history ${group}`,
  });
}
