// The verb undo: writes an earlier pod template to the members, and blocks the undone revision. The agent then rolls out zone by zone.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { type JsonPatchOperation, patchByOperations } from '../../cluster/request/write.ts';
import { intentsOf } from '../../engine/context.ts';
import type { AdmissionRequest } from '../../engine/decision.ts';
import { fieldDiff, type ObjectContent } from '../../engine/diff/field-diff.ts';
import { differInRestartAlone, restartOf } from '../../engine/judge/restart.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { type NextRun, revisionsBeforeTemplates, runAfterRevisions } from '../../engine/plan/controller.ts';
import { goesBack, runOfPublished } from '../../engine/publish/status.ts';
import { changeAnnotations } from '../../engine/run/origin.ts';
import { undoRequest } from '../../engine/run/requests.ts';
import { type IntentView, isUnknown, type Known, ledgerOf, type Snapshot } from '../../engine/snapshot.ts';
import { intentObject, readIntent } from '../../policies/live/intents.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted, firstOf, listed } from '../../policies/wording.ts';
import { ifNotInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, type FailureDetails, usageFailure } from '../failure.ts';
import type { LiveGroup } from '../live/groups.ts';
import {
  chooseRevision,
  type Revision,
  type RunRecord,
  readRevisions,
  readRuns,
  returnTexts,
  rolledText,
  type UndoTarget,
} from '../live/history.ts';
import { applyStop, deleteIntents } from '../live/intents.ts';
import { type Member, type Members, readMembers, readUnchanged, refuseUnguarded, refuseWhenDenied, writeEach } from '../live/members.ts';
import { writeAgentNote } from '../live/notes.ts';
import { stopsOfTemplates } from '../live/remaining-stops.ts';
import { mismatchFailure, newDifferences } from '../live/revision-choice.ts';
import { type RequestFlags, storedText } from '../live/submit-request.ts';
import { type GroupName, nameOf } from '../live/target.ts';
import { inNoWave, planTemplates, planTexts, type TemplatePlan } from '../live/template-plan.ts';
import { judgeForUser } from '../live/user-judgements.ts';
import { accessFor, confirmAlways, confirmByPrompt, findZone, type PromptFlags, printObjects } from '../live/write-options.ts';
import { stopAndEndText } from '../output/plan/plan-text.ts';
import { templateManager } from '../source/cluster/managed-fields.ts';
import { handOver } from '../source/cluster/server-apply.ts';

export interface UndoOptions extends RequestFlags, PromptFlags, UndoTarget {
  readonly zone?: string;
}

interface MemberUndo {
  readonly member: Member;
  readonly to: Revision;
  /** The newest recorded run to this revision, if it failed. Absent unless a run or commit was named. */
  readonly failed?: RunRecord;
}

export async function run(context: CommandContext, options: UndoOptions): Promise<ExitCode> {
  const flags = revisionFlags(options);
  if (flags.length > 1) throw usageFailure(`${listed(flags, 'and')} exclude each other`, 'name one of them');
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const members = await readMembers(cluster, options.group);
    const { target, name } = members;
    const earlier = intentsOf(members.snapshot, { namespace: target.namespace, name: target.group });
    const undos = await chooseUndos(cluster, members, options, earlier);
    if (undos.length === 0) {
      context.stdout.write(nothingText(name, members.live, context.nowMs()));
      return exitCodes.done;
    }
    const intent = undoIntent(target, undos, options.reason ?? earlierReason(earlier, undos));
    const requests = requestsAfter(members, { intent, undos }, context.nowMs());
    const exceptions = await refuseDenied(cluster, members, undos, requests);
    const restarted = undos.map(({ member }) => member.zone);
    const templates = new Map(undos.map(({ member, to }) => [member.view.name, to.template]));
    const planned = await planTemplates(cluster, members, templates, requests);
    const stops = stopsOfTemplates(planned?.plan, members, { verb: 'undo', zones: restarted });
    const next = nextRun(members, undos, requests);
    const ended = isUnknown(earlier) ? [] : earlier.filter((one) => isReplaced(one, undos));
    const endings = ended.map((one) => `deletes RolloutIntent ${one.name}: ${storedText(one)}`);
    const effects = [...failedTexts(undos), ...planTexts(planned), ...endings, ...continuedTexts(name, next), ...keptTexts(name, undos)];
    const { what, lines } = returnOf(members, undos, { planned, next });
    // A dry run prints objects instead of the preview.
    const ofPreview = options.dryRun === undefined ? [] : [`${what}: ${lines.join('; ')}`, ...effects];
    await writeAgentNote(context, cluster, members.live, [...new Set([...exceptions, ...stops, ...ofPreview])]);
    if (options.dryRun === 'client') return printObjects(context, [intent, ...undos.map(restoredObject)]);
    const preview = `${what}:\n${[...lines, ...effects].map((text) => `  ${text}\n`).join('')}`;
    if (options.dryRun === undefined && !(await isConfirmed(context, options, preview))) return exitCodes.refused;
    const written = await write(cluster, target, { intent, undos }, options);
    if (options.dryRun === 'server') return printObjects(context, written);
    context.stdout.write(preview);
    context.stdout.write(gitText(undos, name, written[0]?.metadata.name ?? intent.metadata.name));
    suggestNext(context, `status ${name}`, `explain ${name}`);
    return exitCodes.done;
  });
}

/** Returns why nothing is left to undo: the failed run is itself a return, or the update revision is already the requested revision. */
function nothingText(name: string, { decision }: LiveGroup, nowMs: number): string {
  const { run, stops = [] } = decision;
  const failed = run !== undefined && goesBack(run) ? stops.find(({ rule }) => rule === 'run-failed') : undefined;
  if (failed !== undefined)
    return `run ${run?.id} of ${name} ${run?.kind === 'rollback' ? 'is already a rollback' : 'already returns to the earlier revisions'}; nothing was undone\n  ${stopAndEndText(failed, nowMs)}\n`;
  const undo = `kubectl rollout-group undo ${name} --to-run RUN, with a run of kubectl rollout-group history ${name}`;
  return `the update revision of ${name} is already the requested or previous revision; nothing was undone\n  to return to the revisions of an earlier run: ${undo}\n`;
}

/** Returns the members of the chosen zones whose update revision differs from the requested revision. */
async function chooseUndos(
  cluster: Cluster,
  group: Members,
  options: UndoOptions,
  earlier: Known<readonly IntentView[]>,
): Promise<readonly MemberUndo[]> {
  const { target, live, members } = group;
  const zone = findZone(live, options.zone);
  const meant = members.filter((member) => zone === undefined || member.zone === zone);
  members.forEach(refuseUnobserved);
  const needsRuns = options.toCommit !== undefined || options.toRun !== undefined;
  const { runs } = needsRuns ? await readRuns(cluster, target) : { runs: [] };
  const zones = members.map(({ zone: name, view }) => ({ name, statefulSet: view.name }));
  // Without a run in the ledger, for example if the ledger cannot be read, the published run counts.
  const published = live.from === 'agent' && live.decision.run !== undefined ? runOfPublished(live.decision.run) : undefined;
  const { run = published } = ledgerOf(group.snapshot, { namespace: target.namespace, name: target.group });
  const revisions = await readRevisions(cluster, group, meant);
  const before = revisionsBeforeTemplates(group.snapshot, { namespace: target.namespace, zones }, run);
  const undos = isUnknown(earlier) ? [] : earlier.filter(({ action }) => action === 'undo');
  const chosen = meant.map((member) => {
    const choice = chooseRevision(member, revisions.get(member.zone) ?? [], options, { before, runs, undos, run });
    const latest = runs.find((one) => one.zones.some(({ zone, toRevision }) => zone === member.zone && toRevision === choice.to.name));
    return { member, ...choice, ...defined({ failed: latest?.outcome === 'failed' ? latest : undefined }) };
  });
  if (chosen.some(({ isCounted }) => isCounted)) await refuseOtherTemplates(cluster, target, { chosen, revisions });
  return chosen.filter(({ member, to }) => member.view.status.updateRevision !== to.name);
}

/** Throws Failure if the present template may have no revision yet. Then the status still names the revision of the previous template. */
function refuseUnobserved({ zone, view: { namespace, name, generation, status } }: Member): void {
  if (status.observedGeneration >= generation) return;
  throw new Failure({
    exitCode: exitCodes.stale,
    what: `the revision of StatefulSet ${namespace}/${name} of zone ${zone} is unknown; nothing was undone`,
    why: 'its controller has not observed the last change',
    todo: 'repeat the command in a moment',
  });
}

/** Throws Failure if the revisions are not one template. Only then reads the runs, to name those that rolled out one of the templates. */
async function refuseOtherTemplates(
  cluster: Cluster,
  target: GroupName,
  { chosen, revisions }: { readonly chosen: readonly MemberUndo[]; readonly revisions: ReadonlyMap<string, readonly Revision[]> },
): Promise<void> {
  const fields = newDifferences(target, chosen);
  if (fields.length === 0) return;
  const { runs } = await readRuns(cluster, target).catch(() => ({ runs: [] }));
  throw mismatchFailure(target, { returns: chosen, fields, runs: runs.filter(({ kind }) => kind !== 'scale'), kept: revisions });
}

/**
 * Returns the exceptions that permit the new templates. Throws Failure if a rule denies a template, or if the definition of the group is
 * unknown and Kubernetes would replace the pods at once.
 */
async function refuseDenied(
  cluster: Cluster,
  { stored, live, name }: Members,
  undos: readonly MemberUndo[],
  intents: Snapshot['intents'],
): Promise<readonly string[]> {
  const requests = undos.flatMap(({ member, to }): readonly AdmissionRequest[] => {
    if (live.definition === undefined) refuseUnguarded(member, `a rollback of ${name}`);
    const { namespace, name: statefulSet, replicas, updateStrategy: strategy } = member.view;
    const target = { namespace, statefulSet, dryRun: false };
    const restart = restartOf(to.template, fieldAt(member.object['spec'], ['template']));
    return [
      { kind: 'update', ...target, from: replicas, to: replicas, isTemplateChanged: true, strategy, via: 'patch' },
      ...(restart === undefined ? [] : [{ kind: 'restart', ...target, ...restart } as const]),
    ];
  });
  const { judgements, notes } = await judgeForUser(cluster, { ...stored, intents }, requests);
  return [...judgements.flatMap((judgement) => refuseWhenDenied(judgement, name)), ...notes];
}

/** Returns the given flags that choose a revision. */
function revisionFlags({ toRevision, toRun, toCommit }: UndoTarget): readonly string[] {
  return Object.keys(defined({ '--to-revision': toRevision, '--to-run': toRun, '--to-commit': toCommit }));
}

function isConfirmed(context: CommandContext, options: UndoOptions, preview: string): Promise<boolean> {
  const isChosenByName = revisionFlags(options).length > 0;
  return (isChosenByName ? confirmAlways : confirmByPrompt)(context, options, preview);
}

/**
 * Writes the templates in a server dry run, then writes the intent and the templates. Returns the written objects. If a webhook does not
 * answer, writes only the intent, which needs no webhook and stops the rollout, and throws the Failure.
 */
async function write(
  cluster: Cluster,
  target: GroupName,
  { intent, undos }: { readonly intent: KubernetesObject; readonly undos: readonly MemberUndo[] },
  { dryRun }: UndoOptions,
): Promise<readonly KubernetesObject[]> {
  const isDryRun = dryRun === 'server';
  const name = nameOf(target);
  const again = 'the undone revision stays blocked meanwhile';
  // The dry run covers each write, so a missing permission leaves no intent that blocks the group.
  const stop = () => applyStop(cluster, intent, isDryRun).catch(ifNotInstalled(rolloutIntents, 'nothing was undone'));
  const writeAll = (isTry: boolean, begun?: string) => {
    const texts = { what: `${name} was undone`, again, isDryRun: isTry, begun };
    return writeEach(cluster, undos, (one) => writeMember(cluster, target, one, isTry), texts);
  };
  const tried = await writeAll(true).catch(async (error: unknown) => {
    const { details } = error instanceof Failure ? error : {};
    if (isDryRun || details?.webhook === undefined) throw error;
    await stop();
    throw new Failure(partialUndo(details, name, undos));
  });
  const written = await stop();
  const request = written.metadata.name;
  const begun = `the request ${request} is written and blocks the undone revision; to allow this revision again: kubectl rollout-group cancel ${name} ${request}`;
  return [written, ...(isDryRun ? tried : await writeAll(false, begun))];
}

/** Reports whether an earlier undo blocks a revision that this undo restores. Such an undo is deleted. */
function isReplaced({ action, undone = [] }: IntentView, undos: readonly MemberUndo[]): boolean {
  return (
    action === 'undo' && undone.some(({ zone, revision }) => undos.some(({ member, to }) => member.zone === zone && to.name === revision))
  );
}

/** Returns the requests that exist after the undo. The webhook judges the templates with these requests. */
function requestsAfter(
  { snapshot }: Members,
  { intent, undos }: { readonly intent: KubernetesObject; readonly undos: readonly MemberUndo[] },
  atMs: number,
): Snapshot['intents'] {
  const { intents } = snapshot;
  const written = readIntent(intent);
  if (isUnknown(intents) || isUnknown(written)) return intents;
  const isWritten = ({ namespace, name }: IntentView): boolean => namespace === written.namespace && name === written.name;
  const kept = intents.filter((one) => !isWritten(one) && !isReplaced(one, undos));
  return [...kept, { ...written, requestedBy: { user: 'you', groups: [], atMs } }];
}

/** Returns the failure of an undo whose request is written, while a webhook that does not answer prevents the change of the templates. */
function partialUndo({ what, todo, ...details }: FailureDetails, name: string, undos: readonly MemberUndo[]): FailureDetails {
  const names = listed(
    undos.map(({ member }) => member.view.name),
    'and',
  );
  const [them, have] = undos.length === 1 ? ['it', 'has'] : ['they', 'have'];
  return {
    ...details,
    what: `${name} was undone only in part: ${what}`,
    why: `the request is written, so the agent replaces no further pod of ${names}; ${them} still ${have} the undone template, and updated pods keep it`,
    todo: [todo, 'then repeat the command'].filter((part) => part !== undefined).join('; '),
  };
}

/** Returns the intent that blocks the undone revisions until it is cancelled. */
function undoIntent(target: GroupName, undos: readonly MemberUndo[], reason: string | undefined): KubernetesObject {
  const undone = undos.map(({ member, to }) => ({ zone: member.zone, revision: member.view.status.updateRevision, to: to.name }));
  return intentObject(target, { action: 'undo', undone, ...defined({ reason }) }, JSON.stringify(undone));
}

/** Returns the reason of an earlier undo of these revisions, so that the repeated undo does not remove it. */
function earlierReason(intents: Known<readonly IntentView[]>, undos: readonly MemberUndo[]): string | undefined {
  const requests = undos.map(({ member }) => undoRequest({ intents }, member.zone, member.view.status.updateRevision));
  return requests.find((one) => one?.reason !== undefined)?.reason;
}

function restoredObject({ member: { object }, to }: MemberUndo): KubernetesObject {
  const { name, namespace, uid } = object.metadata;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, ...(namespace && { namespace }), ...(uid && { uid }) },
    spec: { template: to.template },
  };
}

function nextRun({ snapshot, live: { definition } }: Members, undos: readonly MemberUndo[], intents: Snapshot['intents']): NextRun {
  const revisions = new Map(undos.map(({ member, to }) => [member.view.name, to.name]));
  return definition === undefined
    ? { run: undefined, others: [], returning: [] }
    : runAfterRevisions({ ...snapshot, intents }, definition, revisions);
}

/** Returns the first sentence of the preview, and a line for each member. */
function returnOf(
  { name, snapshot, members }: Members,
  undos: readonly MemberUndo[],
  { planned, next }: { readonly planned: TemplatePlan | undefined; readonly next: NextRun },
): { readonly what: string; readonly lines: readonly string[] } {
  // A failed run replaces no pod.
  const stayingIn = (zone: string): number => (next.run?.outcome === 'failed' ? Number.POSITIVE_INFINITY : inNoWave(planned, zone));
  const others = members.filter(({ zone }) => next.returning.includes(zone));
  const returns = [
    ...undos.map(({ member: { zone, view: set }, to }) => ({ zone, set, to: to.name, revision: to, inNoWave: stayingIn(zone) })),
    ...others.map(({ zone, view: set }) => {
      // During a rollback, the pods of another zone return although its template is not changed.
      return { zone, set, to: next.run?.target[zone] ?? set.status.updateRevision, inNoWave: stayingIn(zone) };
    }),
  ];
  const placeOf = (name: string): number => members.findIndex(({ zone }) => zone === name);
  const inOrder = returns.toSorted((a, b) => placeOf(a.zone) - placeOf(b.zone));
  const { lines, count } = returnTexts(snapshot, inOrder);
  const isExposed = planned?.plan.risks.some(({ code }) => code === 'RG5012') === true;
  const none = isExposed ? 'the agent replaces no pod' : 'no pod is replaced';
  const replaced = count === 0 ? none : `${counted(count, 'pod')} ${count === 1 ? 'is' : 'are'} replaced in the order of the group`;
  return { what: `${name} returns to an earlier revision; ${replaced}`, lines };
}

/** Returns the failures of the runs that rolled the restored revisions out last. */
function failedTexts(undos: readonly MemberUndo[]): readonly string[] {
  const texts = undos.flatMap(({ failed }) =>
    failed === undefined ? [] : [`run ${failed.id} to this revision failed: ${failed.failure}`],
  );
  return [...new Set(texts)];
}

/** Returns what the other zones do, whose pods are outdated and do not return. */
function continuedTexts(name: string, next: NextRun): string[] {
  const { run, others } = next;
  if (others.length === 0) return [];
  const all = `To undo all zones: kubectl rollout-group undo ${name}`;
  if (run?.outcome === 'failed')
    return [`the agent replaces no pod while zones have the template of the failed run: ${listed(others, 'and')}. ${all}`];
  return [`${rolledText(next, { still: 'still ' })}. ${all}`];
}

/**
 * Returns the warning that a later apply of the manifests with the undone change can leave fields that this undo restores. The
 * result is another revision, which the undo does not block. Server-side apply removes these fields, because its manager owns them after the
 * undo.
 */
function keptTexts(name: string, undos: readonly MemberUndo[]): readonly string[] {
  const fields = undos
    .filter(({ member }) => templateManager(member.object) === undefined)
    .flatMap((undo) => fieldDiff(templateOf(undo.member.object), templateOf(restoredObject(undo))))
    .flatMap(({ operation, path }) => (operation === 'add' ? [path] : []));
  if (fields.length === 0) return [];
  const paths = firstOf([...new Set(fields)], 3);
  return [
    `a later apply of the manifests with the undone change can leave ${paths} in the template. That makes another revision, which is not blocked. To block it: kubectl rollout-group pause ${name}`,
  ];
}

function templateOf({ spec }: KubernetesObject): ObjectContent {
  return { kind: 'StatefulSet', spec: { template: fieldAt(spec, ['template']) } };
}

/** Returns the warning that manifests in Git still contain the undone change, and the command that allows the undone revision again. */
function gitText(undos: readonly MemberUndo[], name: string, intent: string): string {
  const commit = undos.map(({ member }) => member.view.annotations[changeAnnotations.commit]).find((one) => one !== undefined);
  const revert = commit === undefined ? '' : `. Run: git revert ${commit}`;
  const templateIn = ({ member }: MemberUndo): unknown => fieldAt(member.object['spec'], ['template']);
  const isRestart = undos.every((one) => differInRestartAlone(one.to.template, templateIn(one)));
  return [
    ...(isRestart ? [] : [`  manifests in Git still contain the undone change${revert}\n`]),
    `  the agent blocks the undone revision until this request is cancelled: kubectl rollout-group cancel ${name} ${intent}\n`,
  ].join('');
}

/** Deletes earlier undos of the restored revision, then replaces the template if the spec is unchanged since the judgement. */
async function writeMember(cluster: Cluster, group: GroupName, one: MemberUndo, dryRun: boolean): Promise<KubernetesObject> {
  const { env, timeoutMs } = cluster;
  const { member, to } = one;
  const { object, view } = member;
  await deleteIntents(cluster, group, (earlier) => isReplaced(earlier, [one]), { dryRun: dryRun ? 'server' : undefined }).catch(
    ifNotInstalled(rolloutIntents, 'nothing was undone'),
  );
  const { namespace, name, uid, generation } = view;
  const pathOf = (key: string): string => `/metadata/annotations/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  // These annotations describe the origin of the undone template. The request names the cause of the undo.
  const stale = Object.values(changeAnnotations).filter((key) => view.annotations[key] !== undefined);
  const operations: readonly JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/generation', value: generation },
    { op: 'replace', path: '/spec/template', value: to.template },
    ...stale.map((key) => ({ op: 'remove', path: pathOf(key) }) as const),
  ];
  const target = { namespace, name, uid };
  const options = { operations, dryRun, site: 'act.patchMember', timeoutMs };
  const restored = await patchByOperations(env, resources.statefulSets, target, options).catch(async (error: unknown) => {
    // The API server does not say which operation failed. If the spec is unchanged, the failure has another cause.
    if (isStatus(error, 409, 422)) await readUnchanged(cluster, member);
    throw error;
  });
  return dryRun ? restored : handOver(cluster, object, restored);
}
