// Reviews as an API server sends them, to be changed by a test.

/** JSON that a test may take apart and put together again. */
export type Json = Record<string, unknown>;

/** An UPDATE of a StatefulSet from 3 to 2 replicas; `request` replaces fields of the request. */
export function reviewJson(request: Json = {}, envelope: Json = {}): Json {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      kind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
      resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
      requestKind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
      requestResource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
      name: 'ingester-zone-a',
      namespace: 'mimir',
      operation: 'UPDATE',
      userInfo: { username: 'ada', uid: '7', groups: ['system:authenticated', 'on-call'], extra: { scopes: ['all'] } },
      object: statefulSet(2),
      oldObject: statefulSet(3),
      dryRun: false,
      options: { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...request,
    },
    ...envelope,
  };
}

export function reviewText(request: Json = {}, envelope: Json = {}): string {
  return JSON.stringify(reviewJson(request, envelope));
}

function statefulSet(replicas: number): Json {
  const labels = { 'rollout-group': 'ingester', name: 'ingester-zone-a' };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: {
      name: 'ingester-zone-a',
      namespace: 'mimir',
      uid: '1f',
      resourceVersion: '1001',
      labels,
      annotations: { grüße: 'Zürich ✓' },
    },
    spec: {
      replicas,
      serviceName: 'ingester',
      selector: { matchLabels: { name: 'ingester-zone-a' } },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'ingester', image: 'grafana/mimir:3.0', args: ['-target=ingester'] }] },
      },
      updateStrategy: { type: 'OnDelete' },
    },
  };
}
