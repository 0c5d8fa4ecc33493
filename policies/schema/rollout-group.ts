// The kind RolloutGroup: the members of a group, where their replica counts come from, how they scale, roll and are protected.

import { z } from 'zod';
import { strategyNames } from '../strategies.ts';
import { condition, countOrPercent, duration, instant, labelSelector, objectName, port, shortName } from './scalars.ts';
import { schedule } from './schedule.ts';

const endpoint = z
  .strictObject({
    scheme: z.enum(['http', 'https']).default('http'),
    port: port.describe('Port of the pod that answers.'),
    path: z
      .string()
      .max(1024)
      .regex(/^[^\s#@\\]*$/)
      .describe('Path, with an optional query, asked at each leaving pod.'),
    timeout: duration.default('5s').describe('Deadline of one call.'),
  })
  .describe('An HTTP endpoint of the pods. The host is always the pod itself.');

const delayedDownscale = z
  .strictObject({
    after: duration.describe('Time between the moment a pod says it is prepared and its removal.'),
    endpoint,
    onUnreachable: z.enum(['hold', 'fail']).default('hold').describe('What an unreachable pod means for the downscale.'),
  })
  .describe('Ask the leaving pods to prepare, then wait before they are removed.');

const prepareDownscale = z
  .strictObject({
    endpoint,
    onFailure: z.enum(['deny', 'hold']).default('deny').describe('What a pod that does not prepare means for the downscale.'),
  })
  .describe('Ask the leaving pods to prepare immediately before they are removed.');

const hold = z.string().min(1).max(1024).optional();

const scaleDown = z.strictObject({
  hold: hold.describe('Why this does not shrink at all.'),
  betweenZones: duration.optional().describe('Least time between replica decreases of two zones.'),
  delayed: delayedDownscale.optional(),
  prepare: prepareDownscale.optional(),
});

const scaling = z.strictObject({
  hold: hold.describe('Why this is not scaled at all; adoption writes it for values that it cannot read.'),
  duringRollout: z.enum(['wait', 'allow']).optional().describe('Whether zones may grow while a rollout is under way.'),
  up: z
    .strictObject({
      followersWaitFor: z
        .enum(['leaderReady', 'nothing'])
        .optional()
        .describe('Whether a follower grows only when all pods of its leader are ready.'),
    })
    .optional(),
  down: scaleDown.optional(),
});

const replicaSource = z.strictObject({
  apiVersion: z.string().max(253).describe('API version of the object that is read; only its group part matters for adopted groups.'),
  kind: z.string().min(1).max(63),
  name: z.string().min(1).max(253),
  read: z
    .enum(['scale', 'desiredReplicas', 'fieldPath'])
    .default('scale')
    .describe("Where the number stands: scale subresource, an autoscaler's desiredReplicas, or a field."),
  fieldPath: z.array(z.string()).min(1).max(10).optional().describe('The field, as a list of keys, when read is fieldPath.'),
});

const mirror = z
  .strictObject({
    from: replicaSource,
    writeBack: z
      .enum(['none', 'status'])
      .default('none')
      .describe("Whether the number in force is written to the source's status.replicas."),
    onMissing: z.enum(['hold', 'fail']).default('hold').describe('What a source that cannot be read means.'),
  })
  .describe('Replicas are read from another object.');

const replicas = z
  .strictObject({
    count: z.int().min(0).max(100_000).optional().describe('Replicas of each zone that follows nobody.'),
    mirror: mirror.optional(),
    leader: z.literal(true).optional().describe('The StatefulSets that follow nobody are scaled directly, by people or an autoscaler.'),
    bounds: z
      .strictObject({
        min: z.int().min(0).max(100_000).optional(),
        max: z.int().min(0).max(100_000).optional(),
        multipleOf: z.int().min(1).max(1000).default(1).describe('Counts are rounded up to a multiple of this.'),
        parity: z.enum(['any', 'odd', 'even']).default('any').describe('Counts are rounded up to this parity, for quorum systems.'),
      })
      .optional(),
  })
  .meta({ 'x-rollout-group-one-of': ['count', 'mirror', 'leader'] });

const protect = z.strictObject({
  noDownscale: z.boolean().optional().describe('Refuse every replica decrease.'),
  noDelete: z.boolean().optional().describe('Refuse the deletion of a member StatefulSet.'),
  noEviction: z.boolean().optional().describe('Refuse every eviction of a member pod.'),
});

const zone = z.strictObject({
  name: shortName.describe('Name of the zone, as waves and commands use it.'),
  statefulSet: objectName.describe('The StatefulSet of this zone.'),
  follows: shortName.optional().describe('The zone whose replicas this one follows.'),
  replicas: replicas.optional().describe("Overrides the group's replicas for this zone."),
  scaling: scaling.optional().describe("Overrides the group's scaling for this zone, field by field."),
  maxUnavailable: countOrPercent.optional().describe('Overrides rollout.maxUnavailable for this zone.'),
  protect: protect.optional().describe("Overrides the group's protection for this zone, field by field."),
  paused: z.boolean().optional().describe('No pod of this zone is replaced while true.'),
  forceReplicas: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .optional()
    .describe('These replicas at once, whatever the source, readiness and delays say.'),
});

const approval = z.strictObject({
  count: z.int().min(1).max(20).default(1).describe('How many different people must approve.'),
  from: z.array(z.string().min(1)).min(1).max(20).optional().describe("Groups of the API server's authenticator; any of them counts."),
  expires: duration.optional().describe('An approval older than this no longer counts.'),
});

const wave = z
  .strictObject({
    name: shortName,
    zones: z.array(shortName).min(1).max(50).describe('Zones of this wave, one after the other in this order.'),
    pods: z.int().min(0).max(100_000).optional().describe('Updated pods per zone when the wave is done, cumulative.'),
    percent: z
      .int()
      .min(0)
      .max(100)
      .optional()
      .describe('Updated share per zone when the wave is done, cumulative; rounded up, below 100 at least one pod stays old.'),
    before: z
      .strictObject({ approval: approval.optional(), gates: z.array(shortName).max(20).optional() })
      .optional()
      .describe('What must hold before the first pod.'),
    after: z
      .strictObject({ soak: duration.optional(), approval: approval.optional(), gates: z.array(shortName).max(20).optional() })
      .optional()
      .describe('What must hold after the last pod of the wave is available.'),
  })
  .meta({ 'x-rollout-group-one-of': ['pods', 'percent'] });

const gate = z
  .strictObject({
    name: shortName,
    mode: z.enum(['enforce', 'observe']).default('enforce').describe('observe records the result without holding anything.'),
    prometheus: z
      .strictObject({ source: objectName, query: z.string().min(1).max(4096) })
      .optional()
      .describe('An instant query against a MetricSource.'),
    consul: z
      .strictObject({
        source: objectName,
        service: z
          .string()
          .min(1)
          .max(253)
          .regex(/^[A-Za-z0-9_][^\s/?#\\]*$/),
        datacenter: z
          .string()
          .max(63)
          .regex(/^[A-Za-z0-9_-]+$/)
          .optional()
          .describe("The datacenter that is asked about; the agent's own when left out."),
        passing: z.int().min(0).optional().describe('The least number of instances that must pass; value is then how many do.'),
      })
      .optional()
      .describe('Health of a Consul service; value is the number of instances that do not pass, or of those that do when passing is set.'),
    http: endpoint.optional().describe('A GET of every updated pod; value is the number of pods that did not answer 2xx.'),
    podsAvailable: z
      .strictObject({ minReadySeconds: z.int().min(0).max(86_400).default(0) })
      .optional()
      .describe(
        'All pods of the wave are ready for this long, which is also the least initial delay; value is the number of pods that are not.',
      ),
    initialDelay: duration.default('0s').describe('Time before the first reading counts.'),
    every: duration.default('1m').describe('Time between readings.'),
    consecutive: z.int().min(1).max(1000).default(1).describe('Successes in a row that pass the gate.'),
    failureLimit: z.int().min(0).max(1000).default(1).describe('Failures, at any time, that fail the run; 0 never does.'),
    noData: z.enum(['fail', 'hold', 'pass']).default('fail').describe('What an empty result means.'),
    onError: z.enum(['hold', 'fail']).default('hold').describe('What a query that cannot be answered means.'),
    pass: condition
      .optional()
      .describe(
        'Condition on `value`; the default is that value is 0, or at least `passing` for a consul gate with that; a prometheus gate needs one.',
      ),
  })
  .meta({ 'x-rollout-group-one-of': ['prometheus', 'consul', 'http', 'podsAvailable'] });

const rollout = z
  .strictObject({
    strategy: z.enum(strategyNames).describe('Who replaces pods and how a partial rollout keeps its place.'),
    order: z.enum(['descending', 'ascending']).default('descending').describe('Order of ordinals within a zone.'),
    rotateBy: z
      .enum(['evict', 'delete'])
      .default('evict')
      .describe('Whether a pod is evicted, which respects PodDisruptionBudgets, or deleted.'),
    maxUnavailable: z
      .union([countOrPercent, z.literal('fromBudget')])
      .default(1)
      .meta({
        'x-kubernetes-int-or-string': true,
        description: 'Pods of one zone that may be unavailable at once: n, n% of its replicas, or fromBudget.',
      }),
    minInterval: duration.default('0s').describe('Least time between two replacements in the group.'),
    replaceUnready: z
      .strictObject({
        when: z
          .enum(['any', 'crashing', 'none'])
          .default('any')
          .describe('Which unready pods on an old revision may be replaced although the budget is spent.'),
        after: duration.default('5m').describe('How long such a pod must have been unready; crashing pods need not wait.'),
      })
      .prefault({}),
    waves: z.array(wave).min(1).max(100).optional().describe('Without waves each zone goes to 100 percent in listed order.'),
    schedule: schedule.optional(),
    deadlines: z
      .strictObject({
        progress: duration.optional().describe('Longest time without a pod becoming available while one is in flight.'),
        run: duration.optional().describe('Longest time of the whole run, counting only time in which the group may move.'),
      })
      .prefault({}),
    onFailure: z.enum(['pause', 'rollback']).default('pause'),
    skipOnRollback: z.boolean().default(true).describe('A run back to the previous template skips soak and approvals.'),
    historyLimit: z.int().min(1).max(100).default(10).describe('Runs kept in history.'),
    onPolicyDeleted: z
      .enum(['hold', 'release'])
      .default('hold')
      .describe(
        'When nothing defines the group any more: `hold` leaves everything as it is; `release` hands the StatefulSets back, the partition of one zone after the other to 0.',
      ),
  })
  .meta({ 'x-rollout-group-at-most-one-of': ['waves', 'schedule'] });

const disruption = z
  .strictObject({
    maxUnavailable: z
      .int()
      .min(0)
      .max(100_000)
      .optional()
      .describe('Pods that may be disturbed at once: per zone, or per partition over all zones.'),
    maxUnavailablePercent: z.int().min(0).max(100).optional().describe("The same, as a percentage of the zone's replicas."),
    partition: z
      .strictObject({
        pattern: z.string().min(1).max(512).describe('Pattern of the pod name; one capture group is the partition.'),
        group: z.int().min(1).max(20).default(1).describe('Number of the capture group.'),
      })
      .optional(),
    crossZoneDelay: duration.optional().describe('A pod of another zone counts as ready only this long after it became so.'),
  })
  .meta({
    description: 'The budget of voluntary disruptions, zone by zone or partition by partition.',
    'x-rollout-group-at-most-one-of': ['maxUnavailable', 'maxUnavailablePercent'],
  });

const notify = z.strictObject({
  channel: objectName,
  events: z
    .array(z.enum(['started', 'waiting', 'failed', 'completed']))
    .min(1)
    .max(4),
});

const zonesMembers = z.array(zone).min(1).max(50);

/** `spec` of a RolloutGroup. */
export const rolloutGroupSpec = z.strictObject({
  members: z
    .strictObject({
      zones: zonesMembers.optional().describe('The zones by name, in the order in which they roll.'),
      selector: labelSelector
        .optional()
        .describe('The members by label; zones are then named after their StatefulSets, in byte-wise order.'),
      expect: z
        .strictObject({
          count: z.int().min(1).max(50).optional(),
          names: z.array(objectName).max(50).optional(),
        })
        .optional()
        .describe('What the selector must find.'),
    })
    .meta({ 'x-rollout-group-one-of': ['zones', 'selector'] }),
  profile: z
    .enum(['native', 'rolloutOperator'])
    .default('native')
    .describe('Behaviour of the group: `native`, or `rolloutOperator` for that of grafana/rollout-operator, which `init` writes.'),
  groupLabel: z.string().max(63).optional().describe('Value of the label `rollout-group` if it is no valid object name.'),
  replicas: replicas.optional(),
  scaling: scaling.optional(),
  rollout,
  gates: z.array(gate).max(50).optional(),
  disruption: disruption.optional(),
  protect: protect.optional(),
  notify: z.array(notify).max(20).optional(),
});

/** What the agent publishes; written by the agent alone. */
export const rolloutGroupStatus = z.strictObject({
  observedGeneration: z.int().optional().describe('The generation of the spec that the decision was made from.'),
  phase: z.string().optional().describe('Done, Rolling, Scaling, Waiting, Paused, Blocked or Failed.'),
  goal: z.string().optional(),
  reason: z.string().optional().describe('What holds the group most, as the name of a rule in PascalCase.'),
  message: z.string().optional().describe('The fact behind the reason.'),
  wave: z.string().optional().describe('The wave under way, with its place in the run.'),
  replicas: z.int().optional().describe('Pods of the zone that scale is about: the first that follows nobody.'),
  selector: z.string().optional().describe('Selects the pods of that zone.'),
  pods: z.int().optional().describe('Replicas of all zones.'),
  updatedPods: z.int().optional(),
  readyPods: z.int().optional(),
  decidedAt: instant.optional(),
  policyDigest: z.string().optional(),
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
    .describe('Ready, Progressing and Degraded.'),
  decision: z
    .unknown()
    .optional()
    .meta({ 'x-kubernetes-preserve-unknown-fields': true, description: 'The whole decision, as status and explain print it.' }),
});

export type RolloutGroupSpec = z.infer<typeof rolloutGroupSpec>;
export type ZoneSpec = z.infer<typeof zone>;
export type WaveSpec = z.infer<typeof wave>;
export type ApprovalSpec = z.infer<typeof approval>;
export type GateSpec = z.infer<typeof gate>;
export type ReplicasSpec = z.infer<typeof replicas>;
export type EndpointSpec = z.infer<typeof endpoint>;
export type DisruptionSpec = z.infer<typeof disruption>;
export type ProfileName = RolloutGroupSpec['profile'];
