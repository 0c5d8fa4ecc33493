import { describe, expect, it } from 'vitest';
import { admissionPoliciesOf, markAnnotation, markOf } from '../../install/admission-policy.ts';
import type { InstallOptions } from '../../install/object.ts';
import { admissionPolicyProblems, policyNames, type StoredPolicy } from '../../install/registered-policies.ts';
import { group, optionsOf, scopeOf } from './given.ts';

type Fields = Readonly<Record<string, unknown>>;

const namespace = 'rollout-group';
const member = { namespace: 'mimir', statefulSet: 'ingester-zone-a' };
const none = { namespace, held: [], named: [] };
const stampName = 'rollout-group-requested-by';
const strategyName = 'rollout-group-update-strategy';

/** As an API server stores them, with what it fills in. */
function stored(changes: Partial<InstallOptions> = {}): readonly StoredPolicy[] {
  return structuredClone(admissionPoliciesOf(optionsOf(changes))).map(({ kind, metadata, spec }) => {
    const fields = Object.entries(spec as Fields).map(([field, value]) => {
      const isFilled = field === 'matchConstraints' || field === 'matchResources';
      return [field, isFilled ? { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {}, ...(value as Fields) } : value];
    });
    const mark = metadata.annotations?.[markAnnotation];
    return { kind, name: metadata.name, spec: Object.fromEntries(fields), ...(mark === undefined ? {} : { mark }) };
  });
}

/** What is said when these fields of one of them are others; by hand, or as another version would have written them. */
function said(name: string, what: 'policy' | 'binding', change: (spec: Fields) => Fields, { isInstalled = false } = {}): readonly string[] {
  const isMeant = (one: StoredPolicy) => one.name === name && one.kind.endsWith('Binding') === (what === 'binding');
  const all = stored().map((one) => {
    if (!isMeant(one)) return one;
    const spec = { ...one.spec, ...change(one.spec) };
    return { ...one, spec, ...(isInstalled ? { mark: markOf(spec) } : {}) };
  });
  return admissionPolicyProblems(all, none).map(({ kind, message }) => `${kind}: ${message}`);
}

const without = (spec: Fields, field: string): Fields => ({ [field]: (spec[field] as readonly unknown[]).slice(1) });
const inConstraints = (spec: Fields, more: Fields): Fields => ({ matchConstraints: { ...(spec['matchConstraints'] as Fields), ...more } });

describe('stored admission policies', () => {
  it('are valid as installed, with any names', () => {
    expect(admissionPolicyProblems(stored(), { namespace, held: [member], named: [] })).toEqual([]);
    const scope = scopeOf(group.replace('strategy: onDelete', 'strategy: partition'));
    expect(admissionPolicyProblems(stored({ scope }), { namespace, held: [member], named: [member] })).toEqual([]);
    expect(admissionPolicyProblems(stored({ namespace: 'ops' }), { ...none, namespace: 'ops' })).toEqual([]);
    expect(policyNames({ namespace: 'ops' })).toEqual([`${stampName}-ops`, `${strategyName}-ops`]);
  });

  it('are missing if deleted: the one about strategies only if a group is blocked', () => {
    const stamp = {
      kind: 'missing',
      message: `ValidatingAdmissionPolicy ${stampName} does not exist: without the webhook /admission/stamp any user can claim to be the requester of an intent`,
    };
    const strategy = {
      kind: 'missing',
      message: `ValidatingAdmissionPolicy ${strategyName} does not exist: while no webhook answers, any user can replace pods without waves and budgets`,
    };
    expect(admissionPolicyProblems([], none)).toEqual([stamp]);
    expect(admissionPolicyProblems([], { ...none, held: [member] })).toEqual([stamp, strategy]);
  });

  it('have no effect one without the other', () => {
    const lacking = (binding: boolean) => stored().filter(({ kind, name }) => name !== stampName || kind.endsWith('Binding') !== binding);
    expect(admissionPolicyProblems(lacking(true), none)).toEqual([
      { kind: 'changed', message: `nothing binds ValidatingAdmissionPolicy ${stampName}, so it denies nothing` },
    ]);
    expect(admissionPolicyProblems(lacking(false), none)).toEqual([
      { kind: 'changed', message: `ValidatingAdmissionPolicy ${stampName} does not exist, but its binding does` },
    ]);
  });

  const policy = `ValidatingAdmissionPolicy ${stampName}`;
  it.each<[string, (spec: Fields) => Fields, string]>([
    ['lets pass what it cannot evaluate', () => ({ failurePolicy: 'Ignore' }), 'failurePolicy'],
    ['refuses less', (spec) => without(spec, 'validations'), 'validations'],
    ['reads something else', (spec) => without(spec, 'variables'), 'variables'],
    ['has parameters', () => ({ paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }), 'paramKind'],
    ['leaves out somebody', (spec) => inConstraints(spec, { excludeResourceRules: [{ resources: ['*'] }] }), 'matchConstraints'],
    ['selects objects', (spec) => inConstraints(spec, { objectSelector: { matchLabels: { a: 'b' } } }), 'matchConstraints'],
  ])('are reported if one %s', (_, change, field) => {
    expect(said(stampName, 'policy', change)).toEqual([`changed: ${field} of ${policy} was changed`]);
  });

  it('are reported if a condition is added or changed', () => {
    const never = { name: 'never', expression: 'false' };
    const add = (spec: Fields) => ({ matchConditions: [...(spec['matchConditions'] as readonly Fields[]), never] });
    expect(said(stampName, 'policy', add)).toEqual([`changed: matchCondition never of ${policy} was added`]);
    const replace = (name: string, expression: string) => (spec: Fields) => ({
      matchConditions: (spec['matchConditions'] as readonly Fields[]).map((one) => (one['name'] === name ? { name, expression } : one)),
    });
    const strategy = `ValidatingAdmissionPolicy ${strategyName}`;
    expect(said(strategyName, 'policy', replace('is-held', 'false'))).toEqual([
      `changed: matchCondition is-held of ${strategy} was changed`,
    ]);
    expect(said(strategyName, 'policy', replace('is-held', "request.name in ['mimir/ingester-zone-a']"))).toHaveLength(1);
    expect(said(strategyName, 'policy', replace('is-not-the-agent', "request.name in ['mimir/ingester-zone-a']"))).toHaveLength(1);
  });

  const binding = `ValidatingAdmissionPolicyBinding ${stampName}`;
  it.each<[string, (spec: Fields) => Fields, string]>([
    ['only warns', () => ({ validationActions: ['Warn', 'Audit'] }), `${binding} denies nothing: its validationActions are Warn, Audit`],
    ['binds another one', () => ({ policyName: 'other' }), `policyName of ${binding} was changed`],
    ['has parameters', () => ({ paramRef: { name: 'x' } }), `paramRef of ${binding} was changed`],
    [
      'names namespaces',
      () => {
        const matchExpressions = [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['loki'] }];
        return { matchResources: { namespaceSelector: { matchExpressions } } };
      },
      `matchResources of ${binding} were changed`,
    ],
    [
      'leaves something out',
      () => ({ matchResources: { excludeResourceRules: [{ resources: ['*'] }] } }),
      `matchResources of ${binding} were changed`,
    ],
  ])('are reported if a binding %s', (_, change, message) => {
    expect(said(stampName, 'binding', change)).toEqual([`changed: ${message}`]);
  });

  it('are of another version if they match their own digest, which is no failure', () => {
    const again = 'was installed by another version';
    const isInstalled = true;
    const other = (spec: Fields) => ({ ...without(spec, 'validations'), ...without(spec, 'matchConditions'), failurePolicy: 'Ignore' });
    expect(said(stampName, 'policy', other, { isInstalled })).toEqual([`outdated: ${policy} ${again}`]);
    const matchResources = { objectSelector: { matchLabels: { a: 'b' } } };
    expect(said(stampName, 'binding', () => ({ matchResources }), { isInstalled })).toEqual([`outdated: ${binding} ${again}`]);
    // Whatever its mark says, a binding that refuses nobody is none of ours.
    expect(said(stampName, 'binding', () => ({ validationActions: ['Warn'] }), { isInstalled })).toHaveLength(1);
    expect(said(stampName, 'binding', () => ({ validationActions: ['Warn'] }), { isInstalled })[0]).toMatch(/^changed: /);
  });

  it('are changed if they have no digest, or another one', () => {
    const unmarked = stored().map(({ mark: _none, ...one }) => ({ ...one, spec: { ...one.spec, failurePolicy: 'Ignore' } }));
    const kindsOf = (all: readonly StoredPolicy[]) => [...new Set(admissionPolicyProblems(all, none).map(({ kind }) => kind))];
    expect(kindsOf(unmarked)).toEqual(['changed']);
    expect(kindsOf(unmarked.map((one) => ({ ...one, mark: 'x' })))).toEqual(['changed']);
    // Without a change nobody asks for the mark.
    expect(kindsOf(stored().map(({ mark: _none, ...one }) => one))).toEqual([]);
  });

  it('have the same digest as written and as stored', () => {
    const written = admissionPoliciesOf(optionsOf()).map(({ spec }) => markOf(spec as Fields));
    expect(stored().map(({ spec }) => markOf(spec))).toEqual(written);
    expect(stored().map(({ mark }) => mark)).toEqual(written);
    expect(new Set(written).size).toBe(4);
  });

  it('may warn in addition to denying', () => {
    expect(said(stampName, 'binding', () => ({ validationActions: ['Deny', 'Audit'] }))).toEqual([]);
  });

  it('are too narrow if a blocked namespace, or a StatefulSet of the strategy partition, is missing', () => {
    const scope = scopeOf(group.replace('strategy: onDelete', 'strategy: partition'));
    const other = { namespace: 'loki', statefulSet: 'ingester' };
    const problems = admissionPolicyProblems(stored({ scope }), { namespace, held: [member, other], named: [member, other] });
    expect(problems).toEqual([
      {
        kind: 'narrow',
        message: `ValidatingAdmissionPolicy ${strategyName} does not name loki/ingester: such a StatefulSet is protected only until a rollout`,
      },
      { kind: 'narrow', message: `ValidatingAdmissionPolicyBinding ${strategyName} does not cover namespace loki` },
    ]);
  });
});
