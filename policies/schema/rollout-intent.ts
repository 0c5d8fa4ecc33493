// The kind RolloutIntent: what a person asked of a group, with a reason.
import { z } from 'zod';
import { instant, objectName, requestedBy, shortName } from './scalars.ts';

/** `spec` of a RolloutIntent. `requestedBy` is stamped by the webhook from the API server's own identity. */
export const rolloutIntentSpec = z.strictObject({
  group: objectName,
  action: z.enum(['pause', 'approve', 'reject', 'promote', 'abort', 'retry', 'undo', 'restart', 'scale', 'cancel', 'protect', 'hold']),
  zone: shortName.optional(),
  wave: shortName.optional().describe('The wave that is approved, rejected or promoted.'),
  rule: z.string().max(317).optional().describe('The rule an approval is for, as `policy/rule`.'),
  gate: shortName.optional().describe('The one gate that is passed over; without it the soak and all gates of the wave are.'),
  digest: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional()
    .describe(
      'With approve: the definition of waves or rule that is approved. Without it, or with that of another one, the approval is void.',
    ),
  ordinals: z
    .array(z.int().min(0).max(100_000))
    .min(1)
    .max(100)
    .optional()
    .describe('The pods that are protected; without it all of them are.'),
  undone: z
    .array(z.strictObject({ zone: shortName, revision: objectName, to: objectName.optional().describe('What the zone goes back to.') }))
    .min(1)
    .max(100)
    .optional()
    .describe('Revisions that are taken back: whoever asks for them again is held.'),
  rollback: z
    .boolean()
    .optional()
    .describe('With abort: pods go back to what they ran before. Only the strategy pinned can; the others stop where they are.'),
  replicas: z.int().min(0).max(100_000).optional().describe('The number of a decrease that is taken back.'),
  toRevision: z.string().max(253).optional(),
  runId: z.string().max(64).optional().describe('The run the intent is for; an approval for another run is void.'),
  reason: z.string().max(1024).optional(),
  expires: instant.optional(),
  requestedBy,
});
