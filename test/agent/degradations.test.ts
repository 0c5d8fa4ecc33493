import { describe, expect, it } from 'vitest';
import { startAdmission } from '../../agent/admission/guard.ts';
import { type Degradation, degradationsOf } from '../../agent/report.ts';
import { defaultConfig } from '../kit/agent-process.ts';
import { newCluster } from '../kit/cluster.ts';

const missing = (id: string, message = `${id} is missing`): Degradation => ({ id, reason: 'missing', message });
const silent = (): void => undefined;

describe('degraded parts of a process', () => {
  it('are one list of all parts, and a listener hears of each change', () => {
    const told: (readonly string[])[] = [];
    const { of } = degradationsOf([{ degraded: (all) => void told.push(all.map(({ message }) => message)) }, {}]);
    const [agent, webhook] = [of('agent'), of('webhook')];
    agent([]);
    agent([missing('b'), missing('a')]);
    webhook([missing('c'), missing('b', 'said again')]);
    agent([missing('b'), missing('a')]);
    webhook([]);
    agent([]);
    expect(told).toEqual([
      ['a is missing', 'b is missing'],
      ['a is missing', 'b is missing', 'c is missing'],
      ['a is missing', 'b is missing'],
      [],
    ]);
  });
});

describe('a process that only serves webhooks', () => {
  it('names its forbidden watches, and reports when they are allowed', async () => {
    const { env, api } = newCluster();
    api.forbid('list poddisruptionbudgets.policy', 'list statefulsets.apps');
    const told: (readonly string[])[] = [];
    const log = { debug: silent, info: silent, warn: silent, error: silent };
    const agentEnv = { ...env, log, pods: { call: () => Promise.reject(new Error('no pod listens')) } };
    const admission = startAdmission(agentEnv, { ...defaultConfig, identity: 'webhook-1' }, (all) => {
      told.push(all.filter(({ reason }) => reason === 'forbidden').map(({ id }) => id));
    });
    await env.advance(5000);
    expect(told.at(-1)).toEqual(['watch/statefulsets', 'watch/poddisruptionbudgets']);
    api.permit('list poddisruptionbudgets.policy', 'list statefulsets.apps');
    await env.advance(600_000);
    expect(told.at(-1)).toEqual([]);
    admission.stop();
  });

  it('has one watch of pods and one of zone-aware budgets', async () => {
    const { env } = newCluster();
    const log = { debug: silent, info: silent, warn: silent, error: silent };
    const agentEnv = { ...env, log, pods: { call: () => Promise.reject(new Error('no pod listens')) } };
    const admission = startAdmission(agentEnv, { ...defaultConfig, identity: 'webhook-1' });
    const seen: string[] = [];
    admission.followed.zoneBudgets.onChange(({ name }) => void seen.push(name));
    admission.followed.pods.onChange(({ name }) => void seen.push(name));
    await env.advance(5000);
    for (const plural of ['pods', 'zoneawarepoddisruptionbudgets']) {
      expect(env.requests.filter(({ isStream, pathname }) => isStream && pathname.endsWith(plural)).length, plural).toBeLessThanOrEqual(1);
    }
    admission.stop();
  });
});
