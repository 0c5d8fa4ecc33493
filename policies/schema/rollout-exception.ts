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
    .describe('The rule: a built-in rule (`zone-gap`), or `policy/rule` of a RolloutPolicy.'),
  target: z.strictObject({
    group: objectName.describe('Name of the group.'),
    zone: shortName.optional().describe('Name of the zone. Without it the exception is for all zones.'),
  }),
  allow: z
    .strictObject({
      replicasAtLeast: z.int().min(0).optional().describe('Permits a decrease to this number of replicas.'),
      podsAtMost: z.int().min(1).max(1000).optional().describe('Permits disruptions of at most this number of pods at once.'),
      anything: z.literal(true).optional().describe('Turns the rule off for the target.'),
    })
    .meta({ 'x-rollout-group-one-of': ['replicasAtLeast', 'podsAtMost', 'anything'] }),
  reason: z.string().min(1).max(1024).describe('Why the exception is necessary.'),
  notBefore: instant.optional().describe('Start of the exception. Without it the exception starts at once.'),
  expires: instant.describe('End of the exception.'),
  requestedBy,
});
