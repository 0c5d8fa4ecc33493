import { describe, expect, it } from 'vitest';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { withRevisions } from '../../../engine/observe/revisions.ts';

function set(image: string, more: object = {}) {
  const template = { spec: { containers: [{ name: 'main', image }] } };
  return { kind: 'StatefulSet', metadata: { name: 'a', namespace: 'm', uid: 'u' }, spec: { template }, ...more };
}

const running = set('x:1', { status: { updateRevision: 'a-1', replicas: 3 } });

function revision(name: string, image: string, uid = 'u') {
  return {
    metadata: { name, ownerReferences: [{ uid }] },
    data: { spec: { template: { $patch: 'replace', ...set(image).spec.template } } },
  };
}

function revisionOf(asked: ReturnType<typeof set>, revisions: readonly unknown[] = []): unknown {
  return fieldAt(withRevisions([asked], [running], revisions)[0], ['status', 'updateRevision']);
}

describe('the revision that a manifest asks for', () => {
  it('is the one in force when the template means the same', () => {
    expect(revisionOf(set('x:1'))).toBe('a-1');
    const spelledOut = set('x:1');
    const containers = [{ ...spelledOut.spec.template.spec.containers[0], imagePullPolicy: 'IfNotPresent' }];
    expect(revisionOf({ ...spelledOut, spec: { template: { spec: { containers } } } } as ReturnType<typeof set>)).toBe('a-1');
  });

  it('is not known when the template is new, also when the manifest was exported with its status', () => {
    expect(revisionOf(set('x:2'))).toBeUndefined();
    expect(revisionOf(set('x:2', { status: { updateRevision: 'a-1' } }))).toBeUndefined();
  });

  it('is that of an earlier template that comes back, of this StatefulSet alone', () => {
    expect(revisionOf(set('x:0'), [revision('a-0', 'x:0')])).toBe('a-0');
    expect(revisionOf(set('x:0'), [revision('b-0', 'x:0', 'other')])).toBeUndefined();
  });

  it('is undefined where nothing runs or no status reports a revision', () => {
    const asked = set('x:1');
    expect(withRevisions([asked], [])[0]).toBe(asked);
    expect(withRevisions([asked], [set('x:0')])[0]).toBe(asked);
  });
});
