// Requests about a wave whose effect depends on the state of the run: two approvals of one wave, early approvals, an undo, and a failed run.
import { describe, expect, it } from 'vitest';
import { act, asked, groupObject, inCanary, oncall, runOf } from './live-requests-kit.ts';

describe('a wave with an approval before its first pod and another after its last pod', () => {
  const spec = Object(groupObject['spec']);
  const [canary, ...later] = spec.rollout.waves;
  const both = { ...canary, before: { approval: { from: ['oncall'] } }, after: { approval: { from: ['owners'] } } };
  const group = { ...groupObject, spec: { ...spec, rollout: { ...spec.rollout, waves: [both, ...later] } } };
  const ben = { user: 'ben', groups: ['owners'] };
  const started = { ...inCanary, run: { ...runOf(inCanary), waveAvailableMs: Date.now() } };
  const answer = (verb: string, stamp: typeof oncall, decision = inCanary) =>
    act(`${verb} ingester --wave canary`, { decision, extra: [group], options: { stamp } });

  it('asks for the first approval before it starts, and says that the end needs another', async () => {
    const approved = await answer('approve', oncall);
    expect([approved.status, approved.kept.length]).toEqual([0, 1]);
    expect(approved.stdout).toContain('the end of wave canary needs another approval from owners after its last pod is replaced\n');
    const refused = await answer('approve', ben);
    expect([refused.status, refused.kept]).toEqual([5, []]);
    expect(refused.stderr).toContain('ben may not approve or reject the start of wave canary of mimir/ingester; nothing was written');
    expect(refused.stderr).toContain('an approver must belong to oncall; the API server reports owners');
  });

  it('asks for the second approval after its last pod', async () => {
    const approved = await answer('approve', ben, started);
    expect([approved.status, approved.kept.length, approved.stdout]).toEqual([0, 1, expect.not.stringContaining('another approval')]);
    const refused = await answer('approve', oncall, {
      ...started,
      run: { ...runOf(started), wave: 1 },
      wave: { name: 'zone-a', index: 1, count: 3 },
    });
    expect([refused.status, refused.stderr]).toEqual([5, expect.stringContaining('wave canary is over; the run is in wave zone-a')]);
  });

  it.each([oncall, ben])('may be rejected by each of its approvers before it starts: %j', async (stamp) => {
    expect((await answer('reject', stamp)).status).toBe(0);
    expect((await answer('reject', { user: 'eve', groups: ['dev'] })).stderr).toContain('an approver must belong to oncall or owners;');
  });

  it('refuses an approval of its end that is too early to count', async () => {
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
  const undo = { ...inCanary, run: { ...runOf(inCanary), kind: 'rollback' as const } };

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
    const run = { ...runOf(inCanary), outcome: 'failed' as const, failure: 'gate errors is 9', failedMs: 1 };
    const promoted = await act('promote ingester --full --yes', { decision: { ...inCanary, phase: 'Failed', run } });
    expect([promoted.status, asked(promoted)]).toEqual([0, [{ group: 'ingester', action: 'promote', runId: run.id }]]);
    expect(promoted.stdout).toContain(`run ${run.id}\n  the run failed; continue it: kubectl rollout-group retry mimir/ingester\n`);
  });
});
