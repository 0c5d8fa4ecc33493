import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { rulesWithoutException } from '../../policies/rollout/rules-without-exception.ts';
import { runOf as storedRun } from '../kit/questions.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, leaseObject, ledgerObject, requesterWebhook, statefulSetObject, uidOf } from './live-objects.ts';
import { type Acted, act, apiVersion, asked, groupObject, history, over, runOf, zones } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

describe('undo', () => {
  const patches = ({ kept }: Acted): readonly unknown[] =>
    kept.filter(({ path }) => path.includes('/statefulsets/')).map(({ body }) => (Array.isArray(body) ? body : []));

  it('blocks the undone revision, then writes the previous template to every member', async () => {
    const acted = await act('undo ingester --reason "memory leak"', { decision: rolling, extra: history });
    expect([acted.status, acted.stderr]).toEqual([0, '']);
    const undone = zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' }));
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'undo', undone, reason: 'memory leak' }]);
    expect(acted.kept[0]?.path).toContain('/rolloutintents/undo.ingester.');
    expect(patches(acted)).toHaveLength(3);
    expect(patches(acted)[0]).toEqual([
      { op: 'test', path: '/metadata/uid', value: uidOf(acted.objects, 'ingester-zone-a') },
      { op: 'test', path: '/metadata/generation', value: 1 },
      {
        op: 'replace',
        path: '/spec/template',
        value: { metadata: { labels: { 'rollout-group': 'ingester' } }, spec: { containers: [{ name: 'ingester', image: 'mimir:1' }] } },
      },
    ]);
    expect(acted.stdout).toContain('earlier revision; no pod is replaced:\n  a: rev-2 -> rev-1 (revision 2), 0 pods\n');
    expect(acted.stdout).toContain('manifests in Git still contain the undone change');
  });

  it('prints a note on the exception that permits the undo, also in a dry run', async () => {
    const target = { group: 'ingester' };
    const kinds = [
      ['RolloutPolicy', { targets: { all: true }, rules: [{ name: 'calm', actions: ['rollout'], effect: 'deny' }] }],
      ['RolloutException', { rule: 'p/calm', target, allow: { anything: true }, reason: 'CHG-1', expires: '2999-01-01T00:00:00Z' }],
    ] as const;
    const policies = kinds.map(([kind, spec]) => ({ apiVersion, kind, metadata: { name: 'p', namespace: 'mimir' }, spec }));
    for (const line of ['undo ingester', 'undo ingester --dry-run=client'])
      expect((await act(line, { decision: rolling, extra: [...history, ...policies] })).stderr).toMatch(
        /permitted by exception p .*\(CHG-1\)\n/,
      );
  });

  it('writes nothing if the user lacks permission to write one of the templates', async () => {
    const acted = await act('undo ingester', { decision: rolling, extra: history, options: { forbiddenWrites: ['ingester-zone-b'] } });
    expect([acted.status, acted.kept]).toEqual([11, []]);
  });

  it('writes only the request while no webhook answers, and names the members that keep the undone template', async () => {
    const acted = await act('undo ingester', { decision: rolling, extra: history, options: { isWebhookAway: true } });
    expect([acted.status, acted.stdout, patches(acted)]).toEqual([12, '', []]);
    expect(asked(acted)).toEqual([
      { group: 'ingester', action: 'undo', undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) },
    ]);
    expect(acted.stderr).toBe(
      `error: mimir/ingester was undone only in part: webhook one.rollout-group.dev of Service ops/agent did not answer: no endpoints available for service "agent"
  why: the request is written, so the agent replaces no further pod of ingester-zone-a, ingester-zone-b and ingester-zone-c; they still have the undone template, and updated pods keep it
  do:  find out why it does not answer: kubectl rollout-group doctor; then repeat the command
`,
    );
    const ofZone = await act('undo ingester --zone b', { decision: rolling, extra: history, options: { isWebhookAway: true } });
    expect(ofZone.stderr).toContain('the agent replaces no further pod of ingester-zone-b; it still has the undone template');
    const dry = await act('undo ingester --dry-run server', { decision: rolling, extra: history, options: { isWebhookAway: true } });
    expect([dry.status, dry.kept]).toEqual([12, []]);
  });

  it('warns if the undo restores fields that a later apply of the manifests would not remove, also in a dry run', async () => {
    const metadata = { labels: { 'rollout-group': 'ingester' } };
    const template = { metadata, spec: { containers: [{ name: 'ingester', image: 'mimir:1', env: [{ name: 'EXTRA', value: '1' }] }] } };
    const earlier = history.map((one) => (one.metadata.name === 'rev-1' ? { ...one, data: { spec: { template } } } : one));
    const warning =
      'a later apply of the manifests with the undone change can leave spec.template.spec.containers[ingester].env in the template. That makes another revision, which is not blocked. To block it: kubectl rollout-group pause mimir/ingester';
    const undo = (flags: string) => act(`undo ingester ${flags}`, { decision: rolling, extra: earlier });
    const done = await undo('--yes');
    expect(done.stdout, done.stderr).toContain(`  ${warning}\n`);
    expect((await undo('--dry-run=client')).stderr).toContain(warning);
    expect((await undo('--dry-run=server')).stderr).toContain(warning);
  });

  it('prints the git revert command if the commit is known', async () => {
    const annotations = {
      'rollout-group.dev/commit': '3f9c2e1',
      'kubernetes.io/change-cause': 'release 2',
      'grafana.com/rollout-max-unavailable': '1',
    };
    const members = adoptedObjects({ updateRevision: 'rev-2', annotations });
    const acted = await act('undo ingester', { decision: rolling, extra: [...history, ...members] });
    expect(acted.stdout).toContain('git revert 3f9c2e1');
    expect(patches(acted)[0]).toContainEqual({ op: 'remove', path: '/metadata/annotations/rollout-group.dev~1commit' });
    expect(patches(acted)[0]).toContainEqual({ op: 'remove', path: '/metadata/annotations/kubernetes.io~1change-cause' });
  });

  it('returns to a given revision or commit only with --yes', async () => {
    const earlier = await act('undo ingester --to-revision 1 --yes', { decision: rolling, extra: history });
    expect(asked(earlier)).toEqual([
      expect.objectContaining({ undone: expect.arrayContaining([{ zone: 'a', revision: 'rev-2', to: 'rev-0' }]) }),
    ]);
    expect((await act('undo ingester --to-revision 1', { decision: rolling, extra: history })).status).toBe(3);
    const recordOf = (rolledOut: readonly string[]): FakeObject => ({
      apiVersion,
      kind: 'RolloutRun',
      metadata: { name: 'ingester-1', namespace: 'mimir' },
      spec: {
        group: 'ingester',
        id: '1',
        kind: 'rollout',
        outcome: 'completed',
        startedAt: '2026-01-01T00:00:00Z',
        waited: 0,
        zones: rolledOut.map((zone) => ({ zone, toRevision: 'rev-0' })),
        steps: [],
        waits: [],
        commit: 'a81d0f2c',
      },
    });
    const commit = await act('undo ingester --to-commit a81d0f2 --yes', { decision: rolling, extra: [...history, recordOf(zones)] });
    expect(asked(commit)).toEqual(asked(earlier));
    const incomplete = await act('undo ingester --to-commit a81d0f2 --yes', { decision: rolling, extra: [...history, recordOf(['a'])] });
    expect([incomplete.status, incomplete.kept, incomplete.stderr]).toEqual([
      10,
      [],
      expect.stringContaining('run 1 of commit a81d0f2 has no revision of zone b'),
    ]);
  });

  it('has no effect after a complete undo, and completes a partial undo', async () => {
    const undoFrom = (undoneRevision: string): FakeObject => ({
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: 'undo.ingester.1', namespace: 'mimir' },
      spec: {
        group: 'ingester',
        action: 'undo',
        undone: zones.map((zone) => ({ zone, revision: undoneRevision, to: undoneRevision === 'rev-2' ? 'rev-1' : 'rev-2' })),
      },
    });
    const back = { ...over, run: { ...runOf(over), previous: { a: 'rev-3', b: 'rev-3', c: 'rev-3' } } };
    const done = await act('undo ingester', { decision: back, extra: [...history, undoFrom('rev-3')] });
    expect([done.status, done.kept, done.stdout]).toEqual([
      0,
      [],
      'the update revision of mimir/ingester is already the requested or previous revision; nothing was undone\n  to return to the revisions of an earlier run: kubectl rollout-group undo mimir/ingester --to-run RUN, with a run of kubectl rollout-group history mimir/ingester\n',
    ]);
    const partial = await act('undo ingester', { decision: back, extra: [...history, undoFrom('rev-2')] });
    expect(asked(partial)[0]).toMatchObject({ undone: [{ zone: 'a', to: 'rev-1' }, { zone: 'b' }, { zone: 'c' }] });
    const { spec, ...rest } = undoFrom('rev-2');
    const explained = { ...rest, spec: { ...Object(spec), reason: 'memory leak' } };
    const reasonOf = async (line: string) => Object(asked(await act(line, { decision: back, extra: [...history, explained] }))[0]).reason;
    expect([await reasonOf('undo ingester'), await reasonOf('undo ingester --reason INC-441')]).toEqual(['memory leak', 'INC-441']);
  });

  it('restores the revision of the pods if no run has the present templates yet', async () => {
    const at = (revision: string) => ({ a: revision, b: revision, c: revision });
    const run = { ...runOf(over), target: at('rev-1'), previous: at('rev-0') };
    const published = { ...over, run };
    const stored = storedRun({ target: at('rev-1'), previous: at('rev-0'), outcome: 'completed', completedMs: Date.now() - 60_000 });
    const circumstances = [
      { decision: published, extra: history },
      { decision: published, extra: [...history, ledgerObject({ run: stored })] },
      // Only the ledger knows the run that completed last.
      {
        decision: { ...over, run: { ...run, target: at('rev-0'), previous: at('rev-x') } },
        extra: [...history, ledgerObject({ run: stored })],
      },
    ];
    for (const each of circumstances) {
      const acted = await act('undo ingester', each);
      expect(asked(acted), acted.stderr).toEqual([
        { group: 'ingester', action: 'undo', undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) },
      ]);
      expect(acted.stdout).toContain('no pod is replaced:\n  a: rev-2 -> rev-1 (revision 2), 0 pods\n');
    }
    const ofZone = await act('undo ingester --zone b --dry-run client', { decision: published, extra: history });
    expect(ofZone.stderr).toContain('b: rev-2 -> rev-1 (revision 2), 0 pods');
  });

  it('restores the same from the publication as from the ledger: the other zones too, after the return of one zone', async () => {
    const at = (a: string, b = a, c = a) => ({ a, b, c });
    const back = { target: at('rev-2', 'rev-1', 'rev-2'), previous: at('rev-2'), restores: at('rev-1') };
    const set = statefulSetObject('b', { updateRevision: 'rev-1' });
    const stored = storedRun({ ...back, kind: 'rollback', outcome: 'completed', completedMs: Date.now() - 60_000 });
    const published = { ...over, run: { ...runOf(over), ...back, kind: 'rollout' as const, returns: true } };
    for (const extra of [[ledgerObject({ run: stored })], []]) {
      const acted = await act('undo ingester', { decision: published, extra: [...history, set, ...extra] });
      const [a, c] = ['a', 'c'].map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' }));
      expect(asked(acted)).toEqual([{ group: 'ingester', action: 'undo', undone: [a, { zone: 'b', revision: 'rev-1', to: 'rev-2' }, c] }]);
    }
  });

  it('counts the pods of a zone that already has the template, and no pod while a run is failed', async () => {
    const at = (revision: string) => ({ a: revision, b: revision, c: revision });
    const failed = { outcome: 'failed', failure: 'no pod became available', failedMs: Date.now() - 60_000 } as const;
    const run = storedRun({ target: at('rev-2'), previous: at('rev-1'), ...failed });
    const canary = adoptedObjects().filter(({ kind, metadata }) => kind === 'Pod' && metadata.name === 'ingester-zone-a-1');
    for (const { metadata } of canary) Object.assign(metadata['labels'] ?? {}, { 'controller-revision-hash': 'rev-2' });
    const extra = [...history, ledgerObject({ run }), ...canary];
    // Zone a has its earlier template from an undo of this zone. Zones b and c keep the template of the failed run.
    const set = statefulSetObject('a', { updateRevision: 'rev-1' });
    const rest = await act('undo ingester', { decision: rolling, extra: [...extra, set] });
    expect(rest.stdout).toContain('1 pod is replaced in the order of the group:\n  a: rev-2 -> rev-1, 1 pod\n');
    const ofZone = await act('undo ingester --zone a --yes', { decision: rolling, extra });
    expect(ofZone.stdout).toContain('no pod is replaced:\n  a: rev-2 -> rev-1 (revision 2), 0 pods\n');
    expect(ofZone.stdout).toContain('the agent replaces no pod while zones have the template of the failed run: b and c.');
    expect(ofZone.stdout).not.toContain('approval');
  });

  it('is denied while a StatefulSet controller has not observed the last change', async () => {
    const [first] = adoptedObjects({ updateRevision: 'rev-1' });
    const unobserved = { ...first, spec: { ...Object(first?.['spec']), minReadySeconds: 5 } } as FakeObject;
    const acted = await act('undo ingester', { decision: over, extra: [...history, unobserved] });
    expect([acted.status, acted.writes]).toEqual([9, []]);
    expect(acted.stderr).toContain('the revision of StatefulSet mimir/ingester-zone-a of zone a is unknown; nothing was undone\n');
  });

  it('after a rollback gives the members the template that their pods run, and replaces no pod', async () => {
    const [before, after] = ['rev-1', 'rev-2'].map((revision) => ({ a: revision, b: revision, c: revision }));
    const rolledBack = { revisions: after ?? {}, because: 'aborted by anna' };
    const run = { ...runOf(over), kind: 'rollback', target: before ?? {}, previous: after ?? {}, rolledBack } as const;
    for (const outcome of ['completed', 'running'] as const) {
      const acted = await act('undo ingester', { decision: { ...over, run: { ...run, outcome } }, extra: history });
      expect(asked(acted)).toEqual([
        { group: 'ingester', action: 'undo', undone: zones.map((zone) => ({ zone, revision: 'rev-2', to: 'rev-1' })) },
      ]);
      expect(acted.stdout).toContain('no pod is replaced:\n  a: rev-2 -> rev-1 (revision 2), 0 pods\n');
    }
  });

  it('deletes an earlier undo request that blocks the restored revision', async () => {
    const undoOfTarget: FakeObject = {
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: 'undo.ingester.old', namespace: 'mimir' },
      spec: { group: 'ingester', action: 'undo', undone: [{ zone: 'a', revision: 'rev-0' }] },
    };
    const { objects, stdout } = await act('undo ingester --to-revision 1 --yes', { decision: rolling, extra: [...history, undoOfTarget] });
    expect(stdout).toContain('  deletes RolloutIntent undo.ingester.old: the undo by an unverified requester without an end\n');
    expect(objects.some(({ metadata }) => metadata.name === 'undo.ingester.old')).toBe(false);
  });

  it('of one zone names the zones that still roll out the new template', async () => {
    const { status, stdout } = await act('undo ingester --zone a --yes', { decision: rolling, extra: history });
    expect(status).toBe(0);
    expect(stdout).toContain(
      '  zones b and c still roll to the new template. To undo all zones: kubectl rollout-group undo mimir/ingester\n',
    );
  });

  it('prints the request and the templates in a dry run, and stores nothing', async () => {
    const dry = await act('undo ingester --dry-run client', { decision: rolling, extra: history });
    expect(dry.writes).toEqual([]);
    expect(parseAllDocuments(dry.stdout).map((document) => document.get('kind'))).toEqual([
      'RolloutIntent',
      'StatefulSet',
      'StatefulSet',
      'StatefulSet',
    ]);
    expect(dry.stderr).toContain(
      'note: mimir/ingester returns to an earlier revision; no pod is replaced: a: rev-2 -> rev-1 (revision 2), 0 pods;',
    );
    const older = await act('undo ingester --zone a --to-revision 1 --yes --dry-run client', { decision: rolling, extra: history });
    const line = 'a: rev-2 -> rev-0 (revision 1, mimir:0), 2 pods';
    expect(older.stderr).toContain(
      `note: mimir/ingester returns to an earlier revision; 2 pods are replaced in the order of the group: ${line}\n`,
    );
    const server = await act('undo ingester --dry-run server', { decision: rolling, extra: history });
    expect([server.kept, server.writes.length]).toEqual([[], 4]);
  });

  it.each([
    ['undo ingester --to-revision 9 --yes', 10],
    ['undo ingester --to-commit beef --yes', 10],
    ['undo ingester --to-commit be --yes', 3],
    ['undo ingester --zone nonsense', 3],
  ])('%s changes nothing', async (line, status) => {
    const acted = await act(line, { decision: rolling, extra: history });
    expect([acted.status, acted.kept]).toEqual([status, []]);
  });
});

describe('override', () => {
  const line = 'override ingester --rule zone-gap --duration 30m --reason "cost event"';

  it('writes an exception with an end for one rule, only with --yes', async () => {
    const acted = await act(`${line} --zone b --replicas-at-least 3 --yes`);
    expect([acted.status, acted.stderr]).toEqual([0, '']);
    expect(acted.kept[0]?.path).toContain('/rolloutexceptions/override.ingester.zone-gap.b?');
    expect(asked(acted)).toEqual([
      {
        rule: 'zone-gap',
        target: { group: 'ingester', zone: 'b' },
        allow: { replicasAtLeast: 3 },
        reason: 'cost event',
        expires: expect.stringMatching(/Z$/),
      },
    ]);
    expect((await act(line)).status).toBe(3);
    expect(parse((await act(`${line} --dry-run client`)).stdout).spec.allow).toEqual({ anything: true });
  });

  it.each(rulesWithoutException)('never overrides %s', async (rule) => {
    const acted = await act(`override ingester --rule ${rule} --duration 30m --reason x --yes`);
    expect([acted.status, acted.kept]).toEqual([5, []]);
  });

  it.each([
    ['soak', 'the verb promote ends this block'],
    ['view-complete', 'it depends on the state of the cluster or on claims'],
    ['run-deadline', 'it never blocks'],
  ])('prints the reason why it never overrides %s', async (rule, why) => {
    expect((await act(`override ingester --rule ${rule} --duration 30m --reason x --yes`)).stderr).toContain(`why: ${why}\n`);
  });

  it('accepts a rule that is only in the published decision, because its policy is in files of the agent', async () => {
    const words = 'override ingester --rule storage/moves --duration 1h --reason x --yes';
    expect((await act(words)).status).toBe(3);
    const stop = { rule: 'storage/moves', fact: 'the storage moves', zones: ['a'], isBlocking: true, endsWith: words };
    expect((await act(words, { decision: { ...rolling, stops: [stop] } })).status).toBe(0);
  });

  it('rejects a new exception if an exception with another name has the same rule and target, and replaces an exception with the same name', async () => {
    const other: FakeObject = {
      apiVersion,
      kind: 'RolloutException',
      metadata: { name: 'inc-1', namespace: 'mimir' },
      spec: {
        rule: 'zone-gap',
        target: { group: 'ingester' },
        allow: { anything: true },
        reason: 'INC-1',
        expires: '2099-01-01T00:00:00Z',
      },
    };
    const acted = await act(`${line} --yes`, { extra: [other] });
    expect([acted.status, acted.kept]).toEqual([5, []]);
    expect(acted.stderr).toContain('kubectl rollout-group cancel mimir/ingester inc-1');
    const own = { ...other, metadata: { ...other.metadata, name: 'override.ingester.zone-gap' } };
    const replaced = await act(`${line} --yes`, { extra: [own] });
    expect([replaced.status, replaced.stdout]).toEqual([
      0,
      expect.stringContaining(
        '\n  the new exception replaces the earlier exception by an unverified requester (INC-1) that ends at 2099-01-01 00:00 UTC\n',
      ),
    ]);
    const expired = { ...other, spec: { ...(other['spec'] as object), expires: '2020-01-01T00:00:00Z' } };
    expect((await act(`${line} --yes`, { extra: [expired] })).status).toBe(0);
  });

  it.each([
    ['override ingester --rule zone-gap --duration 30m --yes', 3],
    ['override ingester --rule zone-gab --duration 30m --reason x --yes', 3],
    ['override ingester --rule zone-gap --duration soon --reason x --yes', 3],
    ['override ingester --rule zone-gap --duration 0s --reason x --yes', 3],
    ['pause ingester --duration 0s', 3],
    ['override ingester --rule zone-gap --duration 30m --reason x', 3],
  ])('%s exits with %i and writes nothing', async (words, status) => {
    const acted = await act(words);
    expect(acted.stderr).not.toContain('.; ');
    expect([acted.status, acted.kept]).toEqual([status, []]);
  });
});

describe('protect and cancel', () => {
  it('protects pods of one zone until a given time', async () => {
    const acted = await act('protect ingester --pod ingester-zone-b-1 --pod b-0 --until 2099-01-01T00:00:00Z --reason restore');
    expect(asked(acted)).toEqual([
      { group: 'ingester', action: 'protect', zone: 'b', ordinals: [0, 1], expires: '2099-01-01T00:00:00.000Z', reason: 'restore' },
    ]);
    expect(acted.stdout).toMatch(
      /^mimir\/ingester pods 0-1 of zone b protected until 2099-01-01 00:00 UTC \(restore\)\n {2}no replacement and no scale-down of pods 0-1 of zone b; /,
    );
  });

  const enforced = (labels: object, clientConfig = {}): readonly FakeObject[] => [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mimir', labels } },
    {
      ...requesterWebhook,
      kind: 'ValidatingWebhookConfiguration',
      webhooks: [{ clientConfig: { url: 'https://127.0.0.1', caBundle: 'Q0E=', ...clientConfig } }],
    },
  ];
  const optedIn = { 'rollout-group.dev/enforce': 'true' };
  const service = { name: 'webhooks', namespace: 'rollout-group' };

  it.each<[string, readonly FakeObject[], readonly string[]]>([
    ['the webhook denies deletion and eviction', enforced(optedIn), []],
    ['no webhook denies deletion (namespace mimir does not have the label rollout-group.dev/enforce=true)', enforced({}), []],
    ['no webhook denies deletion (ValidatingWebhookConfiguration rollout-group does not exist)', [], []],
    [
      'no webhook denies deletion (Service rollout-group/webhooks of the webhooks has no ready endpoint',
      [...enforced(optedIn, { service }), { apiVersion: 'v1', kind: 'Service', metadata: service }],
      [],
    ],
    [
      'it is unknown whether a webhook denies deletion and eviction (no permission to get validatingwebhookconfigurations, so the registered webhooks are unknown)',
      [],
      ['validatingwebhookconfigurations'],
    ],
  ])('prints whether other clients can delete the pods: %s', async (text, extra, forbidden) => {
    const acted = await act('protect ingester --duration 1h', { extra, options: { forbidden } });
    expect(acted.stdout).toContain(`\n  no replacement and no scale-down of the group; ${text}`);
  });

  it.each([
    'protect ingester',
    'protect ingester --duration 1h --until 2099-01-01T00:00:00Z',
    'protect ingester --duration 0s',
    'protect ingester --until 2020-01-01T00:00:00Z',
    'protect ingester --until tomorrow',
    'protect ingester --duration 1h --pod other-0',
    'protect ingester --duration 1h --pod a',
    'protect ingester --duration 1h --pod ingester-zone-a-0 --pod ingester-zone-b-0',
    'protect ingester --duration 1h --zone nonsense',
  ])('%s is not a valid protection', async (line) => {
    const acted = await act(line);
    expect([acted.status, acted.kept]).toEqual([3, []]);
  });

  it('accepts a pod that does not exist, with a note', async () => {
    const absent = await act('protect ingester --pod b-77 --duration 1h');
    expect(absent.status).toBe(0);
    expect(absent.stderr).toContain('note: pod ingester-zone-b-77 does not exist; the protection applies to a later pod of this name\n');
    expect((await act('protect ingester --pod b-0 --duration 1h')).stderr).not.toContain('does not exist');
  });

  it('rejects --duration 0s and names the flag', async () => {
    expect((await act('protect ingester --duration 0s')).stderr).toMatch(/^error: --duration 0s is too short\n/);
  });

  const protection: FakeObject = {
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: 'protect.ingester', namespace: 'mimir' },
    spec: { group: 'ingester', action: 'protect', expires: '2099-01-01T00:00:00Z' },
  };

  it('cancel of an undo names the zones that roll to the undone revision again, also in a dry run', async () => {
    const undoOf = (revision: string): FakeObject => ({
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: 'undo.ingester.1', namespace: 'mimir' },
      spec: { group: 'ingester', action: 'undo', undone: ['a', 'b'].map((zone) => ({ zone, revision })) },
    });
    const text = 'zones a and b roll to the undone revision again\n';
    expect((await act('cancel ingester undo.ingester.1', { extra: [undoOf('rev-2')] })).stdout).toContain(`cancelled\n  ${text}`);
    expect((await act('cancel ingester undo.ingester.1 --dry-run=client', { extra: [undoOf('rev-2')] })).stderr).toContain(text);
    const updated = adoptedObjects().filter(({ kind, metadata }) => kind === 'Pod' && metadata.name.startsWith('ingester-zone-b-'));
    for (const { metadata } of updated) Object.assign(metadata['labels'] ?? {}, { 'controller-revision-hash': 'rev-2' });
    expect((await act('cancel ingester undo.ingester.1', { extra: [undoOf('rev-2'), ...updated] })).stdout).toContain(
      'cancelled\n  zone a rolls to the undone revision again\n',
    );
    // Another undo still blocks the revision, or no wave includes the zones.
    const second = { ...undoOf('rev-2'), metadata: { name: 'undo.ingester.2', namespace: 'mimir' } };
    const { rollout, ...members } = Object(groupObject['spec']);
    const waves = [{ name: 'only', zones: ['b'], percent: 50 }];
    const short = { ...groupObject, spec: { ...members, rollout: { ...rollout, waves } } };
    expect((await act('cancel ingester undo.ingester.1', { extra: [undoOf('rev-2'), second] })).stdout).not.toContain('undone revision');
    expect((await act('cancel ingester undo.ingester.1', { extra: [undoOf('rev-2'), short] })).stdout).toContain(
      'cancelled\n  zone b rolls to the undone revision again\n',
    );
    expect((await act('cancel ingester undo.ingester.1', { extra: [undoOf('rev-1')] })).stdout).toBe(
      'mimir/ingester: undo.ingester.1 cancelled\n',
    );
  });

  it('cancel deletes the named request of this group only', async () => {
    const acted = await act('cancel ingester protect.ingester', { extra: [protection] });
    expect([acted.status, acted.stdout]).toEqual([0, 'mimir/ingester: protect.ingester cancelled\n']);
    const dead = await act('cancel ingester protect.ingester', { extra: [protection, leaseObject('agent-0', Date.now() - 300_000)] });
    expect(dead.stderr).toContain('note: agent not running: Lease expired');
    expect(acted.objects.some(({ kind }) => kind === 'RolloutIntent')).toBe(false);
    const other = { ...protection, spec: { ...Object(protection['spec']), group: 'querier' } };
    const foreign = await act('cancel ingester protect.ingester', { extra: [other] });
    expect([foreign.status, foreign.kept]).toEqual([10, []]);
    expect((await act('cancel ingester protect.ingester --dry-run client', { extra: [protection] })).kept).toEqual([]);
  });

  it('cancel without a name cancels the pending scale-down of a zone', async () => {
    const shrinking = { id: 'scale/b', kind: 'scaleDown', zone: 'b', from: 5, to: 1, outcome: 'wait', podCount: 0 } as const;
    const acted = await act('cancel ingester', { decision: { ...rolling, steps: [shrinking] } });
    expect(asked(acted)).toEqual([{ group: 'ingester', action: 'cancel', zone: 'b', replicas: 1 }]);
    expect(acted.stdout).toMatch(/zone b stays at 5 replicas; pods that prepared .*\n +1 replica is still requested; /);
    // The stored cancellation of the same number has ended, or no scale-down would be pending. A new request replaces it.
    const [intent] = acted.objects.filter(({ kind }) => kind === 'RolloutIntent');
    const name = intent?.metadata.name ?? '';
    const stored = { apiVersion, kind: 'RolloutIntent', metadata: { name, namespace: 'mimir' }, spec: intent?.['spec'] };
    const again = await act('cancel ingester', { decision: { ...rolling, steps: [shrinking] }, extra: [stored] });
    expect([again.status, again.stdout]).toEqual([0, acted.stdout]);
    expect(asked(again)).toEqual([...asked(acted), undefined]);
    expect(again.objects.map(({ metadata }) => metadata.name)).not.toContain(name);
    const nothing = await act('cancel ingester');
    expect([nothing.status, nothing.kept, nothing.stdout]).toEqual([
      0,
      [],
      'mimir/ingester has no pending scale-down; nothing was cancelled\n',
    ]);
  });
});
