// The admission policies of an installation.
import { stampPolicyOf } from './admission-policy-stamp.ts';
import { strategyPolicyOf } from './admission-policy-strategy.ts';
import type { InstallObject, InstallOptions } from './object.ts';

/** Returns the policies with their bindings; empty if the API servers do not support them. */
export function admissionPoliciesOf(options: InstallOptions): readonly InstallObject[] {
  return options.hasAdmissionPolicies ? [...stampPolicyOf(options), ...strategyPolicyOf(options)] : [];
}
