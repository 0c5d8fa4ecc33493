// Since when a pod under a zone-aware budget has been ready is written in each form in which the executable runs.
import { beforeAll, expect, it } from 'vitest';
import { startAgentProcess } from '../control-plane/agent-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { applyInstallation, startFront } from '../control-plane/webhook.ts';
import { type Pod, statefulSet } from '../control-plane/workloads.ts';
import { scopeOf } from '../install/given.ts';

const annotation = 'grafana.com/ready-time';
const runs = ['all', 'agent', 'webhook'] as const;
const namespaceOf = (run: string): string => `run-${run}`;

describeOnControlPlane(
  'the ready time of a pod',
  (controlPlane) => {
    let cp: ControlPlane;

    beforeAll(async () => {
      cp = controlPlane();
      const front = await startFront();
      const namespaces = runs.map(namespaceOf);
      for (const name of namespaces) await cp.client.create('/api/v1/namespaces', { metadata: { name } });
      await applyInstallation(
        cp.client,
        front,
        { scope: scopeOf('', { namespaces }), hasCompat: true, isEnforced: false, replicas: 1 },
        ({ kind }) => !kind.endsWith('WebhookConfiguration'),
      );
      await front.close();
    });

    it.each(runs)('is written with -run=%s', async (run) => {
      const namespace = namespaceOf(run);
      const agent = await startAgentProcess({
        url: cp.url,
        identity: cp.identities.agent,
        namespace: 'rollout-group',
        flags: [
          ...[`-run=${run}`, `-namespaces=${namespace}`, `-lease.name=${run}`, '-log.level=info'],
          ...['-server-tls.enabled=true', '-server-tls.port=0', '-server-tls.drain=0', '-server-tls.self-signed-cert.dns-name=localhost'],
          '-server-tls.self-signed-cert.secret-name=rollout-group-agent-tls',
        ],
      });
      try {
        await agent.untilReady();
        await cp.client.create(`/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`, {
          apiVersion: 'rollout-operator.grafana.com/v1',
          kind: 'ZoneAwarePodDisruptionBudget',
          metadata: { name: 'server' },
          spec: { maxUnavailable: 1, selector: { matchLabels: { name: 'server' } } },
        });
        await cp.client.create(`/apis/apps/v1/namespaces/${namespace}/statefulsets`, statefulSet({ name: 'server', replicas: 2 }));
        const timed = (pod: Pod): boolean => Number.isFinite(Date.parse(pod.metadata.annotations?.[annotation] ?? ''));
        const pods = await cp.client.until<Pod>(
          `/api/v1/namespaces/${namespace}/pods`,
          'ready times',
          (all) => all.length === 2 && all.every(timed),
        );
        expect(pods.every(timed)).toBe(true);
        expect(agent.log()).not.toContain('could not be written');
      } finally {
        await agent.kill();
      }
    });
  },
  { zones: ['zone-a'] },
);
