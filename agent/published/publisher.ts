// Publishes changed decisions: in the status of the RolloutGroup if it exists, else in a ConfigMap next to the ledger.
import { isStatus } from '../../cluster/request/failure.ts';
import { isJsonObject } from '../../cluster/request/json.ts';
import { getObject } from '../../cluster/request/read.ts';
import { apiVersionOf, type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject, patchObject, replaceObject, type Target } from '../../cluster/request/write.ts';
import { ledgerLabel } from '../../engine/ledger/ledger-document.ts';
import { publishedDecision, samePublished } from '../../engine/publish/decision.ts';
import { type PublishedDecision, statusMapName } from '../../engine/publish/published.ts';
import { readPublished } from '../../engine/publish/read.ts';
import { groupStatus, scaleTargetOf } from '../../engine/publish/status.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { messageOf } from '../../policies/error-message.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation, TurnListener, TurnReport } from '../report.ts';
import { type GroupName, type GroupObjects, rolloutGroups } from './group-objects.ts';
import { WriteQueue } from './write-queue.ts';

interface PublisherOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'publishEveryMs' | 'identity' | 'kubernetesTimeoutMs' | 'agentNamespace' | 'lease'>;
  readonly objects: GroupObjects;
  readonly onWrite?: (result: 'done' | 'failed') => void;
}

/** Key in `data` of the ConfigMap. */
const decisionKey = 'decision';
/** Tells our ConfigMaps from ledgers, whose label has another value. */
const labelValue = 'decision';
/** Degradations about our webhook configurations and namespace labels. */
const ofConfigurations = 'webhook/configurations';
const ofNamespaces = 'webhook/namespaces/';
/** Longer waits for an answer would hold the other groups up. */
const longestTimeoutMs = 30_000;

interface Published {
  report: TurnReport;
  /** As it was last written, or found; undefined while it is being written. */
  last?: PublishedDecision | undefined;
  /** The last published scale fields as text. They change without a decision: pods terminate some time after a scale-down. */
  lastScale?: string;
}

/** A decision as the cluster has it, with what a write of the next one needs. */
interface Stored {
  readonly kind: 'status' | 'configMap';
  /** Absent while there is no ConfigMap. */
  readonly object?: KubernetesObject;
  readonly decision?: PublishedDecision;
  /** The scale fields as text; absent in a ConfigMap. */
  readonly scale?: string;
}

/** Publishes while this process leads. */
export class DecisionPublisher {
  readonly #options: PublisherOptions;
  readonly #groups = new Map<string, Published>();
  readonly #timeoutMs: number;
  #isLeader = false;
  /** It leads without a Lease. */
  #isAlone = false;
  #isHandingOver = false;
  /** Degradations that the webhooks of this process report about their registration. */
  #unheard: readonly Degradation[] = [];
  readonly #failed = new Set<string>();
  readonly #queue: WriteQueue;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      if (!this.#isLeader || report.decision === undefined) return;
      const key = `${report.group.namespace}/${report.group.name}`;
      const known: Published = this.#groups.get(key) ?? { report };
      known.report = report;
      this.#groups.set(key, known);
      const decision = known.last === undefined ? undefined : this.#decisionOf(known, known.last);
      const isSame = known.last !== undefined && decision !== undefined && samePublished(known.last, decision);
      if (!isSame || known.lastScale !== scaleText(report)) this.#queue.queueWrite(key);
    },
    groupsChanged: (all) => {
      const keys = new Set(all.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const key of this.#groups.keys()) {
        if (keys.has(key)) continue;
        this.#groups.delete(key);
        this.#failed.delete(key);
        this.#queue.forget(key);
      }
    },
    degraded: (all) => {
      this.#unheard = all.filter(({ id }) => id === ofConfigurations || id.startsWith(ofNamespaces));
      // A group without changes has no turn that would publish it.
      for (const key of this.#isLeader ? this.#groups.keys() : []) this.#queue.queueWrite(key);
    },
    leadershipChanged: (state) => {
      this.#isLeader = state.isLeader;
      if (state.isLeader) this.#isAlone = state.epoch === 0;
      if (this.#isLeader || this.#isHandingOver) return;
      // The next leader publishes what it decides; what was last here may be old by then.
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
      onWritten: (key) => {
        this.#failed.delete(key);
        this.#options.onWrite?.('done');
      },
      onFailure: (key, error) => {
        this.#options.onWrite?.('failed');
        // Another process wrote the object; it is read again and written.
        if (isStatus(error, 409) || this.#failed.has(key)) return;
        this.#failed.add(key);
        const [namespace = '', group = ''] = key.split('/');
        this.#options.env.log.warn('decision could not be published', {
          namespace,
          group,
          error: messageOf(error),
        });
      },
    });
  }

  /** Begins the hand-over: after the loss of leadership waiting decisions are still written. Call it before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Writes what is waiting, and nothing more. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  #unenforcedIn({ namespace }: GroupName): { readonly unenforced?: string } {
    const found = this.#unheard.find(({ id }) => !id.startsWith(ofNamespaces) || id === `${ofNamespaces}${namespace}`);
    return found === undefined ? {} : { unenforced: found.message };
  }

  #decisionOf({ report }: Published, previous: PublishedDecision | undefined): PublishedDecision | undefined {
    const { group, snapshot, decision, ledger, performed } = report;
    if (decision === undefined) return undefined;
    const { config } = this.#options;
    return publishedDecision({
      group,
      decision,
      snapshot,
      performed,
      atMs: snapshot.nowMs,
      leader: config.identity,
      ...(this.#isAlone ? {} : { lease: { namespace: config.agentNamespace, name: config.lease.name } }),
      ...(ledger === undefined ? {} : { ledger }),
      ...(previous === undefined ? {} : { previous }),
      ...this.#unenforcedIn(group),
    });
  }

  async #read(group: GroupName): Promise<Stored> {
    const object = await this.#options.objects.read(group, 'publish.getGroup');
    if (object !== undefined) {
      const status = object['status'];
      const scale = JSON.stringify([fieldOf(status, 'replicas'), fieldOf(status, 'selector')]);
      return { kind: 'status', object, scale, ...storedDecision(fieldOf(status, decisionKey)) };
    }
    const target = { namespace: group.namespace, name: statusMapName(group.name) };
    const map = await getObject(this.#options.env, resources.configMaps, target, {
      site: 'publish.getConfigMap',
      timeoutMs: this.#timeoutMs,
    });
    if (map === undefined) return { kind: 'configMap' };
    if (map.metadata.labels?.[ledgerLabel.key] !== labelValue) throw new Error(`ConfigMap ${target.name} is not managed by the agent`);
    return { kind: 'configMap', object: map, ...storedDecision(tryParseJson(fieldOf(map['data'], decisionKey))) };
  }

  async #write(key: string): Promise<'written' | 'unchanged'> {
    const known = this.#groups.get(key);
    if (known === undefined) return 'unchanged';
    const { report } = known;
    // The published state is unknown until the write ends, so every decision in between is wanted, also an unchanged one.
    known.last = undefined;
    const stored = await this.#read(report.group);
    const decision = this.#decisionOf({ report }, stored.decision);
    if (decision === undefined) return 'unchanged';
    const scale = scaleText(report);
    const isSame = (former: PublishedDecision): boolean =>
      samePublished(former, decision) && (stored.scale === undefined || stored.scale === scale);
    if (stored.decision !== undefined && (isSame(stored.decision) || this.#isSuperseded(stored.decision, decision))) {
      known.last = stored.decision;
      known.lastScale = stored.scale ?? scale;
      return 'unchanged';
    }
    await (stored.kind === 'status' ? this.#writeStatus(report, decision, stored) : this.#writeConfigMap(report.group, decision, stored));
    known.last = decision;
    known.lastScale = scale;
    return 'written';
  }

  /** Reports whether the stored decision is newer: a write after the release of the Lease must not overwrite that of the next leader. */
  #isSuperseded(stored: PublishedDecision, decision: PublishedDecision): boolean {
    return !this.#isLeader && stored.leader !== this.#options.config.identity && stored.decidedMs >= decision.decidedMs;
  }

  async #writeStatus({ group, snapshot }: TurnReport, decision: PublishedDecision, { object }: Stored): Promise<void> {
    const target = targetOf(object);
    const scale = scaleTargetOf(group, snapshot);
    const { generation } = object?.metadata ?? {};
    const previous = object?.['status'];
    const status = groupStatus(decision, {
      ...(generation === undefined ? {} : { generation }),
      ...(previous === undefined ? {} : { previous }),
      ...(scale === undefined ? {} : { scale }),
    });
    const patch = { status: mergePatch(previous, status) };
    await patchObject(this.#options.env, rolloutGroups, target, {
      patch,
      subresource: 'status',
      site: 'publish.patchStatus',
      timeoutMs: this.#timeoutMs,
    });
  }

  async #writeConfigMap({ namespace, name }: GroupName, decision: PublishedDecision, { object }: Stored): Promise<void> {
    const data = { [decisionKey]: JSON.stringify(decision) };
    if (object !== undefined) {
      await replaceObject(
        this.#options.env,
        resources.configMaps,
        { ...object, data },
        { site: 'publish.replaceConfigMap', timeoutMs: this.#timeoutMs },
      );
      return;
    }
    const metadata = { namespace, name: statusMapName(name), labels: { [ledgerLabel.key]: labelValue } };
    const made = { apiVersion: apiVersionOf(resources.configMaps), kind: 'ConfigMap', metadata, data };
    await createObject(this.#options.env, resources.configMaps, made, { site: 'publish.createConfigMap', timeoutMs: this.#timeoutMs });
  }
}

function storedDecision(value: unknown): Pick<Stored, 'decision'> {
  const decision = value === undefined ? undefined : readPublished(value);
  return decision === undefined || isUnknown(decision) ? {} : { decision };
}

function scaleText({ group, snapshot }: TurnReport): string {
  const scale = scaleTargetOf(group, snapshot);
  return JSON.stringify([scale?.replicas, scale?.selector]);
}

function targetOf(object: KubernetesObject | undefined): Target {
  const { namespace, name = '', uid = '', resourceVersion = '' } = object?.metadata ?? {};
  return { namespace, name, uid, resourceVersion };
}

function fieldOf(value: unknown, key: string): unknown {
  return isJsonObject(value) ? value[key] : undefined;
}

/** Returns the merge patch from `before` to `after`. Removed fields are null. */
export function mergePatch(before: unknown, after: object): Readonly<Record<string, unknown>> {
  const patch: Record<string, unknown> = {};
  const old = isJsonObject(before) ? before : {};
  for (const key of Object.keys(old)) if (!(key in after)) patch[key] = null;
  for (const [key, value] of Object.entries(after)) patch[key] = isJsonObject(value) ? mergePatch(old[key], value) : value;
  return patch;
}
