import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { type AgentRight, agentRights, mirrorRights } from '../../../plugin/doctor/agent-rights.ts';
import { examine } from '../../../plugin/doctor/all.ts';
import { renderChecks } from '../../../plugin/output/doctor.ts';
import { facts, ingester, isWrong, wrong } from './kit.ts';

describe('missing permissions of the agent', () => {
  it('names the consequence of each missing permission, with the verbs of one resource together', () => {
    const right = (resource: string, verb: string) => agentRights.filter((one) => one.resource === resource && one.verb === verb);
    const rights = ['list', 'watch'].flatMap((verb) =>
      right('pods', verb).map((one) => ({ right: one, namespace: 'mimir', isAllowed: false })),
    );
    const nodes = right('nodes', 'list').map((one) => ({ right: one, isAllowed: false }));
    expect(wrong({ accounts: [{ name: 'rollout-group/rollout-group-agent', rights: [...rights, ...nodes] }] })).toEqual([
      'FAIL RBAC RG6007 rollout-group/rollout-group-agent may not list, watch pods in mimir: no group can be rolled out',
      'warn RBAC RG6007 rollout-group/rollout-group-agent may not list nodes in the cluster: every node counts as ready',
    ]);
  });

  it('fails for a permission that a group of the namespace uses, and warns of it elsewhere', () => {
    const rights = agentRights
      .filter(({ resource }) => resource === 'pods/eviction')
      .flatMap((right) => ['mimir', 'loki'].map((namespace) => ({ right, namespace, isAllowed: false })));
    const of = (rotateBy: 'evict' | 'delete') => ({ ...ingester, rollout: { ...ingester.rollout, rotateBy } });
    const verdicts = (rotateBy: 'evict' | 'delete') =>
      wrong({ accounts: [{ name: 'a/b', rights }], groups: [of(rotateBy)] }).map((line) => line.replace(/:.*/, ''));
    const warning = 'warn RBAC RG6007 a/b may not create pods/eviction in loki';
    expect(verdicts('evict')).toEqual(['FAIL RBAC RG6007 a/b may not create pods/eviction in mimir', warning]);
    expect(verdicts('delete')).toEqual([warning.replace('loki', 'mimir'), warning]);
  });

  it('sums up many missing permissions of one account in one namespace, with each in the details', () => {
    const without = agentRights.filter(({ weight, scope }) => weight === 'optional' && scope === 'namespace');
    const accounts = [{ name: 'agent/agent', rights: without.map((right) => ({ right, namespace: 'mimir', isAllowed: false })) }];
    const [one, ...others] = examine(facts({ accounts })).filter(isWrong);
    expect(others).toEqual([]);
    expect(one?.message).toMatch(
      /^agent\/agent lacks \d+ rights in mimir: to patch pods; to create pods\/eviction; to update statefulsets\/status \(apps\); and \d+ more$/,
    );
    expect(one?.details?.length).toBe(Number(/lacks (\d+)/.exec(one?.message ?? '')?.[1]));
    expect(one?.details).toContain('agent/agent may not create pods/eviction in mimir: no pod is replaced by eviction');
    const look = { paint: (_style: string, text: string) => text, hasHints: false };
    const results = one === undefined ? [] : [one];
    expect(renderChecks(results, look)).toContain('; details with -v=1 or -o json (RG6007)');
    expect(renderChecks(results, { ...look, hasDetails: true })).toContain('\n      agent/agent may not create pods/eviction in mimir');
  });
});

const template = { group: 'rollout-operator.grafana.com', kind: 'ReplicaTemplate', names: ['ingester'] };
const allRights = [
  ...agentRights,
  ...mirrorRights({ namespace: 'mimir', ...template, readsScale: true, writesStatus: true }).map(({ right }) => right),
];

interface Role {
  readonly kind: string;
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const rules = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8'))
  .map((document): Role => document.toJS())
  .flatMap((role) => role.rules ?? []);

/** Reports whether a rule grants the right for every object of the resource, or for the only object that the agent needs. */
function gives(rule: unknown, { group, resource, verb, object }: Pick<AgentRight, 'group' | 'resource' | 'verb' | 'object'>): boolean {
  const has = (field: string, value: string): boolean => {
    const list = fieldAt(rule, [field]);
    return Array.isArray(list) && (list.includes(value) || list.includes('*'));
  };
  const names = fieldAt(rule, ['resourceNames']);
  const isForObject = !Array.isArray(names) || names.length === 0 || (object !== undefined && names.includes(object));
  return isForObject && has('apiGroups', group) && has('resources', resource) && has('verbs', verb);
}

describe('the permissions that doctor checks', () => {
  it('are in the Role of the agent', () => {
    const missing = allRights.filter((right) => !rules.some((rule) => gives(rule, right)));
    expect(missing).toEqual([]);
  });

  it('cover every resource of the Role', () => {
    const asked = new Set(allRights.map(({ group, resource }) => `${group}/${resource}`));
    const given = rules.flatMap(({ apiGroups, resources }) =>
      apiGroups.flatMap((group) => resources.map((resource) => `${group}/${resource}`)),
    );
    expect(given.filter((one) => !asked.has(one))).toEqual([]);
  });

  it('are not granted by a rule for single objects, and are by one for all', () => {
    const right = { group: '', resource: 'pods', verb: 'get' };
    expect(gives({ apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['a'] }, right)).toBe(false);
    expect(gives({ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }, right)).toBe(true);
    expect(gives({ apiGroups: ['apps'], resources: ['pods'], verbs: ['get'] }, right)).toBe(false);
    expect(gives({}, right)).toBe(false);
  });
});
