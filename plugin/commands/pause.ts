// The verbs pause and resume: a paused group or zone replaces no further pod until the pause expires or is deleted.
import type { Stop } from '../../engine/decision.ts';
import { endsText } from '../../engine/publish/status.ts';
import { ifNotInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { type LiveGroup, readGroups, scopeOf } from '../live/groups.ts';
import { applyIntent, deleteIntent, listActivePauses, pauseIntent } from '../live/intents.ts';
import { findGroup } from '../live/named-group.ts';
import { writeAgentNote } from '../live/notes.ts';
import type { RequestFlags } from '../live/submit-request.ts';
import { durationFlag, type GroupName, nameOf } from '../live/target.ts';
import { accessFor, findZone, printObjects } from '../live/write-options.ts';
import { zoneProgress } from '../output/group-text.ts';
import { instantText } from '../output/plan/plan-text.ts';
import { placeText, plural, reasonSuffix } from '../output/text.ts';

export interface ResumeOptions extends RequestFlags {
  readonly zone?: string;
}

export interface PauseOptions extends ResumeOptions {
  readonly duration?: string;
}

export function pause(context: CommandContext, options: PauseOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const { target, live, zone } = await readPlace(cluster, options);
    const { reason, dryRun } = options;
    const expiresMs = options.duration === undefined ? undefined : cluster.env.clock.nowMs() + durationFlag('--duration', options.duration);
    const object = pauseIntent({ ...target, ...(zone && { zone }), ...(reason && { reason }), ...(expiresMs && { expiresMs }) });
    if (dryRun === 'client') return printObjects(context, [object]);
    const applied = await applyIntent(cluster, object, dryRun === 'server').catch(ifNotInstalled(rolloutIntents, 'nothing was paused'));
    if (dryRun === 'server') return printObjects(context, [applied]);
    const name = nameOf(target);
    const until = expiresMs === undefined ? '' : ` until ${instantText(expiresMs)}`;
    context.stdout.write(
      `${placeText(name, zone)} paused${until}${reasonSuffix(reason)}\n  ${finishingText(live)}no further pod is replaced\n`,
    );
    await writeAgentNote(context, cluster, live);
    suggestNext(context, `resume ${name}${zone === undefined ? '' : ` --zone ${zone}`}`, `explain ${name}`);
    return exitCodes.done;
  });
}

function finishingText(live: LiveGroup | undefined): string {
  const { zones = [], pods = [] } = live?.decision ?? {};
  const inFlightCount = zones.reduce((sum, one) => sum + zoneProgress(one, pods).inFlight, 0);
  return inFlightCount === 0 ? '' : `${plural(inFlightCount, 'pod')} in flight will finish; `;
}

export function resume(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const { target, live, zone } = await readPlace(cluster, options);
    const pauses = await listActivePauses(cluster, target, cluster.env.clock.nowMs()).catch(
      ifNotInstalled(rolloutIntents, 'nothing was resumed'),
    );
    // Each pause is ended at its own place: that of the group does not end those of zones, and the other way round.
    const meant = pauses.filter(({ view }) => view.zone === zone).map(({ object }) => object);
    if (options.dryRun !== undefined) return printObjects(context, meant);
    for (const object of meant) await deleteIntent(cluster, object);
    const name = nameOf(target);
    const others = pauses.filter(({ view }) => view.zone !== zone && (zone === undefined || view.zone === undefined));
    const lines = [
      `${placeText(name, zone)} ${meant.length === 0 ? 'is not paused by a request' : 'resumed'}\n`,
      ...new Set(others.map(({ view }) => stillPaused(name, view.zone))),
      ...remainingStops(live),
    ];
    context.stdout.write(lines.join(''));
    await writeAgentNote(context, cluster, live);
    suggestNext(context, `status ${name}`);
    return exitCodes.done;
  });
}

function stillPaused(name: string, zone: string | undefined): string {
  const [place, flag] = zone === undefined ? ['the whole group', ''] : [`zone ${zone}`, ` --zone ${zone}`];
  return `  ${place} is still paused. Run: kubectl rollout-group resume ${name}${flag}\n`;
}

interface Place {
  readonly target: GroupName;
  readonly live: LiveGroup | undefined;
  readonly zone: string | undefined;
}

async function readPlace(cluster: Cluster, { group, zone }: ResumeOptions): Promise<Place> {
  const target = await findGroup(cluster, group);
  const [live] = (await readGroups(cluster, scopeOf([target]))).groups;
  return { target, live, zone: live === undefined ? undefined : findZone(live, zone) };
}

/** Returns a line for each stop of another kind, which still blocks the group. */
function remainingStops(live: LiveGroup | undefined): readonly string[] {
  const { stops = [] } = live?.decision ?? {};
  const isPauseRequest = ({ rule, source }: Stop): boolean => rule === 'paused' && source?.object?.startsWith('RolloutIntent ') === true;
  return stops
    .filter((stop) => stop.isBlocking && !isPauseRequest(stop))
    .map((stop) => `  ${stop.fact}; resume does not change it. To end it: ${endsText(stop)}\n`);
}
