// Defines the workload of an installation: Deployment, Service, disruption budget and network policy.
import { agentName } from '../policies/objects/agent-deployment.ts';
import { certificateSecret, type InstallObject, type InstallOptions, installObject, podLabelsOf } from './object.ts';

const ports = { metrics: 8001, webhook: 8443 } as const;

/** Returns the namespace of the agent, which denies pods outside the restricted Pod Security standard. */
export function agentNamespaceObject({ namespace }: InstallOptions): InstallObject {
  const object = installObject(['v1', 'Namespace'], { name: namespace }, namespace, {});
  const labels = { ...object.metadata.labels, 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { ...object, metadata: { ...object.metadata, labels } };
}

export function workloadOf(options: InstallOptions): readonly InstallObject[] {
  const { namespace, replicas } = options;
  const target = { name: agentName, namespace };
  const selector = { matchLabels: podLabelsOf(namespace) };
  return [
    installObject(['v1', 'Service'], target, namespace, {
      spec: {
        selector: podLabelsOf(namespace),
        ports: [
          { name: 'https', port: 443, targetPort: 'https', protocol: 'TCP' },
          { name: 'http-metrics', port: ports.metrics, targetPort: 'http-metrics', protocol: 'TCP' },
        ],
      },
    }),
    // The addresses of API servers are unknown, so the policy limits only the ports.
    installObject(['networking.k8s.io/v1', 'NetworkPolicy'], target, namespace, {
      spec: {
        podSelector: selector,
        policyTypes: ['Ingress'],
        ingress: [{ ports: [ports.webhook, ports.metrics].map((port) => ({ port, protocol: 'TCP' })) }],
      },
    }),
    // With one replica, this budget would protect nothing.
    ...(replicas > 1
      ? [
          installObject(['policy/v1', 'PodDisruptionBudget'], target, namespace, {
            spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector },
          }),
        ]
      : []),
    installObject(['apps/v1', 'Deployment'], target, namespace, { spec: deployment(options) }),
  ];
}

function deployment(options: InstallOptions): object {
  const { namespace, replicas } = options;
  const labels = podLabelsOf(namespace);
  return {
    replicas,
    selector: { matchLabels: labels },
    // A new pod becomes ready before an old one stops, so webhooks also answer during an update of the agent.
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    template: {
      metadata: { labels: { ...labels, 'app.kubernetes.io/part-of': 'rollout-group' } },
      spec: {
        serviceAccountName: agentName,
        automountServiceAccountToken: true,
        enableServiceLinks: false,
        // To stop, the agent becomes unready, still serves for a while, and then finishes its open requests.
        terminationGracePeriodSeconds: 60,
        securityContext: { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } } },
            ],
          },
        },
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'topology.kubernetes.io/zone',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: labels },
          },
        ],
        containers: [container(options)],
      },
    },
  };
}

function container({ namespace, image, scope, hasCompat, readsCommits }: InstallOptions): object {
  return {
    name: 'agent',
    image,
    args: [
      `-kubernetes.namespace=${namespace}`,
      `-namespaces=${scope.namespaces.length === 0 ? '*' : scope.namespaces.join(',')}`,
      // Several replicas must not act at once, so the agent acts only with the Lease.
      '-leader-election=required',
      // Approvals count only with this flag. The same installation registers the webhook that verifies requesters.
      '-intents.stamped=true',
      '-log.format=json',
      '-log.level=info',
      '-server-tls.enabled=true',
      `-server-tls.port=${ports.webhook}`,
      `-server-tls.self-signed-cert.secret-name=${certificateSecret}`,
      `-server-tls.self-signed-cert.dns-name=${agentName}.${namespace}.svc`,
      '-server-tls.self-signed-cert.org=rollout-group',
      ...(readsCommits ? ['-commits.read=true'] : []),
      ...(hasCompat ? ['-use-zone-tracker=true', '-prepare-downscale.registered=true'] : []),
    ],
    ports: [
      { name: 'http-metrics', containerPort: ports.metrics, protocol: 'TCP' },
      { name: 'https', containerPort: ports.webhook, protocol: 'TCP' },
    ],
    startupProbe: { ...probe('/healthz'), periodSeconds: 2, failureThreshold: 30 },
    livenessProbe: { ...probe('/healthz'), periodSeconds: 10, failureThreshold: 6 },
    readinessProbe: { ...probe('/ready'), periodSeconds: 5, failureThreshold: 2 },
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  };
}

function probe(path: string): object {
  return { httpGet: { path, port: 'http-metrics', scheme: 'HTTP' }, timeoutSeconds: 3 };
}
