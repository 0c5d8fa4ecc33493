// A refusal in words and codes: the rule, the fact, where it is written, when it passes, and where to ask further.
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import { describe } from '../../engine/judge/request-text.ts';
import { blocks, denialParts, leadingResult } from '../../engine/rule.ts';
import type { Source } from '../../policies/definition.ts';
import { boundedText } from '../review/bounded-text.ts';
import type { Answer } from '../review/review.ts';

/** Of a message, in bytes. Whoever is refused reads it in one line of a terminal or a log; the Event of the denial has the rest. */
export const longestMessage = 256;
/** Of its parts where not everything has room: names of objects and of rules can be as long as a message. */
const longestWhat = 84;
const longestRule = 56;
/** A client waits for as long as it is told, ten times over, and says nothing meanwhile: a longer wait is in the message alone. */
const longestRetrySeconds = 60;
/** What the eviction API itself asks for when a budget is spent. */
const evictionRetrySeconds = 10;

/** It cannot be told whether a request may pass, for a reason that whoever is refused may know. */
export class Undecidable extends Error {
  override readonly name = 'Undecidable';
}

export interface DenialSubject {
  readonly namespace: string;
  readonly nowMs: number;
  readonly isEviction: boolean;
  /** The group that protects, as `namespace/name`; absent for what no group has. */
  readonly group?: string;
  readonly policyDigest: string;
}

/** What a judgement refuses, as an answer. 429 is what passes by itself, and what clients such as `kubectl drain` try again; 403 is for good. */
export function denialOf(judgement: Judgement, subject: DenialSubject): Answer {
  const refusing = judgement.results.filter(blocks);
  const isTemporary = judgement.code === 500 || (judgement.outcome === 'deny' && refusing.every(({ outcome }) => outcome !== 'no'));
  const retryAfterSeconds = isTemporary ? retryAfter(refusing, subject) : undefined;
  return {
    allowed: false,
    code: isTemporary ? 429 : 403,
    reason: isTemporary ? 'TooManyRequests' : 'Forbidden',
    message: messageOf(judgement, subject),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(judgement.warnings.length === 0 ? {} : { warnings: judgement.warnings }),
    auditAnnotations: auditOf(judgement, subject),
  };
}

/**
 * What is asked for, which rule refuses it and why, and where to ask further: those are always there. When it passes, what helps, where it is
 * written, the limit and the namespace are, as far as there is room, and come in this order.
 */
function messageOf({ outcome, decisionId, request, message, results }: Judgement, { namespace }: DenialSubject): string {
  const leading = leadingResult(results);
  const explain = `; kubectl rollout-group explain decision/${decisionId}`;
  let room = longestMessage - Buffer.byteLength(explain);
  if (leading === undefined) return boundedText(message, room) + explain;
  const parts = {
    ...denialParts({ ...leading, rule: boundedText(leading.rule, longestRule) }),
    what: boundedText(describe(request), longestWhat),
    namespace: ` in namespace ${namespace}`,
    hint: outcome === 'prepare' ? '; give the group replicas.count or replicas.mirror, and the agent prepares its pods' : '',
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

/** Refused because nobody can tell whether it may pass (S31). Passes by itself once what is missing is there. */
export function unknownDenial(what: string, problem: string): Answer {
  return {
    allowed: false,
    code: 429,
    reason: 'TooManyRequests',
    message: boundedText(`${boundedText(what, longestWhat)} is denied: it is unknown whether policy allows it: ${problem}`, longestMessage),
    retryAfterSeconds: 5,
    auditAnnotations: { outcome: 'unknown' },
  };
}

/** What the audit log is told of a judgement. */
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

/** What passes only once a person has done something is not tried again by itself. */
function retryAfter(refusing: readonly RuleResult[], { nowMs, isEviction }: DenialSubject): number | undefined {
  const instants = refusing.flatMap(({ earliestMs }) => earliestMs ?? []);
  const seconds = instants.length === 0 ? undefined : Math.max(1, Math.ceil((Math.max(...instants) - nowMs) / 1000));
  if (isEviction) return Math.min(seconds ?? evictionRetrySeconds, evictionRetrySeconds);
  return seconds === undefined || seconds > longestRetrySeconds ? undefined : seconds;
}

/** Objects of other namespaces are not named to whoever is refused in this one. */
function sourceText({ file, line, column, object, field }: Source, namespace: string): string {
  const isElsewhere = object !== undefined && !object.includes(` ${namespace}/`);
  const place = isElsewhere ? 'a policy of another namespace' : (object ?? file ?? 'the policies');
  const position =
    file === undefined || isElsewhere ? '' : [line, column].flatMap((number) => (number === undefined ? [] : `:${number}`)).join('');
  return `${place}${position}${field === undefined || isElsewhere ? '' : ` ${field}`}`;
}
