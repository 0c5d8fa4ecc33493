// The verb status: shows the progress of a group and returns an exit code for success, failure, wait or timeout.
import { isMoving } from '../../engine/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { noWaveTexts, personNeeded } from '../../engine/publish/status.ts';
import { endsByItself } from '../../engine/rules/catalog.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, type OutputStream, suggestNext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes, mostSevere, notFoundFailure, usageFailure } from '../failure.ts';
import { conditionText, type Judged, parseCondition, standstillOf, type VerdictOptions, verdictOn } from '../live/condition.ts';
import { createEstimator, type Estimator, estimationOf, factsOf } from '../live/facts.ts';
import { changeFilter, type Ending, follow, type Screen } from '../live/follow.ts';
import { haveStopsChanged, type LiveGroup, onlyGroup, type ReadGroups, readGroups, scopeOf } from '../live/groups.ts';
import { chosenGroups, type GroupChoice, noGroupsText } from '../live/named-group.ts';
import { notesOn, outdatedLines, withAgentState } from '../live/notes.ts';
import { areAllRemoved, removedFailure } from '../live/removed-group.ts';
import { durationFlag, type GroupName, nameOf, timeoutFlag } from '../live/target.ts';
import { groupDocument, type ResultFormat, writeLines, writeResult } from '../output/formats.ts';
import { renderTree } from '../output/get.ts';
import { etaDocument, leadingText, personNeededText, troubleText } from '../output/group-text.ts';
import { stopText } from '../output/plan/plan-text.ts';
import { heartbeatLine, renderStatus, statusLine } from '../output/status.ts';

export interface StatusOptions extends ConnectionFlags, GroupChoice {
  readonly for: string;
  readonly timeout?: string;
  readonly failOnPause?: boolean;
  readonly watch?: boolean;
  readonly heartbeat?: string;
  readonly output: 'table' | 'jsonl' | ResultFormat;
  /** The instant at which the wait times out, from `timeoutAt`. Absent: by the flags. */
  readonly timeoutAtMs?: number | undefined;
}

/** The default timeout in CI, where an endless wait would block the pipeline. */
const timeoutInCiMs = 30 * 60_000;

export async function run(context: CommandContext, options: StatusOptions): Promise<ExitCode> {
  const condition = parseCondition(options.for);
  const verdict: VerdictOptions = { condition, failOnPause: options.failOnPause === true };
  return withCluster(context, options, 'read', async (cluster) => {
    const names = await chosenGroups(cluster, options);
    if (names.length === 0) throw notFoundFailure(noGroupsText(cluster, options));
    if (names.length > 1 && options.output !== 'table' && options.output !== 'jsonl')
      throw usageFailure(`-o ${options.output} prints one document, about one group`, 'name one group, or use -o jsonl');
    const codes: ExitCode[] = [];
    const timed = { ...options, timeoutAtMs: options.timeoutAtMs ?? timeoutAt(context, options) };
    for (const name of names) {
      const call = { context, cluster, name, options: timed, verdict };
      codes.push(await (options.watch === false || context.cluster !== undefined ? once(call) : wait(call)));
    }
    return mostSevere(codes);
  });
}

interface StatusCall {
  readonly context: CommandContext;
  readonly cluster: Cluster;
  readonly name: GroupName;
  readonly options: StatusOptions;
  readonly verdict: VerdictOptions;
}

async function once({ context, cluster, name, options, verdict }: StatusCall): Promise<ExitCode> {
  const found = await readGroups(cluster, scopeOf([name]), { forEstimate: true });
  const notes = await notesOn(cluster, found);
  const nowMs = cluster.env.clock.nowMs();
  const live = withAgentState(onlyGroup(found), notes);
  const read = { ...found, groups: [live] };
  const code = verdictOn(judgedOf(read, live, nowMs), verdict) ?? (notes.unattended.size > 0 ? exitCodes.unreachable : exitCodes.done);
  await write(context, cluster, options, { read, code });
  writeNotes(context, [...notes.lines, ...outdatedLines(live, read.listing, nowMs)]);
  return code;
}

async function wait(call: StatusCall): Promise<ExitCode> {
  const { context, cluster, name, options, verdict } = call;
  const { stdout } = context;
  const { env } = cluster;
  const scope = scopeOf([name]);
  const first = await readGroups(cluster, scope);
  // A condition with an unknown zone or wave fails before the first line.
  for (const live of first.groups) verdictOn(judgedOf(first, live, env.clock.nowMs()), verdict);
  const notes = await notesOn(cluster, first);
  writeNotes(context, notes.lines);
  const isText = options.output === 'table';
  const estimate = createEstimator(() => env.clock.nowMs());
  const ending = await follow(context, cluster, {
    scope,
    notes,
    forEstimate: true,
    heartbeatMs: isText ? durationFlag('--heartbeat', options.heartbeat ?? '60s') : 0,
    ...(options.timeoutAtMs === undefined ? {} : { timeoutMs: Math.max(0, options.timeoutAtMs - context.nowMs()) }),
    screen: isText ? screenOf(stdout, estimate, options) : undefined,
    write: transitionWriter(stdout, options.output),
    heartbeat: (read, nowMs) =>
      stdout.write(read.groups.map((live) => `${heartbeatLine(live, nowMs, estimate(read, live, nowMs))}\n`).join('')),
    verdict: (read, { lost }) => {
      if (areAllRemoved(read)) throw removedFailure(read.listing, name);
      if (read.groups.length === 0) return undefined;
      const code = verdictOn(judgedOf(read, onlyGroup(read), env.clock.nowMs()), verdict);
      return code ?? (lost.has(nameOf(name)) ? exitCodes.unreachable : undefined);
    },
  });
  return conclude(call, ending);
}

/** Returns a function that, for `table` and `jsonl`, writes the group if the group changed since the previous call. */
function transitionWriter(stdout: OutputStream, output: StatusOptions['output']): (read: ReadGroups, nowMs: number) => void {
  const isText = output === 'table';
  const changedIn = changeFilter(isText);
  return ({ groups }, nowMs) => {
    // The end of the previous rollout must not look like the end of the one that was just requested.
    const current = groups.filter(({ decision, isOutdated }) => !isText || decision.outcome !== 'done' || isOutdated !== true);
    for (const live of changedIn(current)) {
      if (isText) stdout.write(`${statusLine(live, nowMs)}\n`);
      else if (output === 'jsonl') writeLines(stdout, [{ kind: 'GroupStatus', ...groupDocument(live) }]);
    }
  };
}

function screenOf(stdout: OutputStream, estimate: Estimator, flags: ConnectionFlags): Screen {
  const look = () => ({ ...stdout, isWide: false });
  const frameOf =
    (render: typeof renderStatus): Screen['frame'] =>
    (read, nowMs) =>
      read.groups.flatMap((live) => render(live, nowMs, look(), factsOf(read, live, nowMs, estimate)));
  return { frame: frameOf(renderStatus), other: { name: 'details', frame: frameOf(renderTree) }, look, flags };
}

/** Prints the group for `-o json`, `yaml` and `jsonpath`, and for every format why the wait ended early. Returns the exit code. */
async function conclude(call: StatusCall, ending: Ending): Promise<ExitCode> {
  const { context, cluster, name, options } = call;
  const live = onlyGroup(ending.read);
  const nowMs = cluster.env.clock.nowMs();
  const notes = ending.kind === 'timeout' ? await notesOn(cluster, ending.read) : undefined;
  const stopped = notes?.unattended.get(nameOf(live.decision));
  const hasFailed = ending.kind === 'verdict' && ending.exitCode === exitCodes.failed;
  const standstill = hasFailed ? personNeeded(live.decision) : standstillOf(judgedOf(ending.read, live, nowMs));
  const code = codeOf(ending, stopped !== undefined, standstill !== undefined);
  if (options.output !== 'table' && options.output !== 'jsonl') await write(context, cluster, options, { read: ending.read, code });
  writeNotes(context, [...(notes?.lines ?? []), ...(notes === undefined ? [] : outdatedLines(live, ending.read.listing, nowMs))]);
  const why = standstill === undefined ? progressText(live.decision, nowMs) : personNeededText(standstill, live.decision, nowMs);
  context.stderr.write(
    endingText(call, ending, stopped === undefined ? why : `${stopped}. Run: kubectl rollout-group doctor -n ${name.namespace}`),
  );
  if (code === exitCodes.failed || code === exitCodes.waiting) suggestNext(context, `explain ${nameOf(name)}`);
  return code;
}

/** Returns whether the rollout continues or waits, with the failing pods and the stop that blocks, or else the leading fact. */
function progressText(decision: PublishedDecision, nowMs: number): string {
  // While pods are being replaced, nothing waits yet for the stop of another zone.
  const stop = isMoving(decision) ? undefined : decision.stops?.find(({ isBlocking }) => isBlocking);
  if (stop !== undefined) {
    const trouble = troubleText(decision);
    const rule = stop.rule.includes('/') ? '' : `${stop.rule}: `;
    return `the rollout waits: ${trouble}${trouble && '; '}${rule}${stopText(stop, nowMs)}`;
  }
  const leading = leadingText(decision, nowMs);
  return `the rollout ${decision.waits.every(endsByItself) ? 'continues' : 'waits'}${leading && `: ${leading}`}`;
}

/** Returns the text for a wait that timed out, that the user ended, or whose agent does not run; empty for any other ending. */
function endingText({ name, verdict: { condition } }: StatusCall, ending: Ending, why: string): string {
  const { unattended, decision } = onlyGroup(ending.read);
  const isOfCondition = ({ zone, statefulSet }: PublishedDecision['zones'][number]): boolean =>
    condition.kind === 'zone' && [zone, statefulSet].includes(condition.zone);
  const [inNoWave] = noWaveTexts(decision.zones.filter(isOfCondition));
  if (ending.kind === 'verdict' && ending.exitCode === exitCodes.waiting && inNoWave !== undefined)
    return `ended before ${conditionText(condition)}; ${inNoWave}. To update them, add a wave with percent: 100\n`;
  if (ending.kind === 'interrupted' || ending.kind === 'quit')
    return `${unattended ?? 'the rollout continues'}. Run: kubectl rollout-group status ${nameOf(name)}\n`;
  const explain = /(?:Run|To end it): /.test(why) ? '' : `. Run: kubectl rollout-group explain ${nameOf(name)}`;
  if (ending.kind === 'verdict' && ending.exitCode === exitCodes.failed)
    return `failed before ${conditionText(condition)}; ${why}${explain}\n`;
  if (ending.kind === 'timeout') return `timed out before ${conditionText(condition)}; ${why}${explain}\n`;
  return ending.kind === 'verdict' && ending.exitCode === exitCodes.unreachable
    ? `ended before ${conditionText(condition)}; ${unattended}. Run: kubectl rollout-group doctor -n ${name.namespace}\n`
    : '';
}

function codeOf(ending: Ending, isAgentStopped: boolean, needsPerson: boolean): ExitCode {
  if (ending.kind === 'verdict') return ending.exitCode;
  // The condition is not met, so a script must not continue after the user pressed a key.
  if (ending.kind === 'interrupted' || ending.kind === 'quit') return exitCodes.interrupted;
  if (isAgentStopped) return exitCodes.unreachable;
  return needsPerson ? exitCodes.waiting : exitCodes.timedOut;
}

/** Returns the instant at which a wait that starts now times out: one instant for all groups. Returns undefined for no timeout. */
export function timeoutAt({ env, nowMs }: CommandContext, { timeout }: Pick<StatusOptions, 'timeout'>): number | undefined {
  const timeoutMs = timeout === undefined && (env['CI'] ?? '') !== '' ? timeoutInCiMs : timeoutFlag(timeout);
  return timeoutMs === undefined ? undefined : nowMs() + timeoutMs;
}

function judgedOf({ listing }: ReadGroups, { decision, definition, isOutdated }: LiveGroup, nowMs: number): Judged {
  return {
    decision,
    waves: definition?.rollout.waves.map((wave) => wave.name) ?? [],
    isOutdated: isOutdated === true,
    areStopsOutdated: haveStopsChanged(decision, listing, nowMs),
  };
}

async function write(
  context: CommandContext,
  cluster: Cluster,
  { output }: StatusOptions,
  { read, code }: { readonly read: ReadGroups; readonly code: ExitCode },
): Promise<void> {
  const nowMs = cluster.env.clock.nowMs();
  const { stdout: stream } = context;
  const live = onlyGroup(read);
  const facts = factsOf(read, live, nowMs, estimationOf);
  if (output === 'table') return stream.write(`${renderStatus(live, nowMs, { ...stream, isWide: false }, facts).join('\n')}\n`);
  const metadata = { generatedAt: new Date(nowMs).toISOString(), server: cluster.server };
  const ofGroup = { ...groupDocument(live), ...etaDocument(facts.estimation, nowMs) };
  const document = { kind: 'GroupStatus' as const, metadata, exitCode: code, ...ofGroup };
  if (output === 'jsonl') return writeLines(stream, [document]);
  return writeResult(context, output, document);
}
