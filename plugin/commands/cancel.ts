// The verb cancel: deletes a request or an exception, or cancels a scale-down that has not happened yet.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { zonesRolledAgain } from '../../engine/plan/controller.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { readIntent } from '../../policies/live/intents.ts';
import { counted, zonesText } from '../../policies/wording.ts';
import { rolloutExceptions, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure, usageFailure } from '../failure.ts';
import { deleteRequest, printDeletions } from '../live/intents.ts';
import { writeAgentNote } from '../live/notes.ts';
import { type RequestedGroup, type RequestFlags, readRequestedGroup, submit } from '../live/submit-request.ts';
import { accessFor, findZone, groupReference, recordReason } from '../live/write-options.ts';
import { placeText, reasonSuffix } from '../output/text.ts';

export interface CancelOptions extends RequestFlags {
  readonly intent?: string;
  readonly zone?: string;
}

export function run(context: CommandContext, options: CancelOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const requested = await readRequestedGroup(cluster, options.group);
    return options.intent === undefined
      ? cancelScaleDown(context, options, requested)
      : cancelRequest(context, options, requested, options.intent);
  });
}

async function listRequests({ env, timeoutMs }: Cluster, { target: { namespace, group } }: RequestedGroup) {
  const lists = [rolloutIntents, rolloutExceptions].map(async (resource) => {
    const list = listObjects(env, resource, { namespace, site: 'cancel.list', timeoutMs });
    const { items } = await list.catch(onStatus({ items: [] }, 404));
    return items.map((object) => ({ resource, object }));
  });
  return (await Promise.all(lists)).flat().filter(({ object }) => groupOf(object) === group);
}

function groupOf(object: KubernetesObject): unknown {
  return fieldAt(object, ['spec', 'group']) ?? fieldAt(object, ['spec', 'target', 'group']);
}

async function cancelRequest(
  context: CommandContext,
  options: CancelOptions,
  requested: RequestedGroup,
  wanted: string,
): Promise<ExitCode> {
  const { cluster, name } = requested;
  const all = await listRequests(cluster, requested);
  const found = all.find(({ object }) => object.metadata.name === wanted);
  if (found === undefined) {
    const names = all.map(({ object }) => object.metadata.name).sort();
    throw notFoundFailure(`${name} has no request or exception ${wanted}`, {
      todo: names.length === 0 ? `kubectl rollout-group explain ${name}` : `choose one of ${names.slice(0, 20).join(', ')}`,
    });
  }
  await deleteRequest(cluster, found.object, { resource: found.resource, dryRun: options.dryRun });
  const ended = endedTexts(requested, found.object);
  if (options.dryRun !== undefined) {
    writeNotes(context, ended);
    return printDeletions(context, [found.object]);
  }
  const { reason } = options;
  const note = reason === undefined ? undefined : `${wanted}: ${reason}`;
  const about = groupReference(requested.target, requested.read.listing);
  await recordReason(context, cluster, { reason: 'Cancelled', action: 'Cancel', note, about });
  context.stdout.write(`${name}: ${wanted} cancelled${reasonSuffix(reason)}\n${ended.map((text) => `  ${text}\n`).join('')}`);
  await writeAgentNote(context, cluster, requested.live);
  return exitCodes.done;
}

/** Returns a text about the zones that roll to the undone revision again after the cancellation of an undo; [] for another request. */
function endedTexts({ snapshot, live: { definition } }: RequestedGroup, object: KubernetesObject): readonly string[] {
  const undo = readIntent(object);
  if (snapshot === undefined || definition === undefined || isUnknown(undo)) return [];
  const zones = zonesRolledAgain(snapshot, definition, undo);
  return zones.length === 0 ? [] : [`${zonesText(zones)} ${zones.length === 1 ? 'rolls' : 'roll'} to the undone revision again`];
}

/** Requests that the zone keeps its replicas until another number is requested, and that its prepared pods return to service. */
function cancelScaleDown(context: CommandContext, options: CancelOptions, requested: RequestedGroup): Promise<ExitCode> {
  const { live, name } = requested;
  const zone = findZone(live, options.zone);
  const pending = live.decision.steps.filter((step) => step.kind === 'scaleDown' && (zone === undefined || step.zone === zone));
  const [first, ...others] = pending;
  if (first === undefined) {
    return submit(context, options, requested, {
      text: () => `${placeText(name, zone)} has no pending scale-down; nothing was cancelled\n`,
    });
  }
  if (others.length > 0) {
    throw usageFailure(
      `${pending.length} zones of ${name} have a pending scale-down`,
      `choose one with --zone: ${pending.map((step) => step.zone).join(', ')}`,
    );
  }
  const { zone: pendingZone, from, to } = first;
  return submit(context, options, requested, {
    // A pending scale-down shows that earlier cancellations of the zone have ended. The same object would still be an ended one.
    key: `${pendingZone} ${to ?? ''} ${requested.cluster.env.clock.nowMs()}`,
    ends: (earlier) => earlier.action === 'cancel' && earlier.zone === pendingZone,
    spec: { action: 'cancel', zone: pendingZone, ...(to === undefined ? {} : { replicas: to }) },
    text: () =>
      `${name} zone ${pendingZone} stays at ${replicasText(from)}; pods that prepared for the scale-down return to service\n  ${replicasText(to)} ${to === 1 ? 'is' : 'are'} still requested; a different number ends the cancellation\n`,
  });
}

function replicasText(count: number | undefined): string {
  return count === undefined ? '? replicas' : counted(count, 'replica');
}
