// Who approved what. An approval counts only with an identity that the API server vouches for, and with a time that can be true.
import type { ApprovalDefinition, Source } from '../../policies/definition.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { earliest, result } from '../rule.ts';
import { isOfRun, isVerified } from '../run/requests.ts';
import { type IntentView, isUnknown, type RunState } from '../snapshot.ts';

interface ApprovalQuestion {
  readonly context: GroupContext;
  readonly rule: string;
  readonly approval: ApprovalDefinition;
  /** The wave or the policy's rule that is to be approved. */
  readonly subject: { readonly wave?: string; readonly rule?: string };
  /** Of what is to be approved, as it is now: an approval that names another definition, or none, does not count. */
  readonly digest: string;
  /** Approvals of another run do not count: those that name it, and those that name none and are older than this run. */
  readonly run?: Pick<RunState, 'id' | 'startedMs'>;
  /** What was said before this instant does not count: whoever approves the end of a wave has seen its last pod go. */
  readonly sinceMs?: number;
  readonly source: Source | undefined;
}

/** Whether enough different people of the right groups approved, and nobody rejected. */
export function approvalResult({ context, rule, approval, subject, digest, run, sinceMs, source }: ApprovalQuestion): RuleResult {
  if (isUnknown(context.intents)) return result(rule, 'unknown', `approvals could not be read: ${context.intents.unknown}`, { source });
  const isRecent = ({ requestedBy }: IntentView): boolean =>
    sinceMs === undefined || requestedBy === undefined || requestedBy.atMs >= sinceMs;
  const isAbout = (intent: IntentView): boolean => intent.wave === subject.wave && intent.rule === subject.rule;
  const about = context.intents.filter((intent) => isAbout(intent) && isOfRun(intent, run) && isRecent(intent));
  const from = approval.from.length === 0 ? '' : ` from ${approval.from.join(' or ')}`;
  const limit = `${approval.count}${from}`;
  const approvals = about.filter((intent) => intent.action === 'approve');
  const timely = approvals.filter((intent) => isVerified(context, intent));
  // What holds counts whatever time it says: only who says so matters.
  const rejection = about.find((intent) => intent.action === 'reject' && mayApprove(intent, approval) && !isTakenBack(intent, timely));
  if (rejection !== undefined) {
    return result(rule, 'no', `${rejection.requestedBy?.user} rejected it${rejection.reason ? `: ${rejection.reason}` : ''}`, {
      limit,
      source,
    });
  }
  const valid = timely.filter((intent) => mayApprove(intent, approval) && !isExpired(intent, approval, context.nowMs));
  const counted = valid.filter((intent) => intent.digest === digest);
  const users = [...new Set(counted.map((intent) => intent.requestedBy?.user ?? ''))].sort();
  const anonymous = approvals.filter((intent) => intent.requestedBy === undefined).length;
  if (users.length >= approval.count) {
    return result(rule, 'ok', `approved by ${users.join(', ')}`, {
      limit,
      source,
      earliestMs: earliest(counted.map((intent) => expiryOf(intent, approval))),
    });
  }
  const fact = `${users.length} of ${approval.count} approvals${from}${voidText(valid, users, digest)}`;
  const ahead = approvals.filter((intent) => mayApprove(intent, approval) && !isVerified(context, intent)).length;
  const uncounted = [
    ...(anonymous === 0 ? [] : [`, and ${anonymous} without an identity, which only the webhook can stamp`]),
    ...(ahead === 0 ? [] : [`, and ${ahead} whose time (spec.requestedBy.at) is still to come, or comes of a clock that is ahead`]),
  ];
  return result(rule, uncounted.length === 0 ? 'wait' : 'unknown', `${fact}${uncounted.join('')}`, { limit, source, digest });
}

/** Whose approvals would count, were they of what is asked now. */
function voidText(valid: readonly IntentView[], users: readonly string[], digest: string): string {
  const others = valid.filter((intent) => intent.digest !== digest && !users.includes(intent.requestedBy?.user ?? ''));
  const named = (which: readonly IntentView[]): string =>
    [...new Set(which.map((intent) => intent.requestedBy?.user ?? ''))].sort().join(', ');
  const changed = named(others.filter((intent) => intent.digest !== undefined));
  const unnamed = named(others.filter((intent) => intent.digest === undefined));
  return [
    ...(changed === '' ? [] : [`; ${changed} approved what has been changed since`]),
    ...(unnamed === '' ? [] : [`; the approval of ${unnamed} names no digest`]),
  ].join('');
}

/** Who rejected may approve afterwards. */
function isTakenBack({ requestedBy }: IntentView, approvals: readonly IntentView[]): boolean {
  return approvals.some(
    (other) => other.requestedBy?.user === requestedBy?.user && (other.requestedBy?.atMs ?? 0) > (requestedBy?.atMs ?? 0),
  );
}

function mayApprove(intent: IntentView, approval: ApprovalDefinition): boolean {
  if (intent.requestedBy === undefined) return false;
  return approval.from.length === 0 || intent.requestedBy.groups.some((group) => approval.from.includes(group));
}

/** By its own end or by that of the rule, whichever comes first. */
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
