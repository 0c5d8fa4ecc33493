import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../../engine/decide/decide.ts';
import type { RuleResult } from '../../../../engine/decision.ts';
import { fieldAt } from '../../../../engine/observe/raw.ts';
import { publishedDecision } from '../../../../engine/publish/decision.ts';
import { statusMapName } from '../../../../engine/publish/published.ts';
import { isMisplacedUntilRetry } from '../../../../engine/publish/status.ts';
import { agentPermissions } from '../../../../plugin/doctor/agent.ts';
import { gatherFacts } from '../../../../plugin/doctor/gather/gather.ts';
import { group } from '../../../kit/groups.ts';
import { kitNowMs } from '../../../kit/objects.ts';
import { snapshotOf } from '../../../kit/snapshots.ts';
import { clusterOf } from '../../served-objects.ts';

const configMap = (name: string, labels: Readonly<Record<string, string>>, data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'mimir', labels },
  data,
});

function factsOf(configmaps: readonly ReturnType<typeof configMap>[]) {
  return gatherFacts(clusterOf({ objects: { configmaps } }), { namespaces: ['mimir'] }, () => kitNowMs);
}

describe('the facts of doctor', () => {
  it('include from a ledger whether its group is released, and since when it has no definition', async () => {
    const ledger = { 'rollout-group.dev/document': 'ledger' };
    const released = { ...ledger, 'rollout-group.dev/on-policy-deleted': 'release' };
    const text = JSON.stringify({ release: { goneMs: 5 } });
    const { ledgers } = await factsOf([
      configMap('held', ledger, { ledger: text }),
      configMap('gone', released, { ledger: text }),
      configMap('broken', released, { ledger: 'no JSON' }),
      configMap('other', {}, {}),
    ]);
    expect(ledgers).toEqual([
      { namespace: 'mimir', name: 'broken', isReleased: true },
      { namespace: 'mimir', name: 'gone', isReleased: true, goneMs: 5 },
      { namespace: 'mimir', name: 'held' },
    ]);
  });

  it('include from a decision the blocks of pinned pods that a user must end, and no other blocks', async () => {
    const one = group({ rollout: { strategy: 'pinned' } });
    const snapshot = snapshotOf({ groups: [one] });
    const published = publishedDecision({ group: one, decision: decideGroup(snapshot, one), snapshot, atMs: kitNowMs });
    const wait = (extra: Partial<RuleResult>): RuleResult => ({
      rule: 'pin-applied',
      outcome: 'wait',
      fact: 'a-0 at a-1 came back 2 times',
      ...extra,
    });
    const misplaced = async (result: RuleResult) => {
      const decision = JSON.stringify({ ...published, waits: [{ ...result, sinceMs: kitNowMs, zones: ['a'] }] });
      const status = configMap(statusMapName(one.name), { 'rollout-group.dev/document': 'status' }, { decision });
      const { published: found } = await factsOf([status]);
      return 'unknown' in found ? [found.unknown] : found.map(({ waits }) => waits?.find(isMisplacedUntilRetry)?.fact);
    };
    expect(await misplaced(wait({}))).toEqual(['a-0 at a-1 came back 2 times']);
    expect(await misplaced(wait({ earliestMs: kitNowMs }))).toEqual([undefined]);
  });

  it('include the permissions on each mirrored object, of the kind and name in the group', async () => {
    const from = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
    const one = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester', namespace: 'mimir' },
      spec: {
        members: { zones: [{ name: 'a', statefulSet: 'web-a' }] },
        replicas: { mirror: { from } },
        rollout: { strategy: 'onDelete' },
      },
    };
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' } };
    const lacked = async (denied: readonly string[]) => {
      const reviews = (_plural: string, { spec }: { readonly spec?: object }) => {
        const path = ['resource', 'subresource', 'verb', 'name'].map((field) => fieldAt(spec, ['resourceAttributes', field]));
        return { status: { allowed: !denied.includes(path.join(' ')) } };
      };
      const cluster = clusterOf({ objects: { rolloutgroups: [one], serviceaccounts: [account] }, reviews });
      const facts = await gatherFacts(cluster, { namespaces: ['mimir'] }, () => kitNowMs);
      return agentPermissions(facts).map(({ verdict, message }) => `${verdict} ${message}`);
    };
    expect(await lacked([])).toEqual(['ok rollout-group/rollout-group-agent has all rights that it needs']);
    expect(await lacked(['deployments scale get web', 'deployments  list web', 'deployments  watch web'])).toEqual([
      'warn rollout-group/rollout-group-agent may not list, watch deployments (apps) in mimir: changes of Deployment web are seen late',
      'FAIL rollout-group/rollout-group-agent may not get deployments/scale (apps) in mimir: the replicas of Deployment web are unknown, and no zone follows it',
    ]);
  });
});
