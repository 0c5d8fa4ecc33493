// Resolves RolloutPolicies and RolloutExceptions to the definitions that the engine reads.
import type {
  ExceptionDefinition,
  LimitsDefinition,
  PolicyDefinition,
  PolicyRuleDefinition,
  Source,
  WindowDefinition,
} from '../definition.ts';
import { durationMs } from '../duration.ts';
import { sourceOf } from '../findings/finding.ts';
import { instantMs } from '../instant.ts';
import type { Loaded } from '../load.ts';
import type { LimitsSpec, PolicyRuleSpec, WindowSpec } from '../schema/rollout-policy.ts';
import { defined } from '../values/defined.ts';

export function resolvePolicy(document: Loaded<'RolloutPolicy'>): PolicyDefinition {
  const { targets, inputs, rules, windows, limits } = document.value.spec;
  const source = (...path: (string | number)[]) => sourceOf(document.place(['spec', ...path]));
  const limitNames = Object.keys(limits ?? {}).filter((name) => document.find(['spec', 'limits', name]));
  return {
    namespace: document.namespace,
    name: document.name,
    targets: defined(targets),
    metrics: Object.fromEntries(
      Object.entries(inputs?.metrics ?? {}).map(([name, { maxAge, ...metric }]) => [name, { ...metric, maxAgeMs: durationMs(maxAge) }]),
    ),
    rules: (rules ?? []).map((rule, index) => resolveRule(rule, source('rules', index))),
    windows: (windows ?? []).map((window, index) => resolveWindow(window, source('windows', index))),
    limits: resolveLimits(limits ?? {}),
    limitSources: Object.fromEntries(limitNames.map((name) => [name, source('limits', name)])),
    source: sourceOf(document.place([])),
  };
}

function resolveRule(rule: PolicyRuleSpec, source: Source): PolicyRuleDefinition {
  return defined({
    ...rule,
    // An unknown condition must not allow more than the rule itself.
    onUnknown: rule.onUnknown ?? rule.effect,
    approval: { count: rule.approval?.count ?? 1, from: rule.approval?.from ?? [] },
    source,
  });
}

function resolveWindow(window: WindowSpec, source: Source): WindowDefinition {
  const { schedule, ranges, ...settings } = window;
  return defined({
    ...settings,
    schedule: schedule && { cron: schedule.cron, durationMs: durationMs(schedule.duration), timeZone: schedule.timeZone },
    ranges: ranges?.map(({ from, to, reason }) => defined({ fromMs: instantOf(from), toMs: instantOf(to), reason })),
    source,
  });
}

function resolveLimits(limits: LimitsSpec): LimitsDefinition {
  const { betweenZones, minInterval, ...numbers } = limits;
  return defined({
    ...numbers,
    betweenZonesMs: betweenZones === undefined ? undefined : durationMs(betweenZones),
    minIntervalMs: minInterval === undefined ? undefined : durationMs(minInterval),
  });
}

export function resolveException(document: Loaded<'RolloutException'>): ExceptionDefinition {
  const { rule, target, allow, reason, requestedBy, notBefore, expires } = document.value.spec;
  return defined({
    namespace: document.namespace,
    name: document.name,
    rule,
    group: target.group,
    zone: target.zone,
    allow: defined(allow),
    reason,
    requestedBy: requestedBy && { user: requestedBy.user, atMs: instantOf(requestedBy.at) },
    notBeforeMs: notBefore === undefined ? undefined : instantOf(notBefore),
    expiresMs: instantOf(expires),
    source: sourceOf(document.place(['spec'])),
  });
}

/** Returns an instant as milliseconds since 1970. Throws RangeError if the text is not a valid instant. */
function instantOf(text: string): number {
  const ms = instantMs(text);
  if (ms === undefined) throw new RangeError(`not an instant: ${text}`);
  return ms;
}
