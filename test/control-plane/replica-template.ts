// A kind with a scale subresource from which replicas are mirrored, as in grafana/rollout-operator, and an autoscaler for it.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ApiClient, KubernetesObject } from './client.ts';

const group = 'rollout-operator.grafana.com';

export interface ReplicaTemplate extends KubernetesObject {
  readonly spec: { readonly replicas: number };
  readonly status?: { readonly replicas?: number };
}

export function templatesPath(namespace: string): string {
  return `/apis/${group}/v1/namespaces/${namespace}/replicatemplates`;
}

/** Installs the kind and waits until the server serves it. */
export async function installReplicaTemplates(client: ApiClient): Promise<void> {
  const definition = parse(readFileSync('deploy/crds/replicatemplates.yaml', 'utf8')) as KubernetesObject;
  await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  for (;;) {
    if ((await client.ask('GET', templatesPath('default'))).status === 200) return;
    await new Promise((settle) => setTimeout(settle, 50));
  }
}

export async function createTemplate(client: ApiClient, namespace: string, name: string, replicas: number): Promise<void> {
  await client.create(templatesPath(namespace), {
    apiVersion: `${group}/v1`,
    kind: 'ReplicaTemplate',
    metadata: { name },
    spec: { replicas, labelSelector: 'name=nobody' },
  });
}

/** Only its bounds control the autoscaler: without metrics it keeps the number within them. */
export async function setAutoscaler(client: ApiClient, namespace: string, template: string, min: number, max: number): Promise<void> {
  await client.patch(`/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers/${template}?fieldManager=test`, 'apply', {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: template },
    spec: {
      scaleTargetRef: { apiVersion: `${group}/v1`, kind: 'ReplicaTemplate', name: template },
      minReplicas: min,
      maxReplicas: max,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
    },
  });
}

/** The annotations of a StatefulSet that mirrors the template. */
export function mirrors(template: string): Readonly<Record<string, string>> {
  const prefix = 'grafana.com/rollout-mirror-replicas-from-resource';
  return { [`${prefix}-name`]: template, [`${prefix}-kind`]: 'ReplicaTemplate', [`${prefix}-api-version`]: `${group}/v1` };
}
