// Judges the requests of a verb before the verb sends them, as a webhook would: with the objects alone, and for the user of the connection.
import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { judgeTogether } from '../../engine/judge/judge.ts';
import { blocks } from '../../engine/rule.ts';
import { type Requester, readsUser } from '../../engine/rules/policy.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { firstOf } from '../../policies/wording.ts';
import type { Cluster } from '../connection.ts';
import { readUser } from '../doctor/gather/accounts.ts';

interface UserJudgements {
  readonly judgements: readonly Judgement[];
  /** The rules that only the webhook can evaluate, because the user is unknown here. */
  readonly notes: readonly string[];
}

/** Judges the requests together. If the user is unknown here, rules that read the user deny no request: only the webhook can evaluate them. */
export async function judgeForUser(cluster: Cluster, stored: Snapshot, requests: readonly AdmissionRequest[]): Promise<UserJudgements> {
  const requester = await requesterFor(cluster, stored);
  const judgements = judgeTogether(
    stored,
    requests.map((request) => ({ ...request, ...requester })),
  );
  const ofUser = stored.policies.flatMap(({ name, rules }) => rules.filter(readsUser).map((rule) => `${name}/${rule.name}`));
  const denying = judgements.flatMap(({ results }) => results.filter(blocks).map(({ rule }) => rule));
  const unknown = ofUser.filter((rule) => denying.includes(rule));
  if (requester !== undefined || unknown.length === 0) return { judgements, notes: [] };
  const policies = stored.policies.map((policy) => ({ ...policy, rules: policy.rules.filter((rule) => !readsUser(rule)) }));
  const note = `the API server does not say who you are, so only the webhook can evaluate ${firstOf([...new Set(unknown)], 3)}`;
  return { judgements: judgeTogether({ ...stored, policies }, requests), notes: [note] };
}

/** Returns the user of the connection if a policy rule reads the user; otherwise, and if the API server does not name the user, undefined. */
export async function requesterFor(cluster: Cluster, { policies }: Pick<Snapshot, 'policies'>): Promise<Required<Requester> | undefined> {
  return policies.some(({ rules }) => rules.some(readsUser)) ? readUser(cluster) : undefined;
}
