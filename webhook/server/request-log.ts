// Formats one log line per review: request, user and answer. Bodies are not logged, because objects contain secrets.
import type { LogFields } from '../../cluster/env.ts';
import { boundedText } from '../review/bounded-text.ts';
import type { Decided } from '../review/decide.ts';
import type { Review } from '../review/review.ts';

/** Names may be forged; Kubernetes allows no longer ones. */
const maxFieldBytes = 256;

/** Returns the fields of the line. */
export function reviewFields(path: string, review: Review, { answer, failure }: Decided, durationMs: number): LogFields {
  const { group, version, resource } = review.resource;
  const kind = [group, version, resource, review.subresource].filter((part) => part !== '').join('/');
  return {
    path,
    uid: bounded(review.uid),
    operation: bounded(review.operation),
    resource: bounded(kind),
    object: bounded(review.namespace === '' ? review.name : `${review.namespace}/${review.name}`),
    user: bounded(review.user.name),
    dryRun: review.dryRun,
    allowed: answer.allowed,
    ...(answer.code === undefined ? {} : { code: answer.code }),
    ...(failure === undefined ? {} : { failure }),
    ms: Math.round(durationMs * 10) / 10,
  };
}

function bounded(text: string): string {
  return boundedText(text, maxFieldBytes);
}
