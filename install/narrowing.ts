// Conditions in the agent's webhook configuration that limit fail-closed rows to the protected StatefulSets.
import { isMadeForOneOf, type MatchCondition } from './conditions.ts';
import { endpointPaths } from './paths.ts';
import type { Member } from './scope.ts';

/** Of the rows that refuse without an answer; the agent adds it, and no installation has it. */
export const memberCondition = 'is-a-member-now';
/** Of the rows that hear of everything else, and let it pass without an answer; the agent adds these rows. */
const otherCondition = 'is-no-member-now';

/** Where rows with `failurePolicy: Fail` say which StatefulSet a request is about. */
const subjects: Readonly<Record<string, string>> = {
  'statefulset-update': "request.namespace + '/' + request.name",
  'statefulset-scale': "request.namespace + '/' + request.name",
  'statefulset-delete': "request.namespace + '/' + oldObject.metadata.name",
  'pod-eviction': "request.namespace + '/' + request.name.substring(0, request.name.lastIndexOf('-'))",
};

/** The row that hears of pods about to be made. It refuses nothing, so that what it does not hear of needs no row of its own. */
const placing = 'pinned.rollout-group.dev';

const of = '.enforce.rollout-group.dev';
const ofOthers = `-of-others${of}`;

/** Beyond it the rows stay as they are installed: conditions are evaluated on each request, and objects have an end. */
export const mostMembers = 2_000;

/** As far as it is read here, of `webhooks` of a configuration. */
type Row = Readonly<Record<string, unknown>>;

/**
 * The rows as they should be. Each that refuses without an answer is narrowed to the members, and stands beside one that hears of everything else
 * and refuses nothing without one. The row by which pods are pinned is narrowed alone; its members are those of groups of that engine. Rows that an installation has narrowed for good, and those of others, stay as they are.
 */
export function narrowed(rows: readonly Row[], members: readonly Member[]): readonly Row[] {
  const installed = rows.filter((row) => !nameOf(row).endsWith(ofOthers));
  const isTooMany = members.length > mostMembers;
  const list = `[${members.map(keyOf).sort().map(quoted).join(', ')}]`;
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

/** The endpoint beside the one of the row, where what cannot be told passes. */
function toOthers(clientConfig: unknown): unknown {
  const { service, url, ...rest } = (clientConfig ?? {}) as { readonly service?: object; readonly url?: unknown };
  const path = endpointPaths.enforceOthers;
  if (service !== undefined) return { ...rest, service: { ...service, path } };
  return { ...rest, url: String(url).replace(/\/admission\/enforce$/, path) };
}

/** The members that any of the rows names now. */
export function membersNamed(rows: readonly Row[]): readonly Member[] {
  const conditions = rows.flatMap(conditionsOf).filter(({ name }) => name === memberCondition);
  const named = new Map(conditions.flatMap(({ expression }) => membersIn(expression)).map((member) => [keyOf(member), member]));
  return [...named.values()];
}

/** Of a condition by which a row hears of some StatefulSets only, whoever wrote it. */
export function membersIn(expression: string): readonly Member[] {
  // A pattern for names of pods stands in one text, with dots as `[.]`.
  const pattern = /'\^\(([^()']*)\)-\[0-9\]\+\$'/.exec(expression)?.[1];
  const named = pattern?.replaceAll('[.]', '.').split('|') ?? [...expression.matchAll(/'([^']*)'/g)].map(([, text = '']) => text);
  return named.flatMap((text) => {
    const [, namespace, statefulSet] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? [];
    return namespace === undefined || statefulSet === undefined ? [] : [{ namespace, statefulSet }];
  });
}

/** With `--members-only` the names are those of the installation. */
export function isForGood({ name }: MatchCondition): boolean {
  return name === 'is-a-member' || name === 'is-a-pod-of-a-member';
}

/** Says in CEL that what the row hears of is in a list; undefined for rows that are not narrowed. */
function membershipOf(row: Row): ((list: string) => string) | undefined {
  const name = nameOf(row);
  if (name === placing) return isMadeForOneOf;
  const subject = name.endsWith(of) ? subjects[name.slice(0, -of.length)] : undefined;
  return subject === undefined ? undefined : (list) => `(${subject}) in ${list}`;
}

function nameOf({ name }: Row): string {
  return typeof name === 'string' ? name : '';
}

/** The conditions of a row; what is none is left out. */
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

function keyOf({ namespace, statefulSet }: Member): string {
  return `${namespace}/${statefulSet}`;
}

function quoted(text: string): string {
  return `'${text}'`;
}
