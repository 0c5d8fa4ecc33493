// Parses policy files and manifests for the verbs, and returns their documents, groups and lint findings.
import { ruleCatalog } from '../engine/rules/catalog.ts';
import { type LintOptions, lintPolicies } from '../policies/lint/lint.ts';
import type { PolicyFile } from '../policies/load.ts';

export type PolicyFiles = ReturnType<typeof lintPolicies>;

/**
 * Parses and checks files, as `lint` does. Commands that plan stop at an error, so no plan depends on an invalid condition. Invalid
 * content causes findings, never an exception. Objects without a namespace get `options.namespace`.
 */
export function readPolicyFiles(files: readonly PolicyFile[], options: Omit<LintOptions, 'engineRules'> = {}): PolicyFiles {
  return lintPolicies(files, { ...options, engineRules: ruleCatalog.map(({ id }) => id) });
}
