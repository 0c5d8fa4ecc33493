import { describe, expect, it } from 'vitest';
import { secondText } from '../../policies/instant.ts';
import { runOf as storedRun } from '../kit/questions.ts';
import { adoptedObjects, ledgerObject } from './live-objects.ts';
import { act, apiVersion, history, over } from './live-requests-kit.ts';

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
    const run = storedRun({ target: at('rev-2'), previous: at('rev-1'), startedMs, ...completed });
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
  });

  it('to a time after this request is a restart, is denied in the dry run too, and writes nothing', async () => {
    for (const line of ['undo ingester', 'undo ingester --dry-run client', 'undo ingester --dry-run server']) {
      const { status, writes, stderr } = await act(line, circumstances(undefined, Date.now() + 3_600_000));
      expect([status, writes]).toEqual([5, []]);
      expect(stderr).toContain('restart of statefulset/ingester-zone-a in namespace mimir is denied by p/calm');
    }
  });
});
