// The kind RolloutRun: the record of one rollout, or of one change of replicas. The agent alone writes it.
import { z } from 'zod';
import { instant, objectName } from './scalars.ts';

/** Steps and waits of one record; more are left out and counted. */
export const runLimits = { steps: 100, waits: 20, people: 30, zones: 50, bytes: 64 * 1024 } as const;

const text = z.string().max(253);
const seconds = z.int().min(0);

const zone = z
  .strictObject({
    zone: text,
    statefulSet: text.optional(),
    fromRevision: text.optional().describe('What its pods ran before.'),
    toRevision: text.optional(),
    fromReplicas: z.int().min(0).optional(),
    toReplicas: z.int().min(0).optional(),
  })
  .describe('What becomes of one zone.');

const step = z
  .strictObject({
    zone: text.optional(),
    wave: text.optional(),
    action: z.enum(['replace', 'scale', 'prepare', 'withdraw', 'writeBack', 'advanceRevision']),
    what: z.string().max(1024).describe('What was done, in a few words.'),
    pods: z.string().max(1024).optional().describe('Ordinals, as ranges.'),
    count: z.int().min(1).describe('How often; actions of one kind in one zone, one after the other, are one step.'),
    failures: z.int().min(0).optional().describe('How many of them did not end well.'),
    message: z.string().max(256).optional().describe('What was said of the last failure.'),
    startedAt: instant,
    endedAt: instant,
  })
  .describe('Actions of one kind in one zone, one after the other.');

const word = z
  .strictObject({
    name: text.describe('The object: a RolloutIntent, or a RolloutException for `override`.'),
    action: z.string().max(32),
    by: text.optional().describe('Absent when nobody vouches for who asked.'),
    at: instant,
    reason: z.string().max(256).optional(),
    about: z.string().max(256).optional(),
  })
  .describe('What somebody asked.');

/** `spec` of a RolloutRun. */
export const rolloutRunSpec = z.strictObject({
  group: objectName,
  id: z.string().min(1).max(128),
  kind: z.enum(['rollout', 'rollback', 'scale']),
  outcome: z.enum(['running', 'completed', 'failed', 'superseded', 'cancelled']),
  failure: z.string().max(1024).optional(),
  startedAt: instant,
  endedAt: instant.optional(),
  took: seconds.optional().describe('Seconds from start to end.'),
  waited: seconds.describe('Seconds of them in which a rule held the group.'),
  zones: z.array(zone).max(runLimits.zones),
  steps: z.array(step).max(runLimits.steps),
  stepsOmitted: z.int().min(0).optional().describe('Steps from the middle that are left out.'),
  waits: z
    .array(z.strictObject({ rule: z.string().max(317), fact: z.string().max(512), seconds }))
    .max(runLimits.waits)
    .describe('What held the group, and for how long.'),
  waiting: z
    .strictObject({ rule: z.string().max(317), fact: z.string().max(512), since: instant })
    .optional()
    .describe('What holds it now.'),
  people: z.array(word).max(runLimits.people).optional().describe('What people asked of it; the first ones when they are many.'),
  policyDigest: z.string().max(64).optional(),
  planDigest: z.string().max(64).optional().describe('The plan that was applied, when a plan was.'),
  commit: z.string().max(253).optional().describe('Where the change comes from, as the StatefulSet says in its annotations.'),
  cause: z.string().max(512).optional().describe('The annotation kubernetes.io/change-cause.'),
});
