// Writes Kubernetes Events about turns, releases and deleted groups, on the RolloutGroup or the StatefulSet concerned.
import { within } from '../../cluster/env.ts';
import { apiVersion } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ReleaseReport, TurnListener, TurnReport } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';
import {
  actionFacts,
  type EventFact,
  factsOf,
  type GroupPast,
  groupRemovalFacts,
  type ReleaseFact,
  releaseFacts,
  warning,
} from './event-facts.ts';
import { EventSeries, type Observed, type Regarding } from './event-series.ts';
import type { GroupObjects } from './group-objects.ts';

interface EventsOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'kubernetesTimeoutMs' | 'lease'>;
  readonly objects: GroupObjects;
  readonly onWrite?: (result: 'done' | 'failed' | 'dropped') => void;
}

/** A rule that blocks a group for a shorter time causes no Event. */
const lastingMs = 5000;
const maxFindings = 20;
const closeMs = 5000;
const longestTimeoutMs = 10_000;

/** Writes Events while this process leads. The actions of its last turn have Events even if it has lost the Lease. */
export class EventWriter {
  readonly #options: EventsOptions;
  readonly #pasts = new Map<string, GroupPast>();
  readonly #series: EventSeries;
  /** Cancels the timer of a wait that is not reported yet, by group and wait. */
  readonly #lasting = new Map<string, () => void>();
  #isLeader = false;
  #isHandingOver = false;
  #isClosed = false;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      const key = groupKey(report.group);
      const { facts, past } = factsOf(report, this.#pasts.get(key));
      this.#pasts.set(key, past);
      // A process that lost the Lease during the turn still reports the actions of this turn.
      for (const fact of this.#isLeader ? facts : actionFacts(report.performed)) {
        const run = report.decision?.run?.id;
        const one = { subject: key, fact, run, atMs: this.#options.env.clock.nowMs(), regarding: () => this.#concerned(report, fact) };
        if (fact.wait === undefined) this.#observe(one);
        else this.#observeIfItLasts(fact.wait, one);
      }
    },
    releaseEnded: (report) => this.#queueForMembers(report, releaseFacts(report)),
    groupGone: (report) => this.#queueForMembers(report, groupRemovalFacts(report)),
    groupsChanged: (groups, findings) => {
      for (const key of removedKeys(this.#pasts.keys(), groups)) this.#pasts.delete(key);
      if (!this.#isLeader) return;
      for (const { code, message, object, file, line } of findings.filter(({ severity }) => severity === 'error').slice(0, maxFindings)) {
        const place = object ?? (file === '' ? 'the policies' : `${file}:${line}`);
        this.#observeOnLease(warning('PolicyInvalid', 'Ignore', `${code}: ${place}: ${message}`));
      }
    },
    leadershipChanged: (state) => {
      const isLost = this.#isLeader && !state.isLeader;
      this.#isLeader = state.isLeader;
      if (!isLost) return;
      this.#pasts.clear();
      if (this.#isHandingOver) return;
      const holder = state.holder === undefined ? '' : `; ${state.holder} holds the Lease`;
      this.#observeOnLease(warning('LeaseLost', 'Stop', `${this.#options.config.identity} no longer acts${holder}`));
    },
  };

  constructor(options: EventsOptions) {
    this.#options = options;
    const { env, config, onWrite } = options;
    this.#series = new EventSeries({
      env,
      identity: config.identity,
      timeoutMs: Math.min(config.kubernetesTimeoutMs, longestTimeoutMs),
      onWrite,
    });
  }

  /** Suppresses the Event about a lost leadership. Called before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Writes the waiting Events for at most `closeMs`, and accepts no further facts. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#lasting.values()) cancel();
    await within(this.#options.env, closeMs, this.#series.close());
    this.#series.giveUp();
  }

  #observe(one: Observed): void {
    if (!this.#isClosed) this.#series.observe(one);
  }

  #observeIfItLasts(wait: string, one: Observed): void {
    const { subject } = one;
    const name = `${subject} ${wait}`;
    this.#lasting.get(name)?.();
    const cancel = this.#options.env.timers.after(lastingMs, () => {
      this.#lasting.delete(name);
      if (this.#isLeader && this.#pasts.get(subject)?.waits.has(wait)) this.#observe(one);
    });
    this.#lasting.set(name, cancel);
  }

  async #concerned({ group, snapshot }: TurnReport, { zone }: EventFact): Promise<Regarding> {
    const { namespace, name } = group;
    const uid = await this.#options.objects.uidOf(group, 'events.getGroup');
    if (uid !== undefined) return { apiVersion, kind: 'RolloutGroup', namespace, name, uid };
    const member = group.zones.find((one) => one.name === zone) ?? group.zones[0];
    return statefulSetIn(snapshot, namespace, member?.statefulSet ?? name);
  }

  #observeOnLease(fact: EventFact): void {
    const { env, config } = this.#options;
    const target = { namespace: config.agentNamespace, name: config.lease.name };
    const regarding = (): Regarding => ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...target });
    this.#observe({ subject: '', fact, atMs: env.clock.nowMs(), regarding });
  }

  #queueForMembers({ group, snapshot }: Pick<ReleaseReport, 'group' | 'snapshot'>, facts: readonly ReleaseFact[]): void {
    const { namespace, name } = group;
    for (const { fact, statefulSet } of this.#isLeader ? facts : []) {
      const regarding = (): Regarding => statefulSetIn(snapshot, namespace, statefulSet);
      this.#observe({ subject: `${namespace}/${name}`, fact, atMs: this.#options.env.clock.nowMs(), regarding });
    }
  }
}

function statefulSetIn({ statefulSets }: TurnReport['snapshot'], namespace: string, name: string): Regarding {
  const set = statefulSets.find((one) => one.namespace === namespace && one.name === name);
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name, ...(set === undefined ? {} : { uid: set.uid }) };
}
