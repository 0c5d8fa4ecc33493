// Judges webhooks: what they deny, whom the API server asks, repeated mutations, and decreases of replicas by others (S11, S30 to S33).
import type { InstalledWebhook, ReviewedRequest } from '../../../simulation/cluster/admitted.ts';
import {
  instantAt,
  isTerminating,
  leaseResource,
  nodeResource,
  prepareEndpoint,
  replicasOf,
  statefulSetResource,
} from '../../../simulation/objects.ts';
import { named, unavailabilityOf } from '../../../simulation/oracles/availability.ts';
import { machineOf, momentOf, type Oracle, type PodCalled, type Reviewed } from '../../../simulation/oracles/oracle.ts';
import { type Book, unavailableIn, type Zone } from '../../../simulation/oracles/places.ts';
import type { Commit, ModelObject } from '../../../simulation/server/request.ts';

/** The users of Kubernetes whose writes no webhook may deny. Autoscalers are not among them. */
const nodeOrController = /^system:(?:node:|kube-scheduler$|serviceaccount:kube-system:(?!horizontal-pod-autoscaler))/;
/** A second call stamps a request again if its clock differs by more than this time (webhook/native/stamp-endpoint.ts). */
const stampMs = 25_000;
/** The longest time of a request with repeated reviews. A pod that was created since then may be unknown to them. */
const longestReviewMs = 60_000;

/** The judge of webhooks that review all requests. It sees each commit before the book records it. */
export class ReviewJudge implements Oracle {
  readonly #book: Book;
  /** The UIDs of the pods whose last call asked them to prepare for their removal. */
  readonly #prepared = new Set<string>();
  /** True if the last answer about an object had a warning, by path and name. */
  readonly #warned = new Map<string, boolean>();
  readonly #wallErrors = new Map<string, number>();

  constructor(book: Book) {
    this.#book = book;
  }

  podCalled({ path, uid, method }: PodCalled): void {
    if (path !== prepareEndpoint.path) return;
    if (method === 'POST') this.#prepared.add(uid);
    else this.#prepared.delete(uid);
  }

  reviewed({ request, webhook, by, outcome, isRepeat, patch, hasWarning }: Reviewed): void {
    const { scene } = this.#book;
    if (scene.webhooks === undefined) return;
    this.#warned.set(`${webhook.path} ${request.name}`, hasWarning);
    const what = textOf(request);
    if (isNative(webhook) && request.actor.user === scene.agentUser) scene.violated('S32', `${webhook.name} is asked about ${what}`);
    if (outcome === 'failed' || !webhook.isMutating) return;
    const key = `${webhook.name} ${what}`;
    const { wallErrorMs } = machineOf(scene, by);
    const before = this.#wallErrors.get(key) ?? wallErrorMs;
    this.#wallErrors.set(key, wallErrorMs);
    if (patch.length > 0 && patch[0]?.op !== 'test') scene.violated('S33', `the patch of ${webhook.name} for ${what} tests nothing`);
    const isChanged = outcome === 'denied' || patch.length > 0;
    if (isRepeat && isChanged && Math.abs(wallErrorMs - before) < stampMs)
      scene.violated('S33', `${webhook.name} changes its own result for ${what}`);
  }

  committed(commit: Commit): void {
    const { scene } = this.#book;
    if (scene.webhooks === undefined) return;
    this.#checkNeeded(commit);
    const { resource, before, after, type } = commit;
    const zone = resource === statefulSetResource ? this.#book.zoneOf(after.metadata.name) : undefined;
    if (zone === undefined || before === undefined || type !== 'MODIFIED' || after.metadata.namespace !== scene.namespace) return;
    const [from, to] = [replicasOf(before), replicasOf(after)];
    if (to >= from) return;
    const what = `${commit.actor.process ?? commit.actor.user} scales ${zone.statefulSet} from ${from} to ${to}`;
    if (scene.group.kind === 'native') this.#checkAdmitted(commit, zone, what);
    else this.#checkDropIn(commit, zone, what);
  }

  /** Nodes, controllers and the election of the agents work also if every webhook denies. */
  #checkNeeded(commit: Commit): void {
    const { actor, resource } = commit;
    const isNeeded = nodeOrController.test(actor.user) || resource === leaseResource || resource === nodeResource;
    if (!isNeeded) return;
    const request = requestOf(commit);
    for (const webhook of this.#book.scene.webhooks ?? []) {
      if (isNative(webhook) && !webhook.isMutating && webhook.isAsked(request) !== false)
        this.#book.scene.violated('S32', `${webhook.name} may deny ${textOf(request)}`);
    }
  }

  /** Checks a decrease by others in a native group: a webhook judged it, and no other zone has unavailable pods. */
  #checkAdmitted({ actor, after, atMs }: Commit, zone: Zone, what: string): void {
    const { scene, terms } = this.#book;
    const { admission } = actor;
    if (actor.user === scene.agentUser || terms.isExcepted()) return;
    const {
      by: process,
      sentAtMs,
      isJudged,
      uid,
      group,
    } = admission ?? { by: '', sentAtMs: atMs, isJudged: false, uid: '', group: undefined };
    const moment = momentOf(scene, { actor: { user: actor.user, process, sentAtMs }, atMs });
    if (!terms.wasMember(zone.statefulSet, moment.fromMs)) return;
    if (!isJudged || uid !== after.metadata.uid) {
      scene.violated('S31', `${what} without a judgement`);
      return;
    }
    if (group === undefined) scene.violated('S30', `${what}, and the answer of ${process} names no group`);
    const isForced = terms
      .of(zone.statefulSet)
      .since(moment.fromMs)
      .some((one) => one.isForced);
    if (isForced) return;
    for (const other of this.#book.zones.filter((one) => one !== zone)) {
      const why = unavailabilityOf(this.#book, other, moment);
      if (why !== undefined) scene.violated('S30', `${what} while ${why}`);
      const rolling = (unavailableIn(this.#book, other, moment) ?? []).filter((place) => place.open !== undefined);
      if (rolling.length > 0) scene.violated('S30', `${what} while ${named(rolling)} are being replaced`);
    }
  }

  /** Checks a decrease in a drop-in group: no label forbids it, and every pod that leaves was asked to prepare. */
  #checkDropIn({ before, after, atMs }: Commit, zone: Zone, what: string): void {
    const { scene } = this.#book;
    const labels = before?.metadata.labels ?? {};
    // As in grafana/rollout-operator, a Scale passes if its workload cannot be read.
    const isUnread = (endpoint: string): boolean => this.#warned.get(`/admission/${endpoint} ${zone.statefulSet}`) === true;
    if (labels['grafana.com/no-downscale'] === 'true' && !isUnread('no-downscale'))
      scene.violated('S31', `${what}, although its label forbids a decrease`);
    if (labels['grafana.com/prepare-downscale'] !== 'true' || isUnread('prepare-downscale')) return;
    for (const pod of leavingPods(zone, replicasOf(after))) {
      const isNew = (instantAt(pod, 'metadata', 'creationTimestamp') ?? 0) > atMs - longestReviewMs;
      if (!isNew && !this.#prepared.has(pod.metadata.uid))
        scene.violated('S11', `${what}, and ${pod.metadata.name} was never asked to prepare`);
    }
  }
}

/** Returns the pods that a decrease removes and that are not terminating. The zone has the facts before the decrease. */
function leavingPods({ facts, places }: Zone, to: number): readonly ModelObject[] {
  const { first = 0, replicas = 0 } = facts.latest() ?? {};
  return [...places].flatMap(([ordinal, { pod }]) =>
    pod === undefined || isTerminating(pod) || ordinal < first + to || ordinal >= first + replicas ? [] : [pod],
  );
}

/** Returns the request that caused the commit. */
function requestOf({ resource, type, before, after, actor }: Commit): ReviewedRequest {
  const { namespace = '', name, uid } = after.metadata;
  const target = { resource, namespace, name, uid, actor };
  if (before === undefined) return { ...target, operation: 'CREATE', subresource: '', object: after };
  if (type === 'DELETED' || isTerminating(after) !== isTerminating(before))
    return { ...target, operation: 'DELETE', subresource: '', oldObject: before };
  const subresource = before['status'] === after['status'] ? '' : 'status';
  return { ...target, operation: 'UPDATE', subresource, object: after, oldObject: before };
}

function textOf({ operation, resource, name, actor }: ReviewedRequest): string {
  return `${operation} ${resource} ${name} by ${actor.user}`;
}

/** Returns whether the webhook belongs to this project. The webhooks of grafana/rollout-operator are asked about every user. */
function isNative({ name }: Pick<InstalledWebhook, 'name'>): boolean {
  return name.endsWith('.rollout-group.dev');
}
