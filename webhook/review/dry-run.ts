// Whether a request is only tried out: nothing may be reserved for it, and nothing told.
import { asJsonObject } from '../../cluster/request/json.ts';
import type { Review } from './review.ts';

/**
 * An eviction may say it in the options that it carries, which are those of the DELETE that follows from it; the review itself does not say so then.
 * `kubectl drain --dry-run=server` sends such ones.
 */
export function isDryRun({ dryRun, object, subresource }: Review): boolean {
  const options = asJsonObject(asJsonObject(object)['deleteOptions'])['dryRun'];
  return dryRun || (subresource === 'eviction' && Array.isArray(options) && options.includes('All'));
}
