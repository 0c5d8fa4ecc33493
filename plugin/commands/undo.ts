// The verb undo: all members get the template of before, which the group then rolls in its own order, and what is taken back is held.
import { ApiFailure, isStatus, TransportFailure } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { type JsonPatchOperation, patchByOperations } from '../../cluster/request/write.ts';
import { hashText } from '../../engine/hash.ts';
import { judge } from '../../engine/judge/judge.ts';
import { changeAnnotations } from '../../engine/publish/run-record.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { accessFor, printObjects, zoneNamed } from '../live/acting.ts';
import type { AskFlags } from '../live/asking.ts';
import { isMeant, isMeantByName, type PromptFlags } from '../live/confirm.ts';
import { applyIntent, deleteIntent, undosOf } from '../live/intents.ts';
import { notInstalled, rolloutIntents } from '../live/kinds.ts';
import { type Member, readMembers, refuseUnguarded, refuseWhenDenied } from '../live/members.ts';
import { type Back, type Revision, readRevisions, revisionMeant } from '../live/revisions.ts';
import { readRuns } from '../live/runs.ts';
import { type GroupName, groupNamed, nameOf } from '../live/target.ts';
import { shortRevision } from '../output/group-words.ts';
import { plural } from '../output/words.ts';

export interface UndoOptions extends AskFlags, PromptFlags, Back {
  readonly zone?: string;
}

/** A member that goes back. */
interface Going {
  readonly member: Member;
  readonly to: Revision;
}

export function run(context: CommandContext, options: UndoOptions): Promise<ExitCode> {
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const target = groupNamed(options.group, cluster);
    const name = nameOf(target);
    const { live, members, snapshot } = await readMembers(cluster, target);
    const undos = isUnknown(snapshot.intents)
      ? []
      : snapshot.intents.filter(
          (intent) => intent.action === 'undo' && intent.group === target.group && intent.namespace === target.namespace,
        );
    const zone = zoneNamed(live, options.zone);
    const meant = members.filter((member) => zone === undefined || member.zone === zone);
    const revisions = await readRevisions(cluster, target.namespace, meant);
    const { runs } = options.toCommit === undefined ? { runs: [] } : await readRuns(cluster, target);
    const run = live.from === 'agent' ? live.decision.run : undefined;
    const going = meant
      .map((member): Going => ({ member, to: revisionMeant(member, revisions.get(member.zone) ?? [], options, { run, runs, undos }) }))
      .filter(({ member, to }) => member.view.status.updateRevision !== to.name);
    if (going.length === 0) {
      context.stdout.write(`${name} asks for that revision already; nothing was undone\n`);
      return exitCodes.done;
    }
    for (const { member } of going) {
      refuseUnguarded(member, `going back with ${name}`);
      const { namespace, name: statefulSet, replicas, updateStrategy: strategy } = member.view;
      const size = { from: replicas, to: replicas };
      const request = {
        kind: 'update',
        namespace,
        statefulSet,
        ...size,
        isTemplateChanged: true,
        strategy,
        via: 'patch',
        dryRun: false,
      } as const;
      refuseWhenDenied(judge(snapshot, request), name);
    }
    const intent = undoIntent(target, going, options.reason);
    if (options.dryRun === 'client') {
      printObjects(context, [intent, ...going.map(restored)]);
      return exitCodes.done;
    }
    const preview = previewText(name, going);
    if (options.dryRun === undefined) {
      const isFar = options.toRevision !== undefined || options.toCommit !== undefined;
      if (!(await (isFar ? isMeantByName(context, options, preview, target.group) : isMeant(context, options, preview))))
        return exitCodes.refused;
    }
    const isDryRun = options.dryRun === 'server';
    const held = await applyIntent(cluster, intent, isDryRun).catch((error: unknown) => {
      throw isStatus(error, 404) ? notInstalled(rolloutIntents, 'nothing was undone') : error;
    });
    // What is gone back to is not held any more, whoever took it back before.
    for (const undo of isDryRun
      ? []
      : await undosOf(
          cluster,
          target,
          going.map(({ member, to }) => ({ zone: member.zone, revision: to.name })),
        ))
      await deleteIntent(cluster, undo);
    const patched = await writeAll(cluster, going, name, options.reason, isDryRun);
    if (isDryRun) {
      printObjects(context, [held, ...patched]);
      return exitCodes.done;
    }
    context.stdout.write(preview);
    context.stdout.write(gitText(going, name, intent.metadata.name));
    suggestNext(context, `status ${name}`, `explain ${name}`);
    return exitCodes.done;
  });
}

/** It names the revisions that are taken back: whoever asks for them again is held until it is cancelled. */
function undoIntent({ namespace, group }: GroupName, going: readonly Going[], reason: string | undefined): KubernetesObject {
  const undone = going.map(({ member, to }) => ({ zone: member.zone, revision: member.view.status.updateRevision, to: to.name }));
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    metadata: { name: `undo.${group.slice(0, 200)}.${hashText(JSON.stringify(undone)).slice(0, 10)}`, namespace },
    spec: { group, action: 'undo', undone, ...(reason === undefined ? {} : { reason }) },
  };
}

function restored({ member: { object }, to }: Going): KubernetesObject {
  const { name, namespace, uid } = object.metadata;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, ...(namespace && { namespace }), ...(uid && { uid }) },
    spec: { template: to.template },
  };
}

function previewText(name: string, going: readonly Going[]): string {
  const lines = going.map(({ member: { zone, view }, to }) => {
    const short = (revision: string): string => shortRevision(revision, view.name);
    return `  ${zone}: ${short(view.status.updateRevision)} -> ${short(to.name)} (revision ${to.number})\n`;
  });
  const pods = going.reduce((sum, { member }) => sum + member.view.replicas, 0);
  return `${name} goes back, of ${plural(pods, 'pod')} those that are not there already, in the order of the group:\n${lines.join('')}`;
}

/** Git does not know: what it asks for again is held, and nobody should have to find out why. */
function gitText(going: readonly Going[], name: string, intent: string): string {
  const commit = going.map(({ member }) => member.view.annotations[changeAnnotations.commit]).find((one) => one !== undefined);
  const revert = commit === undefined ? '' : `: git revert ${commit}`;
  return [
    `  manifests in Git still ask for what was taken back${revert}\n`,
    `  until they ask for something else it is held; to let it pass: kubectl rollout-group cancel ${name} ${intent}\n`,
  ].join('');
}

async function writeAll(
  cluster: Cluster,
  going: readonly Going[],
  name: string,
  reason: string | undefined,
  isDryRun: boolean,
): Promise<readonly KubernetesObject[]> {
  const done: KubernetesObject[] = [];
  for (const one of going) {
    try {
      done.push(await writeOne(cluster, one, reason, isDryRun));
    } catch (error) {
      if (isDryRun || done.length === 0 || !(error instanceof ApiFailure || error instanceof TransportFailure)) throw error;
      throw new Failure({
        exitCode: exitCodes.failed,
        what: `only a part of ${name} goes back: ${done.map((object) => object.metadata.name).join(', ')}`,
        why: error.message,
        todo: 'repeat the command, which is safe: nothing of what was taken back is rolled meanwhile',
      });
    }
  }
  return done;
}

/** Only if its spec is what it was judged by; who wrote its status meanwhile does not matter. */
function writeOne(
  { env, timeoutMs }: Cluster,
  { member: { object, view }, to }: Going,
  reason: string | undefined,
  dryRun: boolean,
): Promise<KubernetesObject> {
  const { namespace, name, uid, generation } = view;
  const cause = `undo to revision ${to.number}${reason === undefined ? '' : `: ${reason}`}`.slice(0, 512);
  const pathOf = (key: string): string => `/metadata/annotations/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  // They say where the template came from that goes.
  const stale = [changeAnnotations.commit, changeAnnotations.planDigest].filter((key) => view.annotations[key] !== undefined);
  const operations: readonly JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/generation', value: generation },
    { op: 'replace', path: '/spec/template', value: to.template },
    ...(object.metadata['annotations'] === undefined ? [{ op: 'add', path: '/metadata/annotations', value: {} } as const] : []),
    ...stale.map((key) => ({ op: 'remove', path: pathOf(key) }) as const),
    { op: 'add', path: pathOf(changeAnnotations.cause), value: cause },
  ];
  return patchByOperations(
    env,
    resources.statefulSets,
    { namespace, name, uid },
    { operations, dryRun, site: 'act.undoMember', timeoutMs },
  );
}
