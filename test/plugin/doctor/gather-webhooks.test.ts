import { describe, expect, it } from 'vitest';
import { isUnknown } from '../../../engine/snapshot.ts';
import { readRegistration, readWebhookAccounts } from '../../../plugin/doctor/gather-webhooks.ts';
import { installation } from '../../../policies/install/installation.ts';
import { adopted } from '../../kit/groups.ts';
import { optionsOf } from '../../policies/install/given.ts';
import { type ClusterAnswers, clusterOf } from '../cluster-of.ts';

const groups = [adopted({ zones: ['a', 'b'] })];
const configurations = installation(optionsOf()).filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
const namespace = (label?: string) => ({
  ...{ apiVersion: 'v1', kind: 'Namespace' },
  metadata: { name: 'mimir', ...(label === undefined ? {} : { labels: { 'rollout-group.dev/enforce': label } }) },
});
const objects = {
  validatingwebhookconfigurations: configurations.filter(({ kind }) => kind.startsWith('Val')),
  mutatingwebhookconfigurations: configurations.filter(({ kind }) => kind.startsWith('Mut')),
  namespaces: [namespace('true')],
  services: [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' } },
      spec: { selector: { app: 'webhook' } },
    },
  ],
  pods: [
    {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'webhook-1', namespace: 'rollout-group', labels: { app: 'webhook' } } },
      spec: { serviceAccountName: 'webhook' },
    },
  ],
};
const read = (answers: ClusterAnswers) => readRegistration(clusterOf(answers), { agentNamespace: 'rollout-group', groups });

describe('what is registered of the webhooks', () => {
  it('is compared with what an installation registers, and with what the namespaces of groups ask for', async () => {
    expect(await read({ objects })).toEqual({
      ...{ areThere: true, problems: [], namespaces: [{ name: 'mimir', isOptedIn: true }] },
      services: ['rollout-group/rollout-group-agent'],
    });
    const { validatingwebhookconfigurations: _, ...without } = objects;
    expect(await read({ objects: without })).toMatchObject({
      problems: ['ValidatingWebhookConfiguration rollout-group is not there'],
    });
    expect(await read({ objects: { namespaces: [namespace()] } })).toEqual({
      ...{ areThere: false, problems: [], services: [], namespaces: [{ name: 'mimir', isOptedIn: false }] },
    });
  });

  it('is unknown where it may not be read', async () => {
    expect(await read({ objects, forbidden: ['mutatingwebhookconfigurations'] })).toHaveProperty('unknown');
    expect(await read({ objects, forbidden: ['namespaces'] })).toHaveProperty('unknown');
  });

  it('leads to the accounts of those who answer, and to what they may not do', async () => {
    const reviews = () => ({ status: { allowed: false } });
    const cluster = clusterOf({ objects, reviews });
    const registration = await readRegistration(cluster, { agentNamespace: 'rollout-group', groups });
    const [one, ...more] = await readWebhookAccounts(cluster, registration, { agentNamespace: 'rollout-group', promoting: [], known: [] });
    expect([one?.name, more]).toEqual(['rollout-group/webhook', []]);
    const rights = one === undefined || isUnknown(one.rights) ? [] : one.rights;
    const named = rights.map(({ right }) => `${right.verb} ${right.resource}`);
    expect(named).toEqual(
      expect.arrayContaining(['watch statefulsets', 'list poddisruptionbudgets', 'update configmaps', 'create events']),
    );
    expect(named).not.toContain('delete pods');
    const known = [{ name: 'rollout-group/webhook', rights: [] }];
    expect(await readWebhookAccounts(cluster, registration, { agentNamespace: 'rollout-group', promoting: [], known })).toEqual([]);
    const hidden = clusterOf({ objects, reviews, forbidden: ['services'] });
    expect(await readWebhookAccounts(hidden, registration, { agentNamespace: 'rollout-group', promoting: [], known: [] })).toEqual([]);
  });
});
