// Names the rules that no exception can override.

/** The part of a policy that decides which of its rules an exception can override. */
export interface PolicyRules {
  readonly name: string;
  readonly rules: readonly { readonly name: string; readonly effect: string; readonly onUnknown: string }[];
}

/**
 * The ids of the engine rules that no exception can override. Such a rule depends on observations or claims, or the API server enforces it
 * too, or another request with separate rights ends its block, or the rule only warns.
 */
export const rulesWithoutException: readonly string[] = [
  'agent-access',
  'announced',
  'approval',
  'approved-plan',
  'drift',
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
  'restart-version',
  'revision-known',
  'rolled-back',
  'run-deadline',
  'run-failed',
  'soak',
  'undone',
  'updated-by-restart',
  'view-complete',
  'wave-available',
  'write-accepted',
  'zone-images',
  'zones-returned',
];

/** Reports whether an exception can override the rule. An exception needs no approver, so it cannot override a demand for approval. */
export function canOverride(rule: string, policies: readonly PolicyRules[]): boolean {
  return !rulesWithoutException.includes(rule) && !demandsApproval(rule, policies);
}

function demandsApproval(rule: string, policies: readonly PolicyRules[]): boolean {
  return policies.some((policy) => policy.rules.some((one) => `${policy.name}/${one.name}` === rule && asksForApproval(one)));
}

/** Reports whether the policy rule can answer that it needs an approval. */
export function asksForApproval({ effect, onUnknown }: { readonly effect: string; readonly onUnknown?: string | undefined }): boolean {
  return [effect, onUnknown].some((one) => one === 'requireApproval' || one === 'requireApprovedPlan');
}
