// Defines a scenario, the input of a simulation: a group, events and faults as plain data that can be stored, shrunk and repeated.
import * as z from 'zod';
import { type StrategyTraits, strategyNames, strategyTraits } from '../policies/strategies.ts';
import { type Data, type FaultClass, faultClasses, ms, placedFault } from './faults/fault.ts';

const letter = z.string().regex(/^[a-z]$/, 'expected one lower-case letter');
const ordinal = z.number().int().min(0);
/** A simulation has each pod as an object, so the number is limited. */
const replicas = z.number().int().min(0).max(1000);

/** A wave. Without `pods` and `percent` it includes all pods of its zones. */
const wave = z.strictObject({
  zones: z.array(letter).min(1),
  pods: z.number().int().min(0).exactOptional(),
  percent: z.number().int().min(1).max(99).exactOptional(),
  soakSeconds: z.number().int().min(1).exactOptional(),
  /** The sides of the wave on which the gate of the group is checked. */
  gates: z.array(z.enum(['before', 'after'])).exactOptional(),
  /** The sides of the wave that need an approval, and the number of people who must approve: 1 by default. */
  approvals: z.array(z.enum(['before', 'after'])).exactOptional(),
  approvers: z.number().int().min(1).max(2).exactOptional(),
});
export type WaveShape = Data<typeof wave>;

const seconds = z.number().int().min(0);

/** A window of the RolloutPolicy of the group, with either ranges or a schedule. */
const windowShape = z.strictObject({
  kind: z.enum(['allow', 'deny']),
  actions: z.array(z.enum(['rollout', 'scaleDown'])).min(1),
  inFlight: z.enum(['finishPod', 'finishZone', 'finishAll']),
  /** The ranges, in seconds from the start. */
  ranges: z.array(z.strictObject({ from: seconds, to: seconds })).exactOptional(),
  /** Opens for `seconds` at each of the minutes 0 to 6 of the simulation that `everyMinutes` divides. */
  schedule: z.strictObject({ everyMinutes: z.number().int().min(2).max(30), seconds: seconds.min(1) }).exactOptional(),
});
export type WindowShape = Data<typeof windowShape>;

/** A rule of a RolloutPolicy of the group, which applies until a time in seconds from the start. */
const ruleShape = z.strictObject({
  /**
   * `early` blocks rollouts. `order` blocks rollouts of `zone` while `other` has outdated pods. `floor` blocks scale-downs below `replicas`.
   * `ask` blocks rollouts without an approval in the run. `plan` blocks rollouts without such an approval that differ from their
   * approved plan.
   */
  kind: z.enum(['early', 'order', 'floor', 'ask', 'plan']),
  effect: z.enum(['deny', 'hold']).exactOptional(),
  zone: letter.exactOptional(),
  other: letter.exactOptional(),
  replicas: replicas.exactOptional(),
  /** The template whose plan people write with each image: the new one, or the one before. Absent: they write no plan. */
  approves: z.enum(['new', 'old']).exactOptional(),
  until: seconds,
});
export type RuleShape = Data<typeof ruleShape>;

const groupShape = z.strictObject({
  /** `native`: a RolloutGroup object defines the group. `adopted`: labels and annotations of grafana/rollout-operator define it. */
  kind: z.enum(['native', 'adopted']),
  zones: z.number().int().min(1).max(5),
  podsPerZone: z.number().int().min(1).max(20),
  /** The pods of a zone that may be unavailable at once. */
  maxUnavailable: z.union([
    z.number().int().min(1),
    z.string().regex(/^\d+%$/, 'expected a number or a percentage') as unknown as z.ZodType<`${number}%`>,
  ]),
  minReadySeconds: z.number().int().min(0),
  podManagementPolicy: z.enum(['Parallel', 'OrderedReady']),
  /** `delete`: the agent deletes pods. `evict`: it evicts them, and each zone has a PodDisruptionBudget with `maxUnavailable`. */
  rotateBy: z.enum(['delete', 'evict']),
  /**
   * `own`: each zone has its own replicas. `leader`: the other zones follow zone a. `mirror`: all zones mirror a ReplicaTemplate.
   * `delayedMirror`: as `mirror`, and pods are prepared before their removal.
   */
  replicas: z.enum(['own', 'leader', 'mirror', 'delayedMirror']),
  delaySeconds: z.number().int().min(0),
  /** Pods prepare once more immediately before their removal, on another path. */
  prepares: z.literal(true).exactOptional(),
  betweenZonesSeconds: z.number().int().min(0),
  /** The approximate time until a deleted pod is gone. It differs between pods. */
  drainMs: ms,
  /** The approximate time until a created pod is ready. It differs between pods. */
  startMs: ms,
  strategy: z.enum(strategyNames).exactOptional(),
  /** `spec.disruption.maxUnavailable` of a native group. The webhooks of the agents then judge deletions and evictions by others. */
  disruption: z.number().int().min(1).exactOptional(),
  /** The webhooks of an installation review every request that their configurations name, also those of agents. */
  webhooks: z.literal(true).exactOptional(),
  /** Zone a has the label that forbids a decrease of its replicas; only groups with labels of grafana/rollout-operator and `webhooks`. */
  noDownscale: z.literal(true).exactOptional(),
  /** `spec.maxUnavailable` of a ZoneAwarePodDisruptionBudget for evictions; only groups with labels of grafana/rollout-operator and `webhooks`. */
  zoneBudget: z.number().int().min(1).exactOptional(),
  /** A gate of a native group, without `waves` after each zone. Its metric is good (`passing`), or sometimes bad during faults (`flipping`). */
  gate: z.enum(['passing', 'flipping']).exactOptional(),
  /** The number of failed readings that fails a run; without it no reading does. */
  gateFailureLimit: z.number().int().min(1).exactOptional(),
  /** The waves of a native group. */
  waves: z.array(wave).min(1).exactOptional(),
  minIntervalSeconds: z.number().int().min(1).exactOptional(),
  /** The deadline for progress, after which a run fails. */
  deadlineSeconds: z.number().int().min(1).exactOptional(),
  /** The time after which an unready pod may be replaced. Pods with a broken image then stay unready instead of crashing. */
  replaceUnreadySeconds: z.number().int().min(1).exactOptional(),
  /** A failed run is rolled back (`onFailure: rollback`), with the strategy `pinned`. */
  rollsBack: z.literal(true).exactOptional(),
  /** The windows in which pods are replaced and replicas decrease. */
  windows: z.array(windowShape).min(1).exactOptional(),
  /** The rules of the RolloutPolicy `guard`, each of another kind. */
  rules: z.array(ruleShape).min(1).exactOptional(),
  /** A run to the previous template waits for soaks too (`skipOnRollback: false`). */
  soaksOnReturn: z.literal(true).exactOptional(),
  /** A native group changes its replicas during a rollout too (`scaling.duringRollout: allow`). */
  scalesDuringRollout: z.literal(true).exactOptional(),
  /** The windows and rules are in the policy directory of the agents, and not in objects. */
  hasPolicyDirectory: z.literal(true).exactOptional(),
});
export type GroupShape = Data<typeof groupShape>;

export function traitsOfShape({ strategy }: Pick<GroupShape, 'strategy'>): StrategyTraits {
  return strategyTraits[strategy ?? 'onDelete'];
}

/** Returns the waves of a group; undefined without waves and gate. Waves without a gate of the group check no gate. */
export function wavesOfShape({ waves, gate, zones }: Pick<GroupShape, 'waves' | 'gate' | 'zones'>): readonly WaveShape[] | undefined {
  if (waves === undefined)
    return gate === undefined ? undefined : Array.from({ length: zones }, (_, index) => ({ zones: [letterOf(index)], gates: ['after'] }));
  const inZones = waves.map((one) => ({ ...one, zones: one.zones.filter((zone) => zone < letterOf(zones)) }));
  return inZones
    .filter((one) => one.zones.length > 0)
    .map(({ gates, ...rest }) => (gate === undefined || gates === undefined ? rest : { ...rest, gates }));
}

const json = z.record(z.string(), z.unknown());

const givenGroup = z.strictObject({
  namespace: z.string().min(1),
  name: z.string().min(1),
  /** The wall-clock time at the start in Unix milliseconds; 2026-01-15T12:00:00Z by default. */
  startMs: z.number().int().exactOptional(),
  /** The StatefulSets in the order of the zones. The first one is zone `a` of events. */
  statefulSets: z.array(z.string().min(1)).min(1).max(26),
  /** The initial objects: StatefulSets (their pods are ready), RolloutGroups, budgets, mirrored objects. */
  objects: z.array(json),
  policies: z.array(z.strictObject({ name: z.string(), text: z.string() })),
  /** The manifests that are applied one after the other at the start. */
  changes: z.array(json),
});
export type GivenGroup = Data<typeof givenGroup>;

/** The initial objects and their names. */
export type GroupObjects = Pick<GivenGroup, 'namespace' | 'name' | 'statefulSets' | 'objects' | 'policies'>;
export type GroupName = Pick<GroupObjects, 'namespace' | 'name'>;

interface EventKind {
  /** `people`: people and autoscalers. `cluster`: pods, nodes, controllers and the webhook. `process`: agents, servers and clocks. */
  readonly by: 'people' | 'cluster' | 'process';
  /** The fault class; absent for ordinary use. */
  readonly class?: FaultClass;
  readonly fields: z.ZodRawShape;
}

export const persons = ['alice', 'bob'] as const;
export type Person = (typeof persons)[number];
const personRequests = ['approve', 'reject', 'promote', 'abort', 'rollback', 'undo', 'retry'] as const;
export type PersonRequest = (typeof personRequests)[number];

/** The requests that a revoked right concerns: of the ledger, the Lease, actions, reads, or published state; `all`: of an expired token. */
export const rights = ['ledger', 'lease', 'act', 'read', 'publish', 'all'] as const;
export type Right = (typeof rights)[number];

/** The states of the policies of a group. The last two concern only a directory. */
export const policyStates = ['removed', 'invalid', 'truncated', 'unreadable'] as const;
export type PolicyState = 'whole' | (typeof policyStates)[number];

const onZone = { zone: letter };
const onPod = { zone: letter, ordinal };
/** The process is a letter, which the process keeps when it restarts. */
const onProcess = { process: letter };

const eventKinds = {
  /** Sets the image in the templates of `zones`, by default of all zones. Pods with an image `broken/...` never become ready. */
  setImage: { by: 'people', fields: { image: z.string().min(1), zones: z.array(letter).exactOptional() } },
  /** Changes the replicas at their source: the leader, the mirrored object, or each StatefulSet. */
  setReplicas: { by: 'people', fields: { replicas, zone: letter.exactOptional() } },
  /**
   * Submits a request about the published run, if the plugin would not refuse it. `undo` also writes the earlier templates, with `zone`
   * only that of the zone. With `isUnverified`, no requester is recorded, except by a webhook of the group.
   */
  request: {
    by: 'people',
    fields: {
      action: z.enum(personRequests),
      by: z.enum(persons),
      zone: letter.exactOptional(),
      isUnverified: z.literal(true).exactOptional(),
    },
  },
  /** Restarts all zones, or one zone: changes the annotation in the pod template that `restart` of the plugin changes. */
  restart: { by: 'people', fields: { zone: letter.exactOptional() } },
  /** Lets a GitOps tool write other waves into the RolloutGroup. */
  setWaves: { by: 'people', class: 'F18', fields: { waves: z.array(wave).min(1) } },
  /**
   * Changes the windows and rules for a time. `removed`: Git lacks them. `invalid`: the agents cannot use them. Only in a directory:
   * `truncated` files are half-written, and an `unreadable` directory cannot be read.
   */
  setPolicies: { by: 'people', class: 'F19', fields: { to: z.enum(policyStates), forMs: ms } },
  /** Creates an exception from a rule, by default from the windows, that ends after `forMs`, as the plugin does. */
  override: {
    by: 'people',
    fields: {
      by: z.enum(persons),
      forMs: ms,
      rule: z.string().min(1).exactOptional(),
      zone: letter.exactOptional(),
      podsAtMost: z.number().int().min(1).exactOptional(),
    },
  },
  /**
   * Lets a GitOps tool apply the manifests of all zones, or of one zone, by server-side apply: the template and the fields in `owns`, with
   * the replicas and the partition that the StatefulSet had at first. With `image`, Git has that image, else the requested one.
   */
  reapply: {
    by: 'people',
    class: 'F18',
    fields: {
      zone: letter.exactOptional(),
      image: z.string().min(1).exactOptional(),
      owns: z.array(z.enum(['replicas', 'partition'])),
      /** True if the tool takes the fields of other managers. Otherwise a conflict ends the apply. */
      isForced: z.boolean(),
    },
  },
  pause: { by: 'people', fields: {} },
  resume: { by: 'people', fields: {} },
  /** Creates the RolloutGroup. Until then no object defines the native group, and its StatefulSets have no partition. */
  defineGroup: { by: 'people', class: 'F18', fields: {} },
  /** Deletes the pod as `kubectl delete pod` does. No rule restricts this event or `scaleByHand`. */
  deletePod: { by: 'people', class: 'F17', fields: onPod },
  scaleByHand: { by: 'people', class: 'F17', fields: { ...onZone, replicas } },
  /**
   * Deletes the StatefulSet, with or without its pods, and recreates it under the same name. With `isAfterRollback`, people first wait until
   * the published run is a completed rollback.
   */
  recreateStatefulSet: {
    by: 'people',
    class: 'F18',
    fields: { ...onZone, isOrphaning: z.boolean(), afterMs: ms, isAfterRollback: z.literal(true).exactOptional() },
  },
  /** Removes the StatefulSet from the group, and adds it again. */
  leaveGroup: { by: 'people', class: 'F18', fields: { ...onZone, forMs: ms } },
  setStrategy: { by: 'people', class: 'F18', fields: { ...onZone, type: z.enum(['OnDelete', 'RollingUpdate']), forMs: ms } },
  podFails: { by: 'cluster', class: 'F17', fields: { ...onPod, forMs: ms } },
  podFlaps: { by: 'cluster', class: 'F15', fields: { ...onPod, times: z.number().int().min(1) } },
  podDies: { by: 'cluster', class: 'F17', fields: onPod },
  /** Makes pods start and drain slower by these factors. */
  slowKubelet: {
    by: 'cluster',
    class: 'F15',
    fields: { startFactor: z.number().positive(), drainFactor: z.number().positive(), forMs: ms },
  },
  stuckTerminating: { by: 'cluster', class: 'F15', fields: { ...onPod, forMs: ms } },
  nodeLost: { by: 'cluster', class: 'F15', fields: { ...onZone, forMs: ms } },
  /** Drains a node: evicts its pods one after the other. */
  nodeDrained: { by: 'cluster', class: 'F17', fields: onZone },
  controllerLags: { by: 'cluster', class: 'F16', fields: { delayMs: ms, forMs: ms } },
  /** Makes the StatefulSet controller use an old cache, so that it creates pods at the old revision. */
  controllerIsStale: { by: 'cluster', class: 'F16', fields: { forMs: ms } },
  /** Makes every call of a webhook fail, so that for example pods get the revision of the StatefulSet controller. */
  webhookAway: { by: 'cluster', class: 'F20', fields: { forMs: ms } },
  /** Delays the calls of all webhooks but the one on pod creation. The API server gives up after the timeout of the webhook. */
  webhookSlow: { by: 'cluster', class: 'F20', fields: { delayMs: ms, forMs: ms } },
  /**
   * Lets an agent of another version lead for a moment, and write the ledger. An `older` agent drops the fields that it does not know, a
   * `newer` one of the same major format adds fields, and one of the `next` major format writes a ledger that no agent here reads, for a time.
   */
  otherVersion: { by: 'cluster', class: 'F24', fields: { version: z.enum(['older', 'newer', 'next']), forMs: ms } },
  /** Deletes the namespace of the group for good: creations are refused, and the namespace controller deletes all objects. */
  terminateNamespace: { by: 'cluster', class: 'F25', fields: {} },
  crash: { by: 'process', class: 'F11', fields: { ...onProcess, restartAfterMs: ms } },
  stop: { by: 'process', fields: { ...onProcess, restartAfterMs: ms } },
  pauseProcess: { by: 'process', class: 'F12', fields: { ...onProcess, durationMs: ms } },
  jumpWallClock: { by: 'process', class: 'F14', fields: { ...onProcess, byMs: z.number().int() } },
  deleteLease: { by: 'process', class: 'F13', fields: {} },
  editLease: { by: 'process', class: 'F13', fields: {} },
  /** Makes a front end show no new state for this time. */
  frontEndLags: { by: 'process', class: 'F10', fields: { frontEnd: ordinal, forMs: ms } },
  /** Makes every request of the agents fail, because they reach no API server. */
  cutOff: { by: 'process', class: 'F10', fields: { forMs: ms } },
  /** Lets the process open no connection, as without free file descriptors: requests, calls to pods and queries fail. Open watches stay. */
  noConnections: { by: 'process', class: 'F23', fields: { ...onProcess, forMs: ms } },
  /** Makes the API server deny these requests of the agents with 403; with `all`, it denies every request with 401. */
  rightsRevoked: { by: 'process', class: 'F25', fields: { right: z.enum(rights), forMs: ms } },
  /** Ends every open watch of the front end. If `isCompacted`, its history is lost. */
  frontEndRestarts: { by: 'process', class: 'F10', fields: { frontEnd: ordinal, isCompacted: z.boolean() } },
} as const satisfies Readonly<Record<string, EventKind>>;

type Kinds = typeof eventKinds;

export type EventFields<Kind extends keyof Kinds> = keyof Kinds[Kind]['fields'] extends never
  ? unknown
  : Data<z.ZodObject<Kinds[Kind]['fields']>>;

type EventBy<By> = {
  [Kind in keyof Kinds]: Kinds[Kind]['by'] extends By ? { readonly kind: Kind } & EventFields<Kind> : never;
}[keyof Kinds];

/** Events of people and autoscalers (F17, F18). */
export type PeopleEvent = EventBy<'people'>;

/** Accidents of pods, nodes, controllers and the webhook (F15, F16, F17, F20). */
export type ClusterEvent = EventBy<'cluster'>;

/** One event. `atMs` counts virtual milliseconds from the start, and `zone` is a letter. */
export type ScenarioEvent = { readonly atMs: number } & EventBy<EventKind['by']>;

/** Returns whether the group of the scenario is defined only by an event. */
export function isDefinedLater({ events, given, group }: Pick<Scenario, 'events' | 'given' | 'group'>): boolean {
  return given === undefined && group.kind === 'native' && events.some(({ kind }) => kind === 'defineGroup');
}

/** Returns whether people or their autoscalers cause the event. */
export function isByPeople(event: ScenarioEvent | PeopleEvent | ClusterEvent): event is PeopleEvent & typeof event {
  return eventKinds[event.kind].by === 'people';
}

/** Returns whether the event affects only agents, their clocks, their Lease or API servers. */
export function isOfProcesses({ kind }: ScenarioEvent): boolean {
  return eventKinds[kind].by === 'process';
}

/** Returns the class of an event; undefined if it is no fault. The first `setImage` and the first `setReplicas` are no faults. */
export function classOfEvent({ kind }: ScenarioEvent, before: readonly ScenarioEvent[]): FaultClass | undefined {
  if (kind === 'setImage') return before.some((other) => other.kind === kind) ? 'F18' : undefined;
  if (kind === 'setReplicas') return before.some((other) => other.kind === kind) ? 'F17' : undefined;
  const { class: faultClass }: EventKind = eventKinds[kind];
  return faultClass;
}

const eventSchemas = Object.entries(eventKinds).map(([kind, { fields }]) => z.strictObject({ kind: z.literal(kind), atMs: ms, ...fields }));
const event = z.discriminatedUnion('kind', eventSchemas as [(typeof eventSchemas)[number]]) as unknown as z.ZodType<ScenarioEvent>;

const otherGroup = z.strictObject({
  namespace: z.string().min(1),
  name: z.string().min(1),
  group: groupShape,
  /** The events of the group in order of time: those of people, and accidents of its pods. */
  events: z.array(event),
});
export type OtherGroup = Data<typeof otherGroup>;

export const scenarioSchema = z.strictObject({
  /** The seed of all random numbers, for example of latencies and of the faults of `rates`. */
  seed: z.number().int().min(0),
  group: groupShape,
  /** The objects and policies of a user, which replace those that `group` describes. */
  given: givenGroup.exactOptional(),
  /** Further groups of the same agents and webhooks, each with another namespace or name. They have no gates. */
  others: z.array(otherGroup).min(1).exactOptional(),
  /** The number of agents. A dead process is restarted. */
  agents: z.number().int().min(1).max(5),
  /** The rate of each agent's clocks by letter: with `{ a: 1.2 }` the clocks of `a` run a fifth too fast. The default is 1. */
  clockRates: z.record(letter, z.number().positive()).exactOptional(),
  /** The time until which faults happen, in virtual milliseconds from the start. */
  safetyMs: ms,
  /** The time limit to converge and become quiet, in virtual milliseconds from `safetyMs`. */
  healingMs: ms,
  /** The time for which agents must write nothing but Leases at the end, in virtual milliseconds; 330 s by default. */
  quietMs: ms.exactOptional(),
  /** The events in order of time, all within `safetyMs`. */
  events: z.array(event),
  /** The probability of a fault at a place, by class. Crashes and pauses also depend on the site (faults/source.ts). */
  rates: z.partialRecord(z.enum(faultClasses), z.number().min(0).max(1)),
  /** The faults at named places, which happen when a process reaches the place. */
  faults: z.array(placedFault),
});

/** The complete input of a simulation. The same scenario gives the same simulation, to the byte. */
export type Scenario = Data<typeof scenarioSchema>;

/** Returns the letter of an index: `a` for 0. */
export function letterOf(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

/** Returns the letter of a process: `a` for `a2`. */
export function processLetter(process: string): string {
  return process.replace(/\d+$/, '');
}
