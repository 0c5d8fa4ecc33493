// The verbs approve and reject: the word of a person about what waits for one.
import { digestOfRule, digestOfWaves } from '../../engine/run/requests.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import type { ApprovalDefinition, PolicyDefinition, PolicyRuleDefinition } from '../../policies/definition.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { type Asked, type AskFlags, ask, publishedRun } from '../live/asking.ts';
import { durationFlag } from '../live/when.ts';
import { instantText } from '../output/plan/words.ts';

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
  /** Of its definition, as the agent has published it where it waits, else as it stands; absent where only the agent reads it. */
  readonly digest?: string;
  /** Asked of a rule that holds something else than a rollout, or while nothing rolls. */
  readonly isOfNoRun?: boolean;
}

export function answer(context: CommandContext, options: ApproveOptions, action: 'approve' | 'reject'): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name } = asked;
    const subject = subjectOf(asked, options, action);
    const { wave, rule, approval } = subject;
    const digest = action === 'approve' ? digestIn(subject, name) : undefined;
    const expiresMs = options.for === undefined ? undefined : asked.cluster.env.clock.nowMs() + durationFlag('--for', options.for);
    const run = subject.isOfNoRun === true ? undefined : runningRun(asked);
    if (run === undefined && expiresMs === undefined && action === 'approve')
      throw usageFailure(`an approval of rule ${rule} is for no run and ends with none`, 'say until when: --for 1h');
    const what = wave === undefined ? `rule ${rule}` : `wave ${wave}`;
    return {
      isPermit: true,
      key: `${run ?? ''} ${what}`,
      spec: {
        action,
        ...(run === undefined ? {} : { runId: run }),
        ...(wave === undefined ? {} : { wave }),
        ...(rule === undefined ? {} : { rule }),
        ...(digest === undefined ? {} : { digest }),
        ...(expiresMs === undefined ? {} : { expires: new Date(expiresMs).toISOString() }),
      },
      check: (stamped) => refuseStranger(stamped, approval, `${what} of ${name}`),
      text: (by) => {
        const why = options.reason === undefined ? '' : ` (${options.reason})`;
        const until = expiresMs === undefined ? '' : ` until ${instantText(expiresMs)}`;
        const said = action === 'approve' ? 'approved' : 'rejected';
        const next =
          action === 'approve'
            ? `counts for ${run === undefined ? '' : `run ${run} and `}${wave === undefined ? 'this rule' : 'these waves'} as defined now${needText(approval)}`
            : `nothing of it begins${run === undefined ? '' : ` in run ${run}`}, until ${by} approves or the intent is taken back`;
        return `${name}: ${what} ${said} by ${by}${until}${why}\n  ${next}\n`;
      },
    };
  });
}

/** @throws Failure where it is not known what would be approved. */
function digestIn({ wave, rule, digest }: Approvable, name: string): string {
  if (digest !== undefined) return digest;
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `nothing was asked of ${name}`,
    why: `${wave === undefined ? `rule ${rule}` : `wave ${wave}`} is defined where only the agent reads, which says what is to be approved once it waits`,
    todo: `approve it when it waits: kubectl rollout-group explain ${name}`,
  });
}

function needText(approval: ApprovalDefinition | undefined): string {
  if (approval === undefined || approval.count === 1) return '';
  return `; ${approval.count} different people must approve`;
}

function runUnderWay(asked: Asked): string | undefined {
  const run = publishedRun(asked);
  return run === undefined || run.outcome === 'completed' ? undefined : run.id;
}

/** The run that is under way. @throws Failure when there is none. */
function runningRun(asked: Asked): string {
  const run = runUnderWay(asked);
  if (run !== undefined) return run;
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
      .map((rule) => ruleOf(asked, policy, rule)),
  );
  return [...wave, ...ofPolicies];
}

function waveNamed(asked: Asked, wanted: string): Approvable {
  const { definition, name } = asked;
  const published = asked.live.decision.wave?.name === wanted ? digestOfWait(asked, 'approval') : undefined;
  if (definition === undefined) return { wave: wanted, ...(published === undefined ? {} : { digest: published }) };
  const wave = definition.rollout.waves.find((one) => one.name === wanted);
  if (wave === undefined)
    throw usageFailure(`${name} has no wave ${wanted}`, `its waves: ${definition.rollout.waves.map((one) => one.name).join(', ')}`);
  const approval = wave.before.approval ?? wave.after.approval;
  if (approval === undefined) throw usageFailure(`wave ${wanted} of ${name} asks for no approval`, `kubectl rollout-group explain ${name}`);
  return { wave: wanted, approval, digest: published ?? digestOfWaves(definition) };
}

function ruleNamed(asked: Asked, wanted: string): Approvable {
  const { read, name } = asked;
  const [found] = read.world.policies.policies.flatMap((policy) =>
    policy.rules.filter((one) => `${policy.name}/${one.name}` === wanted).map((rule) => ({ policy, rule })),
  );
  const digest = digestOfWait(asked, wanted);
  if (found === undefined) return { rule: wanted, ...(digest === undefined ? {} : { digest }) };
  const { policy, rule } = found;
  if (rule.effect === 'requireApproval' || rule.onUnknown === 'requireApproval') return ruleOf(asked, policy, rule);
  throw usageFailure(`rule ${wanted} asks for no approval`, `kubectl rollout-group explain ${name}`);
}

function ruleOf(asked: Asked, policy: PolicyDefinition, rule: PolicyRuleDefinition): Approvable {
  const id = `${policy.name}/${rule.name}`;
  const isOfNoRun = !rule.actions.includes('rollout') || runUnderWay(asked) === undefined;
  return { rule: id, approval: rule.approval, digest: digestOfWait(asked, id) ?? digestOfRule(policy, rule), isOfNoRun };
}

/** What the agent asks of people is what they have seen, whatever stands written meanwhile. */
function digestOfWait({ live }: Asked, rule: string): string | undefined {
  return live.decision.waits.find((wait) => wait.rule === rule)?.digest;
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
