// Two requests for the last permitted step, in two processes over two connections to a real API server: never are both granted.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ledgerName } from '../../engine/ledger/ledger-document.ts';
import type { ApiClient } from '../control-plane/client.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import type { WebhookProcess } from '../control-plane/webhook.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import { rounds } from '../kit/share.ts';
import { createWorld, merge, podsOf, setObject, setsOf, type World, write } from './kit.ts';
import { type Asker, createAsker, decreaseOf, evictionOf } from './kit-asks.ts';

const namespace = 'native';
const groups = ['one', 'two', 'three', 'four', 'five', 'six'];
const wantedPairs = rounds(1_000, 300);
/** Several times what two cores take that have little else to do. A machine on which they take longer fails. */
const longestMs = 420_000;
/** Watches that hear something this often are believed, and then a pair costs a third fewer requests. */
const stirEveryMs = 3_000;

let admin: ApiClient;
let world: World;
let processes: readonly [WebhookProcess, WebhookProcess];
let asker: Asker;

/** As in a namespace in which things happen: an object of each kind changes now and then, and none that a group has. */
async function stir(untilOver: AbortSignal): Promise<void> {
  const pod = `${podsOf(namespace)}/calm-0`;
  for (let count = 0; !untilOver.aborted; count += 1) {
    const touched = { metadata: { annotations: { stirred: String(count) } } };
    for (const path of [pod, `${setsOf(namespace)}/calm`])
      expect(await write(admin, 'PATCH', path, touched, merge)).toMatchObject({ isRefused: false });
    await delay(stirEveryMs, undefined, { signal: untilOver }).catch(() => undefined);
  }
}

describeOnControlPlane(
  'two requests for one permitted step',
  (controlPlane) => {
    beforeAll(async () => {
      admin = controlPlane().client;
      world = await createWorld(controlPlane(), { namespaces: [namespace] });
      processes = [world.first, await world.start()];
      await Promise.all(groups.map((name) => world.createGroup('native', namespace, { name, replicas: 2, isProtected: false })));
      asker = await createAsker(admin, namespace);
    });
    afterAll(async () => {
      asker.close();
      await world.close();
    });

    it('find the group in every process as soon as its pods exist', async () => {
      for (const name of ['new-one', 'new-two', 'new-three', 'new-four', 'new-five', 'new-six']) {
        await world.createGroup('native', namespace, { name, replicas: 1, isProtected: false });
        const eviction = { ...evictionOf(namespace, `${name}-zone-a-0`), dryRun: true };
        const answers = await Promise.all(processes.map((one) => asker.askUntilJudged(one, eviction)));
        expect(answers.map(({ auditAnnotations }) => auditAnnotations?.['group'])).toEqual([
          `${namespace}/${name}`,
          `${namespace}/${name}`,
        ]);
      }
    });

    it(
      'are never both granted',
      async () => {
        const sets = await admin.list<StatefulSet>(setsOf(namespace));
        const asks = (group: string, zone: string, round: number): object => {
          const set = sets.find(({ metadata }) => metadata.name === `${group}-zone-${zone}`);
          if (set === undefined) throw new Error(`${group} has no zone ${zone}`);
          return round % 3 === 0 ? decreaseOf(set) : evictionOf(namespace, `${set.metadata.name}-${round % 2}`);
        };
        const granted = [0, 0, 0];
        const refusals: string[] = [];
        const over = new AbortController();
        const [beganAt, endsAt] = [Date.now(), Date.now() + longestMs];
        let pairs = 0;
        const race = async (group: string, index: number): Promise<void> => {
          while (pairs < wantedPairs && Date.now() < endsAt) {
            const round = index + pairs++;
            const [zone, other] = round % 2 === 0 ? ['a', 'b'] : ['b', 'a'];
            const answers = await Promise.all([
              asker.ask(processes[0], asks(group, zone ?? '', round)),
              asker.ask(processes[1], asks(group, other ?? '', Math.floor(round / 2))),
            ]);
            const count = answers.filter(({ allowed }) => allowed).length;
            granted[count] = (granted[count] ?? 0) + 1;
            expect(count, `pair ${round} of ${group}: ${JSON.stringify(answers)}`).toBeLessThan(2);
            if (count === 0) refusals.push(answers.map(({ status }) => status?.message).join(' | '));
            await admin.delete(`/api/v1/namespaces/${namespace}/configmaps/${ledgerName(group)}`).catch(() => undefined);
          }
        };
        await admin.create(setsOf(namespace), setObject('calm', 'calm', { replicas: 1 }));
        await world.untilReady(namespace, 'calm-', 1);
        const stirring = stir(over.signal);
        await Promise.all(groups.map(race)).finally(() => over.abort());
        await stirring;
        const seconds = ((Date.now() - beganAt) / 1000).toFixed(0);
        process.stderr.write(`race: ${pairs} pairs in ${seconds} s, of which none, one and both were granted: ${granted.join(', ')}\n`);
        expect(pairs, `only so many pairs in ${longestMs / 1000} s`).toBeGreaterThanOrEqual(wantedPairs);
        expect(granted[2]).toBe(0);
        // Otherwise nothing would have been raced for.
        expect(granted[1], refusals[0]).toBeGreaterThan(pairs * 0.9);
      },
      longestMs + 60_000,
    );
  },
  { zones: ['zone-a'] },
);
