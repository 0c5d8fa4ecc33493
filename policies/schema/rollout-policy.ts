// The kind RolloutPolicy: rules and windows over groups. Several policies on one group join restrictively.
import { z } from 'zod';
import { condition, countOrPercent, duration, instant, labelSelector, objectName, shortName } from './scalars.ts';

/** The actions that rules and windows speak of. */
export const policyAction = z.enum(['scaleUp', 'scaleDown', 'rollout', 'restart', 'delete', 'evict']);

const rule = z.strictObject({
  name: shortName,
  actions: z.array(policyAction).min(1).max(6).describe('The actions this rule judges.'),
  effect: z.enum(['deny', 'hold', 'requireApproval', 'warn']).describe('What follows when the condition holds.'),
  when: condition.optional().describe('When the rule applies; without it, always.'),
  onUnknown: z
    .enum(['deny', 'hold', 'requireApproval', 'warn', 'allow'])
    .optional()
    .describe('What follows when the condition cannot be decided; the default is the effect.'),
  approval: z
    .strictObject({ count: z.int().min(1).max(20).default(1), from: z.array(z.string().min(1)).min(1).max(20).optional() })
    .optional()
    .describe('Who must approve when the effect is requireApproval.'),
  message: z.string().max(1024).optional().describe('What people read; a variable in ${} is replaced by its value.'),
});

const window = z
  .strictObject({
    name: shortName,
    kind: z.enum(['allow', 'deny']).describe('allow: only inside; deny: never inside. An active deny wins.'),
    actions: z.array(policyAction).min(1).max(6),
    schedule: z
      .strictObject({
        cron: z.string().min(9).max(100).describe('Five cron fields; day of month and day of week not both.'),
        duration: duration.describe('Elapsed time, so eight hours are eight hours on the nights the clock changes.'),
        timeZone: z.string().min(1).max(64).describe('IANA time zone, such as Europe/Amsterdam.'),
      })
      .optional(),
    ranges: z
      .array(z.strictObject({ from: instant, to: instant, reason: z.string().max(256).optional() }))
      .min(1)
      .max(100)
      .optional()
      .describe('Absolute, half-open ranges.'),
    inFlight: z
      .enum(['finishPod', 'finishZone', 'finishAll'])
      .default('finishPod')
      .describe('What may still be finished after the window closed.'),
  })
  .meta({ 'x-rollout-group-one-of': ['schedule', 'ranges'] });

const limits = z
  .strictObject({
    maxUnavailable: countOrPercent.optional().describe('Cap on rollout.maxUnavailable.'),
    minReplicas: z.int().min(0).max(100_000).optional().describe('No zone is scaled below this.'),
    maxReplicas: z.int().min(0).max(100_000).optional().describe('No zone is scaled above this.'),
    betweenZones: duration.optional().describe('At least this long between replica decreases of two zones.'),
    minInterval: duration.optional().describe('At least this long between two replacements.'),
  })
  .describe('Numbers that bind every target; of several policies the strictest wins.');

/** `spec` of a RolloutPolicy. */
export const rolloutPolicySpec = z.strictObject({
  targets: z
    .strictObject({
      groups: z.array(z.string().min(1).max(253)).min(1).max(100).optional().describe('Names of groups.'),
      selector: labelSelector.optional().describe('Groups by their labels.'),
      all: z.literal(true).optional().describe('Every group of the namespace.'),
      namespaces: z
        .array(objectName)
        .min(1)
        .max(100)
        .optional()
        .describe("Only in the agent's own namespace: the namespaces whose groups are meant."),
    })
    .meta({ 'x-rollout-group-one-of': ['groups', 'selector', 'all'] }),
  inputs: z
    .strictObject({
      metrics: z
        .record(
          z.string().regex(/^[a-zA-Z][a-zA-Z0-9_]{0,62}$/),
          z.strictObject({
            source: objectName,
            query: z.string().min(1).max(4096),
            noData: z.enum(['unknown', 'zero']).default('unknown'),
            maxAge: duration.default('2m').describe('A reading older than this is unknown.'),
          }),
        )
        .optional(),
    })
    .optional()
    .describe('What conditions may read beside the group; gathered beforehand.'),
  rules: z.array(rule).max(100).optional(),
  windows: z.array(window).max(50).optional(),
  limits: limits.optional(),
});

export type PolicyAction = z.infer<typeof policyAction>;
export type PolicyRuleSpec = z.infer<typeof rule>;
export type WindowSpec = z.infer<typeof window>;
export type LimitsSpec = z.infer<typeof limits>;
