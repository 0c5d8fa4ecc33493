// Judges leadership: only a process with a recently renewed Lease acts (S17), and a free Lease is taken soon (L3).

import { field, isAgent, leaseResource, parsed, podResource, statefulSetResource, textAt } from '../objects.ts';
import type { Answered } from '../server/request.ts';
import type { Oracle, Scene } from './oracle.ts';

const renewDeadlineMs = 10_000;
/** The slowest rate of a clock with which Leases are safe. */
const slowestRate = 1 / 1.5;
/** The time within which a free Lease is taken: LeaseDuration, 1.2 retry periods and the time of one or two requests. */
const failoverMs = 20_000;

/** A renewal, or (`isHeld` false) a release of the Lease. */
interface Holding {
  readonly sentMs: number;
  readonly atMs: number;
  readonly rate: number;
  readonly isHeld: boolean;
}

/** Creates the judge. For S17 the time of sending counts. S17 covers changes of the group, but not Events and published decisions. */
export function judgeLeadership(scene: Scene): Oracle {
  /** The Lease operations of each process in the order of sending. */
  const holdings = new Map<string, Holding[]>();
  const running = new Set<string>();
  let healingMs = Number.POSITIVE_INFINITY;
  /** The time of the last start or end of a process. A process that was stopping when faults ended restarts only later. */
  let turnoverMs = 0;
  let isFailoverChecked = false;

  const rateOf = (process: string): number => scene.clockOf?.(process).rate ?? slowestRate;
  const noteLease = ({ request, status, atMs, verb }: Answered): void => {
    const { process, sentAtMs = atMs } = request.actor;
    if (process === undefined || status > 299 || verb === 'get' || verb === 'list') return;
    // A release is not a renewal.
    const isHeld = (textAt(parsed(request.body), 'spec', 'holderIdentity') ?? '') !== '';
    const known = holdings.get(process) ?? [];
    holdings.set(process, known);
    known.splice(known.findLastIndex(({ sentMs }) => sentMs <= sentAtMs) + 1, 0, { sentMs: sentAtMs, atMs, rate: rateOf(process), isHeld });
  };
  /** Returns the latest Lease operation of which the process could know. */
  const holdingAt = (process: string, nowMs: number): Holding | undefined =>
    holdings.get(process)?.findLast(({ sentMs, atMs, isHeld }) => sentMs <= nowMs && (atMs <= nowMs || !isHeld));
  const checkHolder = (process: string, sentAtMs: number, what: string): void => {
    const last = holdingAt(process, sentAtMs);
    const oldestMs = renewDeadlineMs / Math.min(last?.rate ?? 1, rateOf(process)) + 1;
    if (last?.isHeld === true && sentAtMs - last.sentMs <= oldestMs) return;
    const age = last?.isHeld === true ? `renewed its Lease ${Math.round(sentAtMs - last.sentMs)} ms before` : 'holds no Lease';
    scene.violated('S17', `${process}: ${what} was sent by a process that ${age}`);
  };
  const checkFailover = (): void => {
    const nowMs = scene.nowMs();
    if (isFailoverChecked || nowMs < Math.max(healingMs, turnoverMs) + failoverMs || running.size === 0) return;
    isFailoverChecked = true;
    const hasLeader = [...running].some((process) => {
      const last = holdings.get(process)?.at(-1);
      return last?.isHeld === true && last.sentMs >= healingMs;
    });
    if (!hasLeader) scene.violated('L3', `no process took the Lease within ${failoverMs} ms after all faults ended`);
  };
  return {
    answered: (answered) => {
      if (answered.resource === leaseResource) noteLease(answered);
      else if (isGuarded(scene, answered)) {
        const { request, atMs, verb, resource, name } = answered;
        const { process = '', sentAtMs = atMs } = request.actor;
        checkHolder(process, sentAtMs, `${verb} ${resource} ${name}`);
      }
      if (healingMs < Number.POSITIVE_INFINITY) checkFailover();
    },
    podCalled: ({ process, sentAtMs, method, pod, isWebhook }) => {
      if (isWebhook !== true) checkHolder(process, sentAtMs, `${method} to pod ${pod}`);
    },
    processChanged: (process, change) => {
      if (change !== 'paused' && change !== 'resumed') turnoverMs = scene.nowMs();
      if (change === 'crashed' || change === 'stopped') running.delete(process);
      else running.add(process);
    },
    healingBegan: () => {
      healingMs = scene.nowMs();
    },
    ended: checkFailover,
  };
}

function isGuarded({ agentUser, namespace: ours }: Scene, { verb, resource, namespace, name, request, isDryRun }: Answered): boolean {
  if (verb === 'get' || verb === 'list' || isDryRun || namespace !== ours || !isAgent(request.actor, agentUser)) return false;
  if (resource === podResource || resource === statefulSetResource) return true;
  if (resource === 'configmaps') return name.startsWith('rollout-group-') || (name === '' && isLedgerBody(request.body));
  return resource.endsWith('.rollout-operator.grafana.com');
}

function isLedgerBody(body: string | undefined): boolean {
  return String(field(parsed(body), 'metadata', 'name') ?? '').startsWith('rollout-group-');
}
