// Parses policy files and manifests for the verbs, and returns their documents, groups and lint findings.
import { ruleCatalog } from '../engine/rules/catalog.ts';
import type { Finding } from '../policies/findings/finding.ts';
import { type LintOptions, lintPolicies } from '../policies/lint/lint.ts';
import type { LoadResult, PolicyFile } from '../policies/load.ts';
import type { Resolution } from '../policies/resolve/resolve.ts';

export interface PolicyFiles {
  readonly loaded: LoadResult;
  readonly resolution: Resolution;
  /** The findings that `lint` would report, sorted. A command stops at an error, so no plan depends on an invalid condition. */
  readonly findings: readonly Finding[];
}

/** Parses and checks files. Invalid content causes findings, never an exception. Objects without a namespace get `options.namespace`. */
export function readPolicyFiles(files: readonly PolicyFile[], options: Omit<LintOptions, 'engineRules'> = {}): PolicyFiles {
  const { load, resolution, findings } = lintPolicies(files, { ...options, engineRules: ruleCatalog.map(({ id }) => id) });
  return { loaded: load, resolution, findings };
}
