// Defines the kinds RolloutIntent and RolloutException: requests of users.
import * as z from 'zod';
import { optional } from 'zod';
import { instant, objectName, optionalInt, optionalList, requestedBy, shortName } from './scalars.ts';

/** `spec` of a RolloutIntent. The webhook sets `requestedBy` to the user that the API server authenticated. */
export const rolloutIntentSpec = z.strictObject({
  group: objectName.describe('Name of the group.'),
  action: z
    .enum(['pause', 'approve', 'reject', 'promote', 'abort', 'retry', 'undo', 'cancel', 'protect'])
    .describe('Requested action. The plugin has a command of the same name for each action.'),
  zone: optional(shortName).describe(
    'For `pause`, `protect` and `cancel`: zone of the request. Without it the request is for the whole group. Other actions ignore it, except an `abort` that only pauses (see `spec.runId`).',
  ),
  wave: shortName.optional().describe('Wave to approve, reject or promote. Without it `promote` applies to every wave of the run.'),
  rule: z.string().max(317).optional().describe('Rule to approve or reject, as `policy/rule`.'),
  gate: shortName.optional().describe('For `promote`: gate to skip. Without it `promote` skips the soak time and all gates of the wave.'),
  digest: optional(z.string().regex(/^[0-9a-f]{32}$/)).describe(
    'For `approve`: digest of the approved waves or rule. With another digest, or without a digest, the approval has no effect.',
  ),
  ordinals: optionalList(z.int().min(0).max(100_000), 100).describe(
    'For `protect`: ordinals of the protected pods. Without it the request protects all pods.',
  ),
  undone: optionalList(
    z.strictObject({ zone: shortName, revision: objectName, to: objectName.optional().describe('Revision to return to.') }),
    100,
  ).describe('For `undo`: undone revisions. A rollout to one of them is blocked, also if it has already begun.'),
  rollback: optional(z.boolean()).describe(
    'For `abort`: true to return updated pods to the previous revision. Only the strategy `pinned` can do this; with others the run only stops.',
  ),
  replicas: optionalInt(0, 100_000).describe(
    'For `cancel`: target replicas of the scale-down to cancel. When another number is requested, the cancellation ends and does not return. Without `replicas` the request cancels every scale-down of the zone.',
  ),
  runId: optional(z.string().max(64)).describe(
    'ID of the run. An approval, rejection, promotion, abort or retry has no effect on another run. An `abort` without it only pauses the group, or the zone in `spec.zone`.',
  ),
  reason: z.string().max(1024).optional().describe('Reason of the request, shown by `status` and `history`.'),
  expires: instant.optional().describe('End of the request.'),
  requestedBy,
});

/** `spec` of a RolloutException. The webhook sets `requestedBy` to the user that the API server authenticated. */
export const rolloutExceptionSpec = z.strictObject({
  rule: z
    .string()
    .min(1)
    .max(317)
    .regex(/^[a-z0-9][-a-z0-9.]*(?:\/[a-z0-9][-a-z0-9]*)?$/)
    .describe('The rule: a built-in rule such as `zone-gap`, or a rule of a RolloutPolicy as `policy/rule`.'),
  target: z.strictObject({
    group: objectName.describe('Name of the group.'),
    zone: shortName.optional().describe('Name of the zone. Without it the exception is for all zones.'),
  }),
  allow: z
    .strictObject({
      replicasAtLeast: optionalInt(0).describe('Permits a scale-down that keeps at least this number of replicas.'),
      podsAtMost: optionalInt(1, 1000).describe('Permits disruptions of at most this number of pods at once.'),
      anything: z.literal(true).optional().describe('Turns the rule off for the target.'),
    })
    .meta({ 'x-rollout-group-one-of': ['replicasAtLeast', 'podsAtMost', 'anything'] }),
  reason: z.string().min(1).max(1024).describe('Why the exception is necessary.'),
  notBefore: instant.optional().describe('Start of the exception. Without it the exception starts at once.'),
  expires: instant.describe('End of the exception.'),
  requestedBy,
});
