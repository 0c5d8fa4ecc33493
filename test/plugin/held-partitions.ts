// Tests of manifests that leave the partition to the agent. apply.cluster.ts runs them on its control plane.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { bundleOf, serveKinds } from './apply-kit.ts';
import { filesOf, type Person } from './live-people.ts';

interface World {
  readonly controlPlane: ControlPlane;
  readonly namespace: string;
  readonly writer: Person;
}

type RollingSet = KubernetesObject & {
  readonly spec: { readonly updateStrategy: { readonly type: string; readonly rollingUpdate?: { readonly partition?: number } } };
};

const holding = 1_000_000;

export function itKeepsPartitions(world: () => World): void {
  it.each(['pinned', 'partition'])('keeps the partition of %s that a manifest named and no longer names', async (strategy) => {
    const { controlPlane, namespace, writer } = world();
    const { client } = controlPlane;
    await serveKinds(controlPlane, namespace);
    const folder = filesOf({});
    const bundle = bundleOf(writer, folder);
    const write = (updateStrategy: object, image = 1): void => {
      const { metadata, spec } = statefulSet({
        name: 'held-zone-a',
        replicas: 1,
        image: `example.com/server:${image}`,
      }) as KubernetesObject & {
        readonly spec: object;
      };
      const object = {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { ...metadata, namespace },
        spec: { ...spec, updateStrategy },
      };
      writeFileSync(join(folder, 'set.json'), JSON.stringify(object));
    };
    const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    const stored = () => client.get<RollingSet>(`${path}/held-zone-a`);

    write({ type: 'RollingUpdate', rollingUpdate: { partition: holding } });
    expect(bundle('apply -f set.json --yes')).toMatchObject({ status: 0 });
    const first = await stored();
    const ending = new AbortController();
    const partitions: (number | undefined)[] = [];
    const watching = (async () => {
      for await (const { object } of client.watch<RollingSet>(path, first.metadata.resourceVersion, ending.signal))
        if (object.metadata.name === 'held-zone-a') partitions.push(object.spec.updateStrategy.rollingUpdate?.partition);
    })().catch(() => undefined);

    write({ type: 'RollingUpdate' });
    await client.create(`/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'held' },
      spec: { members: { zones: [{ name: 'a', statefulSet: 'held-zone-a' }] }, rollout: { strategy } },
    });
    expect(bundle('diff -f .')).toMatchObject({ status: 0, stderr: expect.not.stringContaining('RG2117') });
    expect(bundle('plan -f set.json').stdout).toContain('no changes');
    expect(bundle('apply -f set.json --dry-run=server').stdout).toContain('Nothing to apply');
    expect(bundle('apply -f set.json --yes').stdout).toContain('Nothing to apply');
    expect((await stored()).metadata.annotations).toEqual(first.metadata.annotations);

    write({ type: 'RollingUpdate' }, 2);
    const difference = bundle('diff -f .');
    expect(difference).toMatchObject({ status: 1, stdout: expect.stringMatching(/image/) });
    expect(difference.stdout).not.toContain('partition');
    for (const line of ['plan -f .', 'apply -f . --dry-run=server', 'apply -f . --yes']) {
      expect(bundle(line), line).toMatchObject({ status: 0, stderr: expect.not.stringContaining('RG2117') });
    }
    await expect.poll(() => partitions.length).toBeGreaterThan(0);
    ending.abort();
    await watching;
    expect(new Set(partitions)).toEqual(new Set([holding]));

    // As before the first write of the agent.
    const zero = { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } };
    await client.patch(`${path}/held-zone-a?fieldManager=rollout-group-agent`, 'merge', zero);
    write({ type: 'RollingUpdate' }, 3);
    expect(bundle('plan -f .').stderr).not.toContain('RG2117');
    write({ type: 'RollingUpdate', rollingUpdate: { partition: 3 } });
    expect(bundle('plan -f .')).toMatchObject({ status: 4, stderr: expect.stringContaining('RG2117') });
  });
}
