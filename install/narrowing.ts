// Conditions in the agent's webhook configuration that limit fail-closed rows to the protected StatefulSets.
import { isMadeForOneOf, type MatchCondition } from './conditions.ts';
import { endpointPaths } from './object.ts';
import { type Member, memberKey } from './scope.ts';

/** The condition of fail-closed rows. The agent adds it; `install` does not write it. */
export const memberCondition = 'is-a-member-now';
/** The condition of the rows for all other StatefulSets, which fail open. The agent adds these rows. */
const otherCondition = 'is-no-member-now';

/** The StatefulSet of a request in CEL, for each row with `failurePolicy: Fail`. */
const subjects: Readonly<Record<string, string>> = {
  'statefulset-update': "request.namespace + '/' + request.name",
  'statefulset-scale': "request.namespace + '/' + request.name",
  'statefulset-delete': "request.namespace + '/' + oldObject.metadata.name",
  'pod-eviction': "request.namespace + '/' + request.name.substring(0, request.name.lastIndexOf('-'))",
};

/** The row for pods in creation. It denies nothing, so it needs no second row for other pods. */
const placing = 'pinned.rollout-group.dev';

const of = '.enforce.rollout-group.dev';
const ofOthers = `-of-others${of}`;

/** With more members, the rows stay as installed: the API server evaluates conditions on each request, and objects have a size limit. */
export const maxMembers = 2_000;

/** The fields that this file reads of an entry of `webhooks`. */
type Row = Readonly<Record<string, unknown>>;

/**
 * Returns the rows with the conditions for the current members. Each fail-closed row matches only members, with a second, fail-open row for
 * the rest; the row that pins pods has no second row. Foreign rows and those of `install --members-only` stay.
 */
export function narrowed(rows: readonly Row[], members: readonly Member[]): readonly Row[] {
  const installed = rows.filter((row) => !nameOf(row).endsWith(ofOthers));
  const isTooMany = members.length > maxMembers;
  const list = `[${members.map(memberKey).sort().map(quoted).join(', ')}]`;
  const others: Row[] = [];
  const own = installed.map((row): Row => {
    const membership = membershipOf(row);
    const conditions = conditionsOf(row);
    if (membership === undefined || conditions.some(isForGood)) return row;
    const rest = conditions.filter(({ name }) => name !== memberCondition);
    if (isTooMany) return { ...row, matchConditions: rest };
    const isMember = members.length === 0 ? 'false' : membership(list);
    if (nameOf(row) === placing) return { ...row, matchConditions: [...rest, { name: memberCondition, expression: isMember }] };
    others.push({
      ...row,
      name: nameOf(row).replace(of, ofOthers),
      clientConfig: toOthers(row['clientConfig']),
      failurePolicy: 'Ignore',
      matchConditions: [...rest, { name: otherCondition, expression: `!(${isMember})` }],
    });
    return { ...row, matchConditions: [...rest, { name: memberCondition, expression: isMember }] };
  });
  return [...own, ...others];
}

/** Returns the client config of the fail-open endpoint next to the endpoint of the row. */
function toOthers(clientConfig: unknown): unknown {
  const { service, url, ...rest } = (clientConfig ?? {}) as { readonly service?: object; readonly url?: unknown };
  const path = endpointPaths.enforceOthers;
  if (service !== undefined) return { ...rest, service: { ...service, path } };
  return { ...rest, url: String(url).replace(/\/admission\/enforce$/, path) };
}

/** Returns the members that the rows name now. */
export function membersNamed(rows: readonly Row[]): readonly Member[] {
  const conditions = rows.flatMap(conditionsOf).filter(({ name }) => name === memberCondition);
  const named = new Map(conditions.flatMap(({ expression }) => membersIn(expression)).map((member) => [memberKey(member), member]));
  return [...named.values()];
}

/** Returns the members that a narrowing condition names, written by the agent or by `install --members-only`. */
export function membersIn(expression: string): readonly Member[] {
  // A pattern for pod names is one text, with dots as `[.]`.
  const pattern = /'\^\(([^()']*)\)-\[0-9\]\+\$'/.exec(expression)?.[1];
  const named = pattern?.replaceAll('[.]', '.').split('|') ?? [...expression.matchAll(/'([^']*)'/g)].map(([, text = '']) => text);
  return named.flatMap((text) => {
    const [, namespace, statefulSet] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? [];
    return namespace === undefined || statefulSet === undefined ? [] : [{ namespace, statefulSet }];
  });
}

/** Reports whether the condition comes from `install --members-only`. */
export function isForGood({ name }: MatchCondition): boolean {
  return name === 'is-a-member' || name === 'is-a-pod-of-a-member';
}

/** Returns a function that writes the condition of the row for a list; undefined for rows that are never narrowed. */
function membershipOf(row: Row): ((list: string) => string) | undefined {
  const name = nameOf(row);
  if (name === placing) return isMadeForOneOf;
  const subject = name.endsWith(of) ? subjects[name.slice(0, -of.length)] : undefined;
  return subject === undefined ? undefined : (list) => `(${subject}) in ${list}`;
}

function nameOf({ name }: Row): string {
  return typeof name === 'string' ? name : '';
}

/** Returns the well-formed conditions of a row. */
export function conditionsOf({ matchConditions }: Row): readonly MatchCondition[] {
  if (!Array.isArray(matchConditions)) return [];
  return matchConditions.flatMap((one: unknown) => {
    const { name, expression } = (typeof one === 'object' && one !== null ? one : {}) as {
      readonly name?: unknown;
      readonly expression?: unknown;
    };
    return typeof name === 'string' && typeof expression === 'string' ? [{ name, expression }] : [];
  });
}

function quoted(text: string): string {
  return `'${text}'`;
}
