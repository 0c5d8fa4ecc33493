// The dashboards and alerts on a real Prometheus that scrapes the agent and a real API server, during a rollout and during failures.
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod } from '../control-plane/workloads.ts';
import { createWorld, merge, podsOf, replicas, setsOf, type World, write } from '../webhook/kit.ts';
import { type Alerting, prometheus, startAlerting } from './alerting.ts';

/** Has a native group `ingester` and an adopted group `store`. */
const namespace = 'compat';
const sets = ['ingester', 'store'].flatMap((group) => ['a', 'b'].map((zone) => `${group}-zone-${zone}`));

const name = 'dashboards and alerts on a real Prometheus';
if (prometheus === undefined && process.env['CI'] === undefined)
  describe.skip(`SKIPPED: ${name}, for there is no executable prometheus`, () => it('is not run', () => undefined));
else describeOnControlPlane(name, monitoringOnPrometheus);

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly targets: readonly { readonly expr: string }[];
}

const folder = 'deploy/monitoring/dashboards';
const panels = readdirSync(folder).flatMap((file) => {
  const { panels: all } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { readonly panels: readonly Panel[] };
  return all.map((panel) => ({ ...panel, title: `${file} ${panel.title}` }));
});

type ImagePod = Pod & { readonly spec: { readonly containers: readonly { readonly image: string }[] } };

interface Series {
  readonly values: readonly (readonly [atSeconds: number, value: string])[];
}

/** The alert and the panel of a deviation that this suite has from the beginning: its webhooks are at a URL instead of a Service. */
const [always, panelOfDeviation] = ['RolloutProtectionBypassed', 'overview.json Degraded parts'];

function monitoringOnPrometheus(controlPlane: () => ControlPlane): void {
  let cp: ControlPlane;
  let world: World;
  let alerting: Alerting;
  const beganAt = Date.now() / 1000;

  beforeAll(async () => {
    cp = controlPlane();
    world = await createWorld(cp, { namespaces: [namespace], start: { flags: ['-run=all'] } });
    const spec = { rollout: { strategy: 'onDelete', deadlines: { progress: '10s', run: '1h' } } };
    await world.createGroup('native', namespace, { name: 'ingester', isProtected: false, spec });
    await world.createGroup('compat', namespace, { name: 'store', isProtected: false });
    const targets = [{ pod: 'agent-0', port: world.first.agent.port }];
    alerting = await startAlerting(cp, readFileSync('deploy/monitoring/alerts.yaml', 'utf8'), targets);
  });
  afterAll(async () => {
    await alerting.close();
    await world.close();
  });

  /** The titles of the panels without a number since the suite began. */
  async function emptyPanels(): Promise<readonly string[]> {
    const empty: string[] = [];
    for (const { title, targets } of panels) {
      let hasData = false;
      for (const { expr } of targets) {
        const query = expr.replace(/\$(?:__rate_interval|__range)/g, '2m').replace(/\$(?:namespace|group)/g, '.+');
        const parameters = { query, start: `${beganAt}`, end: `${Date.now() / 1000}`, step: '1' };
        const { result } = await alerting.ask<{ readonly result: readonly Series[] }>('query_range', parameters);
        hasData ||= result.some(({ values }) => values.some(([, value]) => Number.isFinite(Number(value))));
      }
      if (!hasData) empty.push(title);
    }
    return empty;
  }

  const names = async (): Promise<readonly (string | undefined)[]> =>
    [...new Set((await alerting.firing()).map(({ labels }) => labels['alertname']))].sort();
  const setImage = async (image: string): Promise<void> => {
    const template = { spec: { template: { spec: { containers: [{ name: 'server', image }] } } } };
    for (const set of sets) await cp.client.patch(`${setsOf(namespace)}/${set}`, 'strategic', template);
  };
  const untilRolled = (image: string): Promise<unknown> =>
    cp.client.until<ImagePod>(podsOf(namespace), `pods with ${image}`, (pods) =>
      pods.every((pod) => isReady(pod) && pod.spec.containers.every((container) => container.image === image)),
    );

  it('have data in every panel after a rollout, except in those that name a failure', async () => {
    // Each scrape sees another count, because a query sees no increase before the second sample.
    const review = () => write(world.admin, 'PATCH', `${setsOf(namespace)}/${sets[0]}/scale?dryRun=All`, replicas(4), merge);
    for (let count = 0; count < 4; count += 1)
      expect(await Promise.all([review(), delay(1100)])).toMatchObject([{ isRefused: false }, undefined]);
    await setImage('example.com/server:2');
    await untilRolled('example.com/server:2');
    const expected = panels.filter(({ description }) => description?.startsWith('Empty without ')).map(({ title }) => title);
    expect(expected).toContain(panelOfDeviation);
    await expect.poll(emptyPanels, { timeout: 30_000, interval: 2000 }).toEqual(expected.filter((title) => title !== panelOfDeviation));
    await expect.poll(names, { timeout: 60_000 }).toEqual([always]);
  });

  it('have data in the other panels after failures, and the alerts name the groups', async () => {
    await setImage('example.com/server:broken');
    await expect.poll(names, { timeout: 60_000 }).toEqual(['RolloutGroupStuck', always, 'RolloutRunFailed']);
    const named = (await alerting.firing()).map(({ labels, annotations }) => `${labels['alertname']}: ${annotations['summary']}`);
    expect(named.sort()).toEqual([
      'RolloutGroupStuck: Group compat/store is stuck.',
      'RolloutProtectionBypassed: Requests may bypass the policies: webhook/configurations.',
      'RolloutRunFailed: The run of group compat/ingester failed.',
    ]);

    // A client without TLS.
    await new Promise((settle) => connect(world.first.port, '127.0.0.1').on('close', settle).end('no TLS\n'));
    world.front.leadTo();
    world.front.cut();
    // Without the webhook, scale-downs fail and deletions of pods pass.
    const outage = async (): Promise<readonly (string | undefined)[]> => {
      const downscale = await write(world.admin, 'PATCH', `${setsOf(namespace)}/${sets[0]}/scale`, replicas(1), merge);
      expect(downscale.said).toContain('failed calling webhook');
      const path = `${podsOf(namespace)}/${sets[0]}-2`;
      expect((await write(world.admin, 'DELETE', `${path}?dryRun=All`)).said).toMatch(/^200 |^404 /);
      return names();
    };
    await expect
      .poll(outage, { timeout: 60_000, interval: 1000 })
      .toEqual(['RolloutGroupStuck', always, 'RolloutRunFailed', 'RolloutWebhookFailsOpen', 'RolloutWebhookUnavailable']);
    await expect.poll(emptyPanels, { timeout: 30_000, interval: 2000 }).toEqual([]);
  });
}
