// Tests the Events and log lines about a removed group without `onPolicyDeleted: release`: which, how often, and by which process.
import { describe, expect, it } from 'vitest';
import { EventWriter } from '../../../agent/published/events.ts';
import { GroupObjects } from '../../../agent/published/group-objects.ts';
import { removalGraceMs } from '../../../engine/release/removal.ts';
import { type ProcessOptions, startProcess } from '../../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster } from '../../kit/cluster.ts';

const groupKind = 'rolloutgroups.rollout-group.dev';
const holding = 1_000_000;
const setNames = ['a', 'b', 'c'].map((zone) => `ingester-zone-${zone}`);

const rollout = {
  strategy: 'partition',
  waves: [
    { name: 'canary', zones: ['a'], pods: 1, after: { soak: '10h' } },
    { name: 'rest', zones: ['a', 'b', 'c'], percent: 100 },
  ],
};

function putGroup({ api }: Cluster, name = 'ingester', more: object = {}, names = ['a', 'b', 'c']): void {
  const zones = names.map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` }));
  const spec = { members: { zones }, replicas: { leader: true }, rollout: { ...rollout, ...more } };
  api.put(groupKind, { metadata: { name, namespace: 'mimir' }, spec });
}

const removeGroup = ({ api }: Cluster, name = 'ingester'): void => api.remove(groupKind, 'mimir', name);

const starter =
  ({ env }: Cluster) =>
  (options: Partial<ProcessOptions> = {}) =>
    startProcess({
      env,
      listeners: (own, config) => [new EventWriter({ env: own, config, objects: new GroupObjects(own, 5000) }).listener],
      ...options,
    });

/** An agent that has a group at rest, with Events that can be read. */
async function atRest(more: object = {}, options: Partial<ProcessOptions> = {}) {
  const cluster = newCluster();
  nativeGroup(cluster, { rollout: { ...rollout, ...more } }, { partition: holding });
  const start = starter(cluster);
  const first = start(options);
  await cluster.env.until(() => first.reports.some(({ decision }) => decision?.outcome === 'done'));
  return { cluster, start, first };
}

/** As `Type Reason StatefulSet`, in the order of StatefulSets. */
function told({ api }: Cluster, reasons: readonly string[] = ['GroupGone']): readonly string[] {
  return api
    .list('events.events.k8s.io', 'mimir')
    .map((event) => {
      const { type, reason, regarding } = event as unknown as { type: string; reason: string; regarding: { name: string } };
      return { reason, text: `${type} ${reason} ${regarding.name}` };
    })
    .filter(({ reason }) => reasons.includes(reason))
    .map(({ text }) => text)
    .sort();
}

const each = (word: string): readonly string[] => setNames.map((name) => `${word} ${name}`);

/** In the middle of the canary. */
async function midWave(more: object = {}, options: Partial<ProcessOptions> = {}) {
  const started = await atRest(more, options);
  const { cluster, first } = started;
  cluster.rollTo('app:2');
  await cluster.env.until(() => first.reports.at(-1)?.ledger?.run?.waveAvailableMs !== undefined);
  await cluster.env.advance(5_000);
  return started;
}

describe('a group that is deleted and stays as it is', () => {
  it('is reported on each StatefulSet once, as a warning during a rollout, and in the log; no other object is written', async () => {
    const { cluster, first } = await midWave();
    const before = cluster.writes().length;
    removeGroup(cluster);
    await cluster.env.advance(removalGraceMs - 1_000);
    expect(told(cluster)).toEqual([]);
    await cluster.env.advance(2_000);
    expect(told(cluster)).toEqual(each('Warning GroupGone'));
    const lines = first.logs.filter((line) => line.includes('group is no longer defined'));
    expect(lines).toHaveLength(3);
    expect(lines[1]).toMatch(/^warn .*"statefulSet":"ingester-zone-b".*its rollout was running\): the partition stays at 1000000/);
    await cluster.env.advance(1_800_000);
    expect(told(cluster)).toHaveLength(3);
    const written = cluster.writes().slice(before);
    expect(written.filter((write) => !write.includes('/events'))).toEqual([]);
  });

  it('is reported without a warning if no pod is outdated', async () => {
    const { cluster } = await atRest();
    removeGroup(cluster);
    await cluster.env.advance(10_000);
    expect(told(cluster)).toEqual(each('Normal GroupGone'));
  });

  it('is reported for a member that leaves during a rollout, and the rollout continues', async () => {
    const { cluster, first } = await midWave();
    const run = first.reports.at(-1)?.ledger?.run?.id;
    putGroup(cluster, 'ingester', { waves: [{ name: 'all', zones: ['a', 'b'], percent: 100, after: { soak: '10h' } }] }, ['a', 'b']);
    await cluster.env.advance(removalGraceMs + 2_000);
    expect(told(cluster)).toEqual(['Warning GroupGone ingester-zone-c']);
    expect(first.reports.at(-1)?.ledger?.run).toMatchObject({ id: run, outcome: 'running' });
  });

  it('is reported for each removal', async () => {
    const { cluster } = await atRest();
    for (const count of [1, 2]) {
      removeGroup(cluster);
      await cluster.env.advance(10_000);
      expect(told(cluster)).toHaveLength(3 * count);
      putGroup(cluster);
      await cluster.env.advance(10_000);
    }
    expect(told(cluster)).toHaveLength(6);
  });

  it('is not reported if the group returns at once, and is reported if it returns under another name', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(2_000);
    putGroup(cluster);
    await cluster.env.advance(60_000);
    removeGroup(cluster);
    await cluster.env.advance(2_000);
    putGroup(cluster, 'renamed');
    await cluster.env.advance(60_000);
    expect(told(cluster)).toEqual([]);
    removeGroup(cluster, 'renamed');
    await cluster.env.advance(60_000);
    expect(told(cluster)).toEqual(each('Warning GroupGone'));
  });

  it('is not reported while objects cannot be read, and then once', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(2_000);
    cluster.api.forbid('* rolloutgroups.rollout-group.dev');
    cluster.api.cutWatches();
    await cluster.env.advance(300_000);
    expect(told(cluster)).toEqual([]);
    cluster.api.permit('* rolloutgroups.rollout-group.dev');
    await cluster.env.advance(600_000);
    expect(told(cluster)).toEqual(each('Warning GroupGone'));
  });

  it('is reported by the leader, and not again by the next one', async () => {
    const { cluster, start, first } = await midWave();
    start({ name: 'agent-2' });
    await cluster.env.advance(10_000);
    removeGroup(cluster);
    await cluster.env.advance(10_000);
    first.crash();
    await cluster.env.advance(120_000);
    start({ name: 'agent-3' });
    await cluster.env.advance(120_000);
    expect(told(cluster)).toEqual(each('Warning GroupGone'));
  });

  it('is not reported for StatefulSets that were deleted too', async () => {
    const { cluster } = await atRest();
    removeGroup(cluster);
    cluster.api.remove('statefulsets.apps', 'mimir', 'ingester-zone-b');
    await cluster.env.advance(60_000);
    expect(told(cluster)).toEqual(['Normal GroupGone ingester-zone-a', 'Normal GroupGone ingester-zone-c']);
  });
});

describe('a group that is deleted and released', () => {
  it('is reported as a warning, and a zone is reported as waiting only before its release', async () => {
    const { cluster } = await midWave({ onPolicyDeleted: 'release' });
    removeGroup(cluster);
    const reasons = ['GroupGone', 'ReleaseAnnounced', 'ReleaseWaits', 'Released'];
    await cluster.env.advance(10_000);
    expect(told(cluster, reasons)).toEqual(each('Warning ReleaseAnnounced'));
    await cluster.env.until(() => told(cluster, ['Released']).length === 1);
    await cluster.env.advance(8_000);
    expect(told(cluster, ['ReleaseWaits'])).toEqual([]);
    cluster.workloads.breakNext('ingester-zone-a-0');
    await cluster.env.advance(60_000);
    expect(told(cluster, ['Released', 'ReleaseWaits'])).toEqual([
      'Normal ReleaseWaits ingester-zone-b',
      'Normal ReleaseWaits ingester-zone-c',
      'Normal Released ingester-zone-a',
    ]);
  });
});
