// Runs all lint checks on policy files and the manifests among them.
import { adoptGroups } from '../adopt/adopt.ts';
import type { AdoptionFinding } from '../adopt/statefulset.ts';
import { type Finding, finding, objectPlace, type Place, sortFindings } from '../findings/finding.ts';
import { type LoadOptions, type LoadResult, loadPolicies, type Manifest, type PolicyFile } from '../load.ts';
import { usualAgentNamespace } from '../objects/agent-deployment.ts';
import { ofKind, type Resolution, resolvePolicies, statefulSetsOf } from '../resolve/resolve.ts';
import { definitionOf, type LintCheck, type LintInput, lintContext } from './context.ts';
import { exceptionChecks } from './exceptions.ts';
import { integrationChecks } from './integrations.ts';
import { zeroLimitChecks } from './limits.ts';
import { manifestChecks } from './manifests.ts';
import { memberChecks } from './members.ts';
import { policyChecks } from './policies.ts';
import { rolloutChecks } from './rollout.ts';
import { waveChecks } from './waves.ts';

const lintChecks: readonly LintCheck[] = [
  ...memberChecks,
  ...manifestChecks,
  ...zeroLimitChecks,
  ...rolloutChecks,
  ...waveChecks,
  ...policyChecks,
  ...exceptionChecks,
  ...integrationChecks,
];

export interface LintOptions extends LoadOptions {
  /** The namespace whose policies may name other namespaces; default `usualAgentNamespace`. */
  readonly agentNamespace?: string;
  /** The ids of all rules of the engine. If undefined, lint checks only the rules of policies that exceptions name. */
  readonly engineRules?: readonly string[];
}

interface ResolvedFiles {
  readonly loaded: LoadResult;
  readonly adoption: ReturnType<typeof adoptGroups>;
  readonly resolution: Resolution;
}

interface LintResult extends ResolvedFiles {
  /** The findings of loading, resolving, adoption and lint checks, in the order of files and lines. */
  readonly findings: readonly Finding[];
}

/** Runs every check on loaded and resolved documents, from files or from a cluster. */
export function checkDocuments(input: LintInput): readonly Finding[] {
  const context = lintContext(input);
  return lintChecks.flatMap((check) => check(context));
}

/** Loads and resolves policy files together with the manifests among them, without checks. Never throws. */
export function resolveFiles(files: readonly PolicyFile[], options: LoadOptions): ResolvedFiles {
  const loaded = loadPolicies(files, options);
  const statefulSets = statefulSetsOf(loaded.manifests);
  const adoption = adoptGroups(
    loaded.manifests.map((manifest) => manifest.value),
    options,
  );
  const hasManifests = statefulSets.length > 0;
  return { loaded, adoption, resolution: resolvePolicies(loaded.documents, { adoption, ...(hasManifests ? { statefulSets } : {}) }) };
}

/** Loads, resolves and checks policy files together with the manifests among them. Never throws. */
export function lintPolicies(files: readonly PolicyFile[], options: LintOptions = {}): LintResult {
  const resolved = resolveFiles(files, options);
  const { loaded: load, adoption, resolution } = resolved;
  // A written group replaces an adopted group with the same members, so adoption findings about these members do not apply.
  const written = ofKind(load.documents, 'RolloutGroup').flatMap((group) => definitionOf(resolution, group) ?? []);
  const defined = new Set(written.flatMap((group) => group.zones.map((zone) => `StatefulSet ${group.namespace}/${zone.statefulSet}`)));
  const findings = [
    ...load.findings,
    ...resolution.findings,
    ...adoptionFindings(adoption.findings, load.manifests).filter(({ object }) => !object || !defined.has(object)),
    ...checkDocuments({
      load,
      bundle: resolution.bundle,
      statefulSets: statefulSetsOf(load.manifests),
      agentNamespace: options.agentNamespace ?? usualAgentNamespace,
      engineRules: options.engineRules,
    }),
  ];
  return { ...resolved, findings: sortFindings(findings) };
}

/** Returns the findings of adoption with places from the manifests. A finding of an object without a manifest names the object. */
export function adoptionFindings(findings: readonly AdoptionFinding[], manifests: readonly Manifest[]): readonly Finding[] {
  return findings.map((one) => {
    const manifest = manifests.find((candidate) => `${candidate.kind} ${candidate.namespace}/${candidate.name}` === one.object);
    return finding(one.code, manifest ? fieldPlace(manifest, one) : objectPlace(one.object, [one.field]), one.message);
  });
}

function fieldPlace(manifest: Manifest, { object, field }: AdoptionFinding): Place {
  const paths = [['metadata', 'annotations', field], ['metadata', 'labels', field], field.split('.')];
  const [place = manifest.place(['metadata', 'name'])] = paths.flatMap((path) => manifest.find(path) ?? []);
  return { ...place, object };
}
