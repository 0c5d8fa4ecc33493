// The verb resume: deletes the pauses of a group or a zone.
import { isStatus } from '../../cluster/request/failure.ts';
import { notInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { accessFor, type DryRun, findZone, printObjects } from '../live/dry-run.ts';
import type { LiveGroup } from '../live/groups.ts';
import { deleteIntent, type StandingIntent, standingPauses } from '../live/intents.ts';
import { readGroups, scopeOf } from '../live/read.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { sourceText } from '../output/plan/plan-text.ts';
import { placeText } from '../output/request-text.ts';

export interface ResumeOptions extends ConnectionFlags {
  readonly group: string;
  readonly zone?: string;
  readonly reason?: string;
  readonly dryRun?: DryRun;
}

export function run(context: CommandContext, options: ResumeOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const name = groupNamed(options.group, cluster);
    const { groups } = await readGroups(cluster, scopeOf([name]));
    const [live] = groups;
    const zone = live === undefined ? undefined : findZone(live, options.zone);
    const pauses = await standingPauses(cluster, name, cluster.env.clock.nowMs()).catch((error: unknown) => {
      throw isStatus(error, 404) ? notInstalled(rolloutIntents, 'nothing was resumed') : error;
    });
    // A pause of the whole group pauses every zone and cannot be ended for a single zone.
    const meant = pauses.filter(({ view }) => zone === undefined || view.zone === zone);
    if (options.dryRun !== undefined) {
      printObjects(
        context,
        meant.map(({ object }) => object),
      );
      return exitCodes.done;
    }
    for (const { object } of meant) await deleteIntent(cluster, object);
    report(context, { name: nameOf(name), zone, meant, left: pauses.filter((pause) => !meant.includes(pause)), live });
    return exitCodes.done;
  });
}

interface Resumed {
  readonly name: string;
  readonly zone: string | undefined;
  readonly meant: readonly StandingIntent[];
  readonly left: readonly StandingIntent[];
  readonly live: LiveGroup | undefined;
}

function report(context: CommandContext, { name, zone, meant, left, live }: Resumed): void {
  const { stdout } = context;
  const { run } = live?.decision ?? {};
  stdout.write(`${placeText(name, zone)} ${meant.length === 0 ? 'is not paused by a request' : 'resumed'}\n`);
  for (const { view } of left) {
    if (zone !== undefined && view.zone === undefined)
      stdout.write(`  the whole group is still paused. Run: kubectl rollout-group resume ${name}\n`);
  }
  const settings = live?.decision.waits.filter(
    ({ rule, source }) => rule === 'paused' && !(source?.object ?? '').startsWith('RolloutIntent'),
  );
  if (run?.outcome === 'failed')
    stdout.write(`  run ${run.id} has ended (${run.failure ?? 'it failed'}). Run: kubectl rollout-group retry ${name}\n`);
  for (const { fact, source } of settings ?? []) {
    const place = sourceText(source);
    stdout.write(`  ${fact}; resume does not change it${place === undefined ? '' : `, edit ${place}`}\n`);
  }
  suggestNext(context, `status ${name}`);
}
