// Judges of who acts: nobody without a Lease that was renewed a moment ago (S17), and somebody soon when it is free (L3).
import type { Answered } from '../server/request.ts';
import { field, isAgent, leaseResource, parsed, podResource, statefulSetResource, textAt } from './objects.ts';
import type { Oracle, Scene } from './oracle.ts';

const renewDeadlineMs = 10_000;
/** How much slower than the true one a clock may be that Leases are safe with. */
const slowestRate = 1 / 1.5;
/** LeaseDuration and 1.2 retry periods, rounded up as the bound has it, and what a request or two may take. */
const failoverMs = 20_000;

/**
 * S17 is asked of what changes the group: its pods, its StatefulSets, its ledger and what it mirrors. Events, published decisions and records
 * of runs are what a process tells of the time when it led; it may end its sentence.
 */
export function judgeLeadership(scene: Scene): Oracle {
  /** Of each process: when its last successful renewal was sent, and how fast its clock was then. */
  const renewed = new Map<string, { readonly sentMs: number; readonly rate: number }>();
  const running = new Set<string>();
  let healingMs = Number.POSITIVE_INFINITY;
  let isFailoverChecked = false;

  const rateOf = (process: string): number => scene.clockOf?.(process).rate ?? slowestRate;
  const noteLease = ({ request, status, atMs, verb }: Answered): void => {
    const { process, sentAtMs = atMs } = request.actor;
    if (process === undefined || status > 299 || verb === 'get' || verb === 'list') return;
    // The one that gives the Lease away is no renewal.
    if ((textAt(parsed(request.body), 'spec', 'holderIdentity') ?? '') === '') renewed.delete(process);
    else if (sentAtMs >= (renewed.get(process)?.sentMs ?? 0)) renewed.set(process, { sentMs: sentAtMs, rate: rateOf(process) });
  };
  const checkHolder = (answered: Answered): void => {
    const { request, atMs, verb, resource, name } = answered;
    const { process = '', sentAtMs = atMs } = request.actor;
    const last = renewed.get(process);
    const oldestMs = renewDeadlineMs / Math.min(last?.rate ?? 1, rateOf(process)) + 1;
    if (last !== undefined && sentAtMs - last.sentMs <= oldestMs) return;
    const age = last === undefined ? 'holds no Lease' : `renewed its Lease ${Math.round(sentAtMs - last.sentMs)} ms before`;
    scene.violated('S17', `${process}: ${verb} ${resource} ${name} was sent by a process that ${age}`);
  };
  const checkFailover = (): void => {
    const nowMs = scene.nowMs();
    if (isFailoverChecked || nowMs < healingMs + failoverMs || running.size === 0) return;
    isFailoverChecked = true;
    const hasLeader = [...renewed].some(([process, { sentMs }]) => running.has(process) && sentMs >= healingMs);
    if (!hasLeader) scene.violated('L3', `nobody has taken the Lease ${failoverMs} ms after everything was mended`);
  };
  return {
    answered: (answered) => {
      if (answered.resource === leaseResource) noteLease(answered);
      else if (isGuarded(scene, answered)) checkHolder(answered);
      if (healingMs < Number.POSITIVE_INFINITY) checkFailover();
    },
    processChanged: (process, change) => {
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
