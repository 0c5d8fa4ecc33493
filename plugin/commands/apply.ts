// The verb apply: shows a plan, asks for confirmation, checks the cluster again, and applies the objects one by one.
import { isOfStop } from '../../engine/decide/stops.ts';
import type { RuleResult } from '../../engine/decision.ts';
import type { GroupPlan, Plan } from '../../engine/plan/document.ts';
import { isTouched, refusingGroups } from '../../engine/plan/groups.ts';
import { endsText, stopFact } from '../../engine/publish/status.ts';
import { blocks, isUntilPerson } from '../../engine/rule.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted, firstOf, zonesText } from '../../policies/wording.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { connectionFailure, forbiddenFailure } from '../connection-failure.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { nameOf } from '../difference.ts';
import { type ExitCode, exitCodes, Failure, mostSevere, refusedFailure, usageFailure } from '../failure.ts';
import { type ApplyReport, renderApplied, renderStale } from '../output/apply.ts';
import { accessTodo, changeText, isOfInstallation, todoOf } from '../output/explain.ts';
import { writeErrors } from '../output/findings.ts';
import { writeDocument } from '../output/formats.ts';
import { overrideText } from '../output/plan/plan-text.ts';
import { type AppliedObject, applyAll } from '../source/cluster/apply.ts';
import { clusterUid, type Planned, readAndPlan, savedOf, type TriedObject } from '../source/cluster/live-plan.ts';
import { basisChanges, type ReadObject } from '../source/cluster/plan-basis.ts';
import { orderNotes, refusalOf } from '../source/cluster/refusal.ts';
import type { GivenFiles, InputErrors, LivePlanOptions } from '../source/plan-inputs.ts';
import { planDeviations, readSavedPlan, type SavedPlan, shortDigest } from '../source/saved-plan.ts';

export interface ApplyOptions extends LivePlanOptions, ConnectionFlags {
  readonly plan?: string;
  readonly yes?: boolean;
  /** False with `--no-input`. */
  readonly input?: boolean;
  readonly dryRun?: 'client' | 'server';
  readonly detailedExitcode?: boolean;
  readonly wait?: boolean;
  readonly timeout?: string;
  readonly for?: string;
  readonly output: 'table' | 'json' | 'yaml';
}

interface Request {
  readonly options: LivePlanOptions;
  readonly files?: GivenFiles;
  readonly saved?: SavedPlan;
}

export async function run(context: CommandContext, options: ApplyOptions): Promise<ExitCode> {
  const request = requestOf(context, options);
  if (options.dryRun === undefined && options.yes !== true && (context.ask === undefined || options.input === false)) {
    throw usageFailure('the change cannot be confirmed without a terminal', 'add --yes, or preview the change with --dry-run=server');
  }
  const access = options.dryRun === undefined ? 'write' : 'read';
  const { exitCode, groups } = await withCluster(context, options, access, (cluster) => planAndApply(context, options, cluster, request));
  return options.wait === true && exitCode === exitCodes.done && options.dryRun === undefined ? wait(context, options, groups) : exitCode;
}

function requestOf(context: CommandContext, options: ApplyOptions): Request {
  const { plan: path, filename: file = [], desired, group = [], forceConflicts = false } = options;
  if (path === undefined) {
    if (file.length === 0 && desired === undefined) throw usageFailure('there is nothing to apply', 'give a saved plan, or files with -f');
    return { options: { ...options, mayHaveNoGroup: true } };
  }
  if (file.length + group.length > 0 || desired !== undefined || forceConflicts) {
    throw usageFailure(
      'a saved plan cannot be combined with -f, --desired, --group or --force-conflicts',
      'omit them; the plan contains everything',
    );
  }
  const saved = readSavedPlan(path, context.cwd);
  const { namespaces, agentNamespace, groups, files, omitted = [], forceConflicts: isForced = false } = saved.scope;
  if (options.namespace !== undefined && !namespaces.includes(options.namespace))
    throw usageFailure(`the saved plan is not of namespace ${options.namespace}`, 'omit -n; the plan contains everything');
  const where = agentNamespace === undefined ? {} : { agentNamespace };
  const scope = { namespaces, ...where, group: groups, mayHaveNoGroup: groups.length === 0, omitted, forceConflicts: isForced };
  return { options: scope, files, saved };
}

interface Ending {
  readonly exitCode: ExitCode;
  /** The requested groups (`requestedGroups`) as `namespace/name`, for which --wait waits. */
  readonly groups: readonly string[];
}

async function planAndApply(context: CommandContext, options: ApplyOptions, cluster: Cluster, request: Request): Promise<Ending> {
  const { saved } = request;
  const planned = await planRequest(context, options, cluster, request);
  if ('errors' in planned) return { exitCode: writeErrors(context, planned.errors), groups: [] };
  if (saved !== undefined) refuseStale(saved.basis, planned);
  const digest = shortDigest((saved ?? (await savedOf(cluster, planned, context.nowMs()))).metadata.digest);
  const { plan } = planned;
  const isTable = options.output === 'table';
  const deviations = saved === undefined ? [] : planDeviations(saved.plan, plan);
  await showPlan(context, plan, [...deviations, ...planned.notes, ...orderNotes(planned)], isTable);
  const { ready, stoppedAgents } = planned;
  const requested = requestedGroups(plan, planned, ready.length === 0);
  const groups = requested.map(({ namespace, group }) => `${namespace}/${group}`);
  refuseBlocked(ready.length === 0 ? requested : refusingGroups(plan.groups, planned.input.absent), {
    stoppedAgents,
    outcome: 'nothing was applied:',
  });
  refuse(planned);
  const report = { digest, groups, isDryRun: options.dryRun, isNothing: ready.length === 0 };
  const show = (objects: ApplyReport['objects']): Promise<void> => write(context, options, { ...report, objects });
  if (ready.length === 0) {
    await show([]);
    return { exitCode: await exitOfPlan({ ...plan, groups: requested }, options), groups };
  }
  if (options.dryRun !== 'client') refuseTroubles(ready, cluster, plan);
  if (options.dryRun !== undefined) {
    await show(ready.map(dryRunResult));
    refuseBlocked(requested, { stoppedAgents, outcome: 'the change would be applied, but' });
    const ofObjects = options.detailedExitcode === true ? exitCodes.changes : exitCodes.done;
    return { exitCode: mostSevere([await exitOfPlan({ ...plan, groups: requested }, options), ofObjects]), groups };
  }
  if (!(await isConfirmed(context, options, ready))) return { exitCode: exitCodes.refused, groups };
  const now = options.yes === true ? planned : await planAgain(context, request, cluster, planned);
  const { applied, error } = await applyAll(cluster, now.ready, { plan: digest, forceConflicts: now.forceConflicts });
  await show(applied);
  if (error !== undefined) throw partialFailure(connectionFailure(error, cluster.server), applied, requested);
  refuseBlocked(requested, { stoppedAgents, outcome: 'the change was applied, but' });
  if (isTable && options.wait !== true) suggestNext(context, ...groups.slice(0, 2).map((group) => `status ${group}`));
  return { exitCode: exitCodes.done, groups };
}

/** Adds two facts to the failure of a write: the objects that are in force already, and the commands that pause their groups. */
function partialFailure(failure: unknown, applied: readonly AppliedObject[], groups: readonly GroupPlan[]): unknown {
  const written = applied.filter(({ result }) => result !== 'failed' && result !== 'notAttempted').map(({ object }) => object);
  if (!(failure instanceof Failure) || written.length === 0 || groups.length === 0) return failure;
  const names = groups.map(({ namespace, group }) => `${namespace}/${group}`);
  const { why, todo } = failure.details;
  const inForce = `in force already: ${firstOf(written, 5)}; the agent may already act on ${firstOf(names, 5)}`;
  const stop = `to stop: ${names.map((name) => `kubectl rollout-group pause ${name}`).join('; ')}`;
  const joined = (...parts: readonly (string | undefined)[]): string => parts.filter((part) => part !== undefined).join('; ');
  return new Failure({ ...failure.details, why: joined(why, inForce), todo: joined(todo, stop) });
}

/** Makes the plan again, because the cluster and the time changed while the user read it. Throws Failure if it is stale or blocked now. */
async function planAgain(context: CommandContext, { options }: Request, cluster: Cluster, planned: Planned): Promise<Planned> {
  const now = await readAndPlan(context, { ...options, omitted: planned.omitted ?? [] }, cluster, planned.given);
  if ('errors' in now) throw staleFailure([], 'the files have errors with the objects that are now in the cluster');
  refuseStale(planned.basis, now);
  refuseBlocked(refusingGroups(now.plan.groups, now.input.absent), { stoppedAgents: now.stoppedAgents, outcome: 'nothing was applied:' });
  return now;
}

async function showPlan({ stdout, stderr }: CommandContext, plan: Plan, notes: readonly string[], isTable: boolean): Promise<void> {
  for (const note of notes) stderr.write(`note: ${note}\n`);
  if (isTable && plan.groups.length > 0) await (await import('./plan.ts')).writePlan(stdout, 'table', plan);
}

/** Plans the request against the cluster. Throws Failure if a saved plan is for another cluster or names a group that no longer exists. */
async function planRequest(
  context: CommandContext,
  options: ApplyOptions,
  cluster: Cluster,
  request: Request,
): Promise<Planned | InputErrors> {
  const { saved } = request;
  if (saved !== undefined) await refuseOtherCluster(cluster, saved, options.plan ?? '');
  return readAndPlan(context, request.options, cluster, request.files).catch((error: unknown) => {
    const isGone = saved !== undefined && error instanceof Failure && error.exitCode === exitCodes.notFound;
    throw isGone ? staleFailure([], error.message) : error;
  });
}

function dryRunResult({ live, object, taken }: TriedObject): AppliedObject {
  return { object: nameOf(object), result: live === undefined ? 'created' : 'configured', ...(taken.length === 0 ? {} : { taken }) };
}

async function refuseOtherCluster(cluster: Cluster, { scope }: SavedPlan, path: string): Promise<void> {
  const uid = await clusterUid(cluster);
  const isOther = scope.cluster === undefined || uid === undefined ? scope.server !== cluster.server : scope.cluster !== uid;
  if (!isOther) return;
  throw new Failure({
    exitCode: exitCodes.stale,
    what: `${path} is a plan of another cluster`,
    why: `the plan is for ${scope.server}, this cluster is ${cluster.server}`,
    todo: 'choose the cluster with --context, or make a new plan',
  });
}

/** Throws Failure if the plan is stale, or if the user may not read objects that the plan was made from. */
function refuseStale(before: readonly ReadObject[], { basis, denials }: Planned): void {
  const changes = basisChanges(before, basis);
  const [denial] = changes.flatMap(({ object }) => denials.get(object.replace(/s? .*/, '')) ?? []);
  if (denial !== undefined) throw forbiddenFailure(denial);
  if (changes.length > 0) throw staleFailure(changes);
}

function staleFailure(changes: Parameters<typeof renderStale>[0], why?: string): Failure {
  return new Failure({
    exitCode: exitCodes.stale,
    what: 'the plan is stale; nothing was applied',
    why: why ?? renderStale(changes),
    todo: 'make the plan again with the same flags and review it: kubectl rollout-group plan ... --out FILE',
  });
}

function refuse(inputs: Planned): void {
  const refusal = refusalOf(inputs);
  if (refusal !== undefined) throw new Failure({ ...refusal, what: `nothing was applied: ${refusal.what}` });
}

/** Returns the exit code that the verb plan has for these groups. Other groups of the namespace are in the plan too, but not in the request. */
async function exitOfPlan({ denied, groups }: Plan, { dryRun, detailedExitcode }: ApplyOptions): Promise<ExitCode> {
  const outcome = denied === undefined ? 'unchanged' : 'blocked';
  return (await import('./plan.ts')).exitCodeOf({ outcome, groups }, dryRun !== undefined && detailedExitcode === true);
}

/** The agents that do not run, and the first words of the message. */
interface Blocking {
  readonly stoppedAgents: readonly string[];
  readonly outcome: string;
}

/** Throws Failure if a part of the plan is denied or blocked until a person acts. Names stopped agents that may be the cause. */
function refuseBlocked(groups: readonly GroupPlan[], { stoppedAgents, outcome }: Blocking): void {
  const blocked = groups.filter((group) => group.outcome === 'blocked');
  const [first] = blocked;
  if (first === undefined) return;
  const [denied] = first.refused;
  const leading = first.waits.find(isUntilPerson);
  const stop = denied === undefined && leading !== undefined ? first.stops?.find((one) => isOfStop(leading, one)) : undefined;
  const place = stop?.rule === 'rolled-back' && stop.zones.length < first.zones.length ? ` to ${zonesText(stop.zones)}` : '';
  const todo = stop === undefined ? todoOfBlocked(first, leading) : `${endsText(stop)}${place}`;
  const agents = denied === undefined && leading !== undefined && isOfInstallation(leading) ? stoppedAgents : [];
  const why = [...agents, denied?.message ?? (stop && stopFact(stop)) ?? leading?.fact].filter((part) => part !== undefined).join('; ');
  const names = blocked.map(({ namespace, group }) => `${namespace}/${group}`).join(', ');
  throw refusedFailure(
    `${outcome} ${denied === undefined ? `${leading?.rule ?? 'a rule'} blocks` : 'policy denies a part of'} the plan of ${names}`,
    { ...(why === '' ? {} : { why }), todo: agents.length > 0 ? 'start the agent, then repeat the command' : todo },
  );
}

/** Returns the next step. `explain` cannot show the denial of a change that is not applied, so the message names this step. */
function todoOfBlocked(plan: GroupPlan, leading: RuleResult | undefined): string {
  const [denied] = plan.refused;
  const results = [...(denied?.results ?? []), ...(leading === undefined ? [] : [leading])].filter(blocks);
  const todos = results.flatMap((result) => accessTodo(plan, result) ?? todoOf(result, `${plan.namespace}/${plan.group}`));
  const [first = 'change the request'] = [...(denied?.hint === undefined ? [] : [denied.hint]), ...todos, ...results.map(changeText)];
  return denied?.override === undefined ? first : `${first}; ${overrideText(denied.override)}`;
}

/** Returns the groups that the request changes; if it changes none, the groups whose definition or member it contains. */
function requestedGroups({ groups }: Plan, { desiredObjects }: Planned, isNothing: boolean): readonly GroupPlan[] {
  if (!isNothing) return groups.filter((group) => isTouched(group) || group.policyChanges !== undefined);
  const names = new Set(desiredObjects.map(({ manifest }) => nameOf(manifest)));
  return groups.filter(({ namespace, group, zones }) => {
    const all = [`RolloutGroup ${namespace}/${group}`, ...zones.map((zone) => `StatefulSet ${namespace}/${zone.statefulSet}`)];
    return all.some((name) => names.has(name));
  });
}

function refuseTroubles(ready: readonly TriedObject[], cluster: Cluster, { denied = [] }: Plan): void {
  const first = ready.find(({ trouble }) => trouble !== undefined);
  if (first === undefined) return;
  const failure = connectionFailure(first.trouble, cluster.server);
  if (!(failure instanceof Failure)) throw failure;
  const name = nameOf(first.object);
  const todo = denied.find(({ objects }) => objects.includes(name))?.hint;
  throw new Failure({ ...failure.details, what: `nothing was applied: ${name}: ${failure.details.what}`, ...defined({ todo }) });
}

async function isConfirmed({ ask, stderr }: CommandContext, { yes }: ApplyOptions, ready: readonly TriedObject[]): Promise<boolean> {
  if (yes === true) return true;
  const answer = await ask?.(`Apply ${counted(ready.length, 'object')}? [y/N] `);
  if (/^y(?:es)?$/i.test(answer?.trim() ?? '')) return true;
  stderr.write('nothing was applied\n');
  return false;
}

async function write(context: CommandContext, { output }: ApplyOptions, report: ApplyReport): Promise<void> {
  if (output !== 'table') return writeDocument(context.stdout, output, { kind: 'Applied', ...report });
  context.stdout.write(renderApplied(report, context.stdout));
}

async function wait(context: CommandContext, options: ApplyOptions, groups: readonly string[]): Promise<ExitCode> {
  const { run: status, timeoutAt } = await import('./status.ts');
  const codes: ExitCode[] = [];
  const { plan: _plan, ...given } = options;
  const rest = { ...given, timeoutAtMs: timeoutAt(context, options) };
  for (const group of groups)
    codes.push(await status(context, { ...rest, groups: [group], for: options.for ?? 'complete', output: options.output }));
  return mostSevere(codes);
}
