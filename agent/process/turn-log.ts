// Logs turns: each action with its result, and each change of the rules that block a group.
import type { Action } from '../../engine/decision.ts';
import type { Log, LogFields } from '../env.ts';
import type { PerformedAction, TurnListener } from '../report.ts';

/** Writes about turns; nothing about a turn that changes nothing but the level debug. */
export function turnLog(log: Log): TurnListener {
  /** The last logged waits of each group. */
  const waits = new Map<string, string>();
  const errors = new Map<string, string>();
  const degradations = new Map<string, string>();
  return {
    turnEnded: ({ group, decision, performed, durationMs, error }) => {
      const key = `${group.namespace}/${group.name}`;
      const name = { namespace: group.namespace, group: group.name };
      for (const one of performed) logAction(log, name, one);
      if (error !== undefined && errors.get(key) !== error) log.warn('reconcile failed', { ...name, err: error });
      if (error === undefined) errors.delete(key);
      else errors.set(key, error);
      if (decision === undefined) return;
      log.debug('reconcile done', {
        ...name,
        phase: decision.phase,
        goal: decision.goal,
        actions: performed.length,
        duration_ms: Math.round(durationMs),
      });
      // While pods come and go, budgets hold the next one all the time.
      const isMoving = decision.phase === 'Rolling' || decision.phase === 'Scaling';
      const [first] = isMoving ? [] : decision.waits;
      const held =
        first === undefined ? '' : `${decision.phase} ${decision.waits.map(({ rule, outcome }) => `${rule} ${outcome}`).join(' ')}`;
      if (held === (waits.get(key) ?? '')) return;
      waits.set(key, held);
      if (first === undefined) log.info('group is no longer blocked', { ...name, phase: decision.phase });
      else {
        const until = first.earliestMs === undefined ? undefined : new Date(first.earliestMs).toISOString();
        log.info('group is blocked', { ...name, phase: decision.phase, rule: first.rule, fact: first.fact, limit: first.limit, until });
      }
    },
    groupsChanged: (groups, findings) => {
      const keys = new Set(groups.map(({ namespace, name }) => `${namespace}/${name}`));
      for (const known of [waits, errors]) for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
      log.info('groups loaded', { groups: groups.length, findings: findings.length });
      for (const { code, severity, message, object, file, line } of findings.slice(0, 100)) {
        if (severity !== 'notice') log.warn(message, { code, severity, object, file: file === '' ? undefined : `${file}:${line}` });
      }
    },
    degraded: (all) => {
      const now = new Map(all.map(({ id, message }) => [id, message]));
      for (const [id, message] of now) if (degradations.get(id) !== message) log.warn('degraded', { part: id, message });
      for (const id of degradations.keys()) if (!now.has(id)) log.info('no longer degraded', { part: id });
      degradations.clear();
      for (const [id, message] of now) degradations.set(id, message);
    },
    leadershipChanged: ({ isLeader, epoch, holder }) => log.info('leadership changed', { is_leader: isLeader, epoch, holder }),
  };
}

function logAction(log: Log, name: LogFields, { action, result, message }: PerformedAction): void {
  const fields = { ...name, ...fieldsOf(action), result, err: message };
  if (result === 'failed' || result === 'unknown') log.warn(sentences[action.kind], fields);
  else log.info(sentences[action.kind], fields);
}

/** Operators look for these. */
const sentences: Readonly<Record<Action['kind'], string>> = {
  deletePod: 'terminating pod',
  evictPod: 'evicting pod',
  scaleStatefulSet: 'scaling statefulset',
  setPartition: 'setting the partition',
  callPods: 'calling pods',
  writeBackReplicas: 'writing back replicas',
  advanceCurrentRevision: 'advancing the current revision',
};

function fieldsOf(action: Action): LogFields {
  switch (action.kind) {
    case 'deletePod':
      return { zone: action.zone, statefulset: action.statefulSet, pod: action.pod, reason: action.because };
    case 'evictPod':
      return { zone: action.zone, statefulset: action.statefulSet, pod: action.pod, reason: action.because };
    case 'scaleStatefulSet':
      return { zone: action.zone, statefulset: action.statefulSet, from: action.from, to: action.to };
    case 'setPartition': {
      const { zone, statefulSet, from, to, because, pods } = action;
      return { zone, statefulset: statefulSet, from, to, reason: because, pods: pods.map(({ pod }) => pod).join(',') };
    }
    case 'callPods':
      return { zone: action.zone, statefulset: action.statefulSet, call: action.call, method: action.method, pods: action.ordinals.length };
    case 'writeBackReplicas':
      return { kind: action.resourceKind, name: action.name, replicas: action.replicas };
    case 'advanceCurrentRevision':
      return { zone: action.zone, statefulset: action.statefulSet, revision: action.revision };
  }
}
