// The webhook dies, hangs, loses the API server or is rolled: what is protected stays so, and nothing else stands still.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { type FaultProxy, startFaultProxy } from '../control-plane/fault-proxy.ts';
import { always } from '../control-plane/faults.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { WebhookProcess } from '../control-plane/webhook.ts';
import type { Pod } from '../control-plane/workloads.ts';
import { createWorld, forms, merge, podsOf, replicas, setObject, setsOf, untilEvicted, type World, write, writeOnce } from './kit.ts';
import { isGuarded, isServed, member, type Outage, outageOf, passed } from './kit-outage.ts';

let cp: ControlPlane;
let admin: ApiClient;
let world: World;
let current: WebhookProcess;
let outage: Outage;

/** Where nobody is opted in. */
const elsewhere = 'elsewhere';
const podCount = 100;

describeOnControlPlane(
  'a webhook that is not there',
  (controlPlane) => {
    let proxy: FaultProxy;

    beforeAll(async () => {
      cp = controlPlane();
      admin = cp.client;
      outage = outageOf(admin, { world: () => world, elsewhere });
      proxy = await startFaultProxy(cp);
      world = await createWorld(cp, {
        namespaces: ['native', 'compat'],
        start: { url: proxy.url, identity: proxy.through(cp.identities.agent) },
      });
      current = world.first;
      await admin.create('/api/v1/namespaces', { metadata: { name: elsewhere } });
      for (const form of forms) await world.createGroup(form, form, { name: 'ingester' });
      await admin.create(setsOf('native'), setObject('many', 'many', { replicas: podCount }));
      await world.untilReady('native', 'many-', podCount);
      await outage.untilWell();
      await outage.untilNarrowed();
    });
    afterAll(async () => {
      await world.close();
      await proxy.close();
    });

    it('without the API server denies protected requests with the reason, and allows all others', async () => {
      const faults = [
        proxy.inject({ name: 'no answers', match: { isWatch: false }, which: always, fault: { kind: 'dropRequest' } }),
        proxy.inject({ name: 'no events', match: { isWatch: true }, which: always, fault: { kind: 'dropRequest' } }),
      ];
      try {
        for (const outcome of await Promise.all(outage.attacks('native'))) {
          expect(outcome.said).toMatch(/denied the request: .*(cannot|did not answer|could not)/);
          expect(outcome.isRefused).toBe(true);
        }
        await outage.expectRefused(/denied the request/);
        await outage.expectUnblocked();
        await outage.expectFree('native');
        // In the same namespace, what no group has: so much was known before.
        expect(await write(admin, 'PATCH', `${setsOf('native')}/many?dryRun=All`, replicas(1), merge)).toMatchObject(passed);
      } finally {
        for (const fault of faults) fault.remove();
      }
      await outage.untilWell();
    });

    it('during its rollout loses no request, and enforces all the time', async () => {
      let isOver = false;
      const lost: string[] = [];
      let count = 0;
      const asking = (async () => {
        while (!isOver) {
          const outcomes = await Promise.all([
            writeOnce(admin, 'PATCH', `${setsOf('native')}/${member}`, replicas(2), merge),
            writeOnce(admin, 'PATCH', `${setsOf('compat')}/${member}/scale`, replicas(2), merge),
            writeOnce(admin, 'PATCH', `${setsOf('native')}/many?dryRun=All`, replicas(podCount - 1), merge),
          ]);
          count += outcomes.length;
          const areKept = outcomes.map((outcome, index) => (index === 2 ? isServed(outcome) : isGuarded(outcome)));
          lost.push(...outcomes.flatMap(({ said }, index) => (areKept[index] ? [] : `${index} ${said}`)));
          await delay(20);
        }
      })();
      for (let round = 0; round < 2; round += 1) {
        const next = await world.start(round === 1 ? {} : { url: proxy.url, identity: proxy.through(cp.identities.agent) });
        const before = current;
        world.front.leadTo(before.port, next.port);
        await delay(300);
        // A Service hears late of a pod that goes: it is still asked for a moment.
        const ended = before.agent.stop();
        await delay(300);
        world.front.leadTo(next.port);
        expect(await ended).toBe(0);
        current = next;
      }
      isOver = true;
      await asking;
      expect(count).toBeGreaterThan(20);
      expect(lost).toEqual([]);
      await outage.expectIntact();
    });

    it('that hangs denies protected requests, because the API server waits only for its timeout', async () => {
      process.kill(current.agent.pid, 'SIGSTOP');
      try {
        await outage.expectRefused(/failed calling webhook/);
        await outage.expectUnblocked();
        await outage.expectFree('native');
      } finally {
        process.kill(current.agent.pid, 'SIGCONT');
      }
      await outage.untilWell();
    });

    it('that is dead denies protected requests, while other requests continue and a hundred pods are deleted', async () => {
      await current.agent.kill();
      await outage.expectRefused(/failed calling webhook/);
      await outage.expectUnblocked();
      await outage.expectFree('native');
      // A person deletes them one by one, and none hangs.
      const before = (await admin.list<Pod>(podsOf('native'))).filter(({ metadata }) => metadata.name.startsWith('many-'));
      expect(before).toHaveLength(podCount);
      const outcomes = await Promise.all(before.map(({ metadata }) => write(admin, 'DELETE', `${podsOf('native')}/${metadata.name}`)));
      expect(outcomes.filter(({ isRefused }) => isRefused)).toEqual([]);
      const uids = new Set(before.map(({ metadata }) => metadata.uid));
      await admin.until<Pod>(podsOf('native'), 'the pods gone', (pods) => pods.every(({ metadata }) => !uids.has(metadata.uid)));
      await world.untilReady('native', 'many-', podCount);
      // Pods of a group too: nobody may be kept from removing a pod for want of an answer.
      for (const form of forms) {
        expect(await write(admin, 'DELETE', `${podsOf(form)}/${member}-2`)).toMatchObject(passed);
        await world.untilReady(form, `${member}-`, 3);
      }
      const next = await world.start();
      world.front.leadTo(next.port);
      current = next;
      await outage.untilWell();
      await untilEvicted(admin, 'native', `${member}-0`);
    });
  },
  { zones: ['zone-a'] },
);
