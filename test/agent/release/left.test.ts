// A member leaves its group and keeps the partition of the agent: its group says so, also by an agent that starts later.
import { describe, expect, it } from 'vitest';
import { lookAgainMs } from '../../../engine/release/left.ts';
import { startProcess } from '../../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster } from '../../kit/cluster.ts';

function putGroup({ api }: Cluster, names: readonly string[]): void {
  const zones = names.map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` }));
  const spec = { members: { zones }, replicas: { leader: true }, rollout: { strategy: 'partition' } };
  api.put('rolloutgroups.rollout-group.dev', { metadata: { name: 'ingester', namespace: 'mimir' }, spec });
}

describe('a member that leaves', () => {
  it('is reported by its group until its partition is lowered, also by an agent that starts later', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'partition' } }, { partition: 1_000_000 });
    const first = startProcess({ env: cluster.env });
    const left = ({ reports }: typeof first) => reports.at(-1)?.decision?.left?.map(({ statefulSet }) => statefulSet);
    await cluster.env.until(() => first.reports.some(({ decision }) => decision?.outcome === 'done'));
    expect(left(first)).toBeUndefined();
    putGroup(cluster, ['a', 'b']);
    await cluster.env.until(() => left(first) !== undefined);
    expect(left(first)).toEqual(['ingester-zone-c']);
    await cluster.env.advance(1_000);
    first.crash();
    const second = startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.until(() => second.reports.length > 0);
    expect(left(second)).toEqual(['ingester-zone-c']);
    const set = cluster.api.get('statefulsets.apps', 'mimir', 'ingester-zone-c');
    const { metadata, spec } = set as unknown as { readonly metadata: object; readonly spec: object };
    cluster.api.put('statefulsets.apps', {
      metadata: { name: 'ingester-zone-c', namespace: 'mimir', ...metadata },
      spec: { ...spec, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } },
    });
    await cluster.env.advance(lookAgainMs + 2_000);
    expect(left(second)).toBeUndefined();
  });
});
