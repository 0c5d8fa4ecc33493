// Kubernetes Events for what a person may ask about: one per distinct fact in ten minutes, on the RolloutGroup or the StatefulSet concerned.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { createObject } from '../../cluster/request/write.ts';
import { canonicalJson, hashText } from '../../engine/hash.ts';
import { messageOf } from '../../policies/error-message.ts';
import { apiVersion } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { ReleaseReport, TurnListener, TurnReport } from '../report.ts';
import { type EventFact, factsOf, type GroupPast } from './event-facts.ts';
import type { GroupObjects } from './group-objects.ts';
import { partingFactsOf, type ReleaseFact, releaseFactsOf } from './release-facts.ts';

interface EventsOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'agentNamespace' | 'identity' | 'kubernetesTimeoutMs' | 'lease'>;
  readonly objects: GroupObjects;
  readonly onWrite?: (result: 'done' | 'failed' | 'dropped') => void;
}

interface Events {
  readonly listener: TurnListener;
  /** From now on a lost leadership is no news. To be called before the agent is stopped. */
  readonly beginHandOver: () => void;
  /** Writes what is waiting, for a few seconds at most, and nothing more. */
  readonly close: () => Promise<void>;
}

/** A rule that blocks a group for less than this causes no Event. */
const lastingMs = 5000;
/** The same fact is told again after this long. */
const repeatMs = 600_000;
/** Beyond this many that wait, and that many that are remembered, the newest are dropped, and the oldest forgotten. */
const mostWaiting = 200;
const mostRemembered = 2000;
/** As the API server limits them. */
const longestNote = 1024;
const controller = 'rollout-group.dev/agent';
const mostFindings = 20;
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

/** Tells of what the leader does. Failures are counted and lost: nothing waits for an Event. */
export function createEvents({ env, config, objects, onWrite }: EventsOptions): Events {
  const pasts = new Map<string, GroupPast>();
  const toldMs = new Map<string, number>();
  const waiting: Waiting[] = [];
  /** Ends the watch over a wait that may last, by group and wait. */
  const lasting = new Map<string, () => void>();
  const timeoutMs = Math.min(config.kubernetesTimeoutMs, longestTimeoutMs);
  let writing: Promise<void> | undefined;
  let isLeader = false;
  let isHandingOver = false;
  let isClosed = false;
  let hasWarned = false;

  const tell = (subject: string, one: Waiting): void => {
    const key = `${subject} ${one.fact.reason} ${one.fact.zone ?? ''} ${one.fact.identity ?? one.fact.note}`;
    const lastMs = toldMs.get(key);
    const nowMs = env.clock.monotonicMs();
    if (isClosed || (lastMs !== undefined && nowMs - lastMs < repeatMs)) return;
    if (waiting.length >= mostWaiting) {
      onWrite?.('dropped');
      return;
    }
    toldMs.delete(key);
    toldMs.set(key, nowMs);
    for (const [oldest] of toldMs) {
      if (toldMs.size <= mostRemembered) break;
      toldMs.delete(oldest);
    }
    waiting.push(one);
    writeWaiting();
  };

  const writeWaiting = (): void => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
      // Writes facts that arrived after the last write and before this callback.
      if (waiting.length > 0) writeWaiting();
    });
  };

  const tellWhenItLasts = (key: string, wait: string, one: Waiting): void => {
    const name = `${key} ${wait}`;
    lasting.get(name)?.();
    const cancel = env.timers.after(lastingMs, () => {
      lasting.delete(name);
      if (isLeader && pasts.get(key)?.waits.has(wait)) tell(key, one);
    });
    lasting.set(name, cancel);
  };

  const writeAll = async (): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      try {
        await write(one);
        onWrite?.('done');
      } catch (error) {
        onWrite?.('failed');
        if (!hasWarned) env.log.warn('event could not be written', { error: messageOf(error) });
        hasWarned = true;
      }
    }
  };

  const write = async ({ fact, atMs, regarding: concern }: Waiting): Promise<void> => {
    const regarding = await concern();
    const time = new Date(atMs).toISOString().replace('Z', '000Z');
    const { type, reason, action, note } = fact;
    // The name follows from the event, so that one whose answer was lost is not written twice.
    const name = `${regarding.name.slice(0, 200)}.${hashText(canonicalJson({ regarding, time, fact, by: config.identity })).slice(0, 16)}`;
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
      reportingInstance: config.identity.slice(0, 128),
    };
    try {
      await createObject(env, resources.events, event, { site: 'events.create', timeoutMs });
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
    }
  };

  const concerned = async ({ group, snapshot }: TurnReport, { zone }: EventFact): Promise<Regarding> => {
    const { namespace, name } = group;
    const uid = await objects.uidOf(group, 'events.getGroup');
    if (uid !== undefined) return { apiVersion, kind: 'RolloutGroup', namespace, name, uid };
    const member = group.zones.find((one) => one.name === zone) ?? group.zones[0];
    return statefulSetIn(snapshot, namespace, member?.statefulSet ?? name);
  };

  const agentItself = (): Regarding => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    namespace: config.agentNamespace,
    name: config.lease.name,
  });

  const tellOfMembers = ({ group, snapshot }: Pick<ReleaseReport, 'group' | 'snapshot'>, facts: readonly ReleaseFact[]): void => {
    const { namespace, name } = group;
    for (const { fact, statefulSet } of isLeader ? facts : []) {
      const regarding = (): Regarding => statefulSetIn(snapshot, namespace, statefulSet);
      tell(`${namespace}/${name}`, { fact, atMs: env.clock.nowMs(), regarding });
    }
  };

  const listener: TurnListener = {
    turnEnded: (report) => {
      const key = `${report.group.namespace}/${report.group.name}`;
      const { facts, past } = factsOf(report, pasts.get(key));
      pasts.set(key, past);
      if (!isLeader) return;
      for (const fact of facts) {
        const one = { fact, atMs: env.clock.nowMs(), regarding: () => concerned(report, fact) };
        if (fact.wait === undefined) tell(key, one);
        else tellWhenItLasts(key, fact.wait, one);
      }
    },
    releaseEnded: (report) => tellOfMembers(report, releaseFactsOf(report)),
    groupGone: (report) => tellOfMembers(report, partingFactsOf(report)),
    groupsChanged: (groups, findings) => {
      const keys = new Set(groups.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const key of pasts.keys()) if (!keys.has(key)) pasts.delete(key);
      if (!isLeader) return;
      for (const { code, message, object, file, line } of findings.filter(({ severity }) => severity === 'error').slice(0, mostFindings)) {
        const place = object ?? (file === '' ? 'the policies' : `${file}:${line}`);
        const fact: EventFact = { type: 'Warning', reason: 'PolicyInvalid', action: 'Ignore', note: `${code}: ${place}: ${message}` };
        tell('', { fact, atMs: env.clock.nowMs(), regarding: agentItself });
      }
    },
    leadershipChanged: (state) => {
      const isLost = isLeader && !state.isLeader;
      isLeader = state.isLeader;
      if (!isLost) return;
      pasts.clear();
      if (isHandingOver) return;
      const holder = state.holder === undefined ? '' : `; ${state.holder} holds the Lease`;
      const fact: EventFact = {
        type: 'Warning',
        reason: 'LeaseLost',
        action: 'Stop',
        note: `${config.identity} no longer acts${holder}`,
      };
      tell('', { fact, atMs: env.clock.nowMs(), regarding: agentItself });
    },
  };
  return {
    listener,
    beginHandOver: () => {
      isHandingOver = true;
    },
    close: async () => {
      isClosed = true;
      for (const cancel of lasting.values()) cancel();
      let cancel = (): void => undefined;
      const deadline = new Promise<void>((resolve) => {
        cancel = env.timers.after(closeMs, () => {
          waiting.splice(0);
          resolve();
        });
      });
      await Promise.race([writing, deadline]);
      cancel();
    },
  };
}

function statefulSetIn({ statefulSets }: TurnReport['snapshot'], namespace: string, name: string): Regarding {
  const set = statefulSets.find((one) => one.namespace === namespace && one.name === name);
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace, name, ...(set === undefined ? {} : { uid: set.uid }) };
}

function cutOff(note: string): string {
  return note.length <= longestNote ? note : `${note.slice(0, longestNote - 3)}...`;
}
