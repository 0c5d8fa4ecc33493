// Writes Kubernetes Events about turns on the RolloutGroup or the StatefulSet concerned, each fact at most once in ten minutes.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject } from '../../cluster/request/write.ts';
import { messageOf } from '../../policies/error-message.ts';
import { apiVersion } from '../../policies/schema/kinds.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ReleaseReport, TurnListener, TurnReport } from '../report.ts';
import { type EventFact, factsOf, type GroupPast, groupRemovalFacts, type ReleaseFact, releaseFacts } from './event-facts.ts';
import type { GroupObjects } from './group-objects.ts';

interface EventsOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'kubernetesTimeoutMs' | 'lease'>;
  readonly objects: GroupObjects;
  readonly onWrite?: (result: 'done' | 'failed' | 'dropped') => void;
}

/** A rule that blocks a group for a shorter time causes no Event. */
const lastingMs = 5000;
/** The minimum time between two Events about the same fact. */
const repeatMs = 600_000;
/** The most Events that wait to be written. Further Events are dropped. */
const maxWaiting = 200;
/** The most facts that are remembered for `repeatMs`. The oldest are forgotten first. */
const maxRemembered = 2000;
/** The API server's limit for the note of an Event, in characters. */
const longestNote = 1024;
const controller = 'rollout-group.dev/agent';
const maxFindings = 20;
const closeMs = 5000;
const longestTimeoutMs = 10_000;

interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

interface Waiting {
  readonly fact: EventFact;
  readonly atMs: number;
  readonly regarding: () => Regarding | Promise<Regarding>;
}

/** Writes Events while this process leads. A failed write is counted and not repeated, because no step depends on an Event. */
export class EventWriter {
  readonly #options: EventsOptions;
  readonly #pasts = new Map<string, GroupPast>();
  readonly #queuedMs = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  /** Cancels the timer of a wait that is not reported yet, by group and wait. */
  readonly #lasting = new Map<string, () => void>();
  readonly #timeoutMs: number;
  #writing: Promise<void> | undefined;
  #isLeader = false;
  #isHandingOver = false;
  #isClosed = false;
  #hasWarned = false;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      const key = `${report.group.namespace}/${report.group.name}`;
      const { facts, past } = factsOf(report, this.#pasts.get(key));
      this.#pasts.set(key, past);
      if (!this.#isLeader) return;
      for (const fact of facts) {
        const one = { fact, atMs: this.#options.env.clock.nowMs(), regarding: () => this.#concerned(report, fact) };
        if (fact.wait === undefined) this.#queue(key, one);
        else this.#queueIfItLasts(key, fact.wait, one);
      }
    },
    releaseEnded: (report) => this.#queueForMembers(report, releaseFacts(report)),
    groupGone: (report) => this.#queueForMembers(report, groupRemovalFacts(report)),
    groupsChanged: (groups, findings) => {
      const keys = new Set(groups.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const key of this.#pasts.keys()) if (!keys.has(key)) this.#pasts.delete(key);
      if (!this.#isLeader) return;
      for (const { code, message, object, file, line } of findings.filter(({ severity }) => severity === 'error').slice(0, maxFindings)) {
        const place = object ?? (file === '' ? 'the policies' : `${file}:${line}`);
        const fact: EventFact = { type: 'Warning', reason: 'PolicyInvalid', action: 'Ignore', note: `${code}: ${place}: ${message}` };
        this.#queue('', { fact, atMs: this.#options.env.clock.nowMs(), regarding: () => this.#agentLease() });
      }
    },
    leadershipChanged: (state) => {
      const isLost = this.#isLeader && !state.isLeader;
      this.#isLeader = state.isLeader;
      if (!isLost) return;
      this.#pasts.clear();
      if (this.#isHandingOver) return;
      const holder = state.holder === undefined ? '' : `; ${state.holder} holds the Lease`;
      const fact: EventFact = {
        type: 'Warning',
        reason: 'LeaseLost',
        action: 'Stop',
        note: `${this.#options.config.identity} no longer acts${holder}`,
      };
      this.#queue('', { fact, atMs: this.#options.env.clock.nowMs(), regarding: () => this.#agentLease() });
    },
  };

  constructor(options: EventsOptions) {
    this.#options = options;
    this.#timeoutMs = Math.min(this.#options.config.kubernetesTimeoutMs, longestTimeoutMs);
  }

  /** Suppresses the Event about a lost leadership. Called before the agent stops. */
  beginHandOver(): void {
    this.#isHandingOver = true;
  }

  /** Writes the waiting Events for at most `closeMs`, and accepts no further facts. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#lasting.values()) cancel();
    let cancel = (): void => undefined;
    const deadline = new Promise<void>((resolve) => {
      cancel = this.#options.env.timers.after(closeMs, () => {
        this.#waiting.splice(0);
        resolve();
      });
    });
    await Promise.race([this.#writing, deadline]);
    cancel();
  }

  #queue(subject: string, one: Waiting): void {
    const key = `${subject} ${one.fact.reason} ${one.fact.zone ?? ''} ${one.fact.identity ?? one.fact.note}`;
    const lastMs = this.#queuedMs.get(key);
    const nowMs = this.#options.env.clock.monotonicMs();
    if (this.#isClosed || (lastMs !== undefined && nowMs - lastMs < repeatMs)) return;
    if (this.#waiting.length >= maxWaiting) {
      this.#options.onWrite?.('dropped');
      return;
    }
    this.#queuedMs.delete(key);
    this.#queuedMs.set(key, nowMs);
    for (const [oldest] of this.#queuedMs) {
      if (this.#queuedMs.size <= maxRemembered) break;
      this.#queuedMs.delete(oldest);
    }
    this.#waiting.push(one);
    this.#writeWaiting();
  }

  #writeWaiting(): void {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      // Writes facts that arrived after the last write and before this callback.
      if (this.#waiting.length > 0) this.#writeWaiting();
    });
  }

  #queueIfItLasts(key: string, wait: string, one: Waiting): void {
    const name = `${key} ${wait}`;
    this.#lasting.get(name)?.();
    const cancel = this.#options.env.timers.after(lastingMs, () => {
      this.#lasting.delete(name);
      if (this.#isLeader && this.#pasts.get(key)?.waits.has(wait)) this.#queue(key, one);
    });
    this.#lasting.set(name, cancel);
  }

  async #writeAll(): Promise<void> {
    for (let one = this.#waiting.shift(); one !== undefined; one = this.#waiting.shift()) {
      try {
        await this.#write(one);
        this.#options.onWrite?.('done');
      } catch (error) {
        this.#options.onWrite?.('failed');
        if (!this.#hasWarned) this.#options.env.log.warn('event could not be written', { error: messageOf(error) });
        this.#hasWarned = true;
      }
    }
  }

  async #write({ fact, atMs, regarding: concern }: Waiting): Promise<void> {
    const regarding = await concern();
    const time = new Date(atMs).toISOString().replace('Z', '000Z');
    const { type, reason, action, note } = fact;
    const { identity } = this.#options.config;
    // The name depends on the content, so a repeated request after a lost response creates no second Event.
    const hash = hashText(canonicalJson({ regarding, time, fact, by: identity })).slice(0, 16);
    const name = `${regarding.name.slice(0, 200)}.${hash}`;
    const event: KubernetesObject = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: regarding.namespace, name },
      eventTime: time,
      regarding,
      type,
      reason,
      action,
      note: cutOff(note),
      reportingController: controller,
      reportingInstance: identity.slice(0, 128),
    };
    try {
      await createObject(this.#options.env, resources.events, event, { site: 'events.create', timeoutMs: this.#timeoutMs });
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
    }
  }

  async #concerned({ group, snapshot }: TurnReport, { zone }: EventFact): Promise<Regarding> {
    const { namespace, name } = group;
    const uid = await this.#options.objects.uidOf(group, 'events.getGroup');
    if (uid !== undefined) return { apiVersion, kind: 'RolloutGroup', namespace, name, uid };
    const member = group.zones.find((one) => one.name === zone) ?? group.zones[0];
    return statefulSetIn(snapshot, namespace, member?.statefulSet ?? name);
  }

  #agentLease(): Regarding {
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      namespace: this.#options.config.agentNamespace,
      name: this.#options.config.lease.name,
    };
  }

  #queueForMembers({ group, snapshot }: Pick<ReleaseReport, 'group' | 'snapshot'>, facts: readonly ReleaseFact[]): void {
    const { namespace, name } = group;
    for (const { fact, statefulSet } of this.#isLeader ? facts : []) {
      const regarding = (): Regarding => statefulSetIn(snapshot, namespace, statefulSet);
      this.#queue(`${namespace}/${name}`, { fact, atMs: this.#options.env.clock.nowMs(), regarding });
    }
  }
}

function statefulSetIn({ statefulSets }: TurnReport['snapshot'], namespace: string, name: string): Regarding {
  const set = statefulSets.find((one) => one.namespace === namespace && one.name === name);
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name, ...(set === undefined ? {} : { uid: set.uid }) };
}

function cutOff(note: string): string {
  return note.length <= longestNote ? note : `${note.slice(0, longestNote - 3)}...`;
}
