// The verb explain for a cluster: the next decision about a group, or one denial of the admission webhook.
import { isStatus, onStatus } from '../../cluster/request/failure.ts';
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import { withoutRequesters } from '../../engine/rules/approval.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext, writeNotes } from '../context.ts';
import { readWebhookProblems } from '../doctor/gather/admission.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure } from '../failure.ts';
import { findDenied, judgeAgain } from '../live/denied-requests.ts';
import { type GroupEvent, listEvents } from '../live/events.ts';
import { findPod, findSubject, type LiveGroup, onlyGroup, readGroups, scopeOf } from '../live/groups.ts';
import { channelLines, markUnattended, notesOn, outdatedLines } from '../live/notes.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { type Now, renderDenial, renderFoundAgain } from '../output/events.ts';
import { renderLiveExplanation } from '../output/explain-live.ts';
import { groupDocument, writeDocument } from '../output/formats.ts';

export interface LiveExplainOptions extends ConnectionFlags {
  readonly group: string;
  readonly allRules?: boolean;
  readonly output: 'table' | 'json' | 'yaml';
}

export function explainLive(context: CommandContext, options: LiveExplainOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const { read, live, subject } = await findExplained(cluster, options.group);
    const found = await withRequesters(cluster, live);
    const nowMs = cluster.env.clock.nowMs();
    const notes = await notesOn(cluster, { groups: [found], problems: read.problems });
    const shown = markUnattended(found, notes);
    const outdated = outdatedLines(shown, read.listing, nowMs);
    const { stdout } = context;
    if (options.output === 'table') {
      stdout.write(
        renderLiveExplanation(
          { live: shown, subject, nowMs, showsAllRules: options.allRules === true, outdated },
          { ...stdout, isWide: false },
        ),
      );
    } else {
      const metadata = { generatedAt: new Date(nowMs).toISOString(), server: cluster.server };
      await writeDocument(stdout, options.output, { kind: 'Explanation', metadata, subject, ...groupDocument(shown) });
    }
    const channels = await channelLines(cluster, shown.decision);
    writeNotes(context, [...notes.lines, ...outdated, ...channels]);
    if (shown.decision.outcome !== 'done') suggestNext(context, `get ${nameOf(shown.decision)} -w`, `status ${nameOf(shown.decision)}`);
    return exitCodes.done;
  });
}

/** Finds the subject of the argument. GROUP/POD and NAMESPACE/GROUP/POD name a pod as tables print it. */
async function findExplained(cluster: Cluster, text: string) {
  const [, owner, pod = ''] = /^(.+)\/([^/]+-\d+)$/.exec(text) ?? [];
  if (owner !== undefined) {
    // The text can also be NAMESPACE/POD, so a failure to read a group of this name is no failure.
    const read = await readGroups(cluster, scopeOf([groupNamed(owner, cluster)])).catch(() => undefined);
    const subject = read && findPod(onlyGroup(read), pod);
    if (read !== undefined && subject !== undefined) return { read, live: onlyGroup(read), subject };
  }
  const wanted = groupNamed(text, cluster);
  const read = await readGroups(cluster, { namespace: wanted.namespace, names: [] });
  return { read, ...findSubject(read, wanted) };
}

/** Returns the group. An approval that it waits for is blocked if no webhook records requesters, as in a plan: `approve` would fail. */
async function withRequesters(cluster: Cluster, live: LiveGroup): Promise<LiveGroup> {
  const { decision } = live;
  if (decision.waits.every(({ digest }) => digest === undefined)) return live;
  const namespace = decision.lease?.namespace ?? cluster.agentNamespace ?? usualAgentNamespace;
  const problems = await readWebhookProblems(cluster, namespace, { pins: false, requesters: true });
  const { requesters } = isUnknown(problems) ? {} : problems;
  if (requesters === undefined) return live;
  const blocked = <Result extends RuleResult>(result: Result): Result => withoutRequesters(result, requesters);
  const steps = decision.steps.map((step) => ({ ...step, ...defined({ results: step.results?.map(blocked) }) }));
  return { ...live, decision: { ...decision, waits: decision.waits.map(blocked), steps } };
}

/** The label that the webhook gives the Event of a denial. */
const decisionLabel = 'rollout-group.dev/decision';

/** Returns the id in `decision/ID`, or undefined for any other text. */
export function decisionNamed(text: string): string | undefined {
  return /^decision\/([0-9a-f]{12})$/.exec(text)?.[1];
}

export function explainDecision(context: CommandContext, id: string, options: LiveExplainOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const events = await eventsOf(cluster, id);
    const last = events.at(-1);
    if (last === undefined) return await explainFound(context, cluster, id, options);
    const nowMs = cluster.env.clock.nowMs();
    const { request } = last;
    const now = request === undefined ? undefined : await answerNow(() => judgeAgain(cluster, request));
    if (options.output === 'table') context.stdout.write(renderDenial({ id, events, last, nowMs, now }, context.stdout));
    else {
      const eventDocuments = events.map(({ atMs, object, namespace, reason, note }) => {
        return { at: new Date(atMs).toISOString(), namespace, object, reason, note };
      });
      await writeDocument(context.stdout, options.output, { kind: 'Denial', decision: id, events: eventDocuments, ...nowDocument(now) });
    }
    const [, name = ''] = last.object.split('/');
    suggestNext(context, `explain ${last.namespace}/${name}`);
    return exitCodes.done;
  });
}

/** Looks for the request among the requests that would be denied now. The Event has expired, or the request was a dry run. */
async function explainFound(context: CommandContext, cluster: Cluster, id: string, options: LiveExplainOptions): Promise<ExitCode> {
  const now = await answerNow(() => findDenied(cluster, cluster.namespace, id));
  if (now === undefined || 'unknown' in now) throw unknownDecision(cluster, id);
  if (options.output === 'table') context.stdout.write(renderFoundAgain(id, now, context.stdout));
  else await writeDocument(context.stdout, options.output, { kind: 'Denial', decision: id, events: [], ...nowDocument(now) });
  return exitCodes.done;
}

/** Returns the current judgement. An error becomes an unknown judgement, so that the Event is shown in any case. */
async function answerNow(ask: () => Promise<Judgement | undefined>): Promise<Now | undefined> {
  try {
    return await ask();
  } catch (error) {
    return { unknown: messageOf(error) };
  }
}

function nowDocument(now: Now | undefined): object {
  if (now === undefined) return {};
  if ('unknown' in now) return { now: { outcome: 'unknown', message: now.unknown } };
  const { outcome, message, decisionId, results } = now;
  return { now: { outcome, message, decision: decisionId, results } };
}

/** Returns the Events of the namespace, or of all namespaces if the namespace has no such Event. The oldest comes first. */
async function eventsOf(cluster: Cluster, id: string): Promise<readonly GroupEvent[]> {
  const labelSelector = `${decisionLabel}=${id}`;
  let refused: unknown;
  const here = await listEvents(cluster, cluster.namespace, labelSelector).catch((error: unknown) => {
    refused = error;
    return onStatus([], 403)(error);
  });
  if (here.length > 0) return here;
  return listEvents(cluster, undefined, labelSelector).catch((error: unknown) => {
    // A user with access to only one namespace already has the result of that namespace.
    if (refused !== undefined && isStatus(error, 403)) throw refused;
    return onStatus([], 403)(error);
  });
}

function unknownDecision({ namespace }: Cluster, id: string): Failure {
  return notFoundFailure(`no Event was found for decision/${id}`, {
    why: `no readable namespace has such an Event, and no request in ${namespace} would be denied by this decision now; dry runs write no Events, and by default the API server keeps Events for one hour`,
    todo: `repeat the denied request, or run: kubectl rollout-group explain GROUP -n ${namespace}`,
  });
}
