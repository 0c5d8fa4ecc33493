// Mistakes in what pods are pinned to: it is stored late, tried for ever, forgotten too early, or never.
import type { Defect } from '../defect.ts';
import { noWaitingLook } from './sight.ts';

const pins = 'engine/strategies/pinned/pins.ts';

export const pinnedDefects: readonly Defect[] = [
  {
    id: 'pin-not-stored',
    title: 'a pod is taken away before the ledger says what it comes back at',
    edits: [
      {
        file: 'agent/turn/turn.ts',
        find: 'const decided = decidedLedger(ledger, decision, {',
        replace: 'const decided = decidedLedger(ledger, { ...decision, pinned: undefined }, {',
      },
    ],
    breaks: ['S19'],
  },
  {
    id: 'misplaced-for-ever',
    title: 'a pod that does not come back at its revision is taken away again and again',
    edits: [{ file: 'engine/strategies/pinned.ts', find: 'const maxPlacements = 2;', replace: 'const maxPlacements = 1_000;' }],
    breaks: ['S7'],
  },
  {
    id: 'second-try-forgotten',
    title: 'an attempt that never came takes those before it with it, so that they are not counted',
    edits: [
      {
        file: pins,
        find: 'return claimed.has(pod.uid) || (placements > 1 && revision === view.desiredRevision && traitsOf(group).pinsPods);',
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
        file: pins,
        find: 'if (pod.revision === revision) return revision !== set.status.currentRevision;',
        replace: 'if (pod.revision === revision) return revision !== set.status.currentRevision && revision === view.desiredRevision;',
      },
      {
        file: pins,
        find: "traitsOf(group).pinsPods && revision !== '' && revision !== set.status.currentRevision;",
        replace: 'traitsOf(group).pinsPods && revision === view.desiredRevision && revision !== set.status.currentRevision;',
      },
    ],
    breaks: ['S6'],
  },
  {
    id: 'pins-left-after-the-run',
    title: 'what a run pinned beyond the replicas stays in the ledger when it is over',
    edits: [noWaitingLook, { file: 'engine/decide/decide.ts', find: 'observedPins(context, roll.run)', replace: 'observedPins(context)' }],
    alsoWithout: 'the turns of idle groups every five minutes',
    breaks: ['L4', 'L12', 'unfinished'],
  },
];
