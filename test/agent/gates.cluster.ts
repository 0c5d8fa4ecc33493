// Gates that ask a real Prometheus, with TLS and a password: whatever it answers but what the gate asks for, no step passes.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TurnReport } from '../../agent/report.ts';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { createPrometheus, findPrometheus, login, type Prometheus } from '../control-plane/prometheus.ts';
import { agentRules } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { type Arena, openArena } from './arena.ts';

const executable = findPrometheus();
const isCi = process.env['CI'] !== undefined;
const name = 'gates on a real Prometheus';
if (executable === undefined && !isCi)
  describe.skip(`SKIPPED: ${name}, for there is no executable prometheus`, () => it('is not run', () => undefined));
else describeOnControlPlane(name, gatesOnPrometheus);

interface Group extends KubernetesObject {
  readonly status?: { readonly phase?: string; readonly reason?: string };
}

const ours = '/apis/rollout-group.dev/v1alpha1/namespaces';
const query = 'gate_value';
const longestMs = 240_000;

function gatesOnPrometheus(controlPlane: () => ControlPlane): void {
  let recorder: HistoryRecorder;
  let prometheus: Prometheus;
  let arena: Arena | undefined;

  beforeAll(async () => {
    if (executable === undefined) throw new Error('there is no executable prometheus: install it, or name it in PROMETHEUS_BINARY');
    const { client, authority } = controlPlane();
    for (const kind of ['RolloutGroup', 'RolloutPolicy', 'MetricSource', 'RolloutRun'] as const)
      await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    recorder = await recordHistory(controlPlane());
    prometheus = await createPrometheus(executable, authority.issueForServer());
  });
  afterEach(async () => {
    await arena?.close();
    arena = undefined;
  });
  afterAll(async () => {
    await prometheus.close();
    await recorder.stop();
  });

  /** Two zones of one pod with a gate between them, and a source with its Secret. */
  async function gated(namespace: string, gate: object, after: object = {}) {
    const { client, authority } = controlPlane();
    const own = [
      { apiGroups: ['rollout-group.dev'], resources: ['metricsources'], verbs: ['get'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['prometheus'] },
    ];
    arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 1, rules: [...agentRules(), ...own] });
    const data = { user: login.user, password: login.password, 'ca.crt': authority.certificate };
    await client.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: 'prometheus' }, stringData: data });
    const key = (of: string) => ({ name: 'prometheus', key: of });
    await client.create(`${ours}/${namespace}/metricsources`, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'MetricSource',
      metadata: { name: 'prod' },
      spec: {
        prometheus: { url: prometheus.url(), basicAuth: { username: key('user'), password: key('password') }, ca: key('ca.crt') },
        usableFrom: { namespaces: [namespace] },
        limits: { minInterval: '1s', timeout: '3s' },
      },
    });
    await client.create(`${ours}/${namespace}/rolloutgroups`, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        replicas: { leader: true },
        gates: [gateOf(query, gate)],
        rollout: {
          strategy: 'onDelete',
          waves: [
            { name: 'first', zones: ['a'], percent: 100, after: { gates: ['errors'], ...after } },
            { name: 'rest', zones: ['b'], percent: 100 },
          ],
        },
      },
    });
    const podsBefore = new Map((await arena.group.pods()).map(({ metadata }) => [metadata.name, metadata.uid]));
    return {
      arena,
      /** Whether no pod of zone b has been replaced. */
      isUntouched: async (): Promise<boolean> => {
        const pods = await client.list<Pod>(`/api/v1/namespaces/${namespace}/pods`);
        const found = pods.find(({ metadata }) => metadata.name === 'ingester-zone-b-0');
        return found !== undefined && isReady(found) && found.metadata.uid === podsBefore.get(found.metadata.name);
      },
      patch: (kind: string, of: string, body: object) => client.patch(`${ours}/${namespace}/${kind}/${of}`, 'merge', body),
      patchSecret: (stringData: object) => client.patch(`/api/v1/namespaces/${namespace}/secrets/prometheus`, 'merge', { stringData }),
    };
  }

  it(
    'block on every unexpected answer, and continue on a valid one',
    async () => {
      await prometheus.start();
      prometheus.expose(['gate_value 7']);
      const { isUntouched, patch, patchSecret, arena: open } = await gated('every-answer', patient);
      const agent = await open.startInside({ name: 'agent' });
      await open.group.setImage('example.com/server:2');
      const asked = (text: string) => patch('rolloutgroups', 'ingester', { spec: { gates: [gateOf(text, patient)] } });
      const { authority } = controlPlane();
      const states: readonly (readonly [what: string, make: () => unknown, fact: string])[] = [
        ['too much', () => undefined, 'errors is 7;'],
        ['NaN', () => prometheus.expose(['gate_value NaN']), 'errors is NaN;'],
        ['+Inf', () => prometheus.expose(['gate_value +Inf']), 'errors is +Inf;'],
        ['-Inf', () => prometheus.expose(['gate_value -Inf']), 'errors is -Inf;'],
        ['empty', () => prometheus.expose([]), 'errors has no data;'],
        ['two series', () => prometheus.expose(['gate_value{pod="a"} 0', 'gate_value{pod="b"} 0']), '2 series'],
        ['a string', () => asked('"0"'), 'answers with a string'],
        ['a range', () => asked('gate_value[1m]'), 'answers with a matrix'],
        ['no query', () => asked('sum('), 'HTTP 400: bad_data'],
        ['a scalar that is too much', () => asked('scalar(vector(3))'), 'errors is 3;'],
        ['a scalar of two series', () => asked('scalar(gate_value)'), 'errors is NaN;'],
        ['another password', () => patchSecret({ password: 'other' }), 'does not accept the credentials (HTTP 401)'],
        ['no certificate', () => patchSecret({ password: login.password, 'ca.crt': 'none' }), 'could not be read'],
        ['silence', () => patchSecret({ 'ca.crt': authority.certificate }).then(() => prometheus.freeze()), 'no answer within'],
        ['nobody there', () => prometheus.kill(), 'refuses connections'],
      ];
      for (const [what, make, fact] of states) {
        const since = agent.turns().length;
        await make();
        // Each reading is followed by a turn; one good reading would have been enough.
        const isSeen = (): boolean =>
          agent
            .turns()
            .slice(since)
            .filter((turn) => factOf(turn).includes(fact)).length >= 2;
        await until(`two readings: ${what}`, isSeen, () => agent.turns().slice(-5).map(factOf).join('\n'));
        expect({ what, isUntouched: await isUntouched() }).toEqual({ what, isUntouched: true });
      }
      await prometheus.start();
      prometheus.expose(['gate_value 0']);
      await asked(query);
      await patch('metricsources', 'prod', { spec: { prometheus: { url: prometheus.url() } } });
      await open.group.untilRolled(longestMs, { isAdopted: false });
      expect(agent.log()).toContain('metric source answers again');
      await prometheus.kill();
    },
    longestMs,
  );

  it('stops the run if it fails during the soak of its wave', async () => {
    await prometheus.start();
    prometheus.expose(['gate_value 0']);
    const { isUntouched, arena: open } = await gated('turns-bad', { consecutive: 2, failureLimit: 1, noData: 'hold' }, { soak: '10m' });
    const agent = await open.start();
    await agent.untilReady();
    await open.group.setImage('example.com/server:2');
    const { client } = controlPlane();
    const groupSays = (what: string, isSo: (status: NonNullable<Group['status']>) => boolean) =>
      client.until<Group>(`${ours}/turns-bad/rolloutgroups`, what, (groups) =>
        groups.every(({ status }) => status !== undefined && isSo(status)),
      );
    await groupSays('a wave that soaks', ({ reason = '' }) => reason === 'SoakNotOver');
    prometheus.expose(['gate_value 1']);
    await groupSays('a run that failed', ({ phase }) => phase === 'Failed');
    expect(await isUntouched()).toBe(true);
    expect(agent.log()).not.toMatch(/password|Z2F0ZXM6dGVzdA/);
    await prometheus.kill();
  });

  it(
    'and a rule of a policy that reads a metric blocks by its value, its age and its absence, and passes on a good value',
    async () => {
      await prometheus.start();
      prometheus.expose(['queue_length 250']);
      const { patch, arena: open } = await gated('metric-input', patient);
      await patch('rolloutgroups', 'ingester', { spec: { gates: [gateOf('vector(0)', patient)] } });
      const { client } = controlPlane();
      await client.create(`${ours}/metric-input/rolloutpolicies`, {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutPolicy',
        metadata: { name: 'safety' },
        spec: {
          targets: { all: true },
          inputs: { metrics: { queue: { source: 'prod', query: 'max(queue_length)', maxAge: '6s' } } },
          rules: [
            {
              name: 'drained',
              actions: ['rollout'],
              effect: 'hold',
              message: 'queue is ${inputs.metrics.queue}',
              when: { '>': [{ var: 'inputs.metrics.queue' }, 100] },
            },
          ],
        },
      });
      const agent = await open.startInside({ name: 'agent' });
      const before = new Set((await open.group.pods()).map(({ metadata }) => metadata.uid));
      await open.group.setImage('example.com/server:2');
      const ruleSays = (): string =>
        agent
          .turns()
          .at(-1)
          ?.decision?.waits.find(({ rule }) => rule === 'safety/drained')?.fact ?? '';
      const states: readonly (readonly [what: string, make: () => unknown, fact: string])[] = [
        ['too long', () => undefined, 'queue is 250'],
        ['another value', () => prometheus.expose(['queue_length 101']), 'queue is 101'],
        ['NaN', () => prometheus.expose(['queue_length NaN']), 'inputs.metrics.queue is unknown (the value is NaN)'],
        ['empty', () => prometheus.expose([]), 'inputs.metrics.queue is unknown (no data)'],
        ['nobody there', () => prometheus.kill(), 'older than 6s: the provider refuses connections'],
      ];
      for (const [what, make, fact] of states) {
        await make();
        await until(what, () => ruleSays().includes(fact), ruleSays);
        expect({ what, gone: (await open.group.pods()).filter(({ metadata }) => !before.has(metadata.uid)).length }).toEqual({
          what,
          gone: 0,
        });
      }
      await prometheus.start();
      prometheus.expose(['queue_length 100']);
      await patch('metricsources', 'prod', { spec: { prometheus: { url: prometheus.url() } } });
      await open.group.untilRolled(longestMs, { isAdopted: false });
      await prometheus.kill();
    },
    longestMs,
  );
}

/** Holds, whatever comes, until one reading is good. */
const patient = { consecutive: 1, failureLimit: 0, noData: 'hold', onError: 'hold' };

function gateOf(text: string, gate: object): object {
  return { name: 'errors', prometheus: { source: 'prod', query: text }, every: '1s', pass: { '<=': [{ var: 'value' }, 0.5] }, ...gate };
}

/** What the gate said in a turn; empty when it was not asked. */
function factOf({ decision }: TurnReport): string {
  return decision?.waits.find(({ rule }) => rule === 'gate')?.fact ?? '';
}

async function until(what: string, isSo: () => boolean, seen: () => string): Promise<void> {
  for (const endsAt = Date.now() + 60_000; Date.now() < endsAt; await delay(50)) if (isSo()) return;
  throw new Error(`${what} did not come; last was\n${seen()}`);
}
