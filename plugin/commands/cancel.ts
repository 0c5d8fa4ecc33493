// The verb cancel: what somebody asked for is taken back, or a decrease of replicas that has not happened yet.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { deleteObject } from '../../cluster/request/write.ts';
import { type Cluster, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { accessFor, printObjects, zoneNamed } from '../live/acting.ts';
import { type Asked, type AskFlags, askedGroup, submit } from '../live/asking.ts';
import { rolloutExceptions, rolloutIntents } from '../live/kinds.ts';

export interface CancelOptions extends AskFlags {
  readonly intent?: string;
  readonly zone?: string;
}

export function run(context: CommandContext, options: CancelOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const asked = await askedGroup(cluster, options.group);
    return options.intent === undefined ? cancelDecrease(context, options, asked) : takeBack(context, options, asked, options.intent);
  });
}

interface Standing {
  readonly resource: Resource;
  readonly object: KubernetesObject;
}

/** Intents and exceptions about the group. */
async function standing({ env, timeoutMs }: Cluster, { target: { namespace, group } }: Asked): Promise<readonly Standing[]> {
  const lists = [rolloutIntents, rolloutExceptions].map(async (resource): Promise<readonly Standing[]> => {
    try {
      const { items } = await listObjects(env, resource, { namespace, site: 'cancel.list', timeoutMs });
      return items.map((object) => ({ resource, object }));
    } catch (error) {
      if (isStatus(error, 404)) return [];
      throw error;
    }
  });
  return (await Promise.all(lists)).flat().filter(({ object }) => groupOf(object) === group);
}

/** `spec.group` of an intent, `spec.target.group` of an exception. */
function groupOf({ spec }: KubernetesObject): unknown {
  if (typeof spec !== 'object' || spec === null) return undefined;
  if ('group' in spec) return spec.group;
  const target = 'target' in spec ? spec.target : undefined;
  return typeof target === 'object' && target !== null && 'group' in target ? target.group : undefined;
}

async function takeBack(context: CommandContext, options: CancelOptions, asked: Asked, wanted: string): Promise<ExitCode> {
  const { cluster, name } = asked;
  const all = await standing(cluster, asked);
  const found = all.find(({ object }) => object.metadata.name === wanted);
  if (found === undefined) {
    const names = all.map(({ object }) => object.metadata.name).sort();
    throw new Failure({
      exitCode: exitCodes.notFound,
      what: `nobody asked ${wanted} of ${name}`,
      todo:
        names.length === 0
          ? `nothing is asked of it; see kubectl rollout-group explain ${name}`
          : `name one of ${names.slice(0, 20).join(', ')}`,
    });
  }
  if (options.dryRun !== undefined) {
    printObjects(context, [found.object]);
    return exitCodes.done;
  }
  const { name: own, namespace = '', uid = '', resourceVersion = '' } = found.object.metadata;
  const { env, timeoutMs } = cluster;
  await deleteObject(env, found.resource, { namespace, name: own, uid, resourceVersion }, { site: 'cancel.delete', timeoutMs }).catch(
    (error: unknown) => {
      if (!isStatus(error, 404)) throw error;
    },
  );
  context.stdout.write(`${name}: ${wanted} was taken back\n`);
  return exitCodes.done;
}

/** The agent keeps the replicas as they are for as long as the same number is asked for, and tells pods that prepared to stay. */
function cancelDecrease(context: CommandContext, options: CancelOptions, asked: Asked): Promise<ExitCode> {
  const { live, name } = asked;
  const zone = zoneNamed(live, options.zone);
  const pending = live.decision.steps.filter((step) => step.kind === 'scaleDown' && (zone === undefined || step.zone === zone));
  const [first, ...others] = pending;
  if (first === undefined) {
    const where = zone === undefined ? name : `${name} zone ${zone}`;
    return submit(context, options, asked, { text: () => `${where} is not about to shrink; nothing was cancelled\n` });
  }
  if (others.length > 0) {
    throw new Failure({
      exitCode: exitCodes.usage,
      what: `${pending.length} zones of ${name} are about to shrink`,
      todo: `name one with --zone: ${pending.map((step) => step.zone).join(', ')}`,
    });
  }
  const { zone: shrinking, from, to } = first;
  return submit(context, options, asked, {
    key: `${shrinking} ${to ?? ''}`,
    spec: { action: 'cancel', zone: shrinking, ...(to === undefined ? {} : { replicas: to }) },
    text: () =>
      `${name} zone ${shrinking} stays at ${from ?? '?'} replicas; pods that prepared to leave are told to stay\n  asked for is ${to ?? '?'} still: another number ends this\n`,
  });
}
