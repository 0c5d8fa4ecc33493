import { describe, expect, it } from 'vitest';
import type { ScenarioEvent } from '../../simulation/scenario.ts';
import { play, type Stage, touchObject } from '../../simulation/stage.ts';
import { newWorld, type World } from './cluster/world.ts';

const noAgents: Stage['agents'] = { crash: () => false, stop: () => false, pause: () => false, jumpWallClock: () => false };

function happens(world: World, event: ScenarioEvent, agents = noAgents): boolean {
  const { cluster, server, nowMs } = world;
  return play(event, { nowMs, wallMs: nowMs, agents, cluster, server, frontEnds: 1, failRequests: () => undefined });
}

describe('an event that changes nothing says so', () => {
  const onPod = { atMs: 0, zone: 'a' };

  it.each<ScenarioEvent>([
    { ...onPod, kind: 'podFails', ordinal: 7, forMs: 1000 },
    { ...onPod, kind: 'podFlaps', ordinal: 7, times: 2 },
    { ...onPod, kind: 'podDies', ordinal: 7 },
    { ...onPod, kind: 'stuckTerminating', ordinal: 7, forMs: 1000 },
    { ...onPod, kind: 'deletePod', ordinal: 7 },
    { ...onPod, kind: 'podFails', zone: 'f', ordinal: 0, forMs: 1000 },
    { ...onPod, kind: 'scaleByHand', replicas: 3 },
    { ...onPod, kind: 'scaleByHand', zone: 'f', replicas: 2 },
    { ...onPod, kind: 'setStrategy', type: 'OnDelete', forMs: 1000 },
    { ...onPod, kind: 'recreateStatefulSet', zone: 'f', isOrphaning: false, afterMs: 1000 },
    { ...onPod, kind: 'leaveGroup', zone: 'f', forMs: 1000 },
    { atMs: 0, kind: 'setImage', image: 'app:1' },
    { atMs: 0, kind: 'setReplicas', replicas: 3 },
    { atMs: 0, kind: 'deleteLease' },
    { atMs: 0, kind: 'editLease' },
    { atMs: 0, kind: 'crash', process: 'a', restartAfterMs: 0 },
    { atMs: 0, kind: 'pauseProcess', process: 'a', durationMs: 1000 },
  ])('$kind', (event) => expect(happens(newWorld(), event)).toBe(false));

  it.each<ScenarioEvent>([
    { ...onPod, kind: 'podFails', ordinal: 1, forMs: 1000 },
    { ...onPod, kind: 'podFlaps', ordinal: 1, times: 2 },
    { ...onPod, kind: 'podDies', ordinal: 1 },
    { ...onPod, kind: 'stuckTerminating', ordinal: 1, forMs: 1000 },
    { ...onPod, kind: 'deletePod', ordinal: 1 },
    { ...onPod, kind: 'scaleByHand', replicas: 2 },
    { ...onPod, kind: 'setStrategy', type: 'RollingUpdate', forMs: 1000 },
    { ...onPod, kind: 'recreateStatefulSet', isOrphaning: false, afterMs: 1000 },
    { ...onPod, kind: 'leaveGroup', forMs: 1000 },
    { ...onPod, kind: 'nodeLost', forMs: 1000 },
    { ...onPod, kind: 'nodeDrained' },
    { atMs: 0, kind: 'setImage', image: 'app:2' },
    { atMs: 0, kind: 'setReplicas', replicas: 4 },
    { atMs: 0, kind: 'slowKubelet', startFactor: 2, drainFactor: 2, forMs: 1000 },
    { atMs: 0, kind: 'controllerLags', delayMs: 1000, forMs: 1000 },
    { atMs: 0, kind: 'controllerIsStale', forMs: 1000 },
    { atMs: 0, kind: 'frontEndLags', frontEnd: 0, forMs: 1000 },
    { atMs: 0, kind: 'rightsRevoked', right: 'ledger', forMs: 1000 },
    { atMs: 0, kind: 'frontEndRestarts', frontEnd: 0, isCompacted: false },
  ])('and $kind that changes something, too', (event) => expect(happens(newWorld(), event)).toBe(true));

  it('as does a pod that goes already when it is deleted', () => {
    const world = newWorld();
    const event: ScenarioEvent = { ...onPod, kind: 'deletePod', ordinal: 1 };
    expect([happens(world, event), happens(world, event)]).toEqual([true, false]);
  });

  it('and a foreign write to an object that is not there', () => {
    const { server, cluster, pod } = newWorld();
    const pathOf = (name: string): string => `/api/v1/namespaces/${cluster.namespace}/pods/${name}`;
    expect(touchObject({ path: pathOf(pod('a', 0).name) }, 1, server)).toBe(true);
    expect(touchObject({ path: pathOf('nobody') }, 2, server)).toBe(false);
    expect(touchObject({ path: '/api/v1/pods' }, 3, server)).toBe(false);
  });
});
