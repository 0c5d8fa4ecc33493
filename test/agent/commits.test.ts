import { describe, expect, it } from 'vitest';
import { customKind, projectKinds } from '../../simulation/server/kinds.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled } from '../kit/cluster.ts';

const commit = '4'.repeat(40);
const kustomizations = 'kustomizations.kustomize.toolkit.fluxcd.io';
const kind = customKind({
  group: 'kustomize.toolkit.fluxcd.io',
  version: 'v1',
  plural: 'kustomizations',
  kind: 'Kustomization',
  hasStatus: true,
});
const labels = { 'kustomize.toolkit.fluxcd.io/name': 'mimir', 'kustomize.toolkit.fluxcd.io/namespace': 'flux-system' };

function fluxCluster() {
  const cluster = newCluster({ kinds: [...projectKinds, kind] });
  adoptedGroup(cluster, { labels });
  const entries = ['a', 'b', 'c'].map((zone) => ({ id: `mimir_ingester-zone-${zone}_apps_StatefulSet`, v: 'v1' }));
  const status = { inventory: { entries }, lastAttemptedRevision: `main@sha1:${commit}` };
  cluster.api.put(kustomizations, { metadata: { name: 'mimir', namespace: 'flux-system' }, status });
  const reads = () => cluster.env.requests.filter(({ path }) => path.includes('/kustomizations/')).length;
  return { cluster, reads };
}

const config = { commitsFrom: { argoCdNamespace: 'argocd' } };

describe('the commit of a run that Flux started', () => {
  it('is read once from the Kustomization when the run starts', async () => {
    const { cluster, reads } = fluxCluster();
    const process = startProcess({ env: cluster.env, config });
    await cluster.env.advance(60_000);
    expect(reads()).toBe(0);
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.reports.at(-1)?.decision?.run?.origin).toEqual({ commit });
    expect(reads()).toBeLessThanOrEqual(9);
  });

  it('is not read without the flag', async () => {
    const { cluster, reads } = fluxCluster();
    startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(reads()).toBe(0);
  });

  it('blocks no rollout if it may not be read, and the log names the object', async () => {
    const { cluster } = fluxCluster();
    cluster.api.forbid(`get ${kustomizations}`);
    const process = startProcess({ env: cluster.env, config });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.reports.at(-1)?.decision?.run?.origin).toBeUndefined();
    expect(process.logs.join('\n')).toMatch(/the commit of a rollout cannot be read .*Kustomization.*flux-system/);
  });
});
