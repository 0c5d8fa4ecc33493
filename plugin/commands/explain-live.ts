// The verb explain for a cluster: the next decision about a group, or one denial of the admission webhook.
import { isStatus, onStatus } from '../../cluster/request/failure.ts';
import type { AdmissionRequest, Judgement } from '../../engine/decision.ts';
import { judge } from '../../engine/judge/judge.ts';
import { decodeRequest } from '../../engine/judge/request-text.ts';
import { isUnknown, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { firstOf } from '../../policies/wording.ts';
import { type Cluster, type ConnectionFlags, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext, writeNotes } from '../context.ts';
import { type ExitCode, exitCodes, type Failure, notFoundFailure } from '../failure.ts';
import { type GroupEvent, listEvents } from '../live/events.ts';
import { findPod, findSubject, onlyGroup, readGroups, readObjects, scopeOf } from '../live/groups.ts';
import { channelLines, notesOn, outdatedLines, withAgentState } from '../live/notes.ts';
import { groupNamed, nameOf } from '../live/target.ts';
import { type Now, renderDenial, renderFoundAgain } from '../output/events.ts';
import { renderLiveExplanation } from '../output/explain-live.ts';
import { groupDocument, type ResultFormat, writeResult } from '../output/formats.ts';

export interface LiveExplainOptions extends ConnectionFlags {
  readonly group: string;
  readonly allRules?: boolean;
  readonly output: 'table' | ResultFormat;
}

export function explainLive(context: CommandContext, options: LiveExplainOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (cluster) => {
    const { read, live, subject } = await findExplained(cluster, options.group);
    const nowMs = cluster.env.clock.nowMs();
    const notes = await notesOn(cluster, { groups: [live], problems: read.problems });
    const shown = withAgentState(live, notes);
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
      await writeResult(context, options.output, { kind: 'Explanation', metadata, subject, ...groupDocument(shown) });
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
    // The text can also be NAMESPACE/POD, so an error of this read is ignored.
    const named = groupNamed(owner, cluster);
    const read = await readGroups(cluster, scopeOf([named])).catch(() => undefined);
    const subject = read && findPod(onlyGroup(read), pod);
    if (read !== undefined && subject !== undefined) return { read, live: onlyGroup(read), subject };
    if (read !== undefined)
      throw notFoundFailure(`${pod} is not a pod of ${owner}`, {
        todo: `list its pods: kubectl rollout-group get ${nameOf(named)} --pods=all`,
      });
  }
  const wanted = groupNamed(text, cluster);
  const read = await readGroups(cluster, { namespace: wanted.namespace, names: [] });
  try {
    return { read, ...findSubject(read, wanted) };
  } catch (error) {
    throw wanted.namespace === 'decision' ? await malformedDecision(cluster, wanted.group) : error;
  }
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
      await writeResult(context, options.output, { kind: 'Denial', decision: id, events: eventDocuments, ...nowDocument(now) });
    }
    const [, name = ''] = last.object.split('/');
    suggestNext(context, `explain ${last.namespace}/${name}`);
    return exitCodes.done;
  });
}

/** Explains a denial that has no Event: judges the possible downscales, deletions and evictions until one is denied with this id. */
async function explainFound(context: CommandContext, cluster: Cluster, id: string, options: LiveExplainOptions): Promise<ExitCode> {
  const now = await answerNow(() => findDenied(cluster, cluster.namespace, id));
  if (now === undefined || 'unknown' in now) throw await unknownDecision(cluster, id, now?.unknown);
  if (options.output === 'table') context.stdout.write(renderFoundAgain(id, now, context.stdout));
  else await writeResult(context, options.output, { kind: 'Denial', decision: id, events: [], ...nowDocument(now) });
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
  const { outcome, message, decisionId, results, override } = now;
  return { now: { outcome, message, decision: decisionId, results, override } };
}

/** Returns the Events of the decision in the namespace, or else in all namespaces. The oldest comes first. */
async function eventsOf(cluster: Cluster, id: string): Promise<readonly GroupEvent[]> {
  const labelSelector = `${decisionLabel}=${id}`;
  let refused: unknown;
  const here = await listEvents(cluster, cluster.namespace, labelSelector).catch((error: unknown) => {
    refused = error;
    return onStatus([], 403)(error);
  });
  if (here.length > 0) return here;
  return listEvents(cluster, undefined, labelSelector).catch((error: unknown) => {
    // A missing permission is an error only if both lists are denied.
    if (refused !== undefined && isStatus(error, 403)) throw refused;
    return onStatus([], 403)(error);
  });
}

/** Returns an action that names the latest denials of the namespace, or else the Events of a group. */
async function deniedTodo(cluster: Cluster): Promise<string> {
  const { namespace } = cluster;
  const events = await listEvents(cluster, namespace, decisionLabel).catch(onStatus([], 403));
  const named = events.toReversed().flatMap(({ note }) => /decision\/[0-9a-f]{12}/.exec(note)?.[0] ?? []);
  if (named.length === 0) return `list the Events of a group: kubectl rollout-group events GROUP -n ${namespace}`;
  return `name a denial that has an Event in ${namespace}: ${firstOf([...new Set(named)], 3)}`;
}

async function malformedDecision(cluster: Cluster, text: string): Promise<Failure> {
  return notFoundFailure(`decision/${text} is not a denial`, {
    why: 'the ID of decision/ID has 12 hexadecimal digits, as denials name it, and no group of a namespace decision has this name',
    todo: await deniedTodo(cluster),
  });
}

async function unknownDecision(cluster: Cluster, id: string, problem: string | undefined): Promise<Failure> {
  const { namespace } = cluster;
  const found = problem ?? `no downscale, deletion or eviction in ${namespace} was found that this decision would deny now`;
  return notFoundFailure(`no Event was found for decision/${id}`, {
    why: `no readable namespace has such an Event, and ${found}; dry runs write no Events, and by default the API server keeps Events for one hour`,
    todo: `repeat the denied request, or ${await deniedTodo(cluster)}`,
  });
}

/** The maximum number of requests that are judged to find one id. More requests would take too long. */
const maxJudged = 5_000;

/** Judges the encoded request against the current state. Undefined if the text is not a request. Rejects if the cluster is unreadable. */
async function judgeAgain(cluster: Cluster, text: string): Promise<Judgement | undefined> {
  const request = decodeRequest(text);
  return request === undefined ? undefined : judge(await snapshotOf(cluster, request.namespace), request);
}

/** Finds the downscale, deletion or eviction that would now be denied with this decision id. Returns undefined if no request matches. */
async function findDenied(cluster: Cluster, namespace: string, id: string): Promise<Judgement | undefined> {
  const snapshot = await snapshotOf(cluster, namespace);
  let tried = 0;
  for (const request of possibleRequests(snapshot, namespace)) {
    tried += 1;
    if (tried > maxJudged) return undefined;
    const judgement = judge(snapshot, request);
    if (judgement.decisionId === id && judgement.outcome !== 'allow') return judgement;
  }
  return undefined;
}

async function snapshotOf(cluster: Cluster, namespace: string): Promise<Snapshot> {
  return (await readObjects(cluster, { namespace, names: [] })).stored;
}

function* possibleRequests(snapshot: Snapshot, namespace: string): Generator<AdmissionRequest> {
  for (const set of snapshot.statefulSets.filter((one) => one.namespace === namespace)) yield* requestsOn(set);
  for (const { pods, ...view } of snapshot.pods) {
    if (view.namespace !== namespace || isUnknown(pods)) continue;
    for (const { name: pod } of pods) {
      yield { kind: 'evictPod', namespace, pod, dryRun: false };
      yield { kind: 'deletePod', namespace, pod, dryRun: false };
    }
  }
}

function* requestsOn({ namespace, name: statefulSet, replicas: from, ...set }: StatefulSetView): Generator<AdmissionRequest> {
  const target = { namespace, statefulSet, dryRun: false };
  yield { kind: 'deleteStatefulSet', ...target, ...(from === 0 ? {} : { pods: Math.max(from, set.status.replicas) }) };
  for (let to = from - 1; to >= 0; to -= 1) {
    yield { kind: 'scale', ...target, from, to, via: 'scale' };
    const kept = {
      isTemplateChanged: false,
      strategy: set.updateStrategy,
      partition: set.partition,
      firstOrdinal: set.firstOrdinal,
      relabels: [],
    };
    for (const via of ['patch', 'update'] as const) yield { kind: 'update', ...target, from, to, ...kept, via };
  }
}
