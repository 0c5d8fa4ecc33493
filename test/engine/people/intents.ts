// What the engine makes of every kind of intent, as rows: without it, and with it.
import { digestOfWaves } from '../../../engine/run/requests.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import type { GroupDefinition, ZoneDefinition } from '../../../policies/definition.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, hourMs, minuteMs, runOf, updatedPods } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

export interface IntentRow {
  readonly action: IntentView['action'];
  /** What it does, in a few words; `nothing` where the plugin writes the object itself and the intent is none of the engine's. */
  readonly does: string;
  readonly definition: GroupDefinition;
  readonly run?: RunState;
  readonly state?: SnapshotOverrides;
  readonly says: Partial<IntentView>;
  /** Pods that go and steps that hold. */
  readonly without: string;
  readonly with: string;
  /** Whether it lets something go on, so that it counts from vouched people alone, and for its run alone. */
  readonly isPermit: boolean;
}

const rolled = group();
const approval = { count: 1, from: ['oncall'] };
const approved = group({ rollout: { waves: [wave('rest', ['a', 'b', 'c'], { before: { gates: [], approval } })] } });
const soaked = group({
  rollout: { waves: [wave('canary', ['a'], { after: { soakMs: hourMs, gates: [] } }), wave('rest', ['a', 'b', 'c'])] },
});
const counted = { kind: 'count', count: 2 } as const satisfies ZoneDefinition['replicas'];
const shrinking = group({ zones: [{ name: 'a', replicas: counted }] });
const canaryDone: SnapshotOverrides = { podChanges: { 'ingester-zone-a': updatedPods() } };

/** Every action of the schema has a row. */
export const intentRows: readonly IntentRow[] = [
  { action: 'pause', does: 'holds', definition: rolled, says: {}, without: 'a-2', with: 'roll/a wait: paused', isPermit: false },
  {
    action: 'approve',
    does: 'lets a wave begin',
    definition: approved,
    run: runOf(),
    says: { wave: 'rest', digest: digestOfWaves(approved) },
    without: 'roll/a wait: approval',
    with: 'a-2',
    isPermit: true,
  },
  {
    action: 'reject',
    does: 'stops a wave',
    definition: approved,
    run: runOf(),
    says: { wave: 'rest' },
    without: 'roll/a wait: approval',
    with: 'roll/a blocked: approval',
    isPermit: false,
  },
  {
    action: 'promote',
    does: 'ends a soak',
    definition: soaked,
    run: runOf({ waveAvailableMs: ago(minuteMs) }),
    state: canaryDone,
    says: { wave: 'canary' },
    without: 'after/canary wait: soak',
    with: 'b-2',
    isPermit: true,
  },
  {
    action: 'abort',
    does: 'fails the run',
    definition: rolled,
    run: runOf(),
    says: { runId: 'run-1' },
    without: 'a-2',
    with: 'roll/a blocked: run-failed',
    isPermit: false,
  },
  {
    action: 'retry',
    does: 'lets a failed run go on',
    definition: rolled,
    run: runOf({ outcome: 'failed', failure: 'no pod became available for 5m', failedMs: ago(2 * minuteMs) }),
    says: {},
    without: 'roll/a blocked: run-failed',
    with: 'a-2',
    isPermit: true,
  },
  {
    action: 'undo',
    does: 'holds the revision that it takes back',
    definition: rolled,
    run: runOf(),
    says: { undone: [{ zone: 'a', revision: 'rev-2' }] },
    without: 'a-2',
    with: 'roll/a wait: undone',
    isPermit: false,
  },
  {
    action: 'cancel',
    does: 'takes a decrease back',
    definition: shrinking,
    state: { statefulSets: [] },
    says: { zone: 'a', replicas: 2 },
    without: 'scale 3 to 2',
    with: '',
    isPermit: false,
  },
  {
    action: 'protect',
    does: 'lets a pod stand',
    definition: rolled,
    says: { zone: 'a', ordinals: [2], expiresMs: kitNowMs + hourMs },
    without: 'a-2',
    with: 'a-1',
    isPermit: false,
  },
];
