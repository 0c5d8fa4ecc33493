// Since when a pod under a zone-aware budget has been ready is written in each form in which the executable runs.
import { beforeAll, expect, it } from 'vitest';
import { type AgentProcess, startAgentProcess } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { applyInstallation, startFront } from '../control-plane/webhook.ts';
import { isReady, type Pod, statefulSet } from '../control-plane/workloads.ts';
import { scopeOf } from '../install/given.ts';

const annotation = 'grafana.com/ready-time';
const runs = ['all', 'agent', 'webhook'] as const;
const namespaceOf = (run: string): string => `run-${run}`;

interface Lease extends KubernetesObject {
  readonly spec: { readonly acquireTime: string };
}

describeOnControlPlane(
  'the ready time of a pod',
  (controlPlane) => {
    let cp: ControlPlane;

    beforeAll(async () => {
      cp = controlPlane();
      const front = await startFront();
      const namespaces = [...runs, 'start'].map(namespaceOf);
      for (const name of namespaces) await cp.client.create('/api/v1/namespaces', { metadata: { name } });
      await applyInstallation(
        cp.client,
        front,
        { scope: scopeOf('', { namespaces }), hasCompat: true, isEnforced: false, replicas: 1 },
        ({ kind }) => !kind.endsWith('WebhookConfiguration'),
      );
      await front.close();
    });

    async function start(run: string, namespace: string, lease = namespace): Promise<AgentProcess> {
      return await startAgentProcess({
        url: cp.url,
        identity: cp.identities.agent,
        namespace: 'rollout-group',
        flags: [
          ...[`-run=${run}`, `-namespaces=${namespace}`, `-lease.name=${lease}`, '-log.level=info'],
          ...['-server-tls.enabled=true', '-server-tls.port=0', '-server-tls.drain=0', '-server-tls.self-signed-cert.dns-name=localhost'],
          '-server-tls.self-signed-cert.secret-name=rollout-group-agent-tls',
        ],
      });
    }

    async function createPods(namespace: string): Promise<void> {
      await cp.client.create(`/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`, {
        apiVersion: 'rollout-operator.grafana.com/v1',
        kind: 'ZoneAwarePodDisruptionBudget',
        metadata: { name: 'server' },
        spec: { maxUnavailable: 1, selector: { matchLabels: { name: 'server' } } },
      });
      await cp.client.create(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, statefulSet({ name: 'server', replicas: 2 }));
    }

    /** Waits until both pods have a ready time. Returns the times in milliseconds. */
    async function readyTimes(namespace: string): Promise<readonly number[]> {
      const timeOf = (pod: Pod): number => Date.parse(pod.metadata.annotations?.[annotation] ?? '');
      const pods = await cp.client.until<Pod>(
        `/api/v1/namespaces/${namespace}/pods`,
        'ready times',
        (all) => all.length === 2 && all.every((pod) => Number.isFinite(timeOf(pod))),
      );
      return pods.map(timeOf);
    }

    it.each(runs)('is written with -run=%s', async (run) => {
      const agent = await start(run, namespaceOf(run));
      try {
        await agent.untilReady();
        await createPods(namespaceOf(run));
        expect(await readyTimes(namespaceOf(run))).toHaveLength(2);
        expect(agent.log()).not.toContain('could not be written');
        // Also without webhooks.
        const { body } = await agent.ask('/metrics');
        expect(body).toContain('rollout_operator_zpdb_configurations_observed_total{result="updated"} 1');
      } finally {
        await agent.kill();
      }
    });

    it('is written as soon as a process leads', async () => {
      const namespace = namespaceOf('start');
      await createPods(namespace);
      await cp.client.until<Pod>(
        `/api/v1/namespaces/${namespace}/pods`,
        'ready pods',
        (all) => all.length === 2 && all.every((pod) => isReady(pod)),
      );
      // The installed Role permits only this Lease.
      const lease = 'rollout-group-agent';
      const agent = await start('agent', namespace, lease);
      try {
        const times = await readyTimes(namespace);
        const leases = await cp.client.list<Lease>('/apis/coordination.k8s.io/v1/namespaces/rollout-group/leases');
        const acquiredMs = Date.parse(leases.find(({ metadata }) => metadata.name === lease)?.spec.acquireTime ?? '');
        // The times are whole seconds.
        for (const time of times) expect(time - acquiredMs).toBeLessThan(3000);
      } finally {
        await agent.kill();
      }
    });
  },
  { zones: ['zone-a'] },
);
