// Converts StatefulsetRollouts of bedrock.operator.slack.com: an embedded StatefulSet, a percentage of its pods, gates and notifications.
import * as z from 'zod';
import { formatDuration } from '../duration.ts';
import type { Finding } from '../findings/finding.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { isRecord } from '../values/is-record.ts';
import {
  type ConvertedObject,
  type ForeignObject,
  metadataFindings,
  type NeededDocument,
  reporterFor,
  specFindings,
  unknownFields,
} from './foreign.ts';
import { shortHash, slug, zoneNames } from './names.ts';
import { addressOf } from './url.ts';

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

type RolloutSpec = z.infer<typeof rolloutSpec>;

export function isStatefulsetRollout({ kind, value }: ForeignObject): boolean {
  return kind.toLowerCase() === 'statefulsetrollout' && String(value['apiVersion']).startsWith('bedrock.operator.slack.com/');
}

/** Converts a StatefulsetRollout to a RolloutGroup, a MetricSource, NotificationChannels and a StatefulSet. */
export function readStatefulsetRollout(object: ForeignObject): ConvertedObject {
  const read = rolloutSpec.safeParse(object.value['spec']);
  if (!read.success) return { object, findings: specFindings(object, rolloutSpec), needs: [] };
  const spec = read.data;
  const { name } = spec.statefulset.metadata;
  const percent = spec.percent ?? 100;
  const zone = zoneNames([name]).get(name) ?? name;
  const discovery = readDiscovery(object, spec);
  const notifications = [...readSlack(object, spec.channel ?? ''), ...readCallback(object, spec.bapi?.bapiUrl ?? '')];
  const findings = [
    ...unknownFields(object, rolloutSpec),
    ...metadataFindings(object),
    ...requestFindings(object, spec),
    ...percentFindings(object, percent),
    ...discovery.findings,
    ...notifications.flatMap((one) => one.findings),
    ...setFindings(object, spec),
    ...progressFindings(object),
  ];
  const receivers = notifications.flatMap(({ receiver }) => receiver ?? []);
  const intervalMs = (spec.minPodEvictionIntervalSeconds ?? 0) * 1000;
  const gateNames = discovery.gates.map((gate) => gate.name);
  const waves = wavesOf(zone, percent, gateNames);
  const group: ConvertedObject['group'] = {
    statefulSet: name,
    statefulSetField: 'spec.statefulset.metadata.name',
    spec: (nameOf) => ({
      members: { zones: [{ name: zone, statefulSet: name, ...(spec.pauseRequested === true ? { paused: true } : {}) }] },
      replicas: { leader: true },
      rollout: {
        strategy: 'onDelete',
        rotateBy: 'evict',
        maxUnavailable: 'fromBudget',
        ...(intervalMs > 0 ? { minInterval: formatDuration(intervalMs) } : {}),
        ...(waves.length > 0 ? { waves } : {}),
      },
      ...(discovery.source ? { gates: discovery.gates.map((gate) => gateDocument(gate, nameOf(consulKey))) } : {}),
      ...(receivers.length > 0 ? { notify: receivers.map(({ channel, events }) => ({ channel: nameOf(channel.key), events })) } : {}),
    }),
  };
  const needs = [...(discovery.source ? [discovery.source] : []), ...receivers.map(({ channel }) => channel)];
  return { object, findings, needs, group, statefulSet: statefulSetOf(object, spec) };
}

/** Returns the waves. The pods beyond `percent` need an approval, because the Bedrock operator updates them only after another request. */
function wavesOf(zone: string, percent: number, gates: readonly string[]): readonly unknown[] {
  const after = gates.length > 0 ? { after: { gates } } : {};
  if (percent >= 100) return gates.length > 0 ? [{ name: 'all', zones: [zone], percent: 100, ...after }] : [];
  const rest = { name: 'rest', zones: [zone], percent: 100, before: { approval: { count: 1 } }, ...after };
  return percent > 0 ? [{ name: `percent-${percent}`, zones: [zone], percent, ...after }, rest] : [rest];
}

function percentFindings(object: ForeignObject, percent: number): readonly Finding[] {
  if (percent >= 100) return [];
  const effect = percent > 0 ? `becomes a wave of ${percent} percent; the other pods need` : `is ${percent}; all pods need`;
  const message = `spec.percent ${effect} an approval. With the strategy onDelete, a pod that restarts before its wave is also updated`;
  const hint = 'with RollingUpdate and the strategy pinned or partition every pod keeps its version';
  return [reporterFor(object)('RG7003', 'spec.percent', message, hint)];
}

function requestFindings(object: ForeignObject, spec: RolloutSpec): readonly Finding[] {
  const fields: readonly (readonly [isSet: boolean, field: string, text: string, hint: string])[] = [
    [
      Boolean(spec.rolloutIdentity),
      'spec.rolloutIdentity',
      'retries a failed request; each run has a separate ID',
      'use the command retry',
    ],
    [
      Boolean(spec.bapi?.stageId),
      'spec.bapi.stageId',
      'names one request; a callback names the group, its run and the commit',
      'write what the receiver must know to the annotation rollout-group.dev/commit of the StatefulSet',
    ],
    [spec.pauseRequested === true, 'spec.pauseRequested', 'is written as paused: true of the zone', 'to resume, remove paused: true'],
  ];
  const report = reporterFor(object);
  return fields.flatMap(([isSet, field, text, hint]) => (isSet ? [report('RG7003', field, `${field} ${text}`, hint)] : []));
}

function setFindings(object: ForeignObject, { statefulset }: RolloutSpec): readonly Finding[] {
  const { name, namespace } = statefulset.metadata;
  const report = reporterFor(object);
  const budget = `the PodDisruptionBudget of ${name} limits how many pods are unavailable at once; without a budget, the limit is one pod`;
  const type = statefulset.spec.updateStrategy?.type ?? 'RollingUpdate';
  const strategy = `the StatefulSet has the update strategy ${type}; it is written with OnDelete, which the group needs`;
  const moved = `the StatefulSet has the namespace ${namespace}; it is written to ${object.namespace}, the namespace of the object`;
  const isMoved = namespace != null && namespace !== object.namespace;
  return [
    report('RG7003', 'spec.statefulset', budget),
    ...(type === 'OnDelete' ? [] : [report('RG7002', 'spec.statefulset.spec.updateStrategy.type', strategy)]),
    ...(isMoved ? [report('RG7002', 'spec.statefulset.metadata.namespace', moved)] : []),
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
  return [reporterFor(object)('RG7007', 'status.phase', `the object is in the phase ${phase}`)];
}

/** A gate that reads a Consul service, without the name of the MetricSource. */
interface DiscoveryGate {
  readonly name: string;
  readonly consul: Readonly<Record<string, unknown>>;
}

interface Discovery {
  readonly gates: readonly DiscoveryGate[];
  /** The MetricSource of the gates; absent without services. */
  readonly source?: NeededDocument;
  readonly findings: readonly Finding[];
}

/** The placeholder for a missing address. Names in `.invalid` never resolve (RFC 2606). */
const placeholder = 'https://consul.invalid:8501';
const consulKey = 'consul';

/** Returns a gate per service: as many instances must pass as the StatefulSet has pods. A service without instances does not block. */
function readDiscovery(object: ForeignObject, { serviceDiscovery, statefulset }: RolloutSpec): Discovery {
  const services = [...new Set(serviceDiscovery?.serviceNames ?? [])];
  if (services.length === 0) return { gates: [], findings: [] };
  const datacenter = serviceDiscovery?.dc;
  const passing = statefulset.spec.replicas ?? 1;
  const report = reporterFor(object);
  const names = services.map((service) => slug(service, 54) || 'service');
  const gates = services.map((service, index): DiscoveryGate => {
    const name = names[index] ?? service;
    const isUnique = names.filter((other) => other === name).length === 1;
    return {
      name: isUnique ? name : `${name}-${shortHash(service)}`,
      consul: { service, ...(datacenter ? { datacenter } : {}), passing },
    };
  });
  const source: NeededDocument = {
    kind: 'MetricSource',
    key: consulKey,
    base: 'consul',
    spec: { consul: { url: placeholder } },
    namespace: object.namespace,
    everyMs: 15_000,
  };
  const field = 'spec.serviceDiscovery.serviceNames';
  const address = `the object has no Consul address; the MetricSource has the placeholder ${placeholder}`;
  const reads = `Consul is read at the end of each wave, not after each pod: ${passing} instances of each service must pass, and a service without instances does not block`;
  return {
    gates,
    source,
    findings: [
      report('RG7005', field, address, 'write the address of your Consul, and its token if it needs one'),
      report('RG7003', field, reads, 'to let such a service block, remove noData: pass; after you scale, update passing'),
    ],
  };
}

function gateDocument({ name, consul }: DiscoveryGate, source: string): unknown {
  return { name, every: '15s', failureLimit: 0, noData: 'pass', consul: { source, ...consul } };
}

interface Notification {
  /** The channel and its events; absent if the value cannot be converted. */
  readonly receiver?: { readonly channel: NeededDocument; readonly events: readonly string[] };
  readonly findings: readonly Finding[];
}

const slackSecret = { name: 'slack', key: 'token' } as const;
const callbackSecret = { name: 'bedrock-callback', key: 'signing-key' } as const;
const slackId = /^[CDG][A-Z0-9]{6,30}$/;

/** Returns the NotificationChannel for Slack. It needs a channel ID: a name can be reassigned, and only Slack can resolve it. */
function readSlack(object: ForeignObject, channel: string): readonly Notification[] {
  if (channel === '') return [];
  const report = reporterFor(object);
  if (!slackId.test(channel)) {
    const message = `the Slack channel ${channel} is a name, but a NotificationChannel needs a channel ID; no Slack message is sent`;
    const hint =
      'write a NotificationChannel with the ID that Slack shows in the details of the channel, and name it in spec.notify of the group';
    return [{ findings: [report('RG7005', 'spec.channel', message, hint)] }];
  }
  const needed: NeededDocument = {
    kind: 'NotificationChannel',
    key: `slack ${channel}`,
    base: `slack-${channel.toLowerCase()}`,
    spec: { slack: { token: slackSecret, channel } },
    namespace: object.namespace,
  };
  const message = `the NotificationChannel reads its token from the Secret ${slackSecret.name} of the agent's namespace`;
  const hint = `store the bot token there under the key ${slackSecret.key}`;
  const events = ['started', 'waiting', 'failed', 'completed'];
  return [{ receiver: { channel: needed, events }, findings: [report('RG7004', 'spec.channel', message, hint)] }];
}

function readCallback(object: ForeignObject, text: string): readonly Notification[] {
  if (text === '') return [];
  const report = reporterFor(object);
  const field = 'spec.bapi.bapiUrl';
  const address = addressOf(text);
  if (address === undefined || address.url.startsWith('http:')) {
    const hint = 'write a NotificationChannel with an https address, and name it in spec.notify of the group';
    return [{ findings: [report('RG7005', field, `${field} is not an https address; no callback is sent`, hint)] }];
  }
  const channel: NeededDocument = {
    kind: 'NotificationChannel',
    key: `callback ${address.url}`,
    base: slug(address.host, 54) || 'callback',
    spec: { callback: { url: address.url, signingKey: callbackSecret } },
    namespace: object.namespace,
  };
  const message = `callbacks have another body than before, and the key in the Secret ${callbackSecret.name} of the agent's namespace signs them`;
  const hint = `store a random text there under the key ${callbackSecret.key}, and adapt the receiver to the body in docs/notifications.md`;
  const omitted = 'user, query and fragment of the address are omitted';
  return [
    {
      receiver: { channel, events: ['failed', 'completed'] },
      findings: [
        report('RG7004', field, message, hint),
        ...(address.hasUser || address.hasQuery ? [report('RG7002', field, omitted)] : []),
      ],
    },
  ];
}
