// Policy files as short texts, and what lint finds in one.
import { type LintOptions, lintPolicies } from '../../policies/lint/lint.ts';

/** Errors and warnings as `line:column code`; notices are left out. */
export function problems(text: string, options: LintOptions = {}): readonly string[] {
  const { findings } = lintPolicies([{ name: 'policy.yaml', text }], { namespace: 'mimir', ...options });
  return findings.filter((one) => one.severity !== 'notice').map((one) => `${one.line}:${one.column} ${one.code}`);
}

export const header = (kind: string, name: string) =>
  `apiVersion: rollout-group.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec:\n`;

export const group = (rest: string, zones = ['a', 'b'], name = 'ingester') =>
  `${header('RolloutGroup', name)}  members: { zones: [${zones.map((zone) => `{ name: ${zone}, statefulSet: ${name}-${zone} }`).join(', ')}] }\n${rest}`;

export const onDelete = '  rollout: { strategy: onDelete }\n';
export const waves = (...list: string[]) =>
  `  rollout:\n    strategy: onDelete\n    waves:\n${list.map((wave) => `      - { ${wave} }\n`).join('')}`;
export const policy = (rest: string, name = 'safety', targets = 'groups: [ingester]') =>
  `---\n${header('RolloutPolicy', name)}  targets: { ${targets} }\n${rest}`;
export const set = (name: string, labels = '') =>
  `---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: ${name}, labels: { ${labels} } }\n`;
