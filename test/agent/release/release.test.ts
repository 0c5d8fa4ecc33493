// The definition of a group goes away while its pods are held: what the agent hands back, when, and whatever happens to it meanwhile.
import { describe, expect, it } from 'vitest';
import type { PolicyDirectory } from '../../../agent/env.ts';
import type { ReleaseReport, TurnListener } from '../../../agent/report.ts';
import { decodeLedger, ledgerKey, ledgerName } from '../../../engine/ledger/ledger-document.ts';
import { isUnknown, type Ledger } from '../../../engine/snapshot.ts';
import { type Moment, type ProcessOptions, startProcess } from '../../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster, rolled } from '../../kit/cluster.ts';
import { shareOf } from '../../kit/share.ts';

const groupKind = 'rolloutgroups.rollout-group.dev';
const holding = 1_000_000;
const graceMs = 60_000;

const rollout = {
  strategy: 'partition',
  onPolicyDeleted: 'release',
  waves: [
    { name: 'canary', zones: ['a'], pods: 1, after: { soak: '10h' } },
    { name: 'rest', zones: ['a', 'b', 'c'], percent: 100 },
  ],
};

function partitions({ api }: Cluster): readonly number[] {
  return api.list('statefulsets.apps', 'mimir').map(({ spec }) => {
    const { updateStrategy } = spec as { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
    return updateStrategy.rollingUpdate?.partition ?? 0;
  });
}

function ledgerIn({ api }: Cluster): Ledger {
  const { data } = (api.get('configmaps', 'mimir', ledgerName('ingester')) ?? {}) as { readonly data?: Readonly<Record<string, string>> };
  const ledger = decodeLedger(data?.[ledgerKey], { namespace: 'mimir', group: 'ingester' });
  if (isUnknown(ledger)) throw new Error(ledger.unknown);
  return ledger;
}

const removeGroup = ({ api }: Cluster): void => api.remove(groupKind, 'mimir', 'ingester');

function putGroup({ api }: Cluster, more: object = {}): void {
  const zones = ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
  const spec = { members: { zones }, replicas: { leader: true }, rollout: { ...rollout, ...more } };
  api.put(groupKind, { metadata: { name: 'ingester', namespace: 'mimir' }, spec });
}

interface Started {
  readonly cluster: Cluster;
  readonly start: (options?: Partial<ProcessOptions>) => ReturnType<typeof startProcess>;
  readonly released: ReleaseReport[];
}

/** A group under an agent, in the middle of its canary: the highest pod of zone a is new, every other one old. */
async function midWave(
  more: object = {},
  options: Partial<ProcessOptions> = {},
): Promise<Started & { first: ReturnType<typeof startProcess> }> {
  const cluster = newCluster();
  nativeGroup(cluster, { rollout: { ...rollout, ...more } }, { partition: holding });
  const released: ReleaseReport[] = [];
  const listener: TurnListener = { turnEnded: () => undefined, releaseEnded: (report) => void released.push(report) };
  const start: Started['start'] = (own = {}) => startProcess({ env: cluster.env, listeners: () => [listener], ...own });
  const first = start(options);
  await cluster.env.until(() => first.reports.some(({ decision }) => decision?.outcome === 'done'));
  cluster.rollTo('app:2');
  await cluster.env.until(() => ledgerIn(cluster).run?.waveAvailableMs !== undefined);
  await cluster.env.advance(5_000);
  return { cluster, start, released, first };
}

const isAllBack = (cluster: Cluster): boolean => rolled(cluster, 'app:2') && ledgerIn(cluster).release === undefined;

describe('a group whose definition is deleted', () => {
  it('is released zone by zone after one minute, and then forgotten', async () => {
    const { cluster, released } = await midWave();
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    removeGroup(cluster);
    await cluster.env.advance(graceMs - 2_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    await cluster.env.until(() => isAllBack(cluster), 600_000);
    expect(partitions(cluster)).toEqual([0, 0, 0]);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    const done = released.flatMap(({ performed }) => performed ?? []);
    expect(done.map(({ action, result }) => ('zone' in action ? `${action.zone} ${result}` : ''))).toEqual(['a done', 'b done', 'c done']);
    expect(ledgerIn(cluster)).toEqual({
      namespace: 'mimir',
      group: 'ingester',
      claims: [],
      downscales: [],
      preparations: [],
      epoch: expect.anything(),
    });
    const { metadata } = cluster.api.get('configmaps', 'mimir', ledgerName('ingester')) ?? {};
    expect(metadata?.labels).toMatchObject({ 'rollout-group.dev/on-policy-deleted': 'hold' });
    const after = cluster.writes().length;
    await cluster.env.advance(300_000);
    expect(cluster.writes().slice(after)).toEqual([]);
  });

  it('stays as it is without onPolicyDeleted, and ledgers are not searched while groups have every StatefulSet', async () => {
    const { cluster, first } = await midWave({ onPolicyDeleted: 'hold' });
    expect(first.sites).not.toContain('release.ledgers');
    removeGroup(cluster);
    await cluster.env.advance(600_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    expect(first.sites).toContain('release.ledgers');
  });

  it('is found by an agent that was not there when it was deleted', async () => {
    const { cluster, start, first } = await midWave();
    first.crash();
    removeGroup(cluster);
    await cluster.env.advance(30_000);
    start({ name: 'agent-2' });
    await cluster.env.advance(50_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    await cluster.env.until(() => isAllBack(cluster), 600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('waits with the next zone until the pods of the released zone are available', async () => {
    const { cluster } = await midWave();
    cluster.workloads.breakNext('ingester-zone-a-1');
    removeGroup(cluster);
    await cluster.env.advance(600_000);
    expect(partitions(cluster)).toEqual([0, holding, holding]);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('does not touch a StatefulSet that a user blocks after the release, also if processes die meanwhile', async () => {
    const { cluster, start, first } = await midWave();
    removeGroup(cluster);
    await cluster.env.until(() => partitions(cluster).every((partition) => partition === 0), 600_000);
    first.crash();
    const second = start({ name: 'agent-2' });
    await cluster.env.until(() => isAllBack(cluster), 600_000);
    const spec = { updateStrategy: { rollingUpdate: { partition: 2 } } };
    cluster.api.change('statefulsets.apps', 'mimir', 'ingester-zone-c', { spec });
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([0, 0, 2]);
    expect(second.sites).not.toContain('act.setPartition');
  });

  it('leaves a partition that a user raises again', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.until(() => partitions(cluster)[0] === 0);
    await cluster.env.advance(6_000);
    const spec = { updateStrategy: { rollingUpdate: { partition: holding } } };
    cluster.api.change('statefulsets.apps', 'mimir', 'ingester-zone-a', { spec });
    await cluster.env.advance(600_000);
    expect(partitions(cluster)).toEqual([holding, holding, holding]);
  });
});

describe('a release', () => {
  it('does not start if the definition returns within the minute, and a later release waits for a full minute', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(40_000);
    putGroup(cluster);
    await cluster.env.advance(60_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    expect(ledgerIn(cluster)).toMatchObject({ run: { wave: 0 }, release: { zones: [{}, {}, {}] } });
    expect(ledgerIn(cluster).release?.goneMs).toBeUndefined();
    removeGroup(cluster);
    await cluster.env.advance(graceMs - 2_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
  });

  it('ends at once when the definition returns, and the group starts from its current state', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.until(() => partitions(cluster)[0] === 0);
    putGroup(cluster);
    await cluster.env.advance(600_000);
    expect(partitions(cluster).slice(1)).toEqual([holding, holding]);
    expect(ledgerIn(cluster).release).toEqual(expect.not.objectContaining({ goneMs: expect.anything() }));
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('does not start if another definition takes the members, or if that one is deleted without onPolicyDeleted', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(20_000);
    const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
    const spec = {
      members: { zones },
      replicas: { leader: true },
      rollout: { ...rollout, waves: rollout.waves.slice(0, 1), onPolicyDeleted: 'hold' },
    };
    cluster.api.put(groupKind, { metadata: { name: 'renamed', namespace: 'mimir' }, spec });
    await cluster.env.advance(120_000);
    expect(ledgerIn(cluster).release).toBeUndefined();
    cluster.api.remove(groupKind, 'mimir', 'renamed');
    await cluster.env.advance(600_000);
    expect(partitions(cluster).slice(1)).toEqual([holding, holding]);
  });

  it('waits for a minute by a monotonic clock, also across leaders', async () => {
    const { cluster, start, first } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(10_000);
    cluster.env.jumpWallClock(3_600_000);
    await cluster.env.advance(40_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    first.crash();
    start({ name: 'agent-2' });
    await cluster.env.advance(50_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    await cluster.env.until(() => isAllBack(cluster), 600_000);
  });

  it('waits while objects cannot be read, and one minute longer', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(40_000);
    cluster.api.forbid('* rolloutgroups.rollout-group.dev');
    cluster.api.cutWatches();
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    cluster.api.permit('* rolloutgroups.rollout-group.dev');
    await cluster.env.until(() => ledgerIn(cluster).release?.goneMs !== undefined);
    await cluster.env.advance(graceMs - 2_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    await cluster.env.until(() => isAllBack(cluster), 600_000);
  });

  it('does not start if the definition returned but a silent watch has not reported it', async () => {
    const { cluster } = await midWave();
    removeGroup(cluster);
    await cluster.env.advance(20_000);
    cluster.api.hold('rolloutgroups.rollout-group.dev');
    putGroup(cluster);
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
  });

  it('needs permission to list ledgers, and reports that it is missing', async () => {
    const { cluster, first } = await midWave();
    cluster.api.forbid('list configmaps');
    removeGroup(cluster);
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    expect(first.degradations()).toContainEqual(expect.objectContaining({ id: 'release', reason: 'forbidden' }));
    cluster.api.permit('list configmaps');
    await cluster.env.until(() => isAllBack(cluster), 600_000);
  });
});

describe('a group whose file is deleted', () => {
  const text = (name: string): string => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ${name}, namespace: mimir }
spec: ${JSON.stringify({
    members: { zones: ['a', 'b', 'c'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
    replicas: { leader: true },
    rollout,
  })}
`;
  const other = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: other, namespace: mimir }
spec: { targets: { groups: [other] }, limits: { minInterval: 1m } }
`;
  type Files = readonly { readonly name: string; readonly text: string }[] | Error;

  async function fromFiles() {
    let files: Files = [
      { name: 'ingester.yaml', text: text('ingester') },
      { name: 'other.yaml', text: other },
    ];
    let changed = (): void => undefined;
    const policyDirectory: PolicyDirectory = {
      read: async () => {
        if (files instanceof Error) throw files;
        return files;
      },
      watch: (onChange) => {
        changed = onChange;
        return () => undefined;
      },
    };
    const write = (next: Files): void => {
      files = next;
      changed();
    };
    const started = await midWave({}, { policyDirectory });
    removeGroup(started.cluster);
    await started.cluster.env.advance(120_000);
    return { ...started, write };
  }

  it('is released like a deleted object, and not while the object exists', async () => {
    const { cluster, write } = await fromFiles();
    expect([partitions(cluster), ledgerIn(cluster).release?.source]).toEqual([[2, holding, holding], 'directory']);
    write([
      { name: 'moved.yaml', text: text('ingester') },
      { name: 'other.yaml', text: other },
    ]);
    await cluster.env.advance(120_000);
    putGroup(cluster);
    write([{ name: 'other.yaml', text: other }]);
    await cluster.env.advance(120_000);
    expect([partitions(cluster), ledgerIn(cluster).release?.source]).toEqual([[2, holding, holding], 'objects']);
    removeGroup(cluster);
    await cluster.env.until(() => isAllBack(cluster), 600_000);
  });

  it.each<[string, Files]>([
    ['empty', []],
    ['not to be read', new Error('it is gone')],
    ['with errors', [{ name: 'other.yaml', text: 'kind: RolloutGrou' }]],
  ])('stays as it is while the directory is %s', async (_name, files) => {
    const { cluster, write, start, first } = await fromFiles();
    write(files);
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
    first.crash();
    const policyDirectory: PolicyDirectory = {
      read: async () => {
        if (files instanceof Error) throw files;
        return files;
      },
      watch: () => () => undefined,
    };
    // Another process has never seen the file.
    start({ name: 'agent-2', policyDirectory });
    await cluster.env.advance(300_000);
    start({ name: 'agent-3' });
    await cluster.env.advance(300_000);
    expect(partitions(cluster)).toEqual([2, holding, holding]);
  });
});

describe('failures of the agent', () => {
  const moments: readonly Moment[] = ['beforeSend', 'afterReply'];
  const visits: readonly (readonly [site: string, visit: number])[] = [
    ['release.ledgers', 1],
    ['ledger.read', 1],
    // The instant since when it is gone, each zone before it is handed back, and the end.
    ...([1, 2, 4, 5] as const).map((visit) => ['ledger.replace', visit] as const),
    ...([1, 2, 3] as const).map((visit) => ['act.setPartition', visit] as const),
    ['fresh.pods', 2],
  ];
  const cases = visits.flatMap(([site, visit]) => moments.map((moment) => [site, visit, moment] as const));

  it.each(shareOf(cases, 3))(
    'at %s, visit %d, %s: it dies or loses an answer, and every zone is released once, one at a time',
    async (site, visit, moment) => {
      for (const what of ['crash', 'lose'] as const) {
        let visits = 0;
        let isGone = false;
        const fault = (visited: string, when: Moment) => {
          if (!isGone || visited !== site || when !== moment) return undefined;
          visits += 1;
          return visits === visit ? what : undefined;
        };
        const { cluster, start } = await midWave({}, { fault });
        start({ name: 'agent-2' });
        await cluster.env.advance(1_000);
        isGone = true;
        removeGroup(cluster);
        await cluster.env.until(() => isAllBack(cluster), 900_000);
        expect([what, visits >= visit]).toEqual([what, true]);
        expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
        expect(cluster.writes().filter((write) => write.includes('/statefulsets/')).length).toBeGreaterThan(3);
        expect(partitions(cluster)).toEqual([0, 0, 0]);
      }
    },
  );
});
