// What becomes of a rollout when something changes in the middle of a wave: every row is an input of the test, with its exact outcome.
import { wave } from '../../kit/groups.ts';
import { all, everyZone, type MidWaveRow } from './mid-wave.ts';

const canary = wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 600_000, gates: [] } });

/**
 * Zones a, b and c of three pods that drain in 30 s and start in 60 s. Wave `canary`: one pod of a, ten minutes of soak.
 * Wave `rest`: everything. Undisturbed, a-2 goes at 0, and from 690 on every 90 s one pod, b-2 at 870 and c-2 at 1140, until 1410. Under the
 * strategy partition the pod in flight is made anew at the template of the moment, since it is not below the partition.
 */
export const clusterRows: readonly MidWaveRow[] = [
  {
    name: 'nothing happens',
    happens: [],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a new template supersedes the run, which begins anew at wave one and in the zone that is open',
    happens: [{ at: 900, kind: 'template', revision: 'rev-3' }],
    outcome: {
      end: 'done',
      seconds: 2370,
      zones: { a: '3 3 3', b: '3 3 3', c: '3 3 3' },
      replaced: 13,
      runs: ['rollout running', 'rollout completed'],
    },
    differs: { partition: { seconds: 2310, replaced: 12 } },
  },
  {
    name: 'two new templates, one after the other: only the last one is rolled, and no pod twice for one of them',
    happens: [
      { at: 900, kind: 'template', revision: 'rev-3' },
      { at: 1000, kind: 'template', revision: 'rev-4' },
    ],
    outcome: {
      end: 'done',
      seconds: 2460,
      zones: { a: '4 4 4', b: '4 4 4', c: '4 4 4' },
      replaced: 14,
      runs: ['rollout running', 'rollout running', 'rollout completed'],
    },
    differs: { partition: { seconds: 2320, replaced: 12 } },
  },
  {
    name: 'the template of before is a rollback, which does not soak',
    happens: [{ at: 900, kind: 'template', revision: 'rev-1' }],
    outcome: {
      end: 'done',
      seconds: 1320,
      zones: { a: '1 1 1', b: '1 1 1', c: '1 1 1' },
      replaced: 8,
      runs: ['rollout running', 'rollback completed'],
    },
    differs: { partition: { seconds: 1260, replaced: 7 } },
  },
  {
    name: 'back and forth again: what came back once soaks again',
    happens: [
      { at: 900, kind: 'template', revision: 'rev-1' },
      { at: 1000, kind: 'template', revision: 'rev-2' },
    ],
    outcome: { end: 'done', seconds: 2190, zones: all, replaced: 11, runs: ['rollout running', 'rollback running', 'rollout completed'] },
    differs: { partition: { seconds: 2220 } },
  },
  {
    name: 'the template of one zone alone changes',
    happens: [{ at: 900, kind: 'template', revision: 'rev-3', zones: ['c'] }],
    outcome: {
      end: 'done',
      seconds: 2010,
      zones: { a: '2 2 2', b: '2 2 2', c: '3 3 3' },
      replaced: 9,
      runs: ['rollout running', 'rollout completed'],
    },
  },
  {
    name: 'the open zone grows: the new pod has the new revision, under pinned the old one, and its turn',
    happens: [{ at: 900, kind: 'replicas', zones: ['b'], replicas: 4 }],
    outcome: { end: 'done', seconds: 1410, zones: { a: '2 2 2', b: '2 2 2 2', c: '2 2 2' }, replaced: 9, runs: ['rollout completed'] },
    differs: { pinned: { seconds: 1500, replaced: 10 } },
  },
  {
    name: 'a zone that has not begun grows: the new pod is new under onDelete, and has its turn with the others elsewhere',
    happens: [{ at: 900, kind: 'replicas', zones: ['c'], replicas: 4 }],
    outcome: { end: 'done', seconds: 1410, zones: { a: '2 2 2', b: '2 2 2', c: '2 2 2 2' }, replaced: 9, runs: ['rollout completed'] },
    differs: { partition: { seconds: 1500, replaced: 10 }, pinned: { seconds: 1500, replaced: 10 } },
  },
  {
    name: 'a zone that has not begun shrinks',
    happens: [{ at: 900, kind: 'replicas', zones: ['c'], replicas: 2 }],
    outcome: { end: 'done', seconds: 1320, zones: { a: '2 2 2', b: '2 2 2', c: '2 2' }, replaced: 8, runs: ['rollout completed'] },
  },
  {
    name: 'the open zone shrinks by the pod in flight',
    happens: [{ at: 900, kind: 'replicas', zones: ['b'], replicas: 2 }],
    outcome: { end: 'done', seconds: 1380, zones: { a: '2 2 2', b: '2 2', c: '2 2 2' }, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'everything shrinks to zero: the run is over, with nothing left to roll',
    happens: [{ at: 900, kind: 'replicas', zones: everyZone, replicas: 0 }],
    outcome: { end: 'done', seconds: 930, zones: { a: '', b: '', c: '' }, replaced: 4, runs: ['rollout completed'] },
  },
  {
    name: 'down to zero and back: all pods have the new revision',
    happens: [
      { at: 900, kind: 'replicas', zones: everyZone, replicas: 0 },
      { at: 1200, kind: 'replicas', zones: everyZone, replicas: 3 },
    ],
    outcome: { end: 'done', seconds: 1260, zones: all, replaced: 4, runs: ['rollout completed'] },
  },
  {
    name: 'the strategy of a zone changes: nothing more goes until it is put back',
    happens: [{ at: 900, kind: 'strategy', zones: ['c'], type: 'other' }],
    outcome: {
      end: 'update-strategy: ingester-zone-c has the update strategy RollingUpdate: the strategy onDelete needs OnDelete',
      seconds: 1140,
      zones: { a: '2 2 2', b: '2 2 2', c: '1 1 1' },
      replaced: 6,
      runs: ['rollout running'],
    },
    differs: {
      partition: {
        end: 'update-strategy: ingester-zone-c has the update strategy OnDelete: the strategy partition needs RollingUpdate',
      },
      pinned: { end: 'update-strategy: ingester-zone-c has the update strategy OnDelete: the strategy pinned needs RollingUpdate' },
    },
  },
  {
    name: 'the strategy of a zone changes and is put back',
    happens: [
      { at: 900, kind: 'strategy', zones: ['c'], type: 'other' },
      { at: 3000, kind: 'strategy', zones: ['c'], type: 'own' },
    ],
    outcome: { end: 'done', seconds: 3270, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'the strategy of a zone becomes RollingUpdate past the webhooks: the controller rolls the zone, and the agent the rest; under pinned the agent holds it again',
    happens: [{ at: 900, kind: 'strategy', zones: ['c'], type: 'bare' }],
    outcome: { end: 'done', seconds: 1350, zones: all, replaced: 6, runs: ['rollout completed'] },
    differs: { pinned: { seconds: 1440, replaced: 9 } },
  },
  {
    name: 'somebody sets the partition past the webhooks: it means nothing under onDelete, under partition what is not below it goes at once, under pinned it is raised again',
    happens: [{ at: 900, kind: 'partition', zones: everyZone, partition: 2 }],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
    differs: { partition: { seconds: 1350, replaced: 8 }, pinned: { seconds: 1440 } },
  },
  {
    name: 'the waves before the one under way are taken out of the policy',
    happens: [{ at: 900, kind: 'waves', waves: [wave('rest', everyZone)] }],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a wave is put before the one under way',
    happens: [{ at: 900, kind: 'waves', waves: [canary, wave('half', ['c'], { amount: { pods: 1 } }), wave('rest', everyZone)] }],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'the policy is deleted: pods in flight come back, and nothing more goes',
    happens: [{ at: 900, kind: 'policyGone' }],
    outcome: { end: 'nobody decides', seconds: 870, zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' }, replaced: 4, runs: ['rollout running'] },
  },
  {
    name: 'the policy is deleted and said release: what the partition holds is handed back, zone by zone',
    rollout: { onPolicyDeleted: 'release' },
    happens: [{ at: 900, kind: 'policyGone' }],
    outcome: { end: 'nobody decides', seconds: 870, zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' }, replaced: 4, runs: ['rollout running'] },
    differs: {
      partition: { end: 'handed back', seconds: 1145, zones: all, replaced: 9 },
      pinned: { end: 'handed back', seconds: 1145, zones: all, replaced: 9 },
    },
  },
  {
    name: 'the policy said release and comes back in the middle: a run of its own brings the rest',
    rollout: { onPolicyDeleted: 'release' },
    happens: [
      { at: 900, kind: 'policyGone' },
      { at: 1000, kind: 'policyBack' },
    ],
    outcome: { end: 'done', seconds: 1450, zones: all, replaced: 9, runs: ['rollout completed'] },
    differs: {
      // Pod b-0 was released, but the partition was raised before its turn.
      partition: { seconds: 2015, replaced: 10, runs: ['rollout running', 'rollout completed'] },
      pinned: { seconds: 2015, replaced: 10, runs: ['rollout running', 'rollout completed'] },
    },
  },
  {
    name: 'the policy comes back: the run goes on where it was',
    happens: [
      { at: 900, kind: 'policyGone' },
      { at: 5000, kind: 'policyBack' },
    ],
    outcome: { end: 'done', seconds: 5450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'an old pod dies: under onDelete it comes back new and is not replaced again, elsewhere it comes back old and has its turn',
    happens: [{ at: 900, kind: 'podDies', pod: 'c-0' }],
    outcome: { end: 'done', seconds: 1320, zones: all, replaced: 8, runs: ['rollout completed'] },
    differs: { partition: { seconds: 1410, replaced: 9 }, pinned: { seconds: 1410, replaced: 9 } },
  },
  {
    name: 'a new pod breaks: the run waits for it',
    happens: [{ at: 920, kind: 'podBreaks', pod: 'b-2' }],
    outcome: {
      end: 'zone-budget: 1 of at most 1 pod unavailable in zone b',
      seconds: 920,
      zones: { a: '2 2 2', b: '1 1 2!', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout running'],
    },
  },
  {
    name: 'a new pod breaks: rolling forward cures it first',
    happens: [
      { at: 910, kind: 'podBreaks', pod: 'b-2' },
      { at: 1000, kind: 'template', revision: 'rev-3' },
    ],
    outcome: {
      end: 'done',
      seconds: 2410,
      zones: { a: '3 3 3', b: '3 3 3', c: '3 3 3' },
      replaced: 13,
      runs: ['rollout running', 'rollout completed'],
    },
    differs: { partition: { replaced: 12 } },
  },
  {
    name: 'a new pod breaks: the template of before cures it first',
    happens: [
      { at: 910, kind: 'podBreaks', pod: 'b-2' },
      { at: 1000, kind: 'template', revision: 'rev-1' },
    ],
    outcome: {
      end: 'done',
      seconds: 1360,
      zones: { a: '1 1 1', b: '1 1 1', c: '1 1 1' },
      replaced: 8,
      runs: ['rollout running', 'rollback completed'],
    },
    differs: { partition: { replaced: 7 } },
  },
  {
    name: 'an old pod breaks: its own cure does not wait for it',
    happens: [{ at: 900, kind: 'podBreaks', pod: 'b-1' }],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'the progress deadline fails the run',
    rollout: { deadlines: { progressMs: 300_000 } },
    happens: [{ at: 910, kind: 'podBreaks', pod: 'b-2' }],
    outcome: {
      end: 'run-failed: no pod became available for 5m',
      seconds: 1170,
      zones: { a: '2 2 2', b: '1 1 2!', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout failed'],
    },
  },
  {
    name: 'a run that failed by its deadline is cured by a new template',
    rollout: { deadlines: { progressMs: 300_000 } },
    happens: [
      { at: 910, kind: 'podBreaks', pod: 'b-2' },
      { at: 2000, kind: 'template', revision: 'rev-3' },
    ],
    outcome: {
      end: 'done',
      seconds: 3410,
      zones: { a: '3 3 3', b: '3 3 3', c: '3 3 3' },
      replaced: 13,
      runs: ['rollout failed', 'rollout completed'],
    },
    differs: { partition: { replaced: 12 } },
  },
  {
    name: 'the deadline of the run fails it',
    rollout: { deadlines: { runMs: 1_000_000 } },
    happens: [],
    outcome: {
      end: 'run-failed: the run took longer than 16m40s',
      seconds: 1050,
      zones: { a: '2 2 2', b: '1 2 2', c: '1 1 1' },
      replaced: 5,
      runs: ['rollout failed'],
    },
  },
];
