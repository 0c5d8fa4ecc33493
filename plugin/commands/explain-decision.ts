// The verb explain, asked about one decision of the admission webhook: what was refused, by which rule, when, and what the answer is now.
import { isStatus } from '../../cluster/request/failure.ts';
import type { Judgement } from '../../engine/decision.ts';
import { messageOf } from '../../policies/error-message.ts';
import { type Cluster, withCluster } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { foundAgain, judgedNow } from '../live/denied-requests.ts';
import { type GroupEvent, listEvents } from '../live/events.ts';
import { type Now, renderDenial, renderFoundAgain } from '../output/denial.ts';
import { writeDocument } from '../output/formats.ts';
import type { LiveExplainOptions } from './explain-live.ts';

/** The label that the webhook gives the Event of a denial. */
const decisionLabel = 'rollout-group.dev/decision';

/** The id of `decision/ID`, as denials name it; undefined for everything else. */
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
    const now = request === undefined ? undefined : await answerNow(() => judgedNow(cluster, request));
    if (options.output === 'table') context.stdout.write(renderDenial({ id, events, last, nowMs, now }, context.stdout));
    else {
      const told = events.map(({ atMs, object, namespace, reason, note }) => ({
        at: new Date(atMs).toISOString(),
        namespace,
        object,
        reason,
        note,
      }));
      await writeDocument(context.stdout, options.output, { kind: 'Denial', decision: id, events: told, ...nowDocument(now) });
    }
    const [, name = ''] = last.object.split('/');
    suggestNext(context, `explain ${last.namespace}/${name}`);
    return exitCodes.done;
  });
}

/** Without an Event the request is looked for among those that would be refused now. */
async function explainFound(context: CommandContext, cluster: Cluster, id: string, options: LiveExplainOptions): Promise<ExitCode> {
  const now = await answerNow(() => foundAgain(cluster, cluster.namespace, id));
  if (now === undefined || 'unknown' in now) throw unknownDecision(cluster, id);
  if (options.output === 'table') context.stdout.write(renderFoundAgain(id, now, context.stdout));
  else await writeDocument(context.stdout, options.output, { kind: 'Denial', decision: id, events: [], ...nowDocument(now) });
  return exitCodes.done;
}

/** Nothing that was asked beside the Event keeps it from being shown. */
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

/** Of the namespace, else of those of all namespaces, the oldest first. */
async function eventsOf(cluster: Cluster, id: string): Promise<readonly GroupEvent[]> {
  const labelSelector = `${decisionLabel}=${id}`;
  let refused: unknown;
  try {
    const here = await listEvents(cluster, cluster.namespace, labelSelector);
    if (here.length > 0) return here;
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
    refused = error;
  }
  try {
    return await listEvents(cluster, undefined, labelSelector);
  } catch (error) {
    // Whoever may read one namespace has been told of that one.
    if (!isStatus(error, 403)) throw error;
    if (refused !== undefined) throw refused;
    return [];
  }
}

function unknownDecision({ namespace }: Cluster, id: string): Failure {
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `no Event tells of decision/${id}`,
    why: `neither in ${namespace} nor where else you may look, and nothing that ${namespace} has would be refused by this decision now; the API server keeps Events for an hour unless it is told otherwise`,
    todo: `ask again for what was refused, or see what holds a group now: kubectl rollout-group explain GROUP -n ${namespace}`,
  });
}
