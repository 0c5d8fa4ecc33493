// One group as the engine reads it: overrides of zones applied, waves and gates complete, durations in milliseconds.
import type {
  ApprovalDefinition,
  BoundsDefinition,
  DelayedDefinition,
  DisruptionDefinition,
  GateDefinition,
  GroupDefinition,
  ReplicasDefinition,
  RolloutDefinition,
  WaveDefinition,
  ZoneDefinition,
} from '../definition.ts';
import { durationMs } from '../duration.ts';
import type { RolloutGroup } from '../schema/kinds.ts';
import type {
  ApprovalSpec,
  DisruptionSpec,
  GateSpec,
  ReplicasSpec,
  RolloutGroupSpec,
  WaveSpec,
  ZoneSpec,
} from '../schema/rollout-group.ts';
import { defined } from '../values/defined.ts';
import { definitionSources, type SourceLookup } from './group-sources.ts';
import { scheduledWaves } from './schedule.ts';

/** The wave of a group that names none. */
const singleWave = 'all';

/**
 * The definition of a group document with its members. Names that do not exist (a wave of an unknown zone) are kept as they are written;
 * lint reports them.
 */
export function resolveGroup(document: RolloutGroup, members: readonly ZoneSpec[], lookup: SourceLookup): GroupDefinition {
  const { metadata, spec } = document;
  const gates = (spec.gates ?? []).map(resolveGate);
  const zones = members.map((zone) => resolveZone(spec, zone));
  const rollout = resolveRollout(spec.rollout, zones);
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name,
    labels: metadata.labels ?? {},
    zones,
    rollout,
    gates,
    ...(spec.disruption ? { disruption: resolveDisruption(spec.disruption) } : {}),
    ...(spec.notify?.length ? { notify: spec.notify } : {}),
    profile: spec.profile,
    sources: definitionSources(lookup, {
      zones: zones.map((zone) => zone.name),
      waves: rollout.waves.map((wave) => wave.name),
      gates: gates.map((gate) => gate.name),
    }),
  };
}

/** Returns the definition of a zone. Its fields replace those of the group; `replicas`, `delayed` and `prepare` as a whole. */
function resolveZone(spec: RolloutGroupSpec, zone: ZoneSpec): ZoneDefinition {
  const replicas = zone.replicas ?? spec.replicas;
  const protect = { ...spec.protect, ...zone.protect };
  const scaling = { ...spec.scaling, ...zone.scaling };
  const { hold, betweenZones, delayed, prepare } = { ...spec.scaling?.down, ...zone.scaling?.down };
  const { followersWaitFor } = { ...spec.scaling?.up, ...zone.scaling?.up };
  return defined({
    name: zone.name,
    statefulSet: zone.statefulSet,
    follows: zone.follows,
    // A follower has the replicas of its leader, for every source of the group.
    replicas: resolveReplicas(zone.follows === undefined ? replicas : undefined),
    bounds: resolveBounds(replicas),
    maxUnavailable: zone.maxUnavailable ?? spec.rollout.maxUnavailable,
    paused: zone.paused ?? false,
    forceReplicas: zone.forceReplicas,
    scalingHold: scaling.hold,
    scaleDownHold: hold,
    duringRollout: scaling.duringRollout ?? 'wait',
    followersWaitFor: followersWaitFor ?? 'leaderReady',
    betweenZonesMs: betweenZones === undefined ? undefined : durationMs(betweenZones),
    delayed: delayed && resolveDelayed(delayed),
    prepare,
    noDownscale: protect.noDownscale ?? false,
    noDelete: protect.noDelete ?? false,
    noEviction: protect.noEviction ?? false,
  });
}

type DelayedSpec = NonNullable<NonNullable<NonNullable<RolloutGroupSpec['scaling']>['down']>['delayed']>;

function resolveDelayed({ after, endpoint, onUnreachable }: DelayedSpec): DelayedDefinition {
  return { afterMs: durationMs(after), endpoint, onUnreachable };
}

function resolveReplicas(replicas: ReplicasSpec | undefined): ReplicasDefinition {
  if (replicas?.count !== undefined) return { kind: 'count', count: replicas.count };
  if (!replicas?.mirror) return { kind: 'leader' };
  const { from, writeBack, onMissing } = replicas.mirror;
  return defined({
    kind: 'mirror' as const,
    apiVersion: from.apiVersion,
    resourceKind: from.kind,
    name: from.name,
    read: from.read,
    fieldPath: from.fieldPath,
    writeBack,
    onMissing,
  });
}

function resolveBounds(replicas: ReplicasSpec | undefined): BoundsDefinition {
  return replicas?.bounds ? defined(replicas.bounds) : { multipleOf: 1, parity: 'any' };
}

function resolveRollout(rollout: RolloutGroupSpec['rollout'], zones: readonly ZoneDefinition[]): RolloutDefinition {
  const { progress, run } = rollout.deadlines;
  return {
    strategy: rollout.strategy,
    order: rollout.order,
    rotateBy: rollout.rotateBy,
    minIntervalMs: durationMs(rollout.minInterval),
    replaceUnready: { when: rollout.replaceUnready.when, afterMs: durationMs(rollout.replaceUnready.after) },
    waves:
      rollout.waves?.map(resolveWave) ?? (rollout.schedule === undefined ? [everyZone(zones)] : scheduledWaves(rollout.schedule, zones)),
    deadlines: defined({
      progressMs: progress === undefined ? undefined : durationMs(progress),
      runMs: run === undefined ? undefined : durationMs(run),
    }),
    onFailure: rollout.onFailure,
    skipOnRollback: rollout.skipOnRollback,
    historyLimit: rollout.historyLimit,
    ...(rollout.onPolicyDeleted === 'release' ? { onPolicyDeleted: rollout.onPolicyDeleted } : {}),
  };
}

function everyZone(zones: readonly ZoneDefinition[]): WaveDefinition {
  return {
    name: singleWave,
    zones: zones.map((zone) => zone.name),
    amount: { percent: 100 },
    before: { gates: [] },
    after: { soakMs: 0, gates: [] },
  };
}

function resolveWave(wave: WaveSpec): WaveDefinition {
  return {
    name: wave.name,
    zones: wave.zones,
    amount: wave.pods === undefined ? { percent: wave.percent ?? 100 } : { pods: wave.pods },
    before: defined({ approval: wave.before?.approval && resolveApproval(wave.before.approval), gates: wave.before?.gates ?? [] }),
    after: defined({
      soakMs: wave.after?.soak === undefined ? 0 : durationMs(wave.after.soak),
      approval: wave.after?.approval && resolveApproval(wave.after.approval),
      gates: wave.after?.gates ?? [],
    }),
  };
}

/** Resolves an approval; without `from` every user may approve. */
function resolveApproval(approval: ApprovalSpec): ApprovalDefinition {
  const { count, from, expires } = approval;
  return defined({ count, from: from ?? [], expiresMs: expires === undefined ? undefined : durationMs(expires) });
}

function resolveGate(gate: GateSpec): GateDefinition {
  const { prometheus, consul, http, podsAvailable } = gate;
  return {
    name: gate.name,
    mode: gate.mode,
    provider: defined({ prometheus, consul, http, podsAvailable }),
    // Earlier no pod can be ready for that long, and the gate would fail without a cause.
    initialDelayMs: Math.max(durationMs(gate.initialDelay), (podsAvailable?.minReadySeconds ?? 0) * 1000),
    everyMs: durationMs(gate.every),
    consecutive: gate.consecutive,
    failureLimit: gate.failureLimit,
    noData: gate.noData,
    onError: gate.onError,
    pass: gate.pass ?? defaultPass(gate),
  };
}

/** Returns the default condition: no failing pod or instance, or at least `passing` instances of a Consul service. */
function defaultPass(gate: GateSpec): unknown {
  if (gate.consul?.passing !== undefined) return { '>=': [{ var: 'value' }, gate.consul.passing] };
  return { '==': [{ var: 'value' }, 0] };
}

function resolveDisruption(disruption: DisruptionSpec): DisruptionDefinition {
  const { maxUnavailable, maxUnavailablePercent, partition, crossZoneDelay } = disruption;
  return defined({
    maxUnavailable,
    maxUnavailablePercent,
    partition,
    crossZoneDelayMs: crossZoneDelay === undefined ? 0 : durationMs(crossZoneDelay),
  });
}
