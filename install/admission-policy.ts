// The admission policies of an installation.
import { stampPolicyOf } from './admission-policy-stamp.ts';
import { strategyPolicyOf } from './admission-policy-strategy.ts';
import type { InstallObject, InstallOptions } from './object.ts';

/** Policies with their bindings; none where API servers do not know them. */
export function admissionPoliciesOf(options: InstallOptions): readonly InstallObject[] {
  return options.hasAdmissionPolicies ? [...stampPolicyOf(options), ...strategyPolicyOf(options)] : [];
}
