// Defines the flags and configuration files of each component.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CertificateAuthority, newKeys } from './certificates.ts';
import type { Identity, IdentityName } from './identities.ts';
import type { Command } from './processes.ts';

/** Relative to the working directory of all components, because the path of a socket is limited to about 100 bytes. */
const etcdSocket = 'etcd.sock';
export const servicesSocket = 'services.sock';

/** The controllers that most suites need. Fewer controllers start faster and send fewer requests. A test may request more. */
const controllers = [
  'clusterrole-aggregation-controller',
  'deployment-controller',
  'disruption-controller',
  'garbage-collector-controller',
  'horizontal-pod-autoscaler-controller',
  'namespace-controller',
  'persistentvolume-binder-controller',
  'persistentvolumeclaim-protection-controller',
  'pod-garbage-collector-controller',
  'replicaset-controller',
  'serviceaccount-controller',
  'statefulset-controller',
] as const;

/** Logs the metadata of reads, and the bodies of writes. A test can reconstruct the history from the bodies. */
const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'Metadata', verbs: ['get', 'list', 'watch'] },
    // Bodies with tokens are not logged.
    { level: 'Metadata', resources: [{ group: '', resources: ['secrets', 'serviceaccounts/token'] }] },
    { level: 'RequestResponse' },
  ],
};

export interface Layout {
  readonly folder: string;
  readonly binaries: string;
  readonly port: number;
  readonly authority: CertificateAuthority;
  readonly identities: Readonly<Record<IdentityName, Identity>>;
  /** The absolute path of the stages of kwok. The default is test/control-plane/stages.yaml. */
  readonly stages?: string;
  /** True if the API server connects to Services through the HTTP proxy at `servicesSocket`. */
  readonly hasServices: boolean;
  /** Feature gates of the API server and of the controllers, such as `A=true,B=false`. */
  readonly featureGates?: string;
}

const egress = {
  apiVersion: 'apiserver.k8s.io/v1beta1',
  kind: 'EgressSelectorConfiguration',
  egressSelections: [{ name: 'cluster', connection: { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName: servicesSocket } } } }],
};

export function auditLogOf(folder: string): string {
  return join(folder, 'logs', 'audit.jsonl');
}

/** Returns the command of etcd. It listens on sockets, so it needs no free port. It does not sync writes: no data outlives the test. */
export function etcd({ binaries }: Layout): Command {
  const args = [
    '--data-dir=etcd',
    `--listen-client-urls=unix://${etcdSocket}`,
    '--listen-peer-urls=unix://etcd-peer.sock',
    // etcd requires an address here, although no client uses it.
    '--advertise-client-urls=http://127.0.0.1:2379',
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
  return { name: 'etcd', executable: join(binaries, 'etcd'), args };
}

export function apiServer({ folder, binaries, port, authority, hasServices, featureGates }: Layout): Command {
  const server = authority.issueForServer(['kubernetes.default.svc']);
  const tokens = newKeys();
  write(folder, 'ca.crt', authority.certificate);
  write(folder, 'server.crt', server.certificate);
  write(folder, 'server.key', server.privateKey);
  write(folder, 'tokens.key', tokens.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  write(folder, 'tokens.pub', tokens.publicKey.export({ type: 'spki', format: 'pem' }).toString());
  write(folder, 'audit-policy.json', JSON.stringify(auditPolicy));
  write(folder, 'egress.json', JSON.stringify(egress));
  const args = [
    `--etcd-servers=unix://${etcdSocket}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    '--client-ca-file=ca.crt',
    '--tls-cert-file=server.crt',
    '--tls-private-key-file=server.key',
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-account-key-file=tokens.pub',
    '--service-account-signing-key-file=tokens.key',
    '--authorization-mode=RBAC',
    // This admission plugin sets the taint not-ready on new nodes. Only the node lifecycle controller, which does not run here, removes it.
    '--disable-admission-plugins=TaintNodesByCondition',
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--profiling=false',
    '--audit-policy-file=audit-policy.json',
    `--audit-log-path=${auditLogOf(folder)}`,
    // A test reads one file, so the log is never rotated.
    '--audit-log-maxsize=1000000',
    ...(hasServices ? ['--egress-selector-config-file=egress.json'] : []),
    ...gatesOf(featureGates),
  ];
  return { name: 'kube-apiserver', executable: join(binaries, 'kube-apiserver'), args };
}

function gatesOf(featureGates: string | undefined): readonly string[] {
  return featureGates === undefined ? [] : [`--feature-gates=${featureGates}`];
}

/** Returns the command of the controllers, without an HTTPS port. Each uses its service account, so webhooks see which one asks. */
export function controllerManager(
  { binaries, identities, featureGates }: Layout,
  {
    more = [],
    only = controllers,
    flags = [],
  }: { readonly more?: readonly string[]; readonly only?: readonly string[] | undefined; readonly flags?: readonly string[] },
): Command {
  const args = [
    `--kubeconfig=${identities.controllerManager.kubeconfig}`,
    '--secure-port=0',
    '--leader-elect=false',
    `--controllers=${[...only, ...more].join(',')}`,
    '--use-service-account-credentials=true',
    '--service-account-private-key-file=tokens.key',
    '--root-ca-file=ca.crt',
    '--horizontal-pod-autoscaler-sync-period=1s',
    // With hundreds of pods, the default limits (20 requests per second) would dominate the measured times.
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
    ...gatesOf(featureGates),
    ...flags,
  ];
  return { name: 'kube-controller-manager', executable: join(binaries, 'kube-controller-manager'), args };
}

export function scheduler({ folder, binaries, identities }: Layout): Command {
  const configuration = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig: identities.scheduler.kubeconfig, qps: 500, burst: 1000 },
  };
  write(folder, 'scheduler.json', JSON.stringify(configuration));
  return { name: 'kube-scheduler', executable: join(binaries, 'kube-scheduler'), args: ['--config=scheduler.json', '--secure-port=0'] };
}

/** Returns the command of kwok, which acts as the kubelet of every node. The executable contains no default stages. */
export function kwok({ binaries, identities, stages = resolve('test/control-plane/stages.yaml') }: Layout): Command {
  const args = [
    `--kubeconfig=${identities.kubelet.kubeconfig}`,
    `--config=${stages}`,
    '--manage-all-nodes=true',
    '--node-lease-duration-seconds=40',
    '--cidr=10.244.0.0/16',
  ];
  return { name: 'kwok', executable: join(binaries, 'kwok'), args };
}

function write(folder: string, name: string, content: string): void {
  writeFileSync(join(folder, name), content, { mode: 0o600 });
}
