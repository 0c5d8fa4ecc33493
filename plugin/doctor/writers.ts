// Checks for other writers of the fields that the agent writes: operators, autoscalers and GitOps tools.
import { driftedFields, driftText } from '../../engine/diff/field-writers.ts';
import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { instantText } from '../../policies/instant.ts';
import { listed } from '../../policies/wording.ts';
import { gitOpsOwner } from '../source/cluster/git-ops-owner.ts';
import { keptLeases } from './agent.ts';
import { type AutoscalerFact, type Check, check, isMember, type Outcome, orOk, result } from './check.ts';

/** Reports each running grafana/rollout-operator: as a failure if an agent holds a Lease, otherwise as a warning. */
export const otherOperator: Check = check('operators', ['operators'], (facts) => {
  const { operators } = facts;
  const running = operators.filter(({ replicas }) => replicas > 0);
  const hasAgent = keptLeases(facts).length > 0;
  return orOk(
    running.map(({ namespace, name, image }) => {
      const message = `Deployment ${namespace}/${name} runs ${image}${hasAgent ? ' next to the agent' : ''}`;
      return result(hasAgent ? 'FAIL' : 'warn', message, 'RG6008');
    }),
    'grafana/rollout-operator is not running',
  );
});

function agentWritesReplicas(zone: ZoneDefinition): boolean {
  return zone.follows !== undefined || zone.replicas.kind !== 'leader';
}

export const autoscaledMembers: Check = check('HPA', ['groups', 'autoscalers'], ({ autoscalers, groups, unread }) => {
  const results = groups.flatMap((group): readonly Outcome[] => {
    const scaled = group.zones.flatMap((zone) => scalersOf(autoscalers, group, zone).map((scaler) => ({ zone, scaler })));
    const written = scaled.filter(({ zone }) => agentWritesReplicas(zone));
    const wrong = written.map(({ zone, scaler }) => {
      const message = `${scaler.kind} ${scaler.namespace}/${scaler.name} scales ${zone.statefulSet}, whose replicas the agent writes`;
      return result('FAIL', message, 'RG6009');
    });
    const names = [...new Set(scaled.map(({ scaler }) => `${scaler.kind} ${scaler.name}`))];
    if (names.length < 2) return wrong;
    const message = `${group.namespace}/${group.name} is scaled by ${listed(names, 'and')}; each decides alone`;
    return [...wrong, result('FAIL', message, 'RG6010')];
  });
  return orOk(results, 'no autoscaler scales a StatefulSet whose replicas the agent writes', unread?.autoscalers);
});

/** Returns the autoscalers of a zone. ScaledObjects count only in a zone without HorizontalPodAutoscaler, because KEDA creates one for each. */
function scalersOf(
  all: readonly AutoscalerFact[],
  { namespace }: GroupDefinition,
  { statefulSet }: ZoneDefinition,
): readonly AutoscalerFact[] {
  const found = all.filter((one) => one.namespace === namespace && one.target.kind === 'StatefulSet' && one.target.name === statefulSet);
  const direct = found.filter(({ kind }) => kind === 'HorizontalPodAutoscaler');
  return direct.length > 0 ? direct : found;
}

/** Reports members with fields that another manager wrote than the managers that apply manifests. */
export const drift: Check = check('drift', ['groups'], ({ groups, sets, statefulSets }) => {
  const members = sets.filter((set) => groups.some((group) => isMember(group, set)));
  const results = members.flatMap((set): readonly Outcome[] => {
    const text = driftText([set]);
    if (text === undefined) return [];
    const object = statefulSets.find(({ metadata }) => metadata.namespace === set.namespace && metadata.name === set.name);
    const latestMs = Math.max(...driftedFields(object).map(({ atMs = 0 }) => atMs));
    const latest = latestMs > 0 ? ` (last write: ${instantText(latestMs)})` : '';
    return [result('warn', `${set.namespace}/${set.name}: ${text}${latest}`, 'RG6029')];
  });
  return orOk(results, 'no manager wrote fields of a member besides the managers that apply its manifest');
});

/** Reports groups whose zones request different images, as their agent published it. */
export const zoneImages: Check = check('images', ['published'], ({ published }) => {
  const results = published.flatMap(({ namespace, group, warnings = [] }) =>
    warnings.filter(({ rule }) => rule === 'zone-images').map(({ fact }) => result('warn', `${namespace}/${group}: ${fact}`, 'RG6030')),
  );
  return orOk(results, 'the zones of each group request the same images, or a rollout is in progress');
});

/** Reports GitOps tools that own replicas which the agent writes: each sync would set them back to the value in Git. */
export const replicasInGit: Check = check('GitOps', ['groups'], ({ groups, statefulSets }) => {
  const results = groups.flatMap(({ namespace, zones }) =>
    zones.filter(agentWritesReplicas).flatMap(({ statefulSet }): readonly Outcome[] => {
      const owner = gitOpsOwner(statefulSets.find(({ metadata }) => metadata.namespace === namespace && metadata.name === statefulSet));
      if (owner === undefined || !owner.ownsReplicas) return [];
      const of = owner.of === undefined ? '' : ` (${owner.of})`;
      const message = `${owner.tool}${of} owns spec.replicas of ${namespace}/${statefulSet}`;
      return [result('FAIL', message, 'RG6011')];
    }),
  );
  return orOk(results, 'no GitOps tool owns replicas that the agent writes');
});
