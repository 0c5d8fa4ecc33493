// Resolves a RolloutGroup to the definition that the engine reads: applies overrides, completes waves and gates, finds sources of settings.
import type {
  ApprovalDefinition,
  BoundsDefinition,
  DelayedDefinition,
  DisruptionDefinition,
  GateDefinition,
  GroupDefinition,
  ReplicasDefinition,
  RolloutDefinition,
  ScheduleDefinition,
  Source,
  WaveDefinition,
  ZoneDefinition,
} from '../definition.ts';
import { durationMs } from '../duration.ts';
import { sourceOf } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { RolloutGroup } from '../schema/kinds.ts';
import type {
  ApprovalSpec,
  DisruptionSpec,
  GateSpec,
  ReplicasSpec,
  RolloutGroupSpec,
  RolloutSpec,
  ScheduleSpec,
  WaveSpec,
  ZoneSpec,
} from '../schema/rollout-group.ts';
import { defined } from '../values/defined.ts';
import type { Path } from '../yaml/document.ts';

const singleWave = 'all';

/** Returns the definition of a group document with its members. Keeps unknown names, such as a zone of a wave, which lint reports. */
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
    sources: definitionSources(lookup, { zones, rollout, gates }),
  };
}

/** Returns the definition of a zone. Its fields replace those of the group. `replicas`, `delayed` and `prepare` are never merged. */
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
    // A follower copies the replicas of its leader, so the source of the group does not apply.
    replicas: resolveReplicas(zone.follows === undefined ? replicas : undefined),
    bounds: resolveBounds(replicas),
    maxUnavailable: zone.maxUnavailable ?? spec.rollout.maxUnavailable,
    paused: zone.paused ?? false,
    forceReplicas: zone.forceReplicas,
    scalingHold: scaling.hold,
    scaleDownHold: hold,
    duringRollout: scaling.duringRollout ?? 'wait',
    followersWaitFor: followersWaitFor ?? 'leaderReady',
    betweenZonesMs: optionalMs(betweenZones),
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
  const { kind: resourceKind, ...source } = from;
  return defined({ ...source, kind: 'mirror' as const, resourceKind, writeBack, onMissing });
}

function resolveBounds(replicas: ReplicasSpec | undefined): BoundsDefinition {
  return replicas?.bounds ? defined(replicas.bounds) : { multipleOf: 1, parity: 'any' };
}

function resolveRollout(rollout: RolloutSpec, zones: readonly ZoneDefinition[]): RolloutDefinition {
  const { maxUnavailable: _, minInterval, replaceUnready, waves, schedule, deadlines, onPolicyDeleted, ...settings } = rollout;
  return defined({
    ...settings,
    minIntervalMs: durationMs(minInterval),
    replaceUnready: { when: replaceUnready.when, afterMs: durationMs(replaceUnready.after) },
    waves: wavesOf({ waves, schedule }, zones),
    deadlines: defined({ progressMs: optionalMs(deadlines.progress), runMs: optionalMs(deadlines.run) }),
    onPolicyDeleted: onPolicyDeleted === 'release' ? onPolicyDeleted : undefined,
  });
}

function plainWave(name: string, zones: readonly string[], amount: WaveDefinition['amount'], soakMs = 0): WaveDefinition {
  return { name, zones, amount, before: { gates: [] }, after: { soakMs, gates: [] } };
}

function optionalMs(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}

/** Returns the waves of a rollout: the written ones, else those of its schedule, else one wave. */
export function wavesOf(
  { waves, schedule }: Partial<Pick<RolloutSpec, 'waves' | 'schedule'>>,
  zones: readonly Pick<ZoneDefinition, 'name'>[],
): readonly WaveDefinition[] {
  if (waves !== undefined) return waves.map(resolveWave);
  if (schedule !== undefined) return scheduledWaves(schedule, zones);
  const names = zones.map(({ name }) => name);
  return [plainWave(singleWave, names, { percent: 100 })];
}

function resolveWave(wave: WaveSpec): WaveDefinition {
  return {
    name: wave.name,
    zones: wave.zones,
    amount: wave.pods === undefined ? { percent: wave.percent ?? 100 } : { pods: wave.pods },
    before: defined({ approval: wave.before?.approval && resolveApproval(wave.before.approval), gates: wave.before?.gates ?? [] }),
    after: defined({
      soakMs: optionalMs(wave.after?.soak) ?? 0,
      approval: wave.after?.approval && resolveApproval(wave.after.approval),
      gates: wave.after?.gates ?? [],
    }),
  };
}

function resolveApproval(approval: ApprovalSpec): ApprovalDefinition {
  const { count, from, expires } = approval;
  return defined({ count, from: from ?? [], expiresMs: optionalMs(expires) });
}

function resolveGate(gate: GateSpec): GateDefinition {
  const { prometheus, consul, http, podsAvailable, initialDelay, every, pass, ...settings } = gate;
  const noFailure = consul?.passing === undefined ? { '==': [{ var: 'value' }, 0] } : { '>=': [{ var: 'value' }, consul.passing] };
  return {
    ...settings,
    provider: defined({ prometheus, consul, http, podsAvailable }),
    // Before this delay is over, the last pod of the wave has usually been ready for less than `minReadySeconds`: a reading would fail.
    initialDelayMs: Math.max(durationMs(initialDelay), (podsAvailable?.minReadySeconds ?? 0) * 1000),
    everyMs: durationMs(every),
    pass: pass ?? noFailure,
  };
}

function resolveDisruption(disruption: DisruptionSpec): DisruptionDefinition {
  const { crossZoneDelay, ...limits } = disruption;
  return defined({ ...limits, crossZoneDelayMs: optionalMs(crossZoneDelay) ?? 0 });
}

/** A function that returns the source of a setting by a path such as `zones.b.scaling.hold` or `gates.errors`; undefined for a default. */
type SourceLookup = (path: string) => Source | undefined;

export function documentSources(document: Loaded<'RolloutGroup'>): SourceLookup {
  const { members, rollout, gates } = document.value.spec;
  const listed: Readonly<Record<string, readonly [path: Path, names: readonly string[]]>> = {
    zones: [['spec', 'members', 'zones'], (members.zones ?? []).map((zone) => zone.name)],
    waves: [['spec', 'rollout', 'waves'], (rollout.waves ?? []).map((wave) => wave.name)],
    gates: [['spec', 'gates'], (gates ?? []).map((gate) => gate.name)],
  };
  return (path) => {
    const [head = '', name = '', ...rest] = path.split('.');
    const [list, names] = listed[head] ?? [];
    const index = names?.indexOf(name) ?? -1;
    if (list && index < 0) return undefined;
    const place = document.find(list ? [...list, index, ...rest] : path === '' ? [] : ['spec', ...path.split('.')]);
    return place && sourceOf(place);
  };
}

/** The settings of a zone with the fields that can contain them, in order of precedence. */
const zoneSettings: Readonly<Record<string, readonly string[]>> = {
  maxUnavailable: ['zone.maxUnavailable', 'rollout.maxUnavailable'],
  paused: ['zone.paused'],
  forceReplicas: ['zone.forceReplicas'],
  follows: ['zone.follows'],
  replicas: ['zone.replicas', 'zone.replicas.mirror', 'replicas', 'replicas.mirror'],
  betweenZones: ['zone.scaling.down.betweenZones', 'scaling.down.betweenZones'],
  delayed: ['zone.scaling.down.delayed', 'scaling.down.delayed'],
  prepare: ['zone.scaling.down.prepare', 'scaling.down.prepare'],
  protect: ['zone.protect', 'zone.protect.noDownscale', 'protect', 'protect.noDownscale'],
  scaling: [
    'zone.scaling.hold',
    'zone.scaling.down.hold',
    'zone.scaling',
    'zone.scaling.up.followersWaitFor',
    'scaling.hold',
    'scaling.down.hold',
    'scaling',
    'scaling.up.followersWaitFor',
  ],
};

const groupSettings: readonly string[] = [
  '',
  'rollout.maxUnavailable',
  'rollout.strategy',
  'rollout.replaceUnready',
  'rollout.minInterval',
  'rollout.deadlines',
  'rollout.onFailure',
  'disruption',
];

const waveSettings: readonly string[] = ['', '.before.approval', '.after.soak', '.after.approval'];

/** Returns the sources of a definition (`GroupDefinition.sources`), without settings that have their defaults. */
function definitionSources(
  lookup: SourceLookup,
  { zones, rollout, gates }: Pick<GroupDefinition, 'zones' | 'rollout' | 'gates'>,
): Readonly<Record<string, Source>> {
  const sources: Record<string, Source> = {};
  // Every zone asks for the settings of the group.
  const known = new Map<string, Source | undefined>();
  const sourceAt = (path: string): Source | undefined => {
    if (!known.has(path)) known.set(path, lookup(path));
    return known.get(path);
  };
  const add = (path: string, candidates: readonly string[] = [path]) => {
    const first = candidates.find((candidate) => sourceAt(candidate) !== undefined);
    const found = first === undefined ? undefined : sourceAt(first);
    if (found) sources[path] = found;
  };
  for (const path of groupSettings) add(path);
  for (const { name: zone } of zones) {
    add(`zones.${zone}`, [`zones.${zone}`, 'members.selector']);
    for (const [setting, places] of Object.entries(zoneSettings)) {
      const candidates = places.map((place) => place.replace(/^zone\./, `zones.${zone}.`));
      add(`zones.${zone}.${setting}`, candidates);
    }
  }
  for (const { name: wave } of rollout.waves) for (const setting of waveSettings) add(`waves.${wave}${setting}`);
  for (const { name: gate } of gates) add(`gates.${gate}`);
  return sources;
}

/** The maximum number of stages. A stage without further pods ends at once. */
const maxStages = 98;
/** The number of pods for which the stages are computed. In a zone with more pods, the last stage is larger. */
const manyPods = 1_000;

/** Returns the waves of a schedule: the first zone in growing stages (at most 98) with soaks, then the other zones one by one. */
export function scheduledWaves(spec: ScheduleSpec, zones: readonly Pick<ZoneDefinition, 'name'>[]): readonly WaveDefinition[] {
  const [first, ...others] = zones.map(({ name }) => name);
  if (first === undefined) return [];
  const schedule = scheduleOf(spec);
  const soakMs = optionalMs(spec.soak) ?? 0;
  const count = stagesOf(schedule);
  const stages = Array.from({ length: count }, (_, stage) =>
    plainWave(`stage-${stage + 1}`, [first], stage === count - 1 ? { percent: 100 } : { stage, schedule }, soakMs),
  );
  return others.length === 0 ? stages : [...stages, plainWave('rest', others, { percent: 100 })];
}

function scheduleOf({ kind, start, step = '100%', factor = 2 }: ScheduleSpec): ScheduleDefinition {
  return kind === 'linear' ? { kind, start, step } : { kind, start, tenths: Math.round(factor * 10) };
}

/** Returns the number of stages of a large zone; percentages give the same number for every zone. */
function stagesOf(schedule: ScheduleDefinition): number {
  let count = 1;
  for (let pods = sizeOf(schedule.start); pods < manyPods && count < maxStages; count += 1) pods = grown(schedule, pods, count);
  return count;
}

function grown(schedule: ScheduleDefinition, pods: number, stage: number): number {
  if (schedule.kind === 'linear') return pods + sizeOf(schedule.step);
  const factor = schedule.tenths / 10;
  return Math.max(pods + 1, schedule.kind === 'exponential' ? pods * factor : pods + sizeOf(schedule.start) * factor ** stage);
}

function sizeOf(amount: ScheduleDefinition['start']): number {
  return typeof amount === 'number' ? Math.max(1, amount) : (Number(amount.slice(0, -1)) * manyPods) / 100;
}
