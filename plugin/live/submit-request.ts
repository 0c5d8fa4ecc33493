// Submits a request of the user as a RolloutIntent, for a group or its published run.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { contextOf, type GroupContext } from '../../engine/context.ts';
import { isSuperseded } from '../../engine/plan/controller.ts';
import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { runOfPublished } from '../../engine/publish/status.ts';
import { isNewerThan, isRunOfOlderTemplate } from '../../engine/publish/template-change.ts';
import { type RequestedWith, requesterText, stopActions } from '../../engine/run/requests.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { type IntentView, isUnknown, type Snapshot, setNamed } from '../../engine/snapshot.ts';
import { minuteText } from '../../policies/instant.ts';
import { intentObject, readIntent } from '../../policies/live/intents.ts';
import type { RolloutIntent } from '../../policies/schema/kinds.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { ifNotInstalled, rolloutIntents } from '../cluster-snapshot/kinds.ts';
import { itemsOf, listCluster } from '../cluster-snapshot/listing.ts';
import { ledgerOf } from '../cluster-snapshot/snapshot.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { uncalledBy, uncalledText } from '../connection-failure.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, refusedFailure } from '../failure.ts';
import { placeText } from '../output/text.ts';
import { preconditioned } from '../source/cluster/server-apply.ts';
import {
  addInstallation,
  type LiveGroup,
  onlyGroup,
  type ReadGroups,
  type ReadSnapshot,
  type readGroups,
  readObjects,
  readSnapshot,
  type Scope,
  scopeOf,
} from './groups.ts';
import { applyIntent, applyStop, deleteIntents } from './intents.ts';
import { findGroup } from './named-group.ts';
import { notesOn, writeAgentNote } from './notes.ts';
import { remainingStops } from './remaining-stops.ts';
import { type GroupName, nameOf } from './target.ts';
import { accessFor, type DryRun, printObjects } from './write-options.ts';

export interface RequestFlags extends ConnectionFlags {
  readonly group: string;
  readonly reason?: string;
  readonly dryRun?: DryRun;
}

export interface RequestedGroup {
  readonly cluster: Cluster;
  readonly target: GroupName;
  readonly name: string;
  readonly live: LiveGroup;
  readonly read: ReadGroups;
  /** Absent if no snapshot was read, as for `pause`. */
  readonly snapshot: Snapshot | undefined;
}

type IntentSpec = RolloutIntent['spec'];

/** A request. Without `spec`, only `text` is printed. */
export interface Request {
  readonly spec?: Omit<IntentSpec, 'group'>;
  /** The name of the object; default: a name with a hash of the key. */
  readonly objectName?: string;
  /** Requests with the same action, group and key share one object. With `needsRequester`, each requester has a separate object. */
  readonly key?: string;
  /** True if the request counts only with a verified requester. Without a webhook that verifies the requester, the request is not sent. */
  readonly needsRequester?: boolean;
  /** Selects the earlier requests of the same requester that this request ends. */
  readonly ends?: (earlier: IntentView) => boolean;
  /** Asks the user to confirm before the request is sent. Not called in a dry run. */
  readonly confirm?: () => Promise<boolean>;
  /** Checks the verified requester. Throws Failure if the requester does not qualify. */
  readonly check?: (stamped: IntentView) => void;
  /** Notes of a dry run about the effect on pods: the dry run prints the object instead of `text`. */
  readonly preview?: readonly string[];
  /**
   * Returns the output, including what happens next. `by` is the requester that the webhook recorded, if any. `kept` are the requests that
   * this request should end, but that the requester may not delete.
   */
  readonly text: (by: string | undefined, kept: readonly IntentView[]) => string;
  /** The message if the kind is not installed. */
  readonly notSent?: string;
  readonly next?: readonly string[];
  /** Reports whether the rule can still block what the request asks for; absent for a request that asks for no progress. */
  readonly concerns?: (rule: string) => boolean;
}

/** Reads the group and submits the request. Throws Failure if the kind is not installed or the requester cannot be verified. */
export function readAndSubmit(
  context: CommandContext,
  flags: RequestFlags,
  requestFor: (requested: RequestedGroup) => Request | Promise<Request>,
  readScope?: typeof readGroups,
): Promise<ExitCode> {
  return withCluster(context, flags, accessFor(flags.dryRun), async (cluster) => {
    const requested = await readRequestedGroup(cluster, flags.group, readScope);
    let request: Request;
    try {
      request = await requestFor(requested);
    } catch (error) {
      // The decision that refuses the request may be that of a stopped agent.
      await writeAgentNote(context, cluster, requested.live);
      throw error;
    }
    return submit(context, flags, requested, request);
  });
}

/** Reads the group of a request, by default with all lists for a decision. Throws Failure if the group does not exist. */
export async function readRequestedGroup(cluster: Cluster, group: string, readScope?: typeof readGroups): Promise<RequestedGroup> {
  const target = await findGroup(cluster, group);
  const scope = scopeOf([target]);
  const read = { snapshot: undefined, ...(await (readScope?.(cluster, scope) ?? readSnapshot(cluster, scope, () => false))) };
  return { cluster, target, name: nameOf(target), live: onlyGroup(read), read, snapshot: read.snapshot };
}

export async function submit(context: CommandContext, flags: RequestFlags, requested: RequestedGroup, request: Request): Promise<ExitCode> {
  const { stdout } = context;
  const { cluster, target, name, live } = requested;
  const { key = '', needsRequester = false, notSent = 'the request was not sent', next = [], ends } = request;
  if (request.spec === undefined) {
    stdout.write(request.text(undefined, []));
    await writeAgentNote(context, cluster, live);
    return exitCodes.done;
  }
  const spec = { ...request.spec, ...(flags.reason ? { reason: flags.reason } : {}) };
  const send = (intent: KubernetesObject, isDryRun: boolean) =>
    sendIntent(requested, intent, { action: spec.action, isDryRun }).catch(ifNotInstalled(rolloutIntents, notSent));
  const object = intentObject(target, spec, key, request.objectName);
  const notes = notesFor(requested, request, spec, flags.dryRun);
  // Without a question, the notes follow the request, because their reads would delay it.
  const isToldFirst = flags.dryRun !== undefined || request.confirm !== undefined;
  if (isToldFirst) await writeAgentNote(context, cluster, live, notes);
  const stored = requested.read.world.policies.intents.find((one) => isNamed(one, object));
  // A dry run by the API server shows the verified requester and what the request would replace, also for --dry-run=client.
  const checked = needsRequester || stored !== undefined || flags.dryRun === 'server' ? await send(object, true) : object;
  const { name: objectName } = checked.metadata;
  const { replaced, kept } = comparedWith(requested, stored, checked);
  const verified = needsRequester ? verifiedIntent(checked, spec.action, name) : undefined;
  if (verified !== undefined) request.check?.(verified);
  if (flags.dryRun !== undefined) return printObjects(context, [flags.dryRun === 'client' ? object : checked]);
  const end = async (text: string): Promise<ExitCode> => {
    stdout.write(text);
    if (!isToldFirst) await writeAgentNote(context, cluster, live, notes);
    suggestNext(context, ...next);
    return exitCodes.done;
  };
  if (kept !== undefined) return end(kept);
  if ((await request.confirm?.()) === false) return exitCodes.refused;
  // One object per requester: otherwise a second requester would overwrite the request of the first.
  const own = intentObject(target, spec, `${key} ${verified?.requestedBy?.user}`, verified === undefined ? objectName : undefined);
  const listed = itemsOf(requested.read.listing.intents).find(({ metadata }) => isNamed(metadata, own));
  const written = await send(preconditioned(own, listed), false);
  const by = userIn(written);
  const isEnded = (one: IntentView): boolean => one.requestedBy?.user === by && one.name !== written.metadata.name && ends?.(one) === true;
  const left: IntentView[] = [];
  if (ends !== undefined) await deleteIntents(cluster, target, isEnded, { keep: (one) => left.push(one) });
  await refuseEndedRun(requested, spec, written);
  return end(`${request.text(by, left)}${replaced}`);
}

/** The actions that have an effect only while their run is in progress. */
const runningActions: ReadonlySet<IntentView['action']> = new Set(['approve', 'reject', 'promote']);

/** Throws Failure if the run of the request failed, or another run superseded it, between the read of the group and the write of the request. */
async function refuseEndedRun(
  { cluster, target, name, live: { decision } }: RequestedGroup,
  { action, runId }: Omit<IntentSpec, 'group'>,
  written: KubernetesObject,
): Promise<void> {
  if (!runningActions.has(action) || runId === undefined || decision.run?.outcome !== 'running') return;
  // The agent writes the ledger before it publishes the run. The request is written, so a failed read is no failure of the command.
  const listing = await listCluster(cluster, ['documents'], [target.namespace]).catch(() => undefined);
  const ledger = ledgerOf(listing?.documents, target.namespace, target.group);
  const run = isUnknown(ledger) ? undefined : ledger.run;
  if (run === undefined) return;
  const request = `RolloutIntent ${written.metadata.name} (${action})`;
  if (run.id !== runId)
    throw new Failure({
      exitCode: exitCodes.stale,
      what: `${name}: run ${runId} ended during the command; run ${run.id} followed it`,
      why: `${request} applies only to run ${runId}, so it has no effect`,
      todo: `kubectl rollout-group explain ${name}, then repeat the command`,
    });
  if (run.outcome !== 'failed') return;
  throw new Failure({
    exitCode: exitCodes.stale,
    what: `${name}: run ${runId} failed during the command: ${run.failure}`,
    why: `${request} is written, but has an effect only after a retry of the run`,
    todo: `kubectl rollout-group explain ${name}`,
  });
}

/** Returns the stops that the request does not end. In a dry run, the effect on pods comes first. */
function notesFor(
  requested: RequestedGroup,
  { concerns, preview = [] }: Request,
  { action: verb, rollback }: Omit<IntentSpec, 'group'>,
  dryRun: DryRun,
): readonly string[] {
  const effect = { verb, isRollback: rollback === true };
  const stops = concerns === undefined ? [] : remainingStops(requested, { ...effect, concerns });
  return dryRun === undefined ? stops : [...preview, ...stops];
}

function isNamed({ name, namespace }: Pick<KubernetesObject['metadata'], 'name' | 'namespace'>, { metadata }: KubernetesObject): boolean {
  return name === metadata.name && namespace === metadata.namespace;
}

/**
 * Returns the line about the stored request of the same name. `kept` is the whole output for a stored request with the same content: its
 * requester stays, because the webhook keeps the requester of an unchanged request. Throws Failure as `replacedText` does.
 */
function comparedWith(
  requested: RequestedGroup,
  stored: IntentView | undefined,
  object: KubernetesObject,
): { readonly replaced: string; readonly kept?: string } {
  if (stored?.name !== object.metadata.name) return { replaced: '' };
  const written = readIntent(object);
  const contentOf = ({ requestedBy: _requester, ...content }: IntentView): string => canonicalJson(content);
  if (isUnknown(written) || contentOf(written) !== contentOf(stored)) return { replaced: replacedText(requested, stored, object) };
  const kept = `${placeText(requested.name, stored.zone)}: ${storedText(stored)} is in force already; nothing was changed\n`;
  return { replaced: '', kept };
}

/** Returns the request or exception with its requester and its end, such as `the pause by anna (INC-441) without an end`. */
export function storedText(stored: RequestedWith & Pick<IntentView, 'expiresMs'> & { readonly action: string }): string {
  const { action, expiresMs } = stored;
  return `the ${action === 'protect' ? 'protection' : action} by ${requesterText(stored)} ${expiresMs === undefined ? 'without an end' : `that ends at ${minuteText(expiresMs)}`}`;
}

/** Returns a line about the stored request of another user if the object replaces it. Throws Failure if the object ends earlier. */
function replacedText({ name, cluster }: RequestedGroup, stored: IntentView, object: KubernetesObject): string {
  const { action, requestedBy, expiresMs: endMs = Number.POSITIVE_INFINITY } = stored;
  const written = readIntent(object);
  if (isUnknown(written) || endMs <= cluster.env.clock.nowMs()) return '';
  if (requestedBy !== undefined && requestedBy.user === written.requestedBy?.user) return '';
  const earlier = storedText(stored);
  if ((written.expiresMs ?? Number.POSITIVE_INFINITY) >= endMs) return `  it replaces ${earlier}\n`;
  const way = endMs === Number.POSITIVE_INFINITY ? 'omit --duration' : 'give the same or a later end';
  const todo = `${way}, or first run kubectl rollout-group cancel ${name} ${stored.name}`;
  throw refusedFailure(`${name}: ${action} was not sent`, { why: `it would replace ${earlier}, and end earlier`, todo });
}

function userIn(object: KubernetesObject): string | undefined {
  const view = readIntent(object);
  return isUnknown(view) ? undefined : view.requestedBy?.user;
}

/** Returns the intent with its verified requester. Throws Failure if no webhook wrote the requester into the intent. */
function verifiedIntent(object: KubernetesObject, action: string, group: string): IntentView {
  const view = readIntent(object);
  if (!isUnknown(view) && view.requestedBy !== undefined) return view;
  throw refusedFailure(`${action} was not sent: it would have no effect`, {
    why: 'no webhook records the requester, so the requester cannot be verified',
    todo:
      action === 'abort'
        ? `to stop the group now: kubectl rollout-group pause ${group}; for abort, install the webhook with the flags of the installation: kubectl rollout-group install --policies DIR --apply`
        : 'install the webhook with the flags of the installation: kubectl rollout-group install --policies DIR --apply',
  });
}

/** Writes the intent. If no webhook answers, only a pause can stop the group, so the failure of an abort names it. */
async function sendIntent(
  { cluster, name }: RequestedGroup,
  intent: KubernetesObject,
  { action, isDryRun }: { readonly action: IntentView['action']; readonly isDryRun: boolean },
): Promise<KubernetesObject> {
  if (stopActions.includes(action)) return applyStop(cluster, intent, isDryRun);
  return applyIntent(cluster, intent, isDryRun).catch((error: unknown) => {
    const webhook = uncalledBy(error);
    if (webhook === undefined || action !== 'abort') throw error;
    throw new Failure({
      exitCode: exitCodes.unreachable,
      what: `abort was not sent: ${uncalledText(webhook)}`,
      why: 'an abort needs a verified requester',
      todo: `to stop the group now: kubectl rollout-group pause ${name}; then find out why the webhook does not answer: kubectl rollout-group doctor`,
    });
  });
}

/** The time to wait for the decision of the agent about changed StatefulSets, and the pause between two reads. */
const decisionWaitMs = 10_000;
const rereadMs = 500;

/**
 * Reads the group for a request about its run. If a StatefulSet changed since the published decision, as after `apply`, waits up to 10 s
 * for the next decision, which begins the run. Does not wait for an agent that does not run.
 */
export async function readWithRun(cluster: Cluster, scope: Scope): Promise<ReadSnapshot> {
  const { clock, timers } = cluster.env;
  const endMs = clock.nowMs() + decisionWaitMs;
  for (;;) {
    const read = await readObjects(cluster, scope, () => false);
    if (!read.groups.some((live) => isRunDue({ live, snapshot: read.stored }))) return addInstallation(cluster, scope, read);
    const { unattended } = await notesOn(cluster, read);
    const groups = read.groups.map((live) => ({ ...live, ...defined({ unattended: unattended.get(nameOf(live.decision)) }) }));
    if (groups.every((live) => live.unattended !== undefined) || clock.nowMs() >= endMs)
      return addInstallation(cluster, scope, { ...read, groups });
    await new Promise<void>((resolve) => timers.after(rereadMs, resolve));
  }
}

/** Reports whether the next decision of the agent begins a run for changed templates. This run may supersede a running or failed run. */
function isRunDue({ live: { decision, from, definition }, snapshot }: Pick<RequestedGroup, 'live' | 'snapshot'>): boolean {
  if (from !== 'agent' || snapshot === undefined) return false;
  const isChanged = decision.zones.some((zone) => {
    const set = setNamed(snapshot, decision.namespace, zone.statefulSet);
    return set !== undefined && isNewerThan(decision, zone, set);
  });
  const { run } = decision;
  if (!isChanged || run === undefined || isRunOver(decision)) return isChanged;
  return definition !== undefined && isSuperseded(snapshot, definition, run.id);
}

function isRunOver({ run }: PublishedDecision): boolean {
  return run === undefined || run.outcome === 'completed';
}

/** Throws Failure if the run of a changed StatefulSet has not begun, so that no request can name it. */
export function refuseBeforeRun(requested: Pick<RequestedGroup, 'live' | 'name' | 'snapshot'>): void {
  const { live, name } = requested;
  const what = `no request was sent to ${name}: its run has not begun`;
  if (isRunDue(requested)) {
    const { unattended } = live;
    throw refusedFailure(what, {
      why: `a StatefulSet of the group changed, and ${unattended ?? 'the agent has not decided since'}`,
      todo:
        unattended === undefined
          ? `wait for the run, then repeat the command: kubectl rollout-group status ${name}`
          : `kubectl rollout-group doctor -n ${live.decision.namespace}`,
    });
  }
  if (live.from !== 'agent' || !isRunOver(live.decision) || !isRunOfOlderTemplate(live.decision)) return;
  const [wait] = live.decision.waits;
  throw refusedFailure(what, { ...defined({ why: wait?.fact }), todo: `kubectl rollout-group explain ${name}` });
}

/** Returns the run that a request names: from the ledger, or as published if the ledger cannot be read. Undefined without a definition. */
export function runInContext({
  live: { decision, definition },
  snapshot,
}: Pick<RequestedGroup, 'live' | 'snapshot'>): { readonly context: GroupContext; readonly run: RunState } | undefined {
  if (snapshot === undefined || definition === undefined || decision.run === undefined) return undefined;
  const context = contextOf(snapshot, definition);
  const { run } = context.view.ledger;
  return { context, run: run?.id === decision.run.id ? run : runOfPublished(decision.run) };
}

/** Returns the published run, for requests that name its id; undefined without a run. Throws Failure if no agent published the group. */
export function publishedRun(requested: Pick<RequestedGroup, 'live' | 'name' | 'snapshot'>): PublishedRun | undefined {
  const { live, name } = requested;
  refuseBeforeRun(requested);
  if (live.from === 'agent') return live.decision.run;
  throw new Failure({
    exitCode: exitCodes.unreachable,
    what: `no request was sent to ${name}`,
    why: 'no agent has published the group, and only the agent knows its current run',
    todo: `check the agent: kubectl rollout-group doctor -n ${live.decision.namespace}`,
  });
}
