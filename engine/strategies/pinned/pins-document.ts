// Pins as rows of the ledger document: settled pins as ranges of ordinals, pins of pods in flight one by one.
import { z } from 'zod';
import { ordinalRanges, ordinalsIn } from '../../amount.ts';
import type { Pin } from '../../snapshot.ts';

/** Name of a zone in a ledger. Zones found by labels are named after their StatefulSets. */
export const zone = z
  .string()
  .max(253)
  .regex(/^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/);

/** Ordinals as ascending ranges, such as `0-4,7`. */
export const ranges = z.string().regex(/^\d{1,10}(?:-\d{1,10})?(?:,\d{1,10}(?:-\d{1,10})?)*$/);

const revision = z.string().min(1);

const settledRow = z.object({ zone, revision, ordinals: ranges });

const placedRow = z.object({
  zone,
  revision,
  ordinal: z.int().min(0),
  placements: z.int().min(1),
  replaces: z.string().optional(),
  atMs: z.int().optional(),
});

/** One row of `pins`. */
export const pinRow = z.union([placedRow, settledRow]);

/** One row of `templates`. */
export const templateRow = z.object({ zone, revision, template: z.record(z.string(), z.unknown()) });

/** The most pods of one zone that a ledger can name. A document with more is rejected before any list is made. */
const mostOrdinals = 100_000;

/** Returns the rows of pins, in any order. */
export function encodePins(pins: readonly Pin[]): readonly z.infer<typeof pinRow>[] {
  const settled = new Map<string, { readonly zone: string; readonly revision: string; readonly ordinals: number[] }>();
  const placed: z.infer<typeof placedRow>[] = [];
  for (const { zone: of, revision: at, ordinal, placements, replaces, atMs } of pins) {
    if (placements > 0) {
      placed.push({
        zone: of,
        revision: at,
        ordinal,
        placements,
        ...(replaces === undefined ? {} : { replaces }),
        ...(atMs === undefined ? {} : { atMs }),
      });
      continue;
    }
    const key = `${of} ${at}`;
    const row = settled.get(key) ?? { zone: of, revision: at, ordinals: [] };
    row.ordinals.push(ordinal);
    settled.set(key, row);
  }
  return [...placed, ...[...settled.values()].map((row) => ({ ...row, ordinals: ordinalRanges(row.ordinals) }))];
}

/** Returns the pins of rows, or undefined when two rows name the same pod or ordinals do not ascend. */
export function pinsOf(rows: readonly z.infer<typeof pinRow>[]): readonly Pin[] | undefined {
  const seen = new Set<string>();
  const pins: Pin[] = [];
  for (const row of rows) {
    const ordinals = 'ordinals' in row ? ordinalsIn(row.ordinals, mostOrdinals) : [row.ordinal];
    if (ordinals === undefined) return undefined;
    for (const ordinal of ordinals) {
      const key = `${row.zone} ${ordinal}`;
      if (seen.has(key)) return undefined;
      seen.add(key);
      pins.push(pinOf(row, ordinal));
    }
  }
  return pins;
}

function pinOf(row: z.infer<typeof pinRow>, ordinal: number): Pin {
  const common = { zone: row.zone, ordinal, revision: row.revision };
  if (!('placements' in row)) return { ...common, placements: 0 };
  const { placements, replaces, atMs } = row;
  return { ...common, placements, ...(replaces === undefined ? {} : { replaces }), ...(atMs === undefined ? {} : { atMs }) };
}
