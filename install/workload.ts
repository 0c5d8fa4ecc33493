// Defines the workload of an installation: Deployment, Service, disruption budget, network policy, and the objects that the agent fills in.
import { agentName } from '../policies/objects/agent-deployment.ts';
import { defined } from '../policies/values/defined.ts';
import { certificateSecret, type InstallObject, type InstallOptions, installObject, issuedSecret, podLabelsOf } from './object.ts';

const ports = { metrics: 8001, webhook: 8443 } as const;

/** The folder with the files of a certificate that the agent does not create. */
const certificateFolder = '/certificate';

/** Returns the namespace of the agent, which denies pods outside the restricted Pod Security standard. */
export function agentNamespaceObject({ namespace }: InstallOptions): InstallObject {
  const object = installObject(['v1', 'Namespace'], { name: namespace }, namespace, {});
  const labels = { ...object.metadata.labels, 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { ...object, metadata: { ...object.metadata, labels } };
}

/**
 * Returns the objects that the agent, or cert-manager, fills in: the Secret of the certificate and the Lease. The agent would also create
 * them. As a part of the installation they are deleted with it, after the rights with which the agent could create them again.
 */
export function storesOf({ namespace, certificate }: InstallOptions): readonly InstallObject[] {
  return [
    ...certificateOf(namespace, certificate),
    installObject(['coordination.k8s.io/v1', 'Lease'], { name: agentName, namespace }, namespace, {}),
  ];
}

function certificateOf(namespace: string, certificate: InstallOptions['certificate']): readonly InstallObject[] {
  if (certificate === undefined) return [installObject(['v1', 'Secret'], { name: certificateSecret, namespace }, namespace, {})];
  if (certificate.kind === 'secret') return [];
  return [
    installObject(['cert-manager.io/v1', 'Certificate'], { name: agentName, namespace }, namespace, {
      spec: {
        secretName: issuedSecret,
        dnsNames: [dnsName(namespace)],
        issuerRef: { group: 'cert-manager.io', kind: certificate.issuerKind, name: certificate.issuer },
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
        usages: ['digital signature', 'server auth'],
      },
    }),
  ];
}

function dnsName(namespace: string): string {
  return `${agentName}.${namespace}.svc`;
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
    ...(options.hasServiceMonitor === true
      ? [
          installObject(['monitoring.coreos.com/v1', 'ServiceMonitor'], target, namespace, {
            // The label `namespace` of a metric is the namespace of the group, not of the agent.
            spec: { selector, endpoints: [{ port: 'http-metrics', honorLabels: true }] },
          }),
        ]
      : []),
  ];
}

function deployment(options: InstallOptions): object {
  const { namespace, replicas, certificate } = options;
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
        ...defined({ priorityClassName: options.priorityClass }),
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
        ...(certificate === undefined
          ? {}
          : {
              volumes: [{ name: 'certificate', secret: { secretName: certificate.kind === 'secret' ? certificate.name : issuedSecret } }],
            }),
      },
    },
  };
}

function container({ namespace, image, scope, hasCompat, readsCommits, certificate }: InstallOptions): object {
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
      ...(certificate === undefined
        ? [
            `-server-tls.self-signed-cert.secret-name=${certificateSecret}`,
            `-server-tls.self-signed-cert.dns-name=${dnsName(namespace)}`,
            '-server-tls.self-signed-cert.org=rollout-group',
          ]
        : [
            '-server-tls.self-signed-cert.enabled=false',
            `-server-tls.cert-file=${certificateFolder}/tls.crt`,
            `-server-tls.key-file=${certificateFolder}/tls.key`,
          ]),
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
    ...(certificate === undefined ? {} : { volumeMounts: [{ name: 'certificate', mountPath: certificateFolder, readOnly: true }] }),
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  };
}

function probe(path: string): object {
  return { httpGet: { path, port: 'http-metrics', scheme: 'HTTP' }, timeoutSeconds: 3 };
}
