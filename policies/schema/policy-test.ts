// The kind PolicyTest: cases beside the policies. Given a state and a request, expect a decision, with a clock that advances.
import { z } from 'zod';
import { duration, instant, shortName } from './scalars.ts';

const zoneState = z
  .strictObject({
    replicas: z.int().min(0).max(100_000).optional(),
    ready: z.int().min(0).max(100_000).optional().describe('Ready pods; the highest ordinals are the unready ones.'),
    updated: z
      .int()
      .min(0)
      .max(100_000)
      .optional()
      .describe('Pods at the new revision, from the top; fewer than replicas means a rollout is due.'),
    unready: z.array(z.int().min(0)).max(1000).optional().describe('Ordinals that are not ready.'),
    missing: z.array(z.int().min(0)).max(1000).optional().describe('Ordinals that do not exist.'),
    unknown: z.boolean().optional().describe('The pods of this zone could not be read.'),
    lastDownscale: duration.optional().describe('How long ago the zone shrank.'),
    preparedFor: duration.optional().describe('How long ago all leaving pods said that they are prepared.'),
    prepareFails: z.boolean().optional().describe('The pods refuse to prepare.'),
    readyFor: duration.optional().describe('How long the ready pods have been ready.'),
    paused: z.boolean().optional(),
  })
  .describe('The state of one zone; what is left out is healthy and at rest.');

const given = z.strictObject({
  zones: z.record(z.string(), zoneState).optional(),
  metrics: z
    .record(z.string(), z.union([z.number(), z.literal('unknown')]))
    .optional()
    .describe('Inputs of policies.'),
  gates: z
    .record(z.string(), z.union([z.array(z.number()).max(100), z.literal('error'), z.literal('noData')]))
    .optional()
    .describe('Readings of gates, oldest first, one per period, the newest now.'),
  waveAvailableFor: duration.optional().describe('How long the pods of the current wave have been available.'),
  source: z
    .union([z.int().min(0), z.literal('unknown')])
    .optional()
    .describe('The mirrored replica count.'),
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
  paused: z.boolean().optional().describe('A person paused the group.'),
});

const request = z.strictObject({
  action: z
    .enum(['scaleUp', 'scaleDown', 'rollout', 'restart', 'delete', 'evict', 'none'])
    .describe('What is asked; rollout and none ask what the agent would do.'),
  group: z.string().optional().describe('Name of the group; may be left out when the files define one.'),
  zone: z.string().optional(),
  from: z.int().min(0).optional(),
  to: z.int().min(0).optional(),
  ordinal: z.int().min(0).optional().describe('The pod, for delete and evict; without it delete means the StatefulSet.'),
  via: z
    .array(z.enum(['update', 'patch', 'apply', 'scale']))
    .min(1)
    .max(4)
    .optional()
    .describe('Write paths; the same answer is expected on each.'),
  user: z.string().optional(),
});

const expectation = z.strictObject({
  decision: z.enum(['allow', 'deny', 'hold', 'requireApproval', 'warn', 'act', 'wait', 'blocked', 'done']),
  rules: z.array(z.string()).max(50).optional().describe('Rules that must be among those that hold it.'),
  message: z.string().optional().describe('Text that the answer must contain.'),
  pods: z.array(z.string()).max(1000).optional().describe('Pods the agent would replace now.'),
  replicas: z.record(z.string(), z.int().min(0)).optional().describe('Replicas the agent would write now, per zone.'),
});

/** `spec` of a PolicyTest. */
export const policyTestSpec = z.strictObject({
  files: z.array(z.string().min(1).max(1024)).min(1).max(100).describe('Policies and manifests, relative to this file.'),
  clock: instant.default('2026-01-15T10:00:00Z').describe('The instant of the first case.'),
  given: given.optional().describe('State shared by all cases.'),
  cases: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(200),
        advance: duration.optional().describe('Moves the clock, for this case and those after it.'),
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
