// Builds the denials of native endpoints: rule, fact, source, earliest time, and the command that explains the denial.
import type { Judgement } from '../../engine/decision.ts';
import { describe } from '../../engine/judge/request-text.ts';
import { blocks, denialParts, leadingResult } from '../../engine/rule.ts';
import type { Source } from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Answer, boundedText, deny } from '../review/review.ts';

/** Limit of the message in bytes. A terminal or log shows it in one line; the Event of the denial has all details. */
export const longestMessage = 256;
/** Limits of two parts of the message, because names of objects and rules can be as long as the message. */
const longestWhat = 84;
const longestRule = 56;

/** The error if a fact that the decision needs is unknown. The answer may contain the message of the error. */
export class Undecidable extends Error {
  override readonly name = 'Undecidable';
}

export interface DenialSubject {
  readonly namespace: string;
  readonly isEviction: boolean;
  /** The group that protects the object, as `namespace/name`; absent without a group. */
  readonly group?: string;
  readonly policyDigest: string;
}

/**
 * Returns a denial as an answer. Clients such as `kubectl drain` repeat an eviction after 429, so 429 marks an eviction that may pass later,
 * and a request with an unknown fact. The answer states no seconds to wait: clients of client-go would repeat the request without output.
 */
export function denialOf(judgement: Judgement, subject: DenialSubject): Answer {
  const outcomes = new Set(judgement.results.filter(blocks).map(({ outcome }) => outcome));
  const mayPass = !outcomes.has('no') && (subject.isEviction || outcomes.has('unknown'));
  const isTemporary = judgement.code === 500 || (judgement.outcome === 'deny' && mayPass);
  return {
    ...deny(isTemporary ? 429 : 403, denialMessage(judgement, subject)),
    ...(judgement.warnings.length === 0 ? {} : { warnings: judgement.warnings }),
    auditAnnotations: auditOf(judgement, subject),
  };
}

/** Returns the message: request, rule, fact and explain command. Adds retry time, source, limit and namespace, each if it fits. */
function denialMessage({ decisionId, request, message, results }: Judgement, { namespace }: DenialSubject): string {
  const leading = leadingResult(results);
  const explain = `; kubectl rollout-group explain decision/${decisionId}`;
  let room = longestMessage - Buffer.byteLength(explain);
  if (leading === undefined) return boundedText(message, room) + explain;
  const parts = {
    ...denialParts({ ...leading, rule: boundedText(leading.rule, longestRule) }),
    what: boundedText(describe(request), longestWhat),
    namespace: ` in namespace ${namespace}`,
    written: leading.source === undefined ? '' : `; defined at ${sourceText(leading.source, namespace)}`,
  };
  room -= Buffer.byteLength(parts.what) + Buffer.byteLength(parts.rule);
  const kept = { ...parts, fact: boundedText(parts.fact, room) };
  room -= Buffer.byteLength(kept.fact);
  for (const part of ['retry', 'written', 'limit', 'namespace'] as const) {
    const bytes = Buffer.byteLength(parts[part]);
    if (bytes <= room) room -= bytes;
    else kept[part] = '';
  }
  return `${kept.what}${kept.namespace}${kept.rule}${kept.fact}${kept.limit}${kept.retry}${kept.written}${explain}`;
}

/** Denies a request because a fact that the decision needs is unknown. A retry gets another answer when the fact is known. */
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

export function auditOf(
  judgement: Judgement,
  { group, policyDigest }: Pick<DenialSubject, 'group' | 'policyDigest'>,
): Record<string, string> {
  const rule = leadingResult(judgement.results)?.rule;
  return {
    outcome: judgement.outcome,
    decision: judgement.decisionId,
    policy: policyDigest,
    ...defined({ group, rule }),
  };
}

/** Returns the place where the limit is defined. Does not name objects of other namespaces. */
function sourceText({ file, line, column, object, field }: Source, namespace: string): string {
  const isElsewhere = object !== undefined && !object.includes(` ${namespace}/`);
  const place = isElsewhere ? 'a policy of another namespace' : (object ?? file ?? 'the policies');
  const position =
    file === undefined || isElsewhere ? '' : [line, column].flatMap((number) => (number === undefined ? [] : `:${number}`)).join('');
  return `${place}${position}${field === undefined || isElsewhere ? '' : ` ${field}`}`;
}
