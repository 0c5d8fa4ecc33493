import { describe, expect, it } from 'vitest';
import {
  adopted,
  adoptionOf,
  applied,
  keptFields,
  removableFields,
  templateManager,
} from '../../../plugin/source/cluster/managed-fields.ts';

type Fields = Readonly<Record<string, object>>;

/** A live object whose spec has these owners. */
function live(spec: object, owners: Readonly<Record<string, Fields>>, operation = 'Update') {
  const managedFields = Object.entries(owners).map(([manager, fields]) => ({
    manager,
    operation: manager === 'rollout-group' ? 'Apply' : operation,
    apiVersion: 'v1',
    fieldsV1: { 'f:spec': fields },
  }));
  return { kind: 'Service', metadata: { name: 'a', managedFields }, spec };
}

const specAfter = (before: ReturnType<typeof live>, spec: object): unknown =>
  applied(before, { kind: 'Service', metadata: { name: 'a' }, spec })['spec'];
const ours = (fields: Fields): Readonly<Record<string, Fields>> => ({ 'rollout-group': fields });

describe('an apply that is computed from field managers', () => {
  it('removes an omitted field that only our manager owns, with its defaults', () => {
    const probe = { 'f:probe': { 'f:path': {} } };
    const before = { probe: { path: '/', timeoutSeconds: 1 }, other: 1 };
    expect(specAfter(live(before, ours(probe)), {})).toEqual({ other: 1 });
    expect(specAfter(live(before, { ...ours(probe), edit: { 'f:probe': { 'f:timeoutSeconds': {} } } }), {})).toEqual({
      probe: { timeoutSeconds: 1 },
      other: 1,
    });
    expect(specAfter(live(before, { ...ours(probe), edit: probe }), {})).toEqual(before);
  });

  it('merges lists by the keys of their owners, in the order of the API server', () => {
    const entry = (name: string) => ({ [`k:{"name":"${name}"}`]: { '.': {}, 'f:name': {}, 'f:value': {} } });
    const before = live(
      {
        env: [
          { name: 'inject', value: '0' },
          { name: 'a', value: '1' },
          { name: 'b', value: '1' },
        ],
      },
      { ...ours({ 'f:env': { ...entry('a'), ...entry('b') } }), injector: { 'f:env': entry('inject') } },
    );
    const env = [
      { name: 'new', value: '2' },
      { name: 'a', value: '2' },
    ];
    expect(specAfter(before, { env })).toEqual({ env: [{ name: 'inject', value: '0' }, ...env] });
    expect(specAfter(before, {})).toEqual({ env: [{ name: 'inject', value: '0' }] });
  });

  it('uses the default protocol of a port', () => {
    const key = (protocol: string) => `k:{"port":53,"protocol":"${protocol}"}`;
    const before = live(
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP', nodePort: 9 },
        ],
      },
      ours({ 'f:ports': { [key('UDP')]: { '.': {} }, [key('TCP')]: { '.': {} } } }),
    );
    expect(specAfter(before, { ports: [{ port: 53, name: 'dns' }] })).toEqual({
      ports: [{ port: 53, protocol: 'TCP', nodePort: 9, name: 'dns' }],
    });
  });

  it('adds and removes values of a set, and replaces maps and lists that are one value', () => {
    const before = live(
      { set: ['a', 'b', 'c'], selector: { x: 1 }, waves: [{ name: 'w', soak: '1m' }] },
      { ...ours({ 'f:set': { 'v:"a"': {}, 'v:"b"': {} }, 'f:selector': {}, 'f:waves': {} }), other: { 'f:set': { 'v:"c"': {} } } },
    );
    expect(specAfter(before, { set: ['b', 'd'], selector: { y: 2 }, waves: [{ name: 'w' }] })).toEqual({
      set: ['b', 'c', 'd'],
      selector: { y: 2 },
      waves: [{ name: 'w' }],
    });
  });

  it('keeps the fields of an object without managers', () => {
    expect(applied({ spec: { a: { b: 1 } } }, { spec: { a: { c: 2 } } })).toEqual({ spec: { a: { b: 1, c: 2 } } });
    expect(applied(undefined, { spec: {} })).toEqual({ spec: {} });
  });
});

describe('fields of client-side apply', () => {
  const before = live(
    { a: 1, b: 2, replicas: 3 },
    { ...ours({ 'f:a': {} }), 'kubectl-client-side-apply': { 'f:b': {} }, 'kube-controller-manager': { 'f:replicas': {} } },
  );

  it('move to our manager, and fields of others stay', () => {
    const adoption = adoptionOf(before);
    expect(adoption?.managers).toEqual(['kubectl-client-side-apply']);
    expect(adoption?.managedFields.map(({ manager, operation, fieldsV1 }) => ({ manager, operation, fieldsV1 }))).toEqual([
      { manager: 'kube-controller-manager', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
      { manager: 'rollout-group', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:a': {}, 'f:b': {} } } },
    ]);
    expect(specAfter(before, {})).toEqual({ b: 2, replicas: 3 });
    if (adoption !== undefined) expect(specAfter(adopted(before, adoption), {})).toEqual({ replicas: 3 });
    expect(removableFields(before)).toEqual(['/f:spec/f:a', '/f:spec/f:b']);
  });

  it('become an apply of our manager if it has no fields yet; an apply of that name is another writer', () => {
    const fresh = live({ b: 2 }, { 'before-first-apply': { 'f:b': {} } });
    expect(adoptionOf(fresh)?.managedFields).toMatchObject([{ manager: 'rollout-group', operation: 'Apply' }]);
    expect(adoptionOf(live({ b: 2 }, { 'kubectl-client-side-apply': { 'f:b': {} } }, 'Apply'))).toBeUndefined();
  });
});

describe('fields of an apply by another manager', () => {
  const kept = (before: ReturnType<typeof live>, after: ReturnType<typeof live>) =>
    keptFields(before, after).map(({ manager, isOfKubectl, without: { spec } }) => ({ manager, isOfKubectl, spec }));

  it('stay if they are of kubectl apply --server-side, and --force-conflicts removes them', () => {
    const before = live({ a: 1, b: 2 }, { ...ours({ 'f:a': {} }), kubectl: { 'f:a': {}, 'f:b': {} } }, 'Apply');
    expect(kept(before, before)).toEqual([{ manager: 'kubectl', isOfKubectl: true, spec: { a: 1 } }]);
    const adoption = adoptionOf(before);
    expect(adoption?.managers).toEqual(['kubectl']);
    if (adoption !== undefined) expect(specAfter(adopted(before, adoption), { a: 1 })).toEqual({ a: 1 });
    const scaled = live({ a: 1, b: 2 }, { ...ours({ 'f:a': {} }), kubectl: { 'f:b': {} } });
    expect({ kept: kept(scaled, scaled), adoption: adoptionOf(scaled) }).toEqual({ kept: [], adoption: undefined });
  });

  it('of other tools count only if our earlier manifest named them', () => {
    const owners = { ci: { 'f:b': {}, 'f:c': {} } };
    const before = live({ a: 1, b: 2, c: 3 }, { ...ours({ 'f:a': {}, 'f:b': {} }), ...owners }, 'Apply');
    const after = live({ a: 1, b: 2, c: 3 }, { ...ours({ 'f:a': {} }), ...owners }, 'Apply');
    expect(kept(before, after)).toEqual([{ manager: 'ci', isOfKubectl: false, spec: { a: 1, c: 3 } }]);
    expect(kept(after, after)).toEqual([]);
  });
});

describe('the manager that applies the pod template', () => {
  const template = (containers: object) => ({ 'f:template': { 'f:spec': { 'f:containers': containers } } });
  const image = { server: { 'f:image': {} } };
  const all = { server: { 'f:image': {}, 'f:name': {} } };
  const of = (owners: Readonly<Record<string, object>>, changed: object = {}) =>
    templateManager(live({}, Object.fromEntries(Object.entries(owners).map(([name, fields]) => [name, template(fields)])), 'Apply'), {
      'f:spec': template(changed),
    });

  it('owns the changed fields, then most fields, and is the newest', () => {
    const name = { server: { 'f:name': {} } };
    expect(of({ argocd: image, 'rollout-group': { ...name, other: { 'f:name': {} } } }, image)).toBe('argocd');
    expect(of({ argocd: all, tuner: { server: { 'f:resources': {} } } })).toBe('argocd');
    expect(of({ 'rollout-group': all, argocd: all })).toBe('argocd');
  });

  it('is no manager of client-side apply, and no manager of labels alone', () => {
    const labels = { 'f:template': { 'f:metadata': { 'f:labels': {} } } };
    expect(templateManager(live({}, { 'kubectl-client-side-apply': template(all) }))).toBeUndefined();
    expect(templateManager(live({}, { injector: labels }, 'Apply'))).toBeUndefined();
  });
});
