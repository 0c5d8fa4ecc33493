// The verb restart: changes an annotation of every pod template, so that the agent replaces all pods in the order of the group.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { patchObject } from '../../cluster/request/write.ts';
import { judge } from '../../engine/judge/judge.ts';
import { secondText } from '../../policies/instant.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { connectionFailure } from '../connection-failure.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { type Member, readMembers, refuseUnguarded, refuseWhenDenied } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { accessFor, confirmByPrompt, type DryRun, findZone, type PromptFlags, printObjects, recordReason } from '../live/write-options.ts';
import { plural } from '../output/text.ts';

export interface RestartOptions extends ConnectionFlags, PromptFlags {
  readonly group: string;
  readonly zone?: string;
  readonly reason?: string;
  readonly dryRun?: DryRun;
}

export function run(context: CommandContext, options: RestartOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const { name, live, members, snapshot } = await readMembers(cluster, options.group);
    const zone = findZone(live, options.zone);
    const meant = members.filter((member) => zone === undefined || member.zone === zone);
    for (const member of meant) {
      refuseUnguarded(member, `a restart of ${name}`);
      const { namespace, name: statefulSet } = member.view;
      refuseWhenDenied(judge(snapshot, { kind: 'restart', namespace, statefulSet, dryRun: options.dryRun !== undefined }), name);
    }
    const pods = meant.reduce((sum, { view }) => sum + view.replicas, 0);
    const what = `${plural(pods, 'pod')} of ${zone === undefined ? name : `${name} zone ${zone}`}`;
    const annotations = { 'kubectl.kubernetes.io/restartedAt': secondText(cluster.env.clock.nowMs()) };
    const patch: TemplatePatch = { spec: { template: { metadata: { annotations } } } };
    if (options.dryRun === 'client') {
      const patches = meant.map(({ object }) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: identityOf(object), ...patch }));
      printObjects(context, patches);
      return exitCodes.done;
    }
    if (options.dryRun === 'server') return printObjects(context, await restartAll(cluster, meant, patch, { name, isDryRun: true }));
    if (!(await confirmByPrompt(context, options, `This replaces ${what} in the order of the group.\n`))) return exitCodes.refused;
    for (const about of await restartAll(cluster, meant, patch, { name, isDryRun: false })) {
      await recordReason(context, cluster, { reason: 'Restarted', action: 'Restart', note: options.reason, about });
    }
    context.stdout.write(`${what} will be replaced in the order of the group\n`);
    await writeAgentNote(context, cluster, live);
    suggestNext(context, `status ${name}`, `get ${name} -w`);
    return exitCodes.done;
  });
}

/** Patches one member after another. Throws a Failure that names the members that were already patched. */
async function restartAll(
  cluster: Cluster,
  members: readonly Member[],
  patch: TemplatePatch,
  { name, isDryRun }: { readonly name: string; readonly isDryRun: boolean },
): Promise<readonly KubernetesObject[]> {
  const patched: KubernetesObject[] = [];
  for (const member of members) {
    try {
      patched.push(await restartOne(cluster, member, patch, isDryRun));
    } catch (error) {
      throw isDryRun ? error : withPatched(connectionFailure(error, cluster.server), patched, name);
    }
  }
  return patched;
}

/** Adds the members that were already patched to the failure. The agent rolls out these members in any case. */
function withPatched(failure: unknown, done: readonly KubernetesObject[], name: string): unknown {
  if (!(failure instanceof Failure) || done.length === 0) return failure;
  const { what, why, todo } = failure.details;
  const names = done.map((object) => object.metadata.name).join(', ');
  return new Failure({
    ...failure.details,
    what: `${name} was restarted only in part: ${what}`,
    why: `${names} ${done.length === 1 ? 'already has its' : 'already have their'} new template${why === undefined ? '' : `; then: ${why}`}`,
    todo: `${todo === undefined ? '' : `${todo}; then `}repeat the command. That is safe: restarted members are replaced once more, in the order of the group`,
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
        what: `StatefulSet ${namespace}/${name} was deleted and created again in the meantime`,
      });
    resourceVersion = now.metadata.resourceVersion ?? '';
    uid = now.metadata.uid;
  }
}
