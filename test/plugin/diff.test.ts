import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../engine/decision.ts';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import {
  type Difference,
  groupDifferences,
  isDifferent,
  memberNames,
  objectDifferences,
  siblingDifferences,
} from '../../plugin/difference.ts';
import { renderDifference, renderSiblings } from '../../plugin/output/diff.ts';
import { type GroupOverrides, group } from '../kit/groups.ts';
import { look } from './plan-kit.ts';

interface Member {
  readonly image?: string;
  readonly replicas?: number;
  readonly args?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
}

function member(zone: string, { image = 'grafana/mimir:2.16.0', replicas = 3, args = [], annotations = {} }: Member = {}): ObjectContent {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir', annotations },
    spec: {
      replicas,
      updateStrategy: { type: 'OnDelete' },
      template: { spec: { containers: [{ name: 'mimir', image, args: [`-zone=zone-${zone}`, ...args] }] } },
    },
  };
}

function configMap(value: string): ObjectContent {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'config', namespace: 'mimir' }, data: { limit: value } };
}

function difference(
  current: readonly ObjectContent[],
  desired: readonly ObjectContent[],
  overrides: GroupOverrides = {},
  written: readonly ObjectContent[] = desired,
): Difference {
  const groups = [group(overrides)];
  const plan = planGroups({
    groups,
    policies: [],
    exceptions: [],
    policyDigest: '',
    current,
    desired,
    assumptions: defaultAssumptions,
    nowMs: 0,
  });
  return {
    groups: groupDifferences(plan, { current, written }),
    objects: objectDifferences(current, desired, { members: memberNames(groups) }),
  };
}

const running = ['a', 'b', 'c'].map((zone) => member(zone));

describe('the differences of a group', () => {
  it('are grouped by zones with the same change, each with its consequence', () => {
    const desired = [
      member('a', { image: 'grafana/mimir:2.17.1', annotations: { 'example.com/team': 'x' } }),
      member('b', { image: 'grafana/mimir:2.17.1' }),
      member('c', { image: 'grafana/mimir:2.17.1', replicas: 4 }),
    ];
    expect(renderDifference(difference(running, desired), look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        a, b, c  (same change)
          spec.template.spec.containers[mimir].image
            - grafana/mimir:2.16.0
            + grafana/mimir:2.17.1                    restarts 9 pods
        a only
          metadata.annotations[example.com/team]
            + x                                       no restart
        c only
          spec.replicas
            - 3
            + 4                                       adds c-3
      "
    `);
  });

  it('name the writer of the live values, and the fields of other managers that an apply keeps', () => {
    const own = (fields: object) => ({ 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"mimir"}': fields } } } } });
    const entry = (manager: string, minute: number, fields: object, more: object = {}) => {
      return { manager, operation: 'Update', time: `2026-03-02T11:0${minute}:00Z`, fieldsV1: own(fields), ...more };
    };
    const argo = entry('argocd-controller', 1, { '.': {}, 'f:name': {}, 'f:image': {} }, { operation: 'Apply' });
    const edit = entry('kubectl-edit', 3, { 'f:args': {} });
    const scale = { manager: 'kubectl', operation: 'Update', subresource: 'scale', fieldsV1: { 'f:spec': { 'f:replicas': {} } } };
    const live = (zone: string, managedFields: readonly object[], more: Member = {}) => {
      const object = member(zone, { image: 'grafana/mimir:2.17.1', ...more });
      return { ...object, metadata: { ...Object(object['metadata']), managedFields } };
    };
    const current = [
      live('a', [argo, entry('kubectl-set', 2, { 'f:image': {} }), scale], { replicas: 4 }),
      live('b', [argo, edit]),
      live('c', [{ ...argo, fieldsV1: own({ '.': {}, 'f:name': {} }) }, edit]),
      { ...configMap('1'), metadata: { name: 'config', namespace: 'mimir', managedFields: [argo] } },
    ];
    const manifests = ['a', 'b', 'c'].map((zone) => member(zone));
    const withoutArgs = (object: ObjectContent): ObjectContent => JSON.parse(JSON.stringify(object).replace(/,"args":\[[^\]]*\]/, ''));
    const found = difference(current, [...manifests, configMap('2')], {}, manifests.map(withoutArgs));
    expect(renderDifference(found, look({ ascii: true, columns: 120 }))).toMatchInlineSnapshot(`
      "mimir/ingester
        a, b, c  (same change)
          spec.template.spec.containers[mimir].image
            - grafana/mimir:2.17.1
            + grafana/mimir:2.16.0                    restarts 9 pods
                                                      written by kubectl-set (Update) in a at 2026-03-02T11:02:00Z
                                                      written by argocd-controller (Apply) in a, b at 2026-03-02T11:01:00Z
                                                      no manager owns the old value in c
        a only
          spec.replicas
            - 4
            + 3                                       removes a-3
                                                      written by kubectl (Update scale)
        KEPT  kubectl-edit wrote spec.template.spec.containers[mimir].args in b, c at 2026-03-02T11:03:00Z: the manifests do
              not have the field, and an apply keeps it
      ConfigMap mimir/config
          data.limit
            - 1
            + 2                                       no manager owns the old value
      "
    `);
    const [image] = found.groups[0]?.parts.flatMap(({ changes }) => changes) ?? [];
    const at = (minute: number) => Date.parse(`2026-03-02T11:0${minute}:00Z`);
    expect(image?.writers).toEqual([
      { manager: 'kubectl-set', operation: 'Update', atMs: at(2), zones: ['a'] },
      { manager: 'argocd-controller', operation: 'Apply', atMs: at(1), zones: ['a', 'b'] },
      { zones: ['c'] },
    ]);
  });

  it('name every field that an apply keeps', () => {
    const names = Array.from({ length: 12 }, (_, index) => `note-${String(index).padStart(2, '0')}`);
    const written = Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
    const managedFields = [
      { manager: 'helm', operation: 'Update', fieldsV1: { 'f:spec': { 'f:template': { 'f:spec': {} } } } },
      {
        manager: 'kubectl-edit',
        operation: 'Update',
        fieldsV1: { 'f:spec': { 'f:template': { 'f:metadata': { 'f:annotations': written } } } },
      },
    ];
    const [a = {}, ...others] = running;
    const live = structuredClone({ ...a, metadata: { ...Object(a['metadata']), managedFields } });
    Object.assign(Object(live).spec.template, { metadata: { annotations: Object.fromEntries(names.map((name) => [name, ''])) } });
    const { groups } = difference([live, ...others], running);
    expect(groups[0]?.kept?.map(({ field }) => field)).toEqual(names.map((name) => `spec.template.metadata.annotations.${name}`));
  });

  it('name the rule that denies a change', () => {
    const desired = [member('a'), member('b'), member('c', { replicas: 2 })];
    const zones = [{ name: 'a' }, { name: 'b' }, { name: 'c', noDownscale: true }];
    expect(renderDifference(difference(running, desired, { zones }), look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        c only
          spec.replicas
            - 3
            + 2                                       DENIED by no-downscale
      "
    `);
  });

  it('name the rules that block the rest of the rollout, such as an undo, as the plan does', () => {
    const desired = [member('a', { image: 'grafana/mimir:2.17.1' }), member('b'), member('c')];
    const zones = [{ name: 'a', maxUnavailable: 0 }, { name: 'b' }, { name: 'c' }];
    const blocked = difference(running, desired, { zones });
    expect(renderDifference(blocked, look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        a only
          spec.template.spec.containers[mimir].image
            - grafana/mimir:2.16.0
            + grafana/mimir:2.17.1                    restarts 3 pods
        BLOCKED  by zone-budget: no pod of zone a may be replaced (limit: 0)
      "
    `);
    const undone: RuleResult = { rule: 'undone', outcome: 'wait', fact: 'anna undid this revision' };
    const soak: RuleResult = { rule: 'soak', outcome: 'wait', fact: 'the wave soaks' };
    const waiting = { ...blocked, groups: blocked.groups.map((one) => ({ ...one, waits: [undone, soak] })) };
    expect(renderDifference(waiting, look({ ascii: true }))).toMatch(/\n {2}BLOCKED {2}by undone: anna undid this revision\n$/);
  });

  it('name the effects of the plan that come from no shown change of the zone', () => {
    const changed = difference([...running, configMap('1')], [...running, configMap('2')]);
    const effects = { b: { replicasAfter: 1 }, c: { restarts: 2 } };
    const withEffects = (one: Difference, of: Readonly<Record<string, object>>) => {
      const groups = one.groups.map((each) => ({ ...each, zones: each.zones.map((zone) => ({ ...zone, ...of[zone.zone] })) }));
      return renderDifference({ ...one, groups }, look({ ascii: true }));
    };
    expect(withEffects(changed, {}).split('\n')[0]).toBe('mimir/ingester   no differences in StatefulSets');
    const named = '  the rollout scales b from 3 to 1 pod\n  the rollout restarts 2 pods of c\n';
    expect(withEffects(changed, effects)).toContain(`mimir/ingester   no differences in StatefulSets\n${named}ConfigMap`);
    const stop = { rule: 'rolled-back', fact: 'it was rolled back', zones: ['c'], isBlocking: true, endsWith: 'retry' };
    const stopped = { ...changed, groups: changed.groups.map((one) => ({ ...one, stops: [stop] })) };
    const later = { c: { restarts: 2, afterWait: ['ingester-zone-c-1', 'ingester-zone-c-0'] } };
    expect(withEffects(changed, later)).toContain('the rollout restarts 2 pods of c');
    expect(withEffects(stopped, later)).toContain('mimir/ingester   no differences in StatefulSets\nConfigMap');
    const added = difference(running.slice(1), [member('a'), member('b', { image: 'x' }), member('c', { replicas: 4 })]);
    expect(withEffects(added, effects)).toMatchInlineSnapshot(`
      "mimir/ingester
        a only
          + the StatefulSet                           adds 3 pods
        b only
          spec.template.spec.containers[mimir].image
            - grafana/mimir:2.16.0
            + x                                       restarts 3 pods
        c only
          spec.replicas
            - 3
            + 4                                       adds c-3
        the rollout scales b from 3 to 1 pod
        the rollout restarts 2 pods of c
      "
    `);
  });

  it('distinguish one list entry from another, and an order from a change', () => {
    const current = [member('a', { args: ['-x', '-y'] }), member('b', { args: ['-x', '-y'] }), member('c')];
    const desired = [member('a', { args: ['-y', '-z'] }), member('b', { args: ['-y', '-x'] }), member('c')];
    expect(renderDifference(difference(current, desired), look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        a only
          spec.template.spec.containers[mimir].args
            - -x
            + -z                                      restarts 3 pods
        b only
          spec.template.spec.containers[mimir].args
            same entries, different order             restarts 3 pods
      "
    `);
  });

  it('show added and removed members, and other objects after the groups', () => {
    const current = [member('a'), member('b'), configMap('1'), { ...configMap('1'), metadata: { name: 'old', namespace: 'mimir' } }];
    const desired = [member('a'), member('c'), configMap('2'), { ...configMap('1'), metadata: { name: 'new', namespace: 'mimir' } }];
    expect(renderDifference(difference(current, desired), look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        b only
          - the StatefulSet                           deletes its pods
        c only
          + the StatefulSet                           adds 3 pods
      ConfigMap mimir/config
          data.limit
            - 1
            + 2
      ConfigMap mimir/new   created
      ConfigMap mimir/old   deleted
      "
    `);
  });

  it('are empty between equal manifests, in any order', () => {
    const same = difference([...running, configMap('1')], [configMap('1'), ...running.toReversed()]);
    expect(isDifferent(same)).toBe(false);
    expect(renderDifference(same, look())).toBe('mimir/ingester   no differences\n');
  });

  it('are empty outside the requested namespace', () => {
    const objects = (namespace: string | undefined) =>
      objectDifferences([configMap('1')], [configMap('2')], { members: new Set(), namespace });
    expect(objects('mimir')).toHaveLength(1);
    expect(objects('other')).toEqual([]);
  });
});

describe('siblings', () => {
  it('are equal if only the names of their zones differ', () => {
    expect(siblingDifferences(running, [group()])).toEqual([
      { namespace: 'mimir', group: 'ingester', siblings: [], perZone: [], missing: [] },
    ]);
  });

  it('are equal if the names of StatefulSets differ from the names of their zones, and contain themselves', () => {
    const broker = (name: string): ObjectContent => ({
      kind: 'StatefulSet',
      metadata: { name, namespace: 'mimir' },
      spec: { selector: { matchLabels: { app: name } }, template: { spec: { containers: [{ name: 'k', args: [`--id=${name}`] }] } } },
    });
    const zones = ['east', 'west'].map((name, index) => ({ name, statefulSet: `broker-${index}` }));
    expect(siblingDifferences([broker('broker-0'), broker('broker-1')], [group({ zones })])[0]?.siblings).toEqual([]);
  });

  it('are compared with the first zone', () => {
    const objects = [
      member('a'),
      member('b', { image: 'grafana/mimir:2.15.0' }),
      member('c', { annotations: { 'rollout-max-unavailable': '9' } }),
    ];
    expect(renderSiblings(siblingDifferences(objects, [group()]), look({ ascii: true }))).toMatchInlineSnapshot(`
      "mimir/ingester
        b differs from a in 1 field
          spec.template.spec.containers[mimir].image
            - grafana/mimir:2.16.0
            + grafana/mimir:2.15.0
      "
    `);
  });

  it('may each have a separate value, which is a setting and no drift', () => {
    const racks = ['1', '2', '3'].map((rack, index) => member(['a', 'b', 'c'][index] ?? '', { annotations: { rack } }));
    expect(renderSiblings(siblingDifferences(racks, [group()]), look())).toBe(
      'mimir/ingester   no differences between zones\n  metadata.annotations.rack is different in every zone\n',
    );
    const drift = [...racks.slice(0, 2), member('c', { annotations: { rack: '1' } })];
    expect(siblingDifferences(drift, [group()])[0]).toMatchObject({ perZone: [], siblings: [{ zone: 'b' }] });
  });

  it('are reported as missing', () => {
    expect(renderSiblings(siblingDifferences(running.slice(0, 2), [group()]), look())).toContain('  c: no StatefulSet found');
  });
});

it('of texts of several lines the lines that differ are shown, each with its sign', () => {
  const file = (limit: number) => configMap(`common:\n  limit: ${limit}\nlast: x\nREFUSED by nobody\n`);
  expect(renderDifference(difference([file(1)], [file(2)]), look({ ascii: true }))).toContain(`    data.limit
      -   limit: 1
      +   limit: 2
`);
  const added = renderDifference(
    difference([configMap('one')], [configMap('one\n  mimir/ingester   no differences between zones')]),
    look(),
  );
  expect(added).toContain('\n      +   mimir/ingester   no differences between zones\n');
});
