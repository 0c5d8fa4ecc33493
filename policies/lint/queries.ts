// Lint checks of the PromQL queries of gates and metric inputs.
import { type Finding, finding } from '../findings/finding.ts';
import { queryProblem } from '../integrations/promql.ts';
import type { Path, Places } from '../yaml/document.ts';
import type { LintCheck } from './context.ts';

export const checkQueries: LintCheck = ({ groups, policies }) => [
  ...groups.flatMap((group) =>
    (group.value.spec.gates ?? []).flatMap(({ name, prometheus }, index) =>
      problemsOf(group, ['spec', 'gates', index, 'prometheus', 'query'], `the gate ${name}`, prometheus?.query),
    ),
  ),
  ...policies.flatMap((policy) =>
    Object.entries(policy.value.spec.inputs?.metrics ?? {}).flatMap(([name, { query }]) =>
      problemsOf(policy, ['spec', 'inputs', 'metrics', name, 'query'], `the metric ${name}`, query),
    ),
  ),
];

function problemsOf(document: Places, path: Path, user: string, query: string | undefined): readonly Finding[] {
  const problem = query === undefined ? undefined : queryProblem(query);
  if (problem === undefined) return [];
  return [finding('RG2507', document.place(path), `the query of ${user} ${problem.message}, at character ${problem.at + 1}`)];
}
