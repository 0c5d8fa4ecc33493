// Every kind of stop, with who, why, until when and what ends it, as each view must show them.

import type { RunState } from '../../engine/run/run-state.ts';
import type { IntentView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet } from '../kit/objects.ts';
import { freeze, hourMs, intent, policy, policyRule } from '../kit/questions.ts';
import type { SnapshotOverrides } from '../kit/snapshots.ts';

const untilMs = kitNowMs + hourMs;
const until = 'until 2026-03-02 13:00 UTC';
export const name = 'mimir/ingester';
export const command = (words: string) => `kubectl rollout-group ${words}`;
export const zones = ['a', 'b'];
export const outdated = zones.map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}` }));

export function saying(action: IntentView['action'], more: Partial<IntentView> = {}): SnapshotOverrides {
  return { intents: [intent({ name: `${action}.ingester`, action, reason: 'INC-441', expiresMs: untilMs, ...more })] };
}

function anonymousAbort(): SnapshotOverrides {
  const { requestedBy: _requester, ...rest } = intent({ action: 'abort', expiresMs: untilMs, reason: 'INC-441' });
  return { intents: [rest] };
}

export const run = {
  id: '4f1c9a02',
  kind: 'rollout',
  target: { a: newRevision, b: newRevision },
  previous: { a: 'rev-1', b: 'rev-1' },
  startedMs: kitNowMs - hourMs,
  wave: 0,
  waveStartedMs: kitNowMs - hourMs,
  movableMs: 0,
  movableAsOfMs: kitNowMs,
  isMovable: true,
} as const;

export function afterRun(state: RunState): SnapshotOverrides {
  const ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] };
  return { statefulSets: outdated, ledgers: [{ ...ledger, run: state }] };
}

export interface Row {
  readonly stop: string;
  readonly overrides: SnapshotOverrides;
  readonly definition?: GroupDefinition;
  /** Who and why, as every view shows it. */
  readonly fact: string;
  /** The same in the list of all groups, which names the result that leads. */
  readonly inList?: string;
  readonly until?: string;
  readonly commands: readonly string[];
}

/** The stops that exist while nothing moves and during a rollout. */
const lasting: readonly Row[] = [
  {
    stop: 'pause of the group',
    overrides: saying('pause'),
    fact: 'the group is paused by kim (INC-441)',
    until,
    commands: [command(`resume ${name}`)],
  },
  {
    stop: 'pause of a zone',
    overrides: saying('pause', { zone: 'a' }),
    fact: 'zone a is paused by kim (INC-441)',
    until,
    commands: [command(`resume ${name} --zone a`)],
  },
  {
    stop: 'pause by settings',
    overrides: {},
    definition: group({ zones: [{ name: 'a', paused: true }, 'b'], sources: { 'zones.a.paused': { object: `RolloutGroup ${name}` } } }),
    fact: 'zone a is paused by its settings',
    commands: ['kubectl edit rolloutgroup ingester -n mimir'],
  },
  {
    stop: 'abort that only pauses',
    overrides: anonymousAbort(),
    fact: 'the group is paused by an abort without a verified requester (INC-441)',
    until,
    commands: [command(`resume ${name}`)],
  },
  {
    stop: 'protection',
    overrides: saying('protect'),
    fact: 'kim (INC-441) protects the group',
    inList: 'kim (INC-441) protects',
    until,
    commands: [command(`cancel ${name} protect.ingester`)],
  },
  {
    stop: 'undo',
    overrides: saying('undo', { undone: zones.map((zone) => ({ zone, revision: newRevision })) }),
    fact: `kim (INC-441) undid the revisions ${newRevision} of zone a, ${newRevision} of zone b`,
    inList: 'kim (INC-441)',
    until,
    commands: [command(`cancel ${name} undo.ingester`)],
  },
  {
    stop: 'window',
    overrides: { policies: [policy({ windows: [freeze()] })] },
    fact: 'a deny window blocks rollout',
    until: 'windows allow the action from 2026-03-02 13:00 UTC',
    commands: [command(`override ${name} --rule window --duration 1h --reason REASON --yes`)],
  },
  {
    stop: 'hold by policy',
    overrides: { policies: [policy({ rules: [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })] })] },
    fact: 'safety/moves: the storage moves',
    commands: [command(`override ${name} --rule safety/moves --duration 1h --reason REASON --yes`)],
  },
];

export const failure = 'aborted by kim (INC-441)';

/** The rollback of the run, without its outcome. */
const rollback = {
  ...run,
  kind: 'rollback',
  target: run.previous,
  previous: run.target,
  rolledBack: { revisions: run.target, because: failure },
} as const;
export const otherTemplate = 'apply another pod template';
export const ended: readonly Row[] = [
  {
    stop: 'abort',
    overrides: afterRun({ ...run, outcome: 'failed', failure, failedMs: kitNowMs - 60_000, onFailure: 'pause' }),
    fact: 'the run was aborted by kim (INC-441)',
    commands: [command(`retry ${name}`), command(`undo ${name}`), otherTemplate],
  },
  {
    stop: 'failed run',
    overrides: afterRun({ ...run, outcome: 'failed', failure: 'no pod became available for 5m', failedMs: kitNowMs - 60_000 }),
    fact: 'the run failed: no pod became available for 5m',
    commands: [command(`retry ${name}`), command(`undo ${name}`), otherTemplate],
  },
  {
    stop: 'failed rollback',
    overrides: afterRun({
      ...rollback,
      outcome: 'failed',
      failure: 'no pod became available for 5m',
      failedMs: kitNowMs - 60_000,
      awaitsPods: true,
    }),
    definition: group({ zones, rollout: { strategy: 'pinned' } }),
    fact: 'the run failed: no pod became available for 5m; it continues when the pods in flight are available',
    commands: [command(`retry ${name}`), otherTemplate],
  },
  {
    stop: 'abort --rollback',
    overrides: {
      ...afterRun({ ...rollback, outcome: 'completed', completedMs: kitNowMs - 60_000 }),
      statefulSets: outdated.map((set) => ({ ...set, updateStrategy: 'RollingUpdate', partition: holdingPartition })),
    },
    definition: group({ zones, rollout: { strategy: 'pinned' } }),
    fact: 'the update revision is blocked, because it was rolled back: aborted by kim (INC-441)',
    commands: [command(`retry ${name}`), command(`undo ${name}`), otherTemplate],
  },
];

export const before = { gates: [], approval: { from: ['oncall'], count: 1 } };
const waves = [wave('first', ['a'], { before }), wave('rest', ['b'], { before })];

function rejected(rejectedWave: string): Pick<Row, 'overrides' | 'definition' | 'fact' | 'commands'> {
  const requestedBy = { user: 'kim', groups: ['oncall'], atMs: kitNowMs - 60_000 };
  return {
    overrides: {
      ...afterRun({ ...run, outcome: 'running' }),
      ...saying('reject', { wave: rejectedWave, runId: run.id, requestedBy, expiresMs: untilMs }),
    },
    definition: group({ zones, rollout: { waves } }),
    fact: `kim rejected wave ${rejectedWave}: INC-441`,
    commands: [command(`cancel ${name} reject.ingester`), command(`approve ${name} --wave ${rejectedWave} (as kim)`)],
  };
}

const rejections: readonly Row[] = [
  { stop: 'rejection of the wave', ...rejected('first'), until },
  { stop: 'rejection of a later wave', ...rejected('rest'), until },
];

export const rows = [
  ...lasting.map((row) => ({ ...row, stop: `${row.stop} while nothing moves` })),
  ...lasting.map((row) => ({ ...row, stop: `${row.stop} during a rollout`, overrides: { statefulSets: outdated, ...row.overrides } })),
  ...ended,
  ...rejections,
];

export function rowOf(stop: string): Row {
  const row = rows.find((one) => one.stop === stop);
  if (row === undefined) throw new Error(`the table has no row ${stop}`);
  return row;
}
