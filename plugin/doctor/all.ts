// The checks of doctor, in the order in which they are shown.
import { admissionPolicies } from './admission-policies.ts';
import { agentPermissions, agentPresent, placedPins, publishedDecisions, singleAgent, unwatchedNamespaces } from './agent.ts';
import { channels } from './channels.ts';
import type { Check, CheckResult, Facts } from './check.ts';
import { clocks, installedKinds, kubernetesVersion } from './cluster.ts';
import { leftLedgers, missingMembers, nameLabels, overlappingBudgets, settings, strangers, strategies } from './groups.ts';
import { heldPartitions } from './partitions.ts';
import { namedSecrets } from './secrets.ts';
import { webhookRegistration } from './webhooks.ts';
import { autoscaledMembers, otherOperator, replicasInGit } from './writers.ts';

const checks: readonly Check[] = [
  agentPresent,
  singleAgent,
  unwatchedNamespaces,
  publishedDecisions,
  placedPins,
  agentPermissions,
  installedKinds,
  otherOperator,
  missingMembers,
  settings,
  strategies,
  heldPartitions,
  nameLabels,
  strangers,
  autoscaledMembers,
  replicasInGit,
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
