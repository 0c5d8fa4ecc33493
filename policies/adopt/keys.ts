// Names the labels, the annotations and the budget resource of grafana/rollout-operator.

/** The labels of a StatefulSet. As annotations these keys have no effect. */
export const labelKeys = {
  group: 'rollout-group',
  noDownscale: 'grafana.com/no-downscale',
  prepareDownscale: 'grafana.com/prepare-downscale',
  minTimeBetweenZones: 'grafana.com/min-time-between-zones-downscale',
} as const;

/** The annotations of a StatefulSet. As labels these keys have no effect. */
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

/** The labels and annotations that adoption reads from StatefulSets with the label `rollout-group`. */
export const adoptedKeys: ReadonlySet<string> = new Set([...Object.values(labelKeys), ...Object.values(annotationKeys)]);

/** The annotations with the path and the port of the endpoint that prepares a pod for its deletion. */
export const preparationKeys: readonly string[] = [annotationKeys.preparePath, annotationKeys.preparePort];

/** The key of the pod template's label by which grafana/rollout-operator finds the pods of a StatefulSet. */
export const podNameLabel = 'name';

/** The API resource of the disruption budgets of grafana/rollout-operator. */
export const zoneBudgetResource = {
  group: 'rollout-operator.grafana.com',
  version: 'v1',
  plural: 'zoneawarepoddisruptionbudgets',
  kind: 'ZoneAwarePodDisruptionBudget',
  isNamespaced: true,
} as const;
