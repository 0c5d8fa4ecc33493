// Models people who approve waves and request changes of a run with the plugin, and the webhook that records the requester.

import type { PublishedDecision, PublishedRun } from '../../engine/publish/published.ts';
import { mayRetry, whyRunStays } from '../../engine/publish/status.ts';
import { digestOfWaves } from '../../engine/run/requests.ts';
import { revisionsOfUndo } from '../../engine/run/revisions.ts';
import { intentObject, type LiveIntent } from '../../policies/live/intents.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { rightStamp } from '../../webhook/native/stamp-endpoint.ts';
import type { ReviewUser } from '../../webhook/review/review.ts';
import {
  configMapResource,
  controllerOf,
  exceptionResource,
  field,
  groupResource,
  imagesOf,
  intentResource,
  listAt,
  numberAt,
  parsed,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import type { EventFields, Person, PersonRequest } from '../scenario.ts';
import type { Json, ModelObject } from '../server/request.ts';
import type { Client } from './client.ts';
import { revisionResource } from './workload.ts';
import type { World } from './world.ts';

interface RequestsOptions extends Pick<World, 'server' | 'scheduler' | 'wallMs'> {
  readonly client: Client;
  readonly namespace: string;
  readonly group: string;
  readonly report: (what: string) => void;
}

const ours = { apiVersion: 'rollout-group.dev/v1alpha1' };

type Undo = Pick<EventFields<'request'>, 'by' | 'zone'>;
type Spec = Partial<Pick<LiveIntent, 'runId' | 'wave' | 'rule' | 'digest' | 'rollback' | 'undone'>> & Pick<LiveIntent, 'action'>;

/** The interval at which people look at the group after the last fault, and the pause before another retry. */
const checkEveryMs = 20_000;
const retryIntervalMs = 120_000;

export class Requests {
  readonly #options: RequestsOptions;
  #retriedMs = Number.NEGATIVE_INFINITY;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** Submits the request as the plugin does, for the run that an agent published. Returns false if the plugin would refuse it. */
  submit(request: Exclude<PersonRequest, 'undo'>, by: Person, isUnverified = false): boolean {
    const decision = this.#published();
    const about = decision?.run === undefined ? undefined : specs[request](decision, decision.run, () => this.#digest());
    if (decision?.run === undefined || about === undefined) return false;
    const spec: Spec = { ...about, runId: decision.run.id };
    this.#options.report(
      `${by} requests ${request}${spec.wave === undefined ? '' : ` of ${spec.wave}`}${spec.rule === undefined ? '' : ` of ${spec.rule}`} in run ${spec.runId}${isUnverified ? ' without the webhook' : ''}`,
    );
    this.#create(spec, by, { isUnverified, done: (name) => this.#endAnswers(spec, by, name) });
    return true;
  }

  /** Deletes the earlier answers of the person to the same wave or rule, as the plugin does after a verified answer. */
  #endAnswers({ action, runId, wave, rule }: Spec, by: Person, name: string): void {
    const { server, namespace } = this.#options;
    const answers: readonly string[] = ['approve', 'reject'];
    if (!answers.includes(action)) return;
    for (const { metadata, spec } of this.#intents()) {
      const isAbout = textAt(spec, 'runId') === runId && textAt(spec, 'wave') === wave && textAt(spec, 'rule') === rule;
      const isOwn = textAt(spec, 'requestedBy', 'user') === `${by}@example.com`;
      if (metadata.name !== name && isAbout && isOwn && answers.includes(textAt(spec, 'action') ?? ''))
        server.remove({ user: `${by}@example.com` }, { resource: intentResource, namespace, name: metadata.name });
    }
  }

  /**
   * Submits an undo of the group or of one zone as the plugin does, and then writes the earlier images by StatefulSet. Returns false if the
   * plugin would refuse it.
   */
  undo({ by, zone: only }: Undo, write: (images: ReadonlyMap<string, readonly string[]>) => void): boolean {
    const { server, namespace, group, report } = this.#options;
    const zones = listAt(server.get(groupResource, namespace, group), 'spec', 'members', 'zones');
    const chosen = zones.filter((zone) => only === undefined || textAt(zone, 'name') === only);
    const before = this.#before(zones);
    const restored = chosen.map((zone) => this.#earlier(textAt(zone, 'name') ?? '', textAt(zone, 'statefulSet') ?? '', before));
    const changed = restored.flatMap((one) => (one === undefined || one.revision === one.to.metadata.name ? [] : [one]));
    if (restored.includes(undefined) || changed.length === 0) return false;
    const undone = changed.map(({ zone, revision, to }) => ({ zone, revision, to: to.metadata.name }));
    report(`${by} undoes ${undone.map(({ revision }) => revision).join(', ')}`);
    const images = new Map(changed.map(({ statefulSet, to }) => [statefulSet, imagesOf(field(to, 'data', 'spec', 'template'))]));
    this.#create({ action: 'undo', undone }, by, {
      done: () => {
        // An earlier undo may block the revision that is requested now.
        this.cancelUndo((zone, revision) => undone.some((one) => one.zone === zone && one.to === revision));
        write(images);
      },
    });
    return true;
  }

  /** Writes the exception as the plugin does. Returns false if another exception for the same rule and an overlapping target is in force. */
  override({ by, forMs, rule = 'window', zone, podsAtMost }: EventFields<'override'>): boolean {
    const { client, server, namespace, group, wallMs, report } = this.#options;
    const name = ['override', group, rule.replace('/', '.'), ...(zone === undefined ? [] : [zone])].join('.');
    const isOther = (exception: ModelObject): boolean => {
      if (textAt(exception, 'spec', 'target', 'group') !== group) return false;
      const other = textAt(exception, 'spec', 'target', 'zone');
      const isSameTarget = other === undefined || zone === undefined || other === zone;
      const isSame = isSameTarget && textAt(exception, 'spec', 'rule') === rule;
      return exception.metadata.name !== name && isSame && Date.parse(textAt(exception, 'spec', 'expires') ?? '') > wallMs();
    };
    if (server.list(exceptionResource, namespace).some(isOther)) return false;
    report(`${by} overrides ${rule}${zone === undefined ? '' : ` for zone ${zone}`} for ${Math.round(forMs / 1000)} s`);
    const user = { name: `${by}@example.com`, groups: ['oncall'] };
    const allow = podsAtMost === undefined ? { anything: true } : { podsAtMost };
    const spec = {
      rule,
      target: { group, ...(zone === undefined ? {} : { zone }) },
      allow,
      reason: 'INC-441',
      expires: new Date(wallMs() + forMs).toISOString(),
    };
    const metadata = { name, namespace };
    const stamp = this.#stamp(user, { metadata, spec });
    const object = { ...ours, kind: 'RolloutException', metadata, spec: { ...spec, ...stamp } };
    const ref = { resource: exceptionResource, namespace, name };
    const actor = { user: user.name, groups: user.groups };
    if (server.get(exceptionResource, namespace, name) === undefined) client.create(actor, exceptionResource, object);
    else client.change(actor, ref, () => ({ spec: { ...object.spec, allow: { anything: null, podsAtMost: null, ...allow } } }));
    return true;
  }

  /** Cancels every undo of a revision for which `isMeant` is true; by default every undo. */
  cancelUndo(isMeant: (zone: string, revision: string) => boolean = () => true): void {
    const { server, namespace } = this.#options;
    for (const { metadata, spec } of this.#undos()) {
      const isOne = listAt(spec, 'undone').some((one) => isMeant(textAt(one, 'zone') ?? '', textAt(one, 'revision') ?? ''));
      if (isOne) server.remove({ user: 'alice@example.com' }, { resource: intentResource, namespace, name: metadata.name });
    }
  }

  /** Returns the requester as /admission/stamp records it; an empty object if the webhook of the simulation records it. */
  #stamp(user: ReviewUser, object: Json): Json {
    const { client, wallMs } = this.#options;
    return client.isReviewed ? {} : { requestedBy: rightStamp({ operation: 'CREATE', user, object }, wallMs()) };
  }

  /** Returns whether the published run is a completed rollback, so that only a retry or another template ends its block. */
  isRolledBack(): boolean {
    const decision = this.#published();
    return decision?.run?.outcome === 'completed' && mayRetry(decision);
  }

  #undos(): readonly ModelObject[] {
    return this.#intents().filter((intent) => textAt(intent, 'spec', 'action') === 'undo');
  }

  #intents(): readonly ModelObject[] {
    const { server, namespace, group } = this.#options;
    return server.list(intentResource, namespace).filter((intent) => textAt(intent, 'spec', 'group') === group);
  }

  #create(
    spec: Spec,
    by: Person,
    { done = () => undefined, isUnverified = false }: { readonly done?: (name: string) => void; readonly isUnverified?: boolean },
  ): void {
    const { client, namespace, group, wallMs } = this.#options;
    const user = { name: `${by}@example.com`, groups: ['oncall'] };
    const object = intentObject({ namespace, group }, spec, `${JSON.stringify(spec)} ${wallMs()} ${user.name}`);
    const actor = { user: user.name, groups: user.groups };
    const stamp = isUnverified ? {} : this.#stamp(user, object);
    client.create(actor, intentResource, { ...object, spec: { ...object.spec, ...stamp } }, { done: () => done(object.metadata.name) });
  }

  /** Returns the revisions from before the present templates, as the plugin does if it reads neither the ledger nor pods. */
  #before(zones: readonly unknown[]): ReturnType<typeof revisionsOfUndo> {
    const { server, namespace } = this.#options;
    const present = zones.flatMap((one) => {
      const updateRevision = textAt(
        server.get(statefulSetResource, namespace, textAt(one, 'statefulSet') ?? ''),
        'status',
        'updateRevision',
      );
      return updateRevision === undefined ? [] : [{ zone: textAt(one, 'name') ?? '', updateRevision, pods: new Map<string, number>() }];
    });
    return revisionsOfUndo(this.#published()?.run, present);
  }

  /**
   * Returns the revision to which an undo returns the zone: the one that an undo in force names, else the one from before the present
   * templates, else the newest other revision.
   */
  #earlier(zone: string, statefulSet: string, before: ReturnType<typeof revisionsOfUndo>) {
    const { server, namespace } = this.#options;
    const set = server.get(statefulSetResource, namespace, statefulSet);
    const revision = textAt(set, 'status', 'updateRevision') ?? '';
    const known = this.#undos()
      .flatMap((intent) => listAt(intent, 'spec', 'undone'))
      .filter((one) => textAt(one, 'zone') === zone);
    const begun = known.find((one) => textAt(one, 'revision') === revision);
    const isBack = known.some((one) => textAt(one, 'to') === revision);
    const wanted = textAt(begun, 'to') ?? (isBack ? revision : before.get(zone)?.to);
    const to = server
      .list(revisionResource, namespace)
      .filter((one) => set !== undefined && controllerOf(one) === set.metadata.uid)
      .sort((one, other) => (numberAt(other, 'revision') ?? 0) - (numberAt(one, 'revision') ?? 0))
      .find(({ metadata }) => (wanted === undefined ? metadata.name !== revision : metadata.name === wanted));
    return to && { zone, statefulSet, revision, to };
  }

  /** Cancels every undo. From then on, the approvers approve every wave that waits for approval, and a person retries each run that needs it. */
  heal(approvers: readonly Person[]): void {
    this.cancelUndo();
    const { scheduler } = this.#options;
    scheduler.after(checkEveryMs, () => this.heal(approvers));
    for (const person of approvers) this.submit('approve', person);
    if (scheduler.nowMs() - this.#retriedMs >= retryIntervalMs && this.submit('retry', 'alice')) this.#retriedMs = scheduler.nowMs();
  }

  /** Returns the digest of the stored waves. The plugin uses it if no agent published the digest, for example after a rejection. */
  #digest(): string | undefined {
    const { server, namespace, group } = this.#options;
    const statefulSets = server.list(statefulSetResource, namespace);
    const objects = [server.get(groupResource, namespace, group)];
    const [definition] = resolveLive({ objects, statefulSets, order: ['objects'], agentNamespace: namespace }).groups;
    return definition && digestOfWaves(definition);
  }

  #published(): PublishedDecision | undefined {
    const { server, namespace, group } = this.#options;
    const stored = field(server.get(groupResource, namespace, group), 'status', 'decision');
    const map = server.get(configMapResource, namespace, `rollout-status-${group}`);
    return (stored ?? parsed(textAt(map, 'data', 'decision'))) as PublishedDecision | undefined;
  }
}

type SpecOf = (
  decision: PublishedDecision,
  run: PublishedRun,
  digestOfDefinition: () => string | undefined,
) => Omit<Spec, 'runId'> | undefined;

/** Returns the specs of the requests that the plugin sends in this state; undefined if it refuses the request. */
const specs: Readonly<Record<Exclude<PersonRequest, 'undo'>, SpecOf>> = {
  approve: (decision, run, digestOfDefinition) => {
    const rule = decision.waits.find((wait) => wait.rule.includes('/') && wait.digest !== undefined);
    if (rule?.digest !== undefined && run.outcome !== 'completed') return { action: 'approve', rule: rule.rule, digest: rule.digest };
    const answer = answerOf('approve', decision, run);
    if (answer === undefined) return undefined;
    const digest = decision.waits.find((wait) => wait.rule === 'approval')?.digest ?? digestOfDefinition();
    return digest === undefined ? undefined : { ...answer, digest };
  },
  reject: (decision, run) => answerOf('reject', decision, run),
  promote: ({ wave }, run) => (run.outcome === 'running' && wave !== undefined ? { action: 'promote', wave: wave.name } : undefined),
  abort: (_, run) => (run.outcome === 'running' ? { action: 'abort' } : undefined),
  rollback: ({ strategy }, run) =>
    strategy !== undefined && run.outcome !== 'completed' && whyRunStays(run, strategy) === undefined
      ? { action: 'abort', rollback: true }
      : undefined,
  retry: (decision) => (mayRetry(decision) ? { action: 'retry' } : undefined),
};

function answerOf(action: 'approve' | 'reject', { wave, waits }: PublishedDecision, run: PublishedRun): Omit<Spec, 'runId'> | undefined {
  const isAsked = waits.some(({ rule }) => rule === 'approval') && run.outcome !== 'completed';
  return isAsked && wave !== undefined ? { action, wave: wave.name } : undefined;
}
