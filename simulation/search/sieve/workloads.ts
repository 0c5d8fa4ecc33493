// The workloads of which every write and every notification is disturbed once: small groups, each with one thing that people want of it.
import type { GroupShape, Scenario, ScenarioEvent } from '../../scenario.ts';

export interface SieveWorkload {
  readonly name: string;
  /** Without faults. */
  readonly scenario: Scenario;
  /** Whether a fault, which costs time, leaves the number of writes as it is; with a change of mind it depends on the instants. */
  readonly isCountable: boolean;
}

const group: GroupShape = {
  kind: 'native',
  zones: 2,
  podsPerZone: 2,
  maxUnavailable: 1,
  minReadySeconds: 0,
  podManagementPolicy: 'Parallel',
  rotateBy: 'delete',
  replicas: 'own',
  delaySeconds: 0,
  betweenZonesSeconds: 0,
  drainMs: 2000,
  startMs: 3000,
};

interface Part {
  readonly name: string;
  readonly group?: Partial<GroupShape>;
  readonly agents?: number;
  readonly events: readonly ScenarioEvent[];
  readonly isCountable?: boolean;
}

/** The first event comes when the agents have settled. */
const atMs = 20_000;
const roll: ScenarioEvent = { atMs, kind: 'setImage', image: 'app:2' };

const parts: readonly Part[] = [
  { name: 'rollout', agents: 2, events: [roll] },
  {
    name: 'rollout-and-rollback',
    events: [roll, { atMs: 32_000, kind: 'setImage', image: 'app:1' }],
    isCountable: false,
  },
  {
    name: 'pause-and-resume',
    group: { kind: 'adopted' },
    events: [roll, { atMs: 26_000, kind: 'pause' }, { atMs: 50_000, kind: 'resume' }],
  },
  { name: 'scale-up', group: { replicas: 'mirror' }, events: [{ atMs, kind: 'setReplicas', replicas: 3 }] },
  {
    name: 'delayed-scale-down',
    group: { replicas: 'delayedMirror', delaySeconds: 30, betweenZonesSeconds: 10 },
    agents: 2,
    events: [{ atMs, kind: 'setReplicas', replicas: 1 }],
  },
  {
    name: 'cancelled-scale-down',
    group: { kind: 'adopted', replicas: 'delayedMirror', delaySeconds: 40, betweenZonesSeconds: 10 },
    events: [
      { atMs, kind: 'setReplicas', replicas: 1 },
      { atMs: 45_000, kind: 'setReplicas', replicas: 2 },
    ],
    isCountable: false,
  },
  {
    name: 're-creation',
    group: { rotateBy: 'evict' },
    events: [roll, { atMs: 28_000, kind: 'recreateStatefulSet', zone: 'b', isOrphaning: true, afterMs: 4000 }],
    isCountable: false,
  },
  {
    name: 'leader-and-follower',
    group: { replicas: 'leader', podManagementPolicy: 'OrderedReady' },
    agents: 2,
    events: [
      { atMs, kind: 'setReplicas', replicas: 3, zone: 'a' },
      { ...roll, atMs: 45_000 },
    ],
    // A pod that is made late is made of the new image, and nobody has to replace it.
    isCountable: false,
  },
];

/** By then everything is over in a run without faults. */
const safetyMs = 120_000;

/** Eight, each with a scenario of its own seed. */
export const sieveWorkloads: readonly SieveWorkload[] = parts.map((part, index) => ({
  name: part.name,
  isCountable: part.isCountable ?? true,
  scenario: {
    seed: index + 1,
    group: { ...group, ...part.group },
    agents: part.agents ?? 1,
    safetyMs,
    healingMs: 900_000,
    events: part.events,
    rates: {},
    faults: [],
  },
}));
