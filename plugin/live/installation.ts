// Reads the facts about the installation that decisions need: the agents, the access of the agents, and the webhooks.
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { needsApproval } from '../../engine/rules/approval.ts';
import { isUnknown, type Known, type Snapshot, type WebhookProblems } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import type { Listing } from '../cluster-snapshot/listing.ts';
import type { ClusterState } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { readAgentFacts } from '../doctor/gather/accounts.ts';
import { readWebhookProblems } from '../doctor/gather/admission.ts';

interface InstallationQuestion extends Pick<ClusterState, 'published'> {
  /** The groups to decide. */
  readonly groups: readonly GroupDefinition[];
  readonly listing: Pick<Listing, 'groups'>;
  /** The namespace of the agent whose webhooks count. */
  readonly agentNamespace: string;
}

export interface InstallationFacts {
  /** The snapshot for decisions, with the facts about the installation and without requesters that may be unverified. */
  readonly snapshot: Snapshot;
  /** One sentence for each reason why an agent of the groups does not run. */
  readonly stopped: readonly string[];
  /** Why it is unknown whether the webhooks work; absent if that is known. */
  readonly unread?: string;
}

/** Adds the facts to a snapshot of objects. Every verb that decides or forecasts uses such a snapshot, so all verbs use the same facts. */
export async function withInstallation(
  cluster: Cluster,
  snapshot: Snapshot,
  { groups, listing, published, agentNamespace }: InstallationQuestion,
): Promise<InstallationFacts> {
  const { intents, policies } = snapshot;
  const hasIntents = !isUnknown(intents) && intents.length > 0;
  const needs = {
    pins: groups.some((group) => traitsOf(group).pinsPods),
    requesters: groups.length > 0 && (hasIntents || needsApproval(groups, policies)),
  };
  const [problems, { stopped, unattended, missingAccess }] = await Promise.all([
    readWebhookProblems(cluster, agentNamespace, needs),
    readAgentFacts(cluster, groups, listing, published),
  ]);
  return {
    snapshot: {
      ...snapshot,
      intents: believedIntents(intents, problems),
      unattended,
      missingAccess,
      ...(isUnknown(problems) ? {} : { webhookProblems: problems }),
    },
    stopped,
    ...(isUnknown(problems) ? { unread: problems.unknown } : {}),
  };
}

/** Returns a sentence for each write of the agent that the API server rejected. A forecast contains these writes. */
export function rejectedWrites(decisions: readonly PublishedDecision[]): readonly string[] {
  const notes = decisions.flatMap(({ namespace, group, waits, warnings }) => {
    const rejected = [...waits, ...warnings].filter(({ rule }) => rule === 'write-accepted');
    return rejected.map(({ fact }) => `${namespace}/${group}: ${fact}; the agent repeats the write`);
  });
  return [...new Set(notes)];
}

/** The actions of requests that permit progress. Requests that stop a group count even without a verified requester. */
const permitting: ReadonlySet<string> = new Set(['approve', 'promote', 'retry']);

/** Removes the requesters of requests that permit progress, unless the webhook that records requesters is known to work. */
function believedIntents(intents: Snapshot['intents'], problems: Known<WebhookProblems>): Snapshot['intents'] {
  if (isUnknown(intents) || (!isUnknown(problems) && problems.requesters === undefined)) return intents;
  return intents.map((intent) => {
    const { requestedBy: _requester, ...rest } = intent;
    return permitting.has(intent.action) ? rest : intent;
  });
}
