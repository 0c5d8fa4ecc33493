// Tests that doctor skips each check whose facts the user may not read, with the model of the API server.
import { describe, expect, it } from 'vitest';
import { fakeApiServer } from '../api-server.ts';
import { runInProcess } from '../in-process.ts';
import { adoptedObjects, leaseObject, statefulSetObject } from '../live-objects.ts';
import type { FakeObject } from '../served-objects.ts';

type Results = readonly { readonly check: string; readonly verdict: string; readonly message: string }[];

const { metadata, ...set } = statefulSetObject('a', { replicas: 0 });
const held: FakeObject = {
  ...set,
  metadata: { ...metadata, name: 'cache-a', uid: 'uid-cache', labels: {} },
  spec: { ...Object(set['spec']), updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } } },
};
const ledger: FakeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'rollout-group-idx', namespace: 'mimir', labels: { 'rollout-group.dev/document': 'ledger' } },
  data: {},
};

async function checksOf(objects: readonly FakeObject[], forbidden: readonly string[]): Promise<Results> {
  const { url } = await fakeApiServer(objects, { forbidden });
  const { stdout } = await runInProcess(['doctor', '--server', url, '-n', 'mimir', '-o', 'json']);
  return (JSON.parse(stdout) as { readonly checks: Results }).checks;
}

const shown = (results: Results, check: string): readonly string[] =>
  results.filter((one) => one.check === check).map(({ verdict, message }) => `${verdict} ${message}`);

describe('doctor without permission to list', () => {
  it('RolloutGroups skips each check that needs every group', async () => {
    const missing = ['SKIP no permission to list rolloutgroups.rollout-group.dev'];
    const results = await checksOf([held, ledger], ['rolloutgroups']);
    const checks = [
      'decisions',
      'groups',
      'settings',
      'strategy',
      'partition',
      'labels',
      'foreign pods',
      'HPA',
      'GitOps',
      'PDB',
      'ledgers',
    ];
    for (const check of [...checks, 'channels', 'Kubernetes', 'webhooks']) expect([check, shown(results, check)]).toEqual([check, missing]);
    expect(JSON.stringify(results)).not.toMatch(/no group|kubectl (?:patch|delete)/);
    const known = await checksOf([held, ledger], []);
    expect([shown(known, 'groups'), shown(known, 'partition'), shown(known, 'ledgers')]).toEqual([
      ['warn no group exists here'],
      [expect.stringContaining('has the partition 1000000 and no group')],
      [expect.stringContaining('belongs to no group')],
    ]);
  });

  it('ConfigMaps skips the checks of partitions and ledgers, and does not say that no other agent decides', async () => {
    const missing = ['SKIP no permission to list configmaps'];
    const results = await checksOf([held, ...adoptedObjects()], ['configmaps']);
    for (const check of ['one agent', 'decisions', 'partition', 'ledgers'])
      expect([check, shown(results, check)]).toEqual([check, missing]);
    expect(shown(results, 'groups')).toEqual([expect.stringMatching(/^ok /)]);
  });

  it('RolloutPolicies or Leases skips the checks that need them', async () => {
    const results = await checksOf([held, ...adoptedObjects(), leaseObject('', Date.now(), 15)], ['rolloutpolicies', 'leases']);
    expect(shown(results, 'settings')).toEqual(['SKIP no permission to list rolloutpolicies.rollout-group.dev']);
    expect(shown(results, 'webhooks')).toEqual(['SKIP no permission to list rolloutpolicies.rollout-group.dev']);
    for (const check of ['agent', 'one agent', 'partition'])
      expect([check, shown(results, check)]).toEqual([check, ['SKIP no permission to get leases in rollout-group, mimir']]);
  });
});
