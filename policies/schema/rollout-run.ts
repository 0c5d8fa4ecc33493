// The kind RolloutRun: the record of one rollout or one change of replicas. Only the agent writes it.
import { z } from 'zod';
import { instant, objectName } from './scalars.ts';

/** Limits of one record; further steps are omitted and counted. */
export const runLimits = { steps: 100, waits: 20, people: 30, zones: 50, bytes: 64 * 1024 } as const;

const text = z.string().max(253);
const seconds = z.int().min(0);

const zone = z
  .strictObject({
    zone: text,
    statefulSet: text.optional(),
    fromRevision: text.optional().describe('Revision before the run.'),
    toRevision: text.optional(),
    fromReplicas: z.int().min(0).optional(),
    toReplicas: z.int().min(0).optional(),
  })
  .describe('Change of one zone.');

const step = z
  .strictObject({
    zone: text.optional(),
    wave: text.optional(),
    action: z.enum(['replace', 'scale', 'prepare', 'withdraw', 'writeBack', 'advanceRevision']),
    what: z.string().max(1024).describe('Description of the action.'),
    pods: z.string().max(1024).optional().describe('Ordinals as ranges.'),
    count: z.int().min(1).describe('Number of actions in this step.'),
    failures: z.int().min(0).optional().describe('Number of failed actions.'),
    message: z.string().max(256).optional().describe('Message of the last failure.'),
    startedAt: instant,
    endedAt: instant,
  })
  .describe('Consecutive actions of one kind in one zone.');

const word = z
  .strictObject({
    name: text.describe('Name of the RolloutIntent, or of the RolloutException for `override`.'),
    action: z.string().max(32),
    by: text.optional().describe('Verified requester. Absent if the requester could not be verified.'),
    at: instant,
    reason: z.string().max(256).optional(),
    about: z.string().max(256).optional(),
  })
  .describe('Request of a user.');

/** `spec` of a RolloutRun. */
export const rolloutRunSpec = z.strictObject({
  group: objectName,
  id: z.string().min(1).max(128),
  kind: z.enum(['rollout', 'rollback', 'scale']),
  outcome: z.enum(['running', 'completed', 'failed', 'superseded', 'cancelled']),
  failure: z.string().max(1024).optional(),
  startedAt: instant,
  endedAt: instant.optional(),
  took: seconds.optional().describe('Duration in seconds.'),
  waited: seconds.describe('Seconds in which a rule blocked the group.'),
  zones: z.array(zone).max(runLimits.zones),
  steps: z.array(step).max(runLimits.steps),
  stepsOmitted: z.int().min(0).optional().describe('Number of omitted steps, from the middle.'),
  waits: z
    .array(z.strictObject({ rule: z.string().max(317), fact: z.string().max(512), seconds }))
    .max(runLimits.waits)
    .describe('Rules that blocked the group, and for how long.'),
  waiting: z
    .strictObject({ rule: z.string().max(317), fact: z.string().max(512), since: instant })
    .optional()
    .describe('Rule that blocks the group now.'),
  people: z.array(word).max(runLimits.people).optional().describe('Requests of users; only the first if there are many.'),
  policyDigest: z.string().max(64).optional(),
  planDigest: z.string().max(64).optional().describe('Digest of the applied plan, if a plan was applied.'),
  commit: z.string().max(253).optional().describe('Commit of the change, from the annotations of the StatefulSet.'),
  cause: z.string().max(512).optional().describe('Annotation `kubernetes.io/change-cause` of the StatefulSet.'),
});
