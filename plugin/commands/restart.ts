// The verb restart: changes an annotation in the pod template of each member. The new templates start a run, which replaces all pods.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { patchObject, targetOf } from '../../cluster/request/write.ts';
import { blocksTemplate, templateStops } from '../../engine/decide/stops.ts';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { endsText, noWaveTexts, stopFact } from '../../engine/publish/status.ts';
import { secondText } from '../../policies/instant.ts';
import { counted } from '../../policies/wording.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, refusedFailure } from '../failure.ts';
import { type Member, type Members, readMembers, readUnchanged, refuseUnguarded, refuseWhenDenied, writeEach } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { stopsOfTemplates } from '../live/remaining-stops.ts';
import type { RequestFlags } from '../live/submit-request.ts';
import { inNoWave, planTemplates, planTexts, type TemplatePlan } from '../live/template-plan.ts';
import { judgeForUser } from '../live/user-judgements.ts';
import { accessFor, confirmByPrompt, findZone, type PromptFlags, printObjects, recordReason } from '../live/write-options.ts';
import { placeText } from '../output/text.ts';

export interface RestartOptions extends RequestFlags, PromptFlags {
  readonly zone?: string;
}

export function run(context: CommandContext, options: RestartOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const group = await readMembers(cluster, options.group);
    const { name, live, members } = group;
    const zone = findZone(live, options.zone);
    const meant = members.filter((member) => zone === undefined || member.zone === zone);
    const exceptions = await refuseDenied(cluster, group, meant, options);
    const annotations = { 'kubectl.kubernetes.io/restartedAt': secondText(cluster.env.clock.nowMs()) };
    const patch: TemplatePatch = { spec: { template: { metadata: { annotations } } } };
    const templates = new Map(meant.map(({ object }) => [object.metadata.name, withAnnotations(object, annotations)]));
    const planned = await planTemplates(cluster, group, templates);
    const what = replacedText(group, meant, { planned, zone });
    const lines = [...(planned?.lines ?? []), ...planTexts(planned)];
    const listing = lines.map((line) => `  ${line}\n`).join('');
    const restarted = meant.map((member) => member.zone);
    const stops = stopsOfTemplates(planned?.plan, group, { verb: 'restart', zones: restarted });
    // A dry run prints objects instead of the listing.
    const ofDryRun = options.dryRun === undefined ? [] : [[`this replaces ${what} in the order of the group`, ...lines].join('; ')];
    await writeAgentNote(context, cluster, live, [...new Set([...exceptions, ...ofDryRun, ...stops])]);
    if (options.dryRun === 'client') {
      const patches = meant.map(({ object }) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: identityOf(object), ...patch }));
      return printObjects(context, patches);
    }
    const isDryRun = options.dryRun === 'server';
    const restartAll = () =>
      writeEach(cluster, meant, (member) => restartOne(cluster, member, patch, isDryRun), {
        what: `${name} was restarted`,
        again: 'pods of restarted members may be replaced once more, in the order of the group',
        isDryRun,
      });
    if (isDryRun) return printObjects(context, await restartAll());
    if (!(await confirmByPrompt(context, options, `This replaces ${what} in the order of the group.\n${listing}`)))
      return exitCodes.refused;
    for (const about of await restartAll()) {
      await recordReason(context, cluster, { reason: 'Restarted', action: 'Restart', note: options.reason, about });
    }
    const when = stops.length === 0 ? '' : ' once nothing blocks it';
    context.stdout.write(`${what} will be replaced in the order of the group${when}\n${listing}`);
    suggestNext(context, `status ${name}`, `get ${name} -w`);
    return exitCodes.done;
  });
}

/**
 * Returns a note for each exception that permits the restart, and for rules that read an unknown user. Throws Failure if a rule denies the
 * restart, if the template is blocked, or if Kubernetes would replace the pods at once.
 */
async function refuseDenied(
  cluster: Cluster,
  { live, name, stored }: Members,
  meant: readonly Member[],
  { dryRun }: RestartOptions,
): Promise<readonly string[]> {
  for (const member of meant) refuseUnguarded(member, `a restart of ${name}`);
  const undo = `to restart the pods at the template before: kubectl rollout-group undo ${name}, then repeat the command`;
  // Without a definition, only the published decision knows the blocks.
  const [stop] = live.definition === undefined ? templateStops(live.decision.stops ?? []) : [];
  if (stop !== undefined && meant.some(({ zone }) => stop.zones.includes(zone)))
    throw refusedFailure(`a restart of ${name} would roll out a blocked template`, { why: stopFact(stop), todo: endsText(stop) });
  // As the webhook does, because a restart changes the template.
  const requests = meant.flatMap(({ view: { namespace, name: statefulSet, replicas, updateStrategy: strategy } }): AdmissionRequest[] => {
    const target = { namespace, statefulSet, dryRun: dryRun !== undefined };
    return [
      { kind: 'restart', ...target },
      { kind: 'update', ...target, from: replicas, to: replicas, isTemplateChanged: true, strategy, via: 'patch' },
    ];
  });
  const { judgements, notes } = await judgeForUser(cluster, stored, requests);
  const permitted = judgements.flatMap((judgement) =>
    refuseWhenDenied(judgement, name, (leading) => (blocksTemplate(leading) ? [undo] : [])),
  );
  return [...permitted, ...notes];
}

/** Returns the pods that the plan replaces: `6 pods of shop/cache`. Throws Failure if no wave includes a pod to restart. */
function replacedText(
  { name }: Members,
  meant: readonly Member[],
  { planned, zone }: { readonly planned: TemplatePlan | undefined; readonly zone: string | undefined },
): string {
  const restarted = meant.reduce((sum, one) => sum + Math.max(0, one.view.replicas - inNoWave(planned, one.zone)), 0);
  if (restarted === 0) refuseWithoutEffect(name, planned);
  const others = [...(planned?.others.values() ?? [])].reduce((sum, pods) => sum + pods, 0);
  return `${counted(restarted + others, 'pod')} of ${others === 0 ? placeText(name, zone) : name}`;
}

/** Throws Failure if no wave includes a pod to restart. */
function refuseWithoutEffect(name: string, planned: TemplatePlan | undefined): void {
  const why = noWaveTexts(planned?.plan.zones ?? []);
  if (why.length === 0) return;
  const todo = `add the zone to a wave of RolloutGroup ${name} (spec.rollout.waves), then repeat the command`;
  throw refusedFailure(`restart would have no effect on ${name}: it would replace no pod`, { why: why.join('; '), todo });
}

/** Returns the pod template of a StatefulSet with these annotations. */
function withAnnotations(object: KubernetesObject, annotations: object): object {
  const template = templateOf(object);
  const { metadata } = template;
  return { ...template, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } } };
}

function templateOf({ spec }: KubernetesObject) {
  return Object(Object(spec).template);
}

interface TemplatePatch {
  readonly spec: object;
}

function identityOf({ metadata: { name, namespace, uid, resourceVersion } }: KubernetesObject): KubernetesObject['metadata'] {
  return { name, ...(namespace && { namespace }), ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
}

/** The maximum number of attempts to patch a StatefulSet that other writers, such as its controller, update at the same time. */
const attempts = 4;

async function restartOne(cluster: Cluster, member: Member, patch: TemplatePatch, dryRun: boolean): Promise<KubernetesObject> {
  const { env, timeoutMs } = cluster;
  let { object } = member;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const options = { patch: { ...patch }, dryRun, site: 'act.restartMember', timeoutMs };
      return await patchObject(env, resources.statefulSets, targetOf(object), options);
    } catch (error) {
      if (!isStatus(error, 409) || attempt === attempts) throw error;
    }
    object = await readUnchanged(cluster, member);
  }
}
