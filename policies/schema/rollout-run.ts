// Defines the kind RolloutRun: the record of one rollout or one change of replicas. Only the agent writes it.
import * as z from 'zod';
import { optional } from 'zod';
import { instant, objectName, optionalFields, optionalInt } from './scalars.ts';

/** The limits of one record. Steps beyond the limit are omitted and counted. */
export const runLimits = { steps: 100, waits: 20, people: 30, zones: 50, earlierIds: 20, bytes: 64 * 1024 } as const;

const text = z.string().max(253);
const seconds = z.int().min(0);
const rule = z.string().max(317).describe('Name of the rule.');
const fact = z.string().max(512).describe('State that the rule found.');

const zone = z
  .strictObject({
    zone: text.describe('Name of the zone.'),
    statefulSet: text.optional().describe('Name of the StatefulSet of the zone.'),
    fromRevision: text.optional().describe('Update revision before the change.'),
    toRevision: text.optional().describe('Revision that the run rolls out.'),
    pods: optionalInt(0).describe(
      'Largest number of pods of the zone during the run. Of a zone that left the group, the number of replaced pods.',
    ),
    fromReplicas: optionalInt(0).describe('Replicas before the scaling.'),
    toReplicas: optionalInt(0).describe('The most recently requested replicas; when the run is completed, the replicas of the zone.'),
  })
  .describe('For a rollout one entry for each zone of the group, for a scaling one entry for each zone that changes.');

const step = z
  .strictObject({
    zone: text.optional().describe('Zone of the actions.'),
    wave: text.optional().describe('Wave of the rollout in which the actions happened.'),
    action: z
      .enum(['replace', 'scale', 'prepare', 'withdraw', 'writeBack', 'advanceRevision'])
      .describe(
        'Kind of the actions. `prepare` asks pods to prepare for their deletion, and `withdraw` tells them to stay. `writeBack` writes the replicas to the mirrored object. `advanceRevision` sets the current revision of the StatefulSet.',
      ),
    what: z.string().max(1024).describe('Description of the last action.'),
    pods: z.string().max(1024).optional().describe('Ordinals of the affected pods, as ranges such as 0-2,5.'),
    count: z
      .int()
      .min(0)
      .describe('Number of pods that the step affected, each counted once. For actions without pods: number of actions.'),
    failures: optionalInt(0).describe('Number of failed actions.'),
    message: z.string().max(256).optional().describe('Message of the last failure.'),
    startedAt: instant.describe('Time of the first action.'),
    endedAt: instant.describe('Time of the last action.'),
  })
  .describe('Each step contains consecutive actions of one kind in one zone and wave.');

const request = z
  .strictObject({
    name: text.describe('Name of the RolloutIntent, or of the RolloutException for `override`.'),
    action: z.string().max(32).describe('Action of the request, such as `approve`; `override` for a RolloutException.'),
    by: text.optional().describe('Verified requester. Absent if the requester could not be verified.'),
    at: instant.describe('Time of the request. If the requester could not be verified: time at which the agent first recorded it.'),
    reason: z.string().max(256).optional().describe('Reason that the user gave.'),
    about: z.string().max(256).optional().describe('Subject of the request, such as `wave canary` or `zone a`.'),
  })
  .describe('Request of a user.');

export const rolloutRunSpec = z.strictObject({
  group: objectName.describe('Name of the group.'),
  id: z.string().min(1).max(128).describe('Identifier of the run. It changes if a template changes again and the run continues.'),
  earlierIds: optional(z.array(z.string().min(1).max(128)).max(runLimits.earlierIds)).describe(
    'Earlier identifiers of the run, in the order of time. The list has the latest 20.',
  ),
  kind: z.enum(['rollout', 'rollback', 'scale']).describe('Kind of the run. `rollback`: an undo, or the rollback of a failed run.'),
  outcome: z
    .enum(['running', 'completed', 'failed', 'superseded', 'cancelled'])
    .describe(
      'Outcome of the run. `superseded`: another run replaced it. `cancelled`: the change was reverted before a pod was replaced, or a scaling ended without a change of replicas.',
    ),
  failure: z.string().max(1024).optional().describe('Why the run failed, also after a retry.'),
  startedAt: instant.describe('Start of the run.'),
  endedAt: instant.optional().describe('End of the run. Absent while it is running.'),
  took: seconds.optional().describe('Duration of the run in seconds. Absent while it is running.'),
  waited: seconds.describe('Seconds for which rules blocked the group. The current wait is added when it ends.'),
  zones: z.array(zone).max(runLimits.zones),
  steps: z.array(step).max(runLimits.steps),
  stepsOmitted: optionalInt(0).describe('Number of steps that were removed from the middle of a long list.'),
  waits: z
    .array(z.strictObject({ rule, fact, seconds: seconds.describe('Seconds for which the rule blocked the group.') }))
    .max(runLimits.waits)
    .describe(
      'The 20 longest waits with the rules that blocked the group. If several rules block at the same time, only one of them is recorded.',
    ),
  waiting: optionalFields({ rule, fact, since: instant.describe('Start of the wait.') }).describe('Rule that blocks the group now.'),
  people: optional(z.array(request).max(runLimits.people)).describe(
    'Requests of users that concern the run, and exceptions in force during the run. At most 30 entries; later ones are omitted.',
  ),
  policyDigest: z.string().max(64).optional().describe('Digest of the policies at the start of the run.'),
  planDigest: z.string().max(64).optional().describe('Digest of the applied plan, if a plan was applied.'),
  commit: optional(z.string().max(253)).describe(
    'Commit of the change: annotation `rollout-group.dev/commit` that came with it, else the commit that Argo CD or Flux applied.',
  ),
  cause: optional(z.string().max(512)).describe(
    'Annotation `kubernetes.io/change-cause` that came with the change, or the reason of an undo.',
  ),
});
