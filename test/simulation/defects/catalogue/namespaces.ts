// Mistakes in a namespace that is being deleted: the agent does not understand why the API server refuses new objects.
import type { Defect } from '../defect.ts';

export const namespaceDefects: readonly Defect[] = [
  {
    id: 'refused-event-repeats',
    title: 'an Event that is refused in a namespace that is being deleted is repeated at once, again and again',
    edits: [
      {
        file: 'agent/published/event-series.ts',
        find: ' || isNamespaceGone(error);',
        replace: ' || (isNamespaceGone(error) && isExpired);',
      },
      {
        file: 'agent/published/write-queue.ts',
        find: 'const forbiddenPauses = { firstMs: 15_000, lastMs: 300_000 };',
        replace: 'const forbiddenPauses = { firstMs: 100, lastMs: 500 };',
      },
    ],
    breaks: ['L13'],
  },
];
