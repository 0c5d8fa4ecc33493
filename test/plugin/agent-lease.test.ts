import { describe, expect, it } from 'vitest';
import { agentState, leaseState, readAgentLeases } from '../../plugin/live/agent.ts';
import { fakeApiServer } from './api-server.ts';
import { lease } from './doctor/kit.ts';
import { runInProcess } from './in-process.ts';
import { waiting } from './live-kit.ts';
import { leaseObject, publishedObject } from './live-objects.ts';
import { clusterOf, type FakeObject } from './served-objects.ts';

const nowMs = 100_000;

describe('the Lease of an agent', () => {
  it.each([
    ['held until its duration has passed', { renewedMs: 85_000, acquiredMs: 1 }, { kind: 'held', sinceMs: 1 }],
    ['expired after that', { renewedMs: 84_999 }, { kind: 'expired', sinceMs: 99_999 }],
    ['expired if it was never renewed', { renewedMs: undefined }, { kind: 'expired', sinceMs: undefined }],
    ['released without a holder', { renewedMs: 99_000, holder: '' }, { kind: 'released', sinceMs: 99_000 }],
  ])('is %s', (_, fields, expected) => {
    expect(leaseState(lease(fields), nowMs)).toEqual(expected);
  });

  const named = { namespace: 'rollout-group', name: 'agent-x' };

  it.each([
    ['of the leader', [lease({ renewedMs: 99_000 }), lease({ holder: 'x', namespace: 'mimir' })], { kind: 'running' }],
    [
      'in the namespace of the group',
      [lease({ holder: 'x' }), lease({ holder: 'y', namespace: 'mimir', renewedMs: 99_000 })],
      { kind: 'running' },
    ],
    ['that is the only one', [lease({ holder: 'x', renewedMs: 40_000 })], { kind: 'stopped', why: 'Lease expired 45s ago', isLost: true }],
    ['that was released', [lease({ holder: '', renewedMs: 40_000 })], { kind: 'stopped', why: 'Lease released 1m ago', isLost: true }],
    ['of another agent', [lease({ holder: 'x' }), lease({ holder: 'y' })], { kind: 'unknown' }],
    ['that may not be read', { unknown: 'no permission' }, { kind: 'unknown' }],
    ['that an agent without a Lease does not have', [], { kind: 'unknown' }],
  ])('shows whether the agent runs: one %s', (_, leases, expected) => {
    const read = { leases, isComplete: !('unknown' in leases), nowMs };
    expect(agentState(read, { namespace: 'mimir', leader: 'agent-1' })).toEqual(expected);
  });

  it('is the Lease in the decision, and is missing if it was deleted', () => {
    const decided = { namespace: 'mimir', leader: 'agent-1', lease: named };
    const others = [lease({ holder: 'x', namespace: 'mimir', renewedMs: 99_000 })];
    const read = { leases: [...others, lease({ ...named, holder: 'agent-2', renewedMs: 99_000 })], isComplete: true, nowMs };
    expect(agentState(read, { ...decided, leader: 'agent-2' })).toEqual({ kind: 'running' });
    expect(agentState(read, decided)).toMatchObject({ kind: 'starting' });
    expect(agentState({ ...read, leases: others }, decided)).toEqual({ kind: 'stopped', why: 'no Lease', isLost: true });
    expect(agentState({ ...read, leases: others, isComplete: false }, decided)).toEqual({ kind: 'unknown' });
    expect(agentState({ ...read, leases: [] }, { namespace: 'mimir' })).toEqual({ kind: 'stopped', why: 'no Lease', isLost: true });
  });

  it('shows a decision as that of an earlier agent until the next agent has decided', async () => {
    const at = { namespace: 'rollout-group', name: 'rollout-group-agent' };
    const decided = publishedObject({ ...waiting, leader: 'agent-0', lease: at, decidedMs: Date.now() - 600_000 });
    const held = leaseObject('agent-1', Date.now());
    const acquireTime = `${new Date(Date.now() - 3_000).toISOString().slice(0, -1)}000Z`;
    const next: FakeObject = { ...held, spec: { ...Object(held['spec']), acquireTime } };
    const ask = async (line: string, object = next) => {
      const { url } = await fakeApiServer([decided, object]);
      return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
    };
    const text = /the agent started [34]s ago and has not decided yet/;
    const list = await ask('get');
    expect([list.stdout, list.stderr]).toEqual([expect.stringMatching(/ was Waiting /), expect.stringMatching(text)]);
    expect((await ask('status ingester --watch=false')).stdout).toMatch(text);
    expect((await ask('get ingester')).stdout).toMatch(/^mimir\/ingester {3}was WAITING .* was \d+ of \d+ updated {3}was \d+ available/);
    expect((await ask('get', leaseObject('agent-0', Date.now()))).stdout).not.toContain('was ');
  });

  it('is read in all namespaces, or unknown without the permission', async () => {
    const leases = [leaseObject('agent-0', 1000)];
    const read = await readAgentLeases(clusterOf({ objects: { leases } }), []);
    expect(read.leases).toEqual([
      {
        namespace: 'rollout-group',
        name: 'rollout-group-agent',
        holder: 'agent-0',
        renewedMs: 1000,
        acquiredMs: undefined,
        durationMs: 15_000,
      },
    ]);
    const forbidden = clusterOf({ objects: { leases }, forbidden: ['leases'] });
    expect(await readAgentLeases(forbidden, [{ namespace: 'a' }, { namespace: 'b' }])).toMatchObject({
      leases: { unknown: 'no permission to get leases in a, b' },
      isComplete: false,
    });
  });

  it('is read in one namespace with permission to get or to list there', async () => {
    for (const right of ['list', 'get'] as const) {
      const cluster = clusterOf({ objects: { leases: [leaseObject('agent-0', 1000)] } });
      const { request } = cluster.env.kubernetes;
      const denied = { status: 403, headers: {}, body: JSON.stringify({ kind: 'Status', status: 'Failure', code: 403 }) };
      const kubernetes: typeof cluster.env.kubernetes = {
        ...cluster.env.kubernetes,
        request: async (call) => {
          const isGet = /leases\/rollout-group-agent/.test(call.path);
          return call.path.includes('/namespaces/') && isGet === (right === 'get') ? request(call) : denied;
        },
      };
      const limited = { ...cluster, env: { ...cluster.env, kubernetes } };
      expect((await readAgentLeases(limited, [{ namespace: 'rollout-group' }, { namespace: 'mimir' }])).leases).toMatchObject([
        { holder: 'agent-0' },
      ]);
    }
  });
});
