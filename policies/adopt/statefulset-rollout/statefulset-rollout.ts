// StatefulsetRollouts of bedrock.operator.slack.com as RolloutGroups: an embedded StatefulSet, a share of its pods, a budget for the pace.
import { z } from 'zod';
import { formatDuration } from '../../duration.ts';
import type { Finding } from '../../findings/finding.ts';
import { apiVersion } from '../../schema/kinds.ts';
import { isRecord, valueAt } from '../../schema/schema-walk.ts';
import {
  type ForeignObject,
  foreignFinding,
  metadataFindings,
  type Reading,
  type Request,
  specFindings,
  unknownFields,
} from '../foreign.ts';
import { zoneNames } from '../names.ts';
import { discoveryOf } from './discovery.ts';
import { notifyOf } from './notify.ts';

const rolloutSpec = z.object({
  bapi: z.object({ bapiUrl: z.string().nullish(), stageId: z.string().nullish() }).nullish(),
  channel: z.string().nullish(),
  minPodEvictionIntervalSeconds: z.int().min(0).nullish(),
  pauseRequested: z.boolean().nullish(),
  percent: z.int().nullish(),
  rolloutIdentity: z.string().nullish(),
  serviceDiscovery: z.object({ dc: z.string().nullish(), serviceNames: z.array(z.string().min(1)).nullish() }).nullish(),
  statefulset: z.looseObject({
    metadata: z.looseObject({ name: z.string().min(1), namespace: z.string().nullish() }),
    spec: z.looseObject({
      replicas: z.int().min(0).nullish(),
      updateStrategy: z.looseObject({ type: z.string().nullish() }).nullish(),
    }),
  }),
});

const known = {
  bapi: { bapiUrl: true, stageId: true },
  channel: true,
  minPodEvictionIntervalSeconds: true,
  pauseRequested: true,
  percent: true,
  rolloutIdentity: true,
  serviceDiscovery: { dc: true, serviceNames: true },
  statefulset: true,
} as const;

type RolloutSpec = z.infer<typeof rolloutSpec>;

export function isStatefulsetRollout({ kind, value }: ForeignObject): boolean {
  return kind.toLowerCase() === 'statefulsetrollout' && String(value['apiVersion']).startsWith('bedrock.operator.slack.com/');
}

/** The group of a StatefulsetRollout, its channels, and the StatefulSet that stands in it. */
export function readStatefulsetRollout(object: ForeignObject): Reading {
  const read = rolloutSpec.safeParse(object.value['spec']);
  if (!read.success) return { object, findings: specFindings(object, rolloutSpec), wishes: [] };
  const spec = read.data;
  const { name } = spec.statefulset.metadata;
  const zone = zoneNames([name]).get(name) ?? name;
  const discovery = discoveryOf(object, {
    datacenter: spec.serviceDiscovery?.dc ?? undefined,
    services: spec.serviceDiscovery?.serviceNames ?? [],
    replicas: spec.statefulset.spec.replicas ?? 1,
  });
  const notify = notifyOf(object, { channel: spec.channel ?? undefined, callbackUrl: spec.bapi?.bapiUrl ?? undefined });
  const wishes: readonly Request[] = [...discovery.wishes, ...notify.wishes];
  const findings = [
    ...unknownFields(object, known),
    ...metadataFindings(object),
    ...requestFindings(object, spec),
    ...shareFindings(object, spec.percent ?? 100),
    ...discovery.findings,
    ...notify.findings,
    ...setFindings(object, spec),
    ...progressFindings(object),
  ];
  const gates = discovery.gates.map((gate) => gate.name);
  const intervalMs = (spec.minPodEvictionIntervalSeconds ?? 0) * 1000;
  const waves = wavesOf(zone, spec.percent ?? 100, gates);
  const document = (nameOf: (key: string) => string) => ({
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name: object.name, namespace: object.namespace },
    spec: {
      members: { zones: [{ name: zone, statefulSet: name, ...(spec.pauseRequested === true ? { paused: true } : {}) }] },
      replicas: { leader: true },
      rollout: {
        strategy: 'onDelete',
        rotateBy: 'evict',
        maxUnavailable: 'fromBudget',
        ...(intervalMs > 0 ? { minInterval: formatDuration(intervalMs) } : {}),
        ...(waves.length > 0 ? { waves } : {}),
      },
      ...(gates.length > 0 ? { gates: discovery.gates.map(({ key, ...gate }) => gateOf(gate, nameOf(key))) } : {}),
      ...(notify.uses.length > 0 ? { notify: notify.uses.map(({ key, events }) => ({ channel: nameOf(key), events })) } : {}),
    },
  });
  const group = { name: object.name, statefulSet: name, statefulSetPath: ['spec', 'statefulset', 'metadata', 'name'], document };
  return { object, findings, wishes, group, statefulSet: statefulSetOf(object, spec) };
}

function gateOf({ consul, ...gate }: { readonly consul: Readonly<Record<string, unknown>> }, source: string): unknown {
  return { ...gate, consul: { source, ...consul } };
}

/** A partial rollout waits for an approval of the rest, as the original waits for another request. */
function wavesOf(zone: string, percent: number, gates: readonly string[]): readonly unknown[] {
  const after = gates.length > 0 ? { after: { gates } } : {};
  if (percent >= 100) return gates.length > 0 ? [{ name: 'all', zones: [zone], percent: 100, ...after }] : [];
  const rest = { name: 'rest', zones: [zone], percent: 100, before: { approval: { count: 1 } }, ...after };
  return percent > 0 ? [{ name: `percent-${percent}`, zones: [zone], percent, ...after }, rest] : [rest];
}

function shareFindings(object: ForeignObject, percent: number): readonly Finding[] {
  if (percent >= 100) return [];
  const share = percent > 0 ? `${percent} percent` : 'no pod';
  const message = `spec.percent is a wave of ${share}; the rest follows after an approval. Under the strategy onDelete a pod that restarts before comes back updated`;
  const hint = 'with RollingUpdate and the strategy pinned or partition every pod keeps its version';
  return [foreignFinding(object, 'RG7003', ['spec', 'percent'], { message, hint })];
}

/** Fields of one request, which do not belong to the group. */
function requestFindings(object: ForeignObject, spec: RolloutSpec): readonly Finding[] {
  const say = (field: string, message: string, hint: string) =>
    foreignFinding(object, 'RG7003', ['spec', ...field.split('.')], { message, hint });
  return [
    ...(spec.rolloutIdentity
      ? [say('rolloutIdentity', 'spec.rolloutIdentity retries a failed request; runs have their own ids', 'use the verb retry')]
      : []),
    ...(spec.bapi?.stageId
      ? [
          say(
            'bapi.stageId',
            'spec.bapi.stageId names one request; a callback names the group, its run and the commit',
            'write what the receiver must know to the annotation rollout-group.dev/commit of the StatefulSet',
          ),
        ]
      : []),
    ...(spec.pauseRequested === true
      ? [say('pauseRequested', 'spec.pauseRequested is written as paused: true of the zone', 'remove it from the file to go on')]
      : []),
  ];
}

function setFindings(object: ForeignObject, { statefulset }: RolloutSpec): readonly Finding[] {
  const { name, namespace } = statefulset.metadata;
  const path = ['spec', 'statefulset'];
  const budget = foreignFinding(object, 'RG7003', path, {
    message: `as many pods of ${name} go at once as its PodDisruptionBudget lets go, and one at a time without a budget`,
  });
  const strategy = statefulset.spec.updateStrategy?.type ?? 'RollingUpdate';
  return [
    budget,
    ...(strategy === 'OnDelete'
      ? []
      : [
          foreignFinding(object, 'RG7002', [...path, 'spec', 'updateStrategy', 'type'], {
            message: `the StatefulSet has the update strategy ${strategy}; it is written with OnDelete, which the operator needed and the group needs`,
          }),
        ]),
    ...(namespace == null || namespace === object.namespace
      ? []
      : [
          foreignFinding(object, 'RG7002', [...path, 'metadata', 'namespace'], {
            message: `the StatefulSet names the namespace ${namespace}; it is written to ${object.namespace}, where the object is`,
          }),
        ]),
  ];
}

/** Returns the embedded StatefulSet as a separate manifest, without server fields. */
function statefulSetOf(object: ForeignObject, { statefulset }: RolloutSpec): Readonly<Record<string, unknown>> {
  const { metadata, spec } = statefulset;
  const kept = (['labels', 'annotations'] as const).flatMap((part) => (isRecord(metadata[part]) ? [[part, metadata[part]] as const] : []));
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: metadata.name, namespace: object.namespace, ...Object.fromEntries(kept) },
    spec: { ...spec, updateStrategy: { type: 'OnDelete' } },
  };
}

function progressFindings(object: ForeignObject): readonly Finding[] {
  const phase = valueAt(object.value, ['status', 'phase']);
  if (typeof phase !== 'string' || phase === '' || phase === 'RolloutDone') return [];
  return [foreignFinding(object, 'RG7007', ['status', 'phase'], { message: `the object is in the phase ${phase}, and not done` })];
}
