// Fields with special treatment by the API server: defaults, fields that it writes, immutable fields.

/**
 * Defaults of Kubernetes by field, list keys left out. `spec.replicas` is not among them: a manifest that leaves it out leaves it to others,
 * which is something else than asking for one.
 */
const defaults: Readonly<Record<string, unknown>> = {
  'spec.podManagementPolicy': 'OrderedReady',
  'spec.revisionHistoryLimit': 10,
  'spec.minReadySeconds': 0,
  'spec.updateStrategy.type': 'RollingUpdate',
  'spec.updateStrategy.rollingUpdate.partition': 0,
  'spec.persistentVolumeClaimRetentionPolicy.whenDeleted': 'Retain',
  'spec.persistentVolumeClaimRetentionPolicy.whenScaled': 'Retain',
  'spec.volumeClaimTemplates[].spec.volumeMode': 'Filesystem',
  'spec.template.spec.restartPolicy': 'Always',
  'spec.template.spec.dnsPolicy': 'ClusterFirst',
  'spec.template.spec.schedulerName': 'default-scheduler',
  'spec.template.spec.terminationGracePeriodSeconds': 30,
  'spec.template.spec.enableServiceLinks': true,
  'spec.template.spec.containers[].terminationMessagePath': '/dev/termination-log',
  'spec.template.spec.containers[].terminationMessagePolicy': 'File',
  'spec.template.spec.containers[].ports[].protocol': 'TCP',
  'spec.template.spec.containers[].env[].valueFrom.fieldRef.apiVersion': 'v1',
  'spec.template.spec.volumes[].configMap.defaultMode': 420,
  'spec.template.spec.volumes[].secret.defaultMode': 420,
  'spec.template.spec.volumes[].projected.defaultMode': 420,
};

const probeDefaults: Readonly<Record<string, unknown>> = {
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
  'httpGet.scheme': 'HTTP',
};

/** Returns the known default that the API server sets for an absent `pattern`. `siblings` are the other fields of the map. */
export function fieldDefault(pattern: string, siblings: Readonly<Record<string, unknown>>): unknown {
  const field = pattern.replace('.initContainers[]', '.containers[]');
  if (field === 'spec.template.spec.containers[].imagePullPolicy') return imagePullPolicy(String(siblings['image'] ?? ''));
  const probe = /\.(?:liveness|readiness|startup)Probe\.(.+)$/.exec(field);
  return probe?.[1] === undefined ? defaults[field] : probeDefaults[probe[1]];
}

/** `Always` for the tag latest and for no tag, as the API server decides when the pod template is stored. */
function imagePullPolicy(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return !image.includes('@') && (!name.includes(':') || name.endsWith(':latest')) ? 'Always' : 'IfNotPresent';
}

const serverFields: ReadonlySet<string> = new Set([
  'status',
  'metadata.uid',
  'metadata.resourceVersion',
  'metadata.generation',
  'metadata.creationTimestamp',
  'metadata.deletionTimestamp',
  'metadata.deletionGracePeriodSeconds',
  'metadata.managedFields',
  'metadata.selfLink',
  // A copy of an earlier manifest, with its secrets.
  'metadata.annotations.kubectl.kubernetes.io/last-applied-configuration',
  'spec.template.metadata.creationTimestamp',
  'spec.volumeClaimTemplates[].status',
  'spec.volumeClaimTemplates[].apiVersion',
  'spec.volumeClaimTemplates[].kind',
  'spec.volumeClaimTemplates[].metadata.creationTimestamp',
]);

/** Reports whether the API server or the bookkeeping of a client writes the field. */
export function isServerField(pattern: string): boolean {
  return serverFields.has(pattern);
}

const mutableOfStatefulSet: readonly string[] = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

/** Reports whether the field of a StatefulSet is immutable: all of `spec` except a short list. */
export function isImmutableField(pattern: string): boolean {
  const field = /^spec\.(\w+)/.exec(pattern)?.[1];
  return field !== undefined && !mutableOfStatefulSet.includes(field);
}
