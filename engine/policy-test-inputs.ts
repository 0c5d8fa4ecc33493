// What a case of a PolicyTest says beside the pods: metrics, gate readings, the mirrored count, approvals and pauses.
import type { GroupDefinition, PolicyDefinition, ZoneDefinition } from '../policies/definition.ts';
import type { GivenState } from '../policies/schema/policy-test.ts';
import type { GateReading, GateReadingsView, IntentView, MetricView, ReplicaSourceView, Snapshot } from './snapshot.ts';

export interface InputsGiven {
  readonly snapshot: Snapshot;
  readonly problems: readonly string[];
}

/** The snapshot with everything that a case gives as input. Names that nothing declares are problems. */
export function inputsGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): InputsGiven {
  const problems: string[] = [];
  const metrics = metricsGiven(snapshot, given, problems);
  const gateReadings = gatesGiven(snapshot, group, given, problems);
  const intents = [...approvalsGiven(snapshot, group, given, problems), ...pausesGiven(snapshot, group, given)];
  const replicaSources = sourcesGiven(snapshot, group, given, problems);
  return { snapshot: { ...snapshot, metrics, gateReadings, intents, replicaSources }, problems };
}

/** A metric is named by its input, or as `policy/input` where several policies declare one of that name. */
function metricsGiven(snapshot: Snapshot, given: GivenState, problems: string[]): readonly MetricView[] {
  return Object.entries(given.metrics ?? {}).flatMap(([key, value]) => {
    const input = key.slice(key.indexOf('/') + 1);
    const declares = (policy: PolicyDefinition): boolean =>
      Object.hasOwn(policy.metrics, input) && (key === input || key === `${policy.name}/${input}`);
    const owners = snapshot.policies.filter(declares);
    if (owners.length === 0) problems.push(`no policy declares the metric ${key}`);
    return owners.map(
      (policy): MetricView => ({
        namespace: policy.namespace,
        policy: policy.name,
        input,
        value: value === 'unknown' ? { unknown: 'the case says so' } : value,
        atMs: snapshot.nowMs,
      }),
    );
  });
}

/** Readings lie one period apart, and the newest is of this instant. */
function gatesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly GateReadingsView[] {
  return Object.entries(given.gates ?? {}).flatMap(([name, values]) => {
    const gate = group.gates.find((candidate) => candidate.name === name);
    if (gate === undefined) {
      problems.push(`the group ${group.name} has no gate ${name}`);
      return [];
    }
    const { nowMs } = snapshot;
    const readings: readonly GateReading[] =
      values === 'error'
        ? [{ atMs: nowMs, result: 'error', message: 'the case says so' }]
        : values === 'noData'
          ? [{ atMs: nowMs, result: 'noData' }]
          : values.map((value, index) => ({ atMs: nowMs - (values.length - 1 - index) * gate.everyMs, result: 'value', value }));
    return [{ namespace: group.namespace, group: group.name, gate: name, readings }];
  });
}

/** Approvals as the webhook stamps them, given at this instant. */
function approvalsGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly IntentView[] {
  return (given.approvals ?? []).map(({ wave, rule, user, groups }, index) => {
    if (wave === undefined && rule === undefined) problems.push(`the approval of ${user} names neither a wave nor a rule`);
    if (wave !== undefined && !group.rollout.waves.some((candidate) => candidate.name === wave))
      problems.push(`the group ${group.name} has no wave ${wave}`);
    if (rule !== undefined && !snapshot.policies.some((policy) => policy.rules.some((one) => `${policy.name}/${one.name}` === rule)))
      problems.push(`no policy has the rule ${rule}; rules are named as policy/rule`);
    const about = { ...(wave === undefined ? {} : { wave }), ...(rule === undefined ? {} : { rule }) };
    const requestedBy = { user, groups, atMs: snapshot.nowMs };
    return { namespace: group.namespace, name: `approval-${index + 1}`, group: group.name, action: 'approve', ...about, requestedBy };
  });
}

function pausesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): readonly IntentView[] {
  const requestedBy = { user: 'somebody', groups: [], atMs: snapshot.nowMs };
  const pause = { namespace: group.namespace, group: group.name, action: 'pause', requestedBy } as const;
  const zones = group.zones.filter((zone) => given.zones?.[zone.name]?.paused === true);
  return [
    ...(given.paused === true ? [{ ...pause, name: 'pause' }] : []),
    ...zones.map((zone): IntentView => ({ ...pause, name: `pause-${zone.name}`, zone: zone.name })),
  ];
}

type Mirror = Extract<ZoneDefinition['replicas'], { kind: 'mirror' }>;

/** The mirrored objects of the group ask for what the case says, and have been told the replicas in force. */
function sourcesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly ReplicaSourceView[] {
  const mirrored = group.zones.flatMap((zone) => (zone.replicas.kind === 'mirror' ? [{ zone, mirror: zone.replicas }] : []));
  if (mirrored.length === 0 && given.source !== undefined) problems.push(`the group ${group.name} mirrors no replica count`);
  const sources = new Map(snapshot.replicaSources.map((source) => [`${source.namespace}/${source.kind}/${source.name}`, source]));
  for (const { zone, mirror } of mirrored) {
    const key = `${group.namespace}/${mirror.resourceKind}/${mirror.name}`;
    const replicas = snapshot.statefulSets.find((set) => set.namespace === group.namespace && set.name === zone.statefulSet)?.replicas ?? 0;
    const source = sourceGiven(sources.get(key) ?? absent(group, mirror), given);
    sources.set(key, { ...source, statusReplicas: replicas });
  }
  return [...sources.values()];
}

function absent(group: GroupDefinition, { apiVersion, resourceKind, name }: Mirror): ReplicaSourceView {
  const replicas = { unknown: 'the manifests do not hold it' };
  return { namespace: group.namespace, apiVersion, kind: resourceKind, name, replicas };
}

function sourceGiven(source: ReplicaSourceView, { source: given }: GivenState): ReplicaSourceView {
  if (given === undefined) return source;
  return { ...source, replicas: given === 'unknown' ? { unknown: 'the case says so' } : given };
}
