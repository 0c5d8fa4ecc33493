import { describe, expect, it } from 'vitest';
import { readIntent } from '../../../policies/live/intents.ts';
import { groupObjects } from '../../../scripts/soak/groups/group-objects.ts';
import { Client } from '../../../simulation/cluster/client.ts';
import { Requests } from '../../../simulation/cluster/requests.ts';
import { createScheduler } from '../../../simulation/scheduler.ts';
import type { ModelObject } from '../../../simulation/server/request.ts';
import { defaultShape } from './world.ts';

const digest = '0123456789abcdef0123456789abcdef';
const waiting = {
  run: { id: 'run1', kind: 'rollout', outcome: 'running' },
  wave: { name: 'wave-2' },
  waits: [{ rule: 'approval', digest }],
  warnings: [],
};

function world(decision: object | undefined) {
  const created: ModelObject[] = [];
  const scheduler = createScheduler(1);
  const definition = groupObjects({ ...defaultShape, waves: [{ zones: ['a', 'b', 'c'], approvals: ['before'] }] }).objects.find(
    ({ kind }) => kind === 'RolloutGroup',
  );
  const server = {
    get: (resource: string) =>
      resource === 'configmaps' || resource === 'rolloutintents.rollout-group.dev'
        ? undefined
        : ({ ...definition, status: { decision } } as unknown as ModelObject),
    isTerminating: () => false,
    list: (resource: string) => (resource === 'rolloutintents.rollout-group.dev' ? [...created] : []),
    create: (_actor: unknown, _resource: string, object: ModelObject) => created.push(object),
    remove: (_actor: unknown, { name }: { readonly name: string }) =>
      created.splice(
        created.findIndex(({ metadata }) => metadata.name === name),
        1,
      ),
  };
  const requests = new Requests({
    server: server as never,
    client: new Client(server as never, undefined),
    scheduler,
    wallMs: () => Date.UTC(2026, 0, 15, 12) + scheduler.nowMs(),
    namespace: 'mimir',
    group: 'ingester',
    report: () => undefined,
  });
  return { created, requests, scheduler, read: () => created.map(readIntent) };
}

describe('the requests of people', () => {
  it('name the published run and wave, the digest, and the requester that the webhook records', () => {
    const { requests, read } = world(waiting);
    expect(requests.submit('approve', 'alice')).toBe(true);
    expect(read()).toMatchObject([
      {
        group: 'ingester',
        action: 'approve',
        runId: 'run1',
        wave: 'wave-2',
        digest,
        requestedBy: { user: 'alice@example.com', groups: ['oncall'] },
      },
    ]);
  });

  it('end the earlier answers of the same person to the wave, as the plugin does', async () => {
    const { requests, scheduler, read } = world(waiting);
    for (const [request, person] of [
      ['reject', 'alice'],
      ['approve', 'bob'],
      ['approve', 'alice'],
      ['promote', 'alice'],
    ] as const) {
      expect(requests.submit(request, person)).toBe(true);
      await scheduler.runUntil(scheduler.nowMs() + 1000);
    }
    expect(read()).toMatchObject([
      { action: 'approve', requestedBy: { user: 'bob@example.com' } },
      { action: 'approve', requestedBy: { user: 'alice@example.com' } },
      { action: 'promote' },
    ]);
  });

  it('name no requester if the webhook did not record one', () => {
    const { requests, read } = world(waiting);
    expect(requests.submit('approve', 'alice', true)).toBe(true);
    expect(read().map((intent) => 'requestedBy' in intent)).toEqual([false]);
  });

  it('approve a rejected wave by the digest of its definition', () => {
    const { requests, read } = world({ ...waiting, waits: [{ rule: 'approval' }] });
    expect(requests.submit('approve', 'alice')).toBe(true);
    expect(read()).toMatchObject([{ action: 'approve', digest: expect.stringMatching(/^[0-9a-f]{32}$/) }]);
  });

  it.each([
    ['abort', waiting, { action: 'abort', runId: 'run1' }],
    ['approve', { ...waiting, waits: [{ rule: 'guard/ask', digest }] }, { action: 'approve', runId: 'run1', rule: 'guard/ask', digest }],
    ['promote', waiting, { action: 'promote', wave: 'wave-2' }],
    ['reject', waiting, { action: 'reject', wave: 'wave-2' }],
    ['rollback', { ...waiting, strategy: 'pinned' }, { action: 'abort', rollback: true }],
    ['retry', { ...waiting, run: { ...waiting.run, outcome: 'failed' } }, { action: 'retry' }],
    ['retry', { ...waiting, waits: [{ rule: 'pin-applied', outcome: 'wait' }] }, { action: 'retry' }],
  ] as const)('are as the plugin writes them: %s', (request, decision, spec) => {
    const { requests, read } = world(decision);
    expect(requests.submit(request, 'bob')).toBe(true);
    expect(read()).toMatchObject([spec]);
  });

  it('are not sent if the plugin would deny them', () => {
    const { requests, created } = world({ ...waiting, waits: [] });
    for (const request of ['approve', 'reject', 'rollback', 'retry'] as const) expect(requests.submit(request, 'alice')).toBe(false);
    expect(world(undefined).requests.submit('abort', 'alice')).toBe(false);
    expect(created).toEqual([]);
  });

  it('answer every waiting wave after the faults', async () => {
    const { requests, read, scheduler } = world(waiting);
    requests.heal(['alice', 'bob']);
    await scheduler.runUntil(15_000);
    expect(read()).toMatchObject([{ requestedBy: { user: 'alice@example.com' } }, { requestedBy: { user: 'bob@example.com' } }]);
  });
});
