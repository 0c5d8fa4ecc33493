// Builds denials: the rule, the fact, its source, the earliest time, and the command that explains it.
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import { describe } from '../../engine/judge/request-text.ts';
import { blocks, denialParts, leadingResult } from '../../engine/rule.ts';
import type { Source } from '../../policies/definition.ts';
import { type Answer, boundedText, deny } from '../review/review.ts';

/** Longest message in bytes. It appears in one line of a terminal or a log; the Event of the denial has the rest. */
export const longestMessage = 256;
/** Longest parts if space is short: names of objects and rules can be as long as a message. */
const longestWhat = 84;
const longestRule = 56;
/** A client waits silently for up to ten times this value, so longer waits appear only in the message. */
const longestRetrySeconds = 60;
/** The eviction API uses the same value for an exhausted budget. */
const evictionRetrySeconds = 10;

/** Thrown if it is unknown whether a request may pass. The requester may read the message. */
export class Undecidable extends Error {
  override readonly name = 'Undecidable';
}

export interface DenialSubject {
  readonly namespace: string;
  readonly nowMs: number;
  readonly isEviction: boolean;
  /** The group that protects the object, as `namespace/name`; absent without a group. */
  readonly group?: string;
  readonly policyDigest: string;
}

/**
 * Returns a denial as an answer. 429 marks denials that pass by themselves and that clients such as `kubectl drain` retry; 403 is final.
 */
export function denialOf(judgement: Judgement, subject: DenialSubject): Answer {
  const refusing = judgement.results.filter(blocks);
  const isTemporary = judgement.code === 500 || (judgement.outcome === 'deny' && refusing.every(({ outcome }) => outcome !== 'no'));
  const retryAfterSeconds = isTemporary ? retryAfter(refusing, subject) : undefined;
  return {
    ...deny(isTemporary ? 429 : 403, messageOf(judgement, subject)),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(judgement.warnings.length === 0 ? {} : { warnings: judgement.warnings }),
    auditAnnotations: auditOf(judgement, subject),
  };
}

/** Returns the message: request, rule, fact and explain command always; then retry time, hint, source, limit, namespace if they fit. */
function messageOf({ outcome, decisionId, request, message, results }: Judgement, { namespace }: DenialSubject): string {
  const leading = leadingResult(results);
  const explain = `; kubectl rollout-group explain decision/${decisionId}`;
  let room = longestMessage - Buffer.byteLength(explain);
  if (leading === undefined) return boundedText(message, room) + explain;
  const parts = {
    ...denialParts({ ...leading, rule: boundedText(leading.rule, longestRule) }),
    what: boundedText(describe(request), longestWhat),
    namespace: ` in namespace ${namespace}`,
    hint: outcome === 'prepare' ? '; set replicas.count or replicas.mirror, so that the agent prepares the pods' : '',
    written: leading.source === undefined ? '' : `; defined at ${sourceText(leading.source, namespace)}`,
  };
  room -= Buffer.byteLength(parts.what) + Buffer.byteLength(parts.rule);
  const kept = { ...parts, fact: boundedText(parts.fact, room) };
  room -= Buffer.byteLength(kept.fact);
  for (const part of ['retry', 'hint', 'written', 'limit', 'namespace'] as const) {
    const bytes = Buffer.byteLength(parts[part]);
    if (bytes <= room) room -= bytes;
    else kept[part] = '';
  }
  return `${kept.what}${kept.namespace}${kept.rule}${kept.fact}${kept.limit}${kept.retry}${kept.hint}${kept.written}${explain}`;
}

/** Denies a request because it is unknown whether it may pass (S31). It passes by itself when the missing fact is known. */
export function unknownDenial(what: string, problem: string): Answer {
  return {
    ...deny(
      429,
      boundedText(`${boundedText(what, longestWhat)} is denied: it is unknown whether policy allows it: ${problem}`, longestMessage),
    ),
    retryAfterSeconds: 5,
    auditAnnotations: { outcome: 'unknown' },
  };
}

/** Returns the audit annotations of a judgement. */
export function auditOf(
  judgement: Judgement,
  { group, policyDigest }: Pick<DenialSubject, 'group' | 'policyDigest'>,
): Record<string, string> {
  const rule = leadingResult(judgement.results)?.rule;
  return {
    outcome: judgement.outcome,
    decision: judgement.decisionId,
    policy: policyDigest,
    ...(group === undefined ? {} : { group }),
    ...(rule === undefined ? {} : { rule }),
  };
}

/** Returns no retry time for denials that need a person. */
function retryAfter(refusing: readonly RuleResult[], { nowMs, isEviction }: DenialSubject): number | undefined {
  const instants = refusing.flatMap(({ earliestMs }) => earliestMs ?? []);
  const seconds = instants.length === 0 ? undefined : Math.max(1, Math.ceil((Math.max(...instants) - nowMs) / 1000));
  if (isEviction) return Math.min(seconds ?? evictionRetrySeconds, evictionRetrySeconds);
  return seconds === undefined || seconds > longestRetrySeconds ? undefined : seconds;
}

/** Hides objects of other namespaces from the requester. */
function sourceText({ file, line, column, object, field }: Source, namespace: string): string {
  const isElsewhere = object !== undefined && !object.includes(` ${namespace}/`);
  const place = isElsewhere ? 'a policy of another namespace' : (object ?? file ?? 'the policies');
  const position =
    file === undefined || isElsewhere ? '' : [line, column].flatMap((number) => (number === undefined ? [] : `:${number}`)).join('');
  return `${place}${position}${field === undefined || isElsewhere ? '' : ` ${field}`}`;
}
