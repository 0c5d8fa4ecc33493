// Builds the initial objects of a simulation from the shape of the group: StatefulSets, RolloutGroup or labels, budgets, mirrored objects.

import { holdingPartition } from '../../../policies/strategies.ts';
import { delayEndpoint, field, prepareEndpoint } from '../../../simulation/objects.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import {
  type GroupName,
  type GroupObjects,
  type GroupShape,
  letterOf,
  type PolicyState,
  type RuleShape,
  traitsOfShape,
  type WaveShape,
  type WindowShape,
  wavesOfShape,
} from '../../../simulation/scenario.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { gateSpec } from './gate-server.ts';

const firstImage = 'app:1';

export const usualName: GroupName = { namespace: 'mimir', name: 'ingester' };
const template = { apiVersion: 'rollout-operator.grafana.com/v1', kind: 'ReplicaTemplate' };
/** The termination grace period, which is longer than any drain. */
const graceSeconds = 1200;

type NamedShape = GroupShape & GroupName;

/** Returns the objects of the group. Before a native group is defined (`isDefinedLater`), its StatefulSets have the partition 0. */
export function groupObjects(group: GroupShape, isDefinedLater = false, { namespace, name } = usualName): GroupObjects {
  const shape: NamedShape = { ...group, namespace, name };
  const zones = Array.from({ length: shape.zones }, (_, index) => letterOf(index));
  const budgets = shape.rotateBy === 'evict' ? zones.map((zone) => podBudget(zone, shape)) : [];
  const isMirrored = shape.replicas === 'mirror' || shape.replicas === 'delayedMirror';
  return {
    namespace,
    name,
    statefulSets: zones.map((zone) => setName(shape, zone)),
    objects: [
      ...(isMirrored ? [replicaTemplate(shape)] : []),
      ...zones.map((zone) => statefulSet(zone, shape, isDefinedLater)),
      ...(shape.kind === 'native' ? [rolloutGroup(zones, shape)] : []),
      ...(shape.hasPolicyDirectory === true ? [] : policyObjects(shape, { namespace, name })),
      ...budgets,
      ...(shape.zoneBudget === undefined ? [] : [zoneBudget(shape, shape.zoneBudget)]),
    ],
    policies: shape.hasPolicyDirectory === true ? policyFiles(shape, 'whole', { namespace, name }) : [],
  };
}

/** Returns the RolloutPolicies of the group. */
export function policyObjects({ windows, rules }: GroupShape, name = usualName): readonly Json[] {
  return [
    ...(windows === undefined ? [] : [rolloutPolicy(name, 'calendar', { windows: windows.map(windowSpec) })]),
    ...(rules === undefined ? [] : [rolloutPolicy(name, rulePolicy, { rules: rules.map(ruleSpec) })]),
  ];
}

/** Returns the policy with an error that the API server does not find: a schedule or a condition that cannot be read. */
export function withError(policy: Json): Json {
  const spec = policy['spec'] as { readonly windows?: readonly Json[]; readonly rules?: readonly Json[] };
  const schedule = { cron: '61 25 * * *', duration: '60s', timeZone: 'Europe/Amsterdam' };
  return {
    ...policy,
    spec: {
      ...spec,
      ...(spec.windows === undefined ? {} : { windows: spec.windows.map(({ ranges: _, ...window }) => ({ ...window, schedule })) }),
      ...(spec.rules === undefined ? {} : { rules: spec.rules.map((rule) => ({ ...rule, when: { noSuchOperator: [1, 2] } })) }),
    },
  };
}

/** Returns whether the policy has the error of `withError`. */
export function hasError(policy: unknown): boolean {
  return /noSuchOperator|61 25/.test(JSON.stringify(field(policy, 'spec')) ?? '');
}

/** Returns the files of the policy directory. Throws if it is unreadable. */
export function policyFiles(shape: GroupShape, state: PolicyState, name = usualName): GroupObjects['policies'] {
  if (state === 'unreadable') throw new Error('EIO: i/o error, scandir');
  if (state === 'removed') return [];
  return policyObjects(shape, name).map((policy) => {
    const text = JSON.stringify(state === 'invalid' ? withError(policy) : policy);
    const { name: file } = policy['metadata'] as { readonly name: string };
    return { name: `${file}.yaml`, text: state === 'truncated' ? text.slice(0, Math.floor(text.length / 2)) : text };
  });
}

function setName({ name }: GroupName, zone: string): string {
  return `${name}-zone-${zone}`;
}

function statefulSet(zone: string, shape: NamedShape, isDefinedLater: boolean): Json {
  const { namespace, name: group } = shape;
  const name = setName(shape, zone);
  const marks = shape.kind === 'adopted' ? adoptedMarks(zone, shape) : { labels: {}, annotations: {} };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace, labels: { 'app.kubernetes.io/name': group, ...marks.labels }, annotations: marks.annotations },
    spec: {
      replicas: shape.podsPerZone,
      serviceName: name,
      podManagementPolicy: shape.podManagementPolicy,
      updateStrategy: strategyOf(shape, isDefinedLater),
      minReadySeconds: shape.minReadySeconds,
      selector: { matchLabels: { name } },
      template: {
        metadata: { labels: { name, 'app.kubernetes.io/name': group } },
        spec: { terminationGracePeriodSeconds: graceSeconds, containers: [{ name: group, image: firstImage }] },
      },
    },
  };
}

/** Returns the update strategy. A simulation begins without a rollout, so the partition is the one that the agent sets after a rollout. */
function strategyOf({ strategy }: GroupShape, isDefinedLater: boolean): Json {
  if (strategy === undefined) return { type: 'OnDelete' };
  return { type: 'RollingUpdate', rollingUpdate: { partition: isDefinedLater ? 0 : holdingPartition } };
}

/** Returns the labels and annotations of grafana/rollout-operator (docs/migrate-from-rollout-operator.md). */
function adoptedMarks(zone: string, shape: NamedShape) {
  const { name, replicas, maxUnavailable, delaySeconds, prepares } = shape;
  const betweenZonesSeconds = zoneGapOf(shape);
  const mirror = 'grafana.com/rollout-mirror-replicas-from-resource';
  const isMirrored = replicas === 'mirror' || replicas === 'delayedMirror';
  return {
    labels: {
      'rollout-group': name,
      ...(betweenZonesSeconds > 0 ? { 'grafana.com/min-time-between-zones-downscale': `${betweenZonesSeconds}s` } : {}),
      ...(prepares === true ? { 'grafana.com/prepare-downscale': 'true' } : {}),
      ...(shape.noDownscale === true && zone === 'a' ? { 'grafana.com/no-downscale': 'true' } : {}),
    },
    annotations: {
      'rollout-max-unavailable': `${maxUnavailable}`,
      ...(replicas === 'leader' && zone !== 'a' ? { 'grafana.com/rollout-downscale-leader': setName(shape, 'a') } : {}),
      ...(isMirrored
        ? { [`${mirror}-name`]: name, [`${mirror}-kind`]: template.kind, [`${mirror}-api-version`]: template.apiVersion }
        : {}),
      ...(replicas === 'delayedMirror'
        ? {
            'grafana.com/rollout-delayed-downscale': `${delaySeconds}s`,
            'grafana.com/rollout-prepare-delayed-downscale-url': `http://pod:${delayEndpoint.port}${delayEndpoint.path}`,
          }
        : {}),
      ...(prepares === true
        ? {
            'grafana.com/prepare-downscale-http-port': `${prepareEndpoint.port}`,
            'grafana.com/prepare-downscale-http-path': prepareEndpoint.path.slice(1),
          }
        : {}),
    },
  };
}

/** Returns the time between zones; 0 for a single zone, because lint reports a time between zones there. */
function zoneGapOf({ zones, betweenZonesSeconds }: GroupShape): number {
  return zones > 1 ? betweenZonesSeconds : 0;
}

function rolloutGroup(zones: readonly string[], shape: NamedShape): Json {
  const { namespace, name, replicas, delaySeconds, prepares } = shape;
  const betweenZonesSeconds = zoneGapOf(shape);
  const isMirrored = replicas === 'mirror' || replicas === 'delayedMirror';
  const down = {
    ...(betweenZonesSeconds > 0 ? { betweenZones: `${betweenZonesSeconds}s` } : {}),
    ...(replicas === 'delayedMirror' ? { delayed: { after: `${delaySeconds}s`, endpoint: delayEndpoint } } : {}),
    ...(prepares === true ? { prepare: { endpoint: prepareEndpoint } } : {}),
  };
  const scaling = {
    ...(Object.keys(down).length === 0 ? {} : { down }),
    ...(shape.scalesDuringRollout === true ? { duringRollout: 'allow' } : {}),
  };
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace },
    spec: {
      members: {
        zones: zones.map((zone) => ({
          name: zone,
          statefulSet: setName(shape, zone),
          ...(replicas === 'leader' && zone !== 'a' ? { follows: 'a' } : {}),
        })),
      },
      replicas: isMirrored ? { mirror: { from: { ...template, name, read: 'scale' }, writeBack: 'status' } } : { leader: true },
      ...(Object.keys(scaling).length === 0 ? {} : { scaling }),
      ...(shape.gate === undefined ? {} : { gates: [{ ...gateSpec, failureLimit: shape.gateFailureLimit ?? gateSpec.failureLimit }] }),
      ...(shape.disruption === undefined ? {} : { disruption: { maxUnavailable: shape.disruption } }),
      rollout: rolloutSpec(shape),
    },
  };
}

function rolloutSpec(shape: GroupShape): Json {
  const { lowersPartition, canRollBack } = traitsOfShape(shape);
  const waves = waveSpecs(shape);
  return {
    strategy: shape.strategy ?? 'onDelete',
    // With the strategy `partition` the StatefulSet controller deletes the pods, so lint reports `rotateBy`.
    ...(lowersPartition ? {} : { rotateBy: shape.rotateBy }),
    maxUnavailable: shape.maxUnavailable,
    ...(shape.minIntervalSeconds === undefined ? {} : { minInterval: `${shape.minIntervalSeconds}s` }),
    ...(shape.replaceUnreadySeconds === undefined ? {} : { replaceUnready: { when: 'any', after: `${shape.replaceUnreadySeconds}s` } }),
    ...(shape.deadlineSeconds === undefined ? {} : { deadlines: { progress: `${shape.deadlineSeconds}s` } }),
    ...(waves === undefined ? {} : { waves }),
    ...(shape.rollsBack === true && canRollBack ? { onFailure: 'rollback' } : {}),
    ...(shape.soaksOnReturn === true ? { skipOnRollback: false } : {}),
  };
}

function rolloutPolicy({ namespace, name: group }: GroupName, name: string, spec: Json): Json {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutPolicy',
    metadata: { name, namespace },
    spec: { targets: { groups: [group] }, ...spec },
  };
}

/** The policy with the rules. */
const rulePolicy = 'guard';

/** Returns the name of a rule as results and requests have it. */
export function ruleName({ kind }: Pick<RuleShape, 'kind'>): string {
  return `${rulePolicy}/${kind}`;
}

const approval = { count: 1, from: ['oncall'] };

function ruleSpec({ kind, effect, zone, other, replicas, until }: RuleShape): Json {
  const isOutdated = { and: [{ '==': [{ var: 'name' }, other] }, { '<': [{ var: 'updated' }, { var: 'replicas' }] }] };
  const conditions = [
    { '<': [{ var: 'now' }, { instant: timeAt(until) }] },
    ...(zone === undefined ? [] : [{ '==': [{ var: 'target.zone' }, zone] }]),
    ...(other === undefined ? [] : [{ some: [{ var: 'group.zones' }, isOutdated] }]),
    ...(replicas === undefined ? [] : [{ '<': [{ var: 'change.to' }, replicas] }]),
  ];
  return {
    name: kind,
    actions: [kind === 'floor' ? 'scaleDown' : 'rollout'],
    when: { and: conditions },
    ...(kind === 'ask'
      ? { effect: 'requireApproval', approval }
      : kind === 'plan'
        ? { effect: 'requireApprovedPlan', approval }
        : { effect }),
  };
}

function timeAt(seconds: number): string {
  return new Date(runStartMs + seconds * 1000).toISOString();
}

function windowSpec({ ranges, schedule, ...rest }: WindowShape, index: number): Json {
  return {
    name: `window-${index + 1}`,
    ...rest,
    ...(ranges === undefined ? {} : { ranges: ranges.map(({ from, to }) => ({ from: timeAt(from), to: timeAt(to) })) }),
    ...(schedule === undefined
      ? {}
      : // A simulation begins at 12:00 UTC, on a day in January.
        { schedule: { cron: `0-6/${schedule.everyMinutes} 13 * * *`, duration: `${schedule.seconds}s`, timeZone: 'Europe/Amsterdam' } }),
  };
}

/** Returns the name of a wave. */
export function waveName(index: number): string {
  return `wave-${index + 1}`;
}

/** Returns `spec.rollout.waves` of the group; undefined without waves. */
export function waveSpecs(shape: Parameters<typeof wavesOfShape>[0]): readonly Json[] | undefined {
  return wavesOfShape(shape)?.map(waveSpec);
}

function waveSpec(
  { zones, pods, percent = 100, soakSeconds, gates = [], approvals = [], approvers: count = 1 }: WaveShape,
  index: number,
): Json {
  const checks = (when: 'before' | 'after'): Json => ({
    ...(gates.includes(when) ? { gates: [gateSpec.name] } : {}),
    ...(approvals.includes(when) ? { approval: { count, from: ['oncall'] } } : {}),
  });
  return {
    name: waveName(index),
    zones,
    ...(pods === undefined ? { percent } : { pods }),
    before: checks('before'),
    after: { ...(soakSeconds === undefined ? {} : { soak: `${soakSeconds}s` }), ...checks('after') },
  };
}

function replicaTemplate({ namespace, name, podsPerZone }: NamedShape): Json {
  const selector = `app.kubernetes.io/name=${name}`;
  return {
    ...template,
    metadata: { name, namespace },
    spec: { replicas: podsPerZone, labelSelector: selector },
    status: { replicas: podsPerZone },
  };
}

function zoneBudget({ namespace, name }: GroupName, maxUnavailable: number): Json {
  return {
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ZoneAwarePodDisruptionBudget',
    metadata: { name, namespace },
    spec: { maxUnavailable, selector: { matchLabels: { 'app.kubernetes.io/name': name } } },
  };
}

function podBudget(zone: string, shape: NamedShape): Json {
  const { namespace, maxUnavailable } = shape;
  const name = setName(shape, zone);
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace },
    spec: { maxUnavailable, selector: { matchLabels: { name } } },
  };
}
