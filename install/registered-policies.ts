// Compares stored ValidatingAdmissionPolicies with those of this version, and reports missing, changed and unbound policies.
import { isSameValue } from '../policies/values/canonical-json.ts';
import {
  admissionPoliciesOf,
  type Fields,
  fieldOf,
  fieldsOf,
  isGuardedStatefulSet,
  markOf,
  stampPolicyOf,
  strategyPolicyOf,
} from './admission-policy.ts';
import type { MatchCondition } from './conditions.ts';
import { conditionsOf, membersIn } from './narrowing.ts';
import type { InstallObject, InstallOptions } from './object.ts';
import { everywhere, type Member, memberKey } from './scope.ts';

/** A policy or binding as read from the cluster, with the fields that are compared. */
export interface StoredPolicy {
  readonly kind: string;
  readonly name: string;
  readonly spec: Fields;
  /** The mark of the installed spec from the annotation; absent if there is no annotation. */
  readonly mark?: string;
}

interface PolicyQuestion {
  readonly namespace: string;
  /** The StatefulSets of groups of the strategies `pinned` and `partition`, in namespaces with enforcement. */
  readonly held: readonly Member[];
  /** The StatefulSets of `held` in groups of the strategy `partition`. */
  readonly named: readonly Member[];
}

export interface PolicyProblem {
  /** `missing`: no policy and no binding. `narrow`: a StatefulSet or namespace is not covered. `outdated`: installed by another version. */
  readonly kind: 'missing' | 'changed' | 'narrow' | 'outdated';
  readonly message: string;
}

/** Returns install options that include all compared policies and webhook configurations. */
export function everyOptions(namespace: string): InstallOptions {
  return {
    namespace,
    image: '',
    replicas: 1,
    scope: everywhere,
    hasCompat: false,
    hasNamespace: false,
    isEnforced: false,
    isMembersOnly: false,
    hasAdmissionPolicies: true,
  };
}

/** Returns the names of all policies; a policy and its binding share a name. */
export function policyNames({ namespace }: Pick<PolicyQuestion, 'namespace'>): readonly string[] {
  return [...new Set(admissionPoliciesOf(everyOptions(namespace)).map(({ metadata }) => metadata.name))];
}

/** Returns the differences from the policies of this version. The policy for update strategies may be missing if `held` is empty. */
export function admissionPolicyProblems(stored: readonly StoredPolicy[], question: PolicyQuestion): readonly PolicyProblem[] {
  const options = everyOptions(question.namespace);
  const { held } = question;
  return [
    ...problemsOf(
      stored,
      stampPolicyOf(options),
      'without the webhook /admission/stamp any user can claim to be the requester of an intent',
    ),
    ...problemsOf(
      stored,
      strategyPolicyOf(options),
      held.length === 0 ? undefined : 'while no webhook answers, any user can replace pods without waves and budgets',
      question,
    ),
  ];
}

/** Returns the problems of a policy and its binding. `without` is the consequence if both are missing; undefined if they may be missing. */
function problemsOf(
  stored: readonly StoredPolicy[],
  [policy, binding]: readonly InstallObject[],
  without: string | undefined,
  question?: PolicyQuestion,
): readonly PolicyProblem[] {
  if (policy === undefined || binding === undefined) return [];
  const find = ({ kind, metadata }: InstallObject) => stored.find((one) => one.kind === kind && one.name === metadata.name);
  const [storedPolicy, storedBinding] = [find(policy), find(binding)];
  const name = `${policy.kind} ${policy.metadata.name}`;
  if (storedPolicy === undefined && storedBinding === undefined) {
    return without === undefined ? [] : [{ kind: 'missing', message: `${name} does not exist: ${without}` }];
  }
  if (storedPolicy === undefined) return [changed(`${name} does not exist, but its binding does`)];
  if (storedBinding === undefined) return [changed(`nothing binds ${name}, so it denies nothing`)];
  const boundBy = `${binding.kind} ${binding.metadata.name}`;
  const { spec } = storedBinding;
  return [
    ...unlessOutdated(name, storedPolicy, policyProblems(name, storedPolicy.spec, fieldsOf(policy['spec']), question)),
    // The bindings of every version have the action Deny, so a missing Deny is always a change by a user.
    ...refusalProblems(boundBy, spec),
    ...unlessOutdated(boundBy, storedBinding, bindingProblems(boundBy, spec, fieldsOf(binding['spec']), question)),
  ];
}

/** Reports a policy or binding as outdated instead of changed if its mark matches its spec: another version installed it. */
function unlessOutdated(name: string, { spec, mark }: StoredPolicy, problems: readonly PolicyProblem[]): readonly PolicyProblem[] {
  if (!problems.some(({ kind }) => kind === 'changed') || mark !== markOf(spec)) return problems;
  const message = `${name} was installed by another version`;
  return [{ kind: 'outdated', message }, ...problems.filter(({ kind }) => kind !== 'changed')];
}

function changedFields(name: string, spec: Fields, wanted: Fields, fields: readonly string[]): readonly PolicyProblem[] {
  const differing = fields.filter((field) => !isSameValue(fieldOf(spec, field), fieldOf(wanted, field)));
  return differing.map((field) => changed(`${field} of ${name} was changed`));
}

function policyProblems(name: string, spec: Fields, wanted: Fields, question: PolicyQuestion | undefined): readonly PolicyProblem[] {
  const conditions = conditionsOf(spec);
  const wants = conditionsOf(wanted);
  const lost = wants.filter((one) => !conditions.some((other) => isCondition(other, one)));
  const added = conditions.filter(({ name: condition }) => !wants.some((one) => one.name === condition));
  return [
    ...changedFields(name, spec, wanted, ['failurePolicy', 'paramKind', 'variables', 'validations', 'matchConstraints']),
    ...lost.map((one) => changed(`matchCondition ${one.name} of ${name} was changed`)),
    ...added.map((one) => changed(`matchCondition ${one.name} of ${name} was added`)),
    ...(question === undefined || lost.length > 0 ? [] : unnamed(name, conditions, question)),
  ];
}

/** Reports whether the stored condition equals the wanted one. The stored condition may also name StatefulSets. */
function isCondition(stored: MatchCondition, wanted: MatchCondition): boolean {
  if (stored.name !== wanted.name) return false;
  if (stored.expression === wanted.expression) return true;
  return (
    stored.expression === isGuardedStatefulSet(naming(membersIn(stored.expression))).expression &&
    wanted.name === isGuardedStatefulSet(naming([])).name
  );
}

function naming(members: readonly Member[]) {
  return { scope: { ...everywhere, partition: { namespaces: [], members } } };
}

/** Reports StatefulSets that the policy does not name. While its partition is lowered, a StatefulSet matches only by name. */
function unnamed(name: string, conditions: readonly MatchCondition[], { named }: PolicyQuestion): readonly PolicyProblem[] {
  const known = new Set(conditions.flatMap(({ expression }) => membersIn(expression)).map(memberKey));
  const lacking = named.map(memberKey).filter((member) => !known.has(member));
  if (lacking.length === 0) return [];
  return [{ kind: 'narrow', message: `${name} does not name ${listed(lacking)}: such a StatefulSet is protected only until a rollout` }];
}

function refusalProblems(name: string, spec: Fields): readonly PolicyProblem[] {
  const actions = Array.isArray(spec['validationActions']) ? spec['validationActions'] : [];
  if (actions.includes('Deny')) return [];
  return [changed(`${name} denies nothing: its validationActions are ${actions.join(', ') || 'none'}`)];
}

function bindingProblems(name: string, spec: Fields, wanted: Fields, question: PolicyQuestion | undefined): readonly PolicyProblem[] {
  const { namespaceSelector, ...matches } = fieldsOf(fieldOf(spec, 'matchResources'));
  const { namespaceSelector: wantedSelector, ...wantedMatches } = fieldsOf(fieldOf(wanted, 'matchResources'));
  const namespaces = namespacesIn(namespaceSelector, wantedSelector);
  const isSelective = namespaces === undefined || !isSameValue(matches, wantedMatches);
  const left = question === undefined || namespaces === undefined || namespaces === 'all' ? [] : outside(question.held, namespaces);
  return [
    ...changedFields(name, spec, wanted, ['policyName', 'paramRef']),
    ...(isSelective ? [changed(`matchResources of ${name} were changed`)] : []),
    ...(left.length === 0 ? [] : [{ kind: 'narrow', message: `${name} does not cover namespace ${listed(left)}` } as const]),
  ];
}

/** Returns `all` for the wanted selector, and the namespaces for a selector that only adds a list of them. Otherwise returns undefined. */
function namespacesIn(selector: unknown, wanted: unknown): readonly string[] | 'all' | undefined {
  if (isSameValue(selector, wanted)) return 'all';
  const { matchExpressions, ...rest } = fieldsOf(selector);
  const [only, ...more] = Array.isArray(matchExpressions) ? matchExpressions.map(fieldsOf) : [];
  const { values, ...named } = only ?? {};
  const isNaming =
    more.length === 0 && isSameValue(named, { key: 'kubernetes.io/metadata.name', operator: 'In' }) && isSameValue(rest, wanted);
  return isNaming && Array.isArray(values) && Object.keys(fieldsOf(wanted)).length > 0 ? values.map(String) : undefined;
}

function outside(held: readonly Member[], namespaces: readonly string[]): readonly string[] {
  return [...new Set(held.map(({ namespace }) => namespace))].filter((one) => !namespaces.includes(one));
}

function changed(message: string): PolicyProblem {
  return { kind: 'changed', message };
}

/** Returns the first three names, followed by `and others` if there are more. */
export function listed(names: readonly string[]): string {
  return `${names.slice(0, 3).join(', ')}${names.length > 3 ? ' and others' : ''}`;
}
