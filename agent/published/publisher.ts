// Publishes changed decisions: in the status of the RolloutGroup if it exists, else in the ConfigMap `rollout-status-GROUP`.
import { isStatus } from '../../cluster/request/failure.ts';
import { asJsonObject, isSameJson } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { apiVersionOf, type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, patchObject, replaceObject, targetOf } from '../../cluster/request/write.ts';
import { mergePatch } from '../../engine/diff/merge-patch.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import { type PublishInput, publishedDecision, samePublished } from '../../engine/publish/decision.ts';
import { type PublishedDecision, statusMapName } from '../../engine/publish/published.ts';
import { readPublished } from '../../engine/publish/read.ts';
import { groupStatus, scaleTargetOf } from '../../engine/publish/status.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { defined } from '../../policies/values/defined.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation, TurnListener, TurnReport } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import { type GroupName, type GroupObjects, rolloutGroups } from './group-objects.ts';
import { WriteQueue } from './write-queue.ts';

interface PublisherOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'publishEveryMs' | 'identity' | 'kubernetesTimeoutMs' | 'agentNamespace' | 'lease'>;
  readonly objects: GroupObjects;
  readonly mayWrite: () => boolean;
  readonly onWrite?: (result: 'done' | 'failed') => void;
}

/** The key of the decision in `status` of the RolloutGroup and in `data` of the ConfigMap. */
const decisionKey = 'decision';
/** The label value of ConfigMaps with a decision. Ledgers have another value. */
const labelValue = 'decision';
/** The ids of degradations about the webhook configurations and about namespace labels. */
const ofConfigurations = 'webhook/configurations';
const ofNamespaces = 'webhook/namespaces/';
/** The longest timeout of a request, because a longer wait would delay the other groups. */
const longestTimeoutMs = 30_000;

interface Published {
  report: TurnReport;
  /** The actions of the newest turn with actions. A turn without actions may follow before the write. */
  acted?: Pick<PublishInput, 'performed' | 'performedMs'>;
  /** The decision that was last written or found; undefined while a write is in flight. */
  last?: PublishedDecision | undefined;
  /** The last published scale fields and generation as text. They can change without a new decision: pods terminate after a scale-down. */
  lastFields?: string;
}

interface Stored {
  /** The RolloutGroup; absent if it does not exist. Then `map` is the ConfigMap, if one exists. */
  readonly group?: KubernetesObject;
  readonly map?: KubernetesObject;
  readonly decision?: PublishedDecision;
  /** The same fields; absent in a ConfigMap. */
  readonly fields?: string;
}

/** Publishes decisions while this process leads. */
export class DecisionPublisher {
  readonly #options: PublisherOptions;
  readonly #groups = new Map<string, Published>();
  readonly #timeoutMs: number;
  #isLeader = false;
  /** True if this process leads without a Lease. */
  #isAlone = false;
  #isHandingOver = false;
  /** The degradations that the webhooks of this process report about their registration. */
  #registrationProblems: readonly Degradation[] = [];
  readonly #failed = new Set<string>();
  readonly #queue: WriteQueue;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      if (!this.#isLeader || report.decision === undefined) return;
      const key = groupKey(report.group);
      const known: Published = this.#groups.get(key) ?? { report };
      known.report = report;
      if (report.performed.length > 0) known.acted = { performed: report.performed, performedMs: report.snapshot.nowMs };
      this.#groups.set(key, known);
      const decision = known.last === undefined ? undefined : this.#decisionOf(known, known.last);
      const isSame = known.last !== undefined && decision !== undefined && samePublished(known.last, decision);
      if (!isSame || known.lastFields !== fieldsText(report)) this.#queue.queueWrite(key);
    },
    groupsChanged: (all) => {
      for (const key of removedKeys(this.#groups.keys(), all)) {
        this.#groups.delete(key);
        this.#failed.delete(key);
        this.#queue.forget(key);
      }
    },
    degraded: (all) => {
      this.#registrationProblems = all.filter(({ id }) => id === ofConfigurations || id.startsWith(ofNamespaces));
      // A group without changes has no turn that would publish the degradation.
      for (const key of this.#isLeader ? this.#groups.keys() : []) this.#queue.queueWrite(key);
    },
    leadershipChanged: (state) => {
      this.#isLeader = state.isLeader;
      if (state.isLeader) this.#isAlone = state.epoch === 0;
      if (this.#isLeader || this.#isHandingOver) return;
      // The next leader publishes its own decisions. If this process leads again later, its last decisions are stale.
      this.#queue.clear();
      this.#groups.clear();
    },
  };

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(this.#options.config.kubernetesTimeoutMs, longestTimeoutMs);
    this.#queue = new WriteQueue({
      env: this.#options.env,
      everyMs: this.#options.config.publishEveryMs,
      write: (key) => this.#write(key),
      mayWrite: this.#options.mayWrite,
      onWritten: (key) => {
        this.#failed.delete(key);
        this.#options.onWrite?.('done');
      },
      onFailure: (key, error) => {
        this.#options.onWrite?.('failed');
        // Status 409: another process wrote the object. The next attempt reads it again.
        if (isStatus(error, 409) || this.#failed.has(key)) return;
        this.#failed.add(key);
        const [namespace = '', group = ''] = key.split('/');
        this.#options.env.log.warn('decision could not be published', { namespace, group, error: messageOf(error) });
      },
    });
  }

  /** Keeps the queued decisions when the leadership ends, so that `close` can write them. Must be called before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Writes the queued decisions once and accepts no further decision. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  #unenforcedIn({ namespace }: GroupName): string | undefined {
    return this.#registrationProblems.find(({ id }) => !id.startsWith(ofNamespaces) || id === `${ofNamespaces}${namespace}`)?.message;
  }

  #decisionOf({ report, acted = {} }: Published, previous: PublishedDecision | undefined): PublishedDecision | undefined {
    const { group, snapshot, decision, ledger } = report;
    if (decision === undefined) return undefined;
    const { config } = this.#options;
    const lease = this.#isAlone ? undefined : { namespace: config.agentNamespace, name: config.lease.name };
    const given = defined({ lease, ledger, previous, unenforced: this.#unenforcedIn(group) });
    return publishedDecision({ group, decision, snapshot, ...acted, atMs: snapshot.nowMs, leader: config.identity, ...given });
  }

  /** Reads the stored decision. A value that equals `last` needs no validation, which takes much longer than the comparison. */
  async #read(group: GroupName, last: PublishedDecision | undefined): Promise<Stored> {
    const storedDecision = (value: unknown) => (last !== undefined && isSameJson(last, value) ? { decision: last } : validDecision(value));
    const object = await this.#options.objects.read(group, 'publish.getGroup');
    if (object !== undefined) {
      const status = asJsonObject(object['status']);
      const fields = JSON.stringify([status['replicas'], status['selector'], status['observedGeneration']]);
      return { group: object, fields, ...storedDecision(status[decisionKey]) };
    }
    const target = { namespace: group.namespace, name: statusMapName(group.name) };
    const options = { site: 'publish.getConfigMap', timeoutMs: this.#timeoutMs };
    const map = await getObject(this.#options.env, resources.configMaps, target, options);
    if (map === undefined) return {};
    if (map.metadata.labels?.[ledgerLabel.key] !== labelValue) throw new Error(`ConfigMap ${target.name} is not managed by the agent`);
    return { map, ...storedDecision(tryParseJson(asJsonObject(map['data'])[decisionKey])) };
  }

  async #write(key: string): Promise<'written' | 'unchanged'> {
    const known = this.#groups.get(key);
    if (known === undefined) return 'unchanged';
    const current = { ...known };
    const { report } = current;
    // The published state is unknown until the write ends, so every decision until then is queued, also an unchanged decision.
    known.last = undefined;
    const stored = await this.#read(report.group, current.last);
    const decision = this.#decisionOf(current, stored.decision);
    if (decision === undefined) return 'unchanged';
    const fields = fieldsText(report);
    const isSame = (former: PublishedDecision): boolean =>
      samePublished(former, decision) && (stored.fields === undefined || stored.fields === fields);
    if (stored.decision !== undefined && (isSame(stored.decision) || this.#isSuperseded(stored.decision))) {
      known.last = stored.decision;
      known.lastFields = stored.fields ?? fields;
      return 'unchanged';
    }
    if (stored.group !== undefined) await this.#writeStatus(report, decision, stored.group);
    else await this.#writeConfigMap(report.group, decision, stored.map);
    known.last = decision;
    known.lastFields = fields;
    return 'written';
  }

  /** Returns whether another process may have published since this process lost its leadership. Wall clocks cannot order both decisions. */
  #isSuperseded(stored: PublishedDecision): boolean {
    return !this.#isLeader && stored.leader !== this.#options.config.identity;
  }

  async #writeStatus({ group, snapshot }: TurnReport, decision: PublishedDecision, object: KubernetesObject): Promise<void> {
    const previous = object['status'];
    const status = groupStatus(decision, defined({ generation: group.generation, previous, scale: scaleTargetOf(group, snapshot) }));
    const patch = { status: mergePatch(asJsonObject(previous), { ...status }) };
    const options = { patch, subresource: 'status', site: 'publish.patchStatus', timeoutMs: this.#timeoutMs };
    await patchObject(this.#options.env, rolloutGroups, targetOf(object), options);
  }

  async #writeConfigMap({ namespace, name }: GroupName, decision: PublishedDecision, map?: KubernetesObject): Promise<void> {
    const data = { [decisionKey]: JSON.stringify(decision) };
    const metadata = { namespace, name: statusMapName(name), labels: { [ledgerLabel.key]: labelValue } };
    const made = { apiVersion: apiVersionOf(resources.configMaps), kind: 'ConfigMap', metadata, ...map, data };
    const site = map === undefined ? 'publish.createConfigMap' : 'publish.replaceConfigMap';
    const write = map === undefined ? createObject : replaceObject;
    await write(this.#options.env, resources.configMaps, made, { site, timeoutMs: this.#timeoutMs });
  }
}

function validDecision(value: unknown): Pick<Stored, 'decision'> {
  const decision = value === undefined ? undefined : readPublished(value);
  return decision === undefined || isUnknown(decision) ? {} : { decision };
}

function fieldsText({ group, snapshot }: TurnReport): string {
  const scale = scaleTargetOf(group, snapshot);
  return JSON.stringify([scale?.replicas, scale?.selector, group.generation]);
}
