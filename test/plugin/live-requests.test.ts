import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { digestOfWaves } from '../../engine/run/requests.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { definition, rolledBack, rolling, waiting } from './live-kit.ts';
import { adoptedObjects, leaseObject, ledgerObject } from './live-objects.ts';
import { act, apiVersion, asked, failed, groupObject, history, inCanary, oncall, over, runOf } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

it('a plan names a write that the API server rejects', async () => {
  const fact = 'the change of ingester-zone-a to 5 replicas did not succeed: exceeded quota';
  const wait = { rule: 'write-accepted', outcome: 'wait', fact, sinceMs: 0, zones: ['a'] } as const;
  const { stderr } = await act('plan --set a.replicas=5 --group ingester', { decision: { ...waiting, waits: [wait] } });
  expect(stderr).toContain(`note: mimir/ingester: ${fact}; the agent repeats the write\n`);
});

describe('approve', () => {
  it('approves the waiting wave for the current run, as the verified requester', async () => {
    const acted = await act('approve ingester --reason "canary is fine" --duration 2h');
    expect([acted.status, acted.stderr]).toEqual([0, '']);
    expect(asked(acted)).toEqual([
      {
        group: 'ingester',
        action: 'approve',
        runId: '4f1c9a02',
        wave: 'rest',
        digest: digestOfWaves(definition),
        reason: 'canary is fine',
        expires: expect.stringMatching(/Z$/),
      },
    ]);
    expect(acted.stdout).toMatch(
      /^mimir\/ingester: wave rest approved by anna until .* UTC \(canary is fine\)\n {2}valid for run 4f1c9a02 and while the waves are unchanged; 2 different people must approve\n$/,
    );
  });

  it('reports that a rejection by another user still blocks, and names its end', async () => {
    const rejection = (user: string) => ({
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: `reject.${user}`, namespace: 'mimir' },
      spec: {
        group: 'ingester',
        action: 'reject',
        wave: 'rest',
        runId: '4f1c9a02',
        reason: 'canary is bad',
        requestedBy: { user, groups: ['oncall'], at: '2026-03-02T12:00:00Z' },
      },
    });
    const { status, stdout } = await act('approve ingester', { extra: ['anna', 'ben'].map(rejection) });
    expect([status, stdout.split('\n')[2]]).toEqual([
      0,
      '  wave rest stays blocked: ben (canary is bad) rejected it. To end it: kubectl rollout-group cancel mimir/ingester reject.ben',
    ]);
    expect(stdout).not.toContain('reject.anna');
  });

  it('fails and writes nothing if the requester is not verified', async () => {
    const acted = await act('approve ingester', { options: {} });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('no webhook records the requester');
  });

  it('fails for a requester outside the approver groups', async () => {
    const acted = await act('approve ingester', { options: { stamp: { user: 'eve', groups: ['dev'] } } });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('an approver must belong to oncall; the API server reports dev');
  });

  it('fails without an agent, because only the agent knows the run', async () => {
    const server = await fakeApiServer([groupObject, ...adoptedObjects()], { stamp: oncall });
    const ended = await runInProcess(['approve', 'ingester', '--wave', 'rest', '--server', server.url, '-n', 'mimir'], {});
    expect([ended.status, server.writes]).toEqual([12, []]);
    expect(ended.stderr).toContain('only the agent knows its current run');
  });

  it('approves the policy rule that waits', async () => {
    const rule = { name: 'change', actions: ['rollout'], effect: 'requireApproval' };
    const policy: FakeObject = {
      apiVersion,
      kind: 'RolloutPolicy',
      metadata: { name: 'freeze', namespace: 'mimir' },
      spec: { targets: { all: true }, rules: [rule] },
    };
    const waits = [{ rule: 'freeze/change', outcome: 'wait', fact: '0 of 1 approvals', sinceMs: 0, zones: ['b'] } as const];
    expect(asked(await act('approve ingester', { decision: { ...waiting, waits }, extra: [policy] }))).toEqual([
      { group: 'ingester', action: 'approve', runId: '4f1c9a02', rule: 'freeze/change', digest: expect.stringMatching(/^[0-9a-f]{32}$/) },
    ]);
  });

  it('ends after an hour by default for a rule that does not concern rollouts', async () => {
    const rule = { name: 'drained', actions: ['scaleDown'], effect: 'requireApproval' };
    const policy: FakeObject = {
      apiVersion,
      kind: 'RolloutPolicy',
      metadata: { name: 'safety', namespace: 'mimir' },
      spec: { targets: { all: true }, rules: [rule] },
    };
    const acted = await act('approve ingester --rule safety/drained --duration 1h', { decision: waiting, extra: [policy] });
    expect(asked(acted)).toEqual([
      {
        group: 'ingester',
        action: 'approve',
        rule: 'safety/drained',
        digest: expect.stringMatching(/^[0-9a-f]{32}$/),
        expires: expect.stringMatching(/Z$/),
      },
    ]);
    const { stderr } = await act('approve ingester --rule safety/drain', { decision: waiting, extra: [policy] });
    expect(stderr).toContain('no RolloutPolicy has a rule safety/drain\n  do:  the rules that need an approval: safety/drained\n');
    const usual = await act('approve ingester --rule safety/drained', { decision: waiting, extra: [policy] });
    const expires = (given: typeof usual): number => Date.parse((asked(given)[0] as { readonly expires: string }).expires);
    expect(Math.abs(expires(usual) - expires(acted))).toBeLessThan(60_000);
  });

  it('uses the published digest if the rule waits, and otherwise the digest of the definition', async () => {
    const digests = async (decision: PublishedDecision): Promise<readonly unknown[]> =>
      asked(await act('approve ingester --wave rest', { decision })).map((spec) => Object(spec).digest);
    const [published] = await digests(waiting);
    const [written] = await digests(rolling);
    expect([published, written]).toEqual([digestOfWaves(definition), expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(written).not.toBe(published);
  });

  it.each([
    ['approve ingester --wave nonsense', waiting, 3],
    ['approve ingester --wave zone-a', waiting, 5],
    ['approve ingester --wave rest --rule a/b', waiting, 3],
    ['approve ingester', rolling, 5],
    ['approve ingester --wave rest', over, 5],
    ['approve nonsense', waiting, 10],
    ['reject ingester --wave nonsense', waiting, 3],
    ['reject ingester --rule a/b', waiting, 3],
  ])('%s writes no request', async (line, decision, status) => {
    const acted = await act(line, { decision });
    expect([acted.status, acted.kept]).toEqual([status, []]);
  });
});

it.each(['approve', 'reject'])('%s of a completed wave writes no request', async (verb) => {
  const waves = Object(groupObject['spec']).rollout.waves as readonly object[];
  const approval = { count: 1, from: ['oncall'] };
  const first = waves.map((one, index) => (index === 0 ? { ...one, before: { approval } } : one));
  const spec = Object(groupObject['spec']);
  const extra = [{ ...groupObject, spec: { ...spec, rollout: { ...spec.rollout, waves: first } } }];
  const acted = await act(`${verb} ingester --wave canary`, { decision: waiting, extra });
  expect([acted.status, acted.kept, acted.stderr]).toEqual([
    5,
    [],
    expect.stringContaining('why: wave canary is over; the run is in wave rest'),
  ]);
});

describe('reject', () => {
  it('rejects the wave with the reason', async () => {
    const acted = await act('reject ingester --reason "errors in the canary"');
    expect(asked(acted)).toEqual([
      { group: 'ingester', action: 'reject', runId: '4f1c9a02', wave: 'rest', reason: 'errors in the canary' },
    ]);
    expect(acted.stdout).toContain('wave rest rejected by anna (errors in the canary)\n  wave rest stays blocked in run 4f1c9a02');
  });
});

describe('promote', () => {
  const canary = inCanary;

  it('skips the soak and the gates of the current wave and names the remaining checks', async () => {
    const acted = await act('promote ingester', { decision: canary });
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'promote', runId: '4f1c9a02', wave: 'canary' }]);
    expect(acted.stdout).toContain('wave canary promoted by anna, skips a soak of 30m and gate errors');
    expect(acted.stdout).toContain('approvals still apply');
  });

  it('skips one gate, or all waves with --full', async () => {
    expect(asked(await act('promote ingester --gate errors --wave canary', { decision: canary }))).toEqual([
      { group: 'ingester', action: 'promote', runId: '4f1c9a02', wave: 'canary', gate: 'errors' },
    ]);
    const full = await act('promote ingester --full --yes', { decision: canary });
    expect(asked(full)).toEqual([{ group: 'ingester', action: 'promote', runId: '4f1c9a02' }]);
    expect(full.stdout).toContain('waves canary, zone-a and rest promoted by anna, skips a soak of 30m and gate errors');
    expect((await act('promote ingester --full', { decision: canary })).status).toBe(3);
  });

  it('names the last wave with --full, which is the only wave left', async () => {
    const decision = { ...inCanary, wave: { name: 'canary', index: 0, count: 1 } };
    const waves = Object(groupObject['spec']).rollout.waves.slice(0, 1);
    const spec = { ...Object(groupObject['spec']), rollout: { strategy: 'onDelete', waves } };
    const { stdout } = await act('promote ingester --full --yes', { decision, extra: [{ ...groupObject, spec }] });
    expect(stdout).toContain('mimir/ingester: wave canary promoted by anna, skips a soak of 30m and gate errors');
  });

  it('fails if the requester is not verified', async () => {
    const acted = await act('promote ingester', { decision: canary, options: {} });
    expect([acted.status, acted.kept, acted.stderr]).toEqual([5, [], expect.stringContaining('no webhook records the requester')]);
  });

  it.each([
    ['promote ingester', rolling, 'wave rest has no soak and no gate left'],
    ['promote ingester --wave canary', rolling, 'wave canary is over'],
    ['promote ingester --wave rest --gate errors', rolling, 'wave rest has no gate errors left'],
    ['promote ingester --full --yes', rolling, 'wave rest has no soak and no gate left'],
  ])('%s is denied if there is nothing to skip', async (line, decision, why) => {
    const acted = await act(line, { decision });
    expect([acted.status, acted.writes, acted.stderr]).toEqual([5, [], expect.stringContaining(why)]);
  });

  it.each([
    ['promote ingester', failed, 5],
    ['promote ingester', over, 5],
    ['promote ingester --wave nonsense', rolling, 3],
    ['promote ingester --gate nonsense', rolling, 3],
    ['promote ingester --wave rest --full', rolling, 3],
  ])('%s writes no request', async (line, decision, status) => {
    const acted = await act(line, { decision });
    expect([acted.status, acted.kept]).toEqual([status, []]);
  });
});

describe('abort and retry', () => {
  const previous = { a: 'rev-2', b: 'rev-2', c: 'rev-2' };
  const { rollout, ...members } = Object(groupObject['spec']);
  const pinned = { ...groupObject, spec: { ...members, rollout: { ...rollout, strategy: 'pinned' } } };

  it('abort ends the current run and prints the next commands', async () => {
    const acted = await act('abort ingester --reason "bad WAL replay"', { decision: rolling });
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'abort', runId: '4f1c9a02', reason: 'bad WAL replay' }]);
    expect(acted.stdout).toMatch(/^mimir\/ingester aborted in wave rest by anna \(bad WAL replay\): \d+ of \d+ pods updated\n/);
    expect(acted.stdout).toContain(
      'a pod that is created again gets the new revision\n  Roll back: kubectl rollout-group undo mimir/ingester\n  Continue: kubectl rollout-group retry mimir/ingester',
    );
    const ofPinned = await act('abort ingester', { decision: rolling, extra: [pinned] });
    expect(ofPinned.stdout).toContain(
      'every pod keeps its revision, also if it is created again\n  Roll back: kubectl rollout-group abort mimir/ingester --rollback, or kubectl rollout-group undo',
    );
  });

  it('abort counts only the pods of zones that the run changes', async () => {
    const run = rolling.run && { ...rolling.run, previous: { ...rolling.run.previous, a: rolling.run.target['a'] ?? '' } };
    const aborted = async (decision: typeof rolling) =>
      /: (\d+ of \d+) pods updated/.exec((await act('abort ingester', { decision })).stdout)?.[1];
    expect(await aborted(rolling)).toBe('28 of 60');
    expect(await aborted({ ...rolling, ...(run && { run }) })).toBe('8 of 40');
  });

  it('abort writes nothing if the requester cannot be verified, and names pause instead', async () => {
    const acted = await act('abort ingester', { decision: rolling, options: {} });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('kubectl rollout-group pause mimir/ingester');
    const unanswered = await act('abort ingester', { decision: rolling, options: { isWebhookAway: true } });
    expect([unanswered.status, unanswered.kept]).toEqual([12, []]);
    expect(unanswered.stderr).toContain('to stop the group now: kubectl rollout-group pause mimir/ingester; then find out why');
  });

  it.each([
    ['abort ingester', over, 'no run is in progress; nothing was aborted'],
    ['abort ingester', failed, 'has already ended: no pod became available for 5m'],
    ['retry ingester', rolling, 'has no failed run'],
  ])('%s does nothing without a matching run', async (line, decision, text) => {
    const acted = await act(line, { decision });
    expect([acted.status, acted.kept]).toEqual([0, []]);
    expect(acted.stdout).toContain(text);
  });

  it.each([
    ['a run', rolling],
    ['an idle group', over],
  ])('retry of %s that an unverified abort pauses names resume', async (_name, decision) => {
    const endsWith = 'kubectl rollout-group resume mimir/ingester';
    const stop = { rule: 'paused', fact: 'paused by an abort', zones: ['a'], isBlocking: true, endsWith, isAbort: true } as const;
    const acted = await act('retry ingester', { decision: { ...decision, stops: [stop] } });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain(endsWith);
  });

  it('abort --rollback of a run that has already failed requests the rollback', async () => {
    const acted = await act('abort ingester --rollback', { decision: failed, extra: [pinned] });
    expect([acted.status, acted.stderr]).toEqual([0, '']);
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'abort', runId: '4f1c9a02', rollback: true }]);
    expect(acted.stdout).toContain('run 4f1c9a02 is rolled back, requested by anna\n  it ended because: no pod became available for 5m');
  });

  describe('abort --rollback while zone c is paused', () => {
    const fact = 'zone c is paused by an unverified requester';
    const resume = 'kubectl rollout-group resume mimir/ingester --zone c';
    const note = `note: ${fact}; abort does not end this block. To end it: ${resume}\n`;

    it('names the pause, and not the approval that the rollback does not need', async () => {
      const pause = {
        apiVersion,
        kind: 'RolloutIntent',
        metadata: { name: 'pause-zone.c.ingester', namespace: 'mimir' },
        spec: { group: 'ingester', action: 'pause', zone: 'c' },
      };
      const { id, kind, target } = runOf(waiting);
      const at = { startedMs: Date.now() - 900_000, wave: 2, waveStartedMs: Date.now() - 600_000 };
      const pace = { movableMs: 0, movableAsOfMs: Date.now(), isMovable: true };
      const back = { a: 'rev-1', b: 'rev-1', c: 'rev-1' };
      const run = { id, kind, target, previous: back, ...at, ...pace, outcome: 'running' } as const;
      const ledger = ledgerObject({ run });
      const podsAt = (zone: string, revision: string): readonly FakeObject[] => {
        const pods = adoptedObjects().filter(({ kind, metadata }) => kind === 'Pod' && metadata.name.startsWith(`ingester-zone-${zone}`));
        return JSON.parse(JSON.stringify(pods).replaceAll('"rev-1"', `"${revision}"`));
      };
      // The run superseded a rollout that had replaced the pods of zone b.
      const extra = [pinned, ledger, pause, ...podsAt('c', 'rev-2'), ...podsAt('b', 'rev-1b'), ...history];
      const acted = await act('abort ingester --rollback', { decision: waiting, extra });
      expect([acted.status, acted.stderr]).toEqual([0, note]);
      expect(acted.stdout).toContain(`  pods in flight finish, then 4 pods return to an earlier revision:
  b: rev-2 -> rev-1 (revision 2), 2 pods
  c: rev-2 -> rev-1 (revision 2), 2 pods
  After the rollback, try again`);
      const dry = await act('abort ingester --rollback --dry-run=client', { decision: waiting, extra });
      expect(dry.stderr).toContain(
        'note: 4 pods return to an earlier revision: b: rev-2 -> rev-1 (revision 2), 2 pods; c: rev-2 -> rev-1 (revision 2), 2 pods\n',
      );
      // The rollback leaves pods that ran another revision before the run.
      const kept = ledgerObject({ run: { ...run, kept: { b: ['rev-1b'] } } });
      const some = extra.map((object) => (object === ledger ? kept : object));
      const rest = await act('abort ingester --rollback --dry-run=client', { decision: waiting, extra: some });
      expect(rest.stderr).toContain('note: 2 pods return to an earlier revision: c: rev-2 -> rev-1 (revision 2), 2 pods\n');
    });

    it('names the published pause if only the agent can read the run', async () => {
      const stop = { rule: 'paused', fact, zones: ['c'], isBlocking: true, endsWith: resume } as const;
      expect((await act('abort ingester --rollback', { decision: { ...waiting, stops: [stop] }, extra: [pinned] })).stderr).toBe(note);
    });
  });

  it.each([
    ['a completed run', over, 'no rollout is in progress', 'undo'],
    ['a rollback', { ...rolling, run: { ...runOf(rolling), kind: 'rollback' as const } }, 'is a rollback itself', 'explain'],
    ['a run without an earlier revision', { ...failed, run: { ...runOf(failed), target: previous, previous } }, 'of any zone', 'undo'],
    ['a failed rollback', { ...failed, run: { ...runOf(failed), kind: 'rollback' as const } }, 'is a rollback itself', 'explain'],
  ])('abort --rollback of %s is denied', async (_name, decision, why, verb) => {
    const acted = await act('abort ingester --rollback', { decision, extra: [pinned] });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain(why);
    expect(acted.stderr).toContain(`kubectl rollout-group ${verb} mimir/ingester`);
  });

  it.each(['onDelete', 'partition'] as const)(
    'abort --rollback of a group in policy files with the strategy %s is denied',
    async (strategy) => {
      const acted = await act('abort ingester --rollback', { decision: { ...rolling, strategy, origin: 'directory' }, isDefined: false });
      expect([acted.status, acted.kept]).toEqual([5, []]);
      expect(acted.stderr).toContain(`the strategy ${strategy} cannot return pods to their previous revision without a new pod template`);
    },
  );

  it('retry leaves pods with a wrong revision to the agent until its attempts have failed', async () => {
    const wait = {
      rule: 'pin-applied',
      outcome: 'wait',
      fact: 'ingester-zone-b-1 at rev-1 came back without the webhook',
      sinceMs: 0,
      zones: ['b'],
    } as const;
    const again = await act('retry ingester', { decision: { ...rolling, waits: [{ ...wait, earliestMs: Date.now() + 30_000 }] } });
    expect([again.kept, again.stdout]).toEqual([[], 'mimir/ingester has no failed run; nothing was retried\n']);
    expect((await act('retry ingester', { decision: { ...rolling, waits: [wait] } })).kept.length).toBe(1);
  });

  it('abort and retry of a rollback name retry alone, and undo names the reason why it has no effect', async () => {
    const back = (decision: PublishedDecision) => ({ ...decision, run: { ...runOf(decision), kind: 'rollback' as const, previous } });
    const aborted = await act('abort ingester', { decision: back(rolling) });
    expect(aborted.stdout).toMatch(/until retry or a new pod template\n.*\n {2}Continue the rollback: kubectl rollout-group retry/);
    expect(aborted.stdout).not.toContain('undo');
    const again = { ...rolling, run: { ...runOf(rolling), returns: true, previous } };
    expect((await act('abort ingester', { decision: again })).stdout).toContain('Continue the rollout: kubectl rollout-group retry');
    const rolledBackRun = { ...back(rolling).run, rolledBack: { revisions: previous, because: 'gate errors' } };
    const ofPinned = await act('abort ingester', { decision: { ...rolling, run: rolledBackRun }, extra: [pinned] });
    expect(ofPinned.stdout).toContain('  a pod that is created again gets its earlier revision\n  Continue the rollback');
    expect((await act('retry ingester', { decision: back(failed) })).stdout).toContain('rollback 4f1c9a02 continues');
    const endsWith = 'kubectl rollout-group retry mimir/ingester';
    const stop = { rule: 'run-failed', fact: 'the run was aborted', zones: ['a'], isBlocking: true, endsWith };
    const { status, stdout } = await act('undo ingester', { decision: { ...back(failed), stops: [stop] }, extra: history });
    expect([status, stdout]).toEqual([
      0,
      expect.stringContaining('run 4f1c9a02 of mimir/ingester is already a rollback; nothing was undone'),
    ]);
    expect(stdout).toContain(endsWith);
  });

  it('retry continues a failed run, and each retry is a new request', async () => {
    const acted = await act('retry ingester', { decision: failed });
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'retry', runId: '4f1c9a02' }]);
    const again = await act('retry ingester', { decision: { ...failed, run: { ...runOf(failed), failedMs: 2000 } } });
    expect(again.kept[0]?.path).not.toBe(acted.kept[0]?.path);
    expect((await act('retry ingester', { decision: failed, options: {} })).status).toBe(5);
  });

  it('retry rolls out a rolled-back revision only while a StatefulSet names it', async () => {
    const again = await act('retry ingester', { decision: rolledBack });
    expect([again.stdout, asked(again).length]).toEqual([expect.stringContaining('is rolled out again, requested by anna'), 1]);
    const dry = await act('retry ingester --dry-run=client', { decision: rolledBack });
    expect(dry.stderr).toContain('note: mimir/ingester: the revision that was rolled back is rolled out again; the last run failed: ');
    const returned = await act('retry ingester', { decision: { ...rolledBack, phase: 'Done', warnings: [], stops: [] } });
    expect([returned.stdout, asked(returned)]).toEqual(['mimir/ingester has no failed run; nothing was retried\n', []]);
  });

  it('retry waits for the end of a run after a rollback', async () => {
    const { stops = [] } = rolledBack;
    const acted = await act('retry ingester', { decision: { ...rolling, stops } });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('retry was not sent: run 4f1c9a02 of mimir/ingester is not over');
    expect(acted.stderr).toContain(`${stops[0]?.fact}; a retry has an effect only after the end of the run`);
  });
});

describe('under a pause', () => {
  const spec = { group: 'ingester', action: 'pause' };
  const pause = { apiVersion, kind: 'RolloutIntent', metadata: { name: 'pause.ingester', namespace: 'mimir' }, spec };

  it.each([
    ['approve ingester --wave rest', waiting],
    ['promote ingester --wave canary --dry-run=client', inCanary],
    ['promote ingester --full --yes', inCanary],
    ['retry ingester', failed],
  ])('%s names the pause and the command that ends it', async (line, decision) => {
    const { stderr } = await act(line, { decision, extra: [...history, pause] });
    const [verb] = line.split(' ');
    expect(stderr).toContain(
      `note: the group is paused by an unverified requester; ${verb} does not end this block. To end it: kubectl rollout-group resume mimir/ingester\n`,
    );
    expect(stderr).not.toContain('run failed');
  });
});

describe('without a running agent', () => {
  it.each([
    ['approve ingester', rolling, 5],
    ['reject ingester', rolling, 5],
    ['promote ingester --wave nonsense', rolling, 3],
    ['retry ingester', rolling, 0],
    ['abort ingester', over, 0],
  ])('%s is denied by the last decision, and reports that the Lease has expired', async (line, decision, status) => {
    const acted = await act(line, { decision, extra: [leaseObject('agent-0', Date.now() - 300_000)] });
    expect([acted.status, acted.kept]).toEqual([status, []]);
    expect(acted.stderr).toMatch(/note: agent not running: Lease expired \d+m\d*s? ago/);
  });
});

describe('if the CRDs are not installed', () => {
  it.each([
    ['approve ingester --wave rest', waiting, 'rolloutintents'],
    ['abort ingester', rolling, 'rolloutintents'],
    ['retry ingester', failed, 'rolloutintents'],
    ['promote ingester --wave canary', inCanary, 'rolloutintents'],
    ['protect ingester --duration 1h', rolling, 'rolloutintents'],
    ['undo ingester', rolling, 'rolloutintents'],
    ['override ingester --rule zone-gap --duration 30m --reason x --yes', rolling, 'rolloutexceptions'],
  ])('%s fails with the command that installs them', async (line, decision, missing) => {
    const acted = await act(line, { decision, extra: history, options: { missing: [missing], stamp: oncall } });
    expect(acted.status).toBe(10);
    expect(acted.stderr).toMatch(/kubectl rollout-group schema Rollout(Intent|Exception) -o crd \| kubectl apply -f -/);
  });
});

describe('explain lists the possible actions', () => {
  const held = (rule: string, outcome: 'wait' | 'no', intent?: string): PublishedDecision => ({
    ...rolling,
    phase: rule === 'run-failed' ? 'Failed' : 'Waiting',
    outcome: outcome === 'no' ? 'blocked' : 'wait',
    actions: [],
    waits: [
      {
        rule,
        outcome,
        fact: 'as it is',
        sinceMs: 0,
        zones: ['b'],
        ...(intent === undefined ? {} : { source: { object: `RolloutIntent mimir/${intent}` } }),
      },
    ],
  });

  it.each<[string, PublishedDecision, readonly string[]]>([
    [
      'a run that ended',
      held('run-failed', 'no'),
      ['The run failed', 'rollout-group retry mimir/ingester', 'rollout-group undo mimir/ingester'],
    ],
    [
      'what was undone',
      held('undone', 'wait', 'undo.ingester.1'),
      ['A person must act', 'rollout-group cancel mimir/ingester undo.ingester.1'],
    ],
    ['what is protected', held('protected', 'wait', 'protect.ingester'), ['rollout-group cancel mimir/ingester protect.ingester']],
    ['a pause', held('paused', 'wait', 'pause.ingester.0a1b2c3d4e'), ['rollout-group cancel mimir/ingester pause.ingester.0a1b2c3d4e']],
    ['a soak', held('soak', 'wait'), ['rollout-group promote mimir/ingester']],
    ['a gate', held('gate', 'wait'), ['rollout-group promote mimir/ingester']],
    ['an approval', held('approval', 'wait'), ['A person must act', 'rollout-group approve mimir/ingester']],
  ])('about %s', async (_name, decision, texts) => {
    const { stdout } = await act('explain ingester', { decision });
    for (const text of texts) expect(stdout).toContain(text);
  });
});
