// Defines the types that several kinds share: durations, counts or percentages, names, times, conditions, selectors.
import * as z from 'zod';

/** A duration: `30s`, `12h`, `1h30m`, `7d`. Units: ms, s, m, h, d, w; no sign, no spaces. */
export const duration = z
  .string()
  .max(32)
  .regex(/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+$|^0$/)
  .meta({ title: 'duration', description: 'Duration, such as 30s, 12h, 1h30m or 7d.' });

/** A number of pods, or a percentage of the zone's replicas (`1%` to `100%`). Each field defines how it rounds. */
export const countOrPercent = z
  .union([z.int().min(0).max(100_000), z.string().regex(/^(?:[1-9]\d?|100)%$/)])
  .meta({ title: 'count or percent', 'x-kubernetes-int-or-string': true });

/** A name that Kubernetes accepts for most objects (RFC 1123 subdomain). */
export const objectName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/)
  .meta({ title: 'object name' });

/** A short name in a policy file: of a zone, wave, gate, rule or window (RFC 1123 label). */
export const shortName = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/)
  .meta({ title: 'short name' });

/** An instant with an explicit offset (RFC 3339). */
export const instant = z
  .string()
  .max(40)
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/)
  .meta({ title: 'instant', description: 'Time with an offset, such as 2026-12-18T18:00:00+01:00.' });

/** The requester of an intent or an exception. The webhook writes the user that the API server authenticated. */
export const requestedBy = optionalFields({
  user: z.string().max(512),
  groups: z.array(z.string().max(512)).max(200).default([]),
  at: instant.describe('Time of the request.'),
}).describe('The requester. The webhook writes the user that the API server authenticated, and replaces any other value.');

/** Returns the schema of an optional whole number in a range. */
export function optionalInt(min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodOptional<z.ZodInt> {
  return z.int().min(min).max(max).optional();
}

/** Returns the schema of an optional object with these fields and no others. */
export function optionalFields<Shape extends z.core.$ZodLooseShape>(
  fields: Shape,
): z.ZodOptional<z.ZodObject<z.core.util.Writeable<Shape>, z.core.$strict>> {
  return z.strictObject(fields).optional();
}

/** Returns the schema of one of these words. The first one is the default. */
export function wordOf<const Word extends string>(usual: Word, ...others: readonly Word[]): z.ZodDefault<z.ZodEnum<{ [W in Word]: W }>> {
  const words = z.enum([usual, ...others]);
  return words.default(words.parse(usual));
}

/** Returns the schema of an optional list of 1 to `max` items. */
export function optionalList<Item extends z.ZodType>(item: Item, max: number): z.ZodOptional<z.ZodArray<Item>> {
  return z.array(item).min(1).max(max).optional();
}

export const port = z.int().min(1).max(65_535).meta({ title: 'port' });

/** A JsonLogic condition. The schema accepts any JSON; `policies/condition/check.ts` reports problems at their place in the condition. */
export const condition = z.unknown().meta({
  title: 'condition',
  description: 'JsonLogic condition; see docs/conditions.md.',
  'x-kubernetes-preserve-unknown-fields': true,
});

/** `matchLabels` and `matchExpressions` as in a Kubernetes LabelSelector. */
export const labelSelector = z
  .strictObject({
    matchLabels: z.record(z.string(), z.string()).optional(),
    matchExpressions: z
      .array(
        z.strictObject({
          key: z.string().min(1),
          operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
          values: z.array(z.string()).optional(),
        }),
      )
      .max(32)
      .optional(),
  })
  .meta({ title: 'label selector' });

export type LabelSelector = z.infer<typeof labelSelector>;
export type CountOrPercent = z.infer<typeof countOrPercent>;
