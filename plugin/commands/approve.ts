// The verbs approve and reject: record the answer of the user to a wave or policy rule that waits for approval.
import { mayApprove, rejectionsIn } from '../../engine/rules/approval.ts';
import { effectOfAnswer, type OpenApproval } from '../../engine/run/effects.ts';
import { digestOfRule, digestOfWaves, isOfRun, requesterText } from '../../engine/run/requests.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import type { ApprovalDefinition, PolicyDefinition, PolicyRuleDefinition, WaveDefinition } from '../../policies/definition.ts';
import { minuteText } from '../../policies/instant.ts';
import { asksForApproval } from '../../policies/rollout/rules-without-exception.ts';
import { defined } from '../../policies/values/defined.ts';
import { unreadLists } from '../cluster-snapshot/listing.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, type Failure, refusedFailure, usageFailure } from '../failure.ts';
import {
  publishedRun,
  type Request,
  type RequestedGroup,
  type RequestFlags,
  readAndSubmit,
  readWithRun,
  refuseBeforeRun,
  runInContext,
} from '../live/submit-request.ts';
import { endFlag, nameOf } from '../live/target.ts';
import { reasonSuffix } from '../output/text.ts';

export interface ApproveOptions extends RequestFlags {
  readonly wave?: string;
  readonly rule?: string;
  readonly duration?: string;
}

export function approve(context: CommandContext, options: ApproveOptions): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => answerRequest(requested, options, 'approve'), readWithRun);
}

export function reject(context: CommandContext, options: ApproveOptions): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => answerRequest(requested, options, 'reject'), readWithRun);
}

interface Approvable {
  readonly kind: 'wave' | 'rule';
  readonly name: string;
  /** Absent for a rule, and if the definition of the group cannot be read. */
  readonly wave?: WaveDefinition;
  readonly approval?: ApprovalDefinition;
  /** The digest that the agent published, or else the digest of the definition. Absent if neither can be read. */
  readonly digest?: string;
  /** True if the approval is not bound to a run: the rule does not apply to rollouts, or every run is completed. */
  readonly isWithoutRun?: boolean;
}

const answers = { approve: 'approved', reject: 'rejected' } as const;

type Action = keyof typeof answers;

/** The default of --duration for an approval that is not bound to a run and so must have another end. */
const unboundDuration = '1h';

function answerRequest(requested: RequestedGroup, options: ApproveOptions, action: Action): Request {
  const { name } = requested;
  const subject = subjectOf(requested, options, action);
  const { kind } = subject;
  const what = `${kind} ${subject.name}`;
  const digest = digestIn(subject, name, action);
  const run = subject.isWithoutRun === true ? undefined : runningRun(requested);
  const duration = options.duration ?? (run === undefined && action === 'approve' ? unboundDuration : undefined);
  const expiresMs = duration === undefined ? undefined : requested.cluster.env.clock.nowMs() + endFlag('--duration', duration);
  const counts = approvalsFor(requested, subject, action);
  return {
    needsRequester: true,
    // A repeated answer needs a new object: the old object would keep its time, and an opposite answer given since would count instead.
    key: `${run ?? ''} ${what} ${requested.cluster.env.clock.nowMs()}`,
    ends: (earlier) => earlier.action in answers && earlier[kind] === subject.name && earlier.runId === run,
    spec: {
      action,
      ...defined({ runId: run }),
      ...(kind === 'wave' ? { wave: subject.name } : { rule: subject.name }),
      ...(action === 'approve' ? { digest } : {}),
      ...(expiresMs === undefined ? {} : { expires: new Date(expiresMs).toISOString() }),
    },
    check: (verified) =>
      refuseOtherGroups(
        verified,
        counts.map(({ approval }) => approval),
        `${placeIn(subject, counts)} of ${name}`,
      ),
    // The output names rejections by other users.
    ...(action === 'approve' ? { concerns: (rule) => rule !== (kind === 'wave' ? 'approval' : subject.name) } : {}),
    text: (by, kept) => {
      const until = expiresMs === undefined ? '' : ` until ${minuteText(expiresMs)}`;
      const inRun = run === undefined ? '' : ` in run ${run}`;
      const next =
        action === 'approve'
          ? approvedText(subject, counts, run)
          : `${what} stays blocked${inRun} until ${by} approves or the rejection ends`;
      return `${name}: ${what} ${answers[action]} by ${by}${until}${reasonSuffix(options.reason)}\n  ${next}\n${action === 'approve' ? rejectedText(requested, subject, { by, kept }) : ''}`;
    },
  };
}

/** A required approval for which an answer counts. `when` is absent for the approval of a rule. */
type Counted = Pick<OpenApproval, 'approval'> & Partial<OpenApproval>;

/** Returns the required approvals for which an answer counts now; empty if unknown. Throws Failure if the answer would have no effect. */
function approvalsFor(requested: RequestedGroup, { wave, approval }: Approvable, action: Action): readonly Counted[] {
  const current = runInContext(requested);
  if (wave === undefined || current === undefined) return approval === undefined ? [] : [{ approval }];
  const effect = effectOfAnswer(current.context, current.run, wave, action);
  if (effect.why === undefined) return effect.counts;
  const { name } = requested;
  const stop = `to stop the rollout: kubectl rollout-group pause ${name}, or kubectl rollout-group abort ${name}`;
  const later = effect.isEarly ? `approve when ${name} waits for the approval: ` : '';
  const todo = action === 'reject' ? stop : `${later}kubectl rollout-group explain ${name}`;
  throw refusedFailure(`${name}: nothing was ${answers[action]}`, { why: effect.why, todo });
}

/** Returns `wave rest`. If the wave needs two approvals and the answer counts for one, returns `the start of wave rest` or `the end of wave rest`. */
function placeIn({ kind, name, wave }: Approvable, [only, ...others]: readonly Counted[]): string {
  const hasTwo = wave?.before.approval !== undefined && wave.after.approval !== undefined;
  if (!hasTwo || only === undefined || others.length > 0) return `${kind} ${name}`;
  return `the ${only.when === 'before' ? 'start' : 'end'} of wave ${name}`;
}

function approvedText(subject: Approvable, counts: readonly Counted[], run: string | undefined): string {
  const { kind, wave } = subject;
  const [only] = counts;
  const forRun = run === undefined ? '' : `for run ${run} and `;
  const people = only === undefined || only.approval.count === 1 ? '' : `; ${only.approval.count} different people must approve`;
  const end = wave?.after.approval;
  const isStart = end !== undefined && only !== undefined && counts.every(({ when }) => when === 'before');
  const from = end === undefined || end.from.length === 0 ? '' : ` from ${end.from.join(' or ')}`;
  const later = isStart ? `\n  the end of wave ${subject.name} needs another approval${from} after its last pod is replaced` : '';
  return `valid ${forRun}while ${kind === 'wave' ? 'the waves are' : 'the rule is'} unchanged${people}${later}`;
}

/** Returns a line for each rejection that still blocks the wave or rule: a rejection by another user, or a rejection that the user may not delete. */
function rejectedText(
  { name, live, read, cluster }: RequestedGroup,
  { kind, name: subject, wave, approval }: Approvable,
  { by, kept }: { readonly by: string | undefined; readonly kept: readonly IntentView[] },
): string {
  const isAbout = (intent: IntentView): boolean =>
    nameOf(intent) === name && intent[kind] === subject && isOfRun(intent, live.decision.run);
  const about = read.world.policies.intents.filter(isAbout);
  const approvals = [approval, wave?.before.approval, wave?.after.approval].flatMap((one) => one ?? []);
  const rejections = new Set(approvals.flatMap((one) => rejectionsIn(about, one, { nowMs: cluster.env.clock.nowMs() })));
  return [...rejections]
    .filter((intent) => intent.requestedBy?.user !== by || kept.some((one) => one.name === intent.name))
    .map(
      (intent) =>
        `  ${kind} ${subject} stays blocked: ${requesterText(intent)} rejected it. To end it: kubectl rollout-group cancel ${name} ${intent.name}\n`,
    )
    .join('');
}

/** Throws Failure if the agent published no digest and the definition cannot be read here. */
function digestIn({ kind, name: subject, digest }: Approvable, name: string, action: Action): string {
  if (digest !== undefined) return digest;
  throw refusedFailure(`${name}: nothing was ${answers[action]}`, {
    why: `the definition of ${kind} ${subject} cannot be read here; the agent publishes the digest when the approval is due`,
    todo: `${action} again when the group waits for the approval; see kubectl rollout-group explain ${name}`,
  });
}

function currentRun(requested: RequestedGroup): string | undefined {
  const run = publishedRun(requested);
  return run === undefined || run.outcome === 'completed' ? undefined : run.id;
}

/** Returns the id of the running or failed run. Throws Failure if every run is completed. */
function runningRun(requested: RequestedGroup): string {
  const run = currentRun(requested);
  if (run !== undefined) return run;
  throw refusedFailure(`${requested.name}: no run is in progress, so no approval is needed`);
}

function subjectOf(requested: RequestedGroup, { wave, rule }: ApproveOptions, action: string): Approvable {
  if (wave !== undefined && rule !== undefined) throw usageFailure('--wave and --rule exclude each other', 'name one of them');
  if (wave !== undefined) return waveNamed(requested, wave);
  if (rule !== undefined) return ruleNamed(requested, rule);
  const waiting = waitingFor(requested);
  const [only, ...others] = waiting;
  if (only === undefined) {
    refuseBeforeRun(requested);
    throw refusedFailure(`${requested.name} does not wait for an approval`, {
      todo: `kubectl rollout-group ${action} ${requested.name} --wave NAME, or see kubectl rollout-group explain ${requested.name}`,
    });
  }
  if (others.length === 0) return only;
  const names = waiting.map(({ kind, name }) => `--${kind} ${name}`);
  throw usageFailure(`${requested.name} waits for ${waiting.length} approvals`, `choose one: ${names.join(', ')}`);
}

function waitingFor(requested: RequestedGroup): readonly Approvable[] {
  const { decision } = requested.live;
  const rules = new Set(decision.waits.map(({ rule }) => rule));
  const wave = rules.has('approval') && decision.wave !== undefined ? [waveNamed(requested, decision.wave.name)] : [];
  const ofPolicies = requested.read.world.policies.policies.flatMap((policy) =>
    policy.rules
      .filter((rule) => rules.has(`${policy.name}/${rule.name}`) && asksForApproval(rule))
      .map((rule) => ruleOf(requested, policy, rule)),
  );
  return [...wave, ...ofPolicies];
}

function waveNamed(requested: RequestedGroup, wanted: string): Approvable {
  const { name, live } = requested;
  const { definition } = live;
  const published = live.decision.wave?.name === wanted ? digestOfWait(requested, 'approval') : undefined;
  if (definition === undefined) return { kind: 'wave', name: wanted, ...defined({ digest: published }) };
  const wave = definition.rollout.waves.find((one) => one.name === wanted);
  if (wave === undefined)
    throw usageFailure(`${name} has no wave ${wanted}`, `its waves: ${definition.rollout.waves.map((one) => one.name).join(', ')}`);
  if (wave.before.approval === undefined && wave.after.approval === undefined)
    throw refusedFailure(`wave ${wanted} of ${name} needs no approval`, { todo: `kubectl rollout-group explain ${name}` });
  return { kind: 'wave', name: wanted, wave, digest: published ?? digestOfWaves(definition) };
}

function ruleNamed(requested: RequestedGroup, wanted: string): Approvable {
  const { read, name } = requested;
  const [found] = read.world.policies.policies.flatMap((policy) =>
    policy.rules.filter((one) => `${policy.name}/${one.name}` === wanted).map((rule) => ({ policy, rule })),
  );
  if (found === undefined) {
    const digest = digestOfWait(requested, wanted);
    if (digest === undefined && unreadLists(read.listing).length === 0) throw unknownRule(requested, wanted);
    return { kind: 'rule', name: wanted, ...defined({ digest }) };
  }
  const { policy, rule } = found;
  if (asksForApproval(rule)) return ruleOf(requested, policy, rule);
  throw refusedFailure(`rule ${wanted} needs no approval`, { todo: `kubectl rollout-group explain ${name}` });
}

function unknownRule({ read, name }: RequestedGroup, wanted: string): Failure {
  const names = read.world.policies.policies.flatMap((policy) =>
    policy.rules.filter(asksForApproval).map((rule) => `${policy.name}/${rule.name}`),
  );
  const todo = names.length === 0 ? `kubectl rollout-group explain ${name}` : `the rules that need an approval: ${names.join(', ')}`;
  return usageFailure(`no RolloutPolicy has a rule ${wanted}`, todo);
}

function ruleOf(requested: RequestedGroup, policy: PolicyDefinition, rule: PolicyRuleDefinition): Approvable {
  const name = `${policy.name}/${rule.name}`;
  const isWithoutRun = !rule.actions.includes('rollout') || currentRun(requested) === undefined;
  // An approval of a rollout that differs from its plan must name what the agent published.
  const isOfPlan = [rule.effect, rule.onUnknown].includes('requireApprovedPlan');
  const digest = digestOfWait(requested, name) ?? (isOfPlan ? undefined : digestOfRule(policy, rule));
  return { kind: 'rule', name, approval: rule.approval, ...defined({ digest }), isWithoutRun };
}

/** Returns the digest that the agent published with the wait. It has precedence over the definition, which may have been edited since. */
function digestOfWait({ live }: RequestedGroup, rule: string): string | undefined {
  return live.decision.waits.find((wait) => wait.rule === rule)?.digest;
}

/** Throws Failure if no group of the verified requester may give one of the approvals. */
function refuseOtherGroups(verified: IntentView, approvals: readonly ApprovalDefinition[], what: string): void {
  if (approvals.length === 0 || approvals.some((approval) => mayApprove(verified, approval))) return;
  const from = [...new Set(approvals.flatMap((approval) => approval.from))];
  const { requestedBy } = verified;
  throw refusedFailure(`${requestedBy?.user} may not approve or reject ${what}; nothing was written`, {
    why: `an approver must belong to ${from.join(' or ')}; the API server reports ${requestedBy?.groups.join(', ') || 'no group'}`,
  });
}
