// Adds conditions to entries (rows) of webhook configurations, so that enforcement rows with `failurePolicy: Fail` cover members only.
import { compareText } from '../policies/values/compare-text.ts';
import { fieldsOf } from './admission-policy.ts';
import { isMadeForOneOf, type MatchCondition, memberList } from './conditions.ts';
import { endpointPaths } from './object.ts';
import { type Member, memberKey } from './scope.ts';

/** The name of the condition that limits a row to members. The agent adds the condition; `install` does not write it. */
export const memberCondition = 'is-a-member-now';
/** The name of the condition of fail-open rows (`failurePolicy: Ignore`) for all other StatefulSets. The agent adds these rows. */
const otherCondition = 'is-no-member-now';

/** The StatefulSet of a request in CEL, for each enforcement row with `failurePolicy: Fail` (fail-closed). */
const subjects: Readonly<Record<string, string>> = {
  'statefulset-update': "request.namespace + '/' + request.name",
  'statefulset-scale': "request.namespace + '/' + request.name",
  'statefulset-delete': "request.namespace + '/' + oldObject.metadata.name",
  'pod-eviction': "request.namespace + '/' + request.name.substring(0, request.name.lastIndexOf('-'))",
};

/** The name of the row for the creation of pods. It denies nothing, so it needs no second row for other pods. */
const pinRow = 'pinned.rollout-group.dev';

const enforceSuffix = '.enforce.rollout-group.dev';
const othersSuffix = `-of-others${enforceSuffix}`;

/** The maximum number of members in a condition: the API server evaluates it for each request, and the configuration has a size limit. */
export const maxMembers = 2_000;

/** An entry of `webhooks` as read from the cluster. Any field may be missing or have another type. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * Returns the rows with conditions for the current members. Each fail-closed enforcement row matches only members, and a second,
 * fail-open row matches all others. The row that pins pods has no second row. Foreign rows and rows from `install --members-only` do not
 * change. With more than `maxMembers` members, the rows have no such conditions.
 */
export function narrowed(rows: readonly Row[], members: readonly Member[]): readonly Row[] {
  const installed = rows.filter((row) => !isForOthers(nameOf(row)));
  const isTooMany = members.length > maxMembers;
  const list = memberList([...members].sort((a, b) => compareText(memberKey(a), memberKey(b))));
  const others: Row[] = [];
  const own = installed.map((row): Row => {
    const membership = membershipOf(row);
    const conditions = conditionsOf(row);
    if (membership === undefined || conditions.some(isFromInstall)) return row;
    const rest = conditions.filter(({ name }) => name !== memberCondition);
    if (isTooMany) return { ...row, matchConditions: rest };
    const isMember = members.length === 0 ? 'false' : membership(list);
    if (nameOf(row) === pinRow) return { ...row, matchConditions: [...rest, { name: memberCondition, expression: isMember }] };
    others.push({
      ...row,
      name: nameOf(row).replace(enforceSuffix, othersSuffix),
      clientConfig: toOthers(row['clientConfig']),
      failurePolicy: 'Ignore',
      matchConditions: [...rest, { name: otherCondition, expression: `!(${isMember})` }],
    });
    return { ...row, matchConditions: [...rest, { name: memberCondition, expression: isMember }] };
  });
  return [...own, ...others];
}

/** Reports whether the row with this name receives only requests about StatefulSets outside of groups. */
export function isForOthers(name: string): boolean {
  return name.endsWith(othersSuffix);
}

/** Returns the `clientConfig` of a row with the path of the fail-open endpoint. */
function toOthers(clientConfig: unknown): unknown {
  const { service, url, ...rest } = (clientConfig ?? {}) as { readonly service?: object; readonly url?: unknown };
  const path = endpointPaths.enforceOthers;
  if (service !== undefined) return { ...rest, service: { ...service, path } };
  return { ...rest, url: String(url).replace(/\/admission\/enforce$/, path) };
}

export function membersNamed(rows: readonly Row[]): readonly Member[] {
  const conditions = rows.flatMap(conditionsOf).filter(({ name }) => name === memberCondition);
  const named = new Map(conditions.flatMap(({ expression }) => membersIn(expression)).map((member) => [memberKey(member), member]));
  return [...named.values()];
}

/** Returns the members in a condition that the agent or `install --members-only` wrote. */
export function membersIn(expression: string): readonly Member[] {
  // A condition on pod names has all members in one quoted pattern, joined by `|`, with dots as `[.]`. Other conditions quote each member.
  const pattern = /'\^\(([^()']*)\)-\[0-9\]\+\$'/.exec(expression)?.[1];
  const named = pattern?.replaceAll('[.]', '.').split('|') ?? [...expression.matchAll(/'([^']*)'/g)].map(([, text = '']) => text);
  return named.flatMap((text) => {
    const [, namespace, statefulSet] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? [];
    return namespace === undefined || statefulSet === undefined ? [] : [{ namespace, statefulSet }];
  });
}

/** Returns whether the condition comes from `install --members-only`. */
export function isFromInstall({ name }: MatchCondition): boolean {
  return name === 'is-a-member' || name === 'is-a-pod-of-a-member';
}

/** Returns a function that writes the condition of the row for a CEL list of names; undefined for rows that are never narrowed. */
function membershipOf(row: Row): ((list: string) => string) | undefined {
  const name = nameOf(row);
  if (name === pinRow) return isMadeForOneOf;
  const subject = name.endsWith(enforceSuffix) ? subjects[name.slice(0, -enforceSuffix.length)] : undefined;
  return subject === undefined ? undefined : (list) => `(${subject}) in ${list}`;
}

function nameOf({ name }: Row): string {
  return typeof name === 'string' ? name : '';
}

export function conditionsOf({ matchConditions }: Row): readonly MatchCondition[] {
  if (!Array.isArray(matchConditions)) return [];
  return matchConditions.flatMap((one: unknown) => {
    const { name, expression } = fieldsOf(one);
    return typeof name === 'string' && typeof expression === 'string' ? [{ name, expression }] : [];
  });
}
