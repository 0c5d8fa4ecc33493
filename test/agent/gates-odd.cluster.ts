// A gate that asks a server which answers as no sound Prometheus does: redirects, errors with status 200, old samples, too much, and drop by drop.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { agentRules, sourceRules } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { openArena } from './arena.ts';

const namespace = 'odd';
const apiVersion = 'rollout-group.dev/v1alpha1';
const ours = `/apis/${apiVersion}/namespaces/${namespace}`;

type Respond = (response: ServerResponse) => unknown;

function success(value: string, atMs = Date.now(), more: object = {}): string {
  const result = [{ metric: {}, value: [atMs / 1000, value] }];
  return JSON.stringify({ status: 'success', data: { resultType: 'vector', result }, ...more });
}

/** What is answered, and what the gate says of it. Every one of them holds a value that would pass. */
const odd: readonly (readonly [what: string, respond: Respond, fact: string])[] = [
  [
    'redirects',
    (response) => response.writeHead(302, { Location: '/good' }).end(success('0')),
    'redirects (HTTP 302), which the agent does not follow',
  ],
  ['redirects for good', (response) => response.writeHead(308, { Location: '/good' }).end(success('0')), 'redirects (HTTP 308)'],
  [
    'an error with status 200',
    (response) => response.end(success('0', Date.now(), { status: 'error', errorType: 'execution' })),
    'execution',
  ],
  ['a stale sample', (response) => response.end(success('0', Date.now() - 600_000)), 'the sample is 10m old'],
  ['10 MB', (response) => response.end(success('0', Date.now(), { padding: 'x'.repeat(10_000_000) })), 'is longer than'],
  ['a part', (response) => response.end(success('0').slice(0, -10)), 'is not JSON'],
  ['drop by drop', (response) => response.write(success('0').slice(0, 20)), 'no answer within'],
  ['NaN', (response) => response.end(success('NaN')), 'errors is NaN'],
];

describeOnControlPlane('a gate that is answered oddly', (controlPlane) => {
  let recorder: HistoryRecorder;
  let respond: Respond = (response) => response.end(success('7'));
  const server = createServer((request, response) => {
    // Whoever follows a redirect would find what passes.
    if (request.url === '/good') response.end(success('0'));
    else respond(response);
  });

  beforeAll(async () => {
    for (const kind of ['RolloutGroup', 'MetricSource'] as const)
      await controlPlane().client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    recorder = await recordHistory(controlPlane());
    await new Promise<void>((settle) => void server.listen(0, '127.0.0.1', settle));
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((settle) => server.close(settle));
    recorder.stop();
  });

  it('blocks on each unexpected answer with the reason, and continues when the answer is valid', { timeout: 180_000 }, async () => {
    const { client } = controlPlane();
    const rules = [...agentRules(), ...sourceRules()];
    const arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 1, rules });
    try {
      const create = (kind: string, name: string, spec: object): Promise<unknown> =>
        client.create(`${ours}/${kind.toLowerCase()}s`, { apiVersion, kind, metadata: { name }, spec });
      await create('MetricSource', 'prod', {
        prometheus: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
        usableFrom: { namespaces: [namespace] },
        limits: { minInterval: '1s', timeout: '1s' },
      });
      const gate = { every: '1s', consecutive: 1, failureLimit: 0, noData: 'hold', pass: { '<=': [{ var: 'value' }, 0.5] } };
      await create('RolloutGroup', 'ingester', {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        replicas: { leader: true },
        gates: [{ name: 'errors', prometheus: { source: 'prod', query: 'errors' }, ...gate }],
        rollout: {
          strategy: 'onDelete',
          waves: [
            { name: 'first', zones: ['a'], percent: 100, after: { gates: ['errors'] } },
            { name: 'rest', zones: ['b'], percent: 100 },
          ],
        },
      });
      const before = new Set((await arena.group.pods()).map(({ metadata }) => metadata.uid));
      const agent = await arena.startInside({ name: 'agent' });
      await arena.group.setImage('example.com/server:2');
      const facts = (since: number): readonly string[] =>
        agent
          .turns()
          .slice(since)
          .map(({ decision }) => decision?.waits.find(({ rule }) => rule === 'gate')?.fact ?? '');
      for (const [what, answer, fact] of odd) {
        const since = agent.turns().length;
        respond = answer;
        // One good reading would be enough.
        for (const endsAt = Date.now() + 60_000; facts(since).filter((one) => one.includes(fact)).length < 2; await delay(50)) {
          if (Date.now() > endsAt) throw new Error(`${what} was not read twice; last was ${facts(since).slice(-3).join('\n')}`);
        }
        const old = (await arena.group.pods()).filter(({ metadata }) => before.has(metadata.uid)).map(({ metadata }) => metadata.name);
        expect({ what, old }).toEqual({ what, old: ['ingester-zone-b-0'] });
      }
      respond = (response) => response.end(success('0'));
      await arena.group.untilRolled(60_000, { isAdopted: false });
      await arena.expectKept();
    } finally {
      await arena.close();
    }
  });
});
