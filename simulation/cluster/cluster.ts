// Creates the initial objects of a simulation and starts the models that act on the API server: controllers, kubelets, nodes and people.

import { prepareEndpoint } from '../objects.ts';
import { between, draw, streamOf } from '../random.ts';
import {
  type ClusterEvent,
  type GroupObjects,
  type GroupShape,
  isByPeople,
  isDefinedLater,
  letterOf,
  type PeopleEvent,
  type PolicyState,
  persons,
  type Scenario,
  traitsOfShape,
} from '../scenario.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import { Accidents } from './accidents.ts';
import { type Admission, admitAll } from './admitted.ts';
import { startDisruptionController } from './budgets.ts';
import { Client } from './client.ts';
import { Kubelets } from './kubelet.ts';
import { Nodes, type NodesOptions } from './nodes.ts';
import { gitOpsTool, People } from './people.ts';
import { createPinWebhook, type PodAdmitted } from './pin-webhook.ts';
import { type ReplicaSource, replicaSources, resourceOfKind, withReplicas } from './replica-origins.ts';
import { Requests } from './requests.ts';
import { podOf, revisionOf, StatefulSetController } from './statefulset-controller.ts';
import {
  controllerActor,
  isNamedAfter,
  podFacts,
  replicasOf,
  revisionName,
  revisionResource,
  specOf,
  statefulSetResource,
} from './workload.ts';
import type { GeneratedParts, World } from './world.ts';

interface ClusterModelOptions extends Pick<World, 'server' | 'scheduler' | 'wallMs'> {
  readonly scenario: Scenario;
  /** Receives each new pod before the webhook changes it; without the webhook, it is never called. */
  readonly admitted?: (pod: PodAdmitted) => void;
  /** Asks the webhooks about deletions and evictions of pods; absent without webhooks. */
  readonly admission?: Pick<Admission, 'ask' | 'setDelay'> | undefined;
  /** Absent for a group of a user. */
  readonly generated?: GeneratedParts | undefined;
  /** Called after each change of the policy directory. */
  readonly directoryChanged?: (state: PolicyState) => void;
  /** Receives timeline entries, such as ('people', 'roll to app:2') or ('cluster', 'ingester-zone-a-1 fails for 40 s'). */
  readonly report: (who: string, what: string) => void;
}

export interface PodCall {
  readonly method: 'POST' | 'DELETE';
  /** `POD.SERVICE.NAMESPACE.svc...`, with or without a port. */
  readonly host: string;
  readonly path: string;
}

export interface PodReply {
  readonly status: number;
  readonly body: string;
  readonly uid: string;
  readonly pod: string;
  readonly namespace: string;
}

export interface WantedStatefulSet {
  readonly statefulSet: string;
  readonly image: string;
  readonly images: readonly string[];
  readonly replicas: number;
}

export type ClusterModel = ReturnType<typeof startCluster>;

/** Creates the groups with pods that have run for at least an hour, and starts the models around them. */
export function startCluster(options: ClusterModelOptions) {
  const { server, scheduler, wallMs, scenario, admitted, admission, report, generated, directoryChanged = () => undefined } = options;
  const { seed, group: shape, given } = scenario;
  const admit = admission?.ask ?? admitAll;
  const groups = groupsOf(scenario, generated);
  const world: World = { server, scheduler, wallMs, seed };
  const zones = [...new Set(groups.flatMap(({ objects }) => objects.statefulSets.map((_, index) => letterOf(index))))];
  const sets = groups.flatMap(({ objects }) => objects.statefulSets.map((name, index) => ({ name, zone: letterOf(index) })));
  const zoneOf = (pod: string): string => sets.find(({ name }) => isNamedAfter(pod, name))?.zone ?? 'a';
  const { nodes, kubelets, endpoints } = startMachines(world, shape, { zones, zoneOf, admit });
  for (const { objects, sources } of groups) {
    begin({
      ...world,
      namespace: objects.namespace,
      objects: withReplicas(objects, sources),
      adopt: (pod, sinceMs) => kubelets.adopt(pod, sinceMs),
      placeFor: (pod, taken) => nodes.placeFor(zoneOf(pod), taken),
    });
  }
  const pinned = groups.filter((one) => traitsOfShape(one.shape).pinsPods).map(({ objects }) => objects);
  const webhook = pinned.length === 0 ? undefined : createPinWebhook({ server, groups: pinned, admitted: (pod) => admitted?.(pod) });
  const controller = new StatefulSetController({ ...world, ...(webhook === undefined ? {} : { admit: webhook.admit }) });
  const disruptions = startDisruptionController(world);
  server.observe({
    committed: (commit) => {
      for (const model of [kubelets, nodes, controller, disruptions]) model.hear(commit);
    },
  });
  const models = { kubelets, nodes, controller, disruptions, webhook, ...(shape.webhooks === true ? { admission } : {}) };
  const start = (group: BegunGroup) =>
    startGroup({ world: { ...world, seed: group.seed }, group, admission, models, report, generated, directoryChanged });
  const [firstGroup, ...otherGroups] = groups;
  const started = [start(firstGroup), ...otherGroups.map(start)] as const;
  if (given !== undefined) started[0].people.apply(given.changes);

  return {
    ...started[0].view,
    /** The group of the scenario, then the others. */
    groups: started.map(({ view }) => view),
    policyDirectory: started[0].policies?.directory ?? { read: async () => groups[0].objects.policies, watch: () => () => undefined },
    /** Performs or begins the event of a group. Returns false if the event has no effect, for example because the pod is absent. */
    happen: (event: PeopleEvent | ClusterEvent, index = 0): boolean => {
      const group = started[index];
      return group !== undefined && !group.view.isOver() && group.happen(event);
    },
    /** Ends all accidents, drains and pauses. Replaces broken images, and restores members and update strategies. */
    heal: (): void => {
      for (const { accidents } of started) accidents.heal();
      for (const { people, requests } of started.filter(({ view }) => !view.isOver())) {
        people.heal();
        if (given === undefined || webhook !== undefined) requests.heal(given === undefined ? persons : []);
      }
    },
    /** Returns the answer of the pod when the call arrives; undefined if the pod does not listen. */
    podAnswer: endpoints.answer,
    preparedPods: endpoints.prepared,
  };
}

interface BegunGroup {
  readonly seed: number;
  readonly shape: GroupShape;
  /** The initial objects, and the RolloutGroup that people create later. */
  readonly objects: GroupObjects;
  readonly definition: readonly Json[];
  readonly sources: readonly ReplicaSource[];
  /** False for objects and policies of a user. */
  readonly isGenerated: boolean;
}

/** The people and accidents of other groups have separate random streams. */
const otherSeed = 0x10000000;

function groupsOf(scenario: Scenario, generated: GeneratedParts | undefined): readonly [BegunGroup, ...BegunGroup[]] {
  const { seed, group: shape, given, others = [] } = scenario;
  const isLater = isDefinedLater(scenario);
  const generate = (...about: Parameters<GeneratedParts['groupObjects']>): GroupObjects => {
    if (generated === undefined) throw new Error('only generated groups can be played without the objects of a user');
    return generated.groupObjects(...about);
  };
  const complete: GroupObjects = given ?? generate(shape, isLater);
  const definition = isLater ? complete.objects.filter(isRolloutGroup) : [];
  const objects = { ...complete, objects: complete.objects.filter((object) => !definition.includes(object)) };
  return [
    { seed, shape, objects, definition, sources: replicaSources(complete), isGenerated: given === undefined },
    ...others.map((other, index): BegunGroup => {
      const ofOther = generate(other.group, false, other);
      const sources = replicaSources(ofOther);
      return { seed: seed + otherSeed * (index + 1), shape: other.group, objects: ofOther, definition: [], sources, isGenerated: true };
    }),
  ];
}

interface GroupInput
  extends Pick<ClusterModelOptions, 'admission' | 'generated' | 'report'>,
    Required<Pick<ClusterModelOptions, 'directoryChanged'>> {
  readonly world: World;
  readonly group: BegunGroup;
  readonly models: Omit<ConstructorParameters<typeof Accidents>[0], keyof World | 'namespace' | 'group' | 'statefulSets' | 'report'>;
}

/** Creates the people of a group, their requests, and its accidents. Only in groups with `webhooks` do the webhooks review all of their writes. */
function startGroup({ world, group, admission, models, report, generated, directoryChanged }: GroupInput) {
  const { shape, objects, sources, definition, isGenerated } = group;
  const { namespace, name, statefulSets } = objects;
  const client = new Client(world.server, shape.webhooks === true ? admission?.ask : undefined);
  const common = { ...world, namespace, group: name, client, report: (what: string) => report('people', what) };
  const requests = new Requests(common);
  const policies = generated?.createPolicies({ ...common, shape, actor: gitOpsTool, directoryChanged });
  const people = new People({
    ...common,
    admit: admission?.ask ?? admitAll,
    requests,
    policies,
    wavesOf: (waves) => generated?.waveSpecs({ ...shape, waves }) ?? [],
    sources,
    definition,
    clearsBrokenPods: isGenerated && shape.kind === 'adopted',
    keepsBrokenSets: traitsOfShape(shape).lowersPartition,
    approves: shape.rules?.find(({ kind }) => kind === 'plan')?.approves,
  });
  const accidents = new Accidents({ ...world, ...models, namespace, group: name, statefulSets, report: (what) => report('cluster', what) });
  const happen = (event: PeopleEvent | ClusterEvent): boolean => (isByPeople(event) ? people.happen(event) : accidents.happen(event));
  /** Returns whether the namespace was deleted. Then people want nothing more. */
  const isOver = (): boolean => world.server.isTerminating(namespace);
  const view = {
    namespace,
    name,
    statefulSets,
    shape,
    isOver,
    wanted: (): readonly WantedStatefulSet[] => (isOver() ? [] : people.wanted()),
  };
  return { view, people, requests, policies, accidents, happen };
}

function isRolloutGroup({ kind }: Json): boolean {
  return kind === 'RolloutGroup';
}

/** Starts the nodes, their kubelets, and the prepare endpoints of the pods on them. */
function startMachines(
  world: World,
  { startMs, drainMs, kind, webhooks, replaceUnreadySeconds }: GroupShape,
  { zones, zoneOf, admit }: Pick<NodesOptions, 'zones' | 'zoneOf' | 'admit'>,
) {
  const { server, wallMs, seed } = world;
  const nodes = new Nodes({ ...world, zones: [...new Set(['a', ...zones])], zoneOf, admit, isBack: (node) => kubelets.nodeIsBack(node) });
  const kubelets: Kubelets = new Kubelets({
    ...world,
    startMs,
    drainMs,
    hangs: replaceUnreadySeconds !== undefined,
    isNodeLost: (node) => nodes.isLost(node),
    restarted: (place, pod) => endpoints.restarted(place, pod),
  });
  // True if DNS also resolves the names of unready pods (`publishNotReadyAddresses`).
  const areUnreadyFound = draw(seed, 'pods are found before they are ready') < 0.5;
  const endpoints = createPodEndpoints({
    wallMs,
    isKeptOnVolume: draw(seed, 'preparation is kept on the volume') < 0.5,
    listens: (place, pod) => {
      const uid = kubelets.listens(place, pod);
      return uid !== undefined && (areUnreadyFound || kubelets.isReady(uid)) ? uid : undefined;
    },
    // As in grafana/rollout-operator, a pod stays prepared if its webhook dies before the answer.
    mayStay: (path) => kind === 'adopted' && webhooks === true && path === prepareEndpoint.path,
    pods: () => server.list('pods').map(podFacts),
  });
  return { nodes, kubelets, endpoints };
}

interface StatefulSetOptions extends Pick<World, 'server' | 'wallMs' | 'seed'> {
  /** Returns a node for the pod, given the nodes already assigned. */
  readonly placeFor: (pod: string, taken: readonly string[]) => string | undefined;
  /** Marks the pod as ready since that wall-clock time. */
  readonly adopt: (pod: ModelObject, sinceMs: number) => void;
}

const administrator: Actor = { user: 'kubernetes-admin' };

const hourMs = 3_600_000;

function begin(options: StatefulSetOptions & { readonly objects: readonly Json[]; readonly namespace: string }): void {
  const { server, objects, namespace } = options;
  const taken: string[] = [];
  for (const object of objects) {
    const { status, metadata, ...rest } = object as Json & { readonly metadata: Json; readonly status?: Json };
    const place = { namespace, ...metadata };
    const resource = resourceOfKind(`${object['apiVersion']}`, `${object['kind']}`);
    const created = server.create(administrator, resource, { ...rest, metadata: place });
    if (resource === statefulSetResource) beginStatefulSet(created, taken, options);
    else if (status !== undefined)
      server.change(
        administrator,
        { resource, namespace: created.metadata.namespace ?? '', name: created.metadata.name },
        { status },
        'status',
      );
  }
}

/** Creates the revision and the pods of a stored StatefulSet, and its status, as if it had run for an hour. */
export function beginStatefulSet(set: ModelObject, taken: string[], { server, wallMs, seed, placeFor, adopt }: StatefulSetOptions): void {
  const { namespace = '', name } = set.metadata;
  const { ordinals, template = {} } = specOf(set);
  const revision = revisionName(set);
  const replicas = replicasOf(set);
  const first = ordinals?.start ?? 0;
  server.create(controllerActor, revisionResource, revisionOf(set, revision, 1));
  for (let ordinal = first; ordinal < first + replicas; ordinal += 1) {
    const pod = podOf(set, { ordinal, revision, template });
    const nodeName = placeFor(`${name}-${ordinal}`, taken);
    taken.push(nodeName ?? '');
    const created = server.create(controllerActor, 'pods', { ...pod, spec: { ...(pod['spec'] as Json), nodeName } });
    const ageMs = hourMs + between(streamOf(seed, `age of ${namespace}/${name}-${ordinal}`), 0, 600_000);
    adopt(created, wallMs() - ageMs);
  }
  const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas, currentReplicas: replicas, updatedReplicas: replicas };
  const status = {
    observedGeneration: set.metadata.generation ?? 1,
    ...counts,
    currentRevision: revision,
    updateRevision: revision,
    collisionCount: 0,
  };
  server.change(controllerActor, { resource: statefulSetResource, namespace, name }, { status }, 'status');
}

interface EndpointOptions {
  readonly wallMs: () => number;
  /** True if the preparation of a pod survives a restart and a downscale, because the pod stores it on a volume that is retained. */
  readonly isKeptOnVolume: boolean;
  /** Returns the UID of the pod if it listens. */
  readonly listens: (namespace: string, pod: string) => string | undefined;
  /** Returns whether a preparation on this path may stay after all. */
  readonly mayStay: (path: string) => boolean;
  readonly pods: () => readonly { readonly uid: string; readonly namespace: string; readonly name: string }[];
}

/** Answers prepare calls: a POST starts a preparation and returns its start in seconds, a DELETE ends the preparation. */
function createPodEndpoints({ wallMs, isKeptOnVolume, listens, mayStay, pods }: EndpointOptions) {
  /** The start of each preparation in Unix seconds, by pod and path. */
  const preparations = new Map<string, Map<string, number>>();

  const answer = ({ method, host, path }: PodCall): PodReply | undefined => {
    const [pod = '', , namespace = ''] = host.split('.');
    const uid = listens(namespace, pod);
    if (uid === undefined) return undefined;
    const key = `${namespace}/${pod}`;
    const since = preparations.get(key) ?? new Map<string, number>();
    const identity = { uid, pod, namespace };
    if (method === 'DELETE') {
      since.delete(path);
      if (since.size === 0) preparations.delete(key);
      return { status: 200, body: '', ...identity };
    }
    const timestamp = since.get(path) ?? Math.floor(wallMs() / 1000);
    since.set(path, timestamp);
    preparations.set(key, since);
    return { status: 200, body: JSON.stringify({ timestamp }), ...identity };
  };
  return {
    answer,
    /** Called when an accident ends the container of a pod, or when the pod is removed. */
    restarted: (namespace: string, pod: string): void => {
      if (!isKeptOnVolume) preparations.delete(`${namespace}/${pod}`);
    },
    prepared: (): readonly string[] =>
      pods()
        .filter(({ namespace, name }) => [...(preparations.get(`${namespace}/${name}`)?.keys() ?? [])].some((path) => !mayStay(path)))
        .map(({ uid }) => uid),
  };
}
