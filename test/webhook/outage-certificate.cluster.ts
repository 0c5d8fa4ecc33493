// The webhook loses its certificate, or the API server the authority by which it trusts it: what is protected stays so, and it mends itself.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { certificateSecret } from '../../install/object.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { type FaultProxy, startFaultProxy } from '../control-plane/fault-proxy.ts';
import { always } from '../control-plane/faults.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually, type StartOptions, untilTrusted, type WebhookProcess } from '../control-plane/webhook.ts';
import { createWorld, forms, json, merge, type Outcome, replicas, setsOf, type World, write, writeOnce } from './kit.ts';
import { isGuarded, member, type Outage, outageOf, passed } from './kit-outage.ts';

interface Secret extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

interface Configuration extends KubernetesObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

const elsewhere = 'elsewhere';
const secrets = '/api/v1/namespaces/rollout-group/secrets';
const secretPath = `${secrets}/${certificateSecret}`;
const configurationsOf = (kind: string): string => `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
const kinds = ['validating', 'mutating'];

let admin: ApiClient;
let world: World;
let proxy: FaultProxy;
let current: WebhookProcess;
let outage: Outage;
/** Of processes of the suite, each through the proxy. */
let start: StartOptions;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

function certificateOf(items: readonly Secret[]): string | undefined {
  return items.find(({ metadata }) => metadata.name === certificateSecret)?.data?.['cert'];
}

/** Waits until the Secret has another certificate than that, and every configuration the authorities of the Secret. */
async function untilMended(before: string | undefined): Promise<void> {
  const items = await admin.until<Secret>(secrets, 'another certificate in the Secret', (seen) => {
    const now = certificateOf(seen);
    return now !== undefined && now !== before && !now.startsWith(base64('garbage').slice(0, 8));
  });
  const bundle = items.find(({ metadata }) => metadata.name === certificateSecret)?.data?.['ca'];
  for (const kind of kinds) {
    await admin.until<Configuration>(configurationsOf(kind), 'its authority in every configuration', (seen) =>
      seen.every(({ webhooks }) => webhooks.every(({ clientConfig }) => clientConfig.caBundle === bundle)),
    );
  }
}

/** What is asked all the time while something is done, and what of it the webhook has not refused, but for what came too late. */
async function whileAttacked(work: () => Promise<void>): Promise<readonly string[]> {
  let isOver = false;
  const outcomes: Outcome[] = [];
  const asking = (async () => {
    while (!isOver) {
      const asked = forms.map((namespace) => writeOnce(admin, 'PATCH', `${setsOf(namespace)}/${member}/scale`, replicas(2), merge));
      outcomes.push(...(await Promise.all(asked)));
      await delay(50);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await asking;
  }
  expect(outcomes.length).toBeGreaterThan(5);
  return outcomes.flatMap((outcome) => (isGuarded(outcome) ? [] : outcome.said));
}

/** A process that has never known another certificate than that of the Secret now answers those who begin anew. */
async function expectNewProcessWell(): Promise<void> {
  const next = await world.start(start);
  world.front.leadTo(next.port);
  world.front.cut();
  await outage.untilWell();
  await current.agent.stop();
  current = next;
  await outage.expectGuarded();
}

describeOnControlPlane(
  'a webhook that loses its certificate',
  (controlPlane) => {
    beforeAll(async () => {
      const cp = controlPlane();
      admin = cp.client;
      outage = outageOf(admin, { world: () => world, elsewhere });
      proxy = await startFaultProxy(cp);
      start = { url: proxy.url, identity: proxy.through(cp.identities.agent) };
      world = await createWorld(cp, { namespaces: ['native', 'compat'], start });
      current = world.first;
      await admin.create('/api/v1/namespaces', { metadata: { name: elsewhere } });
      for (const form of forms) await world.createGroup(form, form, { name: 'ingester' });
      await outage.untilWell();
    });
    afterEach(async () => {
      await outage.expectIntact();
    });
    afterAll(async () => {
      await world.close();
      await proxy.close();
    });

    it('with a deleted Secret keeps enforcing, and creates another one', async () => {
      const before = certificateOf(await admin.list<Secret>(secrets));
      const unjudged = await whileAttacked(async () => {
        await admin.delete(secretPath);
        await untilMended(before);
        await outage.expectGuarded();
        await outage.expectUnblocked();
      });
      expect(unjudged).toEqual([]);
      await expectNewProcessWell();
    });

    it('with an invalid Secret keeps enforcing, and creates another certificate', async () => {
      const before = certificateOf(await admin.list<Secret>(secrets));
      const unjudged = await whileAttacked(async () => {
        const garbage = { ca: base64('garbage of an authority'), cert: base64('garbage'), key: base64('garbage') };
        await admin.patch(secretPath, 'merge', { data: garbage });
        await untilMended(before);
        await outage.expectGuarded();
        await outage.expectUnblocked();
      });
      expect(unjudged).toEqual([]);
      await expectNewProcessWell();
    });

    it('with a Secret of another owner does not change it, logs this and continues with its certificate', async () => {
      const before = certificateOf(await admin.list<Secret>(secrets));
      const nothing = { ca: null, cert: null, key: null, 'previous-cert': null, 'previous-key': null };
      const unjudged = await whileAttacked(async () => {
        const data = { ...nothing, password: base64('secret of somebody') };
        await admin.patch(secretPath, 'merge', { data });
        await eventually(
          'the log says so',
          async () => current.agent.log(),
          (log) => log.includes('contains other data'),
        );
        world.front.cut();
        await outage.untilWell();
        await outage.expectGuarded();
        await outage.expectUnblocked();
        expect((await admin.get<Secret>(secretPath)).data).toEqual({ password: base64('secret of somebody') });
        await admin.delete(secretPath);
        await untilMended(before);
      });
      // Only what was on its way when connections were cut.
      expect(unjudged.filter((one) => !/failed calling webhook.*(EOF|reset|closed|broken pipe)/.test(one))).toEqual([]);
      await expectNewProcessWell();
    });

    it('without its authority in the configurations is not trusted, and restores it when permitted', async () => {
      const match = { method: 'PATCH', path: /webhookconfigurations/ };
      const forbidden = { kind: 'answer', status: 403 } as const;
      const fault = proxy.inject({ name: 'no patches of configurations', match, which: always, fault: forbidden });
      try {
        for (const kind of kinds) {
          for (const { metadata, webhooks } of await admin.list<Configuration>(configurationsOf(kind))) {
            const operations = webhooks.map((_, index) => ({ op: 'remove', path: `/webhooks/${index}/clientConfig/caBundle` }));
            expect(await write(admin, 'PATCH', `${configurationsOf(kind)}/${metadata.name}`, operations, json)).toMatchObject(passed);
          }
        }
        for (const form of forms) {
          const attack = () => write(admin, 'PATCH', `${setsOf(form)}/${member}`, replicas(2), merge);
          await eventually('nobody is believed', attack, ({ said }) => /failed calling webhook.*certificate/.test(said));
        }
        await outage.expectRefused(/failed calling webhook.*certificate/);
        await outage.expectUnblocked();
        await eventually(
          'the log says so',
          async () => current.agent.log(),
          (log) => log.includes('a webhook configuration lacks our CA certificate'),
        );
        expect(fault.hits()).toBeGreaterThan(0);
      } finally {
        fault.remove();
      }
      await untilTrusted(admin);
      await outage.untilWell();
      await outage.expectGuarded();
    });
  },
  { zones: ['zone-a'] },
);
