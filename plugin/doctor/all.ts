// Runs all checks of doctor, in the order of the output.

import { admissionPolicies, webhookRegistration } from './admission.ts';
import {
  agentPermissions,
  agentPresent,
  agentVersion,
  channels,
  namedSecrets,
  placedPins,
  publishedDecisions,
  singleAgent,
  unwatchedNamespaces,
} from './agent.ts';
import type { Check, CheckResult, Facts } from './check.ts';
import { clocks, installedKinds, kubernetesVersion } from './cluster.ts';
import {
  blockingPartitions,
  foreignMemberPods,
  leftLedgers,
  missingMembers,
  nameLabels,
  overlappingBudgets,
  settings,
  strategies,
} from './groups.ts';
import { autoscaledMembers, drift, otherOperator, replicasInGit, zoneImages } from './writers.ts';

const checks: readonly Check[] = [
  agentPresent,
  singleAgent,
  agentVersion,
  unwatchedNamespaces,
  publishedDecisions,
  placedPins,
  agentPermissions,
  installedKinds,
  otherOperator,
  missingMembers,
  settings,
  strategies,
  blockingPartitions,
  nameLabels,
  foreignMemberPods,
  autoscaledMembers,
  replicasInGit,
  drift,
  zoneImages,
  overlappingBudgets,
  leftLedgers,
  channels,
  namedSecrets,
  kubernetesVersion,
  clocks,
  webhookRegistration,
  admissionPolicies,
];

export function examine(facts: Facts): readonly CheckResult[] {
  return checks.flatMap((check) => check(facts));
}

export function compareVersions(facts: Facts): readonly CheckResult[] {
  return [agentVersion, installedKinds, webhookRegistration, admissionPolicies].flatMap((check) => check(facts));
}
