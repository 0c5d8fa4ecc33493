// StatefulSets of adopted groups for tests, as short as the setting under test.
import { adoptGroups } from '../../../policies/adopt/adopt.ts';
import type { RolloutGroup } from '../../../policies/schema/kinds.ts';

interface MemberText {
  readonly name?: string;
  readonly namespace?: string;
  readonly group?: string;
  readonly labels?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly serviceName?: string;
  readonly strategy?: string;
  readonly podLabels?: Readonly<Record<string, string>>;
}

/** A raw StatefulSet of the group `ingester` that nothing is wrong with, but for what is given. */
export function statefulSet({
  name = 'ingester-zone-a',
  namespace = 'mimir',
  group = 'ingester',
  labels = {},
  annotations = {},
  serviceName = 'ingester',
  strategy = 'OnDelete',
  podLabels = { name },
}: MemberText = {}): unknown {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace, labels: { 'rollout-group': group, ...labels }, annotations },
    spec: { replicas: 3, serviceName, updateStrategy: { type: strategy }, template: { metadata: { labels: podLabels } } },
  };
}

type AdoptedZone = NonNullable<RolloutGroup['spec']['members']['zones']>[number];

/** Zone a as adopted beside a plain zone b, and what was found about it, as `code field`. */
export function adoptZone(text: MemberText): { readonly zone: AdoptedZone | undefined; readonly findings: readonly string[] } {
  const { groups, findings } = adoptGroups([statefulSet(text), statefulSet({ name: 'ingester-zone-b' })]);
  return { zone: groups[0]?.spec.members.zones?.[0], findings: findings.map(({ code, field }) => `${code} ${field}`) };
}
