// Reads a set of files: documents, manifests, groups and the findings of lint.
import { ruleCatalog } from '../engine/rules/catalog.ts';
import type { Finding } from '../policies/findings/finding.ts';
import { type LintOptions, lintPolicies } from '../policies/lint/lint.ts';
import type { LoadResult, PolicyFile } from '../policies/load.ts';
import type { Resolution } from '../policies/resolve/resolve.ts';

export interface PolicyFiles {
  readonly loaded: LoadResult;
  readonly resolution: Resolution;
  /** The sorted findings, equal to those of lint: a plan must not depend on a condition that lint rejects. */
  readonly findings: readonly Finding[];
}

/** Reads and checks files. Never throws for their content. An object without a namespace gets the namespace of the options. */
export function readPolicyFiles(files: readonly PolicyFile[], options: Omit<LintOptions, 'engineRules'> = {}): PolicyFiles {
  const { load, resolution, findings } = lintPolicies(files, { ...options, engineRules: ruleCatalog.map(({ id }) => id) });
  return { loaded: load, resolution, findings };
}
