// The verb resume: the pauses of a group are taken back.
import { isStatus } from '../../cluster/request/failure.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { accessFor, type DryRun, printObjects, zoneNamed } from '../live/acting.ts';
import type { LiveGroup } from '../live/groups.ts';
import { deleteIntent, type StandingIntent, standingPauses } from '../live/intents.ts';
import { notInstalled, rolloutIntents } from '../live/kinds.ts';
import { readGroups, scopeOf } from '../live/read.ts';
import { groupNamed, nameOf } from '../live/target.ts';

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
    const zone = live === undefined ? undefined : zoneNamed(live, options.zone);
    const pauses = await standingPauses(cluster, name, cluster.env.clock.nowMs()).catch((error: unknown) => {
      throw isStatus(error, 404) ? notInstalled(rolloutIntents, 'nothing was resumed') : error;
    });
    // The pause of the whole group holds every zone; it is not lifted for one.
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
  const where = zone === undefined ? name : `${name} zone ${zone}`;
  const { run } = live?.decision ?? {};
  stdout.write(meant.length === 0 ? `${where} was not paused by anybody\n` : `${where} resumed\n`);
  for (const { view } of left) {
    if (zone !== undefined && view.zone === undefined)
      stdout.write(`  the whole group is still paused: kubectl rollout-group resume ${name}\n`);
  }
  const settings = live?.decision.waits.filter(
    ({ rule, source }) => rule === 'paused' && !(source?.object ?? '').startsWith('RolloutIntent'),
  );
  if (run?.outcome === 'failed')
    stdout.write(`  run ${run.id} has ended (${run.failure ?? 'it failed'}); to go on: kubectl rollout-group retry ${name}\n`);
  for (const wait of settings ?? []) stdout.write(`  ${wait.fact}; that is changed where it is written\n`);
  suggestNext(context, `status ${name}`);
}
