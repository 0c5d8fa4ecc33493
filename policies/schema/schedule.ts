// `rollout.schedule`: waves in a short form.
import { z } from 'zod';
import { countOrPercent, duration } from './scalars.ts';

/** The short form; `policies/resolve/schedule.ts` makes the waves. */
export const schedule = z
  .strictObject({
    kind: z.enum(['linear', 'geometric', 'exponential']),
    start: countOrPercent.default(1).describe('Pods of the first wave: a number, or a percentage of the zone rounded up.'),
    step: countOrPercent.optional().describe('Pods that each `linear` wave adds: a number, or a percentage of the zone rounded up.'),
    factor: z
      .number()
      .min(1.1)
      .max(10)
      .optional()
      .describe(
        'Growth factor with at most one decimal. `geometric` multiplies the added pods of each wave, `exponential` the updated pods.',
      ),
    soak: duration.optional().describe('Soak time after each wave of the first zone.'),
  })
  .describe('Short form of waves: the first zone in growing steps, then the other zones completely, one after the other.');

export type ScheduleSpec = z.infer<typeof schedule>;
