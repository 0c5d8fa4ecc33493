// Tests that doctor skips each check whose facts the user may not read, with the model of the API server.
import { describe, expect, it } from 'vitest';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts } from '../../../plugin/doctor/check.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { fakeApiServer } from '../api-server.ts';
import { runInProcess } from '../in-process.ts';
import { adoptedObjects, leaseObject, statefulSetObject } from '../live-objects.ts';
import type { FakeObject } from '../served-objects.ts';
import { facts } from './kit.ts';

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

  it('ConfigMaps skips the checks of partitions and ledgers, and does not report that no other agent decides', async () => {
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

/** What is not ok. */
function wrong(overrides: Partial<Facts>): readonly string[] {
  return examine(facts(overrides)).flatMap(({ verdict, check, code, message }) =>
    verdict === 'ok' ? [] : [`${verdict} ${check} ${code ?? '-'} ${message}`],
  );
}

function setNamed(name: string, overrides: object = {}) {
  return { ...statefulSet({ name }), namespace: 'mimir', updateStrategy: 'OnDelete' as const, podLabels: { name }, ...overrides };
}

describe('a StatefulSet with the partition that blocks every pod', () => {
  it('counts as a member of a group in the policy directory while the agent that decided about it exists', () => {
    const sets = [...facts().sets, setNamed('left', { updateStrategy: 'RollingUpdate', partition: 1_000_000 })];
    const other = { namespace: 'mimir', group: 'other', decidedMs: kitNowMs - 5000, leader: 'agent-1', zones: [{ statefulSet: 'left' }] };
    const published = [{ namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 3000, leader: 'agent-1' }, other];
    expect(wrong({ sets, published })).toEqual([]);
    expect(wrong({ sets, published, leases: [] }).filter((text) => text.includes('RG6023'))).toHaveLength(1);
    expect(wrong({ sets: [...facts().sets, setNamed('free', { updateStrategy: 'RollingUpdate', partition: 3 })] })).toEqual([]);
  });

  it('is released by the agent while pods are outdated, because the admission policy denies a lower partition then', () => {
    const left = setNamed('left', { updateStrategy: 'RollingUpdate', partition: 1_000_000 });
    const outdated = { ...left, status: { ...left.status, updatedReplicas: 0 } };
    const [text] = wrong({ sets: [...facts().sets, outdated] });
    expect(text).toMatch(
      /^warn partition RG6023 .* do not reach its pods\. Not all its pods .*Define the group again.*onPolicyDeleted: release/,
    );
    expect(text).not.toContain('kubectl patch');
  });
});

describe('the checks', () => {
  it('skip unreadable objects, and never show them as passed', () => {
    const no = { unknown: 'no permission' };
    const results = examine(
      facts({
        leases: no,
        published: no,
        kinds: no,
        accounts: [{ name: 'rollout-group/rollout-group-agent', rights: no }],
        operators: no,
        autoscalers: no,
        pods: no,
        budgets: no,
        ledgers: no,
        serverMs: no,
        serverVersion: no,
        registration: no,
        admissionPolicies: no,
        secrets: no,
      }),
    );
    const skipped = results.filter(({ verdict }) => verdict === 'SKIP').map(({ check }) => check);
    expect(skipped).toEqual([
      'agent',
      'one agent',
      'decisions',
      'RBAC',
      'CRDs',
      'operators',
      'foreign pods',
      'HPA',
      'images',
      'PDB',
      'ledgers',
      'Secrets',
      'Kubernetes',
      'clock',
      'webhooks',
      'policies',
    ]);
    expect(results.filter(({ verdict }) => verdict === 'ok').map(({ check }) => check)).toEqual([
      'groups',
      'settings',
      'strategy',
      'labels',
      'GitOps',
      'drift',
    ]);
  });
});
