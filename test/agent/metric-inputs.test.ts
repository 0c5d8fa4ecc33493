import { describe, expect, it } from 'vitest';
import { GroupObjects } from '../../agent/published/group-objects.ts';
import { DecisionPublisher } from '../../agent/published/publisher.ts';
import { startProcess } from '../kit/agent-process.ts';
import { type EnforceWorld, enforceWorld, scaleOf } from '../webhook/native/enforce-world.ts';
import { type MetricServer, metricServer, value } from './gate-kit.ts';

const policies = 'rolloutpolicies.rollout-group.dev';

interface World extends EnforceWorld {
  readonly metrics: MetricServer;
}

/** A group of which no zone shrinks, and no pod goes, while a queue is longer than 100. */
function world(spec: object = {}): World {
  const given = enforceWorld();
  given.api.put(policies, {
    metadata: { name: 'safety', namespace: 'mimir' },
    spec: {
      targets: { all: true },
      inputs: { metrics: { queue: { source: 'prod', query: 'max(queue)' } } },
      rules: [
        {
          name: 'drained',
          actions: ['scaleDown', 'rollout'],
          effect: 'hold',
          when: { '>': [{ var: 'inputs.metrics.queue' }, 100] },
          message: 'queue is ${inputs.metrics.queue}',
        },
      ],
      ...spec,
    },
  });
  return { ...given, metrics: metricServer(given.env) };
}

function startAgent({ env, metrics }: World, name = 'agent-1') {
  return startProcess({
    env,
    name,
    gates: metrics.gates,
    listeners: (agentEnv, config) => [
      new DecisionPublisher({ env: agentEnv, config, objects: new GroupObjects(agentEnv, 5_000), mayWrite: () => true }).listener,
    ],
  });
}

function heldBy({ reports }: ReturnType<typeof startProcess>): string | undefined {
  const [wait] = reports.at(-1)?.decision?.waits ?? [];
  return wait === undefined ? undefined : `${wait.rule} ${wait.outcome}: ${wait.fact}`;
}

describe('a rule that reads a metric', () => {
  it('blocks a rollout at a bad value, and continues at a good value', async () => {
    const given = world();
    const { env, metrics } = given;
    metrics.tell = () => value(env, '250');
    const process = startAgent(given);
    await env.advance(5_000);
    given.rollTo('app:2');
    await env.advance(120_000);
    expect([heldBy(process), given.deletedPods().length]).toEqual(['safety/drained wait: queue is 250', 0]);
    metrics.tell = () => value(env, '100');
    await env.until(() => given.deletedPods().length === 1, 31_000);
    await env.until(() => given.deletedPods().length === 9, 900_000);
    await process.agent.stop();
  });

  it('blocks when the readings are too old, and uses the last one until then', async () => {
    const given = world();
    const { env, metrics } = given;
    metrics.tell = () => value(env, '3');
    const process = startAgent(given);
    await env.advance(5_000);
    metrics.tell = () => new Error('the provider refuses connections');
    await env.advance(90_000);
    given.rollTo('app:2');
    await env.until(() => given.deletedPods().length === 1, 20_000);
    await env.advance(60_000);
    const after = given.deletedPods().length;
    expect(after).toBeLessThan(9);
    await env.advance(600_000);
    expect(given.deletedPods().length).toBe(after);
    expect(heldBy(process)).toBe(
      'safety/drained unknown: inputs.metrics.queue is unknown (the reading is older than 2m: the provider refuses connections)',
    );
    metrics.tell = () => value(env, '3');
    await env.until(() => given.deletedPods().length > after, 60_000);
    await process.agent.stop();
  });

  it('is unknown without a port to metric sources', async () => {
    const given = world();
    const process = startProcess({ env: given.env });
    await given.env.advance(5_000);
    given.rollTo('app:2');
    await given.env.advance(120_000);
    expect([heldBy(process), given.deletedPods().length]).toEqual([
      'safety/drained unknown: inputs.metrics.queue is unknown (no reading)',
      0,
    ]);
  });

  it('begins without readings under a new leader', async () => {
    const given = world();
    const { env, metrics } = given;
    const first = startAgent(given);
    await env.advance(5_000);
    expect(metrics.asked).toHaveLength(1);
    const second = startAgent(given, 'agent-2');
    await env.advance(5_000);
    expect(metrics.asked).toHaveLength(1);
    first.crash();
    await env.advance(20_000);
    expect(metrics.asked).toHaveLength(2);
    expect(second.reports.at(-1)?.snapshot.metrics).toHaveLength(1);
  });

  it('of a quiet group costs one query and one turn in its period, and a write where the published reading would grow old', async () => {
    const given = world();
    const { env, metrics } = given;
    const process = startAgent(given);
    await env.advance(65_000);
    const [asked, turns, writes] = [metrics.asked.length, process.reports.length, given.writes().length];
    await env.advance(600_000);
    expect(metrics.asked.length - asked).toBe(20);
    expect(process.reports.length - turns).toBe(20);
    expect(given.writes().length - writes).toBe(10);
  });
});

describe('a process that only serves webhooks', () => {
  const shrink = (given: World) => scaleOf(given.set('a'), 2);

  it('uses the readings that the agent has published, and denies requests if they are too old', async () => {
    const given = world();
    const { env, metrics } = given;
    metrics.tell = () => value(env, '3');
    const process = startAgent(given);
    const webhook = await given.start();
    await env.advance(600_000);
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({ allowed: true });
    given.dropLedger();
    metrics.tell = () => value(env, '250');
    await env.advance(40_000);
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({
      allowed: false,
      message: expect.stringContaining('queue is 250'),
    });
    metrics.tell = () => value(env, '3');
    await env.advance(40_000);
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({ allowed: true });
    given.dropLedger();
    process.crash();
    await env.advance(130_000);
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({
      allowed: false,
      message: expect.stringContaining('the reading is older than 2m'),
    });
  });

  it('finds them in a ConfigMap where the group is no object', async () => {
    const given = world();
    const { env, api } = given;
    const text = JSON.stringify(api.get('rolloutgroups.rollout-group.dev', 'mimir', 'ingester'));
    api.remove('rolloutgroups.rollout-group.dev', 'mimir', 'ingester');
    for (const zone of ['a', 'b', 'c'])
      api.change('statefulsets.apps', 'mimir', `ingester-zone-${zone}`, { metadata: { labels: { 'rollout-group': 'ingester' } } });
    expect(text).toContain('ingester-zone-a');
    const process = startAgent(given);
    const webhook = await given.start();
    await env.advance(60_000);
    expect(process.groups()).toEqual(['mimir/ingester']);
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({ allowed: true });
    api.remove('configmaps', 'mimir', 'rollout-status-ingester');
    given.dropLedger();
    process.crash();
    expect(await env.finish(webhook.ask(shrink(given)))).toMatchObject({ allowed: false, message: expect.stringContaining('no reading') });
  });

  it('reads no ConfigMap if no rule reads a metric', async () => {
    const given = world({ rules: [] });
    const webhook = await given.start();
    await given.env.finish(webhook.ask(shrink(given)));
    expect(webhook.requests.filter((request) => /rolloutgroups\/ingester|rollout-status/.test(request))).toEqual([]);
  });
});

describe('the webhook of the agent that leads', () => {
  it('uses the readings of the agent before they are published', async () => {
    const given = world();
    const { env, metrics } = given;
    metrics.tell = () => value(env, '250');
    const process = startProcess({ env, gates: metrics.gates });
    await env.until(() => process.agent.isReady());
    await env.advance(5_000);
    const snapshot = await env.finish(process.agent.guard.snapshot('mimir', [{ namespace: 'mimir', name: 'ingester' }], 2_000));
    expect(snapshot.metrics).toMatchObject([{ policy: 'safety', input: 'queue', value: 250 }]);
    expect(process.sites.has('admission.getPublished')).toBe(false);
  });
});
