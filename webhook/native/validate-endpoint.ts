// /admission/validate: denies objects of our kinds with errors, using the findings of lint.
import { isSameJson } from '../../cluster/request/json.ts';
import { endpointPaths } from '../../install/paths.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import { apiGroup } from '../../policies/schema/kinds.ts';
import type { WebhookEnv } from '../env.ts';
import { boundedText } from '../review/bounded-text.ts';
import type { Answer, Endpoint, Review } from '../review/review.ts';
import { missingSecrets } from './missing-secrets.ts';
import { isStamped, rightStamp, specOf, stampField } from './stamp-identity.ts';
import { findingsOf } from './validate-object.ts';

interface ValidateOptions {
  /** Policies in this namespace may name other namespaces. */
  readonly agentNamespace: string;
}

/** Longest message in bytes; a longer one would be cut within a finding. */
const longestMessage = 1000;
const longestLine = 320;
/** API servers cut longer warnings. */
const longestWarning = 250;
const mostWarnings = 10;

/**
 * Denies objects with errors with 422 and a line per error, and passes warnings on. An intent or exception that names another requester is
 * denied with 403: it was changed after the stamp. Deletions pass, and so do updates without a change of the spec: an accepted object must
 * stay deletable. Checks only for a warning whether the Secrets of a source or a channel exist.
 */
export function validateEndpoint(env: Pick<WebhookEnv, 'clock' | 'kubernetes'>, options: ValidateOptions): Endpoint {
  return {
    path: endpointPaths.validate,
    handle: async (review, call) => {
      if (!isConcerned(review)) return { allowed: true };
      const answer = validate(review, options, env.clock.nowMs());
      return answer.allowed ? withWarnings(answer, await missingSecrets(env, review, options, call)) : answer;
    },
    // The agent ignores objects with errors, but it trusts the requester field.
    onFailure: (review, problem) =>
      isConcerned(review) && isStamped(review)
        ? {
            allowed: false,
            code: 500,
            reason: 'InternalError',
            message: `the object is denied because it could not be checked: ${problem}`,
          }
        : { allowed: true, warnings: [boundedText(`the object was not checked: ${problem}`, longestWarning)] },
  };
}

function isConcerned({ resource, subresource, operation, object, oldObject }: Review): boolean {
  if (resource.group !== apiGroup || subresource !== '') return false;
  if (operation === 'UPDATE') return !isSameJson(specOf(object), specOf(oldObject));
  return operation === 'CREATE';
}

function validate(review: Review, options: ValidateOptions, nowMs: number): Answer {
  const { object } = review;
  if (object === undefined) return { allowed: false, code: 400, reason: 'BadRequest', message: 'the request has no object' };
  const impostor = impostorIn(review, nowMs);
  if (impostor !== undefined) return { allowed: false, code: 403, reason: 'Forbidden', message: impostor };
  const findings = findingsOf(object, options);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const warnings = findings.filter(({ severity }) => severity === 'warning').map((one) => boundedText(lineOf(one), longestWarning));
  const answer: Answer =
    errors.length === 0 ? { allowed: true } : { allowed: false, code: 422, reason: 'Invalid', message: refusal(review, errors) };
  return withWarnings(answer, atMost(warnings, mostWarnings));
}

function withWarnings(answer: Answer, more: readonly string[]): Answer {
  return more.length === 0 ? answer : { ...answer, warnings: [...(answer.warnings ?? []), ...more] };
}

/** Returns the requester if another user wrote it. Without a stamp there is no claim to check. */
function impostorIn(review: Review, nowMs: number): string | undefined {
  const claimed = specOf(review.object)[stampField];
  if (!isStamped(review) || claimed === undefined || isSameJson(claimed, rightStamp(review, nowMs))) return undefined;
  return `spec.${stampField} does not match the authenticated user; leave it out, the webhook sets it`;
}

function refusal({ kind, namespace, name }: Review, errors: readonly Finding[]): string {
  const head = `${kind.kind} ${namespace}/${name} has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}:`;
  const lines = errors.map((one) => boundedText(lineOf(one), longestLine));
  let shown = lines.length;
  const text = (): string => [head, ...lines.slice(0, shown), ...more(lines.length - shown)].join('\n');
  while (shown > 1 && Buffer.byteLength(text()) > longestMessage) shown -= 1;
  return text();
}

function atMost(lines: readonly string[], count: number): readonly string[] {
  return lines.length <= count ? lines : [...lines.slice(0, count - 1), ...more(lines.length - count + 1)];
}

function more(count: number): readonly string[] {
  return count === 0 ? [] : [`and ${count} more; run kubectl rollout-group lint to see all`];
}

/** Returns code, place, problem and remedy in one line. */
function lineOf({ code, pointer, message, hint }: Finding): string {
  const path = pathText(pointer);
  // Many messages begin with the path.
  const place = path === '' || message.startsWith(path) ? '' : ` ${path}:`;
  return `${code}${place} ${message}${hint === undefined ? '' : ` (${hint})`}`.replace(/\s+/g, ' ');
}

/** Returns `spec.rollout.waves[0].zones` for a JSON pointer. */
function pathText(pointer: string): string {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return keys.reduce((text, key) => (/^\d+$/.test(key) ? `${text}[${key}]` : text === '' ? key : `${text}.${key}`), '');
}
