// An apply that releases a stopped run and changes the templates. The running agent must not act on the superseded template.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { startInProcess } from '../control-plane/agent-in-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { startFaultProxy } from '../control-plane/fault-proxy.ts';
import { always } from '../control-plane/faults.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, statefulSet } from '../control-plane/workloads.ts';
import { serveKinds } from './apply-kit.ts';
import { filesOf, person, writerRules } from './live-people.ts';

function member(namespace: string, zone: string, image: number): object {
  const options = { name: `ingester-zone-${zone}`, replicas: 2, nodeZone: `zone-${zone}`, image: `example.com/server:${image}` };
  const object = statefulSet(options) as { readonly metadata: object };
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...object, metadata: { ...object.metadata, namespace } };
}

function groupWith(namespace: string, before: object): object {
  const waves = [
    { name: 'canary', zones: ['a'], pods: 1 },
    { name: 'rest', zones: ['a', 'b'], percent: 100, ...before },
  ];
  const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name: 'ingester', namespace },
    spec: { members: { zones }, rollout: { strategy: 'onDelete', waves } },
  };
}

/** Records `pod image` of every pod from now on. */
async function recordPods({ client }: ControlPlane, path: string): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const { metadata } = (await client.ask('GET', path)).body as { readonly metadata: { readonly resourceVersion: string } };
  void (async () => {
    for await (const { object } of client.watch<Pod>(path, metadata.resourceVersion, ending.signal)) {
      const image = imageOf(object);
      if (image !== undefined) seen.add(`${object.metadata.name} ${image}`);
    }
  })().catch(() => undefined);
  return seen;
}

const imageOf = (pod: Pod): string | undefined => /server:(\d)/.exec(JSON.stringify(pod.spec))?.[1];

describeOnControlPlane('an apply that releases a stopped run', (controlPlane) => {
  it.each(['files', 'plan'])('replaces no pod at the superseded template, from %s', async (source) => {
    const { client, identities, url } = controlPlane();
    const namespace = `order-${source}`;
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    await grant(client, identities.agent, namespace, agentRules());
    await grantNodes(client, identities.agent);
    const writer = await person(controlPlane(), namespace, `writer-${source}`, writerRules);
    const cwd = filesOf({});
    const proxy = await startFaultProxy(controlPlane());
    onTestFinished(() => proxy.close());
    const env = { KUBECONFIG: proxy.through(writer.identity).kubeconfig };
    const run = (line: string) => writer.run(line.split(' '), { cwd, env });
    const write = (image: number, before: object): void => {
      const items = [...['a', 'b'].map((zone) => member(namespace, zone, image)), groupWith(namespace, before)];
      writeFileSync(join(cwd, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    };
    const untilAll = (image: string) =>
      client.until<Pod>(
        path,
        `four pods of image ${image}`,
        (pods) => pods.filter((pod) => isReady(pod) && imageOf(pod) === image).length === 4,
      );
    const approval = { before: { approval: { count: 1, from: ['oncall'] } } };

    write(1, approval);
    expect(await run('apply -f . --yes')).toMatchObject({ status: 0 });
    await untilAll('1');
    const agent = await startInProcess({ url, identity: identities.agent, namespace, name: `agent-${source}` });
    onTestFinished(() => agent.stop());
    const seen = await recordPods(controlPlane(), path);
    write(2, approval);
    expect(await run('apply -f . --yes')).toMatchObject({ status: 0 });
    const isWaiting = (): boolean =>
      agent
        .turns()
        .at(-1)
        ?.decision?.waits.some(({ rule }) => rule === 'approval') === true;
    await expect.poll(isWaiting, { timeout: 60_000 }).toBe(true);
    await delay(1000);

    write(3, {});
    // The agent has time to act between two writes.
    const match = { method: 'PATCH', path: /^(?!.*dryRun)/ };
    proxy.inject({ name: 'slow writes', match, which: always, fault: { kind: 'delay', what: 'reply', ms: 1500 } });
    if (source === 'plan') expect(await run('plan -f all.json --out the.plan')).toMatchObject({ status: 0 });
    const applied = await run(source === 'plan' ? 'apply the.plan --yes' : 'apply -f . --yes');
    await untilAll('3');
    expect([...seen].filter((one) => one.endsWith(' 2'))).toEqual(['ingester-zone-a-1 2']);
    expect([applied.status, applied.stderr]).toEqual([
      0,
      expect.stringContaining('apply writes in the order members, policies and groups'),
    ]);
    const patches = (await controlPlane().auditLog()).filter(
      ({ verb, user, requestURI, objectRef }) =>
        verb === 'patch' && user.username === writer.identity.user && objectRef?.namespace === namespace && !requestURI.includes('dryRun'),
    );
    expect(patches.slice(-3).map(({ objectRef }) => objectRef?.resource)).toEqual(['statefulsets', 'statefulsets', 'rolloutgroups']);
  });
});
