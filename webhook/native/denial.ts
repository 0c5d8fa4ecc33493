// A refusal in words and codes: the rule, the fact, where it is written, when it passes, and where to ask further.
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import type { Source } from '../../policies/definition.ts';
import type { Answer } from '../review/review.ts';

/** The API server puts its own words before it, and Events and logs take no more. */
const longestMessage = 900;
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
  const refusing = refusalsOf(judgement);
  const first = mostLasting(refusing);
  const isTemporary = judgement.code === 500 || (judgement.outcome === 'deny' && refusing.every(({ outcome }) => outcome !== 'no'));
  const written = first?.source === undefined ? '' : `; written at ${sourceText(first.source, subject.namespace)}`;
  const hint = judgement.outcome === 'prepare' ? '; give the group replicas.count or replicas.mirror, and the agent prepares its pods' : '';
  const explain = `; kubectl rollout-group explain decision/${judgement.decisionId}`;
  const text = `${cutOff(judgement.message, longestMessage - written.length - hint.length - explain.length)}${hint}${written}${explain}`;
  const retryAfterSeconds = isTemporary ? retryAfter(refusing, subject) : undefined;
  return {
    allowed: false,
    code: isTemporary ? 429 : 403,
    reason: isTemporary ? 'TooManyRequests' : 'Forbidden',
    message: text,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(judgement.warnings.length === 0 ? {} : { warnings: judgement.warnings }),
    auditAnnotations: auditOf(judgement, subject),
  };
}

/** Refused because nobody can tell whether it may pass (S31). Passes by itself once what is missing is there. */
export function unknownDenial(what: string, problem: string): Answer {
  return {
    allowed: false,
    code: 429,
    reason: 'TooManyRequests',
    message: `${what} is refused, because it cannot be told whether policy allows it: ${cutOff(problem, 400)}`,
    retryAfterSeconds: 5,
    auditAnnotations: { outcome: 'unknown' },
  };
}

/** What the audit log is told of a judgement. */
export function auditOf(
  judgement: Judgement,
  { group, policyDigest }: Pick<DenialSubject, 'group' | 'policyDigest'>,
): Record<string, string> {
  const rule = mostLasting(refusalsOf(judgement))?.rule;
  return {
    outcome: judgement.outcome,
    decision: judgement.decisionId,
    policy: policyDigest,
    ...(group === undefined ? {} : { group }),
    ...(rule === undefined ? {} : { rule }),
  };
}

/** The results that refuse. */
export function refusalsOf({ results }: Judgement): readonly RuleResult[] {
  return results.filter(({ outcome }) => outcome === 'wait' || outcome === 'no' || outcome === 'unknown');
}

function mostLasting(refusing: readonly RuleResult[]): RuleResult | undefined {
  const rank = (answer: RuleResult): number => ['no', 'unknown', 'wait'].indexOf(answer.outcome);
  return [...refusing].sort((a, b) => rank(a) - rank(b))[0];
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

function cutOff(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, Math.max(0, longest - 3))}...`;
}
