import { describe, expect, it } from 'vitest';
import { contextOf } from '../../../../engine/context.ts';
import { decideGroup } from '../../../../engine/decide/decide.ts';
import type { GroupDecision } from '../../../../engine/decision.ts';
import { decidedLedger } from '../../../../engine/ledger/ledger.ts';
import { decodeLedger, encodeLedger } from '../../../../engine/ledger/ledger-document.ts';
import { type Claim, isUnknown, type Ledger, type Pin, type RevisionView, type Snapshot } from '../../../../engine/snapshot.ts';
import { keptTemplatesLimit, wantedRevisions, withoutPinsOf } from '../../../../engine/strategies/pinned/pins.ts';
import { holdingPartition } from '../../../../policies/strategies.ts';
import { defined } from '../../../../policies/values/defined.ts';
import { type GroupOverrides, group } from '../../../kit/groups.ts';
import { newRevision, oldRevision, type PodChanges, type StatefulSetOverrides } from '../../../kit/objects.ts';
import { ago, hourMs, intent, ledgerOf, minuteMs, outdatedSets, runOf, withFields } from '../../../kit/questions.ts';
import { podsIn } from '../../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../../kit/snapshots.ts';

const run = runOf({ target: { a: newRevision }, previous: { a: oldRevision } });
const isNew = { revision: newRevision };

interface State {
  readonly group?: GroupOverrides;
  readonly set?: StatefulSetOverrides;
  readonly pods?: PodChanges;
  readonly ledger?: Partial<Ledger>;
  readonly more?: SnapshotOverrides;
}

function pinned(overrides: GroupOverrides = {}) {
  return group({ zones: ['a'], ...overrides, rollout: { strategy: 'pinned', ...overrides.rollout } });
}

/** Zone a with four pods, outdated unless `pods` says otherwise. */
function question({ group: overrides, set, pods = {}, ledger = { run }, more }: State) {
  const of = pinned(overrides);
  const statefulSets = outdatedSets(['a'], { replicas: 4, updateStrategy: 'RollingUpdate', partition: holdingPartition, ...set });
  const ledgers = [ledgerOf(ledger)];
  return { group: of, snapshot: snapshotOf({ groups: [of], statefulSets, ledgers, ...podsIn({ a: pods }), ...more }) };
}

function decided(state: State): GroupDecision {
  const { snapshot, group: of } = question(state);
  return decideGroup(snapshot, of);
}

/** What the ledger says after the decision, such as `3 rev-2 x1`. */
function noted(state: State): readonly string[] {
  const { snapshot, group: of } = question(state);
  const before = snapshot.ledgers[0] ?? ledgerOf();
  return shown(decidedLedger(before, decideGroup(snapshot, of), { snapshot, group: of }));
}

function shown({ pins = [] }: Ledger): readonly string[] {
  return [...pins]
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ ordinal, revision, placements }) => `${ordinal} ${revision}${placements === 0 ? '' : ` x${placements}`}`);
}

function pin(ordinal: number, overrides: Partial<Pin> = {}): Pin {
  return { zone: 'a', ordinal, revision: newRevision, placements: 0, ...overrides };
}

/** One that an eviction was announced for, of the pod that stands there now. */
function placed(ordinal: number, overrides: Partial<Pin> = {}): Pin {
  return pin(ordinal, { placements: 1, replaces: `uid-ingester-zone-a-${ordinal}`, atMs: ago(minuteMs), ...overrides });
}

function claim(ordinal: number): Claim {
  return { verb: 'evictPod', zone: 'a', uid: `uid-ingester-zone-a-${ordinal}`, ordinal, atMs: ago(minuteMs) };
}

function answer(decision: GroupDecision, rule: string) {
  return decision.steps.flatMap(({ results }) => results).find((one) => one.rule === rule);
}

const waits = { pods: { 3: isNew }, set: { partition: holdingPartition } };

describe('pinned pods in a ledger', () => {
  const cases: readonly (readonly [string, State, readonly string[]])[] = [
    ['has the next pod before it goes', {}, ['3 rev-2 x1']],
    [
      'has the revision of a pod that is no longer current, for any cause',
      { pods: { 1: { revision: 'rev-0' } } },
      ['1 rev-0', '3 rev-2 x1'],
    ],
    ['says nothing of pods at the current revision', { ledger: { run: withFields(run, { outcome: 'failed', failure: 'x' }) } }, []],
    [
      'keeps a pod that stands where it was put',
      { ...waits, ledger: { run, pins: [placed(3, { replaces: 'gone' })] } },
      ['2 rev-2 x1', '3 rev-2'],
    ],
    ['keeps one whose pod is missing', { pods: { 3: 'missing' }, ledger: { run, pins: [placed(3)] } }, ['3 rev-2 x1']],
    [
      'keeps one whose pod terminates',
      { pods: { 3: { isTerminating: true, isReady: false } }, ledger: { run, pins: [placed(3)], claims: [claim(3)] } },
      ['3 rev-2 x1'],
    ],
    ['keeps one whose eviction may be under way', { ledger: { run, pins: [placed(3)], claims: [claim(3)] } }, ['3 rev-2 x1']],
    [
      'drops one whose eviction never came',
      { ledger: { run: withFields(run, { outcome: 'failed', failure: 'x' }), pins: [placed(3)] } },
      [],
    ],
    [
      'counts the attempts before one that never came',
      { ledger: { run: withFields(run, { outcome: 'failed', failure: 'x' }), pins: [placed(3, { placements: 2 })] } },
      ['3 rev-2 x1'],
    ],
    [
      'drops what the StatefulSet controller does by itself',
      {
        pods: { 0: isNew, 1: isNew, 2: isNew, 3: isNew },
        set: { status: { currentRevision: newRevision, updateRevision: newRevision } },
        ledger: { run, pins: [pin(0), pin(1), pin(2), placed(3)] },
      },
      [],
    ],
    [
      'follows the pod when the revision is no longer wanted',
      {
        ledger: { run, pins: [pin(1, { revision: 'rev-0' }), pin(2, { revision: 'rev-0' })] },
        pods: { 2: { revision: 'rev-00' } },
      },
      ['2 rev-00', '3 rev-2 x1'],
    ],
    [
      'keeps the place of a pod that a decrease took away, until the run is over',
      { set: { replicas: 2 }, pods: { 1: isNew }, ledger: { run, pins: [pin(1), pin(3)] } },
      ['0 rev-2 x1', '1 rev-2', '3 rev-2'],
    ],
    [
      'forgets it then',
      {
        set: { replicas: 2, status: { currentRevision: newRevision, updateRevision: newRevision } },
        pods: { 0: isNew, 1: isNew },
        ledger: { run: withFields(run, { outcome: 'completed', wave: 1 }), pins: [pin(3)] },
      },
      [],
    ],
    [
      'keeps what it says while the pods cannot be read',
      {
        more: { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] },
        ledger: { run, pins: [pin(2)] },
      },
      ['2 rev-2'],
    ],
    [
      'holds on under another strategy below the partition',
      {
        group: { rollout: { strategy: 'partition' } },
        set: { partition: 3 },
        pods: { 1: isNew },
        ledger: { run, pins: [pin(1), pin(3)] },
      },
      ['1 rev-2'],
    ],
    [
      'ends with OnDelete, where pods come back at the update revision anyway',
      {
        group: { rollout: { strategy: 'onDelete' } },
        set: { updateStrategy: 'OnDelete' },
        pods: { 1: isNew },
        ledger: { run, pins: [pin(1)] },
      },
      [],
    ],
  ];
  it.each(cases)('%s', (_, state, expected) => {
    expect(noted(state)).toEqual(expected);
  });

  it('is unchanged by the second look', () => {
    for (const [, state] of cases) {
      const { snapshot, group: of } = question(state);
      const [before = ledgerOf()] = snapshot.ledgers;
      const first = decidedLedger(before, { ...decideGroup(snapshot, of), actions: [] }, { snapshot, group: of });
      const again = decideGroup({ ...snapshot, ledgers: [first] }, of);
      expect(shown(decidedLedger(first, { ...again, actions: [] }, { snapshot, group: of }))).toEqual(shown(first));
    }
  });

  it('is as before for a pod that was certainly not deleted', () => {
    const { snapshot, group: of } = question({ pods: { 3: { revision: 'rev-0' } } });
    const decision = decideGroup(snapshot, of);
    const announced = decidedLedger(ledgerOf({ run }), decision, { snapshot, group: of });
    expect(shown(announced)).toEqual(['3 rev-2 x1']);
    expect(shown(withoutPinsOf(announced, decision.pinned ?? {}, decision.actions))).toEqual(['3 rev-0']);
  });
});

describe('a pod that did not come back as it should', () => {
  const wrong = (placements: number): State => ({ ledger: { run, pins: [placed(2, { replaces: 'gone', placements })] } });

  it('goes once more, before any other', () => {
    const decision = decided({ ...wrong(1), group: { zones: [{ name: 'a', maxUnavailable: 3 }] } });
    expect(decision.actions.map((action) => ('pod' in action ? action.pod : action.kind))).toEqual(['ingester-zone-a-2']);
    expect(noted(wrong(1))).toEqual(['2 rev-2 x2']);
  });

  it('does not go at once, since the webhook may have been installed a moment ago', () => {
    const soon: State = { ledger: { run, pins: [placed(2, { replaces: 'gone', atMs: ago(10_000) })] } };
    const decision = decided(soon);
    expect(decision.actions).toEqual([]);
    expect(answer(decision, 'pin-applied')).toMatchObject({ outcome: 'wait', earliestMs: ago(10_000) + 30_000 });
  });

  it('blocks everything after two attempts, until a retry is requested', () => {
    const held = decided(wrong(2));
    expect(held.actions).toEqual([]);
    expect(answer(held, 'pin-applied')).toMatchObject({ outcome: 'wait', limit: '2 attempts' });
    expect(answer(held, 'pin-applied')?.fact).toContain('ingester-zone-a-2 at rev-1');
    const retry = (atMs: number) => intent({ action: 'retry', runId: run.id, requestedBy: { user: 'anna', groups: [], atMs } });
    const asked = (atMs: number) => decided({ ...wrong(2), more: { intents: [retry(atMs)] } }).actions.length;
    expect([asked(ago(hourMs)), asked(ago(1000))]).toEqual([0, 1]);
  });

  it('does not while its pod is away, or stands where it was put', () => {
    expect(answer(decided({ ...wrong(2), pods: { 2: 'missing' } }), 'pin-applied')?.outcome).toBe('ok');
    expect(answer(decided({ ...wrong(2), pods: { 2: isNew } }), 'pin-applied')?.outcome).toBe('ok');
  });
});

describe('the webhook on pod creation', () => {
  const asked = (webhookProblems: Snapshot['webhookProblems']) => {
    const decision = decided({ ledger: { run }, more: defined({ webhookProblems }) });
    const { outcome, fact } = answer(decision, 'pin-webhook') ?? {};
    return [decision.actions.length, outcome, fact];
  };
  const because = (why: string) => `no pod is replaced without the webhook on pod creation: ${why}`;

  it('is registered before the first pod goes', () => {
    expect(asked({})).toEqual([1, 'ok', 'the webhook on pod creation is registered']);
    expect(asked({ pins: 'it does not exist' })).toEqual([0, 'no', because('it does not exist')]);
    expect(asked({ pins: { unknown: 'no permission to list it' } })).toEqual([0, 'unknown', because('no permission to list it')]);
    expect(asked({ coverage: 'it does not cover mimir/a yet' })).toEqual([0, 'wait', because('it does not cover mimir/a yet')]);
  });

  it('is no question for a plan from manifests', () => {
    expect(asked(undefined)).toEqual([1, undefined, undefined]);
  });
});

describe('the revision at which a pod is to come back', () => {
  const template = { metadata: {}, spec: { containers: [] } };
  const revision = (overrides: Partial<RevisionView> = {}): RevisionView => ({
    namespace: 'mimir',
    statefulSet: 'ingester-zone-a',
    name: newRevision,
    template,
    ...overrides,
  });

  it.each([
    ['is asked for nowhere offline', {}, 'skip', 1],
    ['was read', { revisions: [revision()] }, 'ok', 1],
    ['was not read yet', { revisions: [] }, 'unknown', 0],
    ['does not exist', { revisions: [revision({ template: undefined })] }, 'unknown', 0],
    ['could not be read', { revisions: [revision({ template: { unknown: 'forbidden' } })] }, 'unknown', 0],
    ['is that of another StatefulSet', { revisions: [revision({ statefulSet: 'ingester-zone-b' })] }, 'unknown', 0],
  ] as const)('%s', (_, more, outcome, actions) => {
    const decision = decided({ more: { ...more } });
    expect([answer(decision, 'revision-known')?.outcome, decision.actions.length]).toEqual([outcome, actions]);
  });

  it('is known from the copy in the ledger, without a read', () => {
    const copies = [newRevision, oldRevision].map((name) => ({ zone: 'a', revision: name, template }));
    const state = { more: { revisions: [] }, ledger: { run, templates: copies } };
    expect(answer(decided(state), 'revision-known')?.outcome).toBe('ok');
    const { snapshot, group: of } = question(state);
    expect(wantedRevisions(contextOf(snapshot, of).view)).toEqual([]);
    expect(wantedRevisions(contextOf(question({}).snapshot, of).view).map(({ name }) => name)).toEqual([oldRevision, newRevision]);
  });

  it('is copied with the pin, unless it is longer than there is room for', () => {
    const copied = (given: RevisionView['template']) => {
      const { snapshot, group: of } = question({ more: { revisions: [revision({ template: given })] } });
      return decidedLedger(ledgerOf({ run }), decideGroup(snapshot, of), { snapshot, group: of }).templates;
    };
    expect(copied(template)).toEqual([{ zone: 'a', revision: newRevision, template }]);
    expect(copied({ spec: { long: 'x'.repeat(keptTemplatesLimit) } })).toEqual([]);
  });
});

describe('the partition of a group that pins', () => {
  it('is raised wherever it lets the StatefulSet controller replace a pod, and pods wait until it is', () => {
    const decision = decided({ set: { partition: 2 } });
    expect(decision.actions).toMatchObject([{ kind: 'setPartition', to: holdingPartition, because: 'pinned', pods: [] }]);
    expect(answer(decision, 'partition-kept')).toMatchObject({ outcome: 'wait' });
  });

  it('is raised also where it exposes no pod, but not while a pod terminates', () => {
    expect(decided({ set: { partition: 4 } }).actions.map(({ kind }) => kind)).toEqual(['deletePod']);
    expect(decided({ set: { partition: 4 }, ledger: { run: withFields(run, { outcome: 'failed', failure: 'x' }) } }).actions).toMatchObject(
      [{ kind: 'setPartition', to: holdingPartition }],
    );
  });
});

describe('a ledger with pins as text', () => {
  const full = ledgerOf({
    pins: [pin(0), pin(1), pin(2, { revision: 'rev-0' }), placed(3, { placements: 2 })],
    templates: [{ zone: 'a', revision: newRevision, template: { spec: { containers: [{ name: 'c', image: 'x' }] } } }],
  });

  it('is read again as it was, and not by an agent that knows nothing of them', () => {
    const text = encodeLedger(full);
    if (isUnknown(text)) throw new Error(text.unknown);
    expect(decodeLedger(text, full)).toEqual(full);
    expect(JSON.parse(text)).toMatchObject({
      format: '2.0',
      pins: expect.arrayContaining([{ zone: 'a', revision: newRevision, ordinals: '0-1' }]),
    });
    expect(JSON.parse(encodeLedger(ledgerOf()) as string)).toMatchObject({ format: '1.0' });
  });

  it.each([
    [
      'two rows of one pod',
      [
        { zone: 'a', revision: 'r', ordinals: '0-2' },
        { zone: 'a', revision: 's', ordinals: '2' },
      ],
    ],
    ['ordinals that do not ascend', [{ zone: 'a', revision: 'r', ordinals: '3-2' }]],
    ['more pods than there can be', [{ zone: 'a', revision: 'r', ordinals: '0-4000000000' }]],
    ['a revision without a name', [{ zone: 'a', revision: '', ordinals: '0' }]],
  ])('is refused with %s', (_, pins) => {
    const text = JSON.stringify({
      format: '2.0',
      namespace: 'mimir',
      group: 'ingester',
      claims: [],
      downscales: [],
      preparations: [],
      pins,
    });
    expect(isUnknown(decodeLedger(text, full))).toBe(true);
  });
});
