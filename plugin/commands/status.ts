// The verb status: how far a group is, and an exit code when it is where it should be, cannot get there, or time is up.
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { usageFailure } from '../failure.ts';
import {
  type Condition,
  conditionText,
  type Judged,
  parseCondition,
  standstillOf,
  type VerdictOptions,
  verdictOn,
} from '../live/condition.ts';
import { createEstimator, type Estimator, estimationOf } from '../live/estimate.ts';
import { factsOf } from '../live/facts.ts';
import { type Ending, follow, type Screen } from '../live/follow.ts';
import type { LiveGroup } from '../live/groups.ts';
import { attended, notesOn } from '../live/notes.ts';
import { haveMembersChanged, havePausesChanged, outdatedLines } from '../live/outdated.ts';
import { type ReadGroups, readGroups, scopeOf } from '../live/read.ts';
import { areGone, goneFailure } from '../live/removed-group.ts';
import { type GroupName, groupNamed, nameOf } from '../live/target.ts';
import { durationFlag } from '../live/when.ts';
import { etaDocument } from '../output/estimate-text.ts';
import { writeDocument, writeLines } from '../output/formats.ts';
import { groupDocument } from '../output/group-document.ts';
import { infoText } from '../output/group-text.ts';
import { renderTree } from '../output/group-tree.ts';
import { personNeededText } from '../output/person-needed.ts';
import { heartbeatLine, renderStatus, statusKey, statusLine } from '../output/status.ts';

export interface StatusOptions extends ConnectionFlags {
  readonly group: string;
  readonly for: string;
  readonly timeout?: string;
  readonly failOnPause?: boolean;
  readonly watch?: 'true' | 'false';
  readonly heartbeat?: string;
  readonly output: 'table' | 'json' | 'yaml' | 'jsonl';
}

/** A pipeline that waits for ever helps nobody. */
const timeoutInCiMs = 30 * 60_000;

export async function run(context: CommandContext, options: StatusOptions): Promise<ExitCode> {
  const condition = parseCondition(options.for);
  const verdict: VerdictOptions = { condition, failOnPause: options.failOnPause === true };
  return withCluster(context, options, 'read', (cluster) => {
    const name = groupNamed(options.group, cluster);
    return options.watch === 'false' ? once(context, cluster, name, options, verdict) : wait(context, cluster, name, options, verdict);
  });
}

async function once(
  context: CommandContext,
  cluster: Cluster,
  name: GroupName,
  options: StatusOptions,
  verdict: VerdictOptions,
): Promise<ExitCode> {
  const found = await readGroups(cluster, scopeOf([name]), { forEstimate: true });
  const notes = await notesOn(cluster, found);
  const nowMs = cluster.env.clock.nowMs();
  const live = attended(onlyGroup(found), notes, nowMs);
  const read = { ...found, groups: [live] };
  const code = verdictOn(judgedOf(read, live, nowMs), verdict) ?? (notes.isAgentStopped ? exitCodes.unreachable : exitCodes.done);
  await write(context.stdout, cluster, options, { read, code });
  writeNotes(context, [...notes.lines, ...outdatedLines(live, read.listing, nowMs)]);
  return code;
}

async function wait(
  context: CommandContext,
  cluster: Cluster,
  name: GroupName,
  options: StatusOptions,
  verdict: VerdictOptions,
): Promise<ExitCode> {
  const { stdout } = context;
  const { env } = cluster;
  const scope = scopeOf([name]);
  const first = await readGroups(cluster, scope);
  const notes = await notesOn(cluster, first);
  writeNotes(context, notes.lines);
  const isText = options.output === 'table';
  const timeoutMs = timeoutOf(context, options);
  const estimator = createEstimator(() => env.clock.nowMs());
  const estimate: Estimator = (read, live, nowMs) => estimator(read, attended(live, notes, nowMs), nowMs);
  let before = '';
  const ending = await follow(context, cluster, {
    scope,
    forEstimate: true,
    heartbeatMs: isText ? durationFlag('--heartbeat', options.heartbeat ?? '60s') : 0,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    screen: isText ? screenOf(stdout, estimate, options) : undefined,
    write: ({ groups, listing }, nowMs) => {
      for (const live of groups) {
        // The end of what was before is no news of what was just asked for.
        if (isText && live.decision.outcome === 'done' && haveMembersChanged(live.decision, listing)) continue;
        const key = isText ? statusKey(live) : JSON.stringify(live.decision);
        if (key === before) continue;
        before = key;
        if (isText) stdout.write(`${statusLine(live, nowMs)}\n`);
        else if (options.output === 'jsonl') writeLines(stdout, [{ kind: 'GroupStatus', ...groupDocument(live) }]);
      }
    },
    heartbeat: (read, nowMs) =>
      stdout.write(read.groups.map((live) => `${heartbeatLine(live, nowMs, estimate(read, live, nowMs))}\n`).join('')),
    verdict: (read) => {
      if (areGone(read)) throw goneFailure(read.listing, name);
      return read.groups.length === 0 ? undefined : verdictOn(judgedOf(read, onlyGroup(read), env.clock.nowMs()), verdict);
    },
  });
  return conclude(context, cluster, options, ending, { name, condition: verdict.condition });
}

function screenOf(stdout: OutputStream, estimate: Estimator, flags: ConnectionFlags): Screen {
  const look = () => ({ ...stdout, isWide: false });
  const frameOf =
    (render: typeof renderStatus): Screen['frame'] =>
    (read, nowMs) =>
      read.groups.flatMap((live) => render(live, nowMs, look(), factsOf(read, live, nowMs, estimate)));
  return { frame: frameOf(renderStatus), other: { name: 'details', frame: frameOf(renderTree) }, look, flags };
}

/** Says how the waiting ended. */
async function conclude(
  context: CommandContext,
  cluster: Cluster,
  options: StatusOptions,
  ending: Ending,
  { name, condition }: { readonly name: GroupName; readonly condition: Condition },
): Promise<ExitCode> {
  const live = onlyGroup(ending.read);
  const notes = ending.kind === 'timeout' ? await notesOn(cluster, ending.read) : { lines: [], isAgentStopped: false };
  const standstill = standstillOf(judgedOf(ending.read, live, cluster.env.clock.nowMs()));
  const code = codeOf(ending, notes.isAgentStopped, standstill !== undefined);
  if (options.output === 'json' || options.output === 'yaml') await write(context.stdout, cluster, options, { read: ending.read, code });
  const outdated = ending.kind === 'timeout' ? outdatedLines(live, ending.read.listing, cluster.env.clock.nowMs()) : [];
  writeNotes(context, [...notes.lines, ...outdated]);
  const { stderr } = context;
  const again = `kubectl rollout-group status ${nameOf(name)}`;
  const missing = infoText(live.decision);
  if (ending.kind === 'interrupted' || ending.kind === 'quit') stderr.write(`the rollout goes on; look again with ${again}\n`);
  if (ending.kind === 'timeout') {
    const moving = notes.isAgentStopped ? 'nobody acts, since the agent is not running' : 'the rollout goes on';
    const how = notes.isAgentStopped || standstill === undefined ? moving : personNeededText(standstill, live.decision);
    stderr.write(`time is up before ${conditionText(condition)}; ${how}${missing === '' ? '' : `. What was missing: ${missing}`}\n`);
  }
  if (code === exitCodes.failed || code === exitCodes.waiting || ending.kind === 'timeout') suggestNext(context, `explain ${nameOf(name)}`);
  return code;
}

function codeOf(ending: Ending, isAgentStopped: boolean, isStandingStill: boolean): ExitCode {
  if (ending.kind === 'verdict') return ending.exitCode;
  // What was waited for has not come: whoever goes on after this verb must not go on because of a key.
  if (ending.kind === 'interrupted' || ending.kind === 'quit') return exitCodes.interrupted;
  if (isAgentStopped) return exitCodes.unreachable;
  return isStandingStill ? exitCodes.waiting : exitCodes.timedOut;
}

function timeoutOf({ env }: CommandContext, { timeout }: StatusOptions): number | undefined {
  if (timeout === undefined) return (env['CI'] ?? '') === '' ? undefined : timeoutInCiMs;
  const timeoutMs = durationFlag('--timeout', timeout);
  return timeoutMs === 0 ? undefined : timeoutMs;
}

function judgedOf({ world, listing }: ReadGroups, { decision }: LiveGroup, nowMs: number): Judged {
  const definition = world.policies.groups.find(({ namespace, name }) => namespace === decision.namespace && name === decision.group);
  const waves = definition?.rollout.waves.map((wave) => wave.name) ?? [];
  return {
    decision,
    waves,
    isOutdated: haveMembersChanged(decision, listing),
    isPauseOutdated: havePausesChanged(decision, listing, nowMs),
  };
}

function onlyGroup({ groups }: ReadGroups): LiveGroup {
  const [live] = groups;
  if (live === undefined) throw usageFailure('the group is not there any more');
  return live;
}

async function write(
  stream: OutputStream,
  cluster: Cluster,
  { output }: StatusOptions,
  { read, code }: { readonly read: ReadGroups; readonly code: ExitCode },
): Promise<void> {
  const nowMs = cluster.env.clock.nowMs();
  const live = onlyGroup(read);
  const facts = factsOf(read, live, nowMs, estimationOf);
  if (output === 'table') return stream.write(`${renderStatus(live, nowMs, { ...stream, isWide: false }, facts).join('\n')}\n`);
  const head = { kind: 'GroupStatus', metadata: { generatedAt: new Date(nowMs).toISOString(), server: cluster.server }, exitCode: code };
  const document = { ...head, ...groupDocument(live), ...etaDocument(facts.estimation, nowMs) };
  if (output === 'jsonl') return writeLines(stream, [document]);
  return writeDocument(stream, output, document);
}

function writeNotes({ stderr }: CommandContext, lines: readonly string[]): void {
  for (const line of lines) stderr.write(`${stderr.paint('yellow', 'note:')} ${line}\n`);
}
