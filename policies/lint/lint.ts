// The list of lint checks, and `lintPolicies`, which runs them on policy files.
import { adoptGroups } from '../adopt/adopt.ts';
import { type Finding, sortFindings } from '../findings/finding.ts';
import { type LoadOptions, type LoadResult, loadPolicies, type PolicyFile } from '../load.ts';
import { usualAgentNamespace } from '../objects/agent-deployment.ts';
import { ofKind, type Resolution, resolvePolicies, statefulSetsOf } from '../resolve/resolve.ts';
import { adoptionFindings } from './adoption.ts';
import { checkPolicyBounds, checkReplicaBounds } from './bounds.ts';
import { checkChannels, checkChannelUses, findDuplicateChannels } from './channels.ts';
import { checkGateConditions, checkRuleConditions } from './conditions.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';
import {
  checkExceptionTargets,
  checkIntentTargets,
  findExceptionsNeverInForce,
  findExceptionsWithoutEffect,
  findOverlappingExceptions,
  findUnknownRules,
} from './exceptions.ts';
import { findDuplicateGates, findGatesWithoutCondition, findProbesBeforeFirstWave, findUnusedGates } from './gates.ts';
import { findAutoscaledMembers, findWrongUpdateStrategies } from './manifests.ts';
import {
  findMissingStatefulSets,
  findOverlappingSelectors,
  findSelectorsWithoutExpectation,
  findSharedMembers,
  findUnusableSelectors,
} from './members.ts';
import { checkSources, checkSourceUses } from './metric-sources.ts';
import { findApproverGroups, findFieldsWithoutEffect } from './notices.ts';
import {
  checkRuleApprovals,
  findDuplicateRules,
  findEmptyPolicies,
  findForeignNamespaces,
  findLimitsWithoutEffect,
  findUnknownTargets,
} from './policies.ts';
import { checkQueries } from './queries.ts';
import {
  checkDisruptionBudget,
  checkMirroredField,
  checkPartitionPattern,
  checkWaveSchedule,
  findImpossibleRollbacks,
  findSettingsIgnoredByController,
} from './rollout.ts';
import { findGroupsInOtherNamespace, findStatefulSetsWithoutGroup } from './stray-statefulsets.ts';
import {
  findApprovalAfterLastWave,
  findDuplicateWaves,
  findEmptyFirstWaves,
  findShrinkingWaves,
  findUnfinishedZones,
  findUnknownGatesInWaves,
  findUnknownZonesInWaves,
} from './waves.ts';
import { checkWindowTimes, findDisjointWindows } from './windows.ts';
import { findBudgetsOfZero } from './zero-budgets.ts';
import { findPoliciesOfZero, findZeroMaxUnavailable } from './zero-limits.ts';
import {
  findDelayInSingleZone,
  findDuplicateZones,
  findFollowersWithReplicas,
  findForcedReplicas,
  findLeaderCycles,
  findUnknownLeaders,
} from './zones.ts';

/** Every check, in the order of the table of codes. */
const lintChecks: readonly LintCheck[] = [
  findSharedMembers,
  findDuplicateZones,
  findUnknownLeaders,
  findLeaderCycles,
  findFollowersWithReplicas,
  findUnknownZonesInWaves,
  findUnknownGatesInWaves,
  findDuplicateWaves,
  findDuplicateGates,
  findUnusedGates,
  findGatesWithoutCondition,
  findProbesBeforeFirstWave,
  findMissingStatefulSets,
  findUnusableSelectors,
  findSelectorsWithoutExpectation,
  findOverlappingSelectors,
  findWrongUpdateStrategies,
  findAutoscaledMembers,
  findGroupsInOtherNamespace,
  findStatefulSetsWithoutGroup,
  findShrinkingWaves,
  findApprovalAfterLastWave,
  findUnfinishedZones,
  findImpossibleRollbacks,
  findSettingsIgnoredByController,
  findZeroMaxUnavailable,
  findPoliciesOfZero,
  findBudgetsOfZero,
  findEmptyFirstWaves,
  checkWaveSchedule,
  checkMirroredField,
  checkDisruptionBudget,
  checkPartitionPattern,
  findForcedReplicas,
  checkReplicaBounds,
  checkPolicyBounds,
  findDelayInSingleZone,
  findUnknownTargets,
  findForeignNamespaces,
  findDuplicateRules,
  checkRuleApprovals,
  findEmptyPolicies,
  findLimitsWithoutEffect,
  findUnknownRules,
  findExceptionsWithoutEffect,
  findOverlappingExceptions,
  findExceptionsNeverInForce,
  checkExceptionTargets,
  checkIntentTargets,
  checkWindowTimes,
  findDisjointWindows,
  checkRuleConditions,
  checkGateConditions,
  findFieldsWithoutEffect,
  checkSourceUses,
  checkSources,
  checkQueries,
  checkChannelUses,
  findDuplicateChannels,
  checkChannels,
  findApproverGroups,
];

export interface LintOptions extends LoadOptions {
  /** The namespace whose policies may name other namespaces; default `usualAgentNamespace`. */
  readonly agentNamespace?: string;
  /** Rules of the engine that exceptions may name. If undefined, only rules of policies are checked. */
  readonly engineRules?: readonly string[];
}

interface LintResult {
  readonly load: LoadResult;
  readonly resolution: Resolution;
  /** Findings of loading, resolving, adoption and lint checks, in the order of files and lines. */
  readonly findings: readonly Finding[];
}

/** Runs every check on loaded and resolved documents, from files or from a cluster. */
export function checkDocuments(context: LintContext): readonly Finding[] {
  return lintChecks.flatMap((check) => check(context));
}

/** Loads, resolves and checks policy files together with the manifests among them. Never throws. */
export function lintPolicies(files: readonly PolicyFile[], options: LintOptions = {}): LintResult {
  const load = loadPolicies(files, options);
  const statefulSets = statefulSetsOf(load.manifests);
  const adoption = adoptGroups(
    load.manifests.map((manifest) => manifest.value),
    options,
  );
  const hasManifests = statefulSets.length > 0;
  const resolution = resolvePolicies(load.documents, { adoption, ...(hasManifests ? { statefulSets } : {}) });
  const context: LintContext = {
    load,
    bundle: resolution.bundle,
    groups: ofKind(load.documents, 'RolloutGroup'),
    policies: ofKind(load.documents, 'RolloutPolicy'),
    exceptions: ofKind(load.documents, 'RolloutException'),
    intents: ofKind(load.documents, 'RolloutIntent'),
    statefulSets,
    agentNamespace: options.agentNamespace ?? usualAgentNamespace,
    engineRules: options.engineRules,
  };
  // A written group replaces the adopted one, so findings of adoption about its members do not apply.
  const written = context.groups.flatMap((group) => definitionOf(context, group) ?? []);
  const defined = new Set(written.flatMap((group) => group.zones.map((zone) => `StatefulSet ${group.namespace}/${zone.statefulSet}`)));
  const findings = [
    ...load.findings,
    ...resolution.findings,
    ...adoptionFindings(adoption.findings, load.manifests).filter(({ object }) => !object || !defined.has(object)),
    ...checkDocuments(context),
  ];
  return { load, resolution, findings: sortFindings(findings) };
}
