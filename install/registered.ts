// Compares stored webhook configurations with those of this version, for the agent and `doctor`. Reports each difference in one sentence.
import { isSameValue } from '../policies/values/canonical-json.ts';
import { isMadeForMember, isMember, isPodOfMember, type MatchCondition } from './conditions.ts';
import { conditionsOf, isFromInstall, memberCondition, membersIn, narrowed, type Row } from './narrowing.ts';
import { foreignInjectors } from './object.ts';
import { everyOptions, listed } from './registered-policies.ts';
import { everywhere, type Member, memberKey } from './scope.ts';
import { configurationName, pinConfigurationName, webhooksOf } from './webhooks.ts';

export interface Registered {
  readonly kind: string;
  readonly name: string;
  readonly webhooks: readonly Row[];
}

/** A configuration as the API server returns it. */
interface StoredObject {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly webhooks?: unknown;
}

export interface StoredConfiguration extends Registered {
  /** True if cert-manager sets `caBundle`, not the agent. */
  readonly isInjected: boolean;
}

export function storedConfiguration(kind: string, { metadata: { name, annotations = {} }, webhooks }: StoredObject): StoredConfiguration {
  return { kind, name, webhooks: rowsOf(webhooks), isInjected: foreignInjectors.some((one) => annotations[one] !== undefined) };
}

/** Returns a sentence if the configuration has no webhook, or a webhook without caBundle; otherwise undefined. */
export function trustProblem({ kind, name, webhooks, isInjected }: StoredConfiguration): string | undefined {
  const where = `${kind} ${name}`;
  if (webhooks.length === 0) return `${where} has no webhook`;
  const bare = webhooks.filter(
    ({ clientConfig }) => ((clientConfig as { readonly caBundle?: unknown } | undefined)?.caBundle ?? '') === '',
  );
  if (bare.length === 0) return undefined;
  const isAll = bare.length === webhooks.length;
  const lack = isAll ? `${where} has no caBundle` : `${bare.length} of ${webhooks.length} webhooks in ${where} have no caBundle`;
  const writer = isInjected ? 'See the log of cert-manager, which writes caBundle' : 'See the log of the agent, which writes caBundle';
  return `${lack}: without it, the API server cannot call a webhook. ${writer}`;
}

/** Returns a sentence about the members that a webhook does not cover; undefined if every webhook covers all members. */
export function coverageProblem({ kind, name, webhooks }: Registered, members: readonly Member[]): string | undefined {
  const uncovered = [...new Set(webhooks.flatMap((row) => uncoveredBy(row, members)))];
  return uncovered.length === 0 ? undefined : `${kind} ${name} does not cover ${listed(uncovered)} yet`;
}

/** Returns the members that the agent has not yet added to its conditions. The agent adds a new StatefulSet within seconds. */
export function laggingMembers(stored: readonly Registered[], { namespace, members, pinned }: RegistrationQuestion): readonly string[] {
  const lagging = stored.flatMap(({ name, webhooks }) => {
    const relevant = name === pinConfigurationName({ namespace }) ? pinned : members;
    return webhooks.flatMap((row) => uncoveredBy(row, relevant ?? [], isOfAgent));
  });
  return [...new Set(lagging)].sort();
}

interface RegistrationQuestion {
  readonly namespace: string;
  /** Every protected StatefulSet; absent if unknown. */
  readonly members?: readonly Member[] | undefined;
  /** Every StatefulSet of groups of the strategy `pinned`, enforced or not; absent if unknown. */
  readonly pinned?: readonly Member[] | undefined;
}

/** The defaults that the API server adds. */
const absent: Readonly<Record<string, unknown>> = { namespaceSelector: {}, objectSelector: {} };
const compared = [
  'rules',
  'failurePolicy',
  'matchPolicy',
  'sideEffects',
  'timeoutSeconds',
  'admissionReviewVersions',
  'namespaceSelector',
  'objectSelector',
] as const;

/**
 * Returns the differences from the configurations of this version. The configuration that pins pods may be missing if no group needs it.
 * With `isPinOnly`, checks only that configuration. With `mayLag`, leaves out the `laggingMembers`.
 */
export function registrationProblems(
  stored: readonly Registered[],
  question: RegistrationQuestion,
  { isPinOnly = false, mayLag = false }: { readonly isPinOnly?: boolean; readonly mayLag?: boolean } = {},
): readonly string[] {
  const { namespace, members, pinned } = question;
  return webhooksOf(everyOptions(namespace)).flatMap(({ kind, metadata: { name }, webhooks }) => {
    const isPin = name === pinConfigurationName({ namespace });
    if (isPinOnly && !isPin) return [];
    const found = stored.find((one) => one.kind === kind && one.name === name);
    if (found !== undefined) {
      const relevant = isPin ? pinned : members;
      const isChecked = (one: MatchCondition): boolean => !mayLag || !isOfAgent(one);
      return rowsOf(webhooks).flatMap((row) => problemsOf(`${kind} ${name}`, row, found.webhooks, { members: relevant ?? [], isChecked }));
    }
    if (!isPin) return [`${kind} ${name} does not exist`];
    const lost = listed((pinned ?? []).map(memberKey));
    return lost === '' ? [] : [`${kind} ${name} does not exist, so no pod of ${lost} is created at its pinned revision`];
  });
}

export function ownNames({ namespace }: Pick<RegistrationQuestion, 'namespace'>): readonly string[] {
  return [configurationName({ namespace }), pinConfigurationName({ namespace })];
}

interface CoverageQuestion {
  readonly members: readonly Member[];
  /** Selects the conditions that must name the members. */
  readonly isChecked: (condition: MatchCondition) => boolean;
}

function problemsOf(where: string, wanted: Row, rows: readonly Row[], coverage: CoverageQuestion): readonly string[] {
  const name = String(wanted['name']);
  const row = rows.find((one) => one['name'] === name);
  if (row === undefined) return [`${where} has no webhook ${name}`];
  const changed = compared.filter((field) => !isSameValue(row[field] ?? absent[field], wanted[field] ?? absent[field]));
  const service = (one: Row): unknown => (one['clientConfig'] as Readonly<Record<string, unknown>> | undefined)?.['service'];
  return [
    ...changed.map((field) => `${field} of webhook ${name} in ${where} was changed`),
    ...(isSameValue(service(row), service(wanted)) ? [] : [`clientConfig of webhook ${name} in ${where} was changed`]),
    ...conditionProblems(row, wanted, coverage).map((problem) => `${problem} (webhook ${name} in ${where})`),
  ];
}

function conditionProblems(row: Row, wanted: Row, { members, isChecked }: CoverageQuestion): readonly string[] {
  const [has, wants] = [conditionsOf(row), conditionsOf(wanted)];
  const lacking = wants.filter((one) => !has.some((other) => isSameCondition(one, other)));
  const added = has.filter((one) => !wants.some(({ name }) => name === one.name));
  const foreign = added.filter((one) => !isNarrowing(row, one));
  const uncovered = uncoveredBy(row, members, isChecked);
  return [
    ...lacking.map(({ name }) => `matchCondition ${name} was changed`),
    ...foreign.map(({ name }) => `matchCondition ${name} was added`),
    ...(uncovered.length === 0 ? [] : [`${listed(uncovered)} ${uncovered.length === 1 ? 'is' : 'are'} not covered`]),
  ];
}

function uncoveredBy(row: Row, members: readonly Member[], isChecked: CoverageQuestion['isChecked'] = () => true): readonly string[] {
  const narrowing = conditionsOf(row).filter((one) => isChecked(one) && isNarrowing(row, one));
  const named = narrowing.map(({ expression }) => new Set(membersIn(expression).map(memberKey)));
  return members.map(memberKey).filter((member) => named.some((names) => !names.has(member)));
}

function isSameCondition(a: MatchCondition, b: MatchCondition): boolean {
  return a.name === b.name && a.expression === b.expression;
}

function isOfAgent({ name }: MatchCondition): boolean {
  return name === memberCondition;
}

/** Reports whether the condition only names StatefulSets, as the agent or `--members-only` writes it. */
function isNarrowing(row: Row, condition: MatchCondition): boolean {
  const members = membersIn(condition.expression);
  if (isFromInstall(condition)) {
    const scope = { ...everywhere, members, pinned: { namespaces: [], members } };
    const named = { ...everyOptions(''), scope, isMembersOnly: true };
    const names = ['request.name', 'oldObject.metadata.name'] as const;
    const written = [...names.flatMap((name) => [...isMember(named, name), ...isPodOfMember(named, name)]), ...isMadeForMember(named)];
    return written.some((one) => isSameCondition(one, condition));
  }
  if (condition.name !== memberCondition) return false;
  const [again] = narrowed([{ ...row, matchConditions: [] }], members);
  return again !== undefined && conditionsOf(again).some((one) => isSameCondition(one, condition));
}

function rowsOf(webhooks: unknown): readonly Row[] {
  return Array.isArray(webhooks) ? (webhooks as readonly Row[]) : [];
}
