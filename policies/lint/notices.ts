// What a reader should know though nothing is wrong: fields without effect so far, and names that only the agent can look up.
import { type Finding, finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ApprovalSpec } from '../schema/rollout-group.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachGroup, type LintCheck } from './context.ts';

const idleFields: readonly Path[] = [['spec', 'rollout', 'onPolicyDeleted']];

export const fieldsWithoutEffect: LintCheck = eachGroup((group) => {
  return idleFields.flatMap((path) => {
    const place = group.find(path, 'key');
    return place ? [finding('RG2205', place, `nothing acts on ${path.slice(1).join('.')} yet`)] : [];
  });
});

/** Groups of the authenticator whose members may approve. */
export const approverGroups: LintCheck = ({ groups, policies }) => [
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
    finding('RG2206', document.place([...path, index]), `only the authenticator knows the group ${name}`),
  );
}
