// Sets the metrics of the catalog from events of the agent and of the webhooks, and writes them as text.

import { Registry } from 'prom-client';
import type { HttpServerObserver } from '../../cluster/connection/http-server.ts';
import type { Answered } from '../../cluster/connection/transport.ts';
import type { Clock } from '../../cluster/env.ts';
import type { TurnListener } from '../report.ts';
import { originalMetrics, ownMetrics } from './catalog.ts';
import { GroupMetrics, OriginalGroupMetrics } from './groups.ts';
import { BoundedLabel, instrumentsOf, kubernetesPathLabel } from './instruments.ts';
import { RunMetrics } from './runs.ts';

/** The values of the label `writer`: the writers of published decisions, Events and RolloutRuns. */
type Writer = 'decision' | 'event' | 'run';

interface DecidedReview {
  readonly route: string;
  readonly allowed: boolean;
  readonly failure?: string;
  readonly durationMs: number;
}

/** The source of the certificate's expiry and of the failure policies in the webhook configurations. */
interface CertificateSource {
  readonly expiry: () => { readonly notAfterMs: number; readonly warnFromMs: number } | undefined;
  readonly failurePolicies: () => readonly {
    readonly type: string;
    readonly webhook: string;
    readonly policy: string;
    readonly value: number;
  }[];
}

/** The most values of a label whose values come from outside, such as paths. Further values are counted as `other`. */
const labelValueLimit = 200;

/** The metrics of the process. They start at zero when the process starts. */
export class Metrics {
  readonly #clock: Clock;
  readonly #registry = new Registry();
  readonly #original = instrumentsOf(this.#registry, originalMetrics);
  readonly #own = instrumentsOf(this.#registry, ownMetrics);
  readonly #groups = new GroupMetrics();
  readonly #runs = new RunMetrics(this.#own);
  readonly #originalGroups = new OriginalGroupMetrics(this.#original);
  readonly #kubernetesPaths = new BoundedLabel(labelValueLimit);
  readonly #podPaths = new BoundedLabel(labelValueLimit);
  readonly #apiGroups = new BoundedLabel(labelValueLimit);
  readonly #clusters = new BoundedLabel(labelValueLimit);
  readonly #parts = new BoundedLabel(labelValueLimit);
  readonly #channels = new BoundedLabel(labelValueLimit);
  #isFollower = false;
  readonly listener: TurnListener = {
    turnEnded: (report) => {
      const now = { wallMs: this.#clock.nowMs(), monotonicMs: this.#clock.monotonicMs() };
      for (const { reason, code } of report.decision?.budgetAnswers ?? [])
        this.#original.evictionRequests.inc({ reason, status: `${code}` });
      if (!this.#isFollower) {
        if (this.#groups.turnEnded(report, now)) this.#runs.turnEnded(report);
        this.#originalGroups.turnEnded(report, now.wallMs);
      }
      this.#own.turnDuration.observe(report.durationMs / 1000);
      if (report.reactionMs !== undefined) this.#own.reaction.observe(report.reactionMs / 1000);
    },
    groupsChanged: (all, findings) => {
      for (const one of [this.#groups, this.#runs, this.#originalGroups]) one.setGroups(all);
      this.#own.findings.reset();
      for (const { code, severity } of findings) this.#own.findings.inc({ code, severity });
    },
    degraded: (degradations) => {
      this.#own.degraded.reset();
      for (const { id, reason } of degradations) this.#own.degraded.set({ part: this.#parts.of(id), reason }, 1);
    },
    leadershipChanged: ({ isLeader, epoch }) => {
      this.#own.leader.set(isLeader ? 1 : 0);
      this.#isFollower = !isLeader;
      // Series of the last turn would grow old, for example the time of the last success.
      if (!isLeader) for (const one of [this.#groups, this.#runs, this.#originalGroups]) one.forgetTurns();
      if (isLeader && epoch !== undefined) this.#own.leaderEpoch.set(epoch);
    },
  };
  readonly httpServer: HttpServerObserver = {
    inflight: (method, route, change) => this.#original.inflightRequests.inc({ method, route }, change),
    answered: ({ method, route, status, durationMs, requestBytes, responseBytes }) => {
      this.#original.requestDuration.observe({ method, route, status_code: `${status}`, ws: 'false' }, durationMs / 1000);
      this.#original.requestBytes.observe({ method, route }, requestBytes);
      this.#original.responseBytes.observe({ method, route }, responseBytes);
    },
    wrongCluster: ({ route, wanted, given }) =>
      this.#original.invalidClusterServer.inc({
        protocol: 'http',
        method: route,
        cluster_validation_label: wanted,
        request_cluster_validation_label: this.#clusters.of(given),
      }),
  };
  readonly zoneBudgetObserved = (result: string): void => this.#original.zoneBudgetsObserved.inc({ result });
  readonly readyTimeWritten = (result: string): void => this.#own.readyTimeWrites.inc({ result });
  #certificateSource: CertificateSource | undefined;
  /** The events that the metrics of the webhooks count. */
  readonly webhook = {
    decided: ({ route, allowed, failure = '', durationMs }: DecidedReview): void => {
      this.#own.admissions.inc({ route, allowed: `${allowed}`, failure });
      this.#own.admissionDuration.observe({ route }, durationMs / 1000);
    },
    refusedConnection: (why: string): void => this.#own.refusedConnections.inc({ why }),
    evictionBegan: (): void => this.#original.evictionsInflight.inc(),
    evictionEnded: ({ reason, code }: { readonly reason: string; readonly code: number }): void => {
      this.#original.evictionsInflight.dec();
      this.#original.evictionRequests.inc({ reason, status: `${code}` });
    },
    setCertificateSource: (source: CertificateSource): void => {
      this.#certificateSource = source;
    },
  };

  constructor(clock: Clock, version: string) {
    this.#clock = clock;
    this.#own.buildInfo.set({ version }, 1);
    this.#own.leader.set(0);
  }

  /** Returns the metrics in the Prometheus text format. */
  async text(): Promise<{ readonly contentType: string; readonly text: string }> {
    this.#showCertificates();
    const nowMs = this.#clock.nowMs();
    this.#groups.show(this.#own, { wallMs: nowMs, monotonicMs: this.#clock.monotonicMs() });
    this.#runs.show(nowMs);
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  /** Observes the duration of one request to the API server. `path` may have a query. */
  kubernetesAnswered({ method, path, status, durationMs }: Answered): void {
    const labels = { path: this.#kubernetesPaths.of(kubernetesPathLabel(path)), method, status_code: `${status}` };
    this.#original.kubernetesDuration.observe(labels, durationMs / 1000);
  }

  /** Counts one request that was not sent to the API server, because the wait for the rate limit would exceed its timeout. */
  kubernetesThrottled(apiGroup: string): void {
    this.#original.kubernetesThrottled.inc({ api_group: this.#apiGroups.of(apiGroup) });
  }

  /** Observes the duration of one request to a pod. `path` is the path of the URL. */
  podAnswered({ method, path, status, durationMs }: Answered): void {
    this.#original.podDuration.observe({ path: this.#podPaths.of(path), method, status_code: `${status}` }, durationMs / 1000);
  }

  /** Counts one request that a pod rejected with 511, because the pod expects another X-Cluster value. `route` is from the pod's answer. */
  wrongClusterAnswered({ route, cluster }: { readonly route: string; readonly cluster: string }): void {
    this.#original.invalidClusterClient.inc({ method: this.#podPaths.of(route), protocol: 'http', request_cluster: cluster });
  }

  /** Counts one write by its result. A `dropped` write is not retried. */
  wrote(writer: Writer, result: 'done' | 'failed' | 'dropped'): void {
    this.#own.writes.inc({ writer, result });
  }

  /** Counts one notification. `channel` is the name in the definition of the group. */
  notified(channel: string, result: string): void {
    this.#own.notifications.inc({ channel: this.#channels.of(channel), result });
  }

  #showCertificates(): void {
    const expiry = this.#certificateSource?.expiry();
    const { certificateExpiry, certificateWarning } = this.#own;
    if (expiry === undefined) {
      // A gauge without labels would show 0: a certificate that expired in 1970.
      for (const one of [certificateExpiry, certificateWarning]) one.remove();
    } else {
      certificateExpiry.set(expiry.notAfterMs / 1000);
      certificateWarning.set(expiry.warnFromMs / 1000);
    }
    this.#original.failurePolicy.reset();
    for (const { value, ...labels } of this.#certificateSource?.failurePolicies() ?? []) this.#original.failurePolicy.set(labels, value);
  }
}
