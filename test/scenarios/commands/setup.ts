// Commands that build the cluster and its policies: group, statefulsets, manifests, policy, withdraw.
import { parseAllDocuments } from 'yaml';
import { snapshotFromManifests } from '../../../engine/observe/manifests.ts';
import type { StatefulSetView } from '../../../engine/snapshot.ts';
import { createWorld } from '../../../engine/world/world.ts';
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import { loadPolicies } from '../../../policies/load.ts';
import { resolvePolicies } from '../../../policies/resolve/resolve.ts';
import { type Commands, word } from '../command.ts';
import { rawStatefulSet } from '../raw-statefulset.ts';
import { namespace, nowMs, policiesNow, type Stage } from '../stage.ts';
import type { Call } from '../transcript.ts';

/** Every pod runs this revision until `set-template` names another. */
const firstRevision = 'r1';

export const setupCommands: Commands = {
  /** `group adopted zones=3 replicas=3`: StatefulSets as grafana/rollout-operator finds them. */
  group: (stage, call) => {
    const name = call.options['name'] ?? 'ingester';
    const zones = zoneLetters(call.options['zones'] ?? '3');
    addObjects(
      stage,
      zones.map((zone, index) => adoptedSet(call, name, { zone, before: index === 0 ? undefined : zones[index - 1], first: zones[0] })),
    );
    return describeGroups(stage);
  },
  /** `statefulsets replicas=3`, with `partition=1000000` or `min-ready=60`: one for each zone of the native groups that has none. */
  statefulsets: (stage, call) => {
    const present = new Set(stage.world.snapshot.statefulSets.map(({ name }) => name));
    const missing = policiesNow(stage).groups.flatMap(({ zones }) => zones.filter(({ statefulSet }) => !present.has(statefulSet)));
    addObjects(
      stage,
      missing.map(({ name, statefulSet }) =>
        plainSet(statefulSet, Number(call.options[name] ?? call.options['replicas'] ?? 3), call.options),
      ),
    );
    return describeGroups(stage);
  },
  /** Kubernetes objects as YAML. */
  manifests: (stage, call) => {
    addObjects(
      stage,
      parseAllDocuments(call.body).map((document) => document.toJS() as unknown),
    );
    return describeGroups(stage);
  },
  /** `policy RolloutGroup ingester`, with the spec below it. */
  policy: (stage, call) => {
    const [kind, name] = [word(call, 0, 'a kind'), word(call, 1, 'a name')];
    const spec = call.body.split('\n').map((line) => `  ${line}`);
    const text = ['apiVersion: rollout-group.dev/v1alpha1', `kind: ${kind}`, `metadata: { name: ${name} }`, 'spec:', ...spec].join('\n');
    const loaded = loadPolicies([{ name: 'policy.yaml', text: `${text}\n` }], { namespace });
    for (const document of loaded.documents) stage.documents.set(`${kind}/${name}`, document);
    const { findings } = resolvePolicies([...stage.documents.values()], { statefulSets: stage.world.snapshot.statefulSets });
    return [...loaded.findings, ...findings].map(({ code, message }) => `${code}: ${message}`);
  },
  /** `withdraw RolloutException/name`: the object is deleted. */
  withdraw: (stage, call) => {
    const name = word(call, 0, 'kind/name');
    if (!stage.documents.delete(name)) throw new Error(`there is no ${name}`);
    return [];
  },
};

function zoneLetters(text: string): readonly string[] {
  return /^\d+$/.test(text) ? [...'abcdefghij'].slice(0, Number(text)) : text.split(',');
}

interface Position {
  readonly zone: string;
  readonly before: string | undefined;
  readonly first: string | undefined;
}

function adoptedSet({ options }: Call, name: string, { zone, before, first }: Position): unknown {
  const leader = options['follow'] === 'chain' ? before : options['follow'] === 'leader' && before !== undefined ? first : undefined;
  const [kind, source] = (options['mirror'] ?? '').split('/');
  const labels = {
    'rollout-group': name,
    ...(options['min-time'] === undefined ? {} : { 'grafana.com/min-time-between-zones-downscale': options['min-time'] }),
    ...(options['prepare'] === undefined ? {} : { 'grafana.com/prepare-downscale': 'true' }),
  };
  const annotations = {
    ...(options['max-unavailable'] === undefined ? {} : { 'rollout-max-unavailable': options['max-unavailable'] }),
    ...(leader === undefined ? {} : { 'grafana.com/rollout-downscale-leader': `${name}-zone-${leader}` }),
    ...(options['prepare'] === undefined
      ? {}
      : { 'grafana.com/prepare-downscale-http-path': options['prepare'], 'grafana.com/prepare-downscale-http-port': '8080' }),
    ...(source === undefined ? {} : mirrorAnnotations(kind ?? '', source)),
    ...(options['delayed'] === undefined ? {} : delayedAnnotations(options['delayed'])),
  };
  const set = plainSet(`${name}-zone-${zone}`, Number(options['replicas'] ?? 3));
  const template = { metadata: { labels: { name: set.metadata.name, 'rollout-group': name } } };
  return { ...set, metadata: { ...set.metadata, labels, annotations }, spec: { ...set.spec, template } };
}

function mirrorAnnotations(kind: string, name: string): Readonly<Record<string, string>> {
  return {
    'grafana.com/rollout-mirror-replicas-from-resource-name': name,
    'grafana.com/rollout-mirror-replicas-from-resource-kind': kind,
    'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
  };
}

function delayedAnnotations(delay: string): Readonly<Record<string, string>> {
  return {
    'grafana.com/rollout-delayed-downscale': delay,
    'grafana.com/rollout-prepare-delayed-downscale-url': 'http://pod:8080/ingester/prepare-delayed-downscale',
  };
}

/** With a partition the StatefulSet has a rolling update, which goes no further than it. */
function plainSet(name: string, replicas: number, options: Call['options'] = {}) {
  const { partition, 'min-ready': minReadySeconds = 0 } = options;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { namespace, name, labels: {}, annotations: {} },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      minReadySeconds: Number(minReadySeconds),
      updateStrategy:
        partition === undefined ? { type: 'OnDelete' } : { type: 'RollingUpdate', rollingUpdate: { partition: Number(partition) } },
      template: { metadata: { labels: { name } } },
    },
  };
}

/** Adds objects to the cluster; StatefulSets come with all their pods, ready and at the first revision. */
function addObjects(stage: Stage, objects: readonly unknown[]): void {
  const { groups } = policiesNow(stage);
  const status = { updateRevision: firstRevision };
  const named = objects.map((object) => (isStatefulSet(object) ? { ...object, status } : object));
  const { snapshot: added, problems } = snapshotFromManifests(named, {
    nowMs: nowMs(stage),
    namespace,
    groups: [...groups, ...adoptedOf(stage, named)],
  });
  if (problems.length > 0) throw new Error(problems.join('; '));
  const { snapshot, assumptions, quantile } = stage.world;
  const both = {
    ...snapshot,
    statefulSets: [...snapshot.statefulSets, ...added.statefulSets],
    pods: [...snapshot.pods, ...added.pods],
    zoneBudgets: [...listOf(snapshot.zoneBudgets), ...listOf(added.zoneBudgets)],
    podBudgets: [...listOf(snapshot.podBudgets), ...listOf(added.podBudgets)],
    replicaSources: [...snapshot.replicaSources, ...added.replicaSources],
  };
  stage.world = added.statefulSets.length === 0 ? { ...stage.world, snapshot: both } : createWorld(both, assumptions, quantile);
}

function adoptedOf(stage: Stage, objects: readonly unknown[]) {
  const known = stage.world.snapshot.statefulSets.map((set: StatefulSetView) => rawStatefulSet(set));
  return resolvePolicies([], { adoption: adoptGroups([...known, ...objects], { namespace }) }).bundle.groups;
}

function listOf<Item>(known: readonly Item[] | { readonly unknown: string }): readonly Item[] {
  return 'unknown' in known ? [] : known;
}

function isStatefulSet(object: unknown): object is object {
  return typeof object === 'object' && object !== null && Reflect.get(object, 'kind') === 'StatefulSet';
}

/** `ingester: a 3, b 3, c 3`, then what adoption has to say. */
function describeGroups(stage: Stage): readonly string[] {
  const { statefulSets } = stage.world.snapshot;
  const replicas = new Map(statefulSets.map((set) => [set.name, set.replicas]));
  const groups = policiesNow(stage).groups.map(({ name, zones }) => {
    const members = zones.map((zone) => `${zone.name} ${replicas.get(zone.statefulSet) ?? 'missing'}`);
    return `${name}: ${members.join(', ')}`;
  });
  const { findings } = adoptGroups(statefulSets.map(rawStatefulSet));
  return [...groups, ...findings.map(({ message }) => `finding: ${message}`)];
}
