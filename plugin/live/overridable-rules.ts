// Names the rules that `override` accepts for a group. Completion offers the same rules.
import type { RuleResult } from '../../engine/decision.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { canOverride, type PolicyRules } from '../../policies/rollout/rules-without-exception.ts';

type NamedRules = readonly Pick<RuleResult, 'rule'>[];

interface DecidedRules {
  readonly stops?: NamedRules;
  readonly waits: NamedRules;
  readonly steps: readonly { readonly results?: NamedRules }[];
}

/** Returns the rules that can block a group and that an exception can override, each once. */
export function overridableRules(policies: readonly PolicyRules[], { stops = [], waits, steps }: DecidedRules): readonly string[] {
  const ofEngine = ruleCatalog.filter(({ reason }) => reason !== undefined).map(({ id }) => id);
  // The windows of all policies block as one rule, `window`.
  const ofPolicies = policies.flatMap(({ name, rules }) => rules.filter(mayBlock).map((rule) => `${name}/${rule.name}`));
  // A policy in the directory of the agent is known only from the decision that names its rules.
  const ofDecision = [...stops, ...waits, ...steps.flatMap(({ results = [] }) => results)].map(({ rule }) => rule);
  const known = new Set([...ofEngine, ...ofPolicies, ...ofDecision.filter((rule) => rule.includes('/'))]);
  return [...known].filter((rule) => canOverride(rule, policies));
}

function mayBlock({ effect, onUnknown }: PolicyRules['rules'][number]): boolean {
  return effect !== 'warn' || (onUnknown !== 'warn' && onUnknown !== 'allow');
}
