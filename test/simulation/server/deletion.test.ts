// How objects go on the model of the API server: at once, gracefully, held by finalizers, with their owners.
import { describe, expect, it } from 'vitest';
import { actor, asking, configMap, paths, pod, refusalOf, statefulSet } from './asking.ts';

const { configMaps, pods, sets } = paths;

describe('deleting', () => {
  it('ends with a separate version, and answers with the deleted object', () => {
    const { ask, commits } = asking();
    const { uid } = ask('POST', configMaps, configMap('a')).body.metadata;
    const { status, body } = ask('DELETE', `${configMaps}/a`);
    expect([status, body.kind, body.status, body.details]).toEqual([200, 'Status', 'Success', { name: 'a', kind: 'configmaps', uid }]);
    expect(commits.map(({ type, after }) => [type, after.metadata.resourceVersion])).toEqual([
      ['ADDED', '1001'],
      ['DELETED', '1002'],
    ]);
    expect(refusalOf(ask('DELETE', `${configMaps}/a`))).toEqual([404, 'NotFound', 'configmaps "a" not found']);
  });

  it('needs the object that is meant, in the state that is meant', () => {
    const { ask } = asking();
    const { uid } = ask('POST', configMaps, configMap('a')).body.metadata;
    const other = ask('DELETE', `${configMaps}/a`, { preconditions: { uid: 'other', resourceVersion: '1' } });
    expect(refusalOf(other)).toEqual([
      409,
      'Conflict',
      `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    ]);
    const changed = ask('DELETE', `${configMaps}/a`, { preconditions: { uid, resourceVersion: '1' } });
    expect(changed.body.message).toMatch(
      /the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record \(1001\)/,
    );
    expect(ask('DELETE', `${configMaps}/a`, { preconditions: { uid, resourceVersion: '1001' } }).status).toBe(200);
  });

  it('changes nothing in a dry run', () => {
    const { ask, commits } = asking();
    ask('POST', pods, pod('p-0'));
    expect(ask('DELETE', `${pods}/p-0?dryRun=All`).body.metadata['deletionGracePeriodSeconds']).toBe(30);
    expect(ask('DELETE', `${pods}/p-0`, { dryRun: ['All'] }).status).toBe(200);
    expect([commits.length, ask('DELETE', `${pods}/p-0?dryRun=Some`).status]).toEqual([1, 422]);
  });

  it('waits for finalizers, which can only leave', () => {
    const { ask, merge, commits } = asking();
    ask('POST', configMaps, { metadata: { name: 'a', finalizers: ['x.y/z'] } });
    const { metadata } = ask('DELETE', `${configMaps}/a`).body;
    expect([metadata['deletionTimestamp'], metadata['deletionGracePeriodSeconds']]).toEqual(['2026-01-15T12:00:00Z', 0]);
    expect(merge(`${configMaps}/a`, { metadata: { finalizers: ['x.y/z', 'more/one'] } }).status).toBe(422);
    expect(merge(`${configMaps}/a`, { metadata: { finalizers: null } }).body.metadata.resourceVersion).toBe('1002');
    expect([ask('GET', `${configMaps}/a`).status, commits.map(({ type }) => type)]).toEqual([404, ['ADDED', 'MODIFIED', 'DELETED']]);
  });

  it('refuses policies that it does not know', () => {
    const { ask } = asking();
    ask('POST', configMaps, configMap('a'));
    expect(ask('DELETE', `${configMaps}/a`, { propagationPolicy: 'Wrong' }).status).toBe(422);
  });
});

describe('deleting a pod', () => {
  it('dates it, and it is removed on a delete without grace', async () => {
    const { ask, advance, commits } = asking();
    ask('POST', pods, pod('p-0', { spec: { terminationGracePeriodSeconds: 40 } }));
    await advance(2500);
    const { metadata } = ask('DELETE', `${pods}/p-0`).body;
    expect([metadata['deletionTimestamp'], metadata['deletionGracePeriodSeconds'], metadata.generation]).toEqual([
      '2026-01-15T12:00:42Z',
      40,
      2,
    ]);
    expect(ask('DELETE', `${pods}/p-0`, { gracePeriodSeconds: 0 }).status).toBe(200);
    expect(ask('GET', `${pods}/p-0`).status).toBe(404);
    // The last deletion is a change and a deletion, as watchers of a real server see it.
    expect(commits.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
  });

  it('can be hastened and not be put off', () => {
    const { ask } = asking();
    ask('POST', pods, pod('p-0'));
    const seconds = (options?: unknown) => ask('DELETE', `${pods}/p-0`, options).body.metadata['deletionTimestamp'];
    expect([seconds(), seconds(), seconds({ gracePeriodSeconds: 100 }), seconds({ gracePeriodSeconds: 5 })]).toEqual([
      '2026-01-15T12:00:30Z',
      '2026-01-15T12:00:30Z',
      '2026-01-15T12:00:30Z',
      '2026-01-15T12:00:05Z',
    ]);
  });

  it('is over at once where no node runs it, or it has ended', () => {
    const { ask, merge } = asking();
    ask('POST', pods, pod('unbound', { spec: { nodeName: undefined } }));
    ask('POST', pods, pod('ended'));
    merge(`${pods}/ended/status`, { status: { phase: 'Succeeded' } });
    expect([ask('DELETE', `${pods}/unbound`).status, ask('DELETE', `${pods}/ended`).status]).toEqual([200, 200]);
    expect(ask('GET', pods).body.items).toEqual([]);
  });

  it('waits for its finalizers after the grace period too', () => {
    const { ask, merge } = asking();
    ask('POST', pods, pod('p-0', { metadata: { finalizers: ['x.y/z'] } }));
    ask('DELETE', `${pods}/p-0`, { gracePeriodSeconds: 0 });
    expect(ask('GET', `${pods}/p-0`).status).toBe(200);
    merge(`${pods}/p-0`, { metadata: { finalizers: [] } });
    expect(ask('GET', `${pods}/p-0`).status).toBe(404);
  });
});

describe('the garbage collector', () => {
  const owned = (name: string, owner: { readonly name: string; readonly uid: string }) =>
    pod(name, {
      metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner.name, uid: owner.uid, controller: true }] },
    });

  it('deletes gracefully what has lost its owner', async () => {
    const { server, ask, advance } = asking();
    const set = server.create(actor, 'statefulsets.apps', statefulSet('s')).metadata;
    server.create(actor, 'pods', owned('s-0', set));
    server.create(actor, 'pods', pod('free'));
    ask('DELETE', `${sets}/s`);
    expect(server.get('pods', 'one', 's-0')?.metadata.deletionTimestamp).toBeUndefined();
    await advance(1000);
    expect(server.get('pods', 'one', 's-0')?.metadata.deletionGracePeriodSeconds).toBe(30);
    expect(server.get('pods', 'one', 'free')?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('leaves orphans behind when it is asked to', async () => {
    const { server, ask, advance } = asking();
    const set = server.create(actor, 'statefulsets.apps', statefulSet('s')).metadata;
    server.create(actor, 'pods', owned('s-0', set));
    expect(ask('DELETE', `${sets}/s`, { propagationPolicy: 'Orphan' }).body.metadata['finalizers']).toEqual(['orphan']);
    await advance(2000);
    expect(server.get('statefulsets.apps', 'one', 's')).toBeUndefined();
    const { ownerReferences, deletionTimestamp } = server.get('pods', 'one', 's-0')?.metadata ?? {};
    expect([ownerReferences, deletionTimestamp]).toEqual([undefined, undefined]);
  });

  it('deletes what was made for an owner that is gone', async () => {
    const { server, advance } = asking();
    server.create(actor, 'pods', owned('late', { name: 's', uid: 'nobody' }));
    await advance(1000);
    expect(server.get('pods', 'one', 'late')?.metadata.deletionTimestamp).toBeDefined();
  });

  it('is not there when it is not wanted', async () => {
    const { server, advance } = asking({ collectsGarbage: false });
    server.create(actor, 'pods', owned('late', { name: 's', uid: 'nobody' }));
    await advance(1000);
    expect(server.get('pods', 'one', 'late')?.metadata.deletionTimestamp).toBeUndefined();
  });
});
