// Converts Kubernetes JSON to the views that the engine reads. Invalid JSON becomes an unknown value with the reason, never an exception.

import { instantMs } from '../../policies/instant.ts';
import { defined } from '../../policies/values/defined.ts';
import { templateDigest } from '../diff/field-diff.ts';
import { driftOf } from '../diff/field-writers.ts';
import type { Known, PodView, StatefulSetView } from '../snapshot.ts';
import { type Reader, reader } from './raw.ts';

/** A pod with its namespace and the owner reference whose `controller` is true. */
export type ObservedPod = PodView & {
  readonly namespace: string;
  readonly owner?: { readonly kind: string; readonly name: string; readonly uid: string };
  /** True if the annotation grafana.com/ready-time is not an instant. */
  readonly isReadyTimeUnreadable?: boolean;
};

/** The annotation of a StatefulSet that names the approved plan of its change (engine/run/approved-plan.ts). */
export const approvedPlanAnnotation = 'rollout-group.dev/approved-plan';

/** Reads a StatefulSet of `apps/v1` with the defaults of the API server. Unknown if a field has the wrong type or an invalid value. */
export function observeStatefulSet(raw: unknown): Known<StatefulSetView> {
  const fields = reader(raw);
  const { namespace, name, uid, resourceVersion } = identity(fields);
  const count = (path: string, absent = 0) => fields.int32(path) ?? absent;
  const generation = (path: string) => fields.whole(path) ?? 0;
  const text = (path: string, absent = '') => fields.text(path) ?? absent;
  const strategy = text('spec.updateStrategy.type', 'RollingUpdate');
  const management = text('spec.podManagementPolicy', 'OrderedReady');
  const annotations = fields.texts('metadata.annotations');
  const view: StatefulSetView = {
    namespace,
    name,
    uid,
    resourceVersion,
    generation: generation('metadata.generation'),
    labels: fields.texts('metadata.labels'),
    annotations,
    replicas: count('spec.replicas', 1),
    firstOrdinal: count('spec.ordinals.start'),
    updateStrategy: strategy === 'OnDelete' ? 'OnDelete' : 'RollingUpdate',
    partition: count('spec.updateStrategy.rollingUpdate.partition'),
    podManagementPolicy: management === 'Parallel' ? 'Parallel' : 'OrderedReady',
    minReadySeconds: count('spec.minReadySeconds'),
    serviceName: text('spec.serviceName'),
    podLabels: fields.texts('spec.template.metadata.labels'),
    ...selectorOf(fields),
    ...(annotations[approvedPlanAnnotation] === undefined ? {} : { template: templateDigest(raw) }),
    ...defined({ images: imagesOf(fields), drift: driftOf(raw) }),
    isTerminating: fields.has('metadata.deletionTimestamp'),
    status: {
      observedGeneration: generation('status.observedGeneration'),
      replicas: count('status.replicas'),
      readyReplicas: count('status.readyReplicas'),
      updatedReplicas: count('status.updatedReplicas'),
      currentRevision: text('status.currentRevision'),
      updateRevision: text('status.updateRevision'),
    },
  };
  const problem = fields.problem() ?? problemOf(view, strategy, management);
  return problem === undefined ? view : { unknown: `StatefulSet ${view.namespace}/${view.name}: ${problem}` };
}

function imagesOf(fields: Reader): StatefulSetView['images'] {
  const images = fields.list('spec.template.spec.containers').flatMap((container): readonly (readonly [string, string])[] => {
    const [name, image] = [reader(container).text('name'), reader(container).text('image')];
    return name === undefined || image === undefined ? [] : [[name, image]];
  });
  return images.length === 0 ? undefined : Object.fromEntries(images);
}

function problemOf(view: StatefulSetView, strategy: string, management: string): string | undefined {
  if (view.name === '') return 'metadata.name is missing';
  if (view.replicas < 0) return 'spec.replicas is negative';
  if (strategy !== view.updateStrategy) return `spec.updateStrategy.type ${strategy} is unknown`;
  if (management !== view.podManagementPolicy) return `spec.podManagementPolicy ${management} is unknown`;
  return undefined;
}

/** Reads a pod. Its node counts as ready. The ordinal is -1 for names without a number. */
export function observePod(raw: unknown): Known<ObservedPod> {
  const fields = reader(raw);
  const { namespace, name, uid, resourceVersion } = identity(fields);
  const labels = fields.texts('metadata.labels');
  const ready = fields.list('status.conditions').find((condition) => reader(condition).text('type') === 'Ready');
  const statuses = fields.list('status.containerStatuses');
  const readyTime = fields.texts('metadata.annotations')['grafana.com/ready-time'];
  const readyTimeMs = instantMs(readyTime ?? '');
  const owner = controllerOf(fields);
  const ownerText = (field: string): string => owner?.text(field) ?? '';
  const problem = fields.problem() ?? (name === '' ? 'metadata.name is missing' : undefined);
  if (problem !== undefined) return { unknown: `Pod ${namespace}/${name}: ${problem}` };
  return {
    namespace,
    name,
    uid,
    resourceVersion,
    ordinal: Number(/-(\d{1,10})$/.exec(name)?.[1] ?? -1),
    revision: labels['controller-revision-hash'] ?? '',
    labels,
    phase: phaseOf(fields.text('status.phase')),
    isReady: reader(ready).text('status') === 'True',
    containersReady: statuses.every(isRunningAndReady),
    readyChangedMs:
      reader(ready).instant('lastTransitionTime') ??
      fields.instant('status.startTime') ??
      fields.instant('metadata.creationTimestamp') ??
      0,
    isTerminating: fields.has('metadata.deletionTimestamp'),
    ...terminatingSince(fields),
    waitingReasons: [...fields.list('status.initContainerStatuses'), ...statuses].flatMap(waitingReason),
    node: fields.text('spec.nodeName') ?? '',
    nodeReady: true,
    ...(readyTimeMs === undefined ? {} : { readyTimeMs }),
    ...(readyTimeMs === undefined && readyTime !== undefined ? { isReadyTimeUnreadable: true } : {}),
    ...(owner === undefined ? {} : { owner: { kind: ownerText('kind'), name: ownerText('name'), uid: ownerText('uid') } }),
  };
}

/** The API server writes the end of the grace period as the deletion time. */
function terminatingSince(fields: Reader): Pick<PodView, 'terminatingSinceMs'> {
  const endMs = fields.instant('metadata.deletionTimestamp');
  const graceMs = (fields.whole('metadata.deletionGracePeriodSeconds') ?? 0) * 1000;
  return endMs === undefined ? {} : { terminatingSinceMs: endMs - graceMs };
}

function selectorOf(fields: Reader): { readonly selector?: string } {
  const expressions = fields.list('spec.selector.matchExpressions').map((expression) => expressionText(reader(expression)));
  const labels = Object.entries(fields.texts('spec.selector.matchLabels')).map(([key, value]) => `${key}=${value}`);
  const terms = [...labels, ...expressions].sort();
  return terms.length === 0 || terms.includes('') ? {} : { selector: terms.join(',') };
}

/** Returns a selector expression in the notation of kubectl; empty for an unknown operator. */
function expressionText(fields: Reader): string {
  const key = fields.text('key') ?? '';
  const values = `(${fields
    .list('values')
    .filter((value) => typeof value === 'string')
    .sort()
    .join(',')})`;
  const forms: Readonly<Record<string, string>> = {
    In: `${key} in ${values}`,
    NotIn: `${key} notin ${values}`,
    Exists: key,
    DoesNotExist: `!${key}`,
  };
  return forms[fields.text('operator') ?? ''] ?? '';
}

export function observeNode(raw: unknown): { readonly name: string; readonly isReady: boolean } {
  const fields = reader(raw);
  const ready = fields.list('status.conditions').find((condition) => reader(condition).text('type') === 'Ready');
  return { name: fields.text('metadata.name') ?? '', isReady: reader(ready).text('status') === 'True' };
}

/** Returns namespace, name, UID and resource version of an object; empty text for an absent field. */
export function identity(fields: Reader): { readonly namespace: string; readonly name: string; uid: string; resourceVersion: string } {
  return {
    namespace: fields.text('metadata.namespace') ?? '',
    name: fields.text('metadata.name') ?? '',
    uid: fields.text('metadata.uid') ?? '',
    resourceVersion: fields.text('metadata.resourceVersion') ?? '',
  };
}

export function controllerOf(fields: Reader): Reader | undefined {
  const reference = fields.list('metadata.ownerReferences').find((candidate) => reader(candidate).flag('controller') === true);
  return reference === undefined ? undefined : reader(reference);
}

function phaseOf(text: string | undefined): PodView['phase'] {
  return text === 'Running' || text === 'Pending' || text === 'Succeeded' || text === 'Failed' ? text : 'Unknown';
}

function isRunningAndReady(status: unknown): boolean {
  const fields = reader(status);
  return fields.flag('ready') === true && fields.has('state.running');
}

function waitingReason(status: unknown): readonly string[] {
  const reason = reader(status).text('state.waiting.reason');
  return reason === undefined ? [] : [reason];
}
