import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { type AgentRight, agentRights as alwaysNeeded, mirrorRights } from '../../../plugin/doctor/agent-rights.ts';

const template = { group: 'rollout-operator.grafana.com', kind: 'ReplicaTemplate', names: ['ingester'] };
const agentRights = [
  ...alwaysNeeded,
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

describe('the rights that doctor checks', () => {
  it('is given by the Role that belongs to the agent', () => {
    const missing = agentRights.filter((right) => !rules.some((rule) => gives(rule, right)));
    expect(missing).toEqual([]);
  });

  it('covers every resource that the Role names', () => {
    const asked = new Set(agentRights.map(({ group, resource }) => `${group}/${resource}`));
    const given = rules.flatMap(({ apiGroups, resources }) =>
      apiGroups.flatMap((group) => resources.map((resource) => `${group}/${resource}`)),
    );
    expect(given.filter((one) => !asked.has(one))).toEqual([]);
  });

  it('is not given by a rule for single objects, and is by one for all', () => {
    const right = { group: '', resource: 'pods', verb: 'get' };
    expect(gives({ apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['a'] }, right)).toBe(false);
    expect(gives({ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }, right)).toBe(true);
    expect(gives({ apiGroups: ['apps'], resources: ['pods'], verbs: ['get'] }, right)).toBe(false);
    expect(gives({}, right)).toBe(false);
  });
});
