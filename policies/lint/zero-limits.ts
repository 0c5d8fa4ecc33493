// Lint checks of limits of zero in groups, zones and policies, which block every rollout.
import { finding } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import type { Loaded, ObjectName } from '../load.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';

type Group = Loaded<'RolloutGroup'>;
type DocumentName = Pick<ObjectName, 'namespace' | 'name'>;

/** Reports `maxUnavailable: 0` of a group or of a zone, except paused zones, which are stopped on purpose. */
export const findZeroMaxUnavailable: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const { rollout, members } = group.value.spec;
    const zones = members.zones ?? [];
    const stands = ({ name, paused }: { readonly name: string; readonly paused?: boolean | undefined }): boolean =>
      paused !== true && !hasException(context, group, name);
    const ofZones = zones.flatMap((zone, index) => {
      if (zone.maxUnavailable !== 0 || !stands(zone)) return [];
      const message = `zone ${zone.name} blocks every rollout of the group ${group.name}: its maxUnavailable is 0`;
      const hint = 'write 1 or more, or paused: true to stop the zone on purpose';
      return [finding('RG2216', group.place(['spec', 'members', 'zones', index, 'maxUnavailable']), message, { hint })];
    });
    const isInherited =
      members.zones === undefined
        ? !hasExceptionForAllZones(context, group)
        : zones.some((zone) => zone.maxUnavailable === undefined && stands(zone));
    if (rollout.maxUnavailable !== 0 || !isInherited) return ofZones;
    const message = `no rollout of the group ${group.name} can replace a pod: maxUnavailable is 0`;
    return [finding('RG2216', group.place(['spec', 'rollout', 'maxUnavailable']), message, { hint: pauseHint(group) }), ...ofZones];
  });

/** Returns the hint for a group. Members by selector have no zones with `paused`. */
function pauseHint({ namespace, name, value }: Group): string {
  const command = `kubectl rollout-group pause ${name} -n ${namespace}`;
  return value.spec.members.zones === undefined
    ? `write 1 or more; to stop the group on purpose, run: ${command}`
    : `write 1 or more; to stop zones on purpose, set paused: true or run: ${command}`;
}

/** Reports policies with `maxUnavailable: 0`, unless every group of the policy in the files has an exception. */
export const findPoliciesOfZero: LintCheck = (context) =>
  context.policies.flatMap((policy) => {
    if (policy.value.spec.limits?.maxUnavailable !== 0) return [];
    const resolved = context.bundle.policies.filter(({ namespace, name }) => namespace === policy.namespace && name === policy.name);
    const bound = context.bundle.groups.filter((group) => policiesFor(resolved, group, context.agentNamespace).length > 0);
    if (bound.length > 0 && bound.every((group) => hasExceptionForAllZones(context, group))) return [];
    const message = `the policy ${policy.name} blocks every rollout of its groups: its maxUnavailable is 0`;
    const hint = 'write 1 or more; to stop rollouts on purpose, use a deny window or a rule with the effect hold';
    return [finding('RG2216', policy.place(['spec', 'limits', 'maxUnavailable']), message, { hint })];
  });

/** Reports whether a RolloutException in the files overrides the limit of the zone, so that the zero is deliberate. */
export function hasException({ bundle }: Pick<LintContext, 'bundle'>, group: DocumentName, zone?: string): boolean {
  return bundle.exceptions.some(
    (one) =>
      one.rule === 'zone-budget' &&
      one.namespace === group.namespace &&
      one.group === group.name &&
      (one.zone === undefined || one.zone === zone),
  );
}

function hasExceptionForAllZones(context: LintContext, group: DocumentName): boolean {
  const zones = definitionOf(context, group)?.zones ?? [];
  return hasException(context, group) || (zones.length > 0 && zones.every(({ name }) => hasException(context, group, name)));
}
