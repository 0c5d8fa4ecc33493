// Settings of a group that exclude or need each other.

import { type Finding, finding, type Place } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ReplicasSpec } from '../schema/rollout-group.ts';
import { strategyTraits } from '../strategies.ts';
import { inspectPattern } from '../text/partition-pattern.ts';
import { counted } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { eachGroup, type LintCheck } from './context.ts';

export const rollbackWithoutRevisions: LintCheck = eachGroup((group) => {
  const { strategy, onFailure } = group.value.spec.rollout;
  if (strategyTraits[strategy].canRollBack || onFailure !== 'rollback') return [];
  return [finding('RG2204', group.place(['spec', 'rollout', 'onFailure']), `the strategy ${strategy} cannot roll back`)];
});

/** What the StatefulSet controller does in its own way, whatever the group says: it deletes, from the highest ordinal down, one pod after the other. */
export const settingsOfTheController: LintCheck = eachGroup((group) => {
  const { strategy, order } = group.value.spec.rollout;
  if (!strategyTraits[strategy].lowersPartition) return [];
  const path = (field: string): Path => ['spec', 'rollout', field];
  // What a server gives back has every default written out, which nobody asked for.
  const isFromServer = group.find(['metadata', 'uid']) !== undefined;
  const rotateBy = isFromServer ? undefined : group.find(path('rotateBy'), 'key');
  const inOrder = 'a partition moves down, so that the highest ordinal goes first';
  const limits = [
    [path('maxUnavailable'), group.value.spec.rollout.maxUnavailable] as const,
    ...(group.value.spec.members.zones ?? []).map(
      (zone, index) => [['spec', 'members', 'zones', index, 'maxUnavailable'], zone.maxUnavailable] as const,
    ),
  ];
  return [
    ...(order === 'ascending' ? [finding('RG2214', group.place(path('order')), inOrder)] : []),
    ...(rotateBy === undefined ? [] : [finding('RG2214', rotateBy, 'the StatefulSet controller deletes pods, whatever rotateBy says')]),
    ...limits.flatMap(([place, limit]) =>
      limit === undefined || limit === 1 || group.find(place) === undefined
        ? []
        : [
            finding(
              'RG2215',
              group.place(place),
              `of the ${limit} pods that may be down the StatefulSet controller replaces one after the other`,
            ),
          ],
    ),
  ];
});

export const wavesAndSchedule: LintCheck = eachGroup((group) => {
  const { waves, schedule } = group.value.spec.rollout;
  if (schedule === undefined) return [];
  const at = (field?: string): Place => group.place(['spec', 'rollout', 'schedule', ...(field === undefined ? [] : [field])], 'key');
  const refuse = (message: string, field?: string): readonly Finding[] => [finding('RG2011', at(field), message)];
  if (waves !== undefined) return refuse('a rollout has waves or a schedule that makes waves, not both');
  const { kind, start, step, factor } = schedule;
  const named = { linear: 'a linear', geometric: 'a geometric', exponential: 'an exponential' }[kind];
  if (kind === 'linear' && step === undefined) return refuse('a linear schedule needs step');
  if (kind !== 'linear' && factor === undefined) return refuse(`${named} schedule needs factor`);
  return [
    ...(kind === 'linear' && factor !== undefined ? refuse('factor has no effect in a linear schedule', 'factor') : []),
    ...(kind !== 'linear' && step !== undefined ? refuse(`step has no effect in ${named} schedule`, 'step') : []),
    ...(start === 0 ? refuse('a schedule starts with one pod at least', 'start') : []),
    ...(step === 0 ? refuse('a step is one pod at least', 'step') : []),
    ...(factor !== undefined && !Number.isInteger(Math.round(factor * 1e6) / 1e5)
      ? refuse(`the factor ${factor} has more than one decimal`, 'factor')
      : []),
  ];
});

/** `fieldPath` and `read: fieldPath` come together. */
export const mirroredField: LintCheck = eachGroup((group) => {
  const { replicas, members } = group.value.spec;
  const ofZones = (members.zones ?? []).map((zone, index) => [zone.replicas, ['spec', 'members', 'zones', index, 'replicas']] as const);
  return [[replicas, ['spec', 'replicas']] as const, ...ofZones].flatMap(([spec, path]) => mirrorFindings(group, spec, path));
});

function mirrorFindings(group: Loaded<'RolloutGroup'>, replicas: ReplicasSpec | undefined, path: Path): readonly Finding[] {
  const from = replicas?.mirror?.from;
  if (!from || (from.read === 'fieldPath') === (from.fieldPath !== undefined)) return [];
  const place = group.place([...path, 'mirror', 'from', from.fieldPath ? 'fieldPath' : 'read'], 'key');
  const message = from.fieldPath ? 'fieldPath is only read with read: fieldPath' : 'read: fieldPath needs the field in fieldPath';
  return [finding('RG2011', place, message)];
}

export const disruptionBudget: LintCheck = eachGroup((group) => {
  const { maxUnavailable, maxUnavailablePercent = 0, partition } = group.value.spec.disruption ?? {};
  const place = group.place(['spec', 'disruption', 'maxUnavailablePercent'], 'key');
  if (maxUnavailable !== undefined && group.find(['spec', 'disruption', 'maxUnavailablePercent'])) {
    return [finding('RG2011', place, 'the budget is a number or a percentage, not both')];
  }
  // Pods of a partition are few and spread over zones: a percentage of what would be anybody's guess.
  if (partition && maxUnavailablePercent > 0) return [finding('RG2011', place, 'a budget by partition takes a number, not a percentage')];
  return [];
});

export const partitionPattern: LintCheck = eachGroup((group) => {
  const { partition } = group.value.spec.disruption ?? {};
  if (!partition) return [];
  const path: Path = ['spec', 'disruption', 'partition'];
  const inspected = inspectPattern(partition.pattern);
  if ('problem' in inspected) return [finding('RG2212', group.place([...path, 'pattern']), `the pattern ${inspected.problem}`)];
  if (partition.group <= inspected.groupCount) return [];
  const message = `the pattern has ${counted(inspected.groupCount, 'capture group')}, group ${partition.group} is asked for`;
  return [finding('RG2213', group.find([...path, 'group']) ?? group.place([...path, 'pattern']), message)];
});
