// Lint notices: fields without effect, and names that only the agent can check.

import { type Finding, finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ApprovalSpec } from '../schema/rollout-group.ts';
import { strategyTraits } from '../strategies.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachGroup, type LintCheck } from './context.ts';

/** Reports `onPolicyDeleted: release` for strategies without a partition, where there is nothing to release. */
export const findFieldsWithoutEffect: LintCheck = eachGroup((group) => {
  const { strategy, onPolicyDeleted } = group.value.spec.rollout;
  if (strategyTraits[strategy].holdsPartition || onPolicyDeleted !== 'release') return [];
  const place = group.place(['spec', 'rollout', 'onPolicyDeleted'], 'key');
  return [
    finding(
      'RG2205',
      place,
      `onPolicyDeleted: release has no effect: under the strategy ${strategy} outdated pods wait until they are deleted`,
    ),
  ];
});

/** Reports the user groups that may approve: only the cluster knows whether they exist. */
export const findApproverGroups: LintCheck = ({ groups, policies }) => [
  ...groups.flatMap((group) =>
    (group.value.spec.rollout.waves ?? []).flatMap((wave, index) =>
      (['before', 'after'] as const).flatMap((part) =>
        approvers(group, wave[part]?.approval, ['spec', 'rollout', 'waves', index, part, 'approval', 'from']),
      ),
    ),
  ),
  ...policies.flatMap((policy: Loaded<'RolloutPolicy'>) =>
    (policy.value.spec.rules ?? []).flatMap((rule, index) =>
      approvers(policy, rule.approval, ['spec', 'rules', index, 'approval', 'from']),
    ),
  ),
];

function approvers(document: Places, approval: Pick<ApprovalSpec, 'from'> | undefined, path: Path): readonly Finding[] {
  return (approval?.from ?? []).map((name, index) =>
    finding('RG2206', document.place([...path, index]), `the user group ${name} cannot be checked: only the cluster knows its user groups`),
  );
}
