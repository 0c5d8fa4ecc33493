// The content of a set of files: documents, manifests, groups and the findings of lint.
import { ruleCatalog } from '../engine/rules/catalog.ts';
import type { Finding } from '../policies/findings/finding.ts';
import { type LintOptions, lintPolicies } from '../policies/lint/lint.ts';
import type { LoadResult, PolicyFile } from '../policies/load.ts';
import type { Resolution } from '../policies/resolve/resolve.ts';

export interface PolicyFiles {
  readonly loaded: LoadResult;
  readonly resolution: Resolution;
  /** Sorted, equal to those of lint: a plan must not rest on a condition that lint refuses. */
  readonly findings: readonly Finding[];
}

/** Reads, adopts, resolves and checks. Never throws for the content of files. Objects without a namespace are in that of the options. */
export function readPolicyFiles(files: readonly PolicyFile[], options: Omit<LintOptions, 'engineRules'> = {}): PolicyFiles {
  const { load, resolution, findings } = lintPolicies(files, { ...options, engineRules: ruleCatalog.map(({ id }) => id) });
  return { loaded: load, resolution, findings };
}
