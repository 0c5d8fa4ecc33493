// Defines the kind RolloutGroup: the members of a group, the source of their replicas, and how they scale, roll and are protected.
import * as z from 'zod';
import { optional } from 'zod';
import { phases } from '../rollout/phases.ts';
import { strategyNames } from '../strategies.ts';
import { listed } from '../wording.ts';
import {
  condition,
  countOrPercent,
  duration,
  instant,
  labelSelector,
  objectName,
  optionalFields,
  optionalInt,
  optionalList,
  port,
  shortName,
  wordOf,
} from './scalars.ts';

const endpoint = z
  .strictObject({
    scheme: wordOf('http', 'https'),
    port: port.describe('Port of the endpoint in the pod.'),
    path: z
      .string()
      .max(1024)
      .regex(/^[^\s#@\\]*$/)
      .describe('Path of the endpoint, with an optional query.'),
    timeout: duration.default('5s').describe('Deadline of one call to one pod.'),
  })
  .describe('HTTP endpoint of each pod. The host is always the address of the pod.');

const delayedDownscale = z
  .strictObject({
    after: duration.describe('Minimum time between the answer of a pod that it is prepared and the deletion of the pod.'),
    endpoint,
    onUnreachable: wordOf('hold', 'fail').describe(
      'Effect if a pod does not prepare. With `hold`, the rule `delayed-downscale` answers `wait`; with `fail`, it answers `no`. The agent tries again in both cases.',
    ),
  })
  .describe('Calls an endpoint of the pods to be deleted, then waits for `after` before it deletes them.');

const prepareDownscale = z
  .strictObject({
    endpoint,
    onFailure: wordOf('deny', 'hold').describe(
      'Effect if a pod does not prepare. With `deny`, the rule `prepare-downscale` answers `no`; with `hold`, it answers `wait`. The agent tries again in both cases.',
    ),
  })
  .describe(
    'Calls an endpoint of the pods to be deleted, immediately before the scale-down. With the profile `native`, only the agent calls it, so scale-downs by other clients are denied.',
  );

const hold = z.string().min(1).max(1024).optional();

const scaleDown = z.strictObject({
  hold: hold.describe('Blocks every scale-down; the text states why.'),
  betweenZones: duration.optional().describe('Minimum time between scale-downs of two zones.'),
  delayed: delayedDownscale.optional(),
  prepare: prepareDownscale.optional(),
});

const scaling = z.strictObject({
  hold: hold.describe(
    'Blocks changes of replicas by the agent; the text states why. `init` writes it for labels and annotations that cannot be parsed.',
  ),
  duringRollout: optional(z.enum(['wait', 'allow'])).describe(
    '`wait` (default): a zone grows between two pod replacements and shrinks after the rollout. `allow`: a zone grows at any time, and shrinks unless another zone rolls.',
  ),
  up: optionalFields({
    followersWaitFor: optional(z.enum(['leaderReady', 'nothing'])).describe(
      '`leaderReady` (default): a follower grows when all pods of its leader are available. `nothing`: it grows at once.',
    ),
  }),
  down: scaleDown.optional(),
});

const replicaSource = z.strictObject({
  apiVersion: z
    .string()
    .max(253)
    .describe('API version of the source object. Only the API group counts: the agent reads any served version.'),
  kind: z.string().min(1).max(63).describe('Kind of the source object.'),
  name: z.string().min(1).max(253).describe('Name of the source object, in the namespace of the group.'),
  read: wordOf('scale', 'desiredReplicas', 'fieldPath').describe(
    'Source of the number: the scale subresource, `status.desiredReplicas` of an autoscaler, or the field `fieldPath`.',
  ),
  fieldPath: optionalList(z.string(), 10).describe('Field as a list of keys, for `read: fieldPath`.'),
});

const mirror = z
  .strictObject({
    from: replicaSource,
    writeBack: wordOf('none', 'status').describe('`status` writes the current number of replicas to `status.replicas` of the source.'),
    onMissing: wordOf('hold', 'fail').describe(
      'Effect if the source cannot be read. With `hold`, the rule `replica-source` answers `unknown`; with `fail`, it answers `no`. The replicas stay as they are in both cases.',
    ),
  })
  .describe('Reads replicas from another object.');

const replicas = z
  .strictObject({
    count: optionalInt(0, 100_000).describe('Replicas of each zone without `follows`. In the `replicas` of a zone: replicas of this zone.'),
    mirror: mirror.optional(),
    leader: z.literal(true).optional().describe('Users or an autoscaler scale the StatefulSets without `follows` directly.'),
    bounds: optionalFields({
      min: optionalInt(0, 100_000).describe('Minimum replicas of a zone.'),
      max: optionalInt(0, 100_000).describe('Maximum replicas of a zone.'),
      multipleOf: z
        .int()
        .min(1)
        .max(1000)
        .default(1)
        .describe('Rounds replicas up to a multiple of this number, or down if the higher number exceeds `max`.'),
      parity: wordOf('any', 'odd', 'even').describe(
        'Rounds replicas up to an odd or even number, or down if the higher number exceeds `max`. For quorum systems.',
      ),
    }),
  })
  .meta({ 'x-rollout-group-one-of': ['count', 'mirror', 'leader'] });

const protect = z.strictObject({
  noDownscale: z.boolean().optional().describe('Denies every scale-down.'),
  noDelete: z.boolean().optional().describe('Denies the deletion of a member StatefulSet.'),
  noEviction: z.boolean().optional().describe('Denies evictions of member pods by other clients. Rollouts of the agent continue.'),
});

const zone = z.strictObject({
  name: shortName.describe('Name of the zone in waves and commands.'),
  statefulSet: objectName.describe('Name of the StatefulSet of this zone.'),
  follows: shortName.optional().describe('Zone that this zone copies its replicas from.'),
  replicas: replicas.optional().describe('Replaces `spec.replicas` for this zone.'),
  scaling: scaling.optional().describe('Replaces fields of `spec.scaling` for this zone.'),
  maxUnavailable: countOrPercent.optional().describe('Replaces `spec.rollout.maxUnavailable` for this zone.'),
  protect: protect.optional().describe('Replaces fields of `spec.protect` for this zone.'),
  paused: z.boolean().optional().describe('Pauses the zone: no pod of it is replaced.'),
  forceReplicas: optionalInt(0, 2_147_483_647).describe(
    'Replaces the number of replicas that the source gives, and ignores bounds, readiness and delays. Holds, pauses, protections, windows and policies still block a scale-down. No effect on a zone that users or an autoscaler scale directly, or while a mirrored source cannot be read.',
  ),
});

const approval = z.strictObject({
  count: z.int().min(1).max(20).default(1).describe('Number of different users who must approve.'),
  from: optionalList(z.string().min(1), 20).describe(
    'User groups of the API server. An approver must be in one of them. Without this field every user may approve.',
  ),
  expires: duration.optional().describe('Maximum age of an approval.'),
});

const wave = z
  .strictObject({
    name: shortName.describe('Name of the wave in commands and messages.'),
    zones: z.array(shortName).min(1).max(50).describe('Zones of this wave, in the order of their rollout.'),
    pods: optionalInt(0, 100_000).describe('Updated pods per zone at the end of the wave, earlier waves included.'),
    percent: optionalInt(0, 100).describe(
      'Updated percentage of each zone at the end of the wave, earlier waves included. Rounded up. In a zone of several pods, less than 100 leaves at least one pod outdated.',
    ),
    before: optionalFields({ approval: approval.optional(), gates: z.array(shortName).max(20).optional() }).describe(
      'Conditions before the first pod of the wave is replaced.',
    ),
    after: optionalFields({
      soak: duration.optional().describe('Minimum time with all pods of the group available.'),
      approval: approval.optional(),
      gates: z.array(shortName).max(20).optional(),
    }).describe('Conditions after the last pod of the wave is replaced and all pods of the group are available.'),
  })
  .meta({ 'x-rollout-group-one-of': ['pods', 'percent'] });

const gate = z
  .strictObject({
    name: shortName,
    mode: wordOf('enforce', 'observe').describe('`observe` records the result and blocks nothing.'),
    prometheus: optionalFields({ source: objectName, query: z.string().min(1).max(4096) }).describe('Instant query to a MetricSource.'),
    consul: optionalFields({
      source: objectName,
      service: z
        .string()
        .min(1)
        .max(253)
        .regex(/^[A-Za-z0-9_][^\s/?#\\]*$/),
      datacenter: optional(
        z
          .string()
          .max(63)
          .regex(/^[A-Za-z0-9_-]+$/),
      ).describe('Consul datacenter; the default is that of the Consul agent.'),
      passing: optionalInt(0).describe('Minimum number of passing instances. `value` is then the number of passing instances.'),
    }).describe('Health of a Consul service. `value` is the number of failing instances, or of passing instances if `passing` is set.'),
    http: endpoint.optional().describe('GET request to every updated pod. `value` is the number of pods without a 2xx answer.'),
    podsAvailable: optionalFields({ minReadySeconds: z.int().min(0).max(86_400).default(0) }).describe(
      '`value` is the number of pods that are missing or have not been ready for `minReadySeconds`, in all zones of the wave. Under `after`, outdated pods do not count. `minReadySeconds` is also the minimum initial delay.',
    ),
    initialDelay: duration
      .default('0s')
      .describe(
        'Delay of the first reading: under `before` from the start of the wave, under `after` from the time when all its pods are available.',
      ),
    every: duration.default('1m').describe('Time between readings.'),
    consecutive: z.int().min(1).max(1000).default(1).describe('Number of consecutive successful readings that pass the gate.'),
    failureLimit: z.int().min(0).max(1000).default(1).describe('Number of failed readings that fails the run; 0 means no limit.'),
    noData: wordOf('fail', 'hold', 'pass').describe('An empty result is a failure (`fail`), a success (`pass`), or neither (`hold`).'),
    onError: wordOf('hold', 'fail').describe('A query error is neither a success nor a failure (`hold`), or it is a failure (`fail`).'),
    pass: optional(condition).describe(
      'Condition on `value`. Required for `prometheus`. The default is `value == 0`, or `value >= passing` for `consul` with `passing`.',
    ),
  })
  .meta({ 'x-rollout-group-one-of': ['prometheus', 'consul', 'http', 'podsAvailable'] });

/** The short form of waves. `policies/resolve/group.ts` makes the waves from it. */
const schedule = z
  .strictObject({
    kind: z.enum(['linear', 'geometric', 'exponential']),
    start: countOrPercent.default(1).describe('Pods of the first wave: a number, or a percentage of the zone rounded up.'),
    step: countOrPercent.optional().describe('Pods that each `linear` wave adds: a number, or a percentage of the zone rounded up.'),
    factor: optional(z.number().min(1.1).max(10)).describe(
      'Growth factor with at most one decimal. `geometric` multiplies the added pods of each wave, `exponential` the updated pods.',
    ),
    soak: duration.optional().describe('Soak time after each wave of the first zone.'),
  })
  .describe('Short form of waves: the first zone in several waves, then the other zones completely, one after the other.');

const rollout = z
  .strictObject({
    strategy: z
      .enum(strategyNames)
      .describe(
        '`onDelete`: the agent deletes or evicts pods. `partition`: the StatefulSet controller replaces pods down to the partition. `pinned`: the agent replaces pods, and the webhook keeps the revision of each pod.',
      ),
    order: wordOf('descending', 'ascending').describe('Order of ordinals within a zone.'),
    rotateBy: wordOf('evict', 'delete').describe('`evict` respects PodDisruptionBudgets; `delete` does not.'),
    maxUnavailable: z
      .union([countOrPercent, z.literal('fromBudget')])
      .default(1)
      .meta({
        'x-kubernetes-int-or-string': true,
        description:
          'Maximum number of unavailable pods in one zone: a number, a percentage of its replicas, or `fromBudget` (its PodDisruptionBudget).',
      }),
    minInterval: duration.default('0s').describe('Minimum time between two pod replacements in the group.'),
    replaceUnready: z
      .strictObject({
        when: wordOf('any', 'crashing', 'none').describe(
          'Unready outdated pods that may be replaced even if the budget allows no further pod.',
        ),
        after: duration
          .default('5m')
          .describe('For `any`: time for which a pod must have been unready. Crashing pods are replaced at once.'),
      })
      .prefault({}),
    waves: optionalList(wave, 100).describe('Waves of the rollout. Without waves each zone is updated completely, in the listed order.'),
    schedule: schedule.optional(),
    deadlines: z
      .strictObject({
        progress: optional(duration).describe(
          'Maximum time in which no pod becomes available while pods are in flight. After this time the run fails.',
        ),
        run: optional(duration).describe(
          'Maximum duration of the run, without the time in which windows, approvals, pauses or protections block it.',
        ),
      })
      .prefault({}),
    onFailure: wordOf('pause', 'rollback').describe(
      'Effect of a failed run: `pause` stops it, `rollback` returns updated pods to the previous revision (only with `pinned`).',
    ),
    skipOnRollback: z
      .boolean()
      .default(true)
      .describe(
        'A run to the previous pod template skips soak times, gates and approvals. If only some zones return while other zones roll, the zones that return are updated before the waves.',
      ),
    historyLimit: z.int().min(1).max(100).default(10).describe('Number of finished runs to keep as RolloutRun objects.'),
    onPolicyDeleted: wordOf('hold', 'release').describe(
      'Effect of the deletion of the group: `hold` changes nothing; `release` sets the partition of one zone after the other to 0.',
    ),
  })
  .meta({ 'x-rollout-group-at-most-one-of': ['waves', 'schedule'] });

const disruption = z
  .strictObject({
    maxUnavailable: optionalInt(0, 100_000).describe(
      'Maximum number of unavailable pods: in one zone, or in one data partition across all zones.',
    ),
    maxUnavailablePercent: optionalInt(0, 100).describe('Maximum as a percentage of the replicas of the zone.'),
    partition: optionalFields({
      pattern: z.string().min(1).max(512).describe('Regular expression on the pod name. One capture group is the data partition.'),
      group: z.int().min(1).max(20).default(1).describe('Number of the capture group.'),
    }),
    crossZoneDelay: optional(duration).describe(
      'With `partition`: a pod of another zone counts as unavailable until it has been ready for this time.',
    ),
  })
  .meta({
    description:
      'Budget of voluntary disruptions, per zone or per data partition: the pods of all zones with the same capture of `partition.pattern`. It is not the partition of a StatefulSet.',
    'x-rollout-group-at-most-one-of': ['maxUnavailable', 'maxUnavailablePercent'],
  });

const notify = z.strictObject({
  channel: objectName.describe('Name of a NotificationChannel.'),
  events: z
    .array(z.enum(['started', 'waiting', 'failed', 'completed']))
    .min(1)
    .max(4)
    .describe('Events that the channel gets.'),
});

export const rolloutGroupSpec = z.strictObject({
  members: z
    .strictObject({
      zones: optionalList(zone, 50).describe('Zones. Without waves they roll in this order.'),
      selector: optional(labelSelector).describe(
        'Selects the members by label. Each zone has the name of its StatefulSet; zones are in byte-wise order.',
      ),
      expect: optionalFields({
        count: optionalInt(1, 50).describe('Number of StatefulSets.'),
        names: z.array(objectName).max(50).optional().describe('Names of the StatefulSets.'),
      }).describe('StatefulSets that the selector must match.'),
    })
    .meta({ 'x-rollout-group-one-of': ['zones', 'selector'] }),
  profile: wordOf('native', 'rolloutOperator').describe(
    'Behaviour of the group. `rolloutOperator` keeps that of grafana/rollout-operator; `init` writes it for labelled StatefulSets.',
  ),
  groupLabel: z.string().max(63).optional().describe('Value of the label `rollout-group`, if it is not a valid object name.'),
  replicas: replicas.optional(),
  scaling: scaling.optional(),
  rollout,
  gates: z.array(gate).max(50).optional(),
  disruption: disruption.optional(),
  protect: protect.optional(),
  notify: z.array(notify).max(20).optional(),
});

/** The status of a group; only the agent writes it. */
export const rolloutGroupStatus = z.strictObject({
  observedGeneration: optional(z.int()).describe(
    'Generation of the spec that the agent read for this decision; -1 before the first decision.',
  ),
  phase: optional(z.string()).describe(`${listed(phases)}.`),
  goal: z.string().optional().describe('Open work of the group, such as `4 of 9 pods updated; zone a to 4 replicas`.'),
  reason: z.string().optional().describe('Reason of the rule that blocks the group, in PascalCase. If no rule blocks, the phase.'),
  message: z.string().optional().describe('Explanation of the reason.'),
  wave: z.string().optional().describe('Current wave and its position in the run.'),
  replicas: z.int().optional().describe('Number of pods of the first zone without `follows`, for the scale subresource.'),
  selector: z.string().optional().describe('Label selector of the pods of the first zone without `follows`, for the scale subresource.'),
  pods: z.int().optional().describe('Replicas of all zones.'),
  updatedPods: z.int().optional(),
  readyPods: z.int().optional(),
  decidedAt: instant.optional(),
  policyDigest: z.string().optional(),
  drift: optionalFields({
    fieldCount: z.int().min(1).describe('Number of fields in all StatefulSets.'),
    fields: z
      .array(
        z.strictObject({
          statefulSet: z.string(),
          field: z.string().max(1024),
          manager: z.string().describe('Field manager that wrote the field.'),
          lastWriteAt: instant.optional().describe('Last write of the manager to the StatefulSet.'),
        }),
      )
      .max(5)
      .describe('The first fields.'),
  }).describe('Fields of the StatefulSets whose values no manifest contains, because another manager wrote them. Absent without drift.'),
  conditions: z
    .array(
      z.strictObject({
        type: z.string().max(316),
        status: z.enum(['True', 'False', 'Unknown']),
        reason: z.string().max(1024),
        message: z.string().max(32_768),
        lastTransitionTime: instant,
        observedGeneration: z.int().optional(),
      }),
    )
    .max(20)
    .optional()
    .describe('Ready, Progressing and Degraded; sometimes also Reconciling or Stalled, Stopped, MemberLeft and Enforced.'),
  decision: z
    .unknown()
    .optional()
    .meta({ 'x-kubernetes-preserve-unknown-fields': true, description: 'Decision that `status` and `explain` print.' }),
});

export type RolloutGroupSpec = z.infer<typeof rolloutGroupSpec>;
export type ZoneSpec = z.infer<typeof zone>;
export type WaveSpec = z.infer<typeof wave>;
export type ApprovalSpec = z.infer<typeof approval>;
export type GateSpec = z.infer<typeof gate>;
export type ReplicasSpec = z.infer<typeof replicas>;
export type MirrorSpec = z.infer<typeof mirror>;
export type RolloutSpec = z.infer<typeof rollout>;
export type PrepareSpec = z.infer<typeof prepareDownscale>;
export type EndpointSpec = z.infer<typeof endpoint>;
export type DisruptionSpec = z.infer<typeof disruption>;
export type ProfileName = RolloutGroupSpec['profile'];
export type ScheduleSpec = z.infer<typeof schedule>;
