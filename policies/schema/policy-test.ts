// Defines the kind PolicyTest: test cases with a state, a request, an expected decision and a clock.
import * as z from 'zod';
import { optional } from 'zod';
import { duration, instant, optionalInt, optionalList, shortName } from './scalars.ts';

const zoneState = z
  .strictObject({
    replicas: optionalInt(0, 100_000),
    ready: optionalInt(0, 100_000).describe('Number of ready pods. The pods with the lowest ordinals are ready.'),
    updated: optionalInt(0, 100_000).describe(
      'Number of pods at the update revision, highest ordinals first. Fewer than `replicas` means a rollout.',
    ),
    unready: z.array(z.int().min(0)).max(1000).optional().describe('Ordinals of unready pods.'),
    missing: z.array(z.int().min(0)).max(1000).optional().describe('Ordinals without a pod.'),
    unknown: z.boolean().optional().describe('The pods of this zone cannot be read.'),
    lastDownscale: duration.optional().describe('Time since the last scale-down.'),
    preparedFor: duration.optional().describe('Time since all pods to be deleted answered that they are prepared.'),
    prepareFails: z.boolean().optional().describe('The pods answer that they are not prepared.'),
    readyFor: duration.optional().describe('Time since the ready pods became ready.'),
    paused: z.boolean().optional(),
  })
  .describe(
    'State of one zone. By default, all its pods are available and updated. If the action is `rollout` and no zone sets `updated`, the pods of the requested zone, or of all zones, are outdated.',
  );

const given = z.strictObject({
  zones: z.record(z.string(), zoneState).optional(),
  metrics: optional(z.record(z.string(), z.union([z.number(), z.literal('unknown')]))).describe('Values of the metrics of policies.'),
  gates: optional(z.record(z.string(), z.union([z.array(z.number()).max(100), z.literal('error'), z.literal('noData')]))).describe(
    'Readings of each gate, oldest first, one per interval (`every`). The last reading is the current one.',
  ),
  waveAvailableFor: duration.optional().describe('Time since the pods of the current wave became available.'),
  source: optional(z.union([z.int().min(0), z.literal('unknown')])).describe('Replicas of the mirrored object.'),
  approvals: z
    .array(
      z.strictObject({
        wave: shortName.optional(),
        rule: z.string().optional(),
        user: z.string(),
        groups: z.array(z.string()).default([]),
      }),
    )
    .max(50)
    .optional(),
  paused: z.boolean().optional().describe('A user paused the group.'),
  approvedPlan: z.boolean().optional().describe('The StatefulSets name an approved plan, and the rollout does not differ from it.'),
});

const request = z.strictObject({
  action: z
    .enum(['scaleUp', 'scaleDown', 'rollout', 'restart', 'delete', 'evict', 'none'])
    .describe('Requested action. With `rollout` and `none` the test checks the next decision of the agent.'),
  group: z.string().optional().describe('Name of the group. Optional if the files define one group.'),
  zone: z.string().optional(),
  from: z.int().min(0).optional().describe('For `scaleUp` and `scaleDown`: replicas before the request. By default, those of the zone.'),
  to: z.int().min(0).optional().describe('For `scaleUp` and `scaleDown`: requested replicas.'),
  ordinal: z.int().min(0).optional().describe('Ordinal of the pod for `delete` and `evict`. Without it `delete` means the StatefulSet.'),
  via: optionalList(z.enum(['update', 'patch', 'apply', 'scale']), 4).describe('Write paths. The test expects the same decision on each.'),
  user: z.string().optional(),
  groups: z.array(z.string()).max(50).optional().describe('Groups of the user.'),
});

const expectation = z.strictObject({
  decision: z
    .enum(['allow', 'deny', 'hold', 'requireApproval', 'warn', 'act', 'wait', 'blocked', 'done'])
    .describe('Expected answer: `act`, `wait`, `blocked` or `done` for the actions `rollout` and `none`, any other value for requests.'),
  rules: z.array(z.string()).max(50).optional().describe('Rules that must block. If no rule blocks: rules that must have been evaluated.'),
  message: z.string().optional().describe('Text that the answer must contain.'),
  pods: z.array(z.string()).max(1000).optional().describe('Pods that the agent would replace now.'),
  replicas: z.record(z.string(), z.int().min(0)).optional().describe('Replicas that the agent would write now, per zone.'),
});

export const policyTestSpec = z.strictObject({
  files: z.array(z.string().min(1).max(1024)).min(1).max(100).describe('Policies and manifests, relative to this file.'),
  clock: instant.default('2026-01-15T10:00:00Z').describe('Start of the clock. The `advance` of a case moves the clock before the case.'),
  given: given.optional().describe('Common state of all cases.'),
  cases: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(200),
        advance: duration.optional().describe('Advances the clock for this case and all later cases.'),
        given: given.optional(),
        request,
        expect: expectation,
      }),
    )
    .min(1)
    .max(1000),
});

type PolicyTestSpec = z.infer<typeof policyTestSpec>;
export type PolicyTestCase = PolicyTestSpec['cases'][number];
export type GivenState = z.infer<typeof given>;
