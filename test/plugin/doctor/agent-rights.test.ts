import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { agentRights } from '../../../plugin/doctor/agent-rights.ts';
import { gives } from '../../../plugin/doctor/gather/accounts.ts';

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
