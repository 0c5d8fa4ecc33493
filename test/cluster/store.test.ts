import { describe, expect, it } from 'vitest';
import { Entries, type Entry } from '../../cluster/watch/store.ts';

function entry(
  namespace: string,
  name: string,
  { uid = name, version = '1', view }: { uid?: string; version?: string; view?: string } = {},
): Entry<string> {
  return { namespace, name, uid, resourceVersion: version, content: { kind: 'view', view: view ?? version } };
}

describe('a store', () => {
  it('counts each object once through all its changes', () => {
    const entries = new Entries<string>();
    entries.put(entry('x', 'a'));
    entries.put(entry('x', 'a', { version: '2' }));
    entries.put(entry('x', 'a', { version: '3', uid: 'other' }));
    entries.put(entry('y', 'a'));
    expect(entries.list()).toHaveLength(2);
    entries.remove('x', 'a');
    entries.remove('x', 'a');
    entries.remove('x', 'never there');
    expect(entries.list()).toHaveLength(1);
    entries.replace([entry('x', 'b'), { ...entry('x', 'c'), content: { kind: 'invalid', message: 'no' } }]);
    expect([entries.list(), entries.invalid()]).toEqual([['1'], [{ namespace: 'x', name: 'c', message: 'no' }]]);
  });

  it('keeps the position of a changed object in the list', () => {
    const entries = new Entries<string>();
    for (const name of ['a', 'b', 'c']) entries.put(entry('x', name, { view: name }));
    entries.put(entry('x', 'a', { version: '2', view: 'changed' }));
    expect(entries.list()).toEqual(['changed', 'b', 'c']);
  });

  it('lists one namespace or all of them', () => {
    const entries = new Entries<string>();
    for (const [namespace, name] of [
      ['x', 'a'],
      ['y', 'a'],
      ['', 'node'],
    ] as const) {
      entries.put(entry(namespace, name, { view: `${namespace}/${name}` }));
    }
    expect([entries.list('x'), entries.list(''), entries.list('z'), [...entries.list()].sort()]).toEqual([
      ['x/a'],
      ['/node'],
      [],
      ['/node', 'x/a', 'y/a'],
    ]);
  });

  it('keeps a newer state, in a list as in an event', () => {
    const entries = new Entries<string>();
    entries.put(entry('x', 'a', { version: '10' }));
    expect([entries.put(entry('x', 'a', { version: '9' })), entries.replace([entry('x', 'a', { version: '9' })])]).toEqual([[], []]);
    expect(entries.get('x', 'a')).toBe('10');
  });

  it('accepts a state whose version cannot be compared', () => {
    const entries = new Entries<string>();
    entries.put(entry('x', 'a', { version: 'zz' }));
    expect(entries.put(entry('x', 'a', { version: 'aa' }))).toEqual([
      { kind: 'modified', namespace: 'x', name: 'a', view: 'aa', before: 'zz' },
    ]);
  });

  it('has no old view of an object that became invalid', () => {
    const entries = new Entries<string>();
    entries.put(entry('x', 'a'));
    const changes = entries.put({ ...entry('x', 'a', { version: '2' }), content: { kind: 'invalid', message: 'no' } });
    expect([changes, entries.get('x', 'a'), entries.list()]).toEqual([
      [{ kind: 'modified', namespace: 'x', name: 'a', before: '1' }],
      undefined,
      [],
    ]);
  });
});
