// What grafana/rollout-operator would write, state by state, asked of the agent on a real API server.
import { readFileSync } from 'node:fs';
import { beforeAll, expect, it, vi } from 'vitest';
import { Agent } from '../../../agent/agent.ts';
import type { PodHttp } from '../../../agent/env.ts';
import { Metrics } from '../../../agent/metrics/metrics.ts';
import { createLog } from '../../../agent/process/log.ts';
import type { TurnListener, TurnReport } from '../../../agent/report.ts';
import { connectionProcess, processEnv } from '../../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../../cluster/connection/transport.ts';
import { loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { scaledConfig } from '../../control-plane/agent-in-process.ts';
import type { KubernetesObject } from '../../control-plane/client.ts';
import { installReplicaTemplates } from '../../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { budgets } from './budgets.ts';
import { delayedDownscale } from './delayed.ts';
import { writesOf } from './observed.ts';
import { rolling } from './rolling.ts';
import { scaling } from './scaling.ts';
import type { PodAnswer, Scenario } from './scenario.ts';
import { changeTemplates, putState, zoneBudgets } from './state.ts';

// Each state has a namespace and an agent of its own, and most of its time it waits.
vi.setConfig({ maxConcurrency: 2 });

const scenarios: readonly Scenario[] = [...rolling, ...budgets, ...scaling, ...delayedDownscale];

describeOnControlPlane(
  'adopted groups, state by state',
  (controlPlane) => {
    beforeAll(async () => {
      const { client, identities } = controlPlane();
      const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      await installReplicaTemplates(client);
      await client.create(definitions, zoneBudgets);
      await client.until<Definition>(definitions, 'the kinds served', (seen) => seen.length > 0 && seen.every(isEstablished));
      const rights = '/apis/rbac.authorization.k8s.io/v1';
      await client.create(`${rights}/clusterroles`, { metadata: { name: 'test:agent' }, rules });
      await client.create(`${rights}/clusterrolebindings`, {
        metadata: { name: 'test:agent' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'test:agent' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: identities.agent.user }],
      });
    });

    it.concurrent.for(scenarios.map((scenario, index) => ({ index, ...scenario })))(
      '$name',
      async ({ index, ...scenario }, { onTestFinished }) => {
        const { client, identities, url, auditLog } = controlPlane();
        const namespace = `state-${index}`;
        await putState(client, namespace, scenario);
        const turns = new Turns();
        const pods = new ScriptedPods(scenario.answers ?? []);
        const agent = await start({ url, kubeconfig: identities.agent.kubeconfig, namespace, pods, turns });
        onTestFinished(() => agent.stop());
        const seen = async () => writesOf(await auditLog(), namespace, identities.agent.user);
        const wanted = { writes: [...scenario.writes], calls: scenario.calls === undefined ? undefined : [...scenario.calls].sort() };
        const found = async () => ({ writes: await seen(), calls: scenario.calls === undefined ? undefined : pods.calls() });
        // A write that is still to come is waited for; one that should not be there is not waited away.
        await turns.quiet();
        if (scenario.later !== undefined) {
          const { after, templates } = scenario.later;
          await turns.until(() => after.every((call) => pods.calls().includes(call)), `the calls ${after.join(', ')}`);
          await changeTemplates(client, namespace, templates);
        }
        let last = await found();
        for (const endsAt = Date.now() + patienceMs; JSON.stringify(last) !== JSON.stringify(wanted) && Date.now() < endsAt; ) {
          await turns.next(patienceMs);
          last = await found();
        }
        expect(last, agent.log()).toEqual(wanted);
        const isFailure = scenario.isFailure === true;
        expect(await agent.passes(), agent.log()).toEqual({ areAllFailed: isFailure, isAnyFailed: isFailure, hasSucceeded: !isFailure });
        const held = turns.all.some(({ decision }) => decision?.waits.some(({ outcome }) => outcome === 'no' || outcome === 'unknown'));
        if (isFailure) expect(held, 'a rule says what a person must change, or what could not be read').toBe(true);
      },
    );

    it('lists every difference in the migration guide', () => {
      const guide = readFileSync('docs/migrate-from-rollout-operator.md', 'utf8');
      const headings = new Set(guide.split('\n').flatMap((line) => (line.startsWith('### ') ? [line.slice(4)] : [])));
      expect(scenarios.flatMap(({ difference }) => (difference === undefined || headings.has(difference) ? [] : [difference]))).toEqual([]);
    });
  },
  { isStill: true },
);

/** For writes of a turn that has not come yet. Only a scenario that fails waits as long as this. */
const patienceMs = 4000;

/** What the original may do, and what the agent keeps for itself beside it. */
const rules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete', 'patch'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch'] },
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['apps'], resources: ['statefulsets/status'], verbs: ['update', 'patch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['*'], verbs: ['get', 'list', 'watch', 'patch'] },
];

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

function isEstablished({ status }: Definition): boolean {
  return status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') ?? false;
}

/** The turns of one agent, and a wait for one in which nothing was left to do. */
class Turns implements TurnListener {
  readonly all: TurnReport[] = [];
  #waiting: (() => void)[] = [];

  turnEnded(report: TurnReport): void {
    this.all.push(report);
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Resolves with the next turn that ends, or after so long. */
  next(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  quiet(): Promise<void> {
    return this.until(() => this.all.at(-1)?.performed.length === 0, 'a turn in which nothing was done');
  }

  /** Looks after each turn; rejects when it is not so within 15 s. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    for (const endsAt = Date.now() + 15_000; !isSo(); ) {
      if (Date.now() > endsAt) throw new Error(`never came: ${what}`);
      await this.next(1000);
    }
  }
}

/** Answers in the place of every pod. */
class ScriptedPods implements PodHttp {
  readonly #answers: readonly PodAnswer[];
  readonly #calls = new Set<string>();

  constructor(answers: readonly PodAnswer[]) {
    this.#answers = answers;
  }

  async call({ method, url }: Parameters<PodHttp['call']>[0]): ReturnType<PodHttp['call']> {
    const { username, hostname, port, pathname, search } = new URL(url);
    const [pod = ''] = hostname.split('.');
    this.#calls.add(`${method} ${username}${pod}${port === '' ? '' : `:${port}`} ${pathname}${search}`);
    const answer = this.#answers.find((candidate) => candidate.method === method && candidate.pods.test(pod));
    if (answer === undefined) return { status: 200, body: '' };
    const { status, preparedSecondsAgo, body } = answer;
    if (body !== undefined || preparedSecondsAgo === undefined) return { status, body: body ?? '' };
    return { status, body: JSON.stringify({ timestamp: Math.floor(Date.now() / 1000) - preparedSecondsAgo }) };
  }

  /** Each call once: how often a pod is asked again is not what the scenarios are about. */
  calls(): readonly string[] {
    return [...this.#calls].sort();
  }
}

interface Starting {
  readonly url: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly pods: PodHttp;
  readonly turns: Turns;
}

interface Started {
  readonly stop: () => Promise<void>;
  readonly log: () => string;
  /** What /metrics says of the reconciles so far. */
  readonly passes: () => Promise<{ readonly areAllFailed: boolean; readonly isAnyFailed: boolean; readonly hasSucceeded: boolean }>;
}

async function start({ url, kubeconfig, namespace, pods, turns }: Starting): Promise<Started> {
  const connection = await loadConnection({ kubeconfig, server: url }, { ...connectionProcess(), env: {} });
  const http = new KubernetesTransport(connection, { userAgent: 'rollout-group-agent/test' });
  const env = processEnv(http);
  let said = '';
  const log = createLog({
    format: 'logfmt',
    level: 'info',
    clock: env.clock,
    write: (line) => {
      said += line;
    },
  });
  const config = scaledConfig(namespace, `agent-of-${namespace}`);
  const metrics = new Metrics(env.clock, 'test');
  const listeners = [metrics.listener, turns];
  const agent: Agent = new Agent({ ...env, pods, log }, { ...config, lease: { ...config.lease, mode: 'off' } }, listeners);
  return {
    stop: async () => {
      await agent.stop();
      http.close();
    },
    log: () => said,
    passes: async () => {
      const { text } = await metrics.text();
      const all = sampleOf(text, 'rollout_operator_group_reconciles_total');
      const failed = sampleOf(text, 'rollout_operator_group_reconciles_failed_total');
      const success = sampleOf(text, 'rollout_operator_last_successful_group_reconcile_timestamp_seconds');
      return { areAllFailed: failed === all, isAnyFailed: failed > 0, hasSucceeded: success > 0 };
    },
  };
}

/** The value for the group `ingester`. */
function sampleOf(text: string, name: string): number {
  const value = new RegExp(`^${name}\\{rollout_group="ingester"\\} (\\S+)$`, 'm').exec(text)?.[1];
  if (value === undefined) throw new Error(`/metrics has no ${name}`);
  return Number(value);
}
