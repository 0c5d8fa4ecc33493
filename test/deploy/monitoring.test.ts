// The alerts of deploy/monitoring, evaluated by promtool over metrics that the agent exposed in virtual time.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { originalMetrics, ownMetrics } from '../../agent/metrics/catalog.ts';
import type { Degradation } from '../../agent/report.ts';
import type { GroupDecision } from '../../engine/decision.ts';
import { expiryOf } from '../../webhook/certificates/certificates.ts';
import { defaultConfig } from '../kit/agent-process.ts';
import { rolled } from '../kit/cluster.ts';
import { pairOf } from '../webhook/certificates/given.ts';
import { describeWithPromtool, expectFiring, promtool, sample, world } from './promtool.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}

const alerts: readonly Rule[] = parse(readFileSync('deploy/monitoring/alerts.yaml', 'utf8')).groups.flatMap(
  (group: { rules: readonly Rule[] }) => group.rules,
);

const rollout = { strategy: 'onDelete', rotateBy: 'delete' } as const;
const noLease = { ...defaultConfig.lease, mode: 'off' } as const;
const intents = 'rolloutintents.rollout-group.dev';
const zone = { zone: 'a', statefulSet: 'ingester-zone-a', replicas: 3, updated: 3, available: 3, isReady: true, revisions: [] };

describeWithPromtool('an alert of a group', () => {
  it('does not fire during a rollout, and after it', async () => {
    const { cluster, scrapes, state } = await world();
    cluster.rollTo('app:2');
    await scrapes.pass(1);
    expectFiring(state(), []);
    await scrapes.pass(40);
    expect(rolled(cluster, 'app:2')).toBe(true);
    expectFiring(state(), []);
  });

  it('RolloutGroupStuck fires if no pod becomes available for half an hour', async () => {
    const { cluster, scrapes, state } = await world();
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await scrapes.pass(30);
    expectFiring(state(), []);
    await scrapes.pass(10);
    expectFiring(state(), ['RolloutGroupStuck']);
  });

  it('RolloutGroupStuck does not fire while a person or a soak blocks the run', async () => {
    const waves = [
      { name: 'first', zones: ['a'], percent: 100, after: { soak: '2h' } },
      { name: 'rest', zones: ['b', 'c'], percent: 100 },
    ];
    const { cluster, scrapes, state } = await world({ spec: { rollout: { ...rollout, waves } } });
    cluster.rollTo('app:2');
    await scrapes.pass(1);
    cluster.api.put(intents, { metadata: { name: 'wait', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    await scrapes.pass(60);
    expectFiring(state(), []);
    cluster.api.remove(intents, 'mimir', 'wait');
    await scrapes.pass(50);
    expect(sample(state(), 'rollout_group_waits', 'rule="soak"')).toBe(1);
    expectFiring(state(), []);
  });

  it('RolloutGroupStuck does not count the time of a pause that ended, although a pod is down then', async () => {
    const { cluster, scrapes, state } = await world();
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await scrapes.pass(10);
    cluster.api.put(intents, { metadata: { name: 'wait', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    await scrapes.pass(60);
    cluster.api.remove(intents, 'mimir', 'wait');
    await scrapes.pass(20);
    expectFiring(state(), []);
    await scrapes.pass(20);
    expectFiring(state(), ['RolloutGroupStuck']);
  });

  it('RolloutGroupStuck fires only after twice the time that pods of the group take', async () => {
    const { cluster, scrapes, state } = await world();
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await scrapes.pass(40);
    const input = state();
    // An earlier leader exposed nine replacements that took more than twenty minutes.
    const bucket = (le: string) =>
      `rollout_group_pod_replacement_duration_seconds_bucket{namespace="mimir",group="ingester",pod="agent-0",le="${le}"}`;
    const slow = ['600', '1200'].map((le) => [bucket(le), ['0', '0']] as const);
    const all = ['2400', '3600', '+Inf'].map((le) => [bucket(le), ['0', '9']] as const);
    expectFiring({ ...input, samples: new Map([...input.samples, ...slow, ...all]) }, []);
    expectFiring(input, ['RolloutGroupStuck']);
  });

  it('RolloutGroupStuck fires if the agent does not decide any more', async () => {
    const { cluster, scrapes, state } = await world({ config: { lease: { ...noLease } } });
    cluster.env.replaceServer(() => ({ lost: 'before-apply' }));
    await scrapes.pass(12);
    expectFiring(state(), []);
    await scrapes.pass(12);
    expectFiring(state(), ['RolloutAgentDegraded', 'RolloutGroupStuck']);
  });

  it('RolloutGroupBlocked fires if only a person can end the block', async () => {
    const { cluster, scrapes, state } = await world({ spec: { rollout: { ...rollout, maxUnavailable: 0 } } });
    cluster.rollTo('app:2');
    await scrapes.pass(14);
    expectFiring(state(), []);
    await scrapes.pass(4);
    expectFiring(state(), ['RolloutGroupBlocked']);
  });

  it('RolloutRunFailed fires at the deadline, until the run is retried or completed', async () => {
    const { cluster, scrapes, state } = await world({ spec: { rollout: { ...rollout, deadlines: { progress: '10m' } } } });
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await scrapes.pass(9);
    expectFiring(state(), []);
    await scrapes.pass(4);
    expectFiring(state(), ['RolloutRunFailed']);
    expect(sample(state(), 'rollout_group_runs_total', 'outcome="failed"')).toBe(1);
    cluster.rollTo('app:1');
    await scrapes.pass(10);
    expectFiring(state(), []);
  });

  it('RolloutRunLate fires at 80% of the deadline', async () => {
    const { cluster, scrapes, state } = await world({ spec: { rollout: { ...rollout, deadlines: { run: '25m' } } } });
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await scrapes.pass(18);
    expectFiring(state(), []);
    await scrapes.pass(4);
    expectFiring(state(), ['RolloutRunLate']);
  });

  it('RolloutRunLate fires after twice the time of earlier runs', async () => {
    const { cluster, scrapes, state } = await world();
    for (const image of ['app:2', 'app:3']) {
      cluster.rollTo(image);
      await scrapes.pass(5);
      expect(rolled(cluster, image)).toBe(true);
    }
    expect(sample(state(), 'rollout_group_run_duration_seconds_count')).toBe(2);
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:4');
    await scrapes.pass(14);
    expectFiring(state(), []);
    await scrapes.pass(3);
    expectFiring(state(), ['RolloutRunLate']);
  });

  it.each<[string, Partial<GroupDecision>, number]>([
    ['RolloutGroupStuck', { waits: [{ rule: 'write-accepted', outcome: 'wait', fact: 'the API server rejected the write' }] }, 40],
    ['RolloutExceptionUsed', { permitted: [{ rule: 'window', outcome: 'ok', fact: 'f', exception: 'hotfix' }] }, 1],
    ['RolloutPlanNotFollowed', { warnings: [{ rule: 'approved-plan', outcome: 'wait', fact: 'the template differs' }] }, 1],
    ['RolloutManifestNotFollowed', { zones: [{ ...zone, drift: { count: 2, fields: [] } }] }, 40],
  ])('%s fires', async (name, change, minutes) => {
    const { cluster, scrapes, first, state } = await world();
    const report = first.process.reports.at(-1);
    const decide = (overrides: Partial<GroupDecision>): void => {
      if (report?.decision === undefined) throw new Error('the agent has not decided');
      const snapshot = { ...report.snapshot, nowMs: cluster.env.clock.nowMs() };
      first.metrics.listener.turnEnded({ ...report, snapshot, decision: { ...report.decision, ...overrides } });
    };
    decide({});
    // The process would decide every five minutes.
    first.process.crash();
    await scrapes.pass(1);
    expectFiring(state(), []);
    decide(change);
    for (let minute = 0; minute < minutes; minute += 10) {
      await scrapes.pass(10);
      decide(change);
    }
    expectFiring(state(), [name]);
  });
});

describeWithPromtool('an alert of the agent', () => {
  it('RolloutLedgerConflict fires if two agents act without a Lease, not when one follows the other', async () => {
    const { scrapes, first, start, state } = await world();
    start('agent-2');
    await scrapes.pass(2);
    first.process.crash();
    first.end();
    await scrapes.pass(10);
    expect(sample(state(), 'rollout_group_leader', 'pod="agent-2"')).toBe(1);
    expectFiring(state(), []);
    const other = await world({ config: { lease: noLease } });
    other.start('agent-2');
    await other.scrapes.pass(5);
    expectFiring(other.state(), ['RolloutLedgerConflict']);
  });

  it('RolloutLedgerConflict fires if another process writes the ledger again and again', async () => {
    const { cluster, scrapes, state } = await world();
    const { serve } = cluster.api;
    const [kind, name] = ['configmaps', 'rollout-group-ingester'] as const;
    // Another process writes the ledger between the read and the write of each turn.
    cluster.env.replaceServer((request) => {
      const data = cluster.api.get(kind, 'mimir', name)?.['data'];
      if (request.method !== 'GET' && request.pathname.endsWith(name) && data !== undefined) {
        const { claims, ...rest } = JSON.parse((data as { readonly ledger: string }).ledger);
        const claim = { verb: 'scaleDown', zone: 'a', uid: `u${claims.length}`, atMs: Math.floor(cluster.env.clock.nowMs()) };
        cluster.api.change(kind, 'mimir', name, { data: { ledger: JSON.stringify({ ...rest, claims: [...claims, claim] }) } });
      }
      return serve(request);
    });
    cluster.rollTo('app:2');
    await scrapes.pass(6);
    expect(sample(state(), 'rollout_group_ledger_conflicts_total')).toBeGreaterThan(20);
    expectFiring(state(), ['RolloutLedgerConflict']);
    cluster.env.replaceServer(serve);
    await scrapes.pass(15);
    expectFiring(state(), []);
  });

  it('RolloutAgentWithoutLeader fires if no process holds the Lease, and without a process', async () => {
    const { cluster, scrapes, first, state } = await world();
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) => (request.pathname.includes('/leases') ? { lost: 'before-apply' } : serve(request)));
    await scrapes.pass(4);
    expectFiring(state(), []);
    await scrapes.pass(4);
    expectFiring(state(), ['RolloutAgentWithoutLeader']);
    cluster.env.replaceServer(serve);
    await scrapes.pass(2);
    expectFiring(state(), []);
    first.end();
    await scrapes.pass(12);
    expectFiring(state(), ['RolloutAgentWithoutLeader']);
  });

  it.each<[string, Degradation, number]>([
    ['RolloutAgentDegraded', { id: 'ledger', reason: 'forbidden', message: 'm' }, 16],
    ['RolloutProtectionBypassed', { id: 'webhook/configurations', reason: 'invalid', message: 'm' }, 6],
    ['RolloutProtectionBypassed', { id: 'webhook/namespaces/mimir', reason: 'missing', message: 'm' }, 6],
  ])('%s fires for %o', async (name, degradation, minutes) => {
    const { scrapes, first, state } = await world();
    // The kind is not installed.
    first.metrics.listener.degraded?.([{ id: 'watch/rolloutruns', reason: 'missing', message: 'm' }]);
    await scrapes.pass(20);
    expectFiring(state(), []);
    first.metrics.listener.degraded?.([degradation]);
    await scrapes.pass(minutes + 1);
    expectFiring(state(), [name]);
  });
});

describeWithPromtool('an alert of the webhooks', () => {
  const decided = { route: 'admission_enforce', durationMs: 4 };

  it.each([
    ['RolloutWebhookUnavailable', { ...decided, allowed: false, failure: 'deadline' }],
    ['RolloutWebhookFailsOpen', { ...decided, allowed: true, failure: 'overload' }],
    ['RolloutWebhookFailsOpen', { ...decided, allowed: true, failure: 'unread' }],
  ])('%s fires if the agent answers without a decision', async (name, review) => {
    const { scrapes, first, state } = await world();
    const { webhook } = first.metrics;
    for (let minute = 0; minute < 5; minute += 1) {
      webhook.decided({ ...decided, allowed: false });
      webhook.decided({ ...review, failure: 'client-gone' });
      await scrapes.pass(1);
    }
    expectFiring(state(), []);
    for (let minute = 0; minute < 5; minute += 1) {
      webhook.decided(review);
      await scrapes.pass(1);
    }
    expectFiring(state(), [name]);
  });

  it.each([
    ['statefulset-scale.enforce.rollout-group.dev', ['RolloutWebhookFailsOpen'], ['RolloutWebhookUnavailable']],
    ['prepare-downscale-mimir.grafana.com', ['RolloutWebhookFailsOpen'], ['RolloutWebhookUnavailable']],
    // The API server never denies a request because of this webhook.
    ['statefulset-scale-of-others.enforce.rollout-group.dev', [], ['RolloutWebhookUnavailable']],
    ['validate.example.com', [], []],
  ])('fires if the API server does not reach %s', async (name, ifOpen, ifDenied) => {
    const { scrapes, state } = await world();
    await scrapes.pass(30);
    const { minutes } = state();
    const samples = new Map<string, readonly string[]>(state().samples);
    const target = 'job="apiserver",instance="1"';
    const labels = `${target},name="${name}",type="validating"`;
    samples.set(
      `up{${target}}`,
      Array.from({ length: minutes + 1 }, () => '1'),
    );
    const failOpen = `apiserver_admission_webhook_fail_open_count{${labels}}`;
    const rejected = `apiserver_admission_webhook_rejection_count{${labels},error_type="calling_webhook_error",operation="UPDATE",rejection_code="0"}`;
    const denied = `apiserver_admission_webhook_rejection_count{${labels},error_type="no_error",operation="UPDATE",rejection_code="403"}`;
    const late = (values: readonly string[]) => [...Array.from({ length: minutes - 5 }, () => '_'), ...values];
    const first = new Map([...samples, [failOpen, late(['1', '1', '1', '1', '1', '1'])]]);
    expectFiring({ samples: first, minutes }, ifOpen);
    expectFiring({ samples: new Map([...samples, [failOpen, Array.from({ length: minutes + 1 }, () => '3')]]), minutes }, []);
    // Prometheus has just begun to scrape the API server.
    expectFiring({ samples: new Map([...first, [`up{${target}}`, late(['1', '1', '1', '1', '1', '1'])]]), minutes }, []);
    const growing = new Map([...samples, [denied, late(['1', '2', '3', '4', '5', '6'])]]);
    expectFiring({ samples: growing, minutes }, []);
    growing.set(rejected, late(['1', '2', '3', '4', '5', '6']));
    expectFiring({ samples: growing, minutes }, ifDenied);
  });

  it('RolloutWebhookFailsOpen fires if the failure policy of a webhook of --compat is Ignore', async () => {
    const { scrapes, first, state } = await world();
    const policies = { webhook: 'prepare-downscale-mimir.grafana.com', type: 'MutatingWebhook' };
    const source = (ignored: number) => ({
      expiry: () => undefined,
      failurePolicies: () => [
        { ...policies, policy: 'Fail', value: 1 - ignored },
        { ...policies, policy: 'Ignore', value: ignored },
      ],
    });
    first.metrics.webhook.setCertificateSource(source(0));
    await scrapes.pass(2);
    expectFiring(state(), []);
    first.metrics.webhook.setCertificateSource(source(1));
    await scrapes.pass(2);
    expectFiring(state(), ['RolloutWebhookFailsOpen']);
  });

  it.each([
    [365, 15, false],
    [365, 13, true],
    [14, 5, false],
    [14, 3, true],
  ])('RolloutCertificateExpires: of %d days, %d of them left: %s', async (lifeDays, leftDays, fires) => {
    const { cluster, scrapes, first, state } = await world();
    const dayMs = 86_400_000;
    const nowMs = cluster.env.clock.nowMs();
    const pair = pairOf({ nowMs: nowMs - (lifeDays - leftDays) * dayMs, lifetimeMs: lifeDays * dayMs });
    const expiry = () => expiryOf({ current: () => pair }, cluster.env.clock.nowMs());
    first.metrics.webhook.setCertificateSource({ expiry, failurePolicies: () => [] });
    await scrapes.pass(12);
    expectFiring(state(), fires ? ['RolloutCertificateExpires'] : []);
  });
});

describeWithPromtool('docs/runbooks.md', () => {
  it('shows what promtool prints', () => {
    const { stdout } = spawnSync(promtool ?? 'promtool', ['check', 'rules', 'deploy/monitoring/alerts.yaml'], { encoding: 'utf8' });
    expect(readFileSync('docs/runbooks.md', 'utf8')).toContain(`alerts.yaml\n${stdout.trim()}\n`);
  });
});

describe('the alerts', () => {
  const known = new Map<string, readonly string[]>([
    ...[...Object.values(ownMetrics), ...Object.values(originalMetrics)].map(({ name, labels }) => [name, labels] as const),
    ['up', ['job', 'instance']],
    ['apiserver_admission_webhook_fail_open_count', ['name', 'type']],
    ['apiserver_admission_webhook_rejection_count', ['name', 'type', 'operation', 'error_type', 'rejection_code']],
  ]);

  it.each(alerts.map(({ alert, ...rule }) => [alert, rule] as const))('%s reads existing metrics and has a runbook', (alert, rule) => {
    const names = [...rule.expr.matchAll(/\b(?:rollout_group|rollout_operator|kube|apiserver)_\w+/g)].map(([name]) => name);
    expect(names.length).toBeGreaterThan(0);
    const isKnown = (name: string): boolean => known.has(name) || known.has(name.replace(/_(?:bucket|sum|count)$/, ''));
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
    expect(rule.labels.severity).toMatch(/^(?:critical|warning)$/);
    expect(rule.annotations.runbook_url).toMatch(new RegExp(`/docs/runbooks.md#${alert.toLowerCase()}$`));
  });

  it('have the sections of docs/runbooks.md, in their order', () => {
    const text = readFileSync('docs/runbooks.md', 'utf8');
    expect([...text.matchAll(/^## (Rollout\w+)$/gm)].map(([, name]) => name)).toEqual(alerts.map(({ alert }) => alert));
  });
});
