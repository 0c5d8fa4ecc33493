// Implements binding: the scheduler assigns a node, which no other write can.
import { objectOf } from './json.ts';
import type { Json, ModelObject } from './request.ts';
import { type Core, keep, type Target, timeOf, type WriteOptions } from './write.ts';

/** Assigns the node. Undefined if the pod does not exist, or already has a node. */
export function bind(core: Core, { kind, namespace, name }: Target, nodeName: string, options: WriteOptions): ModelObject | undefined {
  const pod = core.storage.collection('pods').get(namespace, name);
  const spec = objectOf(pod?.['spec']);
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || (spec['nodeName'] ?? '') !== '') return undefined;
  const status = objectOf(pod['status']);
  const known: readonly Json[] = Array.isArray(status['conditions']) ? status['conditions'].map(objectOf) : [];
  const scheduled = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: timeOf(core.wallMs()) };
  const conditions = [...known.filter(({ type }) => type !== 'PodScheduled'), scheduled];
  return keep(core, kind, pod, { ...pod, spec: { ...spec, nodeName }, status: { ...status, conditions } }, options);
}
