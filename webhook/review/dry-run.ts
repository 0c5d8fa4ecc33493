// Returns whether a request is a dry run: nothing is reserved for it, and nothing is reported.
import { asJsonObject } from '../../cluster/request/json.ts';
import type { Review } from './review.ts';

/** An eviction may carry dry run in its delete options only, as `kubectl drain --dry-run=server` sends it. */
export function isDryRun({ dryRun, object, subresource }: Review): boolean {
  const options = asJsonObject(asJsonObject(object)['deleteOptions'])['dryRun'];
  return dryRun || (subresource === 'eviction' && Array.isArray(options) && options.includes('All'));
}
