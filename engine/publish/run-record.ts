// The record of one rollout or change of replicas, made turn by turn: a RolloutRun from the one before and what a turn did.
import type { GroupDefinition } from '../../policies/definition.ts';
import { instantMs, instantText } from '../../policies/instant.ts';
import { apiVersion, type RolloutRun } from '../../policies/schema/kinds.ts';
import { runLimits } from '../../policies/schema/rollout-run.ts';
import { hashText } from '../../policies/values/hash.ts';
import { type Action, type GroupDecision, replacedBy } from '../decision.ts';
import { isJoinOf } from '../run/run.ts';
import type { RunState, Snapshot } from '../snapshot.ts';
import { bytesOf } from './bounds.ts';
import type { TakenAction } from './published.ts';
import { withPeople } from './run-people.ts';
import { addSteps } from './run-steps.ts';

/** The input of a record from one turn. */
export interface RunTurn {
  readonly group: GroupDefinition;
  /** The input of the decision. */
  readonly snapshot: Snapshot;
  /** Absent when the turn failed before a decision: nothing is recorded then. */
  readonly decision?: GroupDecision;
  readonly performed: readonly TakenAction[];
  /** When the turn began, in milliseconds since 1970. */
  readonly startedMs: number;
}

type Spec = RolloutRun['spec'];

/** Annotations of a StatefulSet that say where a change comes from. */
export const changeAnnotations = {
  planDigest: 'rollout-group.dev/plan',
  commit: 'rollout-group.dev/commit',
  cause: 'kubernetes.io/change-cause',
} as const;

/**
 * The record after a turn: of the rollout under way, or with `scale` of the change of replicas. undefined while there is nothing to record; the
 * same value when the turn adds nothing, so that nothing is written while a group waits. A record that ends is given once more, ended; asked
 * again with it, the same turn begins the next record when there is one. At most 100 steps and 64 KiB of JSON.
 */
export function runRecord(previous: RolloutRun | undefined, turn: RunTurn, of: 'rollout' | 'scale' = 'rollout'): RolloutRun | undefined {
  const { decision } = turn;
  if (decision === undefined) return previous;
  return of === 'rollout' ? rolloutRecord(previous, turn, decision) : scaleRecord(previous, turn, decision);
}

function rolloutRecord(previous: RolloutRun | undefined, turn: RunTurn, decision: GroupDecision): RolloutRun | undefined {
  const { run } = decision;
  if (run === undefined) return previous;
  if (previous?.spec.id === run.id) return runState(previous, turn, decision, run);
  if (previous?.spec.outcome === 'running') {
    const joined = joining(previous, run);
    return joined === undefined ? ended(previous, 'superseded', turn.startedMs) : runState(joined, turn, decision, run);
  }
  if (run.outcome !== 'running') return previous;
  const began = newRecord(turn, {
    id: run.id,
    kind: run.kind,
    startedAt: timeText(run.startedMs),
    zones: turn.group.zones.slice(0, runLimits.zones).map(({ name, statefulSet }) => ({
      zone: name,
      statefulSet,
      ...(run.previous[name] ? { fromRevision: run.previous[name] } : {}),
      ...(run.target[name] ? { toRevision: run.target[name] } : {}),
    })),
  });
  return runState(began, turn, decision, run);
}

/** The record as that of a run that only took in more zones; undefined when it is another change. */
function joining(record: RolloutRun, run: RunState): RolloutRun | undefined {
  const revisions = (key: 'fromRevision' | 'toRevision'): Readonly<Record<string, string>> =>
    Object.fromEntries(record.spec.zones.flatMap((zone) => (zone[key] === undefined ? [] : [[zone.zone, zone[key]]])));
  if (!isJoinOf(run, { target: revisions('toRevision'), previous: revisions('fromRevision') })) return undefined;
  const zones = record.spec.zones.map((zone) => {
    const toRevision = run.target[zone.zone];
    return toRevision === undefined ? zone : { ...zone, toRevision };
  });
  return { ...record, spec: { ...record.spec, id: run.id, zones } };
}

function runState(record: RolloutRun, turn: RunTurn, decision: GroupDecision, run: RunState): RolloutRun {
  const isOver = record.spec.outcome !== 'running';
  if (isOver && run.outcome !== 'running') return record;
  // A retried run is the same run.
  const { endedAt: _endedAt, took: _took, failure: _failure, ...open } = record.spec;
  const reopened = isOver ? { ...record, spec: { ...open, outcome: 'running' as const } } : record;
  const moved = progressed(reopened, turn, decision, (action) => replacedBy(action).length > 0 || action.kind === 'advanceCurrentRevision');
  const told = withPeople(moved.spec, turn, run);
  const spoken = told === moved.spec ? moved : fitted({ ...moved, spec: told });
  if (run.outcome === 'running') return spoken;
  if (run.outcome === 'completed') return ended(spoken, run.outcome, run.completedMs);
  return ended(spoken, run.outcome, run.failedMs, run.failure);
}

function scaleRecord(previous: RolloutRun | undefined, turn: RunTurn, decision: GroupDecision): RolloutRun | undefined {
  const steps = decision.steps.filter((step) => step.kind !== 'roll');
  const isAboutReplicas = ({ kind }: Action): boolean => kind === 'scaleStatefulSet' || kind === 'callPods' || kind === 'writeBackReplicas';
  const open = previous?.spec.outcome === 'running' ? previous : undefined;
  if (open === undefined && !turn.performed.some(({ action }) => action.kind === 'scaleStatefulSet' || asksPods(action))) return previous;
  const record =
    open ?? newRecord(turn, { id: `scale-${turn.startedMs.toString(36)}`, kind: 'scale', startedAt: timeText(turn.startedMs), zones: [] });
  const moved = progressed(record, turn, decision, isAboutReplicas);
  const aimed = withReplicas(moved, turn, steps);
  const isMoving =
    steps.length > 0 || turn.performed.some(({ action }) => isAboutReplicas(action)) || decision.zones.some((zone) => !zone.isReady);
  if (isMoving) return aimed;
  const hasScaled = aimed.spec.steps.some((step) => step.action === 'scale' && step.count > (step.failures ?? 0));
  return ended(aimed, hasScaled ? 'completed' : 'cancelled', turn.startedMs);
}

function asksPods(action: Action): boolean {
  return action.kind === 'callPods' && action.method === 'POST';
}

/** Returns the start and, if known, the target of each zone. */
function withReplicas(record: RolloutRun, { performed, group }: RunTurn, steps: GroupDecision['steps']): RolloutRun {
  let { zones } = record.spec;
  const written = performed.flatMap(({ action }) => (action.kind === 'scaleStatefulSet' ? [action] : []));
  for (const { zone, from, to } of [...steps, ...written]) {
    if (from === undefined || to === undefined) continue;
    const known = zones.find((one) => one.zone === zone);
    const statefulSet = group.zones.find(({ name }) => name === zone)?.statefulSet;
    if (known?.toReplicas === to || (known === undefined && zones.length >= runLimits.zones)) continue;
    zones =
      known === undefined
        ? [...zones, { zone, ...(statefulSet && { statefulSet }), fromReplicas: from, toReplicas: to }]
        : zones.map((one) => (one === known ? { ...one, toReplicas: to } : one));
  }
  return zones === record.spec.zones ? record : { ...record, spec: { ...record.spec, zones } };
}

function newRecord(turn: RunTurn, begun: Pick<Spec, 'id' | 'kind' | 'startedAt' | 'zones'>): RolloutRun {
  const { group, snapshot } = turn;
  const annotations = group.zones.map(
    ({ statefulSet }) =>
      snapshot.statefulSets.find((set) => set.namespace === group.namespace && set.name === statefulSet)?.annotations ?? {},
  );
  const said = (key: string, most: number): string | undefined =>
    annotations
      .map((one) => one[key])
      .find((value) => value !== undefined && value !== '')
      ?.slice(0, most);
  const origin = {
    planDigest: said(changeAnnotations.planDigest, 64),
    commit: said(changeAnnotations.commit, 253),
    cause: said(changeAnnotations.cause, 512),
    policyDigest: snapshot.policyDigest === '' ? undefined : snapshot.policyDigest.slice(0, 64),
  };
  return {
    apiVersion,
    kind: 'RolloutRun',
    metadata: { name: recordName(group.name, begun.id), namespace: group.namespace },
    spec: {
      group: group.name,
      ...begun,
      outcome: 'running',
      waited: 0,
      steps: [],
      waits: [],
      ...Object.fromEntries(Object.entries(origin).filter(([, value]) => value !== undefined)),
    },
  };
}

/** A valid object name that is the same for the same run, however often its record is made. */
function recordName(group: string, id: string): string {
  const slug = id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  const tail = slug === id && slug.length <= 40 ? slug : `${slug.slice(0, 24)}-${hashText(id).slice(0, 10)}`.replace(/^-+/, '');
  return `${group.slice(0, 200)}-${tail}`;
}

function progressed(record: RolloutRun, turn: RunTurn, decision: GroupDecision, isOfRun: (action: Action) => boolean): RolloutRun {
  const taken = turn.performed.filter(({ action }) => isOfRun(action));
  const waited = addWait(record.spec, turn, decision);
  const spec = taken.length === 0 ? waited : addSteps(waited, taken, turn.startedMs, decision.wave?.name);
  return spec === record.spec ? record : fitted({ ...record, spec });
}

/** Time counts as waited while nothing moves and a rule holds the group; it is added up when that rule lets go. */
function addWait(spec: Spec, { startedMs }: RunTurn, decision: GroupDecision): Spec {
  const isMoving = decision.phase === 'Rolling' || decision.phase === 'Scaling' || decision.outcome === 'act';
  const [first] = isMoving ? [] : decision.waits;
  if (spec.waiting?.rule === first?.rule) return spec;
  const { waiting, ...rest } = spec;
  const settled = waiting === undefined ? rest : settle(rest, waiting, startedMs);
  if (first === undefined) return settled;
  return { ...settled, waiting: { rule: first.rule.slice(0, 317), fact: first.fact.slice(0, 512), since: timeText(startedMs) } };
}

function settle(spec: Spec, { rule, fact, since }: NonNullable<Spec['waiting']>, nowMs: number): Spec {
  const seconds = Math.max(0, Math.round((nowMs - (instantMs(since) ?? nowMs)) / 1000));
  const known = spec.waits.find((wait) => wait.rule === rule);
  const waits = known
    ? spec.waits.map((wait) => (wait === known ? { rule, fact, seconds: wait.seconds + seconds } : wait))
    : [...spec.waits, { rule, fact, seconds }].sort((a, b) => b.seconds - a.seconds).slice(0, runLimits.waits);
  return { ...spec, waits, waited: spec.waited + seconds };
}

function ended(record: RolloutRun, outcome: Spec['outcome'], atMs: number, failure?: string): RolloutRun {
  const { waiting, ...rest } = record.spec;
  const settled = waiting === undefined ? rest : settle(rest, waiting, atMs);
  const took = Math.max(0, Math.round((atMs - (instantMs(settled.startedAt) ?? atMs)) / 1000));
  const spec = {
    ...settled,
    outcome,
    endedAt: timeText(atMs),
    took,
    ...(failure === undefined ? {} : { failure: failure.slice(0, 1024) }),
  };
  return fitted({ ...record, spec });
}

/** Steps from the middle go until the record is short enough: how it began and how it ended tell the most. */
function fitted(record: RolloutRun): RolloutRun {
  let fits = record;
  while (fits.spec.steps.length > 2 && bytesOf(fits) > runLimits.bytes) {
    const { steps, stepsOmitted = 0 } = fits.spec;
    const middle = Math.floor(steps.length / 2);
    fits = { ...fits, spec: { ...fits.spec, steps: steps.filter((_, index) => index !== middle), stepsOmitted: stepsOmitted + 1 } };
  }
  return fits;
}

function timeText(ms: number): string {
  return instantText(ms) ?? '1970-01-01T00:00:00Z';
}
