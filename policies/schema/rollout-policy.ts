// Defines the kind RolloutPolicy: rules, windows and limits for groups.
import * as z from 'zod';
import { optional } from 'zod';
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
  shortName,
  wordOf,
} from './scalars.ts';

export const policyAction = z.enum(['scaleUp', 'scaleDown', 'rollout', 'restart', 'delete', 'evict']);

const rule = z.strictObject({
  name: shortName,
  actions: z.array(policyAction).min(1).max(6).describe('Actions that this rule applies to.'),
  effect: z
    .enum(['deny', 'hold', 'requireApproval', 'requireApprovedPlan', 'warn'])
    .describe('Effect if the condition is true. `requireApprovedPlan` requires approvals unless the rollout matches its approved plan.'),
  when: condition.optional().describe('Condition of the rule. Without it the rule always applies.'),
  onUnknown: optional(z.enum(['deny', 'hold', 'requireApproval', 'requireApprovedPlan', 'warn', 'allow'])).describe(
    'Effect if the condition is unknown. The default is `effect`.',
  ),
  approval: optionalFields({ count: z.int().min(1).max(20).default(1), from: optionalList(z.string().min(1), 20) }).describe(
    'Required approvals for the effects `requireApproval` and `requireApprovedPlan`.',
  ),
  message: z.string().max(1024).optional().describe('Message for users. A variable in ${} is replaced by its value.'),
});

const window = z
  .strictObject({
    name: shortName,
    kind: z
      .enum(['allow', 'deny'])
      .describe('`allow`: the actions are possible only in the window. `deny`: they are blocked in the window. An active `deny` wins.'),
    actions: z.array(policyAction).min(1).max(6),
    schedule: optionalFields({
      cron: z.string().min(9).max(100).describe('Five cron fields. Day of month and day of week cannot be combined.'),
      duration: duration.describe('Elapsed time. A change to or from daylight saving time does not change it.'),
      timeZone: z.string().min(1).max(64).describe('IANA time zone, such as Europe/Amsterdam.'),
    }),
    ranges: optionalList(z.strictObject({ from: instant, to: instant, reason: z.string().max(256).optional() }), 100).describe(
      'Absolute time ranges; `to` is excluded.',
    ),
    inFlight: wordOf('finishPod', 'finishZone', 'finishAll').describe(
      'How much of a running rollout may finish when the window starts to block. `finishPod`: the pods in flight. `finishZone`: the pods of the current wave in the current zone. `finishAll`: the whole rollout. No effect on other actions.',
    ),
  })
  .meta({ 'x-rollout-group-one-of': ['schedule', 'ranges'] });

const limits = z
  .strictObject({
    maxUnavailable: countOrPercent.optional().describe('Upper limit of `rollout.maxUnavailable`.'),
    minReplicas: optionalInt(0, 100_000).describe('Minimum replicas of each zone.'),
    maxReplicas: optionalInt(0, 100_000).describe('Maximum replicas of each zone.'),
    betweenZones: duration.optional().describe('Minimum time between scale-downs of two zones.'),
    minInterval: duration.optional().describe('Minimum time between two pod replacements.'),
  })
  .describe('Limits for every target. With several policies the strictest limit applies.');

export const rolloutPolicySpec = z.strictObject({
  targets: z
    .strictObject({
      groups: optionalList(z.string().min(1).max(253), 100).describe('Names of groups.'),
      selector: labelSelector.optional().describe('Selects groups by label.'),
      all: z.literal(true).optional().describe('All groups of the namespace.'),
      namespaces: optionalList(objectName, 100).describe('Namespaces of the groups. Allowed only in the namespace of the agent.'),
    })
    .meta({ 'x-rollout-group-one-of': ['groups', 'selector', 'all'] }),
  inputs: optionalFields({
    metrics: z
      .record(
        z.string().regex(/^[a-zA-Z][a-zA-Z0-9_]{0,62}$/),
        z.strictObject({
          source: objectName,
          query: z.string().min(1).max(4096),
          noData: wordOf('unknown', 'zero').describe('Value of the metric if the query returns an empty result.'),
          maxAge: duration.default('2m').describe('Maximum age of a reading; an older reading is unknown.'),
        }),
      )
      .optional(),
  }).describe('Metrics that conditions can read.'),
  rules: z.array(rule).max(100).optional(),
  windows: z.array(window).max(50).optional(),
  limits: limits.optional(),
});

export type PolicyAction = z.infer<typeof policyAction>;
export type PolicyRuleSpec = z.infer<typeof rule>;
export type WindowSpec = z.infer<typeof window>;
export type LimitsSpec = z.infer<typeof limits>;
