// What the agent does when pods do not come back: a broken image that is fixed later, and a zone that is lost with its nodes.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { findZone, loseZone } from '../control-plane/nodes.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { type Arena, openArena } from './arena.ts';

/** Time for an agent to do what it should not: several times what it needs for a turn. */
const temptationMs = 2000;

describeOnControlPlane('pods that do not come back', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterEach(() => arena.close());
  afterAll(() => recorder.stop());

  it('because half of a zone crash-loops on a new image: they heal with the next image, and no other zone is touched', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'broken', replicas: 6, maxUnavailable: 3 });
    const { group } = arena;
    const agent = await arena.start();
    await agent.untilReady();
    const before = new Set((await group.pods()).map(({ metadata }) => metadata.uid));
    await group.setImage('example.com/server:2');
    await controlPlane().client.until<Pod>(
      group.podsPath,
      'the second zone rolling',
      (pods) => pods.filter(({ metadata }) => !before.has(metadata.uid)).length > 6,
    );
    await group.setImage('example.com/server:broken');
    const broken = await controlPlane().client.until<Pod>(
      group.podsPath,
      'half of a zone in CrashLoopBackOff',
      (pods) =>
        pods.filter(({ status }) => status.containerStatuses?.some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff')).length ===
        3,
    );
    await delay(temptationMs);
    const after = await group.pods();
    expect(after.map(({ metadata }) => metadata.uid)).toEqual(broken.map(({ metadata }) => metadata.uid));
    const zones = after.filter((pod) => !isReady(pod)).map(({ metadata }) => metadata.name.replace(/-\d+$/, ''));
    expect([zones.length, new Set(zones).size]).toEqual([3, 1]);
    await group.setImage('example.com/server:3');
    await group.untilRolled();
    await arena.expectKept();
  });

  it('because the nodes of a zone are lost: no pod is deleted until the nodes return', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'lost', replicas: 4, maxUnavailable: 2 });
    const { group } = arena;
    const agent = await arena.start();
    await agent.untilReady();
    await loseZone(controlPlane().client, 'zone-b');
    await controlPlane().client.until<Pod>(group.podsPath, 'an unready zone', (pods) => pods.filter((pod) => !isReady(pod)).length === 4);
    const before = (await group.pods()).map(({ metadata }) => metadata.uid);
    await group.setImage('example.com/server:2');
    await delay(temptationMs);
    expect((await group.pods()).map(({ metadata }) => metadata.uid)).toEqual(before);
    expect(await arena.expectKept()).not.toHaveProperty('delete pods');
    await findZone(controlPlane().client, 'zone-b');
    await group.untilRolled();
    await arena.expectKept();
    expect(await podsDeleted()).toBe(12);
  });

  /** Requests that a pod's own changes had overtaken are not among them. */
  async function podsDeleted(): Promise<number> {
    const { requests } = await arena.history();
    const agent = controlPlane().identities.agent.user;
    const isDone = (code = 500): boolean => code < 300;
    return requests.filter(
      ({ verb, objectRef, responseStatus, user }) =>
        verb === 'delete' && objectRef?.resource === 'pods' && user.username === agent && isDone(responseStatus?.code),
    ).length;
  }
});
