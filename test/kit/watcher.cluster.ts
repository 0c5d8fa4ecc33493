// Tests that the watcher finds violations on a real API server: each test breaks one rule with the user of the agent.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../control-plane/client.ts';
import { TestGroup } from '../control-plane/group.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { checkHistory } from './watcher.ts';

describeOnControlPlane('the watcher', (controlPlane) => {
  let recorder: HistoryRecorder;
  let agent: ApiClient;
  let user = '';

  beforeAll(async () => {
    const { client, clientOf, identities } = controlPlane();
    recorder = await recordHistory(controlPlane());
    agent = clientOf(identities.agent);
    user = identities.agent.user;
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await client.create(`${rbac}/clusterroles`, {
      metadata: { name: 'careless' },
      rules: [
        { apiGroups: [''], resources: ['pods', 'pods/eviction'], verbs: ['*'] },
        { apiGroups: ['apps'], resources: ['statefulsets', 'statefulsets/scale'], verbs: ['*'] },
      ],
    });
    await client.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'careless' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'careless' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    });
  });
  afterAll(() => recorder.stop());

  async function group(namespace: string, image?: string): Promise<TestGroup> {
    const created = new TestGroup(controlPlane().client, { namespace, zones: ['a', 'b'], replicas: 3, maxUnavailable: 1 });
    await created.create();
    if (image !== undefined) await created.setImage(image);
    return created;
  }

  async function podOf(of: TestGroup, name: string): Promise<Pod> {
    return controlPlane().client.get<Pod>(`${of.podsPath}/${name}`);
  }

  /** Writes like a correct agent, which reads again after a conflict. */
  async function remove(of: TestGroup, name: string): Promise<void> {
    for (;;) {
      const { metadata } = await podOf(of, name);
      const preconditions = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
      const { status } = await agent.ask('DELETE', `${of.podsPath}/${name}`, { preconditions });
      if (status === 200) return;
      expect(status).toBe(409);
    }
  }

  async function removeAndWait(of: TestGroup, name: string): Promise<void> {
    const { metadata } = await podOf(of, name);
    await remove(of, name);
    await controlPlane().client.until<Pod>(of.podsPath, `another ${name}, Ready`, (pods) =>
      pods.some((pod) => pod.metadata.name === name && pod.metadata.uid !== metadata.uid && isReady(pod)),
    );
  }

  /** Returns the violated invariants in the namespace, without repetition. */
  async function broken(of: TestGroup): Promise<readonly string[]> {
    const history = await recorder.read();
    const requests = history.requests.filter(({ objectRef }) => objectRef?.namespace === of.namespace);
    return [...new Set(checkHistory({ ...history, requests }, [user], [of.watched]).map(({ invariant }) => invariant))];
  }

  it('finds nothing in a careful roll, also if others delete pods', async () => {
    const careful = await group('careful', 'example.com/server:2');
    for (const set of careful.sets) {
      for (const ordinal of [2, 1, 0]) await removeAndWait(careful, `${set}-${ordinal}`);
    }
    await controlPlane().client.delete(`${careful.podsPath}/ingester-zone-a-0`);
    await careful.untilReady(6);
    expect(await broken(careful)).toEqual([]);
  });

  it('catches deletes without preconditions', async () => {
    const careless = await group('no-preconditions', 'example.com/server:2');
    await agent.ask('DELETE', `${careless.podsPath}/ingester-zone-a-0`);
    expect(await broken(careless)).toEqual(['S20']);
  });

  it('catches evictions without the UID, and a patch that would overwrite', async () => {
    const careless = await group('evictions', 'example.com/server:2');
    const name = 'ingester-zone-a-0';
    const reply = await agent.ask('POST', `${careless.podsPath}/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name },
    });
    expect(reply.status).toBe(201);
    await agent.patch(`${careless.setsPath}/ingester-zone-a`, 'merge', { metadata: { annotations: { a: 'b' } } });
    expect(await broken(careless)).toEqual(['S20']);
  });

  it('catches a pod disturbed while another zone is not whole', async () => {
    const hasty = await group('two-zones', 'example.com/server:2');
    await remove(hasty, 'ingester-zone-a-2');
    await remove(hasty, 'ingester-zone-b-2');
    expect(await broken(hasty)).toEqual(['S1', 'S8']);
  });

  it('catches a pod disturbed that is at the update revision', async () => {
    const blind = await group('at-target');
    await remove(blind, 'ingester-zone-a-0');
    expect(await broken(blind)).toEqual(['S6']);
  });

  it('catches one UID deleted twice, and a pod that is terminating', async () => {
    const stubborn = await group('twice', 'example.com/server:2');
    await controlPlane().client.patch(`${stubborn.podsPath}/ingester-zone-a-0`, 'merge', {
      metadata: { annotations: { 'test.rollout-group.dev/gone-after': '3s' } },
    });
    await remove(stubborn, 'ingester-zone-a-0');
    await remove(stubborn, 'ingester-zone-a-0');
    expect(await broken(stubborn)).toEqual(['S7']);
  });

  it('catches a budget exceeded, by its own pods and with one that is down by itself', async () => {
    const greedy = await group('budget', 'example.com/server:2');
    await remove(greedy, 'ingester-zone-a-2');
    await remove(greedy, 'ingester-zone-a-1');
    expect(await broken(greedy)).toEqual(['S2', 'S8']);

    const unlucky = await group('budget-down', 'example.com/server:2');
    await controlPlane().client.patch(`${unlucky.podsPath}/ingester-zone-a-0`, 'merge', {
      metadata: { annotations: { 'test.rollout-group.dev/unready': 'Probe' } },
    });
    await controlPlane().client.until<Pod>(unlucky.podsPath, 'a pod that is not ready', (pods) => !pods.every(isReady));
    await remove(unlucky, 'ingester-zone-a-1');
    expect(await broken(unlucky)).toEqual(['S2']);
  });

  describe('of pods that come back at an old revision', () => {
    it('catches the next disruption', async () => {
      const impatient = await group('settle', 'example.com/server:2');
      // RollingUpdate with a partition: the successor has the old revision, so the disruption never settles.
      await controlPlane().client.patch(`${impatient.setsPath}/ingester-zone-a`, 'merge', {
        spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 100 } } },
      });
      await removeAndWait(impatient, 'ingester-zone-a-2');
      await remove(impatient, 'ingester-zone-a-1');
      expect(await broken(impatient)).toEqual(['S8']);
    });
  });
});
