import { describe, expect, it } from 'vitest';
import { isUnknown, type Ledger, type Pin } from '../../../../engine/snapshot.ts';
import {
  type NewPod,
  newPod,
  type Placement,
  type PlacementQuestion,
  pinnedGroupOf,
  placementOf,
  type ReadRevision,
  readRevision,
  revisionsToRead,
} from '../../../../engine/strategies/pinned/placement.ts';
import { group } from '../../../kit/groups.ts';

type Content = Readonly<Record<string, unknown>>;

const uid = 'set-uid';
const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'ingester-zone-a', uid, controller: true };
const seen = { uid, updateRevision: 'r2' };
const template = (version: number): Content => ({
  metadata: { labels: { name: 'ingester' } },
  spec: { containers: [{ name: 'ingester', image: `mimir:${version}` }] },
});
const revisionObject = (version: number, owners: readonly Content[] = [owner]): Content => ({
  metadata: { name: `r${version}`, ownerReferences: owners },
  data: { spec: { template: { ...template(version), $patch: 'replace' } } },
});

interface PodChanges {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string | undefined>>;
  readonly owners?: readonly Content[];
  readonly version?: number;
}

function content({ name = 'ingester-zone-a-1', labels = {}, owners = [owner], version = 1 }: PodChanges = {}): Content {
  const all = { name: 'ingester', 'apps.kubernetes.io/pod-index': '1', 'controller-revision-hash': `r${version}`, ...labels };
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const sidecar = { name: 'proxy', image: 'proxy:9' };
  const spec = { containers: [{ name: 'ingester', image: `mimir:${version}`, terminationMessagePath: '/x' }, sidecar], hostname: name };
  return { metadata: { name, namespace: 'mimir', labels: present, ownerReferences: owners }, spec };
}

function podOf(changes: PodChanges = {}): NewPod {
  const pod = newPod('mimir', content(changes));
  if (pod === undefined || isUnknown(pod)) throw new Error(`the test expected a pod: ${JSON.stringify(pod)}`);
  return pod;
}

const pin = (changes: Partial<Pin> = {}): Pin => ({ zone: 'a', ordinal: 1, revision: 'r2', placements: 1, ...changes });
const ledgerOf = (changes: Partial<Ledger> = {}): Ledger => ({
  namespace: 'mimir',
  group: 'ingester',
  claims: [],
  downscales: [],
  preparations: [],
  pins: [pin()],
  ...changes,
});
const read = (versions: readonly number[]): ReadonlyMap<string, ReadRevision> =>
  new Map(versions.map((version) => [`r${version}`, readRevision(revisionObject(version), { uid })]));

function place(pod: NewPod, changes: Partial<PlacementQuestion> = {}): Placement {
  return placementOf(pod, { ledger: ledgerOf(), zone: 'a', seen, revisions: read([1, 2, 3]), ...changes });
}

function imagesOf(placement: Placement): readonly unknown[] {
  if (placement.kind === 'stays') return ['stays', placement.problem];
  const { metadata, spec } = placement.pod as {
    readonly metadata: { readonly labels: Readonly<Record<string, string>> };
    readonly spec: { readonly containers: readonly { readonly image: string }[] };
  };
  return [metadata.labels['controller-revision-hash'], ...spec.containers.map(({ image }) => image)];
}

describe('a pod that is about to be made', () => {
  it('is known by its controller, its name and its labels; the ordinal counts from where ordinals start', () => {
    expect(podOf()).toMatchObject({ statefulSet: 'ingester-zone-a', uid, ordinal: 1, revision: 'r1' });
    const far = { name: 'ingester-zone-a-1000', labels: { 'apps.kubernetes.io/pod-index': '1000' } };
    expect(podOf(far).ordinal).toBe(1000);
    // Kubernetes before 1.28 writes no such label.
    expect(podOf({ labels: { 'apps.kubernetes.io/pod-index': undefined } }).ordinal).toBe(1);
  });

  it.each([
    ['nobody controls', []],
    ['a Job controls', [{ ...owner, apiVersion: 'batch/v1', kind: 'Job' }]],
    ['a StatefulSet of somebody else controls', [{ ...owner, apiVersion: 'apps.kruise.io/v1beta1' }]],
    ['a StatefulSet owns without controlling it', [{ ...owner, controller: false }]],
  ])('is nothing to us when %s', (_, owners) => {
    expect(newPod('mimir', content({ owners }))).toBeUndefined();
  });

  it.each<[string, PodChanges]>([
    ['its name does not end in an ordinal', { name: 'ingester-zone-a-x' }],
    ['its name does not end in an ordinal', { name: 'ingester-zone-b-1' }],
    ['its name does not end in an ordinal', { name: 'ingester-zone-a-01' }],
    ['pod-index 2 differ', { labels: { 'apps.kubernetes.io/pod-index': '2' } }],
    ['no label controller-revision-hash', { labels: { 'controller-revision-hash': undefined } }],
    ['not a name of a ControllerRevision', { labels: { 'controller-revision-hash': '.' } }],
    ['not a name of a ControllerRevision', { labels: { 'controller-revision-hash': '../pods/a' } }],
    ['its owner has no UID', { owners: [{ ...owner, uid: undefined }] }],
  ])('is unknown: %s', (why, changes) => {
    const pod = newPod('mimir', content(changes));
    expect(pod).toEqual({ unknown: expect.stringContaining(why) });
  });
});

describe('the revision of a pod', () => {
  it('is the revision that its ordinal is pinned to, with what others have added', () => {
    expect(imagesOf(place(podOf()))).toEqual(['r2', 'mimir:2', 'proxy:9']);
    expect(place(podOf())).toMatchObject({ from: 'r1', to: 'r2' });
  });

  it('is where its controller made it, when another ordinal or another zone is pinned, or nothing is', () => {
    const nothing: readonly Partial<PlacementQuestion>[] = [
      { ledger: ledgerOf({ pins: [pin({ ordinal: 2 })] }) },
      { ledger: ledgerOf({ pins: [pin({ zone: 'b' })] }) },
      { ledger: ledgerOf({ pins: [] }) },
      { ledger: { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] } },
    ];
    for (const changes of nothing) {
      expect(place(podOf(), changes)).toEqual({ kind: 'stays' });
      expect(revisionsToRead(podOf(), { ledger: ledgerOf(), zone: 'a', ...changes })).toEqual([]);
    }
    expect(revisionsToRead(podOf(), { ledger: ledgerOf(), zone: 'a', seen })).toEqual(['r1', 'r2']);
  });

  it('is not asked for twice: a pod that carries the revision stays, and what was added in between is kept', () => {
    const first = place(podOf());
    if (first.kind === 'stays') throw new Error('the test expected a pinned pod');
    const again = newPod('mimir', first.pod);
    if (again === undefined || isUnknown(again)) throw new Error('the test expected a pod');
    expect(place(again)).toEqual({ kind: 'stays' });
    expect(revisionsToRead(again, { ledger: ledgerOf(), zone: 'a', seen })).toEqual([]);
    // In between the ledger has gone on to a third revision.
    expect(imagesOf(place(again, { ledger: ledgerOf({ pins: [pin({ revision: 'r3' })] }) }))).toEqual(['r3', 'mimir:3', 'proxy:9']);
  });

  it('goes back as it goes forward: a pin names any revision', () => {
    const ledger = ledgerOf({ pins: [pin({ revision: 'r1', placements: 0 })] });
    expect(imagesOf(place(podOf({ version: 2 }), { ledger }))).toEqual(['r1', 'mimir:1', 'proxy:9']);
  });

  it('counts on the copy in the ledger where the history no longer has the revision, or it cannot be read', () => {
    const ledger = ledgerOf({ templates: [{ zone: 'a', revision: 'r2', template: template(2) }] });
    for (const gone of [{ kind: 'missing' }, { kind: 'unread', problem: 'the API server did not answer' }] as const) {
      const revisions = new Map<string, ReadRevision>([...read([1]), ['r2', gone]]);
      expect(imagesOf(place(podOf(), { ledger, revisions }))).toEqual(['r2', 'mimir:2', 'proxy:9']);
      // A copy names no owner, so that the StatefulSet must be known to be the one.
      expect(place(podOf(), { ledger, revisions, seen: undefined })).toHaveProperty('problem');
      const others = ledgerOf({ templates: [{ zone: 'b', revision: 'r2', template: template(2) }] });
      expect(place(podOf(), { ledger: others, revisions })).toHaveProperty('problem');
    }
  });

  it.each<[string, Partial<PlacementQuestion>]>([
    ['the ledger cannot be read', { ledger: { unknown: 'the ledger cannot be read' } }],
    ['not a name of a ControllerRevision', { ledger: ledgerOf({ pins: [pin({ revision: '..' })] }) }],
    ['ControllerRevision r2 no longer exists', { revisions: new Map([...read([1]), ['r2', { kind: 'missing' } as const]]) }],
    ['ControllerRevision r1 no longer exists', { revisions: new Map([...read([2]), ['r1', { kind: 'missing' } as const]]) }],
    [
      'ControllerRevision r2 cannot be read (503)',
      { revisions: new Map([...read([1]), ['r2', { kind: 'unread', problem: '503' } as const]]) },
    ],
    [
      'it belongs to another object',
      {
        ledger: ledgerOf({ templates: [{ zone: 'a', revision: 'r2', template: template(2) }] }),
        revisions: new Map([...read([1]), ['r2', readRevision(revisionObject(2, [{ ...owner, uid: 'other' }]), { uid })]]),
      },
    ],
    [
      'has no pod template',
      { revisions: new Map([...read([1]), ['r2', readRevision({ metadata: { ownerReferences: [owner] } }, { uid })]]) },
    ],
    ['StatefulSet ingester-zone-a was recreated', { seen: { ...seen, uid: 'another-uid' } }],
  ])('is where its controller made it, which is said, when %s', (why, changes) => {
    const placement = place(podOf(), changes);
    expect(placement).toEqual({ kind: 'stays', problem: expect.stringContaining(why) });
    expect(placement).toHaveProperty('problem', expect.stringMatching(/^pod ingester-zone-a-1 is created at revision r1/));
  });
});

describe('the group of a pod', () => {
  const [pinned, onDelete] = [group({ rollout: { strategy: 'pinned' } }), group()];

  it('is one whose pods may be pinned', () => {
    expect(pinnedGroupOf([onDelete, pinned], podOf())).toEqual({ group: pinned, zone: 'a' });
    expect(pinnedGroupOf([onDelete], podOf())).toBeUndefined();
    // In the middle of a rollout somebody has changed the engine: what was pinned stays so.
    expect(pinnedGroupOf([group({ rollout: { strategy: 'partition' } })], podOf())?.zone).toBe('a');
    expect(pinnedGroupOf([pinned], { namespace: 'loki', statefulSet: 'ingester-zone-a' })).toBeUndefined();
    expect(pinnedGroupOf([pinned], { namespace: 'mimir', statefulSet: 'store' })).toBeUndefined();
  });
});
