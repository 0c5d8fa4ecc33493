// Judges of who acts: nobody without a Lease that was renewed a moment ago (S17), and somebody soon when it is free (L3).
import type { Answered } from '../server/request.ts';
import { field, isAgent, leaseResource, parsed, podResource, statefulSetResource, textAt } from './objects.ts';
import type { Oracle, Scene } from './oracle.ts';

const renewDeadlineMs = 10_000;
/** How much slower than the true one a clock may be that Leases are safe with. */
const slowestRate = 1 / 1.5;
/** LeaseDuration and 1.2 retry periods, rounded up as the bound has it, and what a request or two may take. */
const failoverMs = 20_000;

/** A renewal, or (`isHeld` false) the Lease given away. */
interface Holding {
  readonly sentMs: number;
  /** When it was applied. */
  readonly atMs: number;
  /** How fast the clock of the process was then. */
  readonly rate: number;
  readonly isHeld: boolean;
}

/**
 * S17 is asked of what a process knew when it sent the request, however late that arrives: by then it may have given the Lease away, or have it again.
 * It is asked of what changes the group: its pods, what they are told, its StatefulSets, its ledger and what it mirrors. Events, published decisions
 * and records of runs are what a process tells of the time when it led; it may end its sentence.
 */
export function judgeLeadership(scene: Scene): Oracle {
  /** What each process has made of its Lease, in the order in which it was sent. */
  const holdings = new Map<string, Holding[]>();
  const running = new Set<string>();
  let healingMs = Number.POSITIVE_INFINITY;
  /** When a process last began or ended: one that was being stopped when everything was mended ends later, and comes back later still. */
  let turnoverMs = 0;
  let isFailoverChecked = false;

  const rateOf = (process: string): number => scene.clockOf?.(process).rate ?? slowestRate;
  const noteLease = ({ request, status, atMs, verb }: Answered): void => {
    const { process, sentAtMs = atMs } = request.actor;
    if (process === undefined || status > 299 || verb === 'get' || verb === 'list') return;
    // The one that gives the Lease away is no renewal.
    const isHeld = (textAt(parsed(request.body), 'spec', 'holderIdentity') ?? '') !== '';
    const known = holdings.get(process) ?? [];
    holdings.set(process, known);
    known.splice(known.findLastIndex(({ sentMs }) => sentMs <= sentAtMs) + 1, 0, { sentMs: sentAtMs, atMs, rate: rateOf(process), isHeld });
  };
  /** What a process knew of its Lease at that time, at most: one that it had not sent, or that had not been applied, gave it nothing. */
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
    if (!hasLeader) scene.violated('L3', `nobody has taken the Lease ${failoverMs} ms after everything was mended`);
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
    podCalled: ({ process, sentAtMs, method, pod }) => checkHolder(process, sentAtMs, `${method} to pod ${pod}`),
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

/** Whether only a leader may ask for it. */
function isGuarded({ agentUser, namespace: ours }: Scene, { verb, resource, namespace, name, request, isDryRun }: Answered): boolean {
  if (verb === 'get' || verb === 'list' || isDryRun || namespace !== ours || !isAgent(request.actor, agentUser)) return false;
  if (resource === podResource || resource === statefulSetResource) return true;
  if (resource === 'configmaps') return name.startsWith('rollout-group-') || (name === '' && isLedgerBody(request.body));
  return resource.endsWith('.rollout-operator.grafana.com');
}

function isLedgerBody(body: string | undefined): boolean {
  return String(field(parsed(body), 'metadata', 'name') ?? '').startsWith('rollout-group-');
}
