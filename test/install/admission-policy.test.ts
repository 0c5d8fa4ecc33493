import { describe, expect, it } from 'vitest';
import { admissionPoliciesOf } from '../../install/admission-policy.ts';
import type { InstallOptions } from '../../install/object.ts';
import { group, optionsOf, scopeOf } from './given.ts';

interface Policy {
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
}

function policies(changes: Partial<InstallOptions> = {}) {
  return admissionPoliciesOf(optionsOf(changes));
}

/** Of the policy about update strategies, and of its binding. */
function strategies(changes: Partial<InstallOptions> = {}) {
  return policies(changes).filter(({ metadata }) => metadata.name.startsWith('rollout-group-update-strategy'));
}

function heldBy(changes: Partial<InstallOptions>): string | undefined {
  const spec = strategies(changes)[0]?.['spec'] as Policy | undefined;
  return spec?.matchConditions.find(({ name }) => name === 'is-held')?.expression;
}

const withEngine = (strategy: string): string => group.replace('strategy: onDelete', `strategy: ${strategy}`);

/** What the policy refuses an API server alone can tell: test/webhook/admission-policy.cluster.ts asks one. */
const kinds = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];

describe('the admission policy about update strategies', () => {
  it('exists with its binding if a partition blocks a group, or may block it', () => {
    for (const scope of [undefined, scopeOf(withEngine('pinned')), scopeOf(withEngine('partition'))]) {
      expect(strategies(scope === undefined ? {} : { scope }).map(({ kind }) => kind)).toEqual(kinds);
    }
    expect(strategies({ scope: scopeOf(group) })).toEqual([]);
    expect(policies({ hasAdmissionPolicies: false })).toEqual([]);
  });

  it('covers every blocked StatefulSet, and groups of the strategy partition by name', () => {
    expect(heldBy({ scope: scopeOf(withEngine('pinned')) })).toMatch(/ >= 1000000$/);
    expect(heldBy({ scope: scopeOf(withEngine('partition')) })).toMatch(
      / >= 1000000 \|\| request\.namespace \+ '\/' \+ request\.name in \['mimir\/ingester-zone-a', 'mimir\/ingester-zone-b'\]$/,
    );
  });

  it('exempts the agent of its installation, and does not apply to other namespaces', () => {
    const [policy, binding] = strategies({ namespace: 'ops', scope: scopeOf(withEngine('pinned'), { agentNamespace: 'ops' }) });
    expect(JSON.stringify(policy)).toContain("request.userInfo.username != 'system:serviceaccount:ops:rollout-group-agent'");
    expect(policy?.metadata.name).toBe('rollout-group-update-strategy-ops');
    expect(binding?.['spec']).toEqual({
      policyName: 'rollout-group-update-strategy-ops',
      validationActions: ['Deny'],
      matchResources: {
        namespaceSelector: {
          matchLabels: { 'rollout-group.dev/enforce': 'true' },
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['mimir'] }],
        },
      },
    });
  });
});

/** Its words are tried in test/webhook/admission-policy-stamp.cluster.ts. */
describe('the admission policy about requesters', () => {
  it('exists for every strategy, and applies to every namespace', () => {
    const [policy, binding, ...others] = policies({ namespace: 'ops', scope: scopeOf(group, { agentNamespace: 'ops' }) });
    expect([policy?.kind, binding?.kind]).toEqual(kinds);
    expect(others).toEqual([]);
    expect(policy?.metadata.name).toBe('rollout-group-requested-by-ops');
    expect(binding?.['spec']).toEqual({ policyName: 'rollout-group-requested-by-ops', validationActions: ['Deny'] });
  });
});
