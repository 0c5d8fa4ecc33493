// Compares stored admission policies with the installed ones: changed, unbound or without effect.
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { stampPolicyOf } from './admission-policy-stamp.ts';
import { isHeld, strategyPolicyOf } from './admission-policy-strategy.ts';
import type { MatchCondition } from './conditions.ts';
import { conditionsOf, membersIn } from './narrowing.ts';
import type { InstallObject } from './object.ts';
import { fieldsOf, markOf, matched } from './policy-mark.ts';
import { everywhere, type Member } from './scope.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A policy or a binding, as far as it is read here. */
export interface StoredPolicy {
  readonly kind: string;
  readonly name: string;
  readonly spec: Fields;
  /** What its annotation says of the spec that was installed; absent when there is none. */
  readonly mark?: string;
}

interface PolicyQuestion {
  /** Of the agent. */
  readonly namespace: string;
  /** StatefulSets of groups whose pods a partition holds, in namespaces that are opted in. */
  readonly held: readonly Member[];
  /** Those of them that belong to groups of the strategy `partition`. */
  readonly named: readonly Member[];
}

export interface PolicyProblem {
  /**
   * `missing`: neither policy nor binding is there, as after an installation without them. `narrow`: something is guarded in part. `outdated`: it is as
   * an installation of another version wrote it.
   */
  readonly kind: 'missing' | 'changed' | 'narrow' | 'outdated';
  readonly message: string;
}

/** What makes no difference to the objects. */
const anyOptions = {
  image: '',
  replicas: 1,
  scope: everywhere,
  hasCompat: false,
  hasNamespace: false,
  isEnforced: false,
  isMembersOnly: false,
  hasAdmissionPolicies: true,
};

/** Names of all that there may be; policy and binding have one. */
export function policyNames({ namespace }: Pick<PolicyQuestion, 'namespace'>): readonly string[] {
  const options = { ...anyOptions, namespace };
  return [...new Set([...stampPolicyOf(options), ...strategyPolicyOf(options)].map(({ metadata }) => metadata.name))];
}

/** Empty when all is as this version installs it. What guards update strategies is missed only where something is held. */
export function admissionPolicyProblems(stored: readonly StoredPolicy[], question: PolicyQuestion): readonly PolicyProblem[] {
  const options = { ...anyOptions, namespace: question.namespace };
  const { held } = question;
  return [
    ...problemsOf(stored, stampPolicyOf(options), 'without the webhook /admission/stamp anybody writes who asked for an intent'),
    ...problemsOf(
      stored,
      strategyPolicyOf(options),
      held.length === 0 ? undefined : 'while no webhook answers anybody lets pods roll past waves and budgets',
      question,
    ),
  ];
}

/** `without`: what follows when they are missing; absent where nobody misses them. */
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
    return without === undefined ? [] : [{ kind: 'missing', message: `${name} is not there: ${without}` }];
  }
  if (storedPolicy === undefined) return [changed(`${name} is not there, though it is bound`)];
  if (storedBinding === undefined) return [changed(`nothing binds ${name}, so that it refuses nobody`)];
  const boundBy = `${binding.kind} ${binding.metadata.name}`;
  const { spec } = storedBinding;
  return [
    ...unlessOutdated(name, storedPolicy, policyProblems(name, storedPolicy.spec, specOf(policy), question)),
    // No version has bound anything without refusing.
    ...refusalProblems(boundBy, spec),
    ...unlessOutdated(boundBy, storedBinding, bindingProblems(boundBy, spec, specOf(binding), question)),
  ];
}

/** Nobody changed what is as its mark says: another version has other words for it. */
function unlessOutdated(name: string, { spec, mark }: StoredPolicy, problems: readonly PolicyProblem[]): readonly PolicyProblem[] {
  if (!problems.some(({ kind }) => kind === 'changed') || mark !== markOf(spec)) return problems;
  const message = `${name} was installed by another version: run kubectl rollout-group install again`;
  return [{ kind: 'outdated', message }, ...problems.filter(({ kind }) => kind !== 'changed')];
}

/** With what the API server fills in. */
const policyFields: Readonly<Record<string, unknown>> = { failurePolicy: 'Fail', paramKind: null, variables: [], validations: [] };

function policyProblems(name: string, spec: Fields, wanted: Fields, question: PolicyQuestion | undefined): readonly PolicyProblem[] {
  const fields = Object.entries(policyFields).filter(([field, usual]) => !isSame(spec[field] ?? usual, wanted[field] ?? usual));
  const differences = [
    ...fields.map(([field]) => field),
    ...(isSame(matched(spec['matchConstraints']), matched(wanted['matchConstraints'])) ? [] : ['matchConstraints']),
  ].map((field) => changed(`${field} of ${name} was changed`));
  const conditions = conditionsOf(spec);
  const wants = conditionsOf(wanted);
  const lost = wants.filter((one) => !conditions.some((other) => isCondition(other, one)));
  const added = conditions.filter(({ name: condition }) => !wants.some((one) => one.name === condition));
  return [
    ...differences,
    ...lost.map((one) => changed(`matchCondition ${one.name} of ${name} was changed`)),
    ...added.map((one) => changed(`matchCondition ${one.name} of ${name} was added`)),
    ...(question === undefined || lost.length > 0 ? [] : unnamed(name, conditions, question)),
  ];
}

/** The condition, or the same that names StatefulSets besides. */
function isCondition(stored: MatchCondition, wanted: MatchCondition): boolean {
  if (stored.name !== wanted.name) return false;
  if (stored.expression === wanted.expression) return true;
  return stored.expression === isHeld(naming(membersIn(stored.expression))).expression && wanted.name === isHeld(naming([])).name;
}

function naming(members: readonly Member[]) {
  return { scope: { ...everywhere, partition: { namespaces: [], members } } };
}

/** In the middle of a rollout the partition of the strategy `partition` says nothing, so that only those are guarded that are named. */
function unnamed(name: string, conditions: readonly MatchCondition[], { named }: PolicyQuestion): readonly PolicyProblem[] {
  const known = new Set(conditions.flatMap(({ expression }) => membersIn(expression)).map(keyOf));
  const lacking = named.map(keyOf).filter((member) => !known.has(member));
  if (lacking.length === 0) return [];
  return [{ kind: 'narrow', message: `${name} does not name ${listed(lacking)}, which it guards only until a rollout begins` }];
}

function refusalProblems(name: string, spec: Fields): readonly PolicyProblem[] {
  const actions = Array.isArray(spec['validationActions']) ? spec['validationActions'] : [];
  if (actions.includes('Deny')) return [];
  return [changed(`${name} refuses nobody: its validationActions are ${actions.join(', ') || 'none'}`)];
}

function bindingProblems(name: string, spec: Fields, wanted: Fields, question: PolicyQuestion | undefined): readonly PolicyProblem[] {
  const { namespaceSelector, ...matches } = matched(spec['matchResources']);
  const { namespaceSelector: wantedSelector, ...wantedMatches } = matched(wanted['matchResources']);
  const namespaces = namespacesIn(namespaceSelector, wantedSelector);
  const isSelective = namespaces === undefined || !isSame(matches, wantedMatches);
  const left = question === undefined || namespaces === undefined || namespaces === 'all' ? [] : outside(question.held, namespaces);
  return [
    ...(['policyName', 'paramRef'] as const)
      .filter((field) => !isSame(spec[field] ?? null, wanted[field] ?? null))
      .map((field) => changed(`${field} of ${name} was changed`)),
    ...(isSelective ? [changed(`matchResources of ${name} were changed`)] : []),
    ...(left.length === 0 ? [] : [{ kind: 'narrow', message: `${name} leaves out namespace ${listed(left)}` } as const]),
  ];
}

/** The namespaces that are named; undefined when the selector is neither the installed one nor that one with names. */
function namespacesIn(selector: unknown, wanted: unknown): readonly string[] | 'all' | undefined {
  if (isSame(selector, wanted)) return 'all';
  const { matchExpressions, ...rest } = fieldsOf(selector);
  const [only, ...more] = Array.isArray(matchExpressions) ? matchExpressions.map(fieldsOf) : [];
  const { values, ...named } = only ?? {};
  const isNaming = more.length === 0 && isSame(named, { key: 'kubernetes.io/metadata.name', operator: 'In' }) && isSame(rest, wanted);
  return isNaming && Array.isArray(values) && Object.keys(fieldsOf(wanted)).length > 0 ? values.map(String) : undefined;
}

function outside(held: readonly Member[], namespaces: readonly string[]): readonly string[] {
  return [...new Set(held.map(({ namespace }) => namespace))].filter((one) => !namespaces.includes(one));
}

function changed(message: string): PolicyProblem {
  return { kind: 'changed', message };
}

function specOf({ spec }: InstallObject): Fields {
  return fieldsOf(spec);
}

function isSame(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** At most three of them. */
function listed(names: readonly string[]): string {
  return `${names.slice(0, 3).join(', ')}${names.length > 3 ? ' and others' : ''}`;
}

function keyOf({ namespace, statefulSet }: Member): string {
  return `${namespace}/${statefulSet}`;
}
