// What becomes of a rollout when people say something in the middle of a wave: every row is an input of the test, with its exact outcome.
import { wave } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { all, everyZone, type MidWaveRow } from './mid-wave.ts';

const undoneRevisions = everyZone.map((zone) => ({ zone, revision: 'rev-2' }));

/** An hour after the template changed. */
const untilMs = kitNowMs + 3_600_000;

const canary = (soakMs: number) => wave('canary', ['a'], { amount: { pods: 1 }, before: { gates: [] }, after: { soakMs, gates: [] } });
const rest = wave('rest', everyZone, { before: { gates: [], approval: { count: 1, from: ['oncall'] } } });
const approved = [canary(600_000), rest];
/** The same without the soak. */
const hurried = [canary(0), rest];

/** Of the group of `mid-wave-cluster.ts`. */
export const peopleRows: readonly MidWaveRow[] = [
  {
    name: 'an abort holds the run where it is; pods in flight come back',
    happens: [{ at: 900, kind: 'person', says: { action: 'abort', reason: 'bad release' } }],
    outcome: {
      end: 'run-failed: aborted by kim (bad release)',
      seconds: 960,
      zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout failed'],
    },
  },
  {
    name: 'an aborted run goes on when somebody retries it',
    happens: [
      { at: 900, kind: 'person', says: { action: 'abort' } },
      { at: 2000, kind: 'person', says: { action: 'retry' } },
    ],
    outcome: { end: 'done', seconds: 2450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'an aborted run is undone by the template of before',
    happens: [
      { at: 900, kind: 'person', says: { action: 'abort' } },
      { at: 2000, kind: 'template', revision: 'rev-1' },
    ],
    outcome: {
      end: 'done',
      seconds: 2360,
      zones: { a: '1 1 1', b: '1 1 1', c: '1 1 1' },
      replaced: 8,
      runs: ['rollout failed', 'rollback completed'],
    },
    differs: { partition: { replaced: 7 } },
  },
  {
    name: 'an abort that nobody vouches for holds until it is taken back',
    happens: [{ at: 900, kind: 'person', says: { action: 'abort' }, isAnonymous: true }],
    outcome: {
      end: 'paused: the group is paused by an abort without a verified requester',
      seconds: 960,
      zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout running'],
    },
  },
  {
    name: 'an undo holds what it took back, when Git asks for it again',
    happens: [
      { at: 900, kind: 'person', says: { action: 'undo', undone: undoneRevisions } },
      { at: 901, kind: 'template', revision: 'rev-1' },
      { at: 1000, kind: 'template', revision: 'rev-2' },
    ],
    outcome: {
      end: 'undone: update revision rev-2 of zone a was undone by kim',
      seconds: 1650,
      zones: { a: '2 2 1', b: '1 1 2', c: '1 1 1' },
      replaced: 5,
      runs: ['rollout running', 'rollback running', 'rollout running'],
    },
    differs: {
      partition: {
        end: 'undone: update revision rev-2 of zone b was undone by kim',
        seconds: 1681,
        zones: { a: '2 2 2', b: '1 1 1', c: '1 1 1' },
      },
    },
  },
  {
    name: 'an undo lets another template pass',
    happens: [
      { at: 900, kind: 'person', says: { action: 'undo', undone: undoneRevisions } },
      { at: 901, kind: 'template', revision: 'rev-1' },
      { at: 1000, kind: 'template', revision: 'rev-3' },
    ],
    outcome: {
      end: 'done',
      seconds: 2460,
      zones: { a: '3 3 3', b: '3 3 3', c: '3 3 3' },
      replaced: 14,
      runs: ['rollout running', 'rollback running', 'rollout completed'],
    },
    differs: { partition: { seconds: 2401, replaced: 13 } },
  },
  {
    name: 'an undo that is taken back lets the revision pass again',
    happens: [
      { at: 900, kind: 'person', says: { action: 'undo', undone: undoneRevisions } },
      { at: 2000, kind: 'takesBack', action: 'undo' },
    ],
    outcome: { end: 'done', seconds: 2450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a promotion ends the soak of its wave',
    happens: [{ at: 200, kind: 'person', says: { action: 'promote', wave: 'canary' } }],
    outcome: { end: 'done', seconds: 920, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a promotion of another wave ends no soak',
    happens: [{ at: 200, kind: 'person', says: { action: 'promote', wave: 'rest' } }],
    outcome: { end: 'done', seconds: 1410, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'an approval lets its wave begin',
    rollout: { waves: approved },
    happens: [{ at: 800, kind: 'person', says: { action: 'approve', wave: 'rest' } }],
    outcome: { end: 'done', seconds: 1520, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'an approval is void when a wave changes: the next pod waits until somebody approves what stands written then',
    rollout: { waves: approved },
    happens: [
      { at: 100, kind: 'person', says: { action: 'approve', wave: 'rest' } },
      { at: 900, kind: 'waves', waves: hurried },
    ],
    outcome: {
      end: 'approval: 0 of 1 approvals from oncall; kim approved an older version',
      seconds: 960,
      zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout running'],
    },
  },
  {
    name: 'an approval is void also when the waves before are taken out',
    rollout: { waves: approved },
    happens: [
      { at: 100, kind: 'person', says: { action: 'approve', wave: 'rest' } },
      { at: 900, kind: 'waves', waves: [rest] },
    ],
    outcome: {
      end: 'approval: 0 of 1 approvals from oncall; kim approved an older version',
      seconds: 960,
      zones: { a: '2 2 2', b: '1 1 2', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout running'],
    },
  },
  {
    name: 'what somebody approves anew goes on where it was',
    rollout: { waves: approved },
    happens: [
      { at: 100, kind: 'person', says: { action: 'approve', wave: 'rest' } },
      { at: 900, kind: 'waves', waves: hurried },
      { at: 2000, kind: 'person', says: { action: 'approve', wave: 'rest' } },
    ],
    outcome: { end: 'done', seconds: 2450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a pause holds from the next pod on, until it is taken back',
    happens: [
      { at: 900, kind: 'person', says: { action: 'pause' } },
      { at: 2000, kind: 'takesBack', action: 'pause' },
    ],
    outcome: { end: 'done', seconds: 2450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a protected pod goes last in its zone, or holds those below it, and the zones after it wait',
    happens: [{ at: 900, kind: 'person', says: { action: 'protect', zone: 'b', ordinals: [1], expiresMs: untilMs } }],
    outcome: { end: 'done', seconds: 3960, zones: all, replaced: 9, runs: ['rollout completed'] },
    differs: { partition: { seconds: 4050 } },
  },
  {
    name: 'a protected zone waits until its end',
    happens: [{ at: 900, kind: 'person', says: { action: 'protect', zone: 'c', expiresMs: untilMs } }],
    outcome: { end: 'done', seconds: 3870, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
  {
    name: 'a run that failed by its deadline is retried, and fails again',
    rollout: { deadlines: { progressMs: 300_000 } },
    happens: [
      { at: 910, kind: 'podBreaks', pod: 'b-2' },
      { at: 2000, kind: 'person', says: { action: 'retry' } },
    ],
    outcome: {
      end: 'run-failed: no pod became available for 5m',
      seconds: 2300,
      zones: { a: '2 2 2', b: '1 1 2!', c: '1 1 1' },
      replaced: 4,
      runs: ['rollout failed'],
    },
  },
  {
    name: 'the deadline of the run does not count a pause',
    rollout: { deadlines: { runMs: 1_500_000 } },
    happens: [
      { at: 900, kind: 'person', says: { action: 'pause' } },
      { at: 9000, kind: 'takesBack', action: 'pause' },
    ],
    outcome: { end: 'done', seconds: 9450, zones: all, replaced: 9, runs: ['rollout completed'] },
  },
];
