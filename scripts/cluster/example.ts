// The objects of an example: its namespaces, volumes, accounts and manifests.
import type { ApiClient } from '../../test/control-plane/client.ts';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import { isReady, type Pod } from '../../test/control-plane/workloads.ts';
import { applyObjects, type Manifest } from './objects.ts';

const volumeCount = 50;

export function namespacesOf(manifests: readonly Manifest[]): readonly string[] {
  return [...new Set(manifests.map(({ metadata }) => metadata.namespace ?? 'default'))];
}

export function imagesOf(manifests: readonly Manifest[]): readonly string[] {
  return [...new Set(manifests.flatMap(({ spec }) => spec?.template?.spec.containers.map(({ image }) => image) ?? []))];
}

/** Applies the manifests with all that they need. Returns the objects of kinds that the server does not know. */
export async function applyExample({ client }: ControlPlane, manifests: readonly Manifest[]): Promise<readonly Manifest[]> {
  await createVolumes(client, manifests);
  const namespaces = namespacesOf(manifests).map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  const accounts = manifests.flatMap(({ metadata: { namespace = 'default' }, spec }): readonly Manifest[] => {
    const name = spec?.template?.spec.serviceAccountName;
    return name === undefined ? [] : [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } }];
  });
  return applyObjects(client, [...namespaces, ...accounts, ...manifests]);
}

/** This cluster provisions no volumes: claims bind to existing volumes. */
async function createVolumes(client: ApiClient, manifests: readonly Manifest[]): Promise<void> {
  const classes = new Set(
    manifests.flatMap(({ spec }) => spec?.volumeClaimTemplates ?? []).map((template) => template.spec.storageClassName),
  );
  for (const storageClassName of classes) {
    for (let index = 0; index < volumeCount; index++) {
      await client.create('/api/v1/persistentvolumes', {
        metadata: { name: `${storageClassName}-${index}` },
        spec: { storageClassName, capacity: { storage: '1Ti' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nonexistent' } },
      });
    }
  }
}

/** Waits until every pod of the StatefulSets is Ready. Returns the number of pods. */
export async function untilReady({ client }: ControlPlane, manifests: readonly Manifest[], timeoutMs: number): Promise<number> {
  let total = 0;
  for (const namespace of namespacesOf(manifests)) {
    const sets = manifests.filter(({ kind, metadata }) => kind === 'StatefulSet' && (metadata.namespace ?? 'default') === namespace);
    const count = sets.reduce((sum, { spec }) => sum + (spec?.replicas ?? 1), 0);
    await client.until<Pod>(
      `/api/v1/namespaces/${namespace}/pods`,
      `${count} pods Ready`,
      (pods) => pods.length === count && pods.every(isReady),
      timeoutMs,
    );
    total += count;
  }
  return total;
}
