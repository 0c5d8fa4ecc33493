// Everything that a set of files says together: documents, manifests, adopted groups, and the findings about all of them.
import { type Adoption, adoptGroups } from '../policies/adopt.ts';
import { type Finding, sortFindings } from '../policies/finding.ts';
import { adoptionFindings } from '../policies/lint/adoption.ts';
import { type LoadResult, loadPolicies, type PolicyFile } from '../policies/load.ts';
import { type Resolution, resolvePolicies, statefulSetsOf } from '../policies/resolve.ts';

export interface PolicyFiles {
  readonly loaded: LoadResult;
  readonly adoption: Adoption;
  readonly resolution: Resolution;
  /** Sorted, of reading, adopting and resolving. */
  readonly findings: readonly Finding[];
}

/** Reads, adopts and resolves; never throws for what is in the files. */
export function readPolicyFiles(files: readonly PolicyFile[]): PolicyFiles {
  const loaded = loadPolicies(files);
  const adoption = adoptGroups(loaded.manifests.map(({ value }) => value));
  const statefulSets = statefulSetsOf(loaded.manifests);
  // Without a single StatefulSet the files are policies alone, and nothing can be said about which ones exist.
  const resolution = resolvePolicies(loaded.documents, { adoption, ...(statefulSets.length === 0 ? {} : { statefulSets }) });
  const findings = sortFindings([...loaded.findings, ...adoptionFindings(adoption.findings, loaded.manifests), ...resolution.findings]);
  return { loaded, adoption, resolution, findings };
}
