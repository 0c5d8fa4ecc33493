import { describe, expect, it } from 'vitest';
import type { TurnReport } from '../../../agent/report.ts';
import { emptySnapshot } from '../../../engine/snapshot.ts';
import { jointly, ofGroup, ownerOf, whileTrue } from '../../../simulation/oracles/groups.ts';
import { judgeIsolation } from '../../../simulation/oracles/isolation.ts';
import type { Oracle, Scene } from '../../../simulation/oracles/oracle.ts';
import type { Commit, Json, ModelObject } from '../../../simulation/server/request.ts';
import { definition } from './history.ts';

const groups = [
  { namespace: 'mimir', name: 'ing', statefulSets: ['ing-a', 'ing-b', 'ing-c'] },
  { namespace: 'mimir', name: 'ing-cold', statefulSets: ['ing-cold-a'] },
  { namespace: 'dev', name: 'ing', statefulSets: ['ing-a'] },
];
const agent = { user: 'agent', process: 'a1' };

function objectOf(namespace: string, name: string, more: Json = {}): ModelObject {
  const metadata = { namespace, name, uid: `u-${namespace}-${name}`, resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Any', ...more, metadata: { ...metadata, ...(more['metadata'] as Json) } };
}

const intent = objectOf('mimir', 'pause.1', { spec: { group: 'ing-cold', action: 'pause' } });
const pods = [objectOf('mimir', 'ing-a-0'), objectOf('mimir', 'ing-cold-a-0'), objectOf('dev', 'ing-a-0')];

/** The judge of `mimir/ing`, and its messages. */
function judged(): { readonly oracle: Oracle; readonly said: readonly string[] } {
  const said: string[] = [];
  const scene: Scene = {
    nowMs: () => 0,
    group: { kind: 'native' } as Scene['group'],
    namespace: 'mimir',
    groupName: 'ing',
    groups,
    statefulSets: ['ing-a', 'ing-b', 'ing-c'],
    agentUser: 'agent',
    list: (resource) => (resource === 'pods' ? pods : []),
    get: (_resource, _namespace, name) => (name === intent.metadata.name ? intent : undefined),
    violated: (invariant, message) => said.push(`${invariant}: ${message}`),
  };
  const oracle = ofGroup(judgeIsolation(scene), (object) => [groups[0], undefined].includes(ownerOf(groups, object)));
  return { oracle, said };
}

function ledger(content: Json): Commit {
  const labels = { 'rollout-group.dev/document': 'ledger' };
  const data = { ledger: JSON.stringify({ group: 'ing', ...content }) };
  const after = objectOf('mimir', 'rollout-group-ing', { metadata: { labels }, data });
  return { revision: 1, atMs: 0, type: 'MODIFIED', resource: 'configmaps', after, actor: agent };
}

const claim = (uid: string) => ({ claims: [{ verb: 'deletePod', zone: 'a', atMs: 0, epoch: 1, uids: [uid] }] });

function turnWith(action: Partial<Json>, source?: string): TurnReport {
  const result = { rule: 'paused', outcome: 'wait', fact: 'it is paused', ...(source === undefined ? {} : { source: { object: source } }) };
  const decision = { actions: Object.keys(action).length === 0 ? [] : [action], waits: [result], steps: [] };
  const group = { ...definition, namespace: 'mimir', name: 'ing' };
  return { group, snapshot: emptySnapshot(0), decision, performed: [], startedMs: 0, durationMs: 0 } as unknown as TurnReport;
}

describe('L7', () => {
  it('finds claims on pods of another group, and in another namespace', () => {
    const { oracle, said } = judged();
    oracle.committed?.(ledger(claim('u-mimir-ing-a-0')));
    expect(said).toEqual([]);
    oracle.committed?.(ledger(claim('u-mimir-ing-cold-a-0')));
    oracle.committed?.(ledger(claim('u-dev-ing-a-0')));
    expect(said).toEqual([
      'L7: for mimir/ing, a1 announces deletePod of mimir/ing-cold-a-0 in the ledger mimir/rollout-group-ing',
      'L7: for mimir/ing, a1 announces deletePod of dev/ing-a-0 in the ledger mimir/rollout-group-ing',
    ]);
  });

  it('finds the revision of another group in the ledger', () => {
    const { oracle, said } = judged();
    oracle.committed?.(ledger({ claims: [], run: { id: 'r', outcome: 'running', target: { a: 'ing-a-7f9', b: 'ing-cold-a-7f9' } } }));
    expect(said).toEqual(['L7: for mimir/ing, a1 writes the revision ing-cold-a-7f9 into the ledger rollout-group-ing']);
  });

  it('finds actions on objects of another group, and results by its requests', () => {
    const { oracle, said } = judged();
    const target = { kind: 'deletePod', namespace: 'mimir', statefulSet: 'ing-a', pod: 'ing-a-0' };
    oracle.turnEnded?.('a1', turnWith(target, 'RolloutIntent mimir/gone'));
    expect(said).toEqual([]);
    oracle.turnEnded?.('a1', turnWith({ ...target, namespace: 'dev' }));
    oracle.turnEnded?.('a1', turnWith({ ...target, pod: 'ing-cold-a-0' }));
    oracle.turnEnded?.('a1', turnWith({}, 'RolloutIntent mimir/pause.1'));
    expect(said).toEqual([
      'L7: for mimir/ing, a1 decides deletePod of dev/ing-a-0',
      'L7: for mimir/ing, a1 decides deletePod of mimir/ing-cold-a-0',
      'L7: for mimir/ing, a1 evaluates paused by RolloutIntent mimir/pause.1',
    ]);
  });

  it('finds names of another group in what an agent publishes, and in the answer of a webhook', () => {
    const { oracle, said } = judged();
    const published = (status: string): Commit => {
      const after = objectOf('mimir', 'ing', { kind: 'RolloutGroup', status: { message: status } });
      return { revision: 1, atMs: 0, type: 'MODIFIED', resource: 'rolloutgroups.rollout-group.dev', after, actor: agent };
    };
    oracle.committed?.(published('ing-a-0 is not ready, and ing-cold waits'));
    expect(said).toEqual([]);
    oracle.committed?.(published('ing-cold-a-0 is not ready'));
    const admission = { by: 'a1', sentAtMs: 0, uid: 'u', isJudged: true, group: 'dev/ing', failurePolicy: 'Fail' } as const;
    const after = objectOf('mimir', 'ing-a-0');
    oracle.committed?.({ revision: 1, atMs: 0, type: 'MODIFIED', resource: 'pods', after, actor: { user: 'alice', admission } });
    expect(said).toEqual([
      'L7: for mimir/ing, a1 writes ing-cold-a-0 into rolloutgroups.rollout-group.dev ing',
      'L7: for mimir/ing, the answer of a1 about ing-a-0 names dev/ing',
    ]);
  });

  it('leaves objects of other groups to their judges', () => {
    const names = (name: string, object?: Json) => ownerOf(groups, { namespace: 'mimir', name, object })?.name;
    expect(
      ['ing', 'ing-a-0', 'rollout-group-ing', 'rollout-status-ing-cold', 'undo.ing-cold.1', 'pause-ing'].map((name) => names(name)),
    ).toEqual(['ing', 'ing', 'ing', 'ing-cold', 'ing-cold', 'ing']);
    expect(names('guard', { spec: { targets: { groups: ['ing-cold'] } } })).toBe('ing-cold');
    expect(names('approve.1', { spec: { group: 'ing' } })).toBe('ing');
    expect(names('node-a')).toBeUndefined();
    expect(ownerOf(groups, { namespace: 'dev', name: 'any' })?.namespace).toBe('dev');
  });
});

describe('several judges as one', () => {
  const judges = (heard: string[]): Oracle[] => [
    { ended: () => heard.push('one') },
    {
      ended: () => {
        throw new Error('broken');
      },
    },
    { healingBegan: () => heard.push('healing'), ended: () => heard.push('three') },
  ];

  it('are asked in their order, also after one throws', () => {
    const heard: string[] = [];
    const errors: unknown[] = [];
    const joint = jointly(judges(heard), (error) => errors.push(error));
    joint.healingBegan?.();
    joint.ended?.();
    expect({ heard, errors }).toEqual({ heard: ['healing', 'one', 'three'], errors: [new Error('broken')] });
  });

  it('judge nothing while their condition is false', () => {
    const heard: string[] = [];
    let isOn = false;
    const joint = whileTrue(
      jointly(judges(heard), () => undefined),
      () => isOn,
    );
    joint.ended?.();
    isOn = true;
    joint.ended?.();
    expect(heard).toEqual(['one', 'three']);
  });
});
