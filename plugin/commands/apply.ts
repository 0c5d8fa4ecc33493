// The verb apply: a plan that is shown, confirmed, checked against the cluster once more, and then carried out object by object.
import type { GroupPlan } from '../../engine/plan/document.ts';
import { blocks } from '../../engine/rule.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { connectionFailure } from '../connection-failure.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { nameOf } from '../difference.ts';
import { type ExitCode, exitCodes, mostSevere } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { type ApplyReport, renderApplied, renderStale, renderTaken, type Shown } from '../output/apply.ts';
import { todoOf } from '../output/explain.ts';
import { writeErrors } from '../output/file-errors.ts';
import { writeDocument } from '../output/formats.ts';
import { plural } from '../output/plural.ts';
import { type AppliedObject, applyAll, type ReadyObject, type Trouble, tryAll } from '../source/cluster/apply.ts';
import { clusterUid, type Planned, readAndPlan, readyObjects, savedOf } from '../source/cluster/live-plan.ts';
import { gitOpsOwner } from '../source/cluster/owner.ts';
import { basisChanges, type ReadObject } from '../source/cluster/plan-basis.ts';
import type { GivenFiles, LivePlanOptions } from '../source/live-options.ts';
import { readSavedPlan, type SavedPlan, shortDigest } from '../source/saved-plan.ts';

export interface ApplyOptions extends LivePlanOptions, ConnectionFlags {
  /** A saved plan. */
  readonly plan?: string;
  readonly autoApprove?: boolean;
  /** The parser's name for `--no-input`. */
  readonly input?: boolean;
  readonly dryRun?: 'client' | 'server';
  readonly detailedExitcode?: boolean;
  readonly wait?: boolean;
  readonly timeout?: string;
  readonly for?: string;
  readonly output: 'table' | 'json' | 'yaml';
}

/** What is asked for, from files or from a saved plan. */
interface Request {
  readonly options: LivePlanOptions;
  readonly files?: GivenFiles;
  readonly saved?: SavedPlan;
}

export async function run(context: CommandContext, options: ApplyOptions): Promise<ExitCode> {
  const request = requestOf(context, options);
  if (options.dryRun === undefined && options.autoApprove !== true && (context.ask === undefined || options.input === false)) {
    throw usageFailure('nobody is there to confirm', 'say --auto-approve, or look first with --dry-run=server');
  }
  const access = options.dryRun === undefined ? 'write' : 'read';
  const { exitCode, groups } = await withCluster(context, options, access, (cluster) => carryOut(context, options, cluster, request));
  return options.wait === true && exitCode === exitCodes.done && options.dryRun === undefined ? wait(context, options, groups) : exitCode;
}

function requestOf(context: CommandContext, options: ApplyOptions): Request {
  const { plan: path, file = [], desired, group = [] } = options;
  if (path === undefined) {
    if (file.length === 0 && desired === undefined) throw usageFailure('there is nothing to apply', 'name a saved plan, or files with -f');
    return { options: { ...options, mayHaveNoGroup: true } };
  }
  if (file.length + group.length > 0 || desired !== undefined) {
    throw usageFailure('a saved plan and other things to apply are both given', 'the plan holds all that it applies');
  }
  const saved = readSavedPlan(path, context.cwd);
  const { namespaces, agentNamespace, groups, files } = saved.scope;
  const where = agentNamespace === undefined ? {} : { agentNamespace };
  return { options: { namespaces, ...where, group: groups, mayHaveNoGroup: groups.length === 0 }, files, saved };
}

interface Ending {
  readonly exitCode: ExitCode;
  /** `namespace/name` of the groups that are changed. */
  readonly groups: readonly string[];
}

async function carryOut(context: CommandContext, options: ApplyOptions, cluster: Cluster, request: Request): Promise<Ending> {
  const { saved } = request;
  if (saved !== undefined) await refuseOtherCluster(cluster, saved, options.plan ?? '');
  const planned = await readAndPlan(context, request.options, cluster, request.files).catch((error: unknown) => {
    // A group of the plan is not there any more, or another object of it.
    throw saved !== undefined && error instanceof Failure && error.exitCode === exitCodes.notFound
      ? staleFailure([], error.message)
      : error;
  });
  if (planned.errors.length > 0) return { exitCode: await writeErrors(context, planned.errors), groups: [] };
  if (saved !== undefined) refuseStale(saved.basis, planned.basis);
  const digest = shortDigest((saved ?? (await savedDigest(cluster, planned, context.nowMs()))).metadata.digest);
  const plan = saved?.plan ?? planned.plan;
  const groups = plan.groups.filter(isTouched).map(({ namespace, group }) => `${namespace}/${group}`);
  const ready = readyObjects(planned);
  const isTable = options.output === 'table';
  for (const note of planned.notes) context.stderr.write(`note: ${note}\n`);
  if (isTable && plan.groups.length > 0) await (await import('./plan.ts')).writePlan(context.stdout, 'table', plan);
  refuseMissingKinds(planned);
  refuseBlocked(plan.groups);
  refuseForeign(ready);
  const report = { digest, groups, isDryRun: options.dryRun, isNothing: ready.length === 0 };
  const show = (objects: ApplyReport['objects']): Promise<void> => write(context, options, { ...report, objects });
  if (ready.length === 0) {
    await show([]);
    return { exitCode: exitCodes.done, groups };
  }
  const { troubles, taken } =
    options.dryRun === 'client' ? { troubles: [], taken: new Map<string, readonly string[]>() } : await tryAll(cluster, ready);
  refuseTroubles(troubles, cluster);
  if (options.dryRun !== undefined) {
    await show(ready.map((one) => wouldBe(one, taken.get(nameOf(one.object)))));
    return { exitCode: options.detailedExitcode === true ? exitCodes.changes : exitCodes.done, groups };
  }
  for (const [object, fields] of taken) context.stderr.write(`note: ${object}: ${renderTaken(fields)}\n`);
  if (options.autoApprove !== true && !(await isConfirmed(context, ready))) return { exitCode: exitCodes.refused, groups };
  // The question may have stood for an hour.
  const now = await readAndPlan(context, request.options, cluster, planned.given);
  refuseStale(planned.basis, now.basis);
  const { applied, error } = await applyAll(cluster, readyObjects(now), digest);
  await show(applied);
  if (error !== undefined) throw connectionFailure(error, cluster.server);
  if (isTable && options.wait !== true) suggestNext(context, ...groups.slice(0, 2).map((group) => `status ${group}`));
  return { exitCode: exitCodes.done, groups };
}

/** The digest that a plan of these files would have had, so that what is applied directly can be named too. */
async function savedDigest(cluster: Cluster, planned: Planned, nowMs: number): Promise<Pick<SavedPlan, 'metadata'>> {
  const isSecret = (object: Planned['asked'][number]): boolean => object.manifest['kind'] === 'Secret';
  return savedOf(cluster, { ...planned, asked: planned.asked.filter((one) => !isSecret(one)) }, nowMs);
}

function wouldBe({ live, object }: ReadyObject, taken: readonly string[] | undefined): AppliedObject {
  return { object: nameOf(object), result: live === undefined ? 'created' : 'configured', ...(taken === undefined ? {} : { taken }) };
}

async function refuseOtherCluster(cluster: Cluster, { scope }: SavedPlan, path: string): Promise<void> {
  const uid = await clusterUid(cluster);
  const isOther = scope.cluster === undefined || uid === undefined ? scope.server !== cluster.server : scope.cluster !== uid;
  if (!isOther) return;
  throw new Failure({
    exitCode: exitCodes.stale,
    what: `${path} was made from another cluster`,
    why: `it was ${scope.server}, and this is ${cluster.server}`,
    todo: 'choose the cluster with --context, or make a plan of this one',
  });
}

function refuseStale(before: readonly ReadObject[], now: readonly ReadObject[]): void {
  const changes = basisChanges(before, now);
  if (changes.length > 0) throw staleFailure(changes);
}

function staleFailure(changes: Parameters<typeof renderStale>[0], why?: string): Failure {
  return new Failure({
    exitCode: exitCodes.stale,
    what: 'the plan is stale, and nothing was applied',
    why: why ?? renderStale(changes),
    todo: 'make it again with the same flags, and look at what is different now: plan ... --out FILE',
  });
}

/** Of kinds that are not installed: applying the rest would leave the policies out without anybody noticing. */
function refuseMissingKinds({ asked }: Planned): void {
  const missing = [...new Set(asked.flatMap(({ resource, manifest }) => (resource === undefined ? [String(manifest['kind'])] : [])))];
  if (missing.length === 0) return;
  const ours = asked.filter(
    ({ resource, manifest }) => resource === undefined && String(manifest['apiVersion']).startsWith('rollout-group.dev/'),
  );
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `nothing was applied: ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not installed in this cluster`,
    todo:
      ours.length === 0
        ? 'install what defines these kinds first'
        : `kubectl rollout-group schema ${String(ours[0]?.manifest['kind'])} -o crd | kubectl apply -f -`,
  });
}

function refuseBlocked(groups: readonly GroupPlan[]): void {
  // A group that policy holds for another reason is no obstacle: the policy that frees it must go in, too.
  const blocked = groups.filter((group) => group.outcome === 'blocked' && (isTouched(group) || hasNoMember(group)));
  const [first] = blocked;
  if (first === undefined) return;
  const why = first.refused[0]?.message ?? first.waits.find(({ outcome }) => outcome === 'no')?.fact;
  // Nothing was applied, so the cluster knows nothing that `explain` could tell.
  const results = [...(first.refused[0]?.results ?? []), ...first.waits].filter(blocks);
  const [todo] = results.flatMap((result) => todoOf(result, `${first.namespace}/${first.group}`));
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `nothing was applied: policy refuses a part of the plan of ${blocked.map(({ namespace, group }) => `${namespace}/${group}`).join(', ')}`,
    ...(why === undefined ? {} : { why }),
    todo: todo ?? 'change what is asked for, or the rule, at the place that the plan names',
  });
}

/** Whether its StatefulSets are in another namespace: what is applied would be a group of nothing. */
function hasNoMember({ waits }: GroupPlan): boolean {
  return waits.some(({ rule, outcome }) => rule === 'view-complete' && outcome === 'no');
}

/** Whether what is asked for says something about the members of the group. */
function isTouched({ changes, refused }: GroupPlan): boolean {
  return changes.length + refused.length > 0;
}

/** Whoever keeps an object as Git has it would put it back, and two writers would take turns. */
function refuseForeign(ready: readonly ReadyObject[]): void {
  const owned = ready.flatMap(({ live }) => {
    const owner = live === undefined ? undefined : gitOpsOwner(live);
    return live === undefined || owner === undefined ? [] : [{ object: nameOf(live), owner }];
  });
  const [first] = owned;
  if (first === undefined) return;
  const { owner } = first;
  const others = owned.length === 1 ? '' : ` and ${plural(owned.length - 1, 'other object')}`;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `nothing was applied: ${owner.tool} owns ${first.object}${others}`,
    why: `${owner.evidence}${owner.of === undefined ? '' : ` names ${owner.of}`}; it would put back what Git says`,
    todo: `commit the change to what ${owner.tool} applies`,
  });
}

function refuseTroubles(troubles: readonly Trouble[], cluster: Cluster): void {
  const [first] = troubles;
  if (first === undefined) return;
  const conflict = first.conflicts[0];
  if (conflict === undefined) {
    const failure = connectionFailure(first.error, cluster.server);
    if (!(failure instanceof Failure)) throw failure;
    throw new Failure({ ...failure.details, what: `nothing was applied: ${first.object}: ${failure.details.what}` });
  }
  const fields = troubles.flatMap(({ conflicts }) => conflicts.map(({ object, manager, field }) => `${object} ${field} (${manager})`));
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `nothing was applied: ${plural(fields.length, 'field')} ${fields.length === 1 ? 'belongs' : 'belong'} to another field manager`,
    why: fields.slice(0, 5).join(', '),
    todo: `leave the ${fields.length === 1 ? 'field' : 'fields'} out of the manifests, or change what ${conflict.manager} applies; nothing is taken by force`,
  });
}

async function isConfirmed({ ask, stderr }: CommandContext, ready: readonly ReadyObject[]): Promise<boolean> {
  const answer = await ask?.(`Apply ${plural(ready.length, 'object')}? [y/N] `);
  if (/^y(?:es)?$/i.test(answer?.trim() ?? '')) return true;
  stderr.write('nothing was applied\n');
  return false;
}

async function write(context: CommandContext, { output }: ApplyOptions, report: ApplyReport): Promise<void> {
  if (output !== 'table') return writeDocument(context.stdout, output, { kind: 'Applied', ...report });
  const shown: Shown = context.stdout;
  context.stdout.write(renderApplied(report, shown));
}

/** The status of one group after the other, with its exit codes. */
async function wait(context: CommandContext, options: ApplyOptions, groups: readonly string[]): Promise<ExitCode> {
  const { run: status } = await import('./status.ts');
  const codes: ExitCode[] = [];
  const { plan: _plan, ...rest } = options;
  for (const group of groups) codes.push(await status(context, { ...rest, group, for: options.for ?? 'complete', output: options.output }));
  return mostSevere(codes);
}
