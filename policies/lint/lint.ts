// The list of lint checks, and the one call that answers everything about a set of policy files.
import { adoptGroups } from '../adopt/adopt.ts';
import { type Finding, sortFindings } from '../findings/finding.ts';
import { type LoadOptions, type LoadResult, loadPolicies, type PolicyFile } from '../load.ts';
import { usualAgentNamespace } from '../objects/agent-deployment.ts';
import { ofKind, type Resolution, resolvePolicies, statefulSetsOf } from '../resolve/resolve.ts';
import { adoptionFindings } from './adoption.ts';
import { groupsElsewhere, setsWithoutGroup } from './beside.ts';
import { policyBounds, replicaBounds } from './bounds.ts';
import { knownChannels, soundChannels, uniqueChannels } from './channels.ts';
import { gateConditions, ruleConditions } from './conditions.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';
import {
  exceptionsThatNeverHold,
  exceptionTargets,
  intentTargets,
  meetingExceptions,
  unknownRules,
  unyieldingExceptions,
} from './exceptions.ts';
import { gatesWithoutCondition, probesOfNobody, uniqueGates, unusedGates } from './gates.ts';
import { autoscaledMembers, updateStrategies } from './manifests.ts';
import { missingStatefulSets, overlappingSelectors, selectorsThatMatch, selectorsWithoutExpectation, sharedMembers } from './members.ts';
import { knownSources, soundSources } from './metric-sources.ts';
import { approverGroups, fieldsWithoutEffect } from './notices.ts';
import { approvals, foreignNamespaces, idleLimits, idlePolicies, uniqueRules, unknownTargets } from './policies.ts';
import { queriesThatAreNone } from './queries.ts';
import {
  disruptionBudget,
  mirroredField,
  partitionPattern,
  rollbackWithoutRevisions,
  settingsOfTheController,
  wavesAndSchedule,
} from './rollout.ts';
import {
  approvalAfterLastWave,
  emptyFirstWaves,
  shrinkingWaves,
  unfinishedZones,
  uniqueWaves,
  wavesNameGates,
  wavesNameZones,
} from './waves.ts';
import { windowsThatNeverMeet, windowTimes } from './windows.ts';
import { budgetsOfZero } from './zero-budgets.ts';
import { cappedAtZero, unavailableZero } from './zero-limits.ts';
import { followersWithReplicas, forcedReplicas, knownLeaders, leaderCycles, timeBetweenOneZone, uniqueZones } from './zones.ts';

/** Every check, in the order of the table of codes. */
const lintChecks: readonly LintCheck[] = [
  sharedMembers,
  uniqueZones,
  knownLeaders,
  leaderCycles,
  followersWithReplicas,
  wavesNameZones,
  wavesNameGates,
  uniqueWaves,
  uniqueGates,
  unusedGates,
  gatesWithoutCondition,
  probesOfNobody,
  missingStatefulSets,
  selectorsThatMatch,
  selectorsWithoutExpectation,
  overlappingSelectors,
  updateStrategies,
  autoscaledMembers,
  groupsElsewhere,
  setsWithoutGroup,
  shrinkingWaves,
  approvalAfterLastWave,
  unfinishedZones,
  rollbackWithoutRevisions,
  settingsOfTheController,
  unavailableZero,
  cappedAtZero,
  budgetsOfZero,
  emptyFirstWaves,
  wavesAndSchedule,
  mirroredField,
  disruptionBudget,
  partitionPattern,
  forcedReplicas,
  replicaBounds,
  policyBounds,
  timeBetweenOneZone,
  unknownTargets,
  foreignNamespaces,
  uniqueRules,
  approvals,
  idlePolicies,
  idleLimits,
  unknownRules,
  unyieldingExceptions,
  meetingExceptions,
  exceptionsThatNeverHold,
  exceptionTargets,
  intentTargets,
  windowTimes,
  windowsThatNeverMeet,
  ruleConditions,
  gateConditions,
  fieldsWithoutEffect,
  knownSources,
  soundSources,
  queriesThatAreNone,
  knownChannels,
  uniqueChannels,
  soundChannels,
  approverGroups,
];

export interface LintOptions extends LoadOptions {
  /** The namespace whose policies may name other namespaces; `usualAgentNamespace` when left out. */
  readonly agentNamespace?: string;
  /** Rules of the engine that exceptions may name. Without them only rules of policies are checked. */
  readonly engineRules?: readonly string[];
}

interface LintResult {
  readonly load: LoadResult;
  readonly resolution: Resolution;
  /** Of loading, resolving, adopting and linting, in the order of files and lines. */
  readonly findings: readonly Finding[];
}

/** What every check says of documents that were loaded and resolved, from files or from a cluster. */
export function checkDocuments(context: LintContext): readonly Finding[] {
  return lintChecks.flatMap((check) => check(context));
}

/** Loads, resolves and checks policy files together with the manifests beside them. Never throws. */
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
  // A group that is written down replaces the adopted one, so what adoption thinks of its members does not matter.
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
