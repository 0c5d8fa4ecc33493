// The verb override: creates a RolloutException, which permits what one rule blocks, for one target and until a given time.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { applyObject } from '../../cluster/request/write.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { minuteText } from '../../policies/instant.ts';
import { canOverride } from '../../policies/rollout/rules-without-exception.ts';
import { counted, suggestion } from '../../policies/wording.ts';
import { ifNotInstalled, rolloutExceptions } from '../cluster-snapshot/kinds.ts';
import { itemsOf, listCluster } from '../cluster-snapshot/listing.ts';
import { clusterState } from '../cluster-snapshot/snapshot.ts';
import { fieldManager, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, refusedFailure, usageFailure } from '../failure.ts';
import { writeAgentNote } from '../live/notes.ts';
import { overridableRules } from '../live/overridable-rules.ts';
import { type RequestedGroup, type RequestFlags, readRequestedGroup, storedText } from '../live/submit-request.ts';
import { endFlag } from '../live/target.ts';
import { accessFor, confirmAlways, findZone, type PromptFlags, printObjects } from '../live/write-options.ts';
import { placeText, reasonSuffix } from '../output/text.ts';
import { preconditioned } from '../source/cluster/server-apply.ts';

export interface OverrideOptions extends RequestFlags, PromptFlags {
  readonly rule: string;
  readonly duration: string;
  readonly zone?: string;
  readonly replicasAtLeast?: number;
  readonly podsAtMost?: number;
}

export function run(context: CommandContext, options: OverrideOptions): Promise<ExitCode> {
  const { reason, rule } = options;
  if (reason === undefined) throw usageFailure('an override needs a reason', 'add --reason "why"');
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const requested = await readRequestedGroup(cluster, options.group);
    const { name } = requested;
    refuseRule(requested, rule);
    const zone = findZone(requested.live, options.zone);
    const expiresMs = cluster.env.clock.nowMs() + endFlag('--duration', options.duration);
    const object = exceptionObject(requested, options, zone, expiresMs);
    refuseSecondException(requested, rule, zone, object.metadata.name);
    await writeAgentNote(context, cluster, requested.live);
    if (options.dryRun === 'client') return printObjects(context, [object]);
    const scope = `${limitText(options)} for ${placeText(name, zone)} until ${minuteText(expiresMs)}`;
    const isServerDryRun = options.dryRun === 'server';
    const replaced = replacedLine(requested, object.metadata.name);
    const preview = `This overrides rule ${rule}${scope}.\n${replaced}`;
    if (!isServerDryRun && !(await confirmAlways(context, options, preview))) return exitCodes.refused;
    // The answer can take minutes.
    const now = await readAgain(requested);
    refuseSecondException(now, rule, zone, object.metadata.name);
    if (replacedLine(now, object.metadata.name) !== replaced)
      throw new Failure({
        exitCode: exitCodes.stale,
        what: `RolloutException ${object.metadata.name} changed in the meantime; nothing was overridden`,
        todo: `kubectl rollout-group explain ${name}, then repeat the command`,
      });
    const { env, timeoutMs } = cluster;
    const stored = itemsOf(now.read.listing.exceptions).find(({ metadata }) => metadata.name === object.metadata.name);
    const written = await applyObject(env, rolloutExceptions, preconditioned(object, stored), {
      fieldManager,
      dryRun: isServerDryRun,
      site: 'act.applyException',
      timeoutMs,
    }).catch(ifNotInstalled(rolloutExceptions, 'nothing was overridden'));
    if (isServerDryRun) return printObjects(context, [written]);
    context.stdout.write(
      `rule ${rule} overridden${scope}${reasonSuffix(reason)}\n${replaced}  all other rules still apply. End it early: kubectl rollout-group cancel ${name} ${object.metadata.name}\n`,
    );
    suggestNext(context, `explain ${name}`);
    return exitCodes.done;
  });
}

/** Returns the group with the present exceptions. */
async function readAgain(requested: RequestedGroup): Promise<RequestedGroup> {
  const { cluster, read, target } = requested;
  const listing = { ...read.listing, ...(await listCluster(cluster, ['exceptions'], [target.namespace])) };
  return { ...requested, read: { ...read, listing, world: clusterState(listing, cluster.agentNamespace) } };
}

function limitText({ podsAtMost, replicasAtLeast }: OverrideOptions): string {
  if (podsAtMost !== undefined) return ` (at most ${counted(podsAtMost, 'pod')} at once)`;
  return replicasAtLeast === undefined ? '' : ` (scale-down to at least ${counted(replicasAtLeast, 'replica')})`;
}

const endingVerbs: ReadonlyMap<string, string> = new Map([
  ['approval', 'approve'],
  ['soak', 'promote'],
  ['gate', 'promote'],
  ['paused', 'resume'],
  ['protected', 'cancel'],
  ['undone', 'cancel'],
  ['run-failed', 'retry'],
  ['rolled-back', 'retry'],
]);

/** Returns why no exception can override the rule. For a policy rule the only reason is that the rule can demand an approval. */
function whyNot(rule: string): string {
  const verb = endingVerbs.get(rule) ?? (rule.includes('/') ? 'approve' : undefined);
  if (verb !== undefined) return `the verb ${verb} ends this block`;
  const blocks = ruleCatalog.some(({ id, reason }) => id === rule && reason !== undefined);
  return blocks ? 'it depends on the state of the cluster or on claims' : 'it never blocks';
}

function refuseRule({ read, name, live }: RequestedGroup, rule: string): void {
  const { policies } = read.world.policies;
  const overridable = overridableRules(policies, live.decision);
  if (overridable.includes(rule)) return;
  if (ruleCatalog.some(({ id }) => id === rule) || !canOverride(rule, policies)) {
    throw refusedFailure(`rule ${rule} cannot be overridden`, { why: whyNot(rule), todo: `kubectl rollout-group explain ${name}` });
  }
  throw usageFailure(
    `the rule ${rule} does not exist`,
    suggestion(rule, overridable) ?? `kubectl rollout-group explain ${name} lists the rules that block the group`,
  );
}

/** Returns a line about the exception that the new exception replaces; empty if no exception of this name is in force. */
function replacedLine({ read, target, cluster }: RequestedGroup, own: string): string {
  const nowMs = cluster.env.clock.nowMs();
  const before = read.world.policies.exceptions.find(({ namespace, name }) => namespace === target.namespace && name === own);
  if (before === undefined || before.expiresMs <= nowMs) return '';
  return `  the new exception replaces ${storedText({ action: 'earlier exception', ...before })}\n`;
}

/** Throws Failure if an exception with another name exists for the rule and target, because the engine would then use neither. */
function refuseSecondException({ read, target, cluster }: RequestedGroup, rule: string, zone: string | undefined, own: string): void {
  const other = read.world.policies.exceptions.find(
    (one) =>
      one.namespace === target.namespace &&
      one.group === target.group &&
      one.rule === rule &&
      one.expiresMs > cluster.env.clock.nowMs() &&
      one.name !== own &&
      (one.zone === undefined || zone === undefined || one.zone === zone),
  );
  if (other === undefined) return;
  throw refusedFailure(`RolloutException ${other.namespace}/${other.name} already overrides ${rule} for this target`, {
    why: 'exceptions never combine: if two exist, neither is used',
    todo: `kubectl rollout-group cancel ${target.namespace}/${target.group} ${other.name}`,
  });
}

function exceptionObject(
  { target: { namespace, group } }: RequestedGroup,
  { rule, reason, podsAtMost, replicasAtLeast }: OverrideOptions,
  zone: string | undefined,
  expiresMs: number,
): KubernetesObject {
  if (podsAtMost !== undefined && replicasAtLeast !== undefined)
    throw usageFailure('--pods-at-most and --replicas-at-least exclude each other', 'give only one of them');
  const allow = podsAtMost !== undefined ? { podsAtMost } : replicasAtLeast !== undefined ? { replicasAtLeast } : { anything: true };
  const name = ['override', group.slice(0, 120), rule.replace('/', '.').slice(0, 100), ...(zone === undefined ? [] : [zone])].join('.');
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutException',
    metadata: { name, namespace },
    spec: {
      rule,
      target: { group, ...(zone === undefined ? {} : { zone }) },
      allow,
      reason,
      expires: new Date(expiresMs).toISOString(),
    },
  };
}
