// Made-up histories for the judges of simulated runs: a group of three zones in a storage that does what a test says, and what the judges say to it.
import type { TurnReport } from '../../../agent/report.ts';
import { emptySnapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { generatedJudges } from '../../../scripts/soak/generated.ts';
import { installedWebhooks } from '../../../scripts/soak/webhooks/installed.ts';
import { otherAgent } from '../../../simulation/cluster/other-version.ts';
import type { PodAdmitted } from '../../../simulation/cluster/pin-webhook.ts';
import { createOracles } from '../../../simulation/oracles/all.ts';
import type { MachineState, Oracle, PodCalled, Reviewed, Scene } from '../../../simulation/oracles/oracle.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import type { GroupShape, PolicyState } from '../../../simulation/scenario.ts';
import type { Actor, Answered, Commit, Json, ModelObject } from '../../../simulation/server/request.ts';
import { group } from '../../kit/groups.ts';

const namespace = 'mimir';
const sets = ['ing-a', 'ing-b', 'ing-c'] as const;
const setResource = 'statefulsets.apps';
/** The group as an agent reads it. */
export const definition: GroupDefinition = group({ zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ing-${name}` })) });
const people: Actor = { user: 'kubernetes-admin' };
export const controller: Actor = { user: 'system:serviceaccount:kube-system:statefulset-controller' };

const shape: GroupShape = {
  kind: 'native',
  zones: 3,
  podsPerZone: 3,
  maxUnavailable: 1,
  minReadySeconds: 0,
  podManagementPolicy: 'Parallel',
  rotateBy: 'delete',
  replicas: 'leader',
  delaySeconds: 60,
  betweenZonesSeconds: 120,
  drainMs: 3000,
  startMs: 5000,
};

interface ClaimText {
  readonly verb: 'deletePod' | 'evictPod' | 'scaleDown' | 'setPartition';
  readonly zone: string;
  readonly uid: string;
  readonly resourceVersion?: string;
  readonly to?: number;
}

interface EvictOptions {
  readonly by?: string;
  readonly isJudged?: boolean;
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** Infinity: without a claim. */
  readonly claimAgeMs?: number;
  /** The group that the answer names; absent: the group, if the request was judged. */
  readonly group?: string | undefined;
}

export interface PinText {
  readonly zone: string;
  readonly ordinal: number;
  readonly revision: string;
}

type Merge = (object: ModelObject) => Json;

/** A group at revision `r2` whose pods are ready at `r1`, and everything that a test lets happen to it. */
export class History {
  /** Everything has stood for some time. */
  nowMs = 900_000;
  readonly said: { readonly invariant: string; readonly message: string }[] = [];
  readonly clocks = new Map<string, MachineState>();
  isWatchDead = false;
  /** The time since which the leader knows the claims of webhooks; by default, it knows each claim since its admission. */
  claimsKnownMs: number | undefined;
  readonly #objects = new Map<string, ModelObject>();
  readonly scene: Scene;
  readonly #oracles: readonly Oracle[];
  #revision = 1000;
  #run: Json | undefined;
  #uid = 0;

  constructor(overrides: Partial<GroupShape> = {}) {
    const group = { ...shape, ...overrides };
    if (group.kind === 'native') this.#put('rolloutgroups.rollout-group.dev', groupOf(group));
    for (const name of sets) {
      this.#put(setResource, setOf(group, name));
      for (let ordinal = 0; ordinal < group.podsPerZone; ordinal += 1) this.#put('pods', this.#podOf(name, ordinal, 'r1', true));
    }
    this.nowMs = 1_000_000;
    this.scene = {
      nowMs: () => this.nowMs,
      claimKnownMs: ({ admittedWallMs = runStartMs }) => this.claimsKnownMs ?? admittedWallMs - runStartMs,
      group,
      namespace,
      statefulSets: sets,
      agentUser: 'system:serviceaccount:mimir:agent',
      ...(group.webhooks === true
        ? { webhooks: installedWebhooks({ agentNamespace: namespace, namespaces: [namespace], isEnforced: true, hasZoneBudget: false }) }
        : {}),
      list: (resource, of) =>
        [...this.#objects]
          .filter(([key, { metadata }]) => key.startsWith(`${resource} `) && (of ?? metadata.namespace) === metadata.namespace)
          .map(([, object]) => object),
      get: (resource, _namespace, name) => this.#objects.get(`${resource} ${name}`),
      violated: (invariant, message) => this.said.push({ invariant, message }),
      isWatchDead: () => this.isWatchDead,
      clockOf: (process) => this.clocks.get(process) ?? { rate: 1, wallErrorMs: 0 },
    };
    this.#oracles = createOracles(this.scene, generatedJudges);
  }

  /** Messages of one invariant. */
  found(invariant: string): readonly string[] {
    return this.said.filter((one) => one.invariant === invariant).map(({ message }) => message);
  }

  /** The invariants that were broken, each once. */
  broken(): readonly string[] {
    return [...new Set(this.said.map(({ invariant }) => invariant))].sort();
  }

  advance(ms: number): this {
    this.nowMs += ms;
    return this;
  }

  agent(process = 'a1', sentAgoMs = 0): Actor {
    return { user: 'system:serviceaccount:mimir:agent', process, sentAtMs: this.nowMs - sentAgoMs };
  }

  get(resource: string, name: string): ModelObject {
    const object = this.#objects.get(`${resource} ${name}`);
    if (object === undefined) throw new Error(`there is no ${resource} ${name}`);
    return object;
  }

  pod(name: string): ModelObject {
    return this.get('pods', name);
  }

  uidOf(pod: string): string {
    return this.pod(pod).metadata.uid;
  }

  set(name: string): ModelObject {
    return this.get(setResource, name);
  }

  /** Writes an object of that name, new or not. */
  write(resource: string, object: Json & { readonly metadata: Json & { readonly name: string } }, actor: Actor = people): Commit {
    const before = this.#objects.get(`${resource} ${object.metadata.name}`);
    const after = this.#put(resource, { ...object, metadata: { ...before?.metadata, namespace, ...object.metadata } });
    return this.#commit({
      type: before === undefined ? 'ADDED' : 'MODIFIED',
      resource,
      ...(before === undefined ? {} : { before }),
      after,
      actor,
    });
  }

  change(resource: string, name: string, merge: Merge, actor: Actor = people): Commit {
    const before = this.get(resource, name);
    return this.write(
      resource,
      { ...before, ...merge(before), metadata: { ...before.metadata, ...(merge(before)['metadata'] as Json) } } as ModelObject,
      actor,
    );
  }

  remove(resource: string, name: string, actor: Actor = controller): Commit {
    const before = this.get(resource, name);
    this.#objects.delete(`${resource} ${name}`);
    this.#revision += 1;
    const after = { ...before, metadata: { ...before.metadata, resourceVersion: String(this.#revision) } };
    return this.#commit({ type: 'DELETED', resource, before, after, actor });
  }

  /** Told to end, by a DELETE that names its state. */
  take(pod: string, actor: Actor = this.agent()): Commit {
    const { uid, resourceVersion } = this.pod(pod).metadata;
    const commit = this.change('pods', pod, () => ({ metadata: { deletionTimestamp: this.time() } }), actor);
    this.answer({
      verb: 'delete',
      resource: 'pods',
      name: pod,
      body: { preconditions: { uid, resourceVersion } },
      actor,
      revisions: [commit.revision],
    });
    return commit;
  }

  /** The ledger with the claims of webhooks: on evictions, which are so old, and on new deletions. */
  admit(evicted: readonly string[], ageMs = 0, deleted: readonly string[] = []): Commit {
    const nowMs = runStartMs + this.nowMs;
    const claimed = (verb: string, atMs: number) => (pod: string) => ({ verb, zone: pod.slice(4, 5), atMs, uids: [this.uidOf(pod)] });
    const claims = [...evicted.map(claimed('evictPod', nowMs - ageMs)), ...deleted.map(claimed('deletePod', nowMs))];
    return this.#writeLedger({ claims }, this.agent(''));
  }

  /** The ledger with the claim of a webhook on a decrease of the replicas. */
  admitScaleDown(set: string, to: number): Commit {
    const { uid } = this.set(set).metadata;
    const claim = { verb: 'scaleDown', zone: set.slice(4), atMs: runStartMs + this.nowMs, uid, from: 3, to };
    return this.#writeLedger({ claims: [claim] }, this.agent(''));
  }

  /** Evicted by a user whose request the webhook of `by` let pass, by default after a judgement, and with a claim that is so old. */
  evict(pod: string, options: EvictOptions = {}): Commit {
    const { by = 'a1', isJudged = true, failurePolicy = 'Fail', claimAgeMs = 0 } = options;
    const group = 'group' in options ? options.group : isJudged ? `${namespace}/ing` : undefined;
    if (isJudged && claimAgeMs < Number.POSITIVE_INFINITY) this.admit([pod], claimAgeMs);
    const admission = { by, sentAtMs: this.nowMs, failurePolicy, uid: this.uidOf(pod), isJudged, group };
    return this.change('pods', pod, () => ({ metadata: { deletionTimestamp: this.time() } }), { ...people, admission });
  }

  /** Scaled by an autoscaler whose request the webhook of a1 let pass, by default after a judgement. */
  scaleAdmitted(set: string, replicas: number, { isJudged = true, namesGroup = true } = {}): Commit {
    const group = namesGroup ? `${namespace}/ing` : undefined;
    const admission = { by: 'a1', sentAtMs: this.nowMs, failurePolicy: 'Fail' as const, uid: this.set(set).metadata.uid, isJudged, group };
    return this.scale(set, replicas, { ...people, admission });
  }

  /** The outcome of a call of a webhook. */
  review(reviewed: Reviewed): void {
    for (const oracle of this.#oracles) oracle.reviewed?.(reviewed);
  }

  /** Announced before it is taken. */
  announceAndTake(pod: string, process = 'a1'): void {
    this.announce([this.claimOf(pod)], this.agent(process));
    this.take(pod, this.agent(process));
  }

  claimOf(pod: string): ClaimText {
    const { uid, resourceVersion } = this.pod(pod).metadata;
    return { verb: 'deletePod', zone: pod.slice(4, 5), uid, resourceVersion };
  }

  /** Gone, and another one in its place, ready or not. */
  replace(pod: string, revision = 'r2', isReady = true): void {
    this.remove('pods', pod);
    this.create(pod, revision, isReady);
  }

  create(pod: string, revision = 'r2', isReady = true): void {
    const [, set = '', ordinal = ''] = /^(.*)-(\d+)$/.exec(pod) ?? [];
    this.write('pods', this.#podOf(set, Number(ordinal), revision, isReady), controller);
  }

  /** Gone, and made again: the StatefulSet controller asks for the revision `asked`, and `revision` is stored. */
  comeBack(
    pod: string,
    {
      createdRevision = 'r1',
      revision = createdRevision,
      isUnavailable = false,
    }: Partial<PodAdmitted> & { readonly revision?: string } = {},
  ): void {
    for (const oracle of this.#oracles) oracle.podAdmitted?.({ namespace, pod, createdRevision, isUnavailable });
    this.replace(pod, revision);
  }

  ready(pod: string, isReady: boolean, actor: Actor = { user: 'kubelet' }): void {
    this.change('pods', pod, () => ({ status: statusOf(isReady, this.time()) }), actor);
  }

  scale(set: string, replicas: number, actor: Actor = people): Commit {
    return this.change(setResource, set, ({ spec }) => ({ spec: { ...(spec as Json), replicas } }), actor);
  }

  /** The whole ledger as an agent writes it. */
  announce(claims: readonly ClaimText[], actor: Actor = this.agent(), epoch = 1, pins: readonly PinText[] = []): Commit {
    const entries = claims.map(({ uid, resourceVersion, ...rest }) =>
      rest.verb === 'scaleDown' || rest.verb === 'setPartition'
        ? { ...rest, uid, resourceVersion, atMs: 0, epoch }
        : { ...rest, atMs: 0, epoch, uids: [uid], ...(resourceVersion === undefined ? {} : { resourceVersions: [resourceVersion] }) },
    );
    const rows = pins.map((row) => ({ ...row, placements: 1 }));
    const run = this.#run === undefined ? {} : { run: this.#run };
    const rest = { downscales: [], preparations: [], ...(rows.length === 0 ? {} : { pins: rows }), ...run };
    return this.#writeLedger({ epoch, claims: entries, ...rest }, actor);
  }

  /** The ledger in another format, as an agent of another version writes it. */
  inFormat(format: string, actor: Actor = otherAgent): Commit {
    return this.#writeLedger({ format, epoch: 1, claims: [] }, actor);
  }

  #writeLedger(content: Json, actor: Actor): Commit {
    const ledger = JSON.stringify({ format: '1.0', namespace, group: 'ing', ...content });
    const metadata = { name: 'rollout-group-ing', labels: { 'rollout-group.dev/document': 'ledger' } };
    return this.write('configmaps', { metadata, data: { ledger } }, actor);
  }

  answer(
    given: Partial<Omit<Answered, 'request'>> & {
      readonly body?: Json;
      readonly actor: Actor;
      readonly path?: string;
      readonly contentType?: string;
    },
  ): void {
    const { body, actor, path = '/', contentType = 'application/json', ...rest } = given;
    const request = { method: 'POST' as const, path, contentType, actor, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const defaults = {
      atMs: this.nowMs,
      verb: 'get' as const,
      resource: 'pods',
      namespace,
      name: '',
      subresource: '',
      isDryRun: false,
      status: 200,
      revisions: [],
    };
    for (const oracle of this.#oracles) oracle.answered?.({ ...defaults, ...rest, request });
  }

  /** The process renews its Lease with a request that left so long ago. */
  renew(process = 'a1', sentAgoMs = 0, holderIdentity = process): Commit {
    const actor = this.agent(process, sentAgoMs);
    const commit = this.write('leases.coordination.k8s.io', { metadata: { name: 'agent' }, spec: { holderIdentity } }, actor);
    this.answer({
      verb: 'update',
      resource: 'leases.coordination.k8s.io',
      name: 'agent',
      actor,
      body: { metadata: { resourceVersion: '1' }, spec: { holderIdentity } },
    });
    return commit;
  }

  /** A request that reads is about to leave. */
  send(process = 'a1', site = 'ledger.read'): void {
    for (const oracle of this.#oracles) oracle.sending?.({ key: `${process}/${site}#1`, process, site, atMs: this.nowMs }, 'get');
  }

  /** A request to open a watch, which the API server denies for a time. */
  denied(site: string, retryAfterSeconds: number, process = 'a1'): void {
    this.send(process, site);
    const point = { key: `${process}/${site}#1`, process, site, atMs: this.nowMs };
    const fault = { class: 'F5', kind: 'answer', what: 429, isApplied: false, retryAfterSeconds } as const;
    for (const oracle of this.#oracles) oracle.faulted?.(point, fault);
  }

  call(pod: string, method: 'POST' | 'DELETE', more: Partial<PodCalled> = {}): void {
    const call = {
      process: 'a1',
      atMs: this.nowMs,
      sentAtMs: this.nowMs,
      namespace,
      pod,
      uid: this.uidOf(pod),
      method,
      path: '/prepare',
      ...more,
    };
    for (const oracle of this.#oracles) oracle.podCalled?.(call);
  }

  /** The run that the next ledgers name, which replaces `failed` if it is a rollback. */
  ledger(id: string, outcome = 'running', revision = 'r3', failed?: string, progress: Json = {}): void {
    const inZones = (one: string): Json => ({ a: one, b: one, c: one });
    const rolledBack = failed === undefined ? {} : { rolledBack: { revisions: inZones(failed), because: 'it failed' } };
    this.#run = { id, outcome, target: inZones(revision), ...rolledBack, ...progress };
    this.announce([]);
  }

  /** The request of a person about a run, as the webhook stores it. */
  request(action: string, runId: string, wave?: string, user = 'alice'): void {
    this.#uid += 1;
    const spec = { action, runId, ...(wave === undefined ? {} : { wave }), requestedBy: { user, groups: [], at: this.time() } };
    this.write('rolloutintents.rollout-group.dev', { metadata: { name: `${action}-${this.#uid}` }, spec });
  }

  /** The policy directory changes. */
  directory(state: PolicyState): void {
    for (const oracle of this.#oracles) oracle.directoryChanged?.(state);
  }

  gate(process: string, isGood: boolean): void {
    for (const oracle of this.#oracles) oracle.gateAnswered?.({ process, atMs: this.nowMs, isGood });
  }

  turn(report: Partial<TurnReport>, process = 'a1'): void {
    const startedMs = runStartMs + this.nowMs;
    const defaults = { group: definition, snapshot: emptySnapshot(startedMs), performed: [], startedMs, durationMs: 0 };
    for (const oracle of this.#oracles) oracle.turnEnded?.(process, { ...defaults, ...report });
  }

  process(process: string, change: 'started' | 'crashed' | 'stopped'): void {
    for (const oracle of this.#oracles) oracle.processChanged?.(process, change);
  }

  heal(): this {
    for (const oracle of this.#oracles) oracle.healingBegan?.();
    return this;
  }

  end(): void {
    for (const oracle of this.#oracles) oracle.ended?.();
  }

  /** Now, as objects have it. */
  time(): string {
    return new Date(runStartMs + Math.floor(this.nowMs / 1000) * 1000).toISOString().replace('.000', '');
  }

  #commit(given: Omit<Commit, 'revision' | 'atMs'>): Commit {
    const commit = { ...given, revision: Number(given.after.metadata.resourceVersion), atMs: this.nowMs };
    for (const oracle of this.#oracles) oracle.committed?.(commit);
    return commit;
  }

  #put(resource: string, given: Json & { readonly metadata: Json & { readonly name: string } }): ModelObject {
    this.#revision += 1;
    this.#uid += 1;
    const { name, uid = `uid-${name}-${this.#uid}` } = given.metadata;
    const metadata = { namespace, creationTimestamp: this.time(), ...given.metadata, name, uid, resourceVersion: String(this.#revision) };
    const object = { apiVersion: 'v1', kind: 'Any', ...given, metadata } as ModelObject;
    this.#objects.set(`${resource} ${name}`, object);
    return object;
  }

  #podOf(set: string, ordinal: number, revision: string, isReady: boolean): Json & { readonly metadata: Json & { readonly name: string } } {
    const owner = { kind: 'StatefulSet', name: set, uid: this.set(set).metadata.uid, controller: true };
    return {
      metadata: {
        name: `${set}-${ordinal}`,
        uid: `uid-${set}-${ordinal}-${this.#uid}`,
        labels: { 'controller-revision-hash': revision },
        ownerReferences: [owner],
      },
      spec: { containers: [{ name: 'app', image: revision }] },
      status: statusOf(isReady, this.time()),
    };
  }
}

function statusOf(isReady: boolean, since: string): Json {
  return {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: since }],
    containerStatuses: [{ name: 'app', ready: isReady, state: { running: {} } }],
  };
}

function setOf({ kind, podsPerZone, minReadySeconds, maxUnavailable, replicas, delaySeconds }: GroupShape, name: string) {
  const delayed = {
    'grafana.com/rollout-mirror-replicas-from-resource-name': 'ing',
    'grafana.com/rollout-delayed-downscale': `${delaySeconds}s`,
    'grafana.com/rollout-prepare-delayed-downscale-url': 'http://pod:80/prepare',
  };
  const annotations = { 'rollout-max-unavailable': String(maxUnavailable), ...(replicas === 'delayedMirror' ? delayed : {}) };
  return {
    metadata: { name, generation: 1, ...(kind === 'adopted' ? { labels: { 'rollout-group': 'ing' }, annotations } : {}) },
    spec: { replicas: podsPerZone, minReadySeconds },
    status: { observedGeneration: 1, replicas: podsPerZone, updateRevision: 'r2' },
  };
}

function groupOf({ maxUnavailable, betweenZonesSeconds, delaySeconds, replicas }: GroupShape) {
  const delayed = replicas === 'delayedMirror' ? { delayed: { after: `${delaySeconds}s`, endpoint: { port: 80, path: '/prepare' } } } : {};
  return {
    metadata: { name: 'ing' },
    spec: {
      members: { zones: sets.map((statefulSet) => ({ name: statefulSet.slice(4), statefulSet })) },
      rollout: { maxUnavailable },
      scaling: { down: { betweenZones: `${betweenZonesSeconds}s`, ...delayed } },
    },
  };
}
