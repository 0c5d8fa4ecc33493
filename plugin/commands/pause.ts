// The verb pause: no further pod is replaced until resume or the end of the pause.
import { isStatus } from '../../cluster/request/failure.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { notInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { accessFor, type DryRun, findZone, printObjects } from '../live/dry-run.ts';
import type { LiveGroup } from '../live/groups.ts';
import { applyIntent, pauseIntent } from '../live/intents.ts';
import { readGroups, scopeOf } from '../live/read.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { durationFlag } from '../live/when.ts';
import { zoneProgress } from '../output/group-text.ts';
import { instantText } from '../output/plan/plan-text.ts';
import { plural } from '../output/plural.ts';
import { placeText, reasonSuffix } from '../output/request-text.ts';

export interface PauseOptions extends ConnectionFlags {
  readonly group: string;
  readonly zone?: string;
  readonly for?: string;
  readonly reason?: string;
  readonly dryRun?: DryRun;
}

export function run(context: CommandContext, options: PauseOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const name = groupNamed(options.group, cluster);
    const { groups } = await readGroups(cluster, scopeOf([name]));
    const [live] = groups;
    const zone = live === undefined ? undefined : findZone(live, options.zone);
    const expiresMs = options.for === undefined ? undefined : cluster.env.clock.nowMs() + durationFlag('--for', options.for);
    const { reason } = options;
    const object = pauseIntent({ ...name, ...(zone && { zone }), ...(reason && { reason }), ...(expiresMs && { expiresMs }) });
    if (options.dryRun === 'client') printObjects(context, [object]);
    else {
      const applied = await apply(cluster, object, options.dryRun);
      if (options.dryRun === 'server') printObjects(context, [applied]);
      else report(context, { name: nameOf(name), zone, reason, expiresMs, live });
    }
    return exitCodes.done;
  });
}

async function apply(cluster: Cluster, object: KubernetesObject, dryRun: DryRun): Promise<KubernetesObject> {
  try {
    return await applyIntent(cluster, object, dryRun === 'server');
  } catch (error) {
    throw isStatus(error, 404) ? notInstalled(rolloutIntents, 'nothing was paused') : error;
  }
}

interface Paused {
  readonly name: string;
  readonly zone: string | undefined;
  readonly reason: string | undefined;
  readonly expiresMs: number | undefined;
  readonly live: LiveGroup | undefined;
}

function report(context: CommandContext, { name, zone, reason, expiresMs, live }: Paused): void {
  const until = expiresMs === undefined ? '' : ` until ${instantText(expiresMs)}`;
  const zones = live?.decision.zones ?? [];
  const inFlightCount = zones.reduce((sum, one) => sum + zoneProgress(one, live?.decision.pods ?? []).inFlight, 0);
  const finishing = inFlightCount === 0 ? '' : `${plural(inFlightCount, 'pod')} in flight will finish; `;
  context.stdout.write(`${placeText(name, zone)} paused${until}${reasonSuffix(reason)}\n`);
  context.stdout.write(`  ${finishing}no further pod is replaced\n`);
  suggestNext(context, `resume ${name}${zone === undefined ? '' : ` --zone ${zone}`}`, `explain ${name}`);
}
