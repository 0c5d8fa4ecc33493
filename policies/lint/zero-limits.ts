// Limits of zero in groups, zones and policies: they hold every rollout until somebody changes them.
import { finding } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import type { Loaded, ObjectName } from '../load.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';

type Group = Loaded<'RolloutGroup'>;
type DocumentName = Pick<ObjectName, 'namespace' | 'name'>;

/** `maxUnavailable: 0` of a group or of one of its zones. A zone that is paused says that it is to stand still. */
export const unavailableZero: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const { rollout, members } = group.value.spec;
    const zones = members.zones ?? [];
    const stands = ({ name, paused }: { readonly name: string; readonly paused?: boolean | undefined }): boolean =>
      paused !== true && !isExcused(context, group, name);
    const ofZones = zones.flatMap((zone, index) => {
      if (zone.maxUnavailable !== 0 || !stands(zone)) return [];
      const message = `no pod of zone ${zone.name} may be unavailable, so no rollout of the group ${group.name} gets past it`;
      const hint = 'write 1 or more; a zone that is to stand still says paused: true';
      return [finding('RG2216', group.place(['spec', 'members', 'zones', index, 'maxUnavailable']), message, { hint })];
    });
    const isInherited =
      members.zones === undefined
        ? !isWhollyExcused(context, group)
        : zones.some((zone) => zone.maxUnavailable === undefined && stands(zone));
    if (rollout.maxUnavailable !== 0 || !isInherited) return ofZones;
    const message = `no pod may be unavailable, so no rollout of the group ${group.name} ever replaces one`;
    return [finding('RG2216', group.place(['spec', 'rollout', 'maxUnavailable']), message, { hint: pauseHint(group) }), ...ofZones];
  });

/** Members by labels have no zones that could say `paused`. */
function pauseHint({ namespace, name, value }: Group): string {
  const command = `kubectl rollout-group pause ${name} -n ${namespace}`;
  return value.spec.members.zones === undefined
    ? `write 1 or more; in a cluster a group that is to stand still is paused: ${command}`
    : `write 1 or more; zones that are to stand still say paused: true, in a cluster also ${command}`;
}

/** The same as a cap of a policy, unless exceptions let every group among the files that it binds go on. */
export const cappedAtZero: LintCheck = (context) =>
  context.policies.flatMap((policy) => {
    if (policy.value.spec.limits?.maxUnavailable !== 0) return [];
    const resolved = context.bundle.policies.filter(({ namespace, name }) => namespace === policy.namespace && name === policy.name);
    const bound = context.bundle.groups.filter((group) => policiesFor(resolved, group, context.agentNamespace).length > 0);
    if (bound.length > 0 && bound.every((group) => isWhollyExcused(context, group))) return [];
    const message = `the policy ${policy.name} lets no pod be unavailable, so no rollout of the groups that it binds replaces one`;
    const hint = 'write 1 or more; rollouts that are to stand still are held by a deny window, or by a rule with the effect hold';
    return [finding('RG2216', policy.place(['spec', 'limits', 'maxUnavailable']), message, { hint })];
  });

/** Whether a RolloutException among the files lets the zone pass its limit: then somebody decided on the zero, and on what goes all the same. */
export function isExcused({ bundle }: Pick<LintContext, 'bundle'>, group: DocumentName, zone?: string): boolean {
  return bundle.exceptions.some(
    (one) =>
      one.rule === 'zone-budget' &&
      one.namespace === group.namespace &&
      one.group === group.name &&
      (one.zone === undefined || one.zone === zone),
  );
}

function isWhollyExcused(context: LintContext, group: DocumentName): boolean {
  const zones = definitionOf(context, group)?.zones ?? [];
  return isExcused(context, group) || (zones.length > 0 && zones.every(({ name }) => isExcused(context, group, name)));
}
