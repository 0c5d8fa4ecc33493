import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldDiff, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { driftOf, driftText, hasField, writersOf } from '../../../engine/diff/field-writers.ts';

type Tree = Readonly<Record<string, object>>;

const atMs = Date.parse('2026-11-29T10:00:00Z');
const server = { name: 'server', image: 'server:2', env: [{ name: 'A', value: '1' }] };
const container = (fields: Tree): Tree => ({
  'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"server"}': { '.': {}, 'f:name': {}, ...fields } } } },
});
const entry = (manager: string, operation: string, fields: Tree, more: object = {}) => {
  return { manager, operation, apiVersion: 'apps/v1', time: '2026-11-29T10:00:00Z', fieldsV1: { 'f:spec': fields }, ...more };
};
const live = (managedFields: readonly object[], spec: object = { template: { spec: { containers: [server] } } }): ObjectContent => {
  return { kind: 'StatefulSet', metadata: { name: 'ingester-zone-a', managedFields }, spec };
};
const image = 'spec.template.spec.containers[server].image';
const argo = entry('argocd-controller', 'Apply', container({ 'f:env': { 'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} } } }));
const setImage = { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"server"}': { 'f:image': {} } } } } };

describe('the writers of a field', () => {
  it('are its owners, the latest first, and for a whole list the owner of the list', () => {
    const object = live(
      [
        entry('argocd-controller', 'Apply', { 'f:selector': {}, ...container({ 'f:image': {}, 'f:args': {} }) }),
        entry('kubectl-set', 'Update', setImage, { time: '2026-11-29T11:00:00Z' }),
        entry('autoscaler', 'Update', { 'f:replicas': {} }, { subresource: 'scale' }),
      ],
      { replicas: 3, selector: { matchLabels: { name: 'x' } }, template: { spec: { containers: [{ ...server, args: ['-v'] }] } } },
    );
    expect(writersOf(object, image)).toEqual([
      { manager: 'kubectl-set', operation: 'Update', atMs: atMs + 3_600_000 },
      { manager: 'argocd-controller', operation: 'Apply', atMs },
    ]);
    expect(writersOf(object, 'spec.template.spec.containers[server].args')).toMatchObject([{ manager: 'argocd-controller' }]);
    expect(writersOf(object, 'spec.selector.matchLabels.name')).toMatchObject([{ manager: 'argocd-controller' }]);
    expect(writersOf(object, 'spec.replicas')).toEqual([{ manager: 'autoscaler', operation: 'Update', subresource: 'scale', atMs }]);
    expect(writersOf(object, 'spec.template.spec.containers[server].env[A].value')).toEqual([]);
    expect(writersOf(object, 'spec.template.spec.containers[other].image')).toEqual([]);
    expect(writersOf({ ...object, metadata: {} }, image)).toEqual([]);
    expect([hasField(object, image), hasField(object, 'spec.template.spec.containers[server].env[B]')]).toEqual([true, false]);
  });
});

describe('drift', () => {
  const drifted = (...entries: readonly object[]) => driftOf(live(entries))?.fields.map(({ field, manager }) => `${manager} ${field}`);

  it('is a field that only another manager than the appliers owns', () => {
    const object = live([argo, entry('kubectl-set', 'Update', setImage)]);
    expect(driftOf(object)).toEqual({ count: 1, fields: [{ field: image, manager: 'kubectl-set', atMs }] });
    expect(driftText([{ name: 'ingester-zone-a', drift: driftOf(object) ?? { count: 0, fields: [] } }, { name: 'b' }])).toBe(
      `1 field differs from the manifests: kubectl-set wrote ${image} of ingester-zone-a`,
    );
  });

  it('ends when an applier owns the field too', () => {
    const [helm, flux] = [entry('helm', 'Update', setImage), entry('kustomize-controller', 'Apply', setImage)];
    expect(drifted(argo, helm, entry('kubectl-set', 'Update', setImage))).toBeUndefined();
    expect(drifted(argo, flux, entry('kubectl-set', 'Update', setImage))).toBeUndefined();
    expect(drifted(entry('kubectl-client-side-apply', 'Update', container({ 'f:image': {} })))).toBeUndefined();
  });

  it('ends when the manifest of client-side apply has the value, which does not make it the owner', () => {
    const applied = (value: string, fields = container({ 'f:env': {} })) => {
      const manifest = { kind: 'StatefulSet', spec: { template: { spec: { containers: [{ ...server, image: value }] } } } };
      const stored = { 'f:metadata': { 'f:annotations': { 'f:kubectl.kubernetes.io/last-applied-configuration': {} } } };
      const entries = [
        entry('kubectl-client-side-apply', 'Update', fields, { fieldsV1: { 'f:spec': fields, ...stored } }),
        entry('kubectl-set', 'Update', setImage, { time: '2026-11-29T11:00:00Z' }),
      ];
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(manifest) };
      const object = live(entries);
      return { ...object, metadata: { ...Object(object['metadata']), annotations } };
    };
    const managedFields = (object: ObjectContent) => Object(object['metadata']).managedFields;
    expect(driftOf(applied('server:1'))?.fields.map(({ field }) => field)).toEqual([image]);
    expect(driftOf(applied('server:2'))).toBeUndefined();
    // An older manifest does not count if a tool that stores none has written the template since.
    const helm = entry('helm', 'Update', container({ 'f:args': {} }), { time: '2026-11-29T12:00:00Z' });
    const withHelm = applied('server:2');
    const both = { ...withHelm, metadata: { ...withHelm.metadata, managedFields: [...managedFields(withHelm), helm] } };
    expect(driftOf(both)?.count).toBe(1);
  });

  it('is unknown if no applier writes the pod template', () => {
    const created = entry('kubectl-create', 'Update', { 'f:selector': {}, ...container({ 'f:image': {} }) });
    expect(drifted(created, entry('kubectl-set', 'Update', setImage))).toBeUndefined();
    expect(drifted(entry('argocd-controller', 'Apply', { 'f:replicas': {} }), entry('kubectl-set', 'Update', setImage))).toBeUndefined();
    expect(driftOf(live([]))).toBeUndefined();
    expect(driftOf({ metadata: { managedFields: [null, { fieldsV1: 7 }, argo, { operation: 'Update' }] } })).toBeUndefined();
  });

  it('is not a field that the creator, the agent or a subresource wrote, and not an intended change', () => {
    const created = entry('kubectl-create', 'Update', { 'f:selector': {}, 'f:minReadySeconds': {} });
    const agent = entry('rollout-group-agent', 'Update', { 'f:updateStrategy': { 'f:type': {} } });
    const scaled = entry('kubectl', 'Update', { 'f:replicas': {}, 'f:ordinals': {} }, { subresource: 'scale' });
    const restarted = {
      'f:template': { 'f:metadata': { 'f:annotations': { '.': {}, 'f:kubectl.kubernetes.io/restartedAt': {} } } },
      'f:replicas': {},
      'f:updateStrategy': { 'f:rollingUpdate': { 'f:partition': {} } },
    };
    expect(drifted(argo, created, agent, scaled, entry('kubectl-rollout', 'Update', restarted))).toBeUndefined();
  });

  it('names an added list entry once, and the edits of the web interface of Argo CD', () => {
    const added = container({ 'f:env': { 'k:{"name":"B"}': { '.': {}, 'f:name': {}, 'f:value': {} } } });
    expect(drifted(argo, entry('argocd-server', 'Update', added))).toEqual([
      'argocd-server spec.template.spec.containers[server].env[{"name":"B"}]',
    ]);
  });
});

/** A field of the drawn object: its path, its keys in FieldsV1, and the paths of the list entries around it, the outermost first. */
interface Leaf {
  readonly path: string;
  readonly keys: readonly string[];
  readonly entries: readonly string[];
  readonly write: (spec: Draft) => void;
}

interface Draft {
  nodeSelector: Record<string, string>;
  containers: {
    name: string;
    image: string;
    args: string[];
    env: { name: string; value: string }[];
    ports: { containerPort: number; protocol?: string; hostPort: number }[];
  }[];
}

const podSpec = fc.record({
  labels: fc.uniqueArray(fc.constantFrom('disk', 'topology.kubernetes.io/zone', 'a.b'), { minLength: 1 }),
  containers: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('server', 'side-car', 'x'),
      env: fc.uniqueArray(fc.constantFrom('A', 'B.C', 'D-E'), { maxLength: 3 }),
      ports: fc.uniqueArray(fc.record({ port: fc.integer({ min: 1, max: 4 }), isNamed: fc.boolean() }), { selector: ({ port }) => port }),
    }),
    { minLength: 1, selector: ({ name }) => name },
  ),
});

/** Returns a pod spec, and its leaves. Writes FieldsV1 as the API server does, without code of the engine. */
function drawn({ labels, containers }: ReturnType<typeof podSpec.generate>['value']): {
  readonly spec: Draft;
  readonly leaves: readonly Leaf[];
} {
  const spec: Draft = {
    nodeSelector: Object.fromEntries(labels.map((label) => [label, 'v'])),
    containers: containers.map(({ name, env, ports }) => ({
      name,
      image: 'v',
      args: ['v'],
      env: env.map((variable) => ({ name: variable, value: 'v' })),
      ports: ports.map(({ port, isNamed }) => ({ containerPort: port, hostPort: port, ...(isNamed ? { protocol: 'TCP' } : {}) })),
    })),
  };
  const leaves = containers.flatMap(({ name, env, ports }, index): readonly Leaf[] => {
    const own = `spec.template.spec.containers[${name}]`;
    const keys = ['f:containers', `k:{"name":"${name}"}`];
    const at = (draft: Draft) => draft.containers[index] as Draft['containers'][number];
    return [
      { path: `${own}.image`, keys: [...keys, 'f:image'], entries: [own], write: (draft) => (at(draft).image = 'w') },
      { path: `${own}.args`, keys: [...keys, 'f:args'], entries: [own], write: (draft) => at(draft).args.push('w') },
      ...env.map((variable, place): Leaf => {
        const path = `${own}.env[${variable}]`;
        const write = (draft: Draft) => Object.assign(at(draft).env[place] as object, { value: 'w' });
        return { path: `${path}.value`, keys: [...keys, 'f:env', `k:{"name":"${variable}"}`, 'f:value'], entries: [own, path], write };
      }),
      ...ports.map(({ port }, place): Leaf => {
        const path = `${own}.ports[${port}]`;
        const write = (draft: Draft) => Object.assign(at(draft).ports[place] as object, { hostPort: 9 });
        const named = `k:{"containerPort":${port},"protocol":"TCP"}`;
        return { path: `${path}.hostPort`, keys: [...keys, 'f:ports', named, 'f:hostPort'], entries: [own, path], write };
      }),
    ];
  });
  const selected = labels.map((label): Leaf => {
    const path = `spec.template.spec.nodeSelector${/^\w+$/.test(label) ? `.${label}` : `[${label}]`}`;
    return { path, keys: ['f:nodeSelector', `f:${label}`], entries: [], write: (draft) => (draft.nodeSelector[label] = 'w') };
  });
  return { spec, leaves: [...leaves, ...selected] };
}

/** The tree of the owned leaves. The owner of a part of a list entry also owns the entry and its keys. */
function treeOf(leaves: readonly Leaf[]): object {
  const root: Record<string, unknown> = {};
  for (const { keys } of leaves) {
    let node = root;
    for (const key of ['f:template', 'f:spec', ...keys]) {
      node[key] ??= key.startsWith('k:')
        ? { '.': {}, ...Object.fromEntries(Object.keys(JSON.parse(key.slice(2))).map((one) => [`f:${one}`, {}])) }
        : {};
      node = node[key] as Record<string, unknown>;
    }
  }
  return root;
}

const managers = ['argocd-controller', 'kubectl-set', 'kubectl-edit'] as const;

describe('random managed fields', () => {
  const world = fc.tuple(podSpec, fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 40, maxLength: 40 }));
  const owned = ([spec, masks]: ReturnType<typeof world.generate>['value']) => {
    const { leaves, ...rest } = drawn(spec);
    const owners = new Map(leaves.map((leaf, index) => [leaf, managers.filter((_, bit) => ((masks[index] ?? 0) >> bit) & 1)]));
    const of = (manager: (typeof managers)[number]) => leaves.filter((leaf) => owners.get(leaf)?.includes(manager));
    const entries = managers.flatMap((manager) =>
      of(manager).length === 0 ? [] : [entry(manager, manager.startsWith('argocd') ? 'Apply' : 'Update', treeOf(of(manager)) as Tree)],
    );
    return { ...rest, leaves, owners, of, object: (draft: Draft) => live(entries, { template: { spec: draft } }) };
  };

  it('name the owners of each field that differs', () => {
    fc.assert(
      fc.property(world, (drawing) => {
        const { spec, leaves, owners, object } = owned(drawing);
        for (const leaf of leaves) {
          const changed = structuredClone(spec);
          leaf.write(changed);
          const [change, ...others] = fieldDiff(object(spec), object(changed));
          expect([change?.path, others]).toEqual([leaf.path, []]);
          expect(writersOf(object(spec), leaf.path).map(({ manager }) => manager)).toEqual(owners.get(leaf)?.toSorted());
        }
      }),
    );
  });

  it('drift in exactly the fields that no applier owns', () => {
    fc.assert(
      fc.property(world, (drawing) => {
        const { spec, leaves, owners, of, object } = owned(drawing);
        const applied = of('argocd-controller');
        const others = leaves.filter((leaf) => (owners.get(leaf) ?? []).length > 0 && !applied.includes(leaf));
        // An entry without an applied field is added as a whole.
        const added = (path: string) => !applied.some(({ entries }) => entries.includes(path));
        const fields = [...new Set(others.map(({ path, entries }) => entries.find(added) ?? path))].sort();
        const drift = driftOf(object(spec));
        expect(drift?.count ?? 0).toBe(applied.length === 0 ? 0 : fields.length);
        if (drift !== undefined) expect(drift.fields.map(({ field }) => field)).toEqual(fields.slice(0, 10));
      }),
    );
  });
});
