// The certificate of the webhook ends while nobody may write a new one: API servers do not believe it, what is protected stays so, and it mends itself.
import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { certificateSecret } from '../../install/object.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { type FaultProxy, startFaultProxy } from '../control-plane/fault-proxy.ts';
import { always } from '../control-plane/faults.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { createWorld, forms, merge, replicas, setsOf, type World, write } from './kit.ts';
import { member, type Outage, outageOf } from './kit-outage.ts';

interface Secret extends KubernetesObject {
  readonly data: Readonly<Record<string, string>>;
}

const elsewhere = 'elsewhere';
const longestMs = 150_000;

let admin: ApiClient;
let world: World;
let proxy: FaultProxy;
let outage: Outage;

/** Of the certificate in the Secret, in milliseconds since 1970. */
async function endsAtMs(): Promise<number> {
  const { data } = await admin.get<Secret>(`/api/v1/namespaces/rollout-group/secrets/${certificateSecret}`);
  return Date.parse(new X509Certificate(Buffer.from(data['cert'] ?? '', 'base64')).validTo);
}

describeOnControlPlane(
  'a webhook whose certificate ends',
  (controlPlane) => {
    beforeAll(async () => {
      const cp = controlPlane();
      admin = cp.client;
      outage = outageOf(admin, { world: () => world, elsewhere });
      proxy = await startFaultProxy(cp);
      const flags = ['-server-tls.self-signed-cert.expiration=1m'];
      const start = { url: proxy.url, identity: proxy.through(cp.identities.agent), flags };
      world = await createWorld(cp, { namespaces: ['native', 'compat'], start });
      await admin.create('/api/v1/namespaces', { metadata: { name: elsewhere } });
      for (const form of forms) await world.createGroup(form, form, { name: 'ingester' });
      await outage.untilWell();
    });
    afterAll(async () => {
      await world.close();
      await proxy.close();
    });

    it('is no longer trusted, allows no protected request, and is replaced as soon as the new one can be stored', async () => {
      const match = { path: /\/secrets/, body: /./ };
      const fault = proxy.inject({ name: 'no Secrets', match, which: always, fault: { kind: 'answer', status: 403 } });
      try {
        const endMs = await endsAtMs();
        await outage.expectGuarded();
        for (; Date.now() < endMs + 1_500; await delay(500)) {
          const outcomes = forms.map((form) => write(admin, 'PATCH', `${setsOf(form)}/${member}/scale`, replicas(2), merge));
          for (const { said } of await Promise.all(outcomes)) expect(said).toMatch(/denied the request|failed calling webhook/);
        }
        expect(fault.hits()).toBeGreaterThan(0);
        expect(await endsAtMs()).toBe(endMs);
        // Connections that are open outlive the certificate.
        world.front.cut();
        await eventually(
          'the end of the certificate is known',
          () => write(admin, 'PATCH', `${setsOf('native')}/${member}`, replicas(2), merge),
          ({ said }) => /failed calling webhook.*certificate has expired/.test(said),
        );
        await outage.expectRefused(/failed calling webhook.*certificate has expired/);
        await outage.expectUnblocked();
        const { body } = await world.first.agent.ask('/metrics');
        const expiry = /^rollout_group_webhook_certificate_expiry_timestamp_seconds (\S+)/m.exec(body)?.[1];
        expect(Number(expiry) * 1000).toBeLessThan(Date.now());
        expect(world.first.agent.log()).toContain('the certificate in the Secret cannot be used or stored');
      } finally {
        fault.remove();
      }
      for (const form of forms) {
        const attack = () => write(admin, 'PATCH', `${setsOf(form)}/${member}`, replicas(2), merge);
        await eventually('it is believed again', attack, ({ said }) => said.includes('denied the request'), longestMs);
      }
      expect(await endsAtMs()).toBeGreaterThan(Date.now());
      await outage.expectGuarded();
      await outage.expectUnblocked();
    }, 400_000);
  },
  { zones: ['zone-a'] },
);
