// A restart of members that Flux applies from Git stays: Flux takes over the fields of managers whose name begins with `kubectl`.
import { expect, it } from 'vitest';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { serveKinds } from './apply-kit.ts';
import { person, writerRules } from './live-people.ts';

const namespace = 'flux';
const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
const names = ['ingester-zone-a', 'ingester-zone-b'];
const restartedAt = 'kubectl.kubernetes.io/restartedAt';

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
}

type Managed = StatefulSet & {
  readonly metadata: { readonly resourceVersion: string; readonly managedFields: readonly Entry[] };
  readonly spec: { readonly template: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } } };
};

function manifest(name: string): object {
  const object = statefulSet({ name, replicas: 1, setLabels: { 'rollout-group': 'ingester' } });
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...object };
}

describeOnControlPlane('a restart of members that Flux applies', (controlPlane) => {
  it('stays, other than a restart by a manager whose name begins with kubectl', async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    const managed = (name: string) => client.get<Managed>(`${path}/${name}`);
    // As kustomize-controller does with github.com/fluxcd/pkg/ssa: renames these managers to itself, then applies with force.
    const reconcile = async (name: string): Promise<void> => {
      const { metadata } = await managed(name);
      const isTaken = ({ manager, operation, subresource = '' }: Entry) =>
        subresource === '' &&
        (manager.startsWith('kubectl') || (/^(?:before-first-apply|kustomize-controller)/.test(manager) && operation === 'Update'));
      const entries = metadata.managedFields.map((one) =>
        isTaken(one) ? { ...one, manager: 'kustomize-controller', operation: 'Apply' } : one,
      );
      if (metadata.managedFields.some(isTaken)) {
        const operations = [
          { op: 'replace', path: '/metadata/managedFields', value: entries },
          { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
        ];
        const { status } = await client.ask('PATCH', `${path}/${name}`, operations, 'application/json-patch+json');
        // The StatefulSet controller wrote the status meanwhile.
        if (status === 409) return reconcile(name);
        expect(status).toBe(200);
      }
      await client.patch(`${path}/${name}?fieldManager=kustomize-controller&force=true`, 'apply', manifest(name));
    };
    const restarts = () => Promise.all(names.map(async (name) => (await managed(name)).spec.template.metadata?.annotations?.[restartedAt]));

    for (const name of names) await client.patch(`${path}/${name}?fieldManager=kustomize-controller`, 'apply', manifest(name));
    const done = await writer.run(['restart', 'ingester', '--yes']);
    expect(done.status, done.stderr).toBe(0);
    const [first] = await restarts();
    expect(first).toEqual(expect.any(String));
    for (const name of names) await reconcile(name);
    expect(await restarts()).toEqual([first, first]);
    for (const { metadata } of await Promise.all(names.map(managed)))
      expect(metadata.managedFields.filter(({ manager }) => manager.startsWith('kubectl'))).toEqual([]);

    const patch = { spec: { template: { metadata: { annotations: { [restartedAt]: 'by kubectl' } } } } };
    await client.patch(`${path}/${names[0]}?fieldManager=kubectl-rollout`, 'strategic', patch);
    await reconcile(names[0] ?? '');
    expect(await restarts()).toEqual([undefined, first]);
  });
});
