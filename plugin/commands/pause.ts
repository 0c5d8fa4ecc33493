// The verbs pause and resume: a paused group or zone replaces no further pod until the pause expires or is deleted.
import type { Stop } from '../../engine/decision.ts';
import { requestOf } from '../../engine/run/requests.ts';
import { minuteText } from '../../policies/instant.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted, zonesText } from '../../policies/wording.ts';
import { ifNotInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { type LiveGroup, readGroups } from '../live/groups.ts';
import { deleteRequest, listActivePauses, printDeletions } from '../live/intents.ts';
import { writeAgentNote } from '../live/notes.ts';
import { blockingTexts } from '../live/remaining-stops.ts';
import { type RequestFlags, readAndSubmit, readRequestedGroup, storedText } from '../live/submit-request.ts';
import { endFlag } from '../live/target.ts';
import { accessFor, type DryRun, findZone, groupReference, recordReason } from '../live/write-options.ts';
import { podsInFlight } from '../output/group-text.ts';
import { ageText } from '../output/plan/plan-text.ts';
import { placeText, reasonSuffix } from '../output/text.ts';

export interface ResumeOptions extends RequestFlags {
  readonly zone?: string;
}

export interface PauseOptions extends ResumeOptions {
  readonly duration?: string;
}

export function pause(context: CommandContext, options: PauseOptions): Promise<ExitCode> {
  return readAndSubmit(
    context,
    options,
    ({ cluster, target, name, live }) => {
      const { reason, duration } = options;
      const zone = findZone(live, options.zone);
      const expiresMs = duration === undefined ? undefined : cluster.env.clock.nowMs() + endFlag('--duration', duration);
      const expires = expiresMs === undefined ? undefined : new Date(expiresMs).toISOString();
      const until = expiresMs === undefined ? '' : ` until ${minuteText(expiresMs)}`;
      return {
        // A zone contains no dot, so every pair of group and zone has a distinct name. Repeated requests write the same object.
        objectName: zone === undefined ? `pause.${target.group}` : `pause-zone.${zone}.${target.group}`,
        spec: { action: 'pause', ...defined({ zone, expires }) },
        notSent: 'nothing was paused',
        text: () =>
          `${placeText(name, zone)} paused${until}${reasonSuffix(reason)}\n  ${effectText(live, zone, cluster.env.clock.nowMs())}\n`,
        next: [`resume ${name}${zone === undefined ? '' : ` --zone ${zone}`}`, `explain ${name}`],
      };
    },
    readGroups,
  );
}

/** Returns what the pause stops, and what it does not stop: the pods in flight, and for the pause of a zone the replicas of the others. */
function effectText({ decision, from }: LiveGroup, only: string | undefined, nowMs: number): string {
  const isPaused = ({ zone }: { readonly zone: string }): boolean => only === undefined || zone === only;
  const inFlightCount = podsInFlight(decision)
    .filter(isPaused)
    .reduce((sum, { count }) => sum + count, 0);
  // The published decision may be old, for example because no agent runs.
  const isFresh = from === 'here' || nowMs - decision.decidedMs < 60_000;
  const verb = inFlightCount === 1 ? 'was' : 'were';
  const inFlight = isFresh ? 'in flight' : `that ${verb} in flight ${ageText(decision.decidedMs, nowMs)} ago`;
  const others = decision.zones.filter((zone) => !isPaused(zone)).map(({ zone }) => zone);
  return [
    ...(inFlightCount === 0 ? [] : [`${counted(inFlightCount, 'pod')} ${inFlight} will finish`]),
    `no further pod${only === undefined ? '' : ` of zone ${only}`} is replaced`,
    // Zones roll one at a time, so the engine starts no zone past a zone that a person paused.
    ...(only === undefined || others.length === 0
      ? []
      : [
          `while the wave has a pod of zone ${only} to replace, the rollout does not continue with later zones`,
          `the pause does not apply to the replicas of ${zonesText(others)}`,
        ]),
  ].join('; ');
}

export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const { target, name, live, read } = await readRequestedGroup(cluster, options.group, readGroups);
    const pauses = await listActivePauses(cluster, target, cluster.env.clock.nowMs()).catch(
      ifNotInstalled(rolloutIntents, 'nothing was resumed'),
    );
    // A zone may have left the group since the pause.
    const zone = pauses.some(({ view }) => view.zone === options.zone) ? options.zone : findZone(live, options.zone);
    // The pause of a group and the pauses of its zones end separately.
    const meant = pauses.filter(({ view }) => view.zone === zone);
    const subject = placeText(name, zone);
    const deleted = await deletePauses(context, cluster, { meant, subject, dryRun: options.dryRun });
    if (options.dryRun !== undefined) {
      if (meant.length === 0) writeNotes(context, [`${subject} is not paused by a request`]);
      return printDeletions(
        context,
        meant.map(({ object }) => object),
      );
    }
    const others = pauses.filter(({ view }) => view.zone !== zone);
    // A pause request that remains has its own line.
    const isOther = (block: Pick<Stop, 'rule' | 'source'>): boolean => block.rule !== 'paused' || requestOf(block) === undefined;
    const lines = [
      `${subject} ${meant.length === 0 ? 'is not paused by a request' : `resumed${reasonSuffix(options.reason)}`}\n`,
      ...deleted,
      ...new Set(others.map(({ view }) => stillPaused(name, view.zone))),
      ...blockingTexts((live.present ?? live).decision, 'resume', isOther).map((text) => `  ${text}\n`),
    ];
    const about = groupReference(target, read.listing);
    const note = meant.length === 0 ? undefined : options.reason;
    await recordReason(context, cluster, { reason: 'Resumed', action: 'Resume', note, about });
    context.stdout.write(lines.join(''));
    await writeAgentNote(context, cluster, live);
    suggestNext(context, `status ${name}`);
    return exitCodes.done;
  });
}

/** Deletes the pauses, and returns a line for each. If a deletion fails, prints the lines of the pauses that are already deleted. */
async function deletePauses(
  { stdout }: CommandContext,
  cluster: Cluster,
  {
    meant,
    subject,
    dryRun,
  }: { readonly meant: Awaited<ReturnType<typeof listActivePauses>>; readonly subject: string; readonly dryRun: DryRun },
): Promise<readonly string[]> {
  const deleted: string[] = [];
  try {
    for (const { view, object } of meant) {
      await deleteRequest(cluster, object, { dryRun });
      deleted.push(`  deleted RolloutIntent ${view.name}: ${storedText(view)}\n`);
    }
  } catch (error) {
    if (dryRun === undefined && deleted.length > 0) stdout.write(`${subject} was resumed only in part\n${deleted.join('')}`);
    throw error;
  }
  return deleted;
}

function stillPaused(name: string, zone: string | undefined): string {
  const [place, flag] = zone === undefined ? ['the whole group', ''] : [`zone ${zone}`, ` --zone ${zone}`];
  return `  ${place} is still paused. Run: kubectl rollout-group resume ${name}${flag}\n`;
}
