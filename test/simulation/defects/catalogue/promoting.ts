// Mistakes in what pods are promoted to: it is stored late, tried for ever, forgotten too early, or never.
import type { Defect } from '../defect.ts';

const promotions = 'engine/promote/promotions.ts';

export const promotingDefects: readonly Defect[] = [
  {
    id: 'promotion-not-stored',
    title: 'a pod is taken away before the ledger says what it comes back at',
    edits: [
      {
        file: 'agent/turn/turn.ts',
        find: 'const decided = decidedLedger(ledger, decision, {',
        replace: 'const decided = decidedLedger(ledger, { ...decision, promoted: undefined }, {',
      },
    ],
    breaks: ['S19'],
  },
  {
    id: 'misplaced-for-ever',
    title: 'a pod that does not come back at its revision is taken away again and again',
    edits: [{ file: 'engine/rules/promote.ts', find: 'export const mostPlacements = 2;', replace: 'export const mostPlacements = 1_000;' }],
    breaks: ['S7'],
  },
  {
    id: 'second-try-forgotten',
    title: 'an attempt that never came takes those before it with it, so that they are not counted',
    edits: [
      {
        file: promotions,
        find: 'return claimed.has(pod.uid) || (placements > 1 && revision === target && isPromoted(group));',
        replace: 'return claimed.has(pod.uid) || placements > 1_000;',
      },
    ],
    breaks: ['S7'],
  },
  {
    id: 'pins-dropped-at-a-new-template',
    title: 'with a new template the ledger forgets what pods of the one before come back at',
    edits: [
      {
        file: promotions,
        find: 'if (pod.revision === revision) return revision !== currentRevision;',
        replace: 'if (pod.revision === revision) return revision !== currentRevision && revision === target;',
      },
      {
        file: promotions,
        find: "isPromoted(group) && revision !== '' && revision !== currentRevision;",
        replace: 'isPromoted(group) && revision === target && revision !== currentRevision;',
      },
    ],
    breaks: ['S6'],
  },
  {
    id: 'promotions-left-after-the-run',
    title: 'what a run promoted beyond the replicas stays in the ledger when it is over',
    edits: [{ file: 'engine/decide.ts', find: 'observedPromotions(context, roll.run)', replace: 'observedPromotions(context)' }],
    breaks: ['L4', 'L12', 'unfinished'],
  },
];
