// The rights that the agent gets are enough: it rolls, scales from a template and keeps records, and no request is refused.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installation } from '../../install/installation.ts';
import { openArena } from '../agent/arena.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { createTemplate, mirrors, templatesPath } from '../control-plane/replica-template.ts';
import { agentRules, type Rule } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { group, optionsOf, rulesIn, scopeOf } from './given.ts';

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const generatedIn = 'generated';
const objects = installation(optionsOf({ namespace: generatedIn, hasCompat: true, scope: scopeOf(group.replace('mimir', generatedIn)) }));

/** The agent lives among its groups, so that it has its own Role and that of the namespace there. */
const cases: readonly { readonly rights: string; readonly namespace: string; readonly rules: readonly Rule[] }[] = [
  { rights: 'of deploy/rbac.yaml', namespace: 'shipped', rules: agentRules() },
  {
    rights: 'that are generated from policies',
    namespace: generatedIn,
    rules: objects.filter(({ kind }) => kind === 'Role').flatMap(rulesIn),
  },
];

describeOnControlPlane('the rights of the agent', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    const { client } = controlPlane();
    recorder = await recordHistory(controlPlane());
    for (const one of objects) if (one.kind === 'CustomResourceDefinition') await client.create(definitions, one);
    await client.until<Definition>(definitions, 'every kind served', (items) =>
      items.every((item) => item.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
    );
  });
  afterAll(() => recorder.stop());

  it.concurrent.each(cases)('$rights are all permissions that it needs', async ({ namespace, rules }) => {
    const { client, identities } = controlPlane();
    const zoneMeta = () => ({ annotations: mirrors('ingester') });
    const arena = await openArena(controlPlane(), recorder, { namespace, replicas: 2, zoneMeta, rules });
    try {
      await createTemplate(client, namespace, 'ingester', 2);
      const agent = await arena.start();
      await agent.untilReady();
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled();
      await client.patch(`${templatesPath(namespace)}/ingester/scale`, 'merge', { spec: { replicas: 3 } });
      await arena.group.untilReady(9);
      const runs = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutruns`;
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
