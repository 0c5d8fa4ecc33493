// The verb scale: writes the replicas to the object that defines the replicas of the group, and shows which zones follow.
import { getObject } from '../../cluster/request/read.ts';
import { apiVersionOf, type KubernetesObject } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { judge } from '../../engine/judge/judge.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure, refusedFailure } from '../failure.ts';
import { type Members, readMembers, refuseWhenDenied, type ScaleTarget, scaleTarget } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { remainingStops } from '../live/remaining-stops.ts';
import type { RequestFlags } from '../live/submit-request.ts';
import { accessFor, confirmByName, confirmByPrompt, type PromptFlags, printObjects, recordReason } from '../live/write-options.ts';
import { propagationLines } from '../output/scale.ts';
import { plural } from '../output/text.ts';

export interface ScaleOptions extends RequestFlags, PromptFlags {
  readonly replicas: number;
  readonly zone?: string;
}

export function run(context: CommandContext, options: ScaleOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const members = await readMembers(cluster, options.group);
    const { name, live } = members;
    const target = await scaleTarget(cluster, members, options.zone);
    const scale = await readScale(cluster, target);
    // The API server omits the field if it is zero.
    const from = Number(fieldAt(scale, ['spec', 'replicas']) ?? 0);
    const change = `${target.shown} of ${name} from ${from} to ${options.replicas}`;
    if (from === options.replicas) {
      context.stdout.write(`${target.shown} of ${name} already has ${plural(from, 'replica')}\n`);
      return exitCodes.done;
    }
    const exceptions = refuseDenied(members, target, from, options);
    const concerns = (rule: string): boolean => rule === 'paused' || (rule === 'protected' && options.replicas < from);
    const notes = [...exceptions, ...(await remainingStops(cluster, members, { verb: 'scale', concerns }))];
    if (options.dryRun !== undefined) await writeAgentNote(context, cluster, live, notes);
    const lines = propagationLines(live.definition, target.zone, { from, to: options.replicas });
    if (options.dryRun === 'client') return printObjects(context, [requestedScale(scale, options.replicas)]);
    const isServerDryRun = options.dryRun === 'server';
    const question = [`This scales ${change}.\n${lines}`, from, members.target.group] as const;
    if (!isServerDryRun && !(await isConfirmed(context, options, question))) return exitCodes.refused;
    const written = await writeScale(cluster, target, scale, { to: options.replicas, dryRun: isServerDryRun });
    if (isServerDryRun) return printObjects(context, [written]);
    await recordReason(context, cluster, { reason: 'Scaled', action: 'Scale', note: options.reason, about: scaledObject(target, scale) });
    context.stdout.write(`scaled ${change}\n${lines}`);
    await writeAgentNote(context, cluster, live, notes);
    suggestNext(context, `status ${name}`, `explain ${name}`);
    return exitCodes.done;
  });
}

async function readScale({ env, timeoutMs }: Cluster, { resource, namespace, name, shown }: ScaleTarget): Promise<KubernetesObject> {
  const scale = await getObject(env, resource, { namespace, name }, { site: 'act.readScale', timeoutMs, subresource: 'scale' });
  if (scale === undefined) throw notFoundFailure(`${shown} no longer exists`);
  return scale;
}

/** For a StatefulSet, throws Failure if a rule denies the scaling or if pods must prepare first. Returns the exceptions that permit it. */
function refuseDenied(
  { name, snapshot }: Members,
  { resource, namespace, name: statefulSet, zone, shown }: ScaleTarget,
  from: number,
  options: ScaleOptions,
): readonly string[] {
  if (resource.kind !== 'StatefulSet') return [];
  const judgement = judge(snapshot, {
    kind: 'scale',
    namespace,
    statefulSet,
    from,
    to: options.replicas,
    via: 'scale',
    dryRun: options.dryRun !== undefined,
  });
  const exceptions = refuseWhenDenied(judgement, name);
  if (judgement.outcome !== 'prepare') return exceptions;
  throw refusedFailure(`${shown} cannot be scaled down by this command`, {
    why: `pods of zone ${zone.name} must prepare before the scale-down, and this command calls no pods`,
    todo: `in a native group, set replicas.count or replicas.mirror; in a drop-in group with its webhook, run: kubectl scale statefulset ${statefulSet} -n ${namespace} --replicas ${options.replicas}`,
  });
}

type Question = readonly [preview: string, from: number, group: string];

async function isConfirmed(context: CommandContext, options: ScaleOptions, [preview, from, group]: Question): Promise<boolean> {
  if (options.replicas === 0) return confirmByName(context, options, preview, group);
  return options.replicas > from || confirmByPrompt(context, options, preview);
}

function requestedScale(scale: KubernetesObject, to: number): KubernetesObject {
  const { apiVersion = 'autoscaling/v1', kind = 'Scale', metadata } = scale;
  return { apiVersion, kind, metadata, spec: { replicas: to } };
}

function writeScale(
  { env, timeoutMs }: Cluster,
  { resource, namespace, name }: ScaleTarget,
  { metadata }: KubernetesObject,
  { to, dryRun }: { readonly to: number; readonly dryRun: boolean },
): Promise<KubernetesObject> {
  const { uid = '', resourceVersion = '' } = metadata;
  const options = { patch: { spec: { replicas: to } }, subresource: 'scale', dryRun, site: 'act.scale', timeoutMs };
  return patchObject(env, resource, { namespace, name, uid, resourceVersion }, options);
}

/** Returns a reference to the scaled object. The Scale has the same name and UID. */
function scaledObject({ resource }: ScaleTarget, { metadata }: KubernetesObject): KubernetesObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
}
