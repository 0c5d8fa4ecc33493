// The labels, annotations and budgets of grafana/rollout-operator.

/** Keys that are effective only as labels of the StatefulSet. */
export const labelKeys = {
  group: 'rollout-group',
  noDownscale: 'grafana.com/no-downscale',
  prepareDownscale: 'grafana.com/prepare-downscale',
  minTimeBetweenZones: 'grafana.com/min-time-between-zones-downscale',
} as const;

/** Keys that are effective only as annotations of the StatefulSet. */
export const annotationKeys = {
  maxUnavailable: 'rollout-max-unavailable',
  leader: 'grafana.com/rollout-downscale-leader',
  upscaleOnlyWhenLeaderReady: 'grafana.com/rollout-upscale-only-when-leader-ready',
  lastDownscale: 'grafana.com/last-downscale',
  preparePath: 'grafana.com/prepare-downscale-http-path',
  preparePort: 'grafana.com/prepare-downscale-http-port',
  mirrorName: 'grafana.com/rollout-mirror-replicas-from-resource-name',
  mirrorKind: 'grafana.com/rollout-mirror-replicas-from-resource-kind',
  mirrorApiVersion: 'grafana.com/rollout-mirror-replicas-from-resource-api-version',
  mirrorWriteBack: 'grafana.com/rollout-mirror-replicas-from-resource-write-back',
  delay: 'grafana.com/rollout-delayed-downscale',
  delayedUrl: 'grafana.com/rollout-prepare-delayed-downscale-url',
  forceReplicas: 'grafana.com/rollout-force-replicas',
  paused: 'grafana.com/rollout-paused',
} as const;

/** All labels and annotations that adoption reads. */
export const adoptedKeys: ReadonlySet<string> = new Set([...Object.values(labelKeys), ...Object.values(annotationKeys)]);

/** Annotations of the endpoint that prepares pods for their deletion. */
export const preparationKeys: readonly string[] = [annotationKeys.preparePath, annotationKeys.preparePort];

/** The label of the pod template by which grafana/rollout-operator finds pods. */
export const podNameLabel = 'name';

/** The API resource of its disruption budgets. */
export const zoneBudgetResource = {
  group: 'rollout-operator.grafana.com',
  version: 'v1',
  plural: 'zoneawarepoddisruptionbudgets',
  kind: 'ZoneAwarePodDisruptionBudget',
  isNamespaced: true,
} as const;
