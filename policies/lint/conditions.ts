// Lint checks of the conditions of rules and gates, and of the variables in messages.
import { type ConditionProblem, checkCondition, checkMessage } from '../condition/check.ts';
import type { ConditionType } from '../condition/types.ts';
import { gateVariables, ruleVariables } from '../condition/variables.ts';
import { type Finding, finding } from '../findings/finding.ts';
import { lowerFirst } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';
import { eachGroup, eachPolicy, type LintCheck } from './context.ts';

export const checkRuleConditions: LintCheck = eachPolicy((policy) => {
  const variables = ruleVariables(Object.keys(policy.value.spec.inputs?.metrics ?? {}));
  return (policy.value.spec.rules ?? []).flatMap((rule, index) => [
    ...(rule.when === undefined ? [] : conditionFindings(policy, ['spec', 'rules', index, 'when'], rule.when, variables)),
    ...messageFindings(policy, ['spec', 'rules', index, 'message'], rule.message ?? '', variables),
  ]);
});

export const checkGateConditions: LintCheck = eachGroup((group) =>
  (group.value.spec.gates ?? []).flatMap(({ pass }, index) =>
    pass === undefined ? [] : conditionFindings(group, ['spec', 'gates', index, 'pass'], pass, gateVariables),
  ),
);

function conditionFindings(document: Places, path: Path, condition: unknown, variables: ConditionType): readonly Finding[] {
  return checkCondition(condition, { variables }).map((problem) => {
    const part = problem.code === 'RG3001' || problem.code === 'RG3002' ? 'key' : 'value';
    return finding(problem.code, document.place([...path, ...problem.path], part), lowerFirst(problem.message), { hint: hintOf(problem) });
  });
}

function messageFindings(document: Places, path: Path, message: string, variables: ConditionType): readonly Finding[] {
  return checkMessage(message, { variables }).map((problem) =>
    finding(problem.code, document.place(path), lowerFirst(problem.message), { hint: hintOf(problem) }),
  );
}

function hintOf({ hint }: ConditionProblem): string | undefined {
  return hint?.replace(/\?$/, '');
}
