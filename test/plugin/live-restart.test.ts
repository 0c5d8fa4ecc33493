import { describe, expect, it } from 'vitest';
import { planGroups } from '../../engine/plan/plan.ts';
import { result } from '../../engine/rule.ts';
import { planTexts } from '../../plugin/live/template-plan.ts';
import { secondText } from '../../policies/instant.ts';
import { planInput } from '../kit/manifests.ts';
import { runOf } from '../kit/questions.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, ledgerObject, publishedObject, statefulSetObject } from './live-objects.ts';
import { act, apiVersion, groupObject, history, over } from './live-requests-kit.ts';
import type { FakeObject } from './served-objects.ts';

describe('restart while the pods do not all run the template', () => {
  /** The members with the image `mimir:2`, while the pods of each zone run `mimir:1`, and those of `updated` run the template. */
  const inRun = (updated: readonly string[], ledger: Parameters<typeof ledgerObject>[0]): { readonly extra: readonly FakeObject[] } => {
    const image = 'mimir:2';
    const objects = adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
      const { template } = Object(object['spec']);
      if (object.kind === 'StatefulSet')
        return {
          ...object,
          spec: { ...Object(object['spec']), template: { ...template, spec: { containers: [{ name: 'ingester', image }] } } },
        };
      const { labels, name = '' } = object.metadata;
      const isUpdated = object.kind === 'Pod' && updated.some((zone) => name.startsWith(`ingester-zone-${zone}-`));
      return isUpdated
        ? { ...object, metadata: { ...object.metadata, labels: { ...Object(labels), 'controller-revision-hash': 'rev-2' } } }
        : object;
    });
    const conditions = [{ type: 'Ready', status: 'True' }];
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, status: { conditions } };
    return { extra: [...objects, ...history, ledgerObject(ledger), node] };
  };
  const startedMs = Date.now() - 60_000;
  const run = runOf({ startedMs, waveStartedMs: startedMs, movableAsOfMs: startedMs, lastDisruptionMs: startedMs + 1000 });

  it('during a run names the images that pods run and get, and the run that it supersedes, also in a dry run', async () => {
    const lines = [
      'a: mimir:2 (2 pods)',
      'b: mimir:1 (2 pods) -> mimir:2',
      'c: mimir:1 (2 pods) -> mimir:2',
      'supersedes run run-1 (to mimir:2): 2 of 6 pods updated; these pods are replaced again',
      'waits for the soak of wave canary (30m)',
      'waits for the approval of wave rest (2 from oncall)',
    ];
    const done = await act('restart ingester', inRun(['a'], { run }));
    expect([done.status, done.stdout]).toEqual([
      0,
      `6 pods of mimir/ingester will be replaced in the order of the group\n${lines.map((line) => `  ${line}\n`).join('')}`,
    ]);
    for (const dryRun of ['client', 'server'])
      expect((await act(`restart ingester --dry-run ${dryRun}`, inRun(['a'], { run }))).stderr).toContain(
        `note: this replaces 6 pods of mimir/ingester in the order of the group; ${lines.join('; ')}\n`,
      );
    const asked = await act('restart ingester --zone b', { ...inRun(['a'], { run }), answer: 'n' });
    expect([asked.status, asked.writes, asked.stderr]).toEqual([
      5,
      [],
      expect.stringContaining('This replaces 4 pods of mimir/ingester in the order of the group.\n  b: mimir:1 (2 pods) -> mimir:2\n  c: '),
    ]);
  });

  it('names an undone revision in another zone, which blocks the run', async () => {
    const spec = { group: 'ingester', action: 'undo', undone: [{ zone: 'a', revision: 'rev-2', to: 'rev-1' }] };
    const undo = { apiVersion, kind: 'RolloutIntent', metadata: { name: 'undo.ingester.1', namespace: 'mimir' }, spec };
    const extra = [...history, undo, statefulSetObject('a', { updateRevision: 'rev-2' })];
    for (const dryRun of ['', ' --dry-run=server']) {
      const { stderr } = await act(`restart ingester --zone b${dryRun}`, { extra });
      expect(stderr).toContain(
        'restart does not end this block. To end it: kubectl rollout-group cancel mimir/ingester undo.ingester.1, or kubectl rollout-group undo mimir/ingester --zone a, or apply another pod template\n',
      );
    }
  });

  it('names the revision to which pods of another zone return, and no pods that only a retry would replace', async () => {
    const at = (a: string, b = a, c = a) => ({ a, b, c });
    const strategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
    const { rollout: _rollout, ...members } = Object(groupObject['spec']);
    const pinned = { ...groupObject, spec: { ...members, rollout: { strategy: 'pinned' } } };
    const failed = { rolledBack: { revisions: { c: 'rev-2' }, because: 'gate errors' }, restores: at('rev-1') };
    const back = { kind: 'rollback', target: at('rev-1'), previous: at('rev-1', 'rev-1', 'rev-2'), ...failed } as const;
    const linesWhile = async (state: Parameters<typeof runOf>[0], isFailed: (name: string) => boolean) => {
      const objects = adoptedObjects({ strategy }).map((object) => {
        const { name = '', labels } = object.metadata;
        if (name === 'ingester-zone-c') return statefulSetObject('c', { strategy, updateRevision: 'rev-2' });
        if (object.kind !== 'Pod' || !isFailed(name)) return object;
        return { ...object, metadata: { ...object.metadata, labels: { ...Object(labels), 'controller-revision-hash': 'rev-2' } } };
      });
      const ledger = ledgerObject({ run: runOf({ ...back, startedMs, ...state }) });
      const { status, stdout } = await act('restart ingester --zone a', { extra: [...objects, ...history, pinned, ledger] });
      expect(status).toBe(0);
      return stdout.split('\n').filter((line) => /^ {2}[abc]: /.test(line));
    };
    const running = await linesWhile({}, (name) => name === 'ingester-zone-c-0');
    expect(running).toEqual(['  a: mimir:1 (2 pods)', '  c: mimir:2 (1 pod) -> mimir:1']);
    const over = await linesWhile({ outcome: 'completed', completedMs: startedMs + 1000 }, () => false);
    expect(over).toEqual(['  a: mimir:1 (2 pods)']);
  });

  it('denies the template of a failed run, and names the commands that return or continue', async () => {
    const failed = { ...run, outcome: 'failed', failure: 'no pod became available for 5m', failedMs: startedMs + 2000 } as const;
    for (const line of [
      'restart ingester',
      'restart ingester --zone b',
      'restart ingester --dry-run client',
      'restart ingester --dry-run server',
    ]) {
      const { status, stdout, stderr, writes } = await act(line, inRun(['a'], { run: failed }));
      expect([status, stdout, writes]).toEqual([5, '', []]);
      expect(stderr).toMatch(
        /denied by run-failed: a restart would roll out a blocked template: the run failed: no pod became available for 5m/,
      );
      expect(stderr).toContain(
        'do:  to continue: kubectl rollout-group retry mimir/ingester; to restart the pods at the template before: kubectl rollout-group undo mimir/ingester, then repeat the command\n',
      );
    }
  });

  it.each([
    ['an undo returned it', run.target],
    ['the run did not change it', { ...run.target, a: 'rev-1' }],
  ])('denies a zone without the template of the failed run, because no pod would be replaced: %s', async (_name, target) => {
    const failed = { ...run, target, outcome: 'failed', failure: 'no pod came', failedMs: startedMs + 2000 } as const;
    const { extra } = inRun([], { run: failed });
    const set = statefulSetObject('a', { updateRevision: 'rev-1' });
    const { status, stderr, writes } = await act('restart ingester --zone a', { extra: [...extra, set] });
    expect([status, writes]).toEqual([5, []]);
    expect(stderr).toContain(
      'denied by run-failed: a restart would replace no pod while zones b and c have the template of the failed run: the run failed: no pod came',
    );
  });

  it('denies a new template that a policy denies, and names the override as the API server would not', async () => {
    const spec = { targets: { all: true }, rules: [{ name: 'calm', actions: ['rollout'], effect: 'deny' }] };
    const denies = { apiVersion, kind: 'RolloutPolicy', metadata: { name: 'p', namespace: 'mimir' }, spec };
    const { status, writes, stderr } = await act('restart ingester', { decision: over, extra: [...history, denies] });
    expect([status, writes]).toEqual([5, []]);
    expect(stderr).toContain('update of statefulset/ingester-zone-a in namespace mimir is denied by p/calm');
    expect(stderr).toContain('kubectl rollout-group override mimir/ingester --rule p/calm');
  });

  it('denies a template that the published decision of a group without a readable definition blocks', async () => {
    const stop = {
      rule: 'rolled-back',
      fact: 'it was rolled back',
      zones: ['b'],
      isBlocking: true,
      endsWith: 'retry it',
      alternatives: ['undo it'],
    };
    const members = JSON.parse(JSON.stringify(adoptedObjects()).replaceAll('"rollout-group":', '"team":'));
    const objects = [...members, publishedObject({ ...rolling, decidedMs: Date.now(), stops: [stop] })];
    const server = await fakeApiServer(objects, { forbidden: ['rolloutgroups'] });
    const restart = (zone: string) => runInProcess(['restart', 'ingester', '--zone', zone, '--server', server.url, '-n', 'mimir'], {});
    expect(await restart('b')).toMatchObject({
      status: 5,
      stderr: expect.stringContaining('would roll out a blocked template\n  why: it was rolled back\n  do:  retry it, or undo it\n'),
    });
    expect(server.writes).toEqual([]);
    expect((await restart('a')).status).toBe(0);
  });
});

describe('undo of a restart', () => {
  const startedMs = Date.now() - 3_600_000;
  // Like the templates of a cluster, with every default of the API server.
  const defaults = { resources: {}, terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' };
  const ofPod = { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst', securityContext: {} };
  const containers = [{ name: 'ingester', image: 'mimir:2', imagePullPolicy: 'IfNotPresent', ...defaults }];
  const restarted = (atMs: number | undefined) => {
    const annotations = atMs === undefined ? {} : { annotations: { 'kubectl.kubernetes.io/restartedAt': secondText(atMs) } };
    const metadata = { labels: { 'rollout-group': 'ingester' }, ...annotations };
    return { metadata, spec: { ...ofPod, schedulerName: 'default-scheduler', containers } };
  };
  /** The members with a template of this restart, while the revision before is another restart of the same template. */
  const circumstances = (presentMs: number | undefined, beforeMs: number) => {
    const members = adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
      if (object.kind !== 'StatefulSet') return object;
      const status = { ...Object(object['status']), observedGeneration: 2 };
      return { ...object, spec: { ...Object(object['spec']), template: restarted(presentMs) }, status };
    });
    const revisions = history.map((one) =>
      one.metadata.name === 'rev-1' ? { ...one, data: { spec: { template: restarted(beforeMs) } } } : one,
    );
    const at = (revision: string) => ({ a: revision, b: revision, c: revision });
    const completed = { outcome: 'completed', completedMs: startedMs + 60_000 } as const;
    const run = runOf({ target: at('rev-2'), previous: at('rev-1'), startedMs, ...completed });
    const denies = {
      apiVersion,
      kind: 'RolloutPolicy',
      metadata: { name: 'p', namespace: 'mimir' },
      spec: { targets: { all: true }, rules: [{ name: 'calm', actions: ['restart'], effect: 'deny' }] },
    };
    return { decision: over, extra: [...members, ...revisions, ledgerObject({ run }), denies] };
  };

  it.each<[string, number | undefined, number]>([
    ['an earlier restart', startedMs - 60_000, startedMs - 120_000],
    ['a later restart that was undone', startedMs - 120_000, startedMs - 60_000],
    ['a restart whose time the present template does not have', undefined, startedMs - 60_000],
  ])('to %s is no restart, and ends no block', async (_, presentMs, beforeMs) => {
    const { status, stdout, stderr } = await act('undo ingester', circumstances(presentMs, beforeMs));
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain('ends a block');
    expect(stdout).not.toContain('manifests in Git');
  });

  it('to a time after this request is a restart, is denied in the dry run too, and writes nothing', async () => {
    for (const line of ['undo ingester', 'undo ingester --dry-run client', 'undo ingester --dry-run server']) {
      const { status, writes, stderr } = await act(line, circumstances(undefined, Date.now() + 3_600_000));
      expect([status, writes]).toEqual([5, []]);
      expect(stderr).toContain('restart of statefulset/ingester-zone-a in namespace mimir is denied by p/calm');
    }
  });
});

it('names the waits of new templates, but not that a change of replicas waits for their rollout', () => {
  const [plan] = planGroups(planInput()).groups;
  if (plan === undefined) throw new Error('the test expected a plan');
  const waits = [result('rollout-in-progress', 'wait', 'a rollout runs'), result('zone-gap', 'wait', 'zone a changed')];
  expect(planTexts({ plan: { ...plan, waits }, lines: [], others: new Map() })).toEqual(['waits for zone-gap: zone a changed']);
});
