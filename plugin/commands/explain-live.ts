// The verb explain for a cluster.
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { channelLines } from '../live/channels.ts';
import { markUnattended, notesOn } from '../live/notes.ts';
import { outdatedLines } from '../live/outdated.ts';
import { readGroups } from '../live/read.ts';
import { findSubject } from '../live/subject.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { renderLiveExplanation } from '../output/explain-live.ts';
import { writeDocument } from '../output/formats.ts';
import { groupDocument } from '../output/group-document.ts';

export interface LiveExplainOptions extends ConnectionFlags {
  readonly group: string;
  readonly whatIf?: boolean;
  readonly output: 'table' | 'json' | 'yaml';
}

export function explainLive(context: CommandContext, options: LiveExplainOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const wanted = groupNamed(options.group, cluster);
    const read = await readGroups(cluster, { namespace: wanted.namespace, names: [] });
    const { live: found, subject } = findSubject(read, wanted);
    const nowMs = cluster.env.clock.nowMs();
    const notes = await notesOn(cluster, { groups: [found], problems: read.problems });
    const live = markUnattended(found, notes, nowMs);
    const { stdout, stderr } = context;
    if (options.output === 'table') {
      stdout.write(renderLiveExplanation({ live, subject, nowMs, isWhatIf: options.whatIf === true }, { ...stdout, isWide: false }));
    } else {
      const metadata = { generatedAt: new Date(nowMs).toISOString(), server: cluster.server };
      await writeDocument(stdout, options.output, { kind: 'Explanation', metadata, subject, ...groupDocument(live) });
    }
    const channels = await channelLines(cluster, live.decision);
    for (const line of [...notes.lines, ...outdatedLines(live, read.listing, nowMs), ...channels])
      stderr.write(`${stderr.paint('yellow', 'note:')} ${line}\n`);
    if (live.decision.outcome !== 'done') suggestNext(context, `get ${nameOf(live.decision)} -w`, `status ${nameOf(live.decision)}`);
    return exitCodes.done;
  });
}
