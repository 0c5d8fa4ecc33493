// Logs turns: each action with its result, and each change of the rules that block a group.
import type { Action, GroupDecision } from '../../engine/decision.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import type { Log, LogFields } from '../env.ts';
import type { Degradation, TurnListener } from '../report.ts';
import { groupKey, removedKeys } from '../wake-index.ts';

/** Creates the listener that logs turns. Without actions, new errors or changed waits, a turn appears at most at level debug. */
export function turnLog(log: Log): TurnListener {
  // The wait and the error that were last logged for each group (`namespace/name`).
  const waits = new Map<string, string>();
  const errors = new Map<string, string>();
  return {
    turnEnded: ({ group, decision, performed, durationMs, error }) => {
      const key = groupKey(group);
      const groupFields = { namespace: group.namespace, group: group.name };
      for (const action of performed) logAction(log, groupFields, action);
      if (error !== undefined && errors.get(key) !== error) log.warn('reconcile failed', { ...groupFields, err: error });
      if (error === undefined) errors.delete(key);
      else errors.set(key, error);
      if (decision === undefined) return;
      log.debug('reconcile done', {
        ...groupFields,
        phase: decision.phase,
        goal: decision.goal,
        actions: performed.length,
        duration_ms: Math.round(durationMs),
      });
      const wait = waitKey(decision);
      if (wait === (waits.get(key) ?? '')) return;
      waits.set(key, wait);
      logWait(log, groupFields, decision);
    },
    groupsChanged: (groups, findings) => {
      for (const logged of [waits, errors]) for (const key of removedKeys(logged.keys(), groups)) logged.delete(key);
      log.info('groups loaded', { groups: groups.length, findings: findings.length });
      for (const { code, severity, message, object, file, line } of findings.slice(0, 100)) {
        if (severity !== 'notice') log.warn(message, { code, severity, object, file: file === '' ? undefined : `${file}:${line}` });
      }
    },
    degraded: logDegradations(log),
    leadershipChanged: ({ isLeader, epoch, holder }) => log.info('leadership changed', { is_leader: isLeader, epoch, holder }),
  };
}

/** Returns the waits to log; empty while pods are replaced or zones scale, because then a budget often blocks the next pod. */
function loggedWaits({ phase, waits }: GroupDecision): GroupDecision['waits'] {
  return phase === 'Rolling' || phase === 'Scaling' ? [] : waits;
}

/** Returns a key that changes when other waits must be logged. The key is empty without a wait. */
function waitKey(decision: GroupDecision): string {
  const waits = loggedWaits(decision);
  return waits.length === 0 ? '' : `${decision.phase} ${waits.map(({ rule, outcome }) => `${rule} ${outcome}`).join(' ')}`;
}

function logWait(log: Log, groupFields: LogFields, decision: GroupDecision): void {
  const { phase } = decision;
  const [first] = loggedWaits(decision);
  if (first === undefined) {
    log.info('group is no longer blocked', { ...groupFields, phase });
    return;
  }
  const until = first.earliestMs === undefined ? undefined : new Date(first.earliestMs).toISOString();
  log.info('group is blocked', { ...groupFields, phase, rule: first.rule, fact: first.fact, limit: first.limit, until });
}

/** Returns a function that logs each degradation when it begins, changes or ends. It expects the complete list at each call. */
function logDegradations(log: Log): (all: readonly Degradation[]) => void {
  let before: ReadonlyMap<string, string> = new Map();
  return (all) => {
    const now = new Map(all.map(({ id, message }) => [id, message]));
    for (const [id, message] of now) if (before.get(id) !== message) log.warn('degraded', { part: id, message });
    for (const id of before.keys()) if (!now.has(id)) log.info('no longer degraded', { part: id });
    before = now;
  };
}

function logAction(log: Log, groupFields: LogFields, { action, result, message }: TakenAction): void {
  const fields = { ...groupFields, ...actionFields(action), result, err: message };
  if (result === 'failed' || result === 'unknown') log.warn(actionMessages[action.kind], fields);
  else log.info(actionMessages[action.kind], fields);
}

const actionMessages: Readonly<Record<Action['kind'], string>> = {
  deletePod: 'terminating pod',
  evictPod: 'evicting pod',
  scaleStatefulSet: 'scaling statefulset',
  setPartition: 'setting the partition',
  callPods: 'calling pods',
  writeBackReplicas: 'writing back replicas',
  advanceCurrentRevision: 'advancing the current revision',
};

function actionFields(action: Action): LogFields {
  if (action.kind === 'writeBackReplicas') return { kind: action.resourceKind, name: action.name, replicas: action.replicas };
  const member = { zone: action.zone, statefulset: action.statefulSet };
  switch (action.kind) {
    case 'deletePod':
    case 'evictPod':
      return { ...member, pod: action.pod, reason: action.because };
    case 'scaleStatefulSet':
      return { ...member, from: action.from, to: action.to };
    case 'setPartition':
      return { ...member, from: action.from, to: action.to, reason: action.because, pods: action.pods.map(({ pod }) => pod).join(',') };
    case 'callPods':
      return { ...member, call: action.call, method: action.method, pods: action.ordinals.length };
    case 'advanceCurrentRevision':
      return { ...member, revision: action.revision };
  }
}
