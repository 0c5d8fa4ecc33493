// Lists the workloads whose writes and notifications are each disturbed once: small groups with one request.
import type { GroupShape, Scenario, ScenarioEvent } from '../../../simulation/scenario.ts';

export interface SieveWorkload {
  readonly name: string;
  /** Duration without faults. */
  readonly scenario: Scenario;
  /** True if a delay keeps the number of writes; after a change of mind it depends on timing. */
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

/** The first event comes after the agents settled. */
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
    // A late pod is created with the new image and needs no replacement.
    isCountable: false,
  },
];

/** End of everything in a run without faults. */
const safetyMs = 120_000;

/** Eight workloads with their own seeds. */
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
