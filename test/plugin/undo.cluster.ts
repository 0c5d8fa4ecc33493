// An undo restores fields that the undone manifests had removed. The same manifests must ask for exactly the undone revision again.
import { expect, it } from 'vitest';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { serveKinds } from './apply-kit.ts';
import { filesOf, person, writerRules } from './live-people.ts';

const namespace = 'undone';
const name = 'ingester-zone-a';

/** The StatefulSet as it would stand in Git. */
function manifest(image: string, container: object): string {
  const object = statefulSet({ name, replicas: 1, nodeZone: 'zone-a', image, setLabels: { 'rollout-group': 'ingester' } }) as unknown as {
    readonly metadata: object;
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly object[] } } };
  };
  const { template, ...spec } = object.spec;
  const containers = template.spec.containers.map((one) => ({ ...one, ...container }));
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...object.metadata, namespace },
    spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } },
  });
}

describeOnControlPlane('an undo of a change that removed a field', (controlPlane) => {
  it('blocks the same manifests, and lets the next ones remove the field', async () => {
    const { client } = controlPlane();
    const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    const cwd = filesOf({
      'one.json': manifest('example.com/server:1', { args: ['--old'] }),
      'two.json': manifest('example.com/server:2', {}),
      'three.json': manifest('example.com/server:3', {}),
    });
    const run = (line: string) => writer.run(line.split(' '), { cwd });
    const args = async () => JSON.stringify((await client.get<StatefulSet>(`${path}/${name}`)).spec).match(/"args":(\[[^\]]*\])/)?.[1];
    const seen = new Set<unknown>([undefined]);
    const untilNewRevision = async () => {
      const isNew = (set: StatefulSet | undefined) => !seen.has(set?.status?.updateRevision);
      const [set] = await client.until<StatefulSet>(path, 'a new update revision', ([first]) => isNew(first));
      seen.add(set?.status?.updateRevision);
    };

    for (const file of ['one.json', 'two.json']) {
      expect((await run(`apply -f ${file} --yes`)).status).toBe(0);
      await untilNewRevision();
    }
    expect(await args()).toBeUndefined();
    const undone = await run('undo ingester --yes');
    expect([undone.status, await args()], undone.stderr).toEqual([0, '["--old"]']);

    const plan = await run('plan -f two.json');
    expect([plan.status, plan.stdout]).toEqual([5, expect.stringContaining('undone')]);
    expect((await run('diff -f two.json')).stdout).toContain('--old');
    expect((await run('apply -f three.json --yes')).status).toBe(0);
    expect([await args(), (await run('diff -f three.json')).stdout]).toEqual([undefined, expect.stringMatching(/no differences\n$/)]);
  });
});
