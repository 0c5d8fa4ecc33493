// Builds StatefulSet manifests as in Git, and the input of a plan made from them.
import { defaultAssumptions } from '../../engine/plan/document.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import { group } from './groups.ts';
import { kitNowMs } from './objects.ts';

interface ManifestOverrides {
  readonly image?: string;
  /** `undefined`: the manifest has no replicas, because another controller sets them. */
  readonly replicas?: number | undefined;
  readonly spec?: object;
  readonly metadata?: object;
  /** Fields of the only container. */
  readonly container?: object;
}

/** Builds the StatefulSet of a zone: three replicas, OnDelete, a readiness probe and a fixed image. */
export function manifest(zone: string, overrides: ManifestOverrides = {}): object {
  const name = `ingester-zone-${zone}`;
  const labels = { name, 'rollout-group': 'ingester' };
  const replicas = 'replicas' in overrides ? overrides.replicas : 3;
  const container = {
    name: 'ingester',
    image: overrides.image ?? 'grafana/mimir:2.16.0',
    readinessProbe: { httpGet: { path: '/ready', port: 8080 } },
    ...overrides.container,
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace: 'mimir', labels, ...overrides.metadata },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
      ...overrides.spec,
    },
  };
}

/** Builds the StatefulSets of the zones a, b and c. */
export function manifests(overrides: ManifestOverrides = {}, zones: readonly string[] = ['a', 'b', 'c']): readonly object[] {
  return zones.map((zone) => manifest(zone, overrides));
}

/** Builds the input of a plan of the group `ingester` without changes. */
export function planInput(overrides: Partial<PlanInput> = {}): PlanInput {
  return {
    groups: [group()],
    policies: [],
    exceptions: [],
    policyDigest: 'digest',
    current: manifests(),
    desired: manifests(),
    assumptions: defaultAssumptions,
    nowMs: kitNowMs,
    ...overrides,
  };
}
