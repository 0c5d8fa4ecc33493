import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { todoOf } from '../../plugin/output/explain.ts';
import { passesText } from '../../plugin/output/plan/plan-text.ts';
import { holdingPartition } from '../../policies/strategies.ts';
import { newRevision } from '../kit/objects.ts';
import { ago, intent, ledgerOf, outdatedSets, runOf } from '../kit/questions.ts';
import { type FakeApiServer, type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { denied, missing, paused, rolling, waiting } from './live-kit.ts';
import { adoptedObjects, leaseObject, publishedObject, requesterWebhook, statefulSetObject } from './live-objects.ts';
import { misplacedAfter, soakingWith } from './person-needed-kit.ts';
import type { FakeObject } from './served-objects.ts';

const pause = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name: 'pause.ingester', namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', reason: 'read latency' },
};

function on({ url }: Pick<FakeApiServer, 'url'>, line: string): Promise<Ended> {
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
}

async function ask(objects: readonly FakeObject[], line: string, options: FakeOptions = {}): Promise<Ended> {
  return on(await fakeApiServer(objects, options), line);
}

function now(decision: PublishedDecision): FakeObject {
  return publishedObject({ ...decision, decidedMs: Date.now() });
}

describe('pods that restarted with the wrong revision', () => {
  it('need a user after the last attempt', async () => {
    const { stdout } = await ask([now(misplacedAfter(2))], 'explain ingester');
    expect(stdout).toMatch(
      /^mimir\/ingester is WAITING.*\. Pods restarted with the wrong revision; no further pod is replaced until a person acts\./,
    );
    expect(stdout).toContain('passes after a retry');
    expect(stdout).toMatch(
      /do +find out why the webhook is not called: kubectl rollout-group doctor -n mimir\n +then continue: kubectl rollout-group retry mimir\/ingester\n/,
    );
  });

  it('need no user before', async () => {
    const { stdout } = await ask([now(misplacedAfter(1))], 'explain ingester');
    expect(stdout).toMatch(/Nothing is wrong; the group continues by itself\./);
    expect(stdout).not.toContain('retry');
  });

  it.each([
    [2, 'status ingester --fail-on-pause', 8],
    [2, 'status ingester --timeout 50ms', 8],
    [1, 'status ingester --fail-on-pause --timeout 50ms', 7],
  ])('after %i attempts: %s', async (placements, line, status) => {
    expect((await ask([now(misplacedAfter(placements))], line)).status).toBe(status);
  });
});

describe('a StatefulSet that does not exist', () => {
  it('is named by get, status and explain, with the next step', async () => {
    const shown = async (line: string) => (await ask([now(missing)], line)).stdout;
    expect(await shown('get ingester')).toMatch(/\n *b +missing +- +\? +- +StatefulSet ingester-zone-b does not exist\n/);
    expect(await shown('get ingester')).toContain('? updated   ? available');
    expect(await shown('status ingester --watch=false')).toMatch(
      /\n *b +\? updated \[[^\]█#]*\] +StatefulSet ingester-zone-b does not exist\n/,
    );
    const explained = await shown('explain ingester');
    expect(explained).toMatch(/^mimir\/ingester is WAITING.*\. StatefulSet ingester-zone-b of zone b does not exist\./);
    expect(explained).toContain('do       create StatefulSet ingester-zone-b, or remove zone b from the group\n');
    expect(explained).not.toMatch(/make the unknown value readable|could not be read/);
  });

  it.each([
    ['status ingester --timeout 50ms', 8],
    ['status ingester --fail-on-pause', 8],
    ['status ingester --for zone=b --timeout 50ms', 8],
  ])('is no success of %s', async (line, status) => {
    const ended = await ask([now(missing)], line);
    expect(ended.status).toBe(status);
  });

  it('is reported at a timeout of status', async () => {
    const { stderr } = await ask([now(missing)], 'status ingester --timeout 50ms');
    expect(stderr).toContain(
      'mimir/ingester waits: StatefulSet ingester-zone-b of zone b does not exist. Create it, or remove its zone from the group',
    );
  });
});

describe('a preparation that fails', () => {
  // The agent repeats the call, so it acts at some turns, and waits at the others.
  const fact = 'ingester-zone-a-2 failed to prepare: 500';
  const result = { rule: 'prepare-downscale', outcome: 'no', fact, sinceMs: 0, zones: ['a'] } as const;
  const step = { id: 'scale/a', kind: 'scaleDown', zone: 'a', podCount: 0, from: 3, to: 2, outcome: 'blocked', results: [result] } as const;
  const failing = now({ ...waiting, phase: 'Scaling', outcome: 'act', steps: [step], waits: [result], stops: [] });

  it('needs a user, also in a turn that repeats the call', async () => {
    const ended = await ask([failing], 'status ingester --timeout 50ms');
    expect([ended.status, ended.stderr]).toEqual([8, expect.stringContaining(`prepare-downscale: ${fact}`)]);
    const { stdout } = await ask([failing], 'explain ingester');
    expect(stdout).toContain(fact);
    expect(stdout).not.toContain('No rule blocks');
  });
});

describe('a timeout of status', () => {
  const protection = {
    rule: 'protected',
    fact: 'kim protects ingester-zone-c-2',
    zones: ['c'],
    isBlocking: true,
    endsWith: 'kubectl rollout-group cancel mimir/ingester protect.ingester',
  } as const;
  const explain = 'Run: kubectl rollout-group explain mimir/ingester\n';

  it.each([
    ['paused', [now(paused), pause], 8, 'mimir/ingester is paused. To end it: kubectl rollout-group resume'],
    ['waiting for an approval', [now(waiting)], 8, `mimir/ingester waits for an approval. ${explain}`],
    ['misplaced', [now(misplacedAfter(2))], 8, `pods restarted with the wrong revision. ${explain}`],
    ['blocked', [now({ ...waiting, phase: 'Blocked' })], 8, 'mimir/ingester is blocked: approval: 0 of 1 approvals from oncall'],
    ['rolling', [now(rolling)], 7, `the rollout continues: 2 pods of b in flight. ${explain}`],
    ['rolling before a stop', [now({ ...rolling, stops: [protection] })], 7, `the rollout continues: 2 pods of b in flight. ${explain}`],
  ] as const)('names why the group needs a user, or reports that the rollout continues: %s', async (_, objects, status, text) => {
    const ended = await ask([...objects, requesterWebhook], 'status ingester --timeout 50ms');
    expect(ended.stderr).toMatch(/timed out before complete; [^;]*\n$/);
    expect(ended.stderr).toContain(text);
    expect(ended.status).toBe(status);
  });

  it.each([
    ['pause', 'ingester is paused. To end it: kubectl rollout-group resume mimir/ingester'],
    [
      'protect',
      'ingester is stopped until a person acts: kim protects the group. To end it: kubectl rollout-group cancel mimir/ingester protect.x',
    ],
  ] as const)('names a stop without an end behind a soak: %s', async (action, text) => {
    const name = `${action}.x`;
    const request = { ...pause, metadata: { ...pause.metadata, name }, spec: { group: 'ingester', action } };
    const objects = [now(soakingWith({ intents: [intent({ name, action })] })), request];
    const ended = await ask(objects, 'status ingester --timeout 50ms');
    expect(ended).toMatchObject({ status: 8, stderr: expect.stringContaining(`timed out before complete; mimir/${text}\n`) });
    expect((await ask(objects, 'status ingester --fail-on-pause --timeout 50ms')).stderr).not.toContain('timed out');
    const soaking = await ask([now(soakingWith())], 'status ingester --fail-on-pause --timeout 50ms');
    expect(soaking).toMatchObject({ status: 7, stderr: expect.stringContaining('the rollout continues: soak: ') });
  });

  it('is not waited for without an agent', async () => {
    const objects = [publishedObject({ ...paused, decidedMs: Date.now() - 600_000 }), pause, leaseObject('agent-0', Date.now() - 300_000)];
    const ended = await ask(objects, 'status ingester --timeout 50ms');
    expect(ended.stderr).toContain('ended before complete; agent not running: Lease expired ');
    expect(ended.status).toBe(12);
  });
});

describe('a soak without an agent', () => {
  it('is shown with its start, because an agent that starts again counts from there', async () => {
    const soaking = { ...soakingWith(), decidedMs: Date.now() - 600_000 };
    const objects = [publishedObject(soaking), leaseObject('agent-0', Date.now() - 300_000)];
    for (const verb of ['get', 'get ingester'])
      expect((await ask(objects, verb)).stdout.replaceAll(/\s+/g, ' ')).toMatch(/wave first has soaked since \d{4}-\d\d-\d\d \d\d:\d\d/);
  });
});

describe('an estimated end', () => {
  const outdated = adoptedObjects({ updateRevision: 'rev-2' });
  const eta = async (objects: readonly FakeObject[]) =>
    JSON.parse((await ask([...objects, ...outdated], 'status ingester --watch=false -o json')).stdout).eta;

  it('is unknown while a rule blocks until a user acts', async () => {
    const waits = [{ rule: 'pin-webhook', outcome: 'no', fact: 'no webhook pins pods', sinceMs: Date.now(), zones: ['a'] }] as const;
    const blocked = now({ ...rolling, phase: 'Blocked', outcome: 'blocked', waits });
    expect(await eta([blocked])).toEqual({ unknown: 'no webhook pins pods' });
    expect(await eta([now(waiting)])).toEqual({ unknown: expect.stringContaining('so no approval counts') });
    const log = await ask([blocked, ...outdated], 'status ingester --heartbeat 300ms --timeout 1s');
    expect(log.stdout).toMatch(/ heartbeat mimir\/ingester .* end=\?$/m);
  });
});

describe('an agent that is not running', () => {
  // A decision of just now proves nothing.
  const objects = [publishedObject({ ...waiting, decidedMs: Date.now() - 1000 }), leaseObject('agent-0', Date.now() - 300_000)];

  it('is the headline of explain, with the command that finds the cause', async () => {
    const { stdout } = await ask(objects, 'explain ingester');
    expect(stdout).toMatch(
      /^mimir\/ingester is WAITING[^.]*\. Nothing is carried out: agent not running: Lease expired \d+m(?:\d+s)? ago\.\n/,
    );
    expect(stdout).toMatch(/\n {2}do {7}find out why: kubectl rollout-group doctor -n mimir\n/);
  });

  it('is shown by get, without an estimated end', async () => {
    const { stdout } = await ask(objects, 'get ingester');
    expect(stdout).toMatch(
      /\nagent not running: Lease expired \d+m(?:\d+s)? ago; nothing is carried out\nend unknown: no agent acts on the group\n/,
    );
    expect((await ask(objects, 'status ingester --watch=false')).stdout).toContain('unknown: no agent acts on the group');
  });

  it('freezes the ages of the pods at its last decision', async () => {
    const decidedMs = Date.now() - 600_000;
    const pods = [{ zone: 'a', pod: 'ingester-zone-a-0', state: 'terminating', sinceMs: decidedMs - 5000 }] as const;
    const dead = [publishedObject({ ...rolling, decidedMs, pods }), leaseObject('agent-0', Date.now() - 300_000)];
    const tree = (await ask(dead, 'get ingester')).stdout;
    expect(tree).toMatch(/\nas of 10m ago, when the agent decided last\nNAME /);
    expect(tree).toMatch(/^ +a-0 +terminating .* 0\/1 +5s$/m);
    expect((await ask(dead, 'explain ingester-zone-a-0')).stdout.replaceAll(/\s+/g, ' ')).toContain(
      'a-0: terminating for 5s, as of 10m ago, when the agent decided last',
    );
    const running = (
      await ask(
        [dead[0], leaseObject('agent-0', Date.now())].flatMap((one) => one ?? []),
        'get ingester',
      )
    ).stdout;
    expect(running).toMatch(/^ +a-0 +terminating .* 0\/1 +10m(?:\ds)?$/m);
    expect(running).not.toContain('as of');
  });

  it('is not reported for a running agent', async () => {
    const fresh = [objects[0], leaseObject('agent-0', Date.now())].flatMap((one) => one ?? []);
    expect((await ask(fresh, 'explain ingester')).stdout).not.toContain('not running');
    expect((await ask(fresh, 'get ingester')).stdout).not.toContain('nothing is carried out');
  });
});

describe('a complete group with unavailable pods', () => {
  const zones = waiting.zones.map((zone, index) => ({ ...zone, updated: zone.replicas, available: index === 0 ? 11 : zone.replicas }));
  const pending: PublishedDecision = { ...waiting, zones, phase: 'Done', outcome: 'done', waits: [], steps: [], pods: [] };

  it.each(['done', 'act'] as const)('is reported in the headline, with a command: %s', async (outcome) => {
    const { stdout } = await ask([now({ ...pending, outcome })], 'explain ingester');
    expect(stdout).toMatch(/^mimir\/ingester is DONE[^.]*\. Nothing is left to do for the group, but 9 pods are not\s+available\./);
    expect(stdout).toMatch(/do +kubectl get pods -n mimir\n/);
    expect(stdout).not.toContain('Nothing holds');
  });

  it('is reported in the table', async () => {
    expect((await ask([now(pending)], 'get')).stdout).toContain('9 pods are not available');
    const whole = waiting.zones.map((zone) => ({ ...zone, updated: zone.replicas, available: zone.replicas }));
    expect((await ask([now({ ...pending, zones: whole })], 'get')).stdout).not.toContain('not available');
  });
});

describe('the action for a template applied together with its group', () => {
  const held = {
    rule: 'update-strategy',
    outcome: 'wait',
    fact: 'the partition does not hold yet',
    limit: `partition ${holdingPartition}`,
  } as const;

  it('is to apply the group first', () => {
    expect(todoOf(held, 'mimir/kafka')).toEqual([
      'apply the group first, wait until the agent has set the partitions (kubectl rollout-group status mimir/kafka), then apply the new template',
    ]);
    expect(passesText(held, undefined)).toContain('apply the group first, and the new template a few seconds later');
  });

  it('is absent for a write that the API server rejected, because the agent repeats it', () => {
    const earliestMs = Date.parse('2026-03-02T12:00:10Z');
    const rejected = { rule: 'write-accepted', outcome: 'wait', fact: 'the eviction of x did not succeed: denied', earliestMs } as const;
    expect(todoOf(rejected, 'mimir/kafka')).toEqual([]);
    expect(passesText(rejected, earliestMs - 10_000)).toBe('the agent repeats the write at 2026-03-02 12:00 UTC (in 10s)');
  });

  it.each([
    ['prepare-downscale', 'no'],
    ['prepare-downscale', 'wait'],
    ['delayed-downscale', 'no'],
    ['delayed-downscale', 'wait'],
  ] as const)('does not promise that a failed preparation passes: %s %s', (rule, outcome) => {
    const earliestMs = Date.parse('2026-03-02T12:00:10Z');
    const failed = { rule, outcome, fact: 'ingester-zone-a-2 failed to prepare: 500', earliestMs };
    expect(passesText(failed, earliestMs - 10_000)).toBe('the agent calls the endpoint again at 2026-03-02 12:00 UTC (in 10s)');
    const age = { words: 'for 5m', fromMs: earliestMs - 300_000 };
    const delayed = { ...failed, rule: 'delayed-downscale', fact: 'ingester-zone-a-2 has been prepared for 5m', age };
    expect(passesText(delayed, earliestMs - 10_000)).toBe('passes at 2026-03-02 12:00 UTC (in 10s) if nothing else changes');
  });

  it('does not promise that a gate passes, because its next readings may fail', () => {
    const earliestMs = Date.parse('2026-03-02T12:00:10Z');
    const gate = { rule: 'gate', outcome: 'wait', fact: 'errors is 3; 0 of 2 successes in a row, 2 failed', earliestMs } as const;
    expect(passesText(gate, earliestMs - 10_000)).toBe('passes at 2026-03-02 12:00 UTC (in 10s) at the earliest');
    expect(passesText(gate, earliestMs)).toBe('passes when enough consecutive readings of the gate succeeded');
  });

  it('is not shown for other waits of the strategy', () => {
    expect(todoOf({ ...held, limit: 'OnDelete' }, 'mimir/kafka')).toEqual([]);
    expect(passesText({ ...held, limit: 'OnDelete' }, undefined)).toContain('passes when the StatefulSets have the');
    // The second after a write.
    const unobserved = { rule: 'view-complete', outcome: 'wait', fact: 'not observed' } as const;
    expect(passesText(unobserved, undefined)).toContain('when the StatefulSet controller has observed the change, normally');
  });
});

describe('an apply that policy denies', () => {
  const noDownscale = { labels: { 'grafana.com/no-downscale': 'true' } };
  const applied = async (options: Parameters<typeof adoptedObjects>[0], policies: readonly FakeObject[] = []) => {
    const cwd = mkdtempSync(join(tmpdir(), 'apply-'));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    const { status: _status, ...rest } = statefulSetObject('a', { replicas: 0, ...options });
    const { name, namespace, labels, annotations } = rest.metadata;
    writeFileSync(join(cwd, 'a.json'), JSON.stringify({ ...rest, metadata: { name, namespace, labels, annotations } }));
    const { url } = await fakeApiServer([...adoptedObjects(options), ...policies], {});
    return runInProcess(['apply', '-f', 'a.json', '--yes', '--server', url, '-n', 'mimir'], { cwd });
  };

  it('names the change to make, because the cluster has no record of it', async () => {
    const ended = await applied(noDownscale);
    expect(ended.stderr).toContain('policy denies a part of the plan of mimir/ingester');
    expect(ended.stderr).toMatch(/do: {2}change the request, or no-downscale/);
    expect(ended.stderr).not.toContain('explain');
    expect(ended.status).toBe(5);
  });

  it('names the object of a policy in the cluster', async () => {
    const rule = { name: 'busy', actions: ['scaleDown'], effect: 'hold', when: { '>': [{ var: 'target.replicas' }, 0] } };
    const { status, stderr } = await applied({}, [
      {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutPolicy',
        metadata: { name: 'safety', namespace: 'mimir' },
        spec: { targets: { groups: ['ingester'] }, rules: [rule] },
      },
    ]);
    expect([status, stderr]).toEqual([
      5,
      expect.stringContaining(
        'do:  change the request, or safety/busy at RolloutPolicy mimir/safety; to override it: kubectl rollout-group override mimir/ingester --rule safety/busy --zone a --duration',
      ),
    ]);
  });
});

describe('a failed run', () => {
  const published = (onFailure: 'pause' | 'rollback') => {
    const target = { a: newRevision, b: newRevision, c: newRevision };
    const run = runOf({ target, outcome: 'failed', failure: 'gate errors', failedMs: ago(0) });
    const statefulSets = outdatedSets(['a', 'b', 'c'], { updateStrategy: 'RollingUpdate', partition: holdingPartition });
    return soakingWith({ statefulSets, ledgers: [ledgerOf({ run })] }, { rollout: { strategy: 'pinned', onFailure } });
  };

  it.each([
    ['ends the wait at once', 'pause', 6, 'failed before complete'],
    ['does not end the wait if a rollback follows', 'rollback', 8, 'timed out before complete'],
  ] as const)('%s, also if the publication has no room for warnings', async (_, onFailure, status, why) => {
    const decision = { ...published(onFailure), warnings: [] };
    const ended = await ask([now(decision)], 'status ingester --timeout 50ms');
    expect([ended.status, ended.stderr]).toEqual([status, expect.stringContaining(why)]);
  });
});

describe('a permission that the API server denied to the agent', () => {
  const fact = denied.waits[0]?.fact ?? '';

  it.each(['get', 'status ingester --watch=false', 'explain ingester'])('is named by %s', async (line) => {
    const { stdout } = await ask([now(denied)], line);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('may not create pods/eviction in mimir');
    expect(stdout).toMatch(/blocked/i);
    if (line.startsWith('explain')) expect(stdout).toContain('find out why: kubectl rollout-group doctor -n mimir');
  });

  it('blocks the plan of a user who may not review rights, and no other group', async () => {
    const plan = async (decision: PublishedDecision) => {
      const { stdout } = await ask([...adoptedObjects(), now(decision)], 'plan --set image=example.com/server:2 -o json');
      const [{ outcome, waits }] = JSON.parse(stdout).groups;
      return { outcome, waits: waits.map((wait: { rule: string; fact: string }) => `${wait.rule}: ${wait.fact}`) };
    };
    expect(await plan(denied)).toEqual({ outcome: 'blocked', waits: [`agent-access: ${fact}`] });
    expect((await plan({ ...denied, group: 'another' })).waits).not.toContain(`agent-access: ${fact}`);
  });
});

describe('an agent that does not run', () => {
  const none = { hasAgent: false };
  it.each([
    ['expired', [leaseObject('agent-0', Date.now() - 300_000)], /^agent not running: Lease expired 4m\d+s ago$/],
    ['does not exist', [], /^agent not running: no Lease$/],
  ] as const)('lets a plan wait, with its steps, if its Lease %s', async (_name, leases, fact) => {
    const planned = 'plan --set image=example.com/server:2';
    const { groups } = JSON.parse((await ask([...adoptedObjects(), ...leases], `${planned} -o json`, none)).stdout);
    const [{ outcome, waits, waves }] = groups;
    expect({ outcome, waits }).toMatchObject({ outcome: 'waits', waits: [{ rule: 'agent-access', outcome: 'wait' }] });
    expect(waits[0].fact).toMatch(fact);
    expect(waves).not.toEqual([]);
    const { status, stdout } = await ask([...adoptedObjects(), ...leases], planned, none);
    expect(status).toBe(0);
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(/waits.*agent not running.*kubectl rollout-group doctor/);
  });
});

describe('a group without a published decision', () => {
  const agentPod = (...args: readonly string[]): FakeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'agent-0', namespace: 'rollout-group' },
    spec: { serviceAccountName: 'agent', containers: [{ name: 'agent', image: 'agent:1', args }] },
  });
  const outdated = adoptedObjects({ updateRevision: 'rev-2' });
  const unwatched = [...outdated, agentPod('-namespaces=shop')];
  const fact = 'the agent does not watch namespace mimir (it runs with -namespaces=shop)';

  it.each([
    ['plan', 5],
    ['get ingester', 0],
    ['explain ingester', 0],
    ['status ingester --watch=false', 0],
    ['status ingester --timeout 50ms', 8],
    ['status ingester --fail-on-pause', 8],
  ])('is blocked in a namespace that the agent does not watch: %s', async (line, status) => {
    const ended = await ask(unwatched, line);
    expect(ended.status).toBe(status);
    expect(ended.stdout.replaceAll(/\s+/g, ' ')).toContain('agent-access');
    if (line !== 'plan') expect(ended.stderr).toContain(`note: no agent has published mimir/ingester (${fact}); decided by this command\n`);
    expect(`${ended.stdout}${ended.stderr}`).not.toMatch(/Nothing is wrong|No rule blocks|in about|ROLLING|continues/);
    if (line.includes('timeout')) expect(ended.stderr).toContain(`mimir/ingester is blocked: agent-access: ${fact}`);
  });

  it.each(['pause ingester --reason x', 'restart ingester --yes'])('has the same note after a request: %s', async (line) => {
    expect((await ask(unwatched, line)).stderr).toContain(`(${fact})`);
  });

  it('is not blocked if the access of the agent is unknown, and the output says so', async () => {
    const ended = await ask(unwatched, 'get ingester', { forbidden: ['serviceaccounts'] });
    expect(ended.stderr).toContain(`(${fact})`);
    const unknown = await ask(outdated, 'explain ingester', { forbidden: ['serviceaccounts'] });
    expect(unknown).toMatchObject({ status: 0, stdout: expect.not.stringContaining('agent-access') });
    expect(unknown.stderr).toContain(
      'note: no agent has published mimir/ingester (the access of the agent is unknown); decided by this command\n',
    );
  });

  it('is not carried out if no agent runs: status ends at once', async () => {
    const ended = await ask(outdated, 'status ingester', { hasAgent: false });
    expect(ended).toMatchObject({ status: 12, stderr: expect.stringContaining('ended before complete; agent not running: no Lease') });
    const { stdout } = await ask(outdated, 'get ingester', { hasAgent: false });
    expect(stdout).toContain('end unknown: no agent acts on the group\n');
    expect(stdout).not.toContain('decided last');
  });
});
