// The example of the demo: Mimir ingesters in three zones and their policy.

const zones = ['a', 'b', 'c'];

/** The running StatefulSets of three zones. The followers leave their replicas to the agent. */
export const demoManifests: string = zones
  .map(
    (zone) => `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ingester-zone-${zone}
  namespace: mimir
  labels: { app: ingester, zone: ${zone} }
spec:
${zone === 'a' ? '  replicas: 12\n' : ''}  serviceName: ingester
  podManagementPolicy: Parallel
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { app: ingester, zone: ${zone} } }
  template:
    metadata: { labels: { app: ingester, zone: ${zone} } }
    spec:
      containers:
        - name: ingester
          image: grafana/mimir:2.16.0
          args: [-target=ingester, -ingester.ring.instance-availability-zone=zone-${zone}]
          readinessProbe: { httpGet: { path: /ready, port: 8080 } }
`,
  )
  .join('---\n');

/** The policy: one pod, then its zone, then the other zones, with a soak and a gate. */
export const demoPolicy = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir }
spec:
  members:
    zones:
      - { name: zone-a, statefulSet: ingester-zone-a }
      - { name: zone-b, statefulSet: ingester-zone-b, follows: zone-a }
      - { name: zone-c, statefulSet: ingester-zone-c, follows: zone-b }
  replicas: { leader: true }
  rollout:
    strategy: onDelete
    rotateBy: delete
    maxUnavailable: 25%
    waves:
      - { name: canary, zones: [zone-a], pods: 1, after: { soak: 5m, gates: [ingest-errors] } }
      - { name: first, zones: [zone-a], percent: 100, after: { soak: 15m } }
      - { name: rest, zones: [zone-b, zone-c], percent: 100 }
  gates:
    - name: ingest-errors
      prometheus: { source: prod, query: 'sum(rate(cortex_ingester_ingested_samples_failures_total[5m]))' }
      initialDelay: 2m
      consecutive: 10
      pass: { '<=': [{ var: value }, 0.5] }
`;

/** The requested image. */
export const demoImage = 'grafana/mimir:2.17.1';
