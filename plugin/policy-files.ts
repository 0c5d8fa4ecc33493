// Everything that a set of files says together: documents, manifests, groups, and what lint finds in all of them.
import { ruleCatalog } from '../engine/rules/catalog.ts';
import type { Finding } from '../policies/findings/finding.ts';
import { type LintOptions, lintPolicies } from '../policies/lint/lint.ts';
import type { LoadResult, PolicyFile } from '../policies/load.ts';
import type { Resolution } from '../policies/resolve/resolve.ts';

export interface PolicyFiles {
  readonly loaded: LoadResult;
  readonly resolution: Resolution;
  /** Sorted, the same that lint reports: a plan must not rest on a condition that lint would refuse. */
  readonly findings: readonly Finding[];
}

/** Reads, adopts, resolves and checks; never throws for what is in the files. Objects that name no namespace are in that of the options. */
export function readPolicyFiles(files: readonly PolicyFile[], options: Omit<LintOptions, 'engineRules'> = {}): PolicyFiles {
  const { load, resolution, findings } = lintPolicies(files, { ...options, engineRules: ruleCatalog.map(({ id }) => id) });
  return { loaded: load, resolution, findings };
}
