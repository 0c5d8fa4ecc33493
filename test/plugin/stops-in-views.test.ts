import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../engine/decide/decide.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { groupStatus } from '../../engine/publish/status.ts';
import { digestOfRule } from '../../engine/run/requests.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { group, wave } from '../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, statefulSet } from '../kit/objects.ts';
import { ago, exception, freeze, hourMs, intent, ledgerOf, policy, policyRule, runOf } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';
import { fakeApiServer } from './api-server.ts';
import { type Ended, runInProcess } from './in-process.ts';
import { publishedObject, requesterWebhook } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';
import {
  afterRun,
  before,
  command,
  failure,
  name,
  otherTemplate,
  outdated,
  type Row,
  rowOf,
  rows,
  run,
  saying,
  zones,
} from './stop-rows.ts';

function published({ overrides, definition = group({ zones }) }: Row): PublishedDecision {
  const snapshot = snapshotOf({ groups: [definition], ...overrides });
  const decision = decideGroup(snapshot, definition);
  return publishedDecision({ group: definition, decision, snapshot, atMs: Date.now(), leader: 'agent-0' });
}

/** The intents of the decision are no objects here. Whoever may not read them is told what the agent published. */
const options = {
  missing: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutruns', 'zoneawarepoddisruptionbudgets'],
  forbidden: ['rolloutintents'],
};

async function endOf(line: string, decision: PublishedDecision, ...others: readonly FakeObject[]): Promise<Ended> {
  const { url } = await fakeApiServer([publishedObject(decision), ...others], options);
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
}

async function shownBy(line: string, decision: PublishedDecision, ...others: readonly FakeObject[]): Promise<string> {
  return (await endOf(line, decision, ...others)).stdout.replace(/\s+/g, ' ');
}

describe.each(rows)('$stop', (row) => {
  const decision = published(row);

  it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])(
    '%s names requester, reason, end and the command that ends it',
    async (line) => {
      const shown = await shownBy(line, decision);
      for (const text of [row.fact, row.until ?? '', ...row.commands]) expect(shown).toContain(text);
      expect(shown).not.toContain('Nothing is wrong');
    },
  );

  it('get of all groups names requester and reason', async () => {
    expect(await shownBy('get', decision)).toContain(row.inList ?? row.fact);
  });
});

it.each(['rejection of the wave', 'rejection of a later wave'])('a %s has its name in the condition and in narrow tables', async (stop) => {
  const decision = published(rowOf(stop));
  const [condition] = groupStatus(decision).conditions.filter(({ type }) => type === 'Stopped');
  expect(condition).toMatchObject({ reason: 'Rejected', message: expect.stringContaining('kim rejected wave') });
  expect(await shownBy('get --width 80', decision)).toContain('rejected by kim');
});

describe('explain', () => {
  it('resumes only the paused zone', async () => {
    const shown = await shownBy('explain ingester', published(rowOf('pause of a zone during a rollout')));
    expect(shown).not.toMatch(/resume mimir\/ingester(?! --zone a)/);
  });

  it('names an undo in its headline without a rollout', async () => {
    const undone = published({
      ...rowOf('undo while nothing moves'),
      overrides: saying('undo', { undone: [{ zone: 'a', revision: 'rev-9' }] }),
    });
    expect(await shownBy('explain ingester', undone)).toMatch(
      /DONE.* Nothing is left to do\. Stopped: kim \(INC-441\) undid the revisions rev-9/,
    );
  });

  it.each(['get', 'status --watch=false', 'explain'])(
    'names the ways on from an undone revision that %s shows, also undo',
    async (verb) => {
      const shown = await shownBy(`${verb} ingester`, published(rowOf('undo during a rollout')));
      for (const way of [command(`cancel ${name} undo.ingester`), command(`undo ${name}`), otherTemplate]) expect(shown).toContain(way);
    },
  );

  it('names the rollback in its headline, and get the revision that stays', async () => {
    const back = published(rowOf('abort --rollback'));
    expect(await shownBy('explain ingester', back)).toMatch(
      /is ROLLED BACK.*\. Every pod keeps its earlier revision\. Stopped: the update revision is blocked, because it was rolled back: aborted by kim/,
    );
    const tree = await shownBy('get ingester', back);
    expect([tree.includes('nothing to do'), tree.includes('keep the revision before the rollback')]).toEqual([false, true]);
    expect(tree).toMatch(/^mimir\/ingester ROLLED BACK 6 of 6 returned/);
    expect(await shownBy('get', back)).toMatch(/ingester RolledBack /);
  });
});

describe('several earlier undos', () => {
  const undo = (revision: string) => intent({ name: `undo.${revision}`, action: 'undo', undone: [{ zone: 'a', revision }] });
  const overrides = { intents: ['rev-7', 'rev-8', 'rev-9'].map(undo) };
  const text = '3 requests block revisions that were undone: undo.rev-7, undo.rev-8, undo.rev-9';

  it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])('are one line of %s', async (line) => {
    const shown = await shownBy(line, published({ ...rowOf('undo while nothing moves'), overrides }));
    expect(shown).toContain(`${text}. To end it: ${command(`cancel ${name} REQUEST`)}`);
    expect(shown).not.toContain('undid the revisions');
  });

  it('are one stop in the list of groups', async () => {
    const shown = await shownBy('get', published({ ...rowOf('undo while nothing moves'), overrides }));
    expect([shown.includes(`undone: ${text}`), shown.includes('other stop')]).toEqual([true, false]);
  });
});

describe('status after a rollback', () => {
  const back = published(rowOf('abort --rollback'));
  const todo = `To end it: ${command(`retry ${name}`)}, or ${command(`undo ${name}`)}, or ${otherTemplate}`;

  it.each(['complete', 'zone=a', 'wave=1'])('ends with 6 before %s, and names the next step', async (condition) => {
    const { status, stdout, stderr } = await endOf(`status ingester --for ${condition} --timeout 5s`, back);
    expect([status, stdout]).toEqual([
      6,
      expect.stringMatching(/ rolledback .* stops=rolled-back "rolled-back: the update revision is blocked, because it was rolled/),
    ]);
    expect(stderr).toContain(
      `failed before ${condition.replace('=', ' ')}; mimir/ingester keeps its earlier revision: the update revision is blocked, because it was rolled back: aborted by kim (INC-441). ${todo}\n`,
    );
    const once = await endOf(`status ingester --for ${condition} --watch=false`, back);
    expect([once.status, once.stdout.replace(/\s+/g, ' ')]).toEqual([6, expect.stringContaining(todo)]);
    expect(once.stdout).not.toContain('done\n  stopped');
  });
});

describe('a policy rule that waits for approvals', () => {
  const fourEyes = policyRule({ name: 'both', effect: 'requireApproval', approval: { from: ['oncall'], count: 2 } });
  const asked: SnapshotOverrides = { statefulSets: outdated, policies: [policy({ rules: [fourEyes] })] };
  const digest = digestOfRule(policy(), fourEyes);
  const back: RunState = { ...run, kind: 'rollback', outcome: 'running', rolledBack: { revisions: { a: newRevision }, because: failure } };
  const approveRule = command(`approve ${name} --rule safety/both`);

  it.each<[string, SnapshotOverrides, string]>([
    ['alone', asked, '0 of 2'],
    [
      'after one approval',
      { ...afterRun({ ...run, outcome: 'running' }), ...asked, intents: [intent({ rule: 'safety/both', digest })] },
      '1 of 2',
    ],
    ['under an undo', { ...asked, ...saying('undo', { undone: [{ zone: 'a', revision: 'rev-9' }] }) }, '0 of 2'],
    ['during a rollback', { ...afterRun(back), ...asked }, '0 of 2'],
  ])('needs a user, and explain names the command: %s', async (_, overrides, count) => {
    const shown = await shownBy(
      'explain ingester',
      published({ ...rowOf('hold by policy during a rollout'), overrides }),
      requesterWebhook,
    );
    expect(shown).toContain('. A person must act.');
    expect(shown).toContain(`${count} approvals from oncall`);
    expect(shown).toContain('passes when the rule has the required approvals');
    expect(shown).toContain(`to approve: ${approveRule}`);
    expect(shown).not.toMatch(/continues by itself|condition of the rule/);
  });

  it('is named next to the wave if both wait', async () => {
    const row = { ...rowOf('rejection of the wave'), overrides: { ...afterRun({ ...run, outcome: 'running' }), ...asked } };
    const shown = await shownBy('explain ingester', published(row), requesterWebhook);
    for (const flag of ['--wave first', '--rule safety/both']) expect(shown).toContain(`to approve: ${command(`approve ${name} ${flag}`)}`);
  });
});

describe('a denial of a later zone', () => {
  const definition = group({ zones: ['a', 'b', 'c'], rollout: { waves: [wave('first', ['a']), wave('rest', ['b', 'c'], { before })] } });
  const rules = [policyRule({ name: 'shut', effect: 'deny', when: { '==': [{ var: 'target.zone' }, 'c'] } })];
  const of = (...updated: readonly string[]) =>
    ['a', 'b', 'c'].map((zone) => {
      const set = { name: `ingester-zone-${zone}` };
      if (!updated.includes(zone)) return outdatedStatefulSet(set);
      return statefulSet({ ...set, status: { currentRevision: newRevision, updateRevision: newRevision } });
    });
  const inRun = { ledgers: [ledgerOf({ run: runOf({ wave: 1, lastDisruptionMs: ago(hourMs), waveStartedMs: ago(60_000) }) })] };

  it.each<[string, SnapshotOverrides]>([
    ['while nothing moves', { statefulSets: of('a', 'b', 'c') }],
    ['while another zone rolls', { statefulSets: of() }],
    ['while the next wave waits for approval', { statefulSets: of('a'), ...inRun }],
  ])('is shown %s', async (when, overrides) => {
    const decision = published({ ...rowOf('abort'), definition, overrides: { ...overrides, policies: [policy({ rules })] } });
    expect(decision.waits.map(({ rule }) => rule)).toEqual(when.endsWith('approval') ? ['approval'] : []);
    for (const line of ['get ingester', 'status ingester --watch=false', 'explain ingester']) {
      const shown = await shownBy(line, decision);
      expect(shown).toContain('safety/shut: the condition is true');
      expect(shown).toContain(command(`override ${name} --rule safety/shut --zone c`));
      expect(shown).not.toContain('Nothing is wrong');
    }
    expect(groupStatus(decision).conditions.find(({ type }) => type === 'Stopped')?.message).toContain('safety/shut');
  });
});

describe('exceptions that permit a rollout', () => {
  const requestedBy = { user: 'admin', atMs: kitNowMs };
  const decision = published({
    ...rowOf('window during a rollout'),
    overrides: {
      statefulSets: outdated,
      policies: [policy({ windows: [freeze()], rules: [policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' })] })],
      exceptions: [
        exception('safety/moves', { name: 'moves', requestedBy, reason: 'hotfix', expiresMs: kitNowMs + 240_000 }),
        exception('window', { name: 'window', requestedBy }),
      ],
    },
  });
  const byRule =
    'safety/moves: the storage moves; permitted by exception moves of admin for any amount in all zones until 2026-03-02 12:04 UTC (passed) (hotfix)';
  const byWindow = 'permitted by exception window of admin for any amount in all zones until 2026-03-02 13:00 UTC (passed) (see CHG-1)';

  it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])(
    'are in %s with requester, reason and end',
    async (line) => {
      const shown = await shownBy(line, decision);
      for (const text of [byRule, byWindow]) expect(shown).toContain(text);
      for (const one of ['moves', 'window']) expect(shown).toContain(`kubectl rollout-group cancel mimir/ingester ${one}`);
      expect(shown).not.toMatch(/Nothing is wrong|No rule blocks/);
    },
  );

  it('do not repeat the window that still stops other zones', async () => {
    const exceptions = [exception('window', { name: 'window', requestedBy, zone: 'a' })];
    const overrides = { statefulSets: outdated, policies: [policy({ windows: [freeze()] })], exceptions };
    const ofZone = published({ ...rowOf('window during a rollout'), overrides });
    expect(ofZone.stops).toMatchObject([{ rule: 'window', zones: ['b'] }]);
    for (const line of ['get ingester', 'status ingester --watch=false', 'explain ingester'])
      expect(await shownBy(line, ofZone)).toContain(` window: ${byWindow.replace('in all zones', 'in zone a')}`);
  });

  it('are in the list of all groups, in the headline of explain and in the condition Progressing', async () => {
    expect(await shownBy('get', decision)).toContain(`${byRule} and 1 other exception`);
    expect(await shownBy('explain ingester', decision)).toContain(
      'The group continues only because of 2 exceptions; the first ends at 2026-03-02 12:04 UTC',
    );
    expect(await shownBy('explain ingester', decision)).toContain(` override ${byRule}`);
    expect(await shownBy('get --width 80', decision)).toContain(' 2 exceptions ');
    const { conditions } = groupStatus(decision);
    expect(conditions.find(({ type }) => type === 'Progressing')?.message).toContain('until 2026-03-02T12:04:00.000Z (hotfix)');
  });
});

describe('exceptions that permit nothing at the moment', () => {
  const requestedBy = { user: 'anna', atMs: kitNowMs };
  const withEnd = (expiresMs: number): PublishedDecision =>
    published({
      ...rowOf('window during a rollout'),
      overrides: { exceptions: [exception('no-downscale', { name: 'open', zone: 'a', requestedBy, reason: 'cost', expiresMs })] },
    });
  const text = 'no-downscale: exception open of anna permits any amount in zone a until 2099-01-01 00:00 UTC (in ';
  const decision = withEnd(Date.UTC(2099, 0, 1));

  it.each(['get ingester', 'status ingester --watch=false', 'explain ingester'])(
    'are in %s with the command that ends them',
    async (line) => {
      const shown = await shownBy(line, decision);
      expect(shown).toContain(text);
      expect(shown).toContain('(cost); no step needs it now');
      expect(shown).toContain('kubectl rollout-group cancel mimir/ingester open');
    },
  );

  it('are in the list of all groups, also in 80 columns, and in JSON', async () => {
    expect(await shownBy('get', decision)).toContain(text);
    expect(await shownBy('get --width 80', decision)).toContain(' 1 exception ');
    expect(await shownBy('get ingester -o json', decision)).toContain('"unusedExceptions"');
  });

  it('are not in the views after their end', async () => {
    const ended = withEnd(kitNowMs + 1);
    expect(ended.unusedExceptions).toHaveLength(1);
    for (const line of ['get', 'get ingester', 'status ingester --watch=false', 'explain ingester'])
      expect(await shownBy(line, ended)).not.toContain('open');
  });
});

describe('several stops of one kind', () => {
  const stops = ['admin', 'bob'].map((user, index) =>
    intent({
      name: `pause-${user}`,
      action: 'pause',
      requestedBy: { user, groups: [], atMs: kitNowMs },
      ...(index === 0 ? {} : { zone: 'a' }),
    }),
  );
  const overrides = { statefulSets: outdated, intents: [...stops, intent({ name: 'protect', action: 'protect' })] };
  const decision = published({ ...rowOf('pause of the group during a rollout'), overrides });

  it('are counted in the list of all groups, next to the requester of the first stop, also in 80 columns', async () => {
    expect(await shownBy('get --width 80', decision)).toContain('paused by admin; +2 stops');
    expect(await shownBy('get', decision)).toContain('and 1 other stop');
  });
});

describe('a window that a scale-down waits for', () => {
  it('is named once, for the action that waits', async () => {
    const overrides = { policies: [policy({ windows: [freeze({ actions: ['rollout', 'scaleDown'] })] })] };
    const definition = group({ zones: [{ name: 'a', replicas: { kind: 'count', count: 2 } }, 'b', 'c'] });
    const decision = published({ stop: 'window', fact: '', commands: [], overrides, definition });
    expect(decision.stops).toMatchObject([{ rule: 'window', fact: 'a deny window blocks rollout' }]);
    for (const line of ['get ingester', 'get', 'explain ingester', 'status ingester --timeout 50ms']) {
      const shown = await shownBy(line, decision);
      expect([line, shown]).toEqual([line, expect.stringContaining('a deny window blocks scaleDown')]);
      expect([line, shown]).toEqual([line, expect.not.stringContaining('blocks rollout')]);
    }
  });
});

describe('status that ends with its timeout', () => {
  const when = { '==': [{ var: 'target.zone' }, 'a'] };
  const rule = (more: Parameters<typeof policyRule>[0]) => ({
    ...rowOf('hold by policy during a rollout'),
    overrides: { statefulSets: outdated, policies: [policy({ rules: [policyRule({ name: 'moves', effect: 'hold', ...more })] })] },
  });

  it.each([
    [
      rowOf('hold by policy during a rollout'),
      8,
      'is stopped until a person acts: safety/moves: the storage moves. To end it: kubectl rollout-group override',
    ],
    [rule({ when }), 8, 'is stopped until a person acts'],
    [rule({ when: { '>=': [{ var: 'target.replicas' }, 0] } }), 7, 'the rollout waits: safety/moves: '],
    [rule({ effect: 'requireApproval' }), 8, 'waits for an approval'],
    [rowOf('rejection of the wave'), 8, `To end it: ${command(`cancel ${name} reject.ingester`)}`],
    [rowOf('undo during a rollout'), 8, `To end it: ${command(`cancel ${name} undo.ingester`)}`],
    [
      { ...rowOf('protection during a rollout'), overrides: { statefulSets: outdated, intents: [intent({ action: 'protect' })] } },
      8,
      'is stopped',
    ],
    [rowOf('protection during a rollout'), 7, 'the rollout waits: protected: '],
    [
      rowOf('window during a rollout'),
      7,
      'the rollout waits: window: a deny window blocks rollout (limit: freeze); windows allow the action from 2026-03-02 13:00 UTC',
    ],
  ])('reports whether a user must act: %#', async (row, exitCode, text) => {
    const decision = published(row);
    const ended = await endOf('status ingester --timeout 50ms', decision, requesterWebhook);
    expect([ended.status, ended.stderr]).toEqual([exitCode, expect.stringContaining(text)]);
    const { conditions } = groupStatus(decision);
    expect(conditions.find(({ type }) => type === 'Progressing')?.status).toBe(exitCode === 8 ? 'False' : 'True');
    expect(conditions.find(({ type }) => type === 'Degraded')?.message).not.toContain('person');
  });

  it('names the setting that pauses, which resume does not end', async () => {
    const sources = { 'zones.a.paused': { object: `RolloutGroup ${name}`, field: 'spec.members.zones[0].paused' } };
    const definition = group({ zones: [{ name: 'a', paused: true }], sources });
    const held = published({ ...rowOf('pause by settings during a rollout'), definition });
    expect((await endOf('status ingester --timeout 50ms', held)).stderr).toContain(
      'is paused. To end it: kubectl edit rolloutgroup ingester -n mimir, and set paused: false (spec.members.zones[0].paused)',
    );
  });
});

describe('missing webhooks', () => {
  const unenforced = 'the configurations differ from the installation. Run: kubectl rollout-group install';

  it.each(['get', 'get ingester', 'status ingester --watch=false', 'explain ingester'])('are named by %s', async (line) => {
    expect((await endOf(line, { ...published(rowOf('window while nothing moves')), unenforced })).stderr).toContain(unenforced);
  });

  it('are named with the command that repairs them, however many problems there are', () => {
    const snapshot = snapshotOf({ groups: [group({ zones })] });
    const decision = decideGroup(snapshot, group({ zones }));
    const long = unenforced.replace('differ', `differ (${'matchConditions of webhook pinned.rollout-group.dev was changed; '.repeat(20)})`);
    const given = publishedDecision({ group: group({ zones }), decision, snapshot, atMs: kitNowMs, unenforced: long });
    expect(given.unenforced).toMatch(/^the configurations differ .*….* Run: kubectl rollout-group install$/);
  });

  it('prevent explain from naming an approval that would be denied', async () => {
    const waiting = published({ ...rowOf('rejection of the wave'), overrides: afterRun({ ...run, outcome: 'running' }) });
    const problem = 'no webhook records requesters, so no approval counts: MutatingWebhookConfiguration rollout-group does not exist';
    for (const line of ['get', 'get ingester', 'status ingester --watch=false']) expect(await shownBy(line, waiting)).toContain(problem);
    const shown = await shownBy('explain ingester', waiting);
    expect(shown).toContain(problem);
    expect(shown).toContain('find out why: kubectl rollout-group doctor -n mimir');
    expect(shown).not.toContain('rollout-group approve');
  });
});

describe('a very long reason', () => {
  it.each(['get', 'get ingester', 'status ingester --watch=false', 'explain ingester'])('keeps 80 columns in %s', async (line) => {
    const reason = `read latency\nhttps://example.com/${'incident/'.repeat(20)} ${'and more '.repeat(30)}`;
    const { url } = await fakeApiServer(
      [publishedObject(published({ ...rowOf('abort'), overrides: saying('pause', { reason }) }))],
      options,
    );
    const { stdout } = await runInProcess([...line.split(' '), '--width', '80', '--server', url, '-n', 'mimir'], {});
    expect(stdout.split('\n').filter((shown) => shown.length > 80)).toEqual([]);
    expect(stdout).toContain(line === 'get' ? 'paused' : 'read latency');
  });
});
