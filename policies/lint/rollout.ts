// Checks groups and policies for lint: settings that have no effect, contradict each other, or need another setting.
import { fitsBounds } from '../bounds.ts';
import { type Finding, finding, type Place } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ApprovalSpec, ReplicasSpec } from '../schema/rollout-group.ts';
import { strategyTraits } from '../strategies.ts';
import { inspectPattern } from '../text/partition-pattern.ts';
import { counted } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachGroup, eachPolicy, type LintCheck } from './context.ts';

const findImpossibleRollbacks: LintCheck = eachGroup((group) => {
  const { strategy, onFailure } = group.value.spec.rollout;
  if (strategyTraits[strategy].canRollBack || onFailure !== 'rollback') return [];
  const message = `onFailure: rollback cannot work: the strategy ${strategy} cannot restore an earlier template`;
  return [finding('RG2204', group.place(['spec', 'rollout', 'onFailure']), message)];
});

/** Reports settings that the StatefulSet controller ignores under `partition`: it deletes the pods itself, highest ordinal first. */
const findSettingsIgnoredByController: LintCheck = eachGroup((group) => {
  const { strategy, order, rotateBy } = group.value.spec.rollout;
  if (!strategyTraits[strategy].lowersPartition) return [];
  const path = (field: string): Path => ['spec', 'rollout', field];
  const orderMessage = 'order: ascending has no effect: the StatefulSet controller starts at the highest ordinal';
  const deleteMessage = 'rotateBy: delete has no effect: the StatefulSet controller deletes pods';
  const limits = [
    [path('maxUnavailable'), group.value.spec.rollout.maxUnavailable] as const,
    ...(group.value.spec.members.zones ?? []).map(
      (zone, index) => [['spec', 'members', 'zones', index, 'maxUnavailable'], zone.maxUnavailable] as const,
    ),
  ];
  return [
    ...(order === 'ascending' ? [finding('RG2214', group.place(path('order')), orderMessage)] : []),
    ...(rotateBy === 'delete' ? [finding('RG2214', group.place(path('rotateBy')), deleteMessage)] : []),
    ...limits.flatMap(([limitPath, limit]) => {
      const place = limit === undefined || limit === 0 || limit === 1 ? undefined : group.find(limitPath);
      const message = `maxUnavailable ${limit} needs the feature gate MaxUnavailableStatefulSet: without it the StatefulSet controller replaces pods one by one`;
      return place === undefined ? [] : [finding('RG2215', place, message)];
    }),
  ];
});

const checkWaveSchedule: LintCheck = eachGroup((group) => {
  const { waves, schedule } = group.value.spec.rollout;
  if (schedule === undefined) return [];
  const at = (field?: string): Place => group.place(['spec', 'rollout', 'schedule', ...(field === undefined ? [] : [field])], 'key');
  const report = (message: string, field?: string): readonly Finding[] => [finding('RG2011', at(field), message)];
  if (waves !== undefined) return report('waves and schedule exclude each other');
  const { kind, start, step, factor } = schedule;
  const withArticle = { linear: 'a linear', geometric: 'a geometric', exponential: 'an exponential' }[kind];
  if (kind === 'linear' && step === undefined) return report('a linear schedule needs step');
  if (kind !== 'linear' && factor === undefined) return report(`${withArticle} schedule needs factor`);
  return [
    ...(kind === 'linear' && factor !== undefined ? report('factor has no effect in a linear schedule', 'factor') : []),
    ...(kind !== 'linear' && step !== undefined ? report(`step has no effect in ${withArticle} schedule`, 'step') : []),
    ...(start === 0 ? report('start must be at least one pod', 'start') : []),
    ...(step === 0 ? report('step must be at least one pod', 'step') : []),
    // Rounding removes the error of the floating-point product.
    ...(factor !== undefined && !Number.isInteger(Math.round(factor * 1e6) / 1e5)
      ? report(`the factor ${factor} has too many decimals: at most one is allowed`, 'factor')
      : []),
  ];
});

function replicasOf(group: Loaded<'RolloutGroup'>): readonly (readonly [ReplicasSpec, Path])[] {
  const { replicas, members } = group.value.spec;
  const ofZones = (members.zones ?? []).map((zone, index) => [zone.replicas, ['spec', 'members', 'zones', index, 'replicas']] as const);
  return [[replicas, ['spec', 'replicas']] as const, ...ofZones].flatMap(([spec, path]) => (spec ? [[spec, path] as const] : []));
}

/** Reports `fieldPath` without `read: fieldPath`, and `read: fieldPath` without `fieldPath`. */
const checkMirroredField: LintCheck = eachGroup((group) =>
  replicasOf(group).flatMap(([{ mirror }, path]) => {
    const from = mirror?.from;
    if (!from || (from.read === 'fieldPath') === (from.fieldPath !== undefined)) return [];
    const place = group.place([...path, 'mirror', 'from', from.fieldPath ? 'fieldPath' : 'read'], 'key');
    return [
      finding('RG2011', place, from.fieldPath ? 'fieldPath has no effect: read is not fieldPath' : 'read: fieldPath needs fieldPath'),
    ];
  }),
);

const checkDisruptionBudget: LintCheck = eachGroup((group) => {
  const { maxUnavailable, maxUnavailablePercent = 0, partition } = group.value.spec.disruption ?? {};
  const place = group.place(['spec', 'disruption', 'maxUnavailablePercent'], 'key');
  if (maxUnavailable !== undefined && group.find(['spec', 'disruption', 'maxUnavailablePercent'])) {
    return [finding('RG2011', place, 'maxUnavailable and maxUnavailablePercent exclude each other')];
  }
  // The pods of such a partition are in several zones, so a percentage would have no clear total.
  if (partition && maxUnavailablePercent > 0)
    return [finding('RG2011', place, 'maxUnavailablePercent is not allowed with partition: use maxUnavailable')];
  return [];
});

const checkPartitionPattern: LintCheck = eachGroup((group) => {
  const { partition } = group.value.spec.disruption ?? {};
  if (!partition) return [];
  const path: Path = ['spec', 'disruption', 'partition'];
  const inspected = inspectPattern(partition.pattern);
  if ('problem' in inspected) return [finding('RG2212', group.place([...path, 'pattern']), `the pattern ${inspected.problem}`)];
  if (partition.group <= inspected.groupCount) return [];
  const message = `the capture group ${partition.group} does not exist: the pattern has ${counted(inspected.groupCount, 'capture group')}`;
  return [finding('RG2213', group.find([...path, 'group']) ?? group.place([...path, 'pattern']), message)];
});

type Bounds = NonNullable<ReplicasSpec['bounds']>;

const checkReplicaBounds: LintCheck = eachGroup((group) => {
  return replicasOf(group).flatMap(([replicas, path]) => boundsFindings(group, replicas, path));
});

const checkPolicyBounds: LintCheck = eachPolicy((policy) => {
  const { minReplicas, maxReplicas } = policy.value.spec.limits ?? {};
  if (minReplicas === undefined || maxReplicas === undefined || minReplicas <= maxReplicas) return [];
  const message = `minReplicas ${minReplicas} is above maxReplicas ${maxReplicas}`;
  return [finding('RG2208', policy.place(['spec', 'limits', 'minReplicas']), message)];
});

function boundsFindings(group: Loaded<'RolloutGroup'>, { bounds, count }: ReplicasSpec, path: Path): readonly Finding[] {
  if (!bounds) return [];
  const { min, max } = bounds;
  if (min !== undefined && max !== undefined && min > max) {
    return [finding('RG2208', group.place([...path, 'bounds', 'min']), `min ${min} is above max ${max}`)];
  }
  if (!allowsAny(bounds)) {
    const message = `the bounds allow no replica count: no number is ${boundsText(bounds)}`;
    return [finding('RG2210', group.place([...path, 'bounds'], 'key'), message)];
  }
  if (count === undefined || allows(bounds, count)) return [];
  const message = `count ${count} is outside its bounds: it must be ${boundsText(bounds)}`;
  return [finding('RG2209', group.place([...path, 'count']), message)];
}

function allows(bounds: Bounds, count: number): boolean {
  const { min = 0, max = Number.POSITIVE_INFINITY } = bounds;
  return count >= min && count <= max && fitsBounds(count, bounds);
}

/**
 * Returns whether the bounds allow at least one count, or with `odd` at least one count above 0, because `odd` always allows 0. If the
 * first two multiples have the wrong parity, then all multiples have the wrong parity.
 */
function allowsAny(bounds: Bounds): boolean {
  const least = Math.max(bounds.min ?? 0, bounds.parity === 'odd' ? 1 : 0);
  const first = Math.ceil(least / bounds.multipleOf) * bounds.multipleOf;
  return allows(bounds, first) || allows(bounds, first + bounds.multipleOf);
}

function boundsText({ min, max, multipleOf, parity }: Bounds): string {
  const range = min === undefined ? `${max} or less` : max === undefined ? `${min} or more` : `from ${min} to ${max}`;
  return [
    ...(min === undefined && max === undefined ? [] : [range]),
    ...(multipleOf === 1 ? [] : [`a multiple of ${multipleOf}`]),
    ...(parity === 'any' ? [] : [parity]),
  ].join(' and ');
}

/** Reports `onPolicyDeleted: release` under a strategy that keeps no partition: a release lowers the partition and has no other effect. */
const findReleaseWithoutEffect: LintCheck = eachGroup((group) => {
  const { strategy, onPolicyDeleted } = group.value.spec.rollout;
  if (strategyTraits[strategy].holdsPartition || onPolicyDeleted !== 'release') return [];
  const place = group.place(['spec', 'rollout', 'onPolicyDeleted'], 'key');
  const message = `onPolicyDeleted: release has no effect: under the strategy ${strategy} outdated pods wait until they are deleted`;
  return [finding('RG2205', place, message)];
});

/** Reports each user group that may approve, because lint cannot check whether the group exists. */
const findApproverGroups: LintCheck = ({ groups, policies }) => [
  ...groups.flatMap((group) =>
    (group.value.spec.rollout.waves ?? []).flatMap((wave, index) =>
      (['before', 'after'] as const).flatMap((part) =>
        approverFindings(group, wave[part]?.approval, ['spec', 'rollout', 'waves', index, part, 'approval', 'from']),
      ),
    ),
  ),
  ...policies.flatMap((policy: Loaded<'RolloutPolicy'>) =>
    (policy.value.spec.rules ?? []).flatMap((rule, index) =>
      approverFindings(policy, rule.approval, ['spec', 'rules', index, 'approval', 'from']),
    ),
  ),
];

function approverFindings(document: Places, approval: Pick<ApprovalSpec, 'from'> | undefined, path: Path): readonly Finding[] {
  return (approval?.from ?? []).map((name, index) =>
    finding('RG2206', document.place([...path, index]), `the user group ${name} cannot be checked: only the cluster knows its user groups`),
  );
}

export const rolloutChecks: readonly LintCheck[] = [
  findImpossibleRollbacks,
  findSettingsIgnoredByController,
  checkWaveSchedule,
  checkMirroredField,
  checkDisruptionBudget,
  checkPartitionPattern,
  checkReplicaBounds,
  checkPolicyBounds,
  findReleaseWithoutEffect,
  findApproverGroups,
];
