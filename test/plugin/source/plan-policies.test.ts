import { describe, expect, it } from 'vitest';
import { type ManifestObject, overlaid } from '../../../plugin/source/cluster/desired-objects.ts';
import { policiesOver } from '../../../plugin/source/cluster/plan-policies.ts';
import { resolveLive } from '../../../policies/live/sources.ts';
import { manifest } from '../../kit/manifests.ts';

const live = ['a', 'b', 'c'].map((zone) => ({ ...manifest(zone) }));
const context = { namespace: 'mimir', agentNamespace: 'rollout-group' };

function group(name: string, zones: readonly string[]): object {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name, namespace: 'mimir' },
    spec: {
      members: { zones: zones.map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
      rollout: { strategy: 'onDelete' },
    },
  };
}

function over(files: Readonly<Record<string, object>>, objects: readonly object[], desiredObjects: readonly ManifestObject[] = []) {
  const list = Object.entries(files).map(([name, content]) => ({ name, text: JSON.stringify(content, undefined, 2) }));
  return policiesOver({
    ...context,
    files: list,
    desiredObjects: desiredObjects.map((one) => ({ ...one, object: overlaid(one.live, one.manifest) })),
    live: objects.map((one) => ({ ...one })),
  });
}

describe('policies over a cluster', () => {
  it('are adopted from the cluster if no file replaces them', () => {
    const { bundle, groupsBefore, errors } = over({}, live);
    expect([bundle.groups.map(({ name }) => name), groupsBefore.length, errors]).toEqual([['ingester'], 1, []]);
  });

  it('name a live object by its name, and a file by its place', () => {
    const { bundle } = over({ 'policy.json': group('other', ['a']) }, [...live.slice(1), group('ingester', ['b', 'c'])]);
    const [ingester, other] = bundle.groups;
    expect(ingester?.sources['']).toEqual({ object: 'RolloutGroup mimir/ingester' });
    expect(other?.sources['']).toMatchObject({ file: 'policy.json' });
  });

  it('use the file instead of the live object of the same name', () => {
    const desiredObjects = [{ manifest: { ...group('ingester', ['a', 'b']) }, resource: undefined, live: undefined }];
    const { bundle, groupsBefore } = over(
      { 'policy.json': group('ingester', ['a', 'b']) },
      [...live, group('ingester', ['a', 'b', 'c'])],
      desiredObjects,
    );
    expect(bundle.groups.map(({ zones }) => zones.length)).toEqual([2]);
    expect(groupsBefore.map(({ zones }) => zones.length)).toEqual([3]);
  });

  it('treat a part of an object like the whole object', () => {
    const twin = live[0];
    const part = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'ingester-zone-a', namespace: 'mimir', labels: { 'rollout-group': 'ingester' } },
    };
    const desiredObjects = [{ manifest: part, resource: undefined, live: twin as ManifestObject['live'] }];
    expect(over({ 'a.json': part }, live, desiredObjects).errors).toEqual([]);
    const wrong = { ...part, spec: { updateStrategy: { type: 'RollingUpdate' } } };
    const { errors } = over({ 'a.json': wrong }, live, [{ ...desiredObjects[0], manifest: wrong } as ManifestObject]);
    expect(errors.map(({ code, file }) => `${code} ${file}`)).toEqual(['RG4012 a.json']);
  });

  it('do so for groups of files and of objects, too', () => {
    const part = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'ingester-zone-a', namespace: 'mimir', annotations: { team: 'x' } },
    };
    const desiredObjects = [{ manifest: part, resource: undefined, live: live[0] as ManifestObject['live'] }];
    expect(over({ 'a.json': part }, [...live, group('ingester', ['a', 'b', 'c'])], desiredObjects).errors).toEqual([]);
    expect(over({ 'a.json': part, 'group.json': group('ingester', ['a', 'b', 'c']) }, live, desiredObjects).errors).toEqual([]);
  });

  it('report every file that cannot be read', () => {
    const files = [{ name: 'a.yaml', text: 'kind: [' }];
    const { errors } = policiesOver({ ...context, files, desiredObjects: [], live });
    expect(errors.map(({ code }) => code)).toEqual(['RG1004']);
  });

  it('are not stopped by errors of live objects only', () => {
    const broken = { ...manifest('d', { spec: { updateStrategy: { type: 'RollingUpdate' } } }) };
    expect(over({}, [...live, broken]).errors).toEqual([]);
  });

  it('block the possible targets of an invalid live policy, like the agent', () => {
    const freeze = (spec: object) => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name: 'freeze', namespace: 'mimir' },
      spec: { targets: { all: true }, ...spec },
    });
    const rule = (when: object) => ({ rules: [{ name: 'no', actions: ['rollout'], when, effect: 'deny', message: 'no' }] });
    const wrong = [freeze({ rules: 'none' }), freeze(rule({ unknownOperator: [] }))];
    for (const policy of wrong) {
      const agent = resolveLive({
        objects: [policy],
        statefulSets: live,
        order: ['objects', 'adopted'],
        agentNamespace: context.agentNamespace,
      });
      const { bundle, errors } = over({}, [...live, policy]);
      expect([bundle.policies.map(({ name }) => name), errors]).toEqual([['unreadable-freeze'], []]);
      expect(bundle.policies).toEqual(agent.policies);
    }
    const file = freeze(rule({ '==': [1, 1] }));
    const fixed = over(
      { 'freeze.json': file },
      [...live, ...wrong.slice(0, 1)],
      [{ manifest: file, resource: undefined, live: undefined }],
    );
    expect(fixed.bundle.policies.map(({ name }) => name)).toEqual(['freeze']);
  });
});
