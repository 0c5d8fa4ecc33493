// The inputs of a PolicyTest case besides its pods: metrics, gate readings, the mirrored count, approvals and pauses.
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import type { GivenState } from '../../policies/schema/policy-test.ts';
import { toldSources } from '../observe/manifests.ts';
import { digestOfRule, digestOfWaves } from '../run/requests.ts';
import type { GateReading, GateReadingsView, IntentView, MetricView, ReplicaSourceView, Snapshot } from '../snapshot.ts';

interface InputsGiven {
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
  return { snapshot: toldSources({ ...snapshot, metrics, gateReadings, intents, replicaSources: replicaSources.map(untold) }), problems };
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
        value: value === 'unknown' ? { unknown: 'set by the case' } : value,
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
        ? [{ atMs: nowMs, result: 'error', message: 'set by the case' }]
        : values === 'noData'
          ? [{ atMs: nowMs, result: 'noData' }]
          : values.map((value, index) => ({ atMs: nowMs - (values.length - 1 - index) * gate.everyMs, result: 'value', value }));
    return [{ namespace: group.namespace, group: group.name, gate: name, readings }];
  });
}

/** Approvals as the webhook stamps them, given at this instant. */
function approvalsGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly IntentView[] {
  return (given.approvals ?? []).map((approval, index) => {
    const { wave, rule, user, groups } = approval;
    const digest = rule === undefined ? digestOfWaves(group) : ruleDigest(snapshot, rule);
    problems.push(...approvalProblems(group, approval, digest));
    const about = {
      ...(wave === undefined ? {} : { wave }),
      ...(rule === undefined ? {} : { rule }),
      ...(digest === undefined ? {} : { digest }),
    };
    const requestedBy = { user, groups, atMs: snapshot.nowMs };
    return { namespace: group.namespace, name: `approval-${index + 1}`, group: group.name, action: 'approve', ...about, requestedBy };
  });
}

function approvalProblems(
  group: GroupDefinition,
  { wave, rule, user }: NonNullable<GivenState['approvals']>[number],
  digest: string | undefined,
): readonly string[] {
  if (wave === undefined && rule === undefined) return [`the approval of ${user} names neither a wave nor a rule`];
  const isKnownWave = wave === undefined || group.rollout.waves.some(({ name }) => name === wave);
  return [
    ...(isKnownWave ? [] : [`the group ${group.name} has no wave ${wave}`]),
    ...(digest === undefined ? [`no policy has the rule ${rule}; rules are named as policy/rule`] : []),
  ];
}

/** Returns the digest of a rule named as `policy/rule`. */
function ruleDigest({ policies }: Snapshot, name: string): string | undefined {
  for (const policy of policies) {
    const rule = policy.rules.find((one) => `${policy.name}/${one.name}` === name);
    if (rule !== undefined) return digestOfRule(policy, rule);
  }
  return undefined;
}

function pausesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState): readonly IntentView[] {
  const requestedBy = { user: 'unnamed', groups: [], atMs: snapshot.nowMs };
  const pause = { namespace: group.namespace, group: group.name, action: 'pause', requestedBy } as const;
  const zones = group.zones.filter((zone) => given.zones?.[zone.name]?.paused === true);
  return [
    ...(given.paused === true ? [{ ...pause, name: 'pause' }] : []),
    ...zones.map((zone): IntentView => ({ ...pause, name: `pause-${zone.name}`, zone: zone.name })),
  ];
}

/** A case starts with the number in force reported to the source, regardless of the status in the manifest. */
function untold(source: ReplicaSourceView): ReplicaSourceView {
  return { ...source, statusReplicas: 0 };
}

/** The mirrored objects of the group ask for what the case says. One that the manifests do not hold is unknown otherwise. */
function sourcesGiven(snapshot: Snapshot, group: GroupDefinition, given: GivenState, problems: string[]): readonly ReplicaSourceView[] {
  const mirrors = group.zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [replicas] : []));
  if (given.source === undefined) return snapshot.replicaSources;
  if (mirrors.length === 0) problems.push(`the group ${group.name} mirrors no replica count`);
  const replicas = given.source === 'unknown' ? { unknown: 'set by the case' } : given.source;
  const sources = new Map(snapshot.replicaSources.map((source) => [`${source.namespace}/${source.kind}/${source.name}`, source]));
  for (const { apiVersion, resourceKind: kind, name } of mirrors) {
    const key = `${group.namespace}/${kind}/${name}`;
    sources.set(key, { ...(sources.get(key) ?? { namespace: group.namespace, apiVersion, kind, name }), replicas });
  }
  return [...sources.values()];
}
