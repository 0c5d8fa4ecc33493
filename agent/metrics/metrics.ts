// Fills the metrics of the catalog from turns, requests and publications, in a separate registry.
import { type Gauge, Registry } from 'prom-client';
import type { Clock } from '../../cluster/env.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { HttpServerObserver } from '../process/http-server.ts';
import type { TurnListener } from '../report.ts';
import { originalMetrics, ownMetrics } from './catalog.ts';
import { GroupMetrics } from './groups.ts';
import { OriginalGroupMetrics } from './original.ts';
import { kubernetesPathLabel } from './path.ts';
import { BoundedLabel, instrumentsOf } from './registry.ts';

/** The writers outside the acting path. */
type Writer = 'decision' | 'event' | 'run';

export interface Metrics {
  /** The text exposition. */
  readonly text: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly listener: TurnListener;
  readonly httpServer: HttpServerObserver;
  /** One exchange with the API server; `path` with its query. */
  readonly kubernetesAnswered: (answered: {
    readonly method: string;
    readonly path: string;
    readonly status: number | 'error';
    readonly durationMs: number;
  }) => void;
  readonly kubernetesThrottled: (apiGroup: string) => void;
  /** One exchange with a pod; `path` of its URL. */
  readonly podAnswered: (answered: {
    readonly method: string;
    readonly path: string;
    readonly status: number | 'error';
    readonly durationMs: number;
  }) => void;
  /** A pod answered 511; `route` as it said. */
  readonly wrongClusterAnswered: (answered: { readonly route: string; readonly cluster: string }) => void;
  readonly wrote: (writer: Writer, result: 'done' | 'failed' | 'dropped') => void;
  /** `channel`: as a group names it. */
  readonly notified: (channel: string, result: string) => void;
  readonly webhook: WebhookMetrics;
}

/** Metrics of the webhooks. */
interface WebhookMetrics {
  readonly decided: (review: {
    readonly route: string;
    readonly allowed: boolean;
    readonly failure?: string;
    readonly durationMs: number;
  }) => void;
  readonly refusedConnection: (why: string) => void;
  readonly zoneBudgetObserved: (result: string) => void;
  readonly evictionBegan: () => void;
  readonly evictionEnded: (outcome: { readonly reason: string; readonly code: number }) => void;
  readonly readyTimeWritten: (result: string) => void;
  /** Asked whenever the metrics are read. */
  readonly follow: (certificates: ServedCertificates) => void;
}

/** State of the served certificate and of the webhook configurations. */
interface ServedCertificates {
  readonly expiry: () => { readonly notAfterMs: number } | undefined;
  readonly failurePolicies: () => readonly {
    readonly type: string;
    readonly webhook: string;
    readonly policy: string;
    readonly value: number;
  }[];
}

/** The most different paths, API groups and names of other clusters that are counted apart. */
const foreignLabelLimit = 200;

/** Metrics that begin at zero. */
export function createMetrics({ clock, version }: { readonly clock: Clock; readonly version: string }): Metrics {
  const registry = new Registry();
  const original = instrumentsOf(registry, originalMetrics);
  const own = instrumentsOf(registry, ownMetrics);
  const groups = new GroupMetrics();
  const originalGroups = new OriginalGroupMetrics(original);
  const kubernetesPaths = new BoundedLabel(foreignLabelLimit);
  const podPaths = new BoundedLabel(foreignLabelLimit);
  const apiGroups = new BoundedLabel(foreignLabelLimit);
  const clusters = new BoundedLabel(foreignLabelLimit);
  const parts = new BoundedLabel(foreignLabelLimit);
  const channels = new BoundedLabel(foreignLabelLimit);
  own.buildInfo.set({ version }, 1);
  own.leader.set(0);

  const listener: TurnListener = {
    turnEnded: (report) => {
      const now = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
      groups.turnEnded(report, now);
      originalGroups.turnEnded(report, now.wallMs);
      own.turnDuration.observe(report.durationMs / 1000);
      if (report.reactionMs !== undefined) own.reaction.observe(report.reactionMs / 1000);
    },
    groupsChanged: (all, findings) => {
      groups.setGroups(all);
      originalGroups.setGroups(all);
      showFindings(own.findings, findings);
    },
    degraded: (degradations) => {
      own.degraded.reset();
      for (const { id, reason } of degradations) own.degraded.set({ part: parts.of(id), reason }, 1);
    },
    leadershipChanged: ({ isLeader, epoch }) => {
      own.leader.set(isLeader ? 1 : 0);
      if (isLeader && epoch !== undefined) own.leaderEpoch.set(epoch);
    },
  };

  const httpServer: HttpServerObserver = {
    inflight: (method, route, change) => original.inflightRequests.inc({ method, route }, change),
    answered: ({ method, route, status, durationMs, requestBytes, responseBytes }) => {
      original.requestDuration.observe({ method, route, status_code: `${status}`, ws: 'false' }, durationMs / 1000);
      original.requestBytes.observe({ method, route }, requestBytes);
      original.responseBytes.observe({ method, route }, responseBytes);
    },
    wrongCluster: ({ route, wanted, given }) =>
      original.invalidClusterServer.inc({
        protocol: 'http',
        method: route,
        cluster_validation_label: wanted,
        request_cluster_validation_label: clusters.of(given),
      }),
  };

  let certificates: ServedCertificates | undefined;
  const webhook: WebhookMetrics = {
    decided: ({ route, allowed, failure = '', durationMs }) => {
      own.admissions.inc({ route, allowed: `${allowed}`, failure });
      own.admissionDuration.observe({ route }, durationMs / 1000);
    },
    refusedConnection: (why) => own.refusedConnections.inc({ why }),
    zoneBudgetObserved: (result) => original.zoneBudgetsObserved.inc({ result }),
    evictionBegan: () => original.evictionsInflight.inc(),
    evictionEnded: ({ reason, code }) => {
      original.evictionsInflight.dec();
      original.evictionRequests.inc({ reason, status: `${code}` });
    },
    readyTimeWritten: (result) => own.readyTimeWrites.inc({ result }),
    follow: (served) => {
      certificates = served;
    },
  };
  const showCertificates = (): void => {
    const expiry = certificates?.expiry();
    if (expiry !== undefined) own.certificateExpiry.set(expiry.notAfterMs / 1000);
    original.failurePolicy.reset();
    for (const { value, ...labels } of certificates?.failurePolicies() ?? []) original.failurePolicy.set(labels, value);
  };

  return {
    webhook,
    text: async () => {
      showCertificates();
      groups.show(own, { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() });
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
    listener,
    httpServer,
    kubernetesAnswered: ({ method, path, status, durationMs }) => {
      const labels = { path: kubernetesPaths.of(kubernetesPathLabel(path)), method, status_code: `${status}` };
      original.kubernetesDuration.observe(labels, durationMs / 1000);
    },
    kubernetesThrottled: (apiGroup) => original.kubernetesThrottled.inc({ api_group: apiGroups.of(apiGroup) }),
    podAnswered: ({ method, path, status, durationMs }) => {
      original.podDuration.observe({ path: podPaths.of(path), method, status_code: `${status}` }, durationMs / 1000);
    },
    wrongClusterAnswered: ({ route, cluster }) =>
      original.invalidClusterClient.inc({ method: podPaths.of(route), protocol: 'http', request_cluster: cluster }),
    wrote: (writer, result) => own.writes.inc({ writer, result }),
    notified: (channel, result) => own.notifications.inc({ channel: channels.of(channel), result }),
  };
}

function showFindings(instrument: Gauge, findings: readonly Finding[]): void {
  instrument.reset();
  for (const { code, severity } of findings) instrument.inc({ code, severity });
}
