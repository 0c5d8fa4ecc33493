// Evaluates the approvals and rejections of waves and policy rules. An approval counts only from a verified requester.
import type { ApprovalDefinition, GroupDefinition, PolicyDefinition, Source } from '../../policies/definition.ts';
import { asksForApproval } from '../../policies/rollout/rules-without-exception.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { earliest, result } from '../rule.ts';
import { isOfRun, isVerified, objectOf, requestOf } from '../run/requests.ts';
import type { RunState } from '../run/run-state.ts';
import { type IntentView, isUnknown } from '../snapshot.ts';

interface ApprovalQuestion {
  readonly context: GroupContext;
  readonly rule: string;
  readonly approval: ApprovalDefinition;
  readonly subject: { readonly wave?: string; readonly rule?: string };
  /** Digest of the current definition. An approval with another digest, or without one, does not count. */
  readonly digest: string;
  /** The run. Approvals that name another run, or name no run and are older than this run, do not count. */
  readonly run?: Pick<RunState, 'id' | 'startedMs'>;
  /** The instant from which approvals count: an approval after a wave must follow the last replacement of the wave. A rejection counts always. */
  readonly sinceMs?: number;
  readonly source: Source | undefined;
}

/** Returns one result for each rejection that blocks. Without rejections, returns whether enough users of the allowed groups approved. */
export function approvalResults(question: ApprovalQuestion): readonly RuleResult[] {
  const { context, rule, approval, subject, digest, run, sinceMs, source } = question;
  if (isUnknown(context.intents)) return [result(rule, 'unknown', `approvals could not be read: ${context.intents.unknown}`, { source })];
  const isRecent = ({ requestedBy }: IntentView): boolean =>
    sinceMs === undefined || requestedBy === undefined || requestedBy.atMs >= sinceMs;
  const isAbout = (intent: IntentView): boolean => intent.wave === subject.wave && intent.rule === subject.rule;
  const about = context.intents.filter((intent) => isAbout(intent) && isOfRun(intent, run));
  const from = approval.from.length === 0 ? '' : ` from ${approval.from.join(' or ')}`;
  const limit = `${approval.count}${from}`;
  const approvals = about.filter((intent) => intent.action === 'approve' && isRecent(intent));
  const timely = approvals.filter((intent) => isVerified(context, intent));
  const rejections = rejectionsIn(about, approval, context);
  if (rejections.length > 0) {
    const what = subject.wave === undefined ? `rule ${subject.rule}` : `wave ${subject.wave}`;
    return rejections.map((intent) => {
      const fact = `${intent.requestedBy?.user} rejected ${what}${intent.reason ? `: ${intent.reason}` : ''}`;
      return result(rule, 'no', fact, { limit, source: objectOf(intent), earliestMs: intent.expiresMs });
    });
  }
  const valid = timely.filter((intent) => mayApprove(intent, approval) && !isExpired(intent, approval, context.nowMs));
  const counted = valid.filter((intent) => intent.digest === digest);
  const users = [...new Set(counted.map((intent) => intent.requestedBy?.user ?? ''))].sort();
  const anonymous = approvals.filter((intent) => intent.requestedBy === undefined).length;
  if (users.length >= approval.count) {
    const earliestMs = earliest(counted.map((intent) => expiryOf(intent, approval)));
    return [result(rule, 'ok', `approved by ${users.join(', ')}`, { limit, source, earliestMs })];
  }
  const fact = `${users.length} of ${approval.count} approvals${from}${voidText(valid, users, digest)}`;
  const ahead = approvals.filter((intent) => mayApprove(intent, approval) && !isVerified(context, intent)).length;
  const { requesters } = context.snapshot.webhookProblems ?? {};
  if (requesters !== undefined) {
    return [withoutRequesters(result(rule, 'wait', fact, { limit, source, digest }), requesters)];
  }
  const uncounted = [
    ...(anonymous === 0 ? [] : [`, and ${anonymous} without an identity (the webhook was not called)`]),
    ...(ahead === 0 ? [] : [`, and ${ahead} with a time in the future (spec.requestedBy.at)`]),
  ];
  return [result(rule, uncounted.length === 0 ? 'wait' : 'unknown', `${fact}${uncounted.join('')}`, { limit, source, digest })];
}

/**
 * Returns the rejections that block, among the requests about one wave or rule. The time of a rejection does not count: an approval of the
 * same person does not end it, because the clocks of two webhooks could reverse the order. `approve` deletes it.
 */
export function rejectionsIn(
  about: readonly IntentView[],
  approval: ApprovalDefinition,
  context: Pick<GroupContext, 'nowMs'>,
): readonly IntentView[] {
  return about.filter(
    (intent) =>
      intent.action === 'reject' && (intent.expiresMs ?? Number.POSITIVE_INFINITY) > context.nowMs && mayApprove(intent, approval),
  );
}

/** Reports whether the result is a rejection. The source of a rejection is its request. */
export function isRejection(answer: Pick<RuleResult, 'outcome' | 'source'>): boolean {
  return answer.outcome === 'no' && requestOf(answer) !== undefined;
}

/** Reports whether a result that blocks is about a missing approval of a wave or of a policy rule. */
export function lacksApproval({ rule, digest }: Pick<RuleResult, 'rule' | 'digest'>): boolean {
  return rule === 'approval' || digest !== undefined;
}

/** Returns how many people must still approve, by a result of `approvalResults`; 0 if no approval is missing. */
export function missingApprovals(answer: RuleResult): number {
  if (answer.outcome !== 'wait' || !lacksApproval(answer)) return 0;
  // The message of a policy rule, which is any text, comes before the numbers.
  const [, given = '0', needed = '1'] = /^(?:.*\D)?(\d+) of (\d+) approvals/s.exec(answer.fact) ?? [];
  return Number(needed) - Number(given);
}

/** Adds a problem of the webhook to the result of a missing approval, because no approval counts then. Returns other results unchanged. */
export function withoutRequesters<Result extends RuleResult>(answer: Result, problem: string): Result {
  if (answer.digest === undefined) return answer;
  return { ...answer, outcome: 'no', fact: `${answer.fact}; no webhook records requesters, so no approval counts: ${problem}` };
}

/** Reports whether an approval is missing and no approval can count, because no webhook records requesters. A rejection names no digest. */
export function lacksRequesters({ outcome, digest }: RuleResult): boolean {
  return outcome === 'no' && digest !== undefined;
}

/** Reports whether a wave of a group or a rule of a policy needs an approval. */
export function needsApproval(
  groups: readonly Pick<GroupDefinition, 'rollout'>[],
  policies: readonly Pick<PolicyDefinition, 'rules'>[],
): boolean {
  return (
    groups.some(({ rollout }) =>
      rollout.waves.some(({ before, after }) => before.approval !== undefined || after.approval !== undefined),
    ) || policies.some(({ rules }) => rules.some(asksForApproval))
  );
}

/** Returns a clause that names the users whose approvals do not count because of their digest; '' if there are no such users. */
function voidText(valid: readonly IntentView[], users: readonly string[], digest: string): string {
  const others = valid.filter((intent) => intent.digest !== digest && !users.includes(intent.requestedBy?.user ?? ''));
  const named = (which: readonly IntentView[]): string =>
    [...new Set(which.map((intent) => intent.requestedBy?.user ?? ''))].sort().join(', ');
  const changed = named(others.filter((intent) => intent.digest !== undefined));
  const unnamed = named(others.filter((intent) => intent.digest === undefined));
  return [
    ...(changed === '' ? [] : [`; ${changed} approved an older version`]),
    ...(unnamed === '' ? [] : [`; the approval of ${unnamed} has no digest`]),
  ].join('');
}

/** Reports whether the verified requester belongs to a group that may approve. */
export function mayApprove({ requestedBy }: Pick<IntentView, 'requestedBy'>, { from }: Pick<ApprovalDefinition, 'from'>): boolean {
  if (requestedBy === undefined) return false;
  return from.length === 0 || requestedBy.groups.some((group) => from.includes(group));
}

/** Returns the expiry of the approval: the earlier of the times that the request and the rule set. */
function expiryOf(intent: IntentView, approval: ApprovalDefinition): number | undefined {
  const { requestedBy, expiresMs } = intent;
  return earliest([
    expiresMs,
    ...(approval.expiresMs === undefined || requestedBy === undefined ? [] : [requestedBy.atMs + approval.expiresMs]),
  ]);
}

function isExpired(intent: IntentView, approval: ApprovalDefinition, nowMs: number): boolean {
  const expiry = expiryOf(intent, approval);
  return expiry !== undefined && expiry <= nowMs;
}
