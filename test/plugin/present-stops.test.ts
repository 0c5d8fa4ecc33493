// What get, status and explain show if a stop began or ended since the last decision of an agent.
import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { done, paused, rolling, waiting } from './live-kit.ts';
import { adoptedObjects, leaseObject, publishedObject } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

const pause = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name: 'pause.ingester', namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', reason: 'read latency' },
};

async function ask(objects: readonly FakeObject[], line: string, options: FakeOptions = {}): Promise<Ended> {
  const { url } = await fakeApiServer(objects, options);
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir']);
}

describe('a stop that started or ended since the last decision of an agent that no longer runs', () => {
  const gone = leaseObject('agent-0', Date.now() - 300_000);
  const old = (decision: PublishedDecision): FakeObject => publishedObject({ ...decision, decidedMs: Date.now() - 600_000 });
  const protection = {
    ...pause,
    metadata: { ...pause.metadata, name: 'protect.b' },
    spec: { ...pause.spec, action: 'protect', zone: 'b' },
  };
  const expired = { ...pause, spec: { ...pause.spec, expires: '2026-01-01T00:00:00Z' } };
  const note = 'note: a stop of mimir/ingester began or ended since; decided by this command\n';
  const lines = ['get ingester', 'get', 'status ingester --watch=false', 'explain ingester'];
  const cluster = (decision: PublishedDecision, ...intents: FakeObject[]) => [...adoptedObjects(), old(decision), gone, ...intents];

  it.each(lines)('is shown with its command if it began: %s', async (line) => {
    const { stdout, stderr } = await ask(cluster(done, pause, protection), line);
    for (const text of line === 'get'
      ? ['paused']
      : [/paused by .* \(read latency\)/, 'kubectl rollout-group resume mimir/ingester', 'protects zone b'])
      expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(text);
    expect(stderr).toMatch(/^note: agent not running: Lease expired/);
    expect(stderr).toContain(note);
  });

  it.each(lines.flatMap((line) => [[line, []] as const, [line, [expired]] as const]))(
    'vanishes if it ended or expired: %s',
    async (line, left) => {
      const { stdout, stderr } = await ask(cluster(paused, ...left), line);
      expect(stdout).not.toMatch(/paused|resume/i);
      expect(stdout).toContain('agent not running');
      expect(stderr).toContain(note);
    },
  );

  it.each(lines)('is in JSON: %s', async (line) => {
    const stopsIn = async (objects: readonly FakeObject[]) => {
      const document = JSON.parse((await ask(objects, `${line} -o json`)).stdout);
      const { decidedBy, phase, stops } = document.groups?.[0] ?? document;
      return { decidedBy, phase, stops: stops.map(({ rule, endsWith }: { rule: string; endsWith: string }) => [rule, endsWith]) };
    };
    const decidedBy = 'this command';
    const stops = [['paused', 'kubectl rollout-group resume mimir/ingester']];
    expect(await stopsIn(cluster(done, pause))).toEqual({ decidedBy, phase: 'Done', stops });
    expect(await stopsIn(cluster(paused))).toEqual({ decidedBy, phase: 'Done', stops: [] });
  });

  it.each(['get ingester -w', 'get -w'])('begins no transition to the published state: %s', async (line) => {
    const { stdout } = await ask([...adoptedObjects({ updateRevision: 'rev-2' }), old(paused), gone], `${line} --timeout 2s`);
    expect(stdout).toMatch(/^\S+ mimir\/ingester rolling .*agent not running.*\n$/);
  });

  it('meets and ends the condition paused', async () => {
    const wait = async (objects: readonly FakeObject[]) => (await ask(objects, 'status ingester --for=paused')).status;
    expect([await wait(cluster(rolling, pause)), await wait(cluster(paused))]).toEqual([0, 12]);
  });

  it('does not change the decision of a running agent, or the output for a user without permission to read its input', async () => {
    const there = [...adoptedObjects(), publishedObject({ ...paused, decidedMs: Date.now() }), leaseObject('agent-0', Date.now())];
    const hidden = { forbidden: ['pods'] };
    for (const [objects, options] of [
      [there, {}],
      [cluster(paused), hidden],
    ] as const) {
      const { stdout, stderr } = await ask(objects, 'get ingester', options);
      expect(stdout).toContain('PAUSED');
      expect(stderr).toContain('note: a stop of mimir/ingester began or ended since the shown decision');
      expect(stderr).not.toContain(note);
    }
  });

  it('is not among the stops that a resume names', async () => {
    const stop = { rule: 'protected', fact: 'bob protects zone b', zones: ['b'], isBlocking: true, endsWith: 'x' };
    const published = { ...paused, stops: [{ ...stop, source: { object: 'RolloutIntent mimir/protect.b' } }] };
    const { stdout } = await ask(cluster(published, pause), 'resume ingester');
    expect(stdout).toMatch(/^mimir\/ingester resumed\n {2}deleted RolloutIntent pause.ingester: .*\n$/);
  });
});

describe('a group on which no agent acts', () => {
  const lines = ['get ingester', 'status ingester --watch=false', 'explain ingester'];
  const [retry, rollback, undo] = ['retry mimir/ingester', 'abort mimir/ingester --rollback', 'undo mimir/ingester'].map(
    (verb) => `kubectl rollout-group ${verb}`,
  ) as [string, string, string];
  const other = 'apply another pod template';

  it.each(
    lines.flatMap((line) => [[line, 'run-failed', [rollback, undo], [undo]] as const, [line, 'rolled-back', [other], [other]] as const]),
  )('%s offers only actions that work without an agent: %s', async (line, rule, alternatives, left) => {
    const stop = { rule, fact: 'it failed', zones: ['a'], isBlocking: true, endsWith: retry, alternatives: [...alternatives] };
    const failed = publishedObject({ ...waiting, decidedMs: Date.now(), phase: 'Failed', stops: [stop] });
    const textWith = async (renewedMs: number) =>
      (await ask([failed, leaseObject('agent-0', renewedMs)], line)).stdout.replaceAll(/\s+/g, ' ');
    const offered = (text: string) => [retry, rollback, undo, other].filter((way) => text.includes(way));
    expect(offered(await textWith(Date.now()))).toEqual([retry, ...alternatives]);
    expect(offered(await textWith(Date.now() - 300_000))).toEqual(left);
  });

  it.each([...lines, 'get'])('%s names the missing access of a running agent', async (line) => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' } };
    const objects = [publishedObject({ ...done, decidedMs: Date.now() - 90_000 }), account];
    const { stdout, stderr } = await ask(objects, line, { isAllowed: () => false });
    const text = 'rollout-group/rollout-group-agent may not list pods in mimir: no group can be rolled out';
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(text);
    expect(stderr).toContain(`note: ${text}; the decision was made 1m`);
    const allowed = await ask(objects, line, { isAllowed: () => true });
    expect(allowed.stdout + allowed.stderr).not.toContain('may not');
  });
});
