// The verbs approve and reject: the word of a person about what waits for one.
import type { IntentView } from '../../engine/snapshot.ts';
import type { ApprovalDefinition } from '../../policies/definition.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { type Asked, type AskFlags, ask, publishedRun } from '../live/asking.ts';
import { durationFlag } from '../live/when.ts';
import { instantText } from '../output/plan-words.ts';

export interface ApproveOptions extends AskFlags {
  readonly wave?: string;
  readonly rule?: string;
  readonly for?: string;
}

export function run(context: CommandContext, options: ApproveOptions): Promise<ExitCode> {
  return answer(context, options, 'approve');
}

/** What an approval is for, with who may give it as far as that is known. */
export interface Approvable {
  readonly wave?: string;
  readonly rule?: string;
  readonly approval?: ApprovalDefinition;
}

export function answer(context: CommandContext, options: ApproveOptions, action: 'approve' | 'reject'): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name } = asked;
    const subject = subjectOf(asked, options, action);
    const { wave, rule, approval } = subject;
    const run = runningRun(asked);
    const what = wave === undefined ? `rule ${rule}` : `wave ${wave}`;
    const expiresMs = options.for === undefined ? undefined : asked.cluster.env.clock.nowMs() + durationFlag('--for', options.for);
    return {
      isPermit: true,
      key: `${run} ${what}`,
      spec: {
        action,
        runId: run,
        ...(wave === undefined ? {} : { wave }),
        ...(rule === undefined ? {} : { rule }),
        ...(expiresMs === undefined ? {} : { expires: new Date(expiresMs).toISOString() }),
      },
      check: (stamped) => refuseStranger(stamped, approval, `${what} of ${name}`),
      text: (by) => {
        const why = options.reason === undefined ? '' : ` (${options.reason})`;
        const until = expiresMs === undefined ? '' : ` until ${instantText(expiresMs)}`;
        const said = action === 'approve' ? 'approved' : 'rejected';
        const next =
          action === 'approve'
            ? `counts for run ${run} alone${needText(approval)}`
            : `nothing of it begins in run ${run}, until ${by} approves or the intent is taken back`;
        return `${name}: ${what} ${said} by ${by}${until}${why}\n  ${next}\n`;
      },
    };
  });
}

function needText(approval: ApprovalDefinition | undefined): string {
  if (approval === undefined || approval.count === 1) return '';
  return `; ${approval.count} different people must approve`;
}

/** The run that is under way. @throws Failure when there is none. */
function runningRun(asked: Asked): string {
  const run = publishedRun(asked);
  if (run !== undefined && run.outcome !== 'completed') return run.id;
  throw new Failure({ exitCode: exitCodes.refused, what: `${asked.name} does not roll, so that there is nothing to approve` });
}

function subjectOf(asked: Asked, { wave, rule }: ApproveOptions, action: string): Approvable {
  if (wave !== undefined && rule !== undefined) throw usageFailure('--wave and --rule exclude each other', 'name one of them');
  if (wave !== undefined) return waveNamed(asked, wave);
  if (rule !== undefined) return ruleNamed(asked, rule);
  const waiting = waitingFor(asked);
  const [only, ...others] = waiting;
  if (only === undefined) {
    throw new Failure({
      exitCode: exitCodes.refused,
      what: `nothing of ${asked.name} waits for an approval`,
      todo: `name what you mean: kubectl rollout-group ${action} ${asked.name} --wave NAME, or see: kubectl rollout-group explain ${asked.name}`,
    });
  }
  if (others.length === 0) return only;
  const names = waiting.map((one) => (one.wave === undefined ? `--rule ${one.rule}` : `--wave ${one.wave}`));
  throw usageFailure(`${asked.name} waits for ${waiting.length} approvals`, `name one: ${names.join(', ')}`);
}

/** What the group waits for now. */
export function waitingFor(asked: Asked): readonly Approvable[] {
  const { decision } = asked.live;
  const rules = new Set(decision.waits.map(({ rule }) => rule));
  const wave = rules.has('approval') && decision.wave !== undefined ? [waveNamed(asked, decision.wave.name)] : [];
  const ofPolicies = asked.read.world.policies.policies.flatMap((policy) =>
    policy.rules
      .filter(
        (rule) => rules.has(`${policy.name}/${rule.name}`) && (rule.effect === 'requireApproval' || rule.onUnknown === 'requireApproval'),
      )
      .map((rule) => ({ rule: `${policy.name}/${rule.name}`, approval: rule.approval })),
  );
  return [...wave, ...ofPolicies];
}

function waveNamed({ definition, name }: Asked, wanted: string): Approvable {
  if (definition === undefined) return { wave: wanted };
  const wave = definition.rollout.waves.find((one) => one.name === wanted);
  if (wave === undefined)
    throw usageFailure(`${name} has no wave ${wanted}`, `its waves: ${definition.rollout.waves.map((one) => one.name).join(', ')}`);
  const approval = wave.before.approval ?? wave.after.approval;
  if (approval === undefined) throw usageFailure(`wave ${wanted} of ${name} asks for no approval`, `kubectl rollout-group explain ${name}`);
  return { wave: wanted, approval };
}

function ruleNamed({ read, name }: Asked, wanted: string): Approvable {
  const rule = read.world.policies.policies.flatMap((policy) => policy.rules.filter((one) => `${policy.name}/${one.name}` === wanted))[0];
  if (rule === undefined) return { rule: wanted };
  if (rule.effect === 'requireApproval' || rule.onUnknown === 'requireApproval') return { rule: wanted, approval: rule.approval };
  throw usageFailure(`rule ${wanted} asks for no approval`, `kubectl rollout-group explain ${name}`);
}

/** @throws Failure when the API server knows the person as a member of none of the groups that may approve. */
function refuseStranger({ requestedBy }: IntentView, approval: ApprovalDefinition | undefined, what: string): void {
  if (approval === undefined || approval.from.length === 0) return;
  if (requestedBy?.groups.some((group) => approval.from.includes(group)) === true) return;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `the word of ${requestedBy?.user} about ${what} would not count, and was not written`,
    why: `it takes somebody of ${approval.from.join(' or ')}, and the API server says ${requestedBy?.groups.join(', ') || 'no group'}`,
  });
}
