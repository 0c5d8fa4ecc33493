// Writes Kubernetes Events about denied requests and used exceptions, at most one per decision in ten minutes.
import { isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, microTime } from '../../cluster/request/write.ts';
import type { Judgement } from '../../engine/decision.ts';
import { encodeRequest } from '../../engine/judge/request-text.ts';
import { leadingResult, storedResult } from '../../engine/rule.ts';
import { reasonOf } from '../../engine/rules/catalog.ts';
import { messageOf } from '../../policies/error-message.ts';
import { eventNote } from '../../policies/text/shorten.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import { putNewest } from '../../policies/values/map.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';

export interface JudgedSubject {
  readonly namespace: string;
  readonly statefulSet: string;
  readonly uid?: string;
}

/** The label of an Event about a denial. The value is the id of the decision, so that `explain` finds the Event. */
export const decisionLabel = 'rollout-group.dev/decision';

/** The annotation of an Event about a denial. The value is the request, so that `explain` can evaluate the request again. */
export const requestAnnotation = 'rollout-group.dev/request';

/** The minimum time between two Events about the same decision. */
const repeatMs = 600_000;
/** The most Events that wait to be written. Further judgements are combined into one Event per StatefulSet and reason. */
const maxWaiting = 100;
/** The most decisions whose last Event is remembered. The oldest are forgotten first. */
const maxRemembered = 2_000;
const timeoutMs = 5_000;

export type ReportJudgement = (judgement: Judgement, subject: JudgedSubject) => void;

/**
 * Returns a function that queues an Event about a denial, or about a request that an exception permits. The function never throws. One Event
 * is written after the other; a failed write is not retried.
 */
export function judgementReporter(env: AgentEnv, config: Pick<AgentConfig, 'identity'>): ReportJudgement {
  const queuedMs = new Map<string, number>();
  const waiting: KubernetesObject[] = [];
  /** The Events that combine judgements, by StatefulSet and reason. They are written after the Events in `waiting`. */
  const combined = new Map<string, KubernetesObject>();
  let isWriting = false;
  let hasWarned = false;

  const nextEvent = (): KubernetesObject | undefined => {
    const [key] = combined.keys();
    if (waiting.length > 0 || key === undefined) return waiting.shift();
    const event = combined.get(key);
    combined.delete(key);
    return event;
  };

  const writeAll = async (): Promise<void> => {
    if (isWriting) return;
    isWriting = true;
    for (let event = nextEvent(); event !== undefined; event = nextEvent()) {
      try {
        await createObject(env, resources.events, event, { site: 'judgements.create', timeoutMs });
      } catch (error) {
        // Status 409: another process has already written the Event.
        if (isStatus(error, 409) || hasWarned) continue;
        hasWarned = true;
        env.log.warn('event of a judgement could not be written', { error: messageOf(error) });
      }
    }
    isWriting = false;
  };

  /** Counts a judgement in the Event of its StatefulSet and reason. The Event shows the latest judgement. */
  const combine = (event: KubernetesObject): void => {
    const key = canonicalJson([event['regarding'], event['reason']]);
    const { eventTime: lastObservedTime } = event;
    const { eventTime, series } = combined.get(key) ?? event;
    const count = Number(asJsonObject(series)['count'] ?? (combined.has(key) ? 1 : 0)) + 1;
    combined.set(key, { ...event, eventTime, ...(count === 1 ? {} : { series: { count, lastObservedTime } }) });
  };

  return (judgement, subject) => {
    const key = `${subject.namespace} ${judgement.decisionId}`;
    const nowMs = env.clock.monotonicMs();
    const lastMs = queuedMs.get(key);
    if (lastMs !== undefined && nowMs - lastMs < repeatMs) return;
    putNewest(queuedMs, key, nowMs, maxRemembered);
    const writer = { nowMs: env.clock.nowMs(), identity: config.identity };
    if (waiting.length < maxWaiting) waiting.push(judgementEvent(judgement, subject, writer));
    else combine(judgementEvent(judgement, subject, { ...writer, prefix: '(combined from similar events): ' }));
    void writeAll();
  };
}

/** Returns the Event of a judgement. The decision and the ten-minute slot give its name, so only one of several processes creates it. */
export function judgementEvent(
  { outcome, message, decisionId, results, request }: Judgement,
  { namespace, statefulSet, uid }: JudgedSubject,
  { nowMs, identity, prefix = '' }: { readonly nowMs: number; readonly identity: string; readonly prefix?: string },
): KubernetesObject {
  const leading = leadingResult(results);
  const isAllowed = outcome === 'allow';
  const storedText = results.reduce((text, one) => text.replace(one.fact, () => storedResult(one).fact), message);
  // Each process has its own combined Events, because their counts differ.
  const writer = prefix === '' ? '' : ` ${identity}`;
  const name = `${statefulSet.slice(0, 200)}.${hashText(`${namespace} ${decisionId} ${Math.floor(nowMs / repeatMs)}${writer}`)}`;
  const explain = isAllowed ? '' : `; kubectl rollout-group explain decision/${decisionId}`;
  const requestText = isAllowed ? undefined : encodeRequest(request);
  const labels = isAllowed ? {} : { labels: { [decisionLabel]: decisionId } };
  const annotations = requestText === undefined ? {} : { annotations: { [requestAnnotation]: requestText } };
  const deniedReason = leading === undefined ? 'Denied' : reasonOf(leading.rule).slice(0, 128);
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name, ...labels, ...annotations },
    eventTime: microTime(nowMs),
    regarding: { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name: statefulSet, ...(uid === undefined ? {} : { uid }) },
    type: 'Warning',
    reason: isAllowed ? 'ExceptionUsed' : deniedReason,
    action: isAllowed ? 'Allow' : 'Deny',
    note: eventNote(`${prefix}${storedText}`, explain),
    reportingController: 'rollout-group.dev/webhook',
    reportingInstance: identity.slice(0, 128),
  };
}
