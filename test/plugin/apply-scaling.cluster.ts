// An apply that changes replicas next to a running agent: what the plan shows happens, and the way out of a denial works when copied.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startInProcess } from '../control-plane/agent-in-process.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { serveKinds } from './apply-kit.ts';
import { filesOf, type Person, person, requesterRules } from './live-people.ts';

const zones = ['a', 'b', 'c'] as const;

describeOnControlPlane('an apply that scales zones', (controlPlane) => {
  let run: Person['run'];
  let cwd: string;

  /** Starts an agent and a user in a namespace without objects. */
  async function begin(namespace: string): Promise<void> {
    const { client, identities, url } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    await grant(client, identities.agent, namespace, agentRules());
    await grantNodes(client, identities.agent);
    const scales = { apiGroups: ['apps'], resources: ['statefulsets', 'statefulsets/scale'], verbs: ['get', 'list', 'patch'] };
    const writer = await person(controlPlane(), namespace, `writer-${namespace}`, [...requesterRules, scales]);
    cwd = filesOf({});
    run = (words) => writer.run(words, { cwd });
    const agent = await startInProcess({ url, identity: identities.agent, namespace, name: `agent-${namespace}` });
    onTestFinished(() => agent.stop());
  }

  /** Writes the group and its members. `follows`: each zone follows the one before it, and its manifest names no replicas. */
  function write(namespace: string, replicas: number, follows: boolean, of: object = { leader: true }): void {
    const members = zones.map((zone, index) => {
      const object = statefulSet({ name: `cache-${zone}`, replicas, nodeZone: `zone-${zone}`, image: 'example.com/cache:1' }) as {
        readonly metadata: object;
        readonly spec: object;
      };
      const spec = follows && index > 0 ? { ...object.spec, replicas: undefined } : object.spec;
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...object, spec, metadata: { ...object.metadata, namespace } };
    });
    const follower = (index: number) => (follows && index > 0 ? { follows: zones[index - 1] } : {});
    const group = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'cache', namespace },
      spec: {
        members: { zones: zones.map((name, index) => ({ name, statefulSet: `cache-${name}`, ...follower(index) })) },
        replicas: of,
        ...(follows ? { scaling: { up: { followersWaitFor: 'leaderReady' } } } : {}),
        rollout: { strategy: 'onDelete' },
      },
    };
    writeFileSync(join(cwd, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...members, group] }));
  }

  async function untilReady(namespace: string, count: number): Promise<void> {
    const { client } = controlPlane();
    await client.until<Pod>(
      `/api/v1/namespaces/${namespace}/pods`,
      `${count} ready pods`,
      (pods) => pods.length === count && pods.every(isReady),
    );
    await client.until<StatefulSet>(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, `${count} ready replicas`, (sets) => {
      const ready = sets.map(({ status }) => (status?.replicas === status?.readyReplicas ? (status?.readyReplicas ?? 0) : 0));
      return ready.reduce((sum, one) => sum + one, 0) === count;
    });
  }

  it('creates a group with followers that start with 1 pod and then follow, as its plan shows', async () => {
    const namespace = 'new-group';
    await begin(namespace);
    write(namespace, 3, true);
    const { stdout } = await run(['plan', '-f', 'all.json', '-o', 'json']);
    const steps = JSON.parse(stdout).groups[0].waves.flatMap((wave: { readonly steps: readonly object[] }) => wave.steps);
    const shown = steps.map(({ zone, from, to }: Record<string, unknown>) => `${zone} ${from} -> ${to}`);
    expect(await run(['apply', '-f', 'all.json', '--yes'])).toMatchObject({ status: 0 });
    await untilReady(namespace, 9);
    const scaled = (await controlPlane().auditLog()).flatMap(({ verb, user, objectRef, requestObject }) => {
      const isScale = verb === 'patch' && objectRef?.resource === 'statefulsets' && objectRef.namespace === namespace;
      const { spec } = (requestObject ?? {}) as { readonly spec?: { readonly replicas?: number } };
      const isOfAgent = user.username === controlPlane().identities.agent.user && spec?.replicas !== undefined;
      return isScale && isOfAgent ? [`${objectRef.name?.slice(-1)} 1 -> ${spec.replicas}`] : [];
    });
    expect(shown).toEqual(['a 0 -> 3', 'b 0 -> 1', 'c 0 -> 1', ...scaled]);
    expect(scaled).toEqual(['b 1 -> 3', 'c 1 -> 3']);
  });

  it('keeps the replicas of a zone of which the group becomes the owner, as the denial advises', async () => {
    const namespace = 'owned';
    await begin(namespace);
    write(namespace, 2, true);
    expect(await run(['apply', '-f', 'all.json', '--yes'])).toMatchObject({ status: 0 });
    await untilReady(namespace, 6);
    write(namespace, 2, true, { count: 2 });
    const named = readFileSync(join(cwd, 'all.json'), 'utf8');
    writeFileSync(join(cwd, 'all.json'), named.replace('"replicas":2,', ''));
    const advice = 'no longer names its replicas, so an apply resets them to 1; write replicas: 2 into the manifest';
    const denied = await run(['apply', '-f', 'all.json', '--yes']);
    expect([denied.status, denied.stderr]).toEqual([5, expect.stringContaining(advice)]);
    writeFileSync(join(cwd, 'all.json'), named);
    const applied = await run(['apply', '-f', 'all.json', '--yes']);
    expect(applied, applied.stderr).toMatchObject({ status: 0 });
  });

  it('shrinks several leading zones one after the other, by the commands that the denials name', async () => {
    const namespace = 'shrinking';
    await begin(namespace);
    write(namespace, 3, false);
    expect(await run(['apply', '-f', 'all.json', '--yes'])).toMatchObject({ status: 0 });
    await untilReady(namespace, 9);
    write(namespace, 2, false);
    for (const [zone, left] of [
      ['a', 8],
      ['b', 7],
    ] as const) {
      const command = `kubectl rollout-group scale ${namespace}/cache --zone ${zone} --replicas 2`;
      const [plan, diff, apply] = [
        await run(['plan', '-f', 'all.json']),
        await run(['diff', '-f', 'all.json']),
        await run(['apply', '-f', 'all.json', '--yes']),
      ];
      expect([plan.status, apply.status]).toEqual([5, 5]);
      expect([plan.stdout, diff.stdout, apply.stderr].map((text) => text.replace(/\s+/g, ' ').includes(command))).toEqual([
        true,
        true,
        true,
      ]);
      expect(apply.stderr).toContain('nothing was applied');
      const scaled = await run([...command.split(' ').slice(2), '--yes']);
      expect(scaled, scaled.stderr).toMatchObject({ status: 0 });
      await untilReady(namespace, left);
    }
    const last = await run(['apply', '-f', 'all.json', '--yes']);
    expect(last, last.stderr).toMatchObject({ status: 0 });
    await untilReady(namespace, 6);
    expect((await run(['diff', '-f', 'all.json'])).status).toBe(0);
  });
});
