// Requests that repeat, contradict or replace an earlier request, and requests about a wave whose effect depends on the state of the run.
import { describe, expect, it } from 'vitest';
import { encodeLedger, ledgerKey, ledgerLabel, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { rejectionsIn } from '../../engine/rules/approval.ts';
import type { RunningRun } from '../../engine/run/run-state.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { readIntent } from '../../policies/live/intents.ts';
import { ago, hourMs, ledgerOf, minuteMs, runOf } from '../kit/questions.ts';
import { rolling, waiting } from './live-kit.ts';
import { act, apiVersion, asked, groupObject, inCanary, oncall, runOf as publishedRunOf } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

const isIntent = ({ kind }: FakeObject): boolean => kind === 'RolloutIntent';

/** The object as if it had been stored a second earlier. */
function aSecondEarlier({ apiVersion: version, kind, metadata: { name, namespace = '' }, spec: stored }: FakeObject): FakeObject {
  const spec = Object(stored);
  const at = new Date(Date.parse(spec.requestedBy.at) - 1000).toISOString();
  return { apiVersion: version, kind, metadata: { name, namespace }, spec: { ...spec, requestedBy: { ...spec.requestedBy, at } } };
}

/** Sends the requests one after the other to one cluster, each by `user: line`. Returns the outputs and the intents that are left. */
async function inTurn(lines: readonly string[], given: readonly FakeObject[] = []) {
  let extra = given;
  const ended: { readonly status: number; readonly stdout: string; readonly stderr: string }[] = [];
  for (const line of lines) {
    const [user = '', verb = ''] = line.split(/: (.*)/);
    const { objects, ...one } = await act(verb, { extra, options: { stamp: { user, groups: ['oncall'] } } });
    extra = objects.filter(isIntent).map(aSecondEarlier);
    ended.push(one);
  }
  const intents = extra.flatMap((object) => {
    const view = readIntent(object);
    return isUnknown(view) ? [] : [view];
  });
  return { ended, intents, last: ended.at(-1) };
}

const approval = { count: 1, from: ['oncall'] };

describe('the newest answer of a user counts', () => {
  it.each([
    [['anna: reject ingester', 'anna: approve ingester', 'anna: reject ingester'], ['anna reject']],
    [['anna: approve ingester', 'anna: reject ingester', 'anna: approve ingester'], ['anna approve']],
    [['anna: reject ingester', 'anna: reject ingester'], ['anna reject']],
    [
      ['anna: reject ingester', 'ben: approve ingester'],
      ['anna reject', 'ben approve'],
    ],
    [
      ['anna: reject ingester', 'ben: reject ingester', 'anna: approve ingester'],
      ['anna approve', 'ben reject'],
    ],
  ])('after %j', async (lines, left) => {
    const { intents } = await inTurn(lines);
    expect(intents.map(({ requestedBy, action }) => `${requestedBy?.user} ${action}`).sort()).toEqual(left);
    const blocking = rejectionsIn(intents, approval, { nowMs: Date.now() }).map(({ requestedBy }) => `${requestedBy?.user} reject`);
    expect(blocking).toEqual(left.filter((one) => one.endsWith('reject')));
  });

  it('but a rejection that the user may not delete stays, and approve names its end', async () => {
    const extra = (await act('reject ingester')).objects.filter(isIntent).map(aSecondEarlier);
    const forbiddenWrites = extra.map(({ metadata }) => metadata.name);
    const { status, stdout, objects } = await act('approve ingester', { extra, options: { stamp: oncall, forbiddenWrites } });
    expect([status, objects.filter(isIntent).length]).toEqual([0, 2]);
    expect(stdout).toContain(
      `  wave rest stays blocked: anna rejected it. To end it: kubectl rollout-group cancel mimir/ingester ${forbiddenWrites[0]}\n`,
    );
  });

  it('also if it repeats an approval that is too old, because its time is new', async () => {
    const old = { user: 'anna', groups: ['oncall'], at: '2026-03-02T12:00:00Z' };
    const { intents: first } = await inTurn(['anna: approve ingester']);
    const metadata = { name: first[0]?.name ?? '', namespace: 'mimir' };
    const { digest, runId } = first[0] ?? {};
    const stored = { group: 'ingester', action: 'approve', wave: 'rest', digest, runId, requestedBy: old };
    const { intents } = await inTurn(['anna: approve ingester'], [{ apiVersion, kind: 'RolloutIntent', metadata, spec: stored }]);
    expect(intents.map(({ requestedBy }) => (requestedBy?.atMs ?? 0) > Date.parse(old.at))).toEqual([true]);
  });
});

describe('reject of a wave', () => {
  const ledgerWith = async (run: Partial<RunningRun>): Promise<FakeObject> => {
    const [approved] = asked(await act('approve ingester --wave rest', { decision: rolling }));
    const { runId: id, digest: waves } = Object(approved);
    const text = encodeLedger(ledgerOf({ run: runOf({ id, wave: 2, waves, waveStartedMs: ago(hourMs), ...run }) }));
    if (isUnknown(text)) throw new Error(text.unknown);
    const metadata = { name: ledgerName('ingester'), namespace: 'mimir', labels: { [ledgerLabel.key]: ledgerLabel.value } };
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [ledgerKey]: text } };
  };

  it('that has started is denied and names the verbs that stop the rollout', async () => {
    const extra = [await ledgerWith({ lastDisruptionMs: ago(minuteMs) })];
    const { status, stdout, stderr, kept } = await act('reject ingester --wave rest', { decision: rolling, extra });
    expect([status, stdout, kept]).toEqual([5, '', []]);
    expect(stderr).toBe(
      'error: mimir/ingester: nothing was rejected\n  why: wave rest has already started\n  do:  to stop the rollout: kubectl rollout-group pause mimir/ingester, or kubectl rollout-group abort mimir/ingester\n',
    );
  });

  it('that has not started is stored', async () => {
    const { status, kept } = await act('reject ingester --wave rest', { decision: waiting, extra: [await ledgerWith({})] });
    expect([status, kept.length]).toEqual([0, 1]);
  });
});

describe('a request for the same target', () => {
  it.each([
    ['pause ingester --duration 20s', 'anna: pause ingester --reason disk', 'the pause by anna (disk) without an end', 'pause.ingester'],
    ['pause ingester --duration 20s', 'anna: pause ingester --duration 2h', /the pause by anna that ends at .* UTC/, 'pause.ingester'],
    [
      'protect ingester --duration 1h',
      'anna: protect ingester --duration 2h',
      /the protection by anna that ends at .* UTC/,
      'protect.ingester.',
    ],
  ])('%s does not shorten the request of another user: %s', async (line, earlier, text, name) => {
    const { last, intents } = await inTurn([earlier, `ben: ${line}`]);
    expect([last?.status, last?.stdout, intents.map(({ requestedBy }) => requestedBy?.user)]).toEqual([5, '', ['anna']]);
    expect(last?.stderr).toMatch(text);
    expect(last?.stderr).toContain(`kubectl rollout-group cancel mimir/ingester ${name}`);
  });

  it('names the request of another user that it replaces', async () => {
    const { last, intents } = await inTurn(['anna: pause ingester --reason disk --duration 1h', 'ben: pause ingester']);
    expect([last?.status, intents.map(({ requestedBy, expiresMs }) => [requestedBy?.user, expiresMs])]).toEqual([0, [['ben', undefined]]]);
    expect(last?.stdout).toMatch(/\n {2}it replaces the pause by anna \(disk\) that ends at .* UTC\n$/);
  });

  it.each([
    ['of the same user', ['anna: pause ingester', 'anna: pause ingester --duration 1h']],
    ['that is equal', ['anna: pause ingester --reason disk', 'ben: pause ingester --reason disk']],
  ])('replaces nothing of another user: one %s', async (_name, lines) => {
    const { last, intents } = await inTurn(lines);
    expect([last?.status, intents.map(({ requestedBy }) => requestedBy?.user)]).toEqual([0, ['anna']]);
    expect(last?.stdout).not.toContain('replaces');
  });

  it('names the requester of an equal request, and reports no change', async () => {
    const { last } = await inTurn(['anna: pause ingester --zone b --reason disk', 'ben: pause ingester --zone b --reason disk']);
    expect(last?.stdout).toBe('mimir/ingester zone b: the pause by anna (disk) without an end is in force already; nothing was changed\n');
  });

  it('deletes an expired request without a message', async () => {
    const requestedBy = { ...oncall, at: '2026-03-02T12:00:00Z' };
    const spec = { group: 'ingester', action: 'pause', expires: '2026-03-02T13:00:00Z', requestedBy };
    const stored = { apiVersion, kind: 'RolloutIntent', metadata: { name: 'pause.ingester', namespace: 'mimir' }, spec };
    const { last } = await inTurn(['ben: pause ingester --duration 1h'], [stored]);
    expect([last?.status, last?.stdout.includes('replaces')]).toEqual([0, false]);
  });
});

describe('a wave with an approval before its first pod and another after its last pod', () => {
  const spec = Object(groupObject['spec']);
  const [canary, ...later] = spec.rollout.waves;
  const both = { ...canary, before: { approval: { from: ['oncall'] } }, after: { approval: { from: ['owners'] } } };
  const group = { ...groupObject, spec: { ...spec, rollout: { ...spec.rollout, waves: [both, ...later] } } };
  const ben = { user: 'ben', groups: ['owners'] };
  const started = { ...inCanary, run: { ...publishedRunOf(inCanary), waveAvailableMs: Date.now() } };
  const answer = (verb: string, stamp: typeof oncall, decision = inCanary) =>
    act(`${verb} ingester --wave canary`, { decision, extra: [group], options: { stamp } });

  it('requires the first approval before it starts, and reports that the end needs another', async () => {
    const approved = await answer('approve', oncall);
    expect([approved.status, approved.kept.length]).toEqual([0, 1]);
    expect(approved.stdout).toContain('the end of wave canary needs another approval from owners after its last pod is replaced\n');
    const refused = await answer('approve', ben);
    expect([refused.status, refused.kept]).toEqual([5, []]);
    expect(refused.stderr).toContain('ben may not approve or reject the start of wave canary of mimir/ingester; nothing was written');
    expect(refused.stderr).toContain('an approver must belong to oncall; the API server reports owners');
  });

  it('requires the second approval after its last pod', async () => {
    const approved = await answer('approve', ben, started);
    expect([approved.status, approved.kept.length, approved.stdout]).toEqual([0, 1, expect.not.stringContaining('another approval')]);
    const refused = await answer('approve', oncall, {
      ...started,
      run: { ...publishedRunOf(started), wave: 1 },
      wave: { name: 'zone-a', index: 1, count: 3 },
    });
    expect([refused.status, refused.stderr]).toEqual([5, expect.stringContaining('wave canary is over; the run is in wave zone-a')]);
  });

  it.each([oncall, ben])('may be rejected by each of its approvers before it starts: %j', async (stamp) => {
    expect((await answer('reject', stamp)).status).toBe(0);
    expect((await answer('reject', { user: 'eve', groups: ['dev'] })).stderr).toContain('an approver must belong to oncall or owners;');
  });

  it('denies an approval of its end that is too early to count', async () => {
    const { before: _before, ...end } = both;
    const waves = [canary, { ...later[0], after: end.after }, later[1]];
    const extra = [{ ...group, spec: { ...spec, rollout: { ...spec.rollout, waves } } }];
    const early = await act('approve ingester --wave zone-a', { decision: inCanary, extra, options: { stamp: ben } });
    expect([early.status, early.kept, early.stderr]).toEqual([
      5,
      [],
      'error: mimir/ingester: nothing was approved\n  why: an approval of the end of wave zone-a counts only after its last pod is replaced\n  do:  approve when mimir/ingester waits for the approval: kubectl rollout-group explain mimir/ingester\n',
    ]);
  });
});

describe('an undo', () => {
  const undo = { ...inCanary, run: { ...publishedRunOf(inCanary), kind: 'rollback' as const } };

  it('is not promoted over a soak and gates that it skips, and needs no approval', async () => {
    const rollback = { ...undo, run: { ...undo.run, rolledBack: { revisions: undo.run.previous, because: 'aborted' } } };
    const why = 'wave canary has no soak and no gate left; a return to the previous template skips soaks and gates (skipOnRollback)';
    for (const decision of [undo, rollback]) {
      const refused = await act('promote ingester', { decision });
      expect([refused.status, refused.kept, refused.stderr]).toEqual([5, [], expect.stringContaining(`why: ${why}\n`)]);
    }
    const approved = await act('approve ingester --wave rest', { decision: undo });
    expect([approved.status, approved.kept, approved.stderr]).toEqual([
      5,
      [],
      expect.stringContaining('needs no approval (skipOnRollback)'),
    ]);
  });
});

describe('a promotion of a failed run', () => {
  it('counts after a retry, which it names', async () => {
    const run = { ...publishedRunOf(inCanary), outcome: 'failed' as const, failure: 'gate errors is 9', failedMs: 1 };
    const promoted = await act('promote ingester --full --yes', { decision: { ...inCanary, phase: 'Failed', run } });
    expect([promoted.status, asked(promoted)]).toEqual([0, [{ group: 'ingester', action: 'promote', runId: run.id }]]);
    expect(promoted.stdout).toContain(`run ${run.id}\n  the run failed; continue it: kubectl rollout-group retry mimir/ingester\n`);
  });
});
