// `rollout.schedule`: waves in a short form.
import { z } from 'zod';
import { countOrPercent, duration } from './scalars.ts';

/** The short form; `policies/resolve/schedule.ts` makes the waves. */
export const schedule = z
  .strictObject({
    kind: z.enum(['linear', 'geometric', 'exponential']),
    start: countOrPercent.default(1).describe('Pods of the first wave, or a share of the zone, rounded up.'),
    step: countOrPercent.optional().describe('Pods added per wave when linear, or a share of the zone, rounded up.'),
    factor: z
      .number()
      .min(1.1)
      .max(10)
      .optional()
      .describe(
        'With at most one decimal. When geometric each wave adds this many times as many pods as the one before; when exponential it ends at this many times as many.',
      ),
    soak: duration.optional().describe('Soak after each wave of the first zone.'),
  })
  .describe('A short form that expands to waves: the first zone in growing steps, then the other zones whole, one after the other.');

export type ScheduleSpec = z.infer<typeof schedule>;
