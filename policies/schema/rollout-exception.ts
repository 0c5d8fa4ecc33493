// The kind RolloutException: one rule, one target, the least that must be allowed, a reason, and an end.
import { z } from 'zod';
import { instant, objectName, requestedBy, shortName } from './scalars.ts';

/** `spec` of a RolloutException. `requestedBy` is stamped by the webhook from the API server's own identity. */
export const rolloutExceptionSpec = z.strictObject({
  rule: z
    .string()
    .min(1)
    .max(317)
    .regex(/^[a-z0-9][-a-z0-9.]*(?:\/[a-z0-9][-a-z0-9]*)?$/)
    .describe('Exactly one rule: a rule of the engine (`zone-gap`) or `policy/rule` of a RolloutPolicy.'),
  target: z.strictObject({ group: objectName, zone: shortName.optional() }),
  allow: z
    .strictObject({
      replicasAtLeast: z.int().min(0).optional().describe('Scaling down to this number, no further.'),
      podsAtMost: z.int().min(1).max(1000).optional().describe('Disturbing this many pods at once, no more.'),
      anything: z.literal(true).optional().describe('The rule is off for the target.'),
    })
    .meta({ 'x-rollout-group-one-of': ['replicasAtLeast', 'podsAtMost', 'anything'] }),
  reason: z.string().min(1).max(1024),
  notBefore: instant.optional(),
  expires: instant.describe('The exception ends here.'),
  requestedBy,
});
