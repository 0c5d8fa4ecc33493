// Names the rules that no exception can override.
import type { PolicyDefinition } from '../definition.ts';

/**
 * The rules of the engine that no exception can override, by id. They depend on evidence or on announced disruptions, the API server enforces
 * them too, or another request with separate rights ends their block.
 */
export const rulesWithoutException: readonly string[] = [
  'agent-access',
  'announced',
  'approval',
  'eviction-budget',
  'gate',
  'granted-before',
  'ledger-full',
  'paused',
  'pin-webhook',
  'pods-in-flight',
  'progress-deadline',
  'protected',
  'protection-kept',
  'replica-source',
  'revision-known',
  'run-deadline',
  'run-failed',
  'soak',
  'undone',
  'view-complete',
  'wave-available',
];

/**
 * Reports whether an exception can override the rule. A policy rule that may demand an approval cannot be overridden: an exception needs no
 * approver.
 */
export function canOverride(rule: string, policies: readonly PolicyDefinition[]): boolean {
  return !rulesWithoutException.includes(rule) && !demandsApproval(rule, policies);
}

function demandsApproval(rule: string, policies: readonly PolicyDefinition[]): boolean {
  return policies.some((policy) =>
    policy.rules.some(
      ({ name, effect, onUnknown }) =>
        `${policy.name}/${name}` === rule && (effect === 'requireApproval' || onUnknown === 'requireApproval'),
    ),
  );
}
