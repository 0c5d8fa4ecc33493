// Runs all checks of doctor, in the order of the output.

import { isUnknown } from '../../engine/snapshot.ts';
import { admissionPolicies, webhookRegistration } from './admission.ts';
import { agentPermissions, agentPresent, agentVersion, placedPins, publishedDecisions, singleAgent, unwatchedNamespaces } from './agent.ts';
import { type Check, type CheckResult, type Facts, type GroupCheck, skipped } from './check.ts';
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
import { channels, namedSecrets } from './integrations.ts';
import { autoscaledMembers, drift, otherOperator, replicasInGit, zoneImages } from './writers.ts';

const checks: readonly Check[] = [
  agentPresent,
  singleAgent,
  agentVersion,
  unwatchedNamespaces,
  withGroups('decisions', publishedDecisions),
  placedPins,
  agentPermissions,
  installedKinds,
  otherOperator,
  withGroups('groups', missingMembers),
  settings,
  withGroups('strategy', strategies),
  withGroups('partition', blockingPartitions),
  withGroups('labels', nameLabels),
  withGroups('foreign pods', foreignMemberPods),
  withGroups('HPA', autoscaledMembers),
  withGroups('GitOps', replicasInGit),
  withGroups('drift', drift),
  zoneImages,
  withGroups('PDB', overlappingBudgets),
  withGroups('ledgers', leftLedgers),
  withGroups('channels', channels),
  namedSecrets,
  withGroups('Kubernetes', kubernetesVersion),
  clocks,
  withGroups('webhooks', webhookRegistration),
  admissionPolicies,
];

export function examine(facts: Facts): readonly CheckResult[] {
  return checks.flatMap((check) => check(facts));
}

/** Runs the checks that compare the installed parts with this version. */
export function compareVersions(facts: Facts): readonly CheckResult[] {
  return [agentVersion, installedKinds, withGroups('webhooks', webhookRegistration), admissionPolicies].flatMap((check) => check(facts));
}

function withGroups(name: string, check: GroupCheck): Check {
  return ({ groups, ...facts }) => (isUnknown(groups) ? skipped(name, groups.unknown) : check({ ...facts, groups }));
}
