// Converts StatefulsetRollouts of bedrock.operator.slack.com: an embedded StatefulSet, a percentage of its pods, gates and notifications.
import { z } from 'zod';
import { formatDuration } from '../duration.ts';
import type { Finding } from '../findings/finding.ts';
import { apiVersion } from '../schema/kinds.ts';
import { isRecord, valueAt } from '../schema/schema-walk.ts';
import {
  type ForeignObject,
  foreignFinding,
  metadataFindings,
  type Reading,
  type Request,
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

/** A gate without the name of its source. */
interface DiscoveryGate {
  readonly name: string;
  /** Name of the requested source. */
  readonly key: string;
  readonly consul: Readonly<Record<string, unknown>>;
  readonly every: string;
  readonly failureLimit: 0;
  readonly noData: 'pass';
}

/** Placeholder for a missing address. Names in `.invalid` never resolve (RFC 2606). */
const placeholder = 'https://consul.invalid:8501';
const everyMs = 15_000;

/**
 * A gate for each service, which waits until as many instances pass as there are pods. A service that does not exist holds nothing, as there.
 */
function discoveryOf(
  object: ForeignObject,
  input: { readonly datacenter: string | undefined; readonly services: readonly string[]; readonly replicas: number },
): { readonly gates: readonly DiscoveryGate[]; readonly wishes: readonly Request[]; readonly findings: readonly Finding[] } {
  const services = [...new Set(input.services)];
  const { datacenter, replicas } = input;
  if (services.length === 0) return { gates: [], wishes: [], findings: [] };
  const path = ['spec', 'serviceDiscovery', 'serviceNames'];
  const key = 'consul';
  const names = services.map((service) => slug(service, 54) || 'service');
  const gates = services.map((service, index): DiscoveryGate => {
    const name = names[index] ?? service;
    const isUnique = names.filter((other) => other === name).length === 1;
    return {
      name: isUnique ? name : `${name}-${shortHash(service)}`,
      key,
      consul: { service, ...(datacenter ? { datacenter } : {}), passing: replicas },
      every: '15s',
      failureLimit: 0,
      noData: 'pass',
    };
  });
  const wish: Request = {
    kind: 'MetricSource',
    key,
    base: 'consul',
    spec: { consul: { url: placeholder } },
    namespace: object.namespace,
    everyMs,
  };
  const findings = [
    foreignFinding(object, 'RG7005', path, {
      message: `the object has no Consul address; the MetricSource has the placeholder ${placeholder}`,
      hint: 'write the address of your Consul, and its token if it needs one',
    }),
    foreignFinding(object, 'RG7003', path, {
      message: `Consul is asked at the end of each wave, and not after each pod: ${replicas} instances of each service must pass, and a service without instances holds nothing`,
      hint: 'remove noData: pass to have it hold; write passing again after you have scaled',
    }),
  ];
  return { gates, wishes: [wish], findings };
}

interface NotifyReading {
  readonly wishes: readonly Request[];
  readonly uses: readonly { readonly key: string; readonly events: readonly string[] }[];
  readonly findings: readonly Finding[];
}

const slackSecret = { name: 'slack', key: 'token' } as const;
const callbackSecret = { name: 'bedrock-callback', key: 'signing-key' } as const;
const slackId = /^[CDG][A-Z0-9]{6,30}$/;

function notifyOf(
  object: ForeignObject,
  { channel, callbackUrl }: { readonly channel: string | undefined; readonly callbackUrl: string | undefined },
): NotifyReading {
  const parts = [...(channel ? [slackOf(object, channel)] : []), ...(callbackUrl ? [callbackOf(object, callbackUrl)] : [])];
  return {
    wishes: parts.flatMap((part) => part.wishes),
    uses: parts.flatMap((part) => part.uses),
    findings: parts.flatMap((part) => part.findings),
  };
}

/** A message goes to the ID of a channel. Its name alone may be another channel tomorrow, and only Slack knows what it is today. */
function slackOf(object: ForeignObject, channel: string): NotifyReading {
  const path = ['spec', 'channel'];
  if (!slackId.test(channel)) {
    const message = `the Slack channel ${channel} is a name, and a NotificationChannel needs a channel ID; no notification is sent`;
    const hint =
      'write a NotificationChannel with the ID that Slack shows in the details of the channel, and name it in spec.notify of the group';
    return { wishes: [], uses: [], findings: [foreignFinding(object, 'RG7005', path, { message, hint })] };
  }
  const key = `slack ${channel}`;
  const wish: Request = {
    kind: 'NotificationChannel',
    key,
    base: `slack-${channel.toLowerCase()}`,
    spec: { slack: { token: slackSecret, channel } },
    namespace: object.namespace,
  };
  const message = `the NotificationChannel reads its token from the Secret ${slackSecret.name} of the agent's namespace`;
  const hint = `put the bot token there under the key ${slackSecret.key}`;
  const events = ['started', 'waiting', 'failed', 'completed'];
  return { wishes: [wish], uses: [{ key, events }], findings: [foreignFinding(object, 'RG7004', path, { message, hint })] };
}

function callbackOf(object: ForeignObject, text: string): NotifyReading {
  const path = ['spec', 'bapi', 'bapiUrl'];
  const address = addressOf(text);
  if (address === undefined || address.url.startsWith('http:')) {
    const message = 'spec.bapi.bapiUrl is not an https address; no callback is sent';
    const hint = 'write a NotificationChannel with an https address, and name it in spec.notify of the group';
    return { wishes: [], uses: [], findings: [foreignFinding(object, 'RG7005', path, { message, hint })] };
  }
  const key = `callback ${address.url}`;
  const wish: Request = {
    kind: 'NotificationChannel',
    key,
    base: slug(address.host, 54) || 'callback',
    spec: { callback: { url: address.url, signingKey: callbackSecret } },
    namespace: object.namespace,
  };
  const left = address.hasUser || address.hasQuery ? ['user, query and fragment of the address are left out'] : [];
  const message = `callbacks are signed with the key in the Secret ${callbackSecret.name} of the agent's namespace, and have another body`;
  const hint = `put a random text there under the key ${callbackSecret.key}, and teach the receiver the body in docs/notifications.md`;
  return {
    wishes: [wish],
    uses: [{ key, events: ['failed', 'completed'] }],
    findings: [
      foreignFinding(object, 'RG7004', path, { message, hint }),
      ...left.map((part) => foreignFinding(object, 'RG7002', path, { message: part })),
    ],
  };
}
