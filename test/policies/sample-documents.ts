// One document of every kind in which nearly every field is set, for tests of what is written and generated.
import { parseAllDocuments } from 'yaml';
import { type Kind, type PolicyDocument, schemas } from '../../policies/schema/kinds.ts';

/** As people would write them. */
export const sampleText = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: mimir, labels: { team: metrics } }
spec:
  members:
    zones:
      - { name: a, statefulSet: ingester-zone-a }
      - { name: b, statefulSet: ingester-zone-b, follows: a, maxUnavailable: 2, paused: true, forceReplicas: 3 }
      - { name: c, statefulSet: ingester-zone-c, replicas: { count: 4 }, protect: { noDelete: true }, scaling: { down: { hold: "why" } } }
  replicas:
    mirror:
      from: { apiVersion: rollout-operator.grafana.com/v1, kind: ReplicaTemplate, name: ingester }
      writeBack: status
    bounds: { min: 3, max: 60, parity: odd }
  scaling:
    duringRollout: wait
    up: { followersWaitFor: leaderReady }
    down:
      betweenZones: 13h
      delayed: { after: 13h, endpoint: { port: 8080, path: /ingester/prepare-delayed-downscale } }
      prepare: { endpoint: { port: 8080, path: /ingester/prepare-shutdown }, onFailure: hold }
  rollout:
    strategy: pinned
    maxUnavailable: 10%
    replaceUnready: { when: any, after: 10m }
    waves:
      - { name: canary, zones: [a], pods: 1, after: { soak: 30m, gates: [ingest-errors] } }
      - { name: rest, zones: [b, c], percent: 100, before: { approval: { count: 1, from: [oncall] } } }
    deadlines: { progress: 20m, run: 24h }
    onFailure: rollback
  gates:
    - name: ingest-errors
      prometheus: { source: prod, query: "sum(rate(ingest_failures_total[5m]))" }
      initialDelay: 2m
      consecutive: 5
      pass: { "<=": [{ var: value }, 0.5] }
  disruption: { maxUnavailable: 1, partition: { pattern: "ingester-zone-[a-z]-([0-9]+)" }, crossZoneDelay: 2m }
  protect: { noDelete: true }
  notify: [{ channel: sre, events: [started, failed] }]
---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: stateful-safety, namespace: mimir }
spec:
  targets: { groups: [ingester] }
  inputs: { metrics: { queue: { source: prod, query: max(queue_length) } } }
  rules:
    - name: queue-must-be-drained
      actions: [scaleDown]
      effect: hold
      when: { and: [{ ">": [{ var: inputs.metrics.queue }, 100] }, { "==": [{ var: request.zone }, "on"] }] }
      message: "queue is \${inputs.metrics.queue}; wait until 100 or less"
  windows:
    - { name: hours, kind: allow, actions: [rollout], schedule: { cron: "0 9 * * 1-4", duration: 8h, timeZone: Europe/Amsterdam } }
    - name: year-end
      kind: deny
      actions: [rollout, restart]
      ranges: [{ from: "2026-12-18T18:00:00+01:00", to: "2027-01-04T08:00:00+01:00" }]
  limits: { maxUnavailable: 25%, minReplicas: 3 }
---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutException
metadata: { name: gap, namespace: mimir }
spec:
  rule: zone-gap
  target: { group: ingester, zone: a }
  allow: { replicasAtLeast: 3 }
  reason: "capacity was doubled by mistake"
  expires: "2026-12-18T18:00:00+01:00"
---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutIntent
metadata: { name: approve, namespace: mimir }
spec: { group: ingester, action: approve, wave: rest, reason: looks good }
---
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutRun
metadata: { name: ingester-4f1c, namespace: mimir }
spec:
  group: ingester
  id: 4f1c
  kind: rollout
  outcome: completed
  startedAt: "2026-11-02T09:00:00Z"
  endedAt: "2026-11-02T09:40:00Z"
  took: 2400
  waited: 600
  zones: [{ zone: a, statefulSet: ingester-zone-a, fromRevision: rev-1, toRevision: rev-2 }]
  steps:
    - { zone: a, wave: canary, action: replace, what: evict pod ingester-zone-a-2, pods: 0-2, count: 3, startedAt: "2026-11-02T09:00:00Z", endedAt: "2026-11-02T09:10:00Z" }
  waits: [{ rule: soak, fact: the wave has been available for 10m, seconds: 600 }]
---
apiVersion: rollout-group.dev/v1alpha1
kind: MetricSource
metadata: { name: prod, namespace: operator }
spec:
  prometheus: { url: "https://prometheus:9090/api", bearerToken: { name: token, key: token } }
  usableFrom: { namespaces: [mimir] }
---
apiVersion: rollout-group.dev/v1alpha1
kind: NotificationChannel
metadata: { name: sre, namespace: operator }
spec:
  slack: { token: { name: slack, key: token }, channel: C0123456789 }
  usableFrom: { namespaces: [mimir] }
---
apiVersion: rollout-group.dev/v1alpha1
kind: PolicyTest
metadata: { name: tests }
spec:
  files: [group.yaml]
  given: { zones: { a: { unready: [1] } }, metrics: { queue: unknown } }
  cases:
    - name: waits
      advance: 1h
      request: { action: rollout }
      expect: { decision: wait, rules: [other-zones-ready] }
`;

/** The same as plain data, as a parser gives them. */
export const sampleInputs: readonly { readonly kind: Kind; readonly input: unknown }[] = parseAllDocuments(sampleText).map((document) => {
  const input = document.toJS();
  return { kind: input.kind, input };
});

/** The same with every default filled in. */
export const sampleDocuments: readonly PolicyDocument[] = sampleInputs.map(({ kind, input }) => schemas[kind].parse(input));
