// Measures the memory of an agent that watches 60 pods, without webhooks and with webhooks under load, and the memory and the processor time
// of an agent that watches 2,100 pods of realistic size, at rest and during a rollout.
import { setTimeout as delay } from 'node:timers/promises';
import { certificateSecret } from '../../install/object.ts';

import type { KubernetesObject } from '../../test/control-plane/client.ts';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import { applyInstallation, startWebhookProcess } from '../../test/control-plane/webhook.ts';
import { type StatefulSet, statefulSet } from '../../test/control-plane/workloads.ts';
import { scopeOf } from '../../test/install/given.ts';
import { imageEnvironment } from '../release/image.ts';
import type { Figure } from './figure.ts';
import { bareNodeMemory, memoryOf, processorMs } from './process.ts';
import { defaultIntervals, startBuiltAgent } from './rollout.ts';
import { driveLoad } from './webhook-client.ts';
import { namespace as reviewNamespace } from './webhook-reviews.ts';

const namespace = 'many';
const replicas = 700;
const few = { namespace: 'few', replicas: 20 };
const zones = ['a', 'b', 'c'];
const quietMs = 30_000;
const setsPath = setsPathOf(namespace);
const podsPath = `/api/v1/namespaces/${namespace}/pods`;
/** Number of pods of one zone that are replaced before the last measurement. */
const rolled = 12;

export async function watchingFigures(controlPlane: ControlPlane): Promise<readonly Figure[]> {
  const bare = await bareNodeMemory();
  const small = await fewPodsFigure(controlPlane, bare.residentMiB);
  await createPods(controlPlane, { namespace, replicas });
  const bytes = await bytesOfPods(controlPlane);
  const agent = await startBuiltAgent(controlPlane, namespace);
  try {
    await delay(2000);
    const synced = memoryOf(agent.pid);
    const beforeMs = processorMs(agent.pid);
    await delay(quietMs);
    const usedMs = processorMs(agent.pid) - beforeMs;
    const quiet = memoryOf(agent.pid);
    await rollSome(controlPlane);
    const after = memoryOf(agent.pid);
    const pods = `${(replicas * zones.length).toLocaleString('en')} pods`;
    const resident = (when: string, value: number, more: string, bar = 100): Figure => ({
      what: `agent memory, ${pods} watched, ${when}`,
      value,
      bar,
      unit: 'MiB',
      floor: `bare node ${bare.residentMiB.toFixed(0)} MiB; ${more}`,
    });
    return [
      small,
      resident('synced', synced.residentMiB, `the pods are ${(bytes / 2 ** 20).toFixed(0)} MiB of JSON`),
      resident('after 30 quiet seconds', quiet.residentMiB, 'grafana/rollout-operator 111 MB'),
      resident(`after ${rolled} pods were rolled`, after.residentMiB, `${quiet.peakMiB.toFixed(0)} MiB at most before`),
      resident('peak', after.peakMiB, 'from the start to the last of these pods', 120),
      {
        what: `agent processor time, ${pods} watched, nothing to do`,
        value: (usedMs / quietMs) * 100,
        unit: '%',
        floor: `of one processor, ${usedMs.toFixed(0)} ms in ${quietMs / 1000} s`,
      },
    ];
  } finally {
    // Kills the agent, because this rollout need not be completed.
    await agent.kill();
  }
}

const reviewed = { namespace: reviewNamespace, replicas: 20 };
const load = { scenario: 'reviews', rate: 200, seconds: 30, areJudged: false } as const;

/**
 * Measures the executable with one group of 60 pods and with its webhooks under load, installed as `install` does and with the environment
 * of the image.
 */
export async function reviewingFigures(controlPlane: ControlPlane): Promise<readonly Figure[]> {
  const { client } = controlPlane;
  await createPods(controlPlane, reviewed);
  await client.create('/api/v1/namespaces', { metadata: { name: 'rollout-group' } });
  const scope = scopeOf('', { namespaces: [reviewed.namespace] });
  const isCalled = ({ kind }: { readonly kind: string }): boolean => kind.endsWith('WebhookConfiguration');
  await applyInstallation(client, { port: 0 }, { scope, hasCompat: true }, (object) => !isCalled(object));
  const flags = ['-run=all', `-namespaces=${reviewed.namespace}`, ...defaultIntervals];
  const { agent, port } = await startWebhookProcess(controlPlane, {
    executable: 'dist/rollout-group-agent',
    env: imageEnvironment,
    flags,
  });
  try {
    const secret = await client.get<Secret>(`/api/v1/namespaces/rollout-group/secrets/${certificateSecret}`);
    const ca = [Buffer.from(secret.data['ca'] ?? '', 'base64').toString()];
    const seen: number[] = [];
    const rest = async (): Promise<void> => void seen.push(memoryOf(agent.pid).residentMiB);
    const { failed, problems } = await driveLoad({ ...load, port, ca }, { rotate: () => undefined, rest });
    if (failed > 0) throw new Error(`${failed} reviews failed: ${problems.join('; ')}`);
    return [
      {
        what: `agent memory, 60 pods watched, webhooks with ${load.rate} reviews/s`,
        value: Math.max(...seen),
        bar: 85,
        unit: 'MiB',
        floor: `grafana/rollout-operator 61 MB; at most ${memoryOf(agent.pid).peakMiB.toFixed(0)} MiB until then`,
      },
    ];
  } finally {
    await agent.kill();
  }
}

interface Secret extends KubernetesObject {
  readonly data: Readonly<Record<string, string>>;
}

/** Measures an agent with one group of 60 pods after 30 quiet seconds. */
async function fewPodsFigure(controlPlane: ControlPlane, bareMiB: number): Promise<Figure> {
  await createPods(controlPlane, few);
  const agent = await startBuiltAgent(controlPlane, few.namespace);
  try {
    await delay(quietMs);
    const { residentMiB, peakMiB } = memoryOf(agent.pid);
    const floor = `bare node ${bareMiB.toFixed(0)} MiB; grafana/rollout-operator 51 MB; at most ${peakMiB.toFixed(0)} MiB until then`;
    return { what: 'agent memory, 60 pods watched, after 30 quiet seconds', value: residentMiB, bar: 66, unit: 'MiB', floor };
  } finally {
    await agent.kill();
  }
}

function setsPathOf(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
}

type Pods = typeof few;

async function createPods({ client }: ControlPlane, { namespace, replicas }: Pods): Promise<void> {
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  const setsPath = setsPathOf(namespace);
  for (const zone of zones) await client.create(setsPath, manifestOf(zone, replicas));
  const areReady = (sets: readonly StatefulSet[]): boolean =>
    sets.length === zones.length && sets.every(({ status }) => status.readyReplicas === replicas);
  await client.until(setsPath, 'every pod Ready', areReady, createTimeoutMs);
}

const createTimeoutMs = 240_000;

/** Makes the containers as large as those of databases: about 7 KiB for each pod. */
function manifestOf(zone: string, replicas: number): object {
  const object = statefulSet({
    name: `ingester-zone-${zone}`,
    replicas,
    nodeZone: `zone-${zone}`,
    annotations: { 'test.rollout-group.dev/ready-after': '50ms', 'test.rollout-group.dev/gone-after': '50ms' },
    setLabels: { 'rollout-group': 'ingester' },
    setAnnotations: { 'rollout-max-unavailable': '4' },
  }) as { readonly spec: { readonly template: { readonly spec: object } } };
  const { spec } = object;
  return { ...object, spec: { ...spec, template: { ...spec.template, spec: { ...spec.template.spec, containers: [container] } } } };
}

const probe = { httpGet: { path: '/ready', port: 8080 }, initialDelaySeconds: 15, timeoutSeconds: 1, periodSeconds: 10 };
const container = {
  name: 'server',
  image: 'example.com/server:1',
  args: Array.from({ length: 30 }, (_, index) => `-component.subsystem-${index}.setting-with-a-name=value-of-some-length-${index}`),
  env: Array.from({ length: 20 }, (_, index) => ({ name: `SERVER_SETTING_${index}`, value: `value-of-some-length-${index}` })),
  ports: [8080, 9095, 7946].map((containerPort) => ({ name: `port-${containerPort}`, containerPort })),
  resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '2Gi' } },
  readinessProbe: probe,
  livenessProbe: probe,
  securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
};

async function bytesOfPods({ client }: ControlPlane): Promise<number> {
  const page = await client.get<{ readonly items: readonly object[] }>(`${podsPath}?limit=100`);
  return (JSON.stringify(page).length / page.items.length) * replicas * zones.length;
}

/** Starts a rollout and waits until some pods are replaced. */
async function rollSome({ client }: ControlPlane): Promise<void> {
  for (const zone of zones) {
    await client.patch(`${setsPath}/ingester-zone-${zone}`, 'strategic', {
      spec: { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:2' }] } } },
    });
  }
  await client.until<StatefulSet & { readonly status: { readonly updatedReplicas?: number } }>(setsPath, `${rolled} new pods`, (sets) =>
    sets.some(({ status }) => (status.updatedReplicas ?? 0) >= rolled),
  );
}
