// The verb scale: writes the replicas to the object that defines the replicas of the group, and shows which zones follow.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { apiVersionOf, type KubernetesObject } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { forecastScale } from '../../engine/plan/estimate.ts';
import { counted } from '../../policies/wording.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure, refusedFailure } from '../failure.ts';
import { type Members, readMembers, refuseWhenDenied, type ScaleTarget, scaleTarget } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { remainingStops } from '../live/remaining-stops.ts';
import type { RequestFlags } from '../live/submit-request.ts';
import { judgeForUser } from '../live/user-judgements.ts';
import { accessFor, confirmByName, confirmByPrompt, type PromptFlags, printObjects, recordReason } from '../live/write-options.ts';
import { forecastTexts } from '../output/scale.ts';

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
    const from = replicasIn(scale);
    const change = `${target.shown} of ${name} from ${from} to ${options.replicas}`;
    const { texts, isDecrease, isOpen } = previewOf(members, target, { from, to: options.replicas });
    const lines = texts.map((text) => `  ${text}\n`).join('');
    if (from === options.replicas) {
      context.stdout.write(`${target.shown} of ${name} already has ${counted(from, 'replica')}\n${isOpen ? lines : ''}`);
      return exitCodes.done;
    }
    const exceptions = await refuseDenied(cluster, members, target, { from, ...options });
    const concerns = (rule: string): boolean => rule === 'paused' || (rule === 'protected' && isDecrease);
    const notes = [...exceptions, ...remainingStops(members, { verb: 'scale', concerns })];
    // A dry run prints objects instead of the preview.
    await writeAgentNote(context, cluster, live, [...(options.dryRun === undefined ? [] : texts), ...notes]);
    if (options.dryRun === 'client') return printObjects(context, [requestedScale(scale, options.replicas)]);
    const isServerDryRun = options.dryRun === 'server';
    const question = [`This scales ${change}.\n${lines}`, isDecrease, members.target.group] as const;
    if (!isServerDryRun && !(await isConfirmed(context, options, question))) return exitCodes.refused;
    const written = await writeScale(cluster, target, scale, { to: options.replicas, dryRun: isServerDryRun });
    if (isServerDryRun) return printObjects(context, [written]);
    await recordReason(context, cluster, { reason: 'Scaled', action: 'Scale', note: options.reason, about: scaledObject(target, scale) });
    context.stdout.write(`scaled ${change}\n${lines}`);
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
async function refuseDenied(
  cluster: Cluster,
  { name, stored }: Members,
  { resource, namespace, name: statefulSet, zone, shown }: ScaleTarget,
  { from, ...options }: ScaleOptions & { readonly from: number },
): Promise<readonly string[]> {
  if (resource.kind !== 'StatefulSet') return [];
  const change = { from, to: options.replicas, via: 'scale', dryRun: options.dryRun !== undefined } as const;
  const { judgements, notes } = await judgeForUser(cluster, stored, [{ kind: 'scale', namespace, statefulSet, ...change }]);
  const exceptions = judgements.flatMap((judgement) => refuseWhenDenied(judgement, name));
  if (judgements.every(({ outcome }) => outcome !== 'prepare')) return [...exceptions, ...notes];
  throw refusedFailure(`${shown} cannot be scaled down by this command`, {
    why: `pods of zone ${zone.name} must prepare before the scale-down, and this command calls no pods`,
    todo: `if the webhook of drop-in groups runs, use: kubectl scale statefulset ${statefulSet} -n ${namespace} --replicas ${options.replicas}`,
  });
}

interface Preview {
  readonly texts: readonly string[];
  /** True if the request or a zone goes to a lower number. */
  readonly isDecrease: boolean;
  /** True if a zone changes its replicas or keeps another number than the requested one. */
  readonly isOpen: boolean;
}

/** Returns the changes of all zones after the request, as the engine decides them. */
function previewOf(
  { snapshot, target: { namespace, group: name } }: Members,
  { zone }: ScaleTarget,
  { from, to }: { readonly from: number; readonly to: number },
): Preview {
  const group = snapshot.groups.find((one) => one.namespace === namespace && one.name === name);
  if (group === undefined) return { texts: [], isDecrease: to < from, isOpen: false };
  const forecast = forecastScale(snapshot, group, zone.name, to);
  const { changes, facts } = forecast;
  const isDecrease = to < from || changes.some((change) => change.to < change.from);
  return { texts: forecastTexts(forecast, `${namespace}/${name}`), isDecrease, isOpen: changes.length + facts.length > 0 };
}

type Question = readonly [preview: string, isDecrease: boolean, group: string];

async function isConfirmed(context: CommandContext, options: ScaleOptions, [preview, isDecrease, group]: Question): Promise<boolean> {
  if (options.replicas === 0) return confirmByName(context, options, preview, group);
  return !isDecrease || confirmByPrompt(context, options, preview);
}

function requestedScale(scale: KubernetesObject, to: number): KubernetesObject {
  const { apiVersion = 'autoscaling/v1', kind = 'Scale', metadata } = scale;
  return { apiVersion, kind, metadata, spec: { replicas: to } };
}

/** The maximum number of attempts to write an object that other writers, such as the agent, update at the same time. */
const attempts = 4;

/** Writes the replicas. Tries again after a conflict if the object still has the replicas that the user saw; throws ApiFailure otherwise. */
async function writeScale(
  cluster: Cluster,
  target: ScaleTarget,
  seen: KubernetesObject,
  { to, dryRun }: { readonly to: number; readonly dryRun: boolean },
): Promise<KubernetesObject> {
  const { env, timeoutMs } = cluster;
  const { resource, namespace, name } = target;
  const options = { patch: { spec: { replicas: to } }, subresource: 'scale', dryRun, site: 'act.scale', timeoutMs };
  let { metadata } = seen;
  for (let attempt = 1; ; attempt += 1) {
    const { uid = '', resourceVersion = '' } = metadata;
    try {
      return await patchObject(env, resource, { namespace, name, uid, resourceVersion }, options);
    } catch (error) {
      if (!isStatus(error, 409) || attempt === attempts) throw error;
      const now = await readScale(cluster, target);
      const isSame = now.metadata.uid === uid && replicasIn(now) === replicasIn(seen);
      if (!isSame) throw error;
      metadata = now.metadata;
    }
  }
}

/** Returns the replicas of a Scale. The API server omits the field if it is zero. */
function replicasIn(scale: KubernetesObject): number {
  return Number(fieldAt(scale, ['spec', 'replicas']) ?? 0);
}

/** Returns a reference to the scaled object. The Scale has the same name and UID. */
function scaledObject({ resource }: ScaleTarget, { metadata }: KubernetesObject): KubernetesObject {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
}
