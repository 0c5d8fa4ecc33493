// The terms of a release as a part of the ledger's text.
import { z } from 'zod';
import { zone } from '../strategies/pinned/pins-document.ts';

/** The release terms as the ledger stores them. */
export const releaseRow = z.object({
  source: z.enum(['directory', 'objects']),
  zones: z.array(z.object({ zone, statefulSet: z.string().min(1) })).min(1),
  goneMs: z.int().optional(),
  released: z.array(zone).optional(),
});

/** The label of ledgers with such terms, by which they are found when no definition names them any more; `otherwise`: of one that had them before. */
export const releaseLabel = { key: 'rollout-group.dev/on-policy-deleted', value: 'release', otherwise: 'hold' } as const;
