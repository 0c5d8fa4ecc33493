// Whether the Role that we ship is enough: with everything installed, a rollout, a scale-up from a template and their records are refused nothing.
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { KubernetesObject } from '../control-plane/client.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { createTemplate, mirrors, templatesPath } from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { openArena } from './arena.ts';

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

describeOnControlPlane('the Role of the agent', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    const { client } = controlPlane();
    recorder = await recordHistory(controlPlane());
    for (const file of readdirSync('deploy/crds')) await client.create(definitions, parse(readFileSync(`deploy/crds/${file}`, 'utf8')));
    await client.until<Definition>(definitions, 'every kind served', (items) =>
      items.every((item) => item.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
    );
  });
  afterAll(() => recorder.stop());

  it('is all that it asks for', async () => {
    const { client, identities } = controlPlane();
    const arena = await openArena(controlPlane(), recorder, {
      namespace: 'role',
      replicas: 2,
      zoneMeta: () => ({ annotations: mirrors('ingester') }),
    });
    try {
      await createTemplate(client, 'role', 'ingester', 2);
      const agent = await arena.start();
      await agent.untilReady();
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled();
      await client.patch(`${templatesPath('role')}/ingester/scale`, 'merge', { spec: { replicas: 3 } });
      await arena.group.untilReady(9);
      const runs = '/apis/rollout-group.dev/v1alpha1/namespaces/role/rolloutruns';
      await client.until<KubernetesObject>(runs, 'the record of a rollout', (items) => items.length > 0);
      expect(await agent.stop()).toBe(0);
      await arena.expectKept();
      const refused = (await controlPlane().auditLog())
        .filter(({ user, responseStatus }) => user.username === identities.agent.user && responseStatus?.code === 403)
        .map(({ verb, requestURI }) => `${verb} ${requestURI}`);
      expect([...new Set(refused)]).toEqual([]);
    } finally {
      await arena.close();
    }
  });
});
