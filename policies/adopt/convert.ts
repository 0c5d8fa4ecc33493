// Converts objects of other rollout operators to policy documents, and reports settings without an equivalent.
import { durationMs, formatDuration } from '../duration.ts';
import { type Finding, sortFindings } from '../findings/finding.ts';
import { apiVersion, type MetricSource, type NotificationChannel, type RolloutGroup, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { groupBy } from '../values/group-by.ts';
import {
  type ConversionContext,
  type ConvertedObject,
  type ForeignObject,
  foreignText,
  type NameOf,
  type NeededDocument,
  refusal,
} from './foreign.ts';
import { shortHash } from './names.ts';
import { isPhasedRollout, phasedOwner, readPhasedRollout } from './phased-rollout.ts';
import { isStatefulsetRollout, readStatefulsetRollout } from './statefulset-rollout.ts';

export interface Conversion {
  /** The converted groups, sorted by namespace and name. */
  readonly groups: readonly RolloutGroup[];
  /** The MetricSources and NotificationChannels, for the namespace of the agent. */
  readonly documents: readonly (MetricSource | NotificationChannel)[];
  readonly statefulSets: readonly Readonly<Record<string, unknown>>[];
  readonly findings: readonly Finding[];
}

interface ConversionInput extends Pick<ConversionContext, 'secretKeys'> {
  /** The StatefulSets and the objects of other operators. All other objects are ignored. */
  readonly objects: readonly ForeignObject[];
  /** The existing groups, such as groups adopted from labels. */
  readonly groups: readonly RolloutGroup[];
}

function isForeign(object: ForeignObject): boolean {
  return isPhasedRollout(object) || isStatefulsetRollout(object);
}

/** Returns the foreign objects as text, by the `namespace/name` of the StatefulSet that each object names. Invalid objects count too. */
export function claimedSets(objects: readonly ForeignObject[]): ReadonlyMap<string, string> {
  return new Map(
    objects.filter(isForeign).flatMap((object) => {
      const path = isPhasedRollout(object) ? ['spec', 'targetRef'] : ['spec', 'statefulset', 'metadata', 'name'];
      const name = valueAt(object.value, path);
      return typeof name === 'string' ? [[`${object.namespace}/${name}`, foreignText(object)] as const] : [];
    }),
  );
}

/** Converts PhasedRollouts and StatefulsetRollouts. The order of the objects does not matter. */
export function convertObjects({ objects, groups: present, secretKeys }: ConversionInput): Conversion {
  const sets = new Map(objects.filter(({ kind }) => kind === 'StatefulSet').map((set) => [`${set.namespace}/${set.name}`, set]));
  const statefulSet = (namespace: string, name: string) => sets.get(`${namespace}/${name}`);
  const foreign = objects.filter(isForeign).sort((a, b) => (foreignText(a) < foreignText(b) ? -1 : 1));
  const all = foreign.map((object) =>
    isPhasedRollout(object) ? readPhasedRollout(object, { statefulSet, secretKeys }) : readStatefulsetRollout(object),
  );
  const conflicts = all.map((converted) => conflictOf(converted, { all, present, statefulSet }));
  const used = all.filter((_, index) => conflicts[index] === undefined);
  const { documents, nameOf, problems } = neededDocuments(used.flatMap(({ needs }) => needs));
  const results = used.map((converted) => ({ converted, result: groupOf(converted, nameOf, problems) }));
  return {
    groups: results
      .flatMap(({ result }) => result?.group ?? [])
      .sort((a, b) => (`${a.metadata.namespace}/${a.metadata.name}` < `${b.metadata.namespace}/${b.metadata.name}` ? -1 : 1)),
    documents,
    statefulSets: results.flatMap(({ converted, result }) => (result?.group && converted.statefulSet ? [converted.statefulSet] : [])),
    findings: sortFindings([
      ...all.flatMap((converted) => converted.findings),
      ...conflicts.flatMap((conflict) => conflict ?? []),
      ...results.flatMap(({ result }) => result?.finding ?? []),
    ]),
  };
}

interface OtherGroups extends Pick<ConversionContext, 'statefulSet'> {
  readonly all: readonly ConvertedObject[];
  readonly present: readonly RolloutGroup[];
}

/** Returns an error if another group has the same StatefulSet or the same name. */
function conflictOf(converted: ConvertedObject, { all, present, statefulSet }: OtherGroups): Finding | undefined {
  const { object, group } = converted;
  if (group === undefined) return undefined;
  const { namespace } = object;
  const neighbours = present.filter(({ metadata }) => (metadata.namespace ?? 'default') === namespace);
  const owner = neighbours.find(({ spec }) => spec.members.zones?.some((zone) => zone.statefulSet === group.statefulSet));
  if (owner !== undefined) {
    const cause = `the StatefulSet ${group.statefulSet} is already a member of the group ${owner.metadata.name}`;
    return refusal(object, group.statefulSetField, cause, 'remove the label rollout-group from the StatefulSet, or remove the object');
  }
  const others = all.filter((other) => other !== converted && other.group !== undefined && other.object.namespace === namespace);
  const rivals = others.filter((other) => other.group?.statefulSet === group.statefulSet);
  const mark = valueAt(statefulSet(namespace, group.statefulSet)?.value, ['metadata', 'annotations', phasedOwner]);
  const isMarked = object.kind === 'PhasedRollout' && mark === object.name;
  if (rivals.length > 0 && !isMarked) {
    const names = rivals.map((rival) => foreignText(rival.object)).join(' and ');
    return refusal(
      object,
      group.statefulSetField,
      `the StatefulSet ${group.statefulSet} is also named by ${names}`,
      'keep only one of these objects',
    );
  }
  const isTaken = neighbours.some(({ metadata }) => metadata.name === object.name);
  if (!isTaken && !others.some((other) => other.object.name === object.name)) return undefined;
  return refusal(object, 'metadata.name', `another group has the name ${object.name}`, 'rename one of the two');
}

function groupOf(
  { object, group, needs }: ConvertedObject,
  nameOf: NameOf,
  problems: ReadonlyMap<string, string>,
): { readonly group?: RolloutGroup; readonly finding?: Finding } | undefined {
  if (group === undefined) return undefined;
  const problem = needs.flatMap(({ key }) => problems.get(key) ?? [])[0];
  if (problem !== undefined) return { finding: refusal(object, 'metadata.name', problem) };
  const metadata = { name: object.name, namespace: object.namespace };
  const document = { apiVersion, kind: 'RolloutGroup', metadata, spec: group.spec(nameOf) };
  const parsed = schemas.RolloutGroup.safeParse(document);
  if (parsed.success) return { group: parsed.data };
  return { finding: refusal(object, 'metadata.name', `its group is invalid: ${schemaProblems(schemas.RolloutGroup, document)}`) };
}

interface NeededDocuments {
  /** The documents, sorted by kind and name. They have no namespace, because they belong to the namespace of the agent. */
  readonly documents: Conversion['documents'];
  readonly nameOf: NameOf;
  /** The reasons why needed documents are invalid, by key. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The default of `limits.minInterval` of a MetricSource. */
const usualIntervalMs = durationMs('15s');

function neededDocuments(needs: readonly NeededDocument[]): NeededDocuments {
  const byKey = groupBy(needs, ({ key }) => key);
  const firsts = [...byKey.values()].map(([first]) => first);
  const nameOf: NameOf = (key) => {
    const { kind, base } = byKey.get(key)?.[0] ?? { base: '' };
    return firsts.filter((other) => other.kind === kind && other.base === base).length > 1 ? `${base}-${shortHash(key)}` : base;
  };
  const problems = new Map<string, string>();
  const documents = [...byKey.entries()].flatMap(([key, same]) => {
    const { kind } = same[0];
    const document = { apiVersion, kind, metadata: { name: nameOf(key) }, spec: specOf(same) };
    const parsed = schemas[kind].safeParse(document);
    if (parsed.success) return [parsed.data];
    problems.set(key, `its ${kind} is invalid: ${schemaProblems(schemas[kind], document)}`);
    return [];
  });
  const order = ({ kind, metadata }: MetricSource | NotificationChannel) => `${kind} ${metadata.name}`;
  return { documents: documents.sort((a, b) => (order(a) < order(b) ? -1 : 1)), nameOf, problems };
}

function specOf(same: readonly [NeededDocument, ...NeededDocument[]]): unknown {
  const namespaces = [...new Set(same.map(({ namespace }) => namespace))].sort();
  const intervalMs = Math.min(usualIntervalMs, ...same.flatMap(({ everyMs }) => everyMs ?? []));
  const limits = intervalMs < usualIntervalMs ? { limits: { minInterval: formatDuration(intervalMs) } } : {};
  return { ...same[0].spec, usableFrom: { namespaces }, ...limits };
}
