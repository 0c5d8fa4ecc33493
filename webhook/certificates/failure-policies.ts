// Reports the failure policy of every webhook entry as a metric.
import type { ConfigurationKind, WebhookConfiguration } from './webhook-configurations.ts';

/** One series of the gauge `kube_validating_webhook_failure_policy`. */
export interface FailurePolicySample {
  readonly type: ConfigurationKind;
  /** Name of the entry without its configuration. */
  readonly webhook: string;
  readonly policy: 'Fail' | 'Ignore';
  readonly value: 0 | 1;
}

/**
 * Returns two series for each entry name and kind, 1 for the policy in force. Only existing configurations of the namespace have series. If
 * two configurations have an entry of the same name, `Ignore` wins, because people want to be warned of it.
 */
export function failurePolicies(configurations: readonly WebhookConfiguration[]): readonly FailurePolicySample[] {
  const byEntry = new Map<string, { readonly type: ConfigurationKind; readonly webhook: string; isIgnored: boolean }>();
  for (const { kind, entries } of configurations) {
    for (const { name, failurePolicy } of entries) {
      const key = `${kind} ${name}`;
      const known = byEntry.get(key) ?? { type: kind, webhook: name, isIgnored: false };
      byEntry.set(key, { ...known, isIgnored: known.isIgnored || failurePolicy === 'Ignore' });
    }
  }
  return [...byEntry.values()].flatMap(({ type, webhook, isIgnored }): readonly FailurePolicySample[] => [
    { type, webhook, policy: 'Fail', value: isIgnored ? 0 : 1 },
    { type, webhook, policy: 'Ignore', value: isIgnored ? 1 : 0 },
  ]);
}
