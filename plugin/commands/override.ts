// The verb override: one named rule is off for one target until a given time, by a RolloutException.
import { isStatus } from '../../cluster/request/failure.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { applyObject } from '../../cluster/request/write.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { unyieldingRules } from '../../policies/rollout/rules-without-exception.ts';
import { suggestion } from '../../policies/wording.ts';
import { withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { accessFor, printObjects, zoneNamed } from '../live/acting.ts';
import { type Asked, type AskFlags, askedGroup } from '../live/asking.ts';
import { isMeantByName, type PromptFlags } from '../live/confirm.ts';
import { fieldManager } from '../live/intents.ts';
import { notInstalled, rolloutExceptions } from '../live/kinds.ts';
import { durationFlag } from '../live/when.ts';
import { instantText } from '../output/plan/words.ts';

export interface OverrideOptions extends AskFlags, PromptFlags {
  readonly rule: string;
  readonly for: string;
  readonly zone?: string;
  readonly replicasAtLeast?: number;
  readonly podsAtMost?: number;
}

export function run(context: CommandContext, options: OverrideOptions): Promise<ExitCode> {
  const { reason, rule } = options;
  if (reason === undefined) throw usageFailure('an override is recorded with its reason', 'give --reason "why"');
  return withCluster(context, options, accessFor(options.dryRun), async (cluster) => {
    const asked = await askedGroup(cluster, options.group);
    const { name, target } = asked;
    refuseRule(asked, rule);
    const zone = zoneNamed(asked.live, options.zone);
    const expiresMs = cluster.env.clock.nowMs() + durationFlag('--for', options.for);
    const object = exceptionObject(asked, { ...options, reason, zone, expiresMs });
    refuseMeeting(asked, rule, zone, object.metadata.name);
    if (options.dryRun === 'client') {
      printObjects(context, [object]);
      return exitCodes.done;
    }
    const where = zone === undefined ? name : `${name} zone ${zone}`;
    const what = `rule ${rule} ${allowedText(options)} for ${where} until ${instantText(expiresMs)}`;
    const isServerDryRun = options.dryRun === 'server';
    if (!isServerDryRun && !(await isMeantByName(context, options, `This lets ${what}.\n`, target.group))) return exitCodes.refused;
    const { env, timeoutMs } = cluster;
    const written = await applyObject(env, rolloutExceptions, object, {
      fieldManager,
      dryRun: isServerDryRun,
      site: 'act.override',
      timeoutMs,
    }).catch((error: unknown) => {
      throw isStatus(error, 404) ? notInstalled(rolloutExceptions, 'nothing was overridden') : error;
    });
    if (isServerDryRun) {
      printObjects(context, [written]);
      return exitCodes.done;
    }
    context.stdout.write(
      `${what} (${reason})\n  every other rule holds as before; end it earlier: kubectl rollout-group cancel ${name} ${object.metadata.name}\n`,
    );
    suggestNext(context, `explain ${name}`);
    return exitCodes.done;
  });
}

function allowedText({ podsAtMost, replicasAtLeast }: OverrideOptions): string {
  if (podsAtMost !== undefined) return `lets ${podsAtMost} pods go at once`;
  return replicasAtLeast === undefined ? 'off' : `lets it shrink to ${replicasAtLeast} replicas`;
}

/** @throws Failure when there is no such rule, or it is one that no exception lets pass. */
function refuseRule({ read, name }: Asked, rule: string): void {
  if (unyieldingRules.includes(rule)) {
    throw new Failure({
      exitCode: exitCodes.refused,
      what: `rule ${rule} cannot be overridden`,
      why: 'it rests on what can be seen or was announced, or people end in another way what it holds',
      todo: `see what holds it, and what to do: kubectl rollout-group explain ${name}`,
    });
  }
  const ofPolicies = read.world.policies.policies.flatMap((policy) =>
    [...policy.rules, ...policy.windows].map((one) => `${policy.name}/${one.name}`),
  );
  const known = [...ruleCatalog.map(({ id }) => id), ...ofPolicies];
  if (known.includes(rule)) return;
  throw usageFailure(
    `there is no rule ${rule}`,
    suggestion(rule, known) ?? `kubectl rollout-group explain ${name} lists those that hold it`,
  );
}

/** Two exceptions for one rule and target are none. */
function refuseMeeting({ read, target }: Asked, rule: string, zone: string | undefined, own: string): void {
  const other = read.world.policies.exceptions.find(
    (one) =>
      one.namespace === target.namespace &&
      one.group === target.group &&
      one.rule === rule &&
      one.name !== own &&
      (one.zone === undefined || zone === undefined || one.zone === zone),
  );
  if (other === undefined) return;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `RolloutException ${other.namespace}/${other.name} overrides ${rule} for this target already`,
    why: 'exceptions never combine: with two of them neither would be used',
    todo: `kubectl rollout-group cancel ${target.namespace}/${target.group} ${other.name}`,
  });
}

interface Override extends Omit<OverrideOptions, 'zone'> {
  readonly reason: string;
  readonly zone: string | undefined;
  readonly expiresMs: number;
}

function exceptionObject(
  { target: { namespace, group } }: Asked,
  { rule, zone, reason, expiresMs, podsAtMost, replicasAtLeast }: Override,
): KubernetesObject {
  if (podsAtMost !== undefined && replicasAtLeast !== undefined)
    throw usageFailure('--pods-at-most and --replicas-at-least exclude each other', 'name one of them');
  const allow =
    podsAtMost !== undefined ? { podsAtMost } : replicasAtLeast !== undefined ? { replicasAtLeast } : { anything: true as const };
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
