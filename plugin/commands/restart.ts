// The verb restart: changes an annotation in the pod template of each member. The new templates start a run, which replaces all pods.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { judgeTogether } from '../../engine/judge/judge.ts';
import { secondText } from '../../policies/instant.ts';
import { counted } from '../../policies/wording.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { type Member, readMembers, refuseUnguarded, refuseWhenDenied, writeEach } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { remainingStops } from '../live/remaining-stops.ts';
import type { RequestFlags } from '../live/submit-request.ts';
import { accessFor, confirmByPrompt, findZone, type PromptFlags, printObjects, recordReason } from '../live/write-options.ts';
import { placeText } from '../output/text.ts';

export interface RestartOptions extends RequestFlags, PromptFlags {
  readonly zone?: string;
}

export function run(context: CommandContext, options: RestartOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const { name, live, members, snapshot } = await readMembers(cluster, options.group);
    const zone = findZone(live, options.zone);
    const meant = members.filter((member) => zone === undefined || member.zone === zone);
    for (const member of meant) refuseUnguarded(member, `a restart of ${name}`);
    const judgements = judgeTogether(
      snapshot,
      meant.map(({ view }) => ({
        kind: 'restart',
        namespace: view.namespace,
        statefulSet: view.name,
        dryRun: options.dryRun !== undefined,
      })),
    );
    const exceptions = judgements.flatMap((judgement) => refuseWhenDenied(judgement, name));
    const pods = meant.reduce((sum, { view }) => sum + view.replicas, 0);
    const what = `${counted(pods, 'pod')} of ${placeText(name, zone)}`;
    const annotations = { 'kubectl.kubernetes.io/restartedAt': secondText(cluster.env.clock.nowMs()) };
    const patch: TemplatePatch = { spec: { template: { metadata: { annotations } } } };
    const restarted = meant.map((member) => member.zone);
    const stops = await remainingStops(cluster, { live, snapshot }, { verb: 'restart', restarted });
    const writeAllNotes = () => writeAgentNote(context, cluster, live, [...new Set([...exceptions, ...stops])]);
    if (options.dryRun !== undefined) await writeAllNotes();
    if (options.dryRun === 'client') {
      const patches = meant.map(({ object }) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: identityOf(object), ...patch }));
      printObjects(context, patches);
      return exitCodes.done;
    }
    const isDryRun = options.dryRun === 'server';
    const restartAll = () =>
      writeEach(cluster, meant, (member) => restartOne(cluster, member, patch, isDryRun), {
        what: `${name} was restarted`,
        again: 'pods of restarted members may be replaced once more, in the order of the group',
        isDryRun,
      });
    if (isDryRun) return printObjects(context, await restartAll());
    if (!(await confirmByPrompt(context, options, `This replaces ${what} in the order of the group.\n`))) return exitCodes.refused;
    for (const about of await restartAll()) {
      await recordReason(context, cluster, { reason: 'Restarted', action: 'Restart', note: options.reason, about });
    }
    context.stdout.write(`${what} will be replaced in the order of the group${stops.length === 0 ? '' : ' once nothing blocks it'}\n`);
    await writeAllNotes();
    suggestNext(context, `status ${name}`, `get ${name} -w`);
    return exitCodes.done;
  });
}

interface TemplatePatch {
  readonly spec: object;
}

function identityOf({ metadata: { name, namespace, uid, resourceVersion } }: KubernetesObject): KubernetesObject['metadata'] {
  return { name, ...(namespace && { namespace }), ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
}

/** The maximum number of attempts to patch a StatefulSet that other writers, such as its controller, update at the same time. */
const attempts = 4;

async function restartOne(
  { env, timeoutMs }: Cluster,
  { object }: Member,
  patch: TemplatePatch,
  dryRun: boolean,
): Promise<KubernetesObject> {
  let { uid = '', resourceVersion = '' } = object.metadata;
  const { namespace = '', name } = object.metadata;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const target = { namespace, name, uid, resourceVersion };
      return await patchObject(env, resources.statefulSets, target, { patch: { ...patch }, dryRun, site: 'act.restartMember', timeoutMs });
    } catch (error) {
      if (!isStatus(error, 409) || attempt === attempts) throw error;
    }
    const now = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'act.readMember', timeoutMs });
    // A new StatefulSet with this name was not part of the judgement.
    if (now === undefined || now.metadata.uid !== uid)
      throw new Failure({
        exitCode: exitCodes.stale,
        what: `StatefulSet ${namespace}/${name} was deleted, and perhaps created again, in the meantime`,
      });
    resourceVersion = now.metadata.resourceVersion ?? '';
    uid = now.metadata.uid;
  }
}
