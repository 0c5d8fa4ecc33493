import { describe, expect, it } from 'vitest';
import type { Json } from '../../../simulation/server/request.ts';
import { History } from './history.ts';

interface Asked {
  readonly verb: 'create' | 'update' | 'patch' | 'delete';
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly status?: number;
  readonly contentType?: string;
  readonly path?: string;
  readonly body?: Json;
}

/** What S10 and S20 say of one request. */
function saidOf(asked: Asked): readonly string[] {
  const history = new History();
  history.answer({ name: 'ing-a-2', ...asked, actor: history.agent() });
  return [...history.found('S10'), ...history.found('S20')].map((message) => message.slice(message.indexOf('/ing-a-2') + 9));
}

const state = { uid: 'u', resourceVersion: '7' };
const named = { metadata: { resourceVersion: '7' } };

describe('S20', () => {
  it.each<[string, Asked, readonly string[]]>([
    ['a delete without UID', { verb: 'delete', body: { preconditions: { resourceVersion: '7' } } }, ['has no UID as precondition']],
    [
      'a delete without resourceVersion, refused',
      { verb: 'delete', status: 409, body: { preconditions: { uid: 'u' } } },
      ['has no resourceVersion'],
    ],
    ['an eviction without UID', { verb: 'create', subresource: 'eviction', body: { deleteOptions: {} } }, ['has no UID as precondition']],
    ['an update without resourceVersion', { verb: 'update', resource: 'configmaps', body: { metadata: {} } }, ['has no resourceVersion']],
    ['a patch without resourceVersion', { verb: 'patch', body: { metadata: {} } }, ['has no resourceVersion and no test']],
    [
      'an apply by force',
      { verb: 'patch', path: '/x?force=true', contentType: 'application/apply-patch+yaml' },
      ['takes over fields of other managers'],
    ],
    ['a name that the server finds', { verb: 'create', body: { metadata: { generateName: 'x-' } } }, ['leaves the name to the server']],
  ])('finds %s', (_what, asked, said) => expect(saidOf(asked)).toEqual(said));

  it.each<[string, Asked]>([
    ['a delete with both', { verb: 'delete', body: { preconditions: state } }],
    ['an eviction with its UID', { verb: 'create', subresource: 'eviction', body: { deleteOptions: { preconditions: { uid: 'u' } } } }],
    ['an update', { verb: 'update', resource: 'configmaps', body: named }],
    ['a patch', { verb: 'patch', body: named }],
    ['an apply', { verb: 'patch', path: '/x?force=false', contentType: 'application/apply-patch+yaml' }],
    ['a named object', { verb: 'create', body: { metadata: { name: 'x' } } }],
    ['a question', { verb: 'create', resource: 'selfsubjectaccessreviews.authorization.k8s.io', body: {} }],
  ])('is content with %s', (_what, asked) => expect(saidOf(asked)).toEqual([]));

  it('accepts a JSON patch that tests', () => {
    const history = new History();
    const body = [{ op: 'test', path: '/metadata/uid', value: 'u' }] as unknown as Json;
    history.answer({ verb: 'patch', actor: history.agent(), body });
    expect(history.said.filter(({ invariant }) => invariant === 'S20')).toEqual([]);
  });

  it('asks it of agents alone', () => {
    const history = new History();
    history.answer({ verb: 'delete', name: 'ing-a-2', actor: { user: 'kubernetes-admin' } });
    expect(history.said).toEqual([]);
  });
});

describe('S10', () => {
  it.each<[string, Asked, readonly string[]]>([
    ['a collection', { verb: 'delete', name: '', body: { preconditions: state } }, ['deletes a whole collection']],
    [
      'a StatefulSet',
      { verb: 'delete', resource: 'statefulsets.apps', body: { preconditions: state } },
      ['deletes an object that holds data'],
    ],
    ['a grace of 0', { verb: 'delete', body: { preconditions: state, gracePeriodSeconds: 0 } }, ['sets a grace period of 0']],
    ['no finalizers', { verb: 'patch', body: { metadata: { resourceVersion: '7', finalizers: null } } }, ['removes finalizers']],
  ])('finds %s', (_what, asked, said) => {
    const history = new History();
    history.answer({ name: 'ing-a-2', ...asked, actor: history.agent() });
    expect(history.found('S10').map((message) => said.some((end) => message.endsWith(end)))).toEqual([true]);
  });

  it('accepts a separate grace period, and an object with its finalizers', () => {
    expect(saidOf({ verb: 'delete', body: { preconditions: state, gracePeriodSeconds: 30 } })).toEqual([]);
    expect(saidOf({ verb: 'update', body: { metadata: { resourceVersion: '7', finalizers: ['x'] } } })).toEqual([]);
  });
});

describe('S29', () => {
  it('finds a dry run that changes something, and none that does not', () => {
    const history = new History();
    history.answer({ verb: 'delete', isDryRun: true, actor: history.agent() });
    expect(history.said).toEqual([]);
    history.answer({ verb: 'delete', isDryRun: true, revisions: [5], actor: history.agent() });
    expect(history.broken()).toEqual(['S29']);
  });
});

describe('a request that met a conflict', () => {
  const send = (history: History, status: number, resourceVersion: string, sentAgoMs = 0): void =>
    history.answer({
      verb: 'delete',
      name: 'ing-a-1',
      status,
      actor: { ...history.agent('a1', sentAgoMs), site: 'act.deletePod' },
      body: { preconditions: { uid: 'u', resourceVersion } },
    });

  it("breaks 'S20' if it is repeated with the same resource version", () => {
    const history = new History();
    send(history, 409, '7');
    send(history, 200, '8');
    expect(history.found('S20')).toEqual([]);
    // It was sent before the conflict, and arrives late.
    send(history.advance(20_000), 409, '7', 30_000);
    expect(history.found('S20')).toEqual([]);
    send(history, 409, '7');
    expect(history.found('S20')).toEqual([
      'a1: delete pods mimir/ing-a-1 is repeated, although the object has had another resourceVersion since',
    ]);
  });

  it("breaks 'L9' if the agent reports that it was rejected", () => {
    const history = new History();
    const action = { kind: 'deletePod', namespace: 'mimir', zone: 'a', statefulSet: 'ing-a', pod: 'ing-a-1', ordinal: 1 } as const;
    const report = {
      performed: [{ action: { ...action, because: 'outdated', uid: 'u', resourceVersion: '7' }, result: 'refused' }],
    } as const;
    send(history, 403, '7');
    history.turn(report);
    expect(history.found('L9')).toEqual([]);
    send(history, 404, '7');
    history.advance(100).turn(report);
    expect(history.found('L9')).toEqual(['a1 reports that deletePod of ing-a-1 was rejected, but the API server answered 404']);
    // In a later turn, something else may have answered in place of the API server.
    history.advance(1000).turn(report);
    expect(history.found('L9')).toHaveLength(1);
  });
});

describe('L11', () => {
  it('finds twenty conflicts in a row at one object', () => {
    const history = new History();
    const conflict = (status: number): void =>
      history.answer({
        verb: 'patch',
        resource: 'rolloutruns.rollout-group.dev',
        name: 'run',
        status,
        actor: history.agent(),
        body: named,
      });
    for (let count = 0; count < 19; count += 1) conflict(409);
    conflict(200);
    for (let count = 0; count < 19; count += 1) conflict(409);
    expect(history.found('L11')).toEqual([]);
    conflict(409);
    expect(history.found('L11')).toHaveLength(1);
  });
});
