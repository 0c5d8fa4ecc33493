// A healthy installation as doctor sees it, to be broken in one place by each test.
import { examine } from '../../../plugin/doctor/all.ts';
import type { CheckResult, Facts } from '../../../plugin/doctor/check.ts';
import { adopted } from '../../kit/groups.ts';
import { manifest } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

export const ingester = adopted({ zones: ['a', 'b', 'c'] });

const { statefulSets } = snapshotOf({ groups: [ingester] });

/** Everything is well: one agent, all kinds, one group of three zones. */
export function facts(overrides: Partial<Facts> = {}): Facts {
  return {
    nowMs: kitNowMs,
    serverMs: kitNowMs,
    clockDoubtMs: 0,
    serverVersion: 'v1.36.3',
    maxUnavailableGate: false,
    agentNamespace: 'rollout-group',
    leases: [lease()],
    published: [{ namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 3000, leader: 'agent-1' }],
    kinds: [{ kind: 'RolloutGroup', isServed: true, isOurs: true }],
    accounts: [{ name: 'rollout-group/rollout-group-agent', rights: [] }],
    operators: [],
    autoscalers: [],
    groups: [ingester],
    createdMs: new Map(),
    policies: [],
    findings: [],
    statefulSets: ['a', 'b', 'c'].map((zone) => ({ ...manifest(zone), metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir' } })),
    sets: statefulSets.map((set) => ({ ...set, updateStrategy: 'OnDelete', podLabels: { name: set.name } })),
    pods: [],
    budgets: [],
    ledgers: [{ namespace: 'mimir', name: 'rollout-group-ingester' }],
    secrets: { named: 0, problems: [], forbidden: [] },
    registration: { isRegistered: true, configurations: [], services: [], problems: [], namespaces: [{ name: 'mimir', isOptedIn: true }] },
    ...overrides,
  };
}

export function lease(overrides: object = {}) {
  return {
    namespace: 'rollout-group',
    name: 'rollout-group-agent',
    holder: 'agent-1',
    renewedMs: kitNowMs - 2000,
    acquiredMs: kitNowMs - 3_600_000,
    durationMs: 15_000,
    version: '0.0.0-source',
    ...overrides,
  };
}

/** The results that are not ok, as one line each. */
export function wrong(overrides: Partial<Facts>): readonly string[] {
  return examine(facts(overrides)).filter(isWrong).map(line);
}

export function isWrong({ verdict }: CheckResult): boolean {
  return verdict !== 'ok';
}

function line({ check, verdict, message, code }: CheckResult): string {
  return `${verdict} ${check} ${code ?? '-'} ${message}`;
}
