// Converts objects of other rollout operators to policy documents, and reports settings without an equivalent.
import { durationMs, formatDuration } from '../duration.ts';
import { type Finding, sortFindings } from '../findings/finding.ts';
import { apiVersion, type MetricSource, type NotificationChannel, type RolloutGroup, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import { valueAt } from '../schema/schema-walk.ts';
import type { Path } from '../yaml/document.ts';
import { type ForeignObject, foreignFinding, foreignText, type NameOf, type Reading, type Request, type Surroundings } from './foreign.ts';
import { shortHash } from './names.ts';
import { isPhasedRollout, phasedOwner, readPhasedRollout } from './phased-rollout.ts';
import { isStatefulsetRollout, readStatefulsetRollout } from './statefulset-rollout.ts';

export interface Conversion {
  /** Sorted by namespace and name. */
  readonly groups: readonly RolloutGroup[];
  /** MetricSources and NotificationChannels, for the namespace of the agent. */
  readonly documents: readonly (MetricSource | NotificationChannel)[];
  /** StatefulSets that stood in the objects alone. */
  readonly statefulSets: readonly Readonly<Record<string, unknown>>[];
  readonly findings: readonly Finding[];
}

interface ConversionInput extends Pick<Surroundings, 'secretKeys'> {
  /** Objects of other operators and StatefulSets; other objects are ignored. */
  readonly objects: readonly ForeignObject[];
  /** Groups that exist already, as those adopted from labels. */
  readonly groups: readonly RolloutGroup[];
}

/** Reports whether the object can be converted. */
function isForeign(object: ForeignObject): boolean {
  return isPhasedRollout(object) || isStatefulsetRollout(object);
}

/** The StatefulSets that they name, by `namespace/name`, each with the object, whether it can be converted or not. */
export function claimedSets(objects: readonly ForeignObject[]): ReadonlyMap<string, string> {
  return new Map(
    objects.filter(isForeign).flatMap((object) => {
      const path = isPhasedRollout(object) ? ['spec', 'targetRef'] : ['spec', 'statefulset', 'metadata', 'name'];
      const name = valueAt(object.value, path);
      return typeof name === 'string' ? [[`${object.namespace}/${name}`, foreignText(object)] as const] : [];
    }),
  );
}

/** The groups of PhasedRollouts and StatefulsetRollouts. The order of the objects does not matter. */
export function convertObjects({ objects, groups: present, secretKeys }: ConversionInput): Conversion {
  const sets = new Map(objects.filter(({ kind }) => kind === 'StatefulSet').map((set) => [`${set.namespace}/${set.name}`, set]));
  const statefulSet = (namespace: string, name: string) => sets.get(`${namespace}/${name}`);
  const foreign = objects.filter(isForeign).sort((a, b) => (foreignText(a) < foreignText(b) ? -1 : 1));
  const readings = foreign.map((object) =>
    isPhasedRollout(object) ? readPhasedRollout(object, { statefulSet, secretKeys }) : readStatefulsetRollout(object),
  );
  const refusals = readings.map((reading) => refusalOf(reading, { readings, present, statefulSet }));
  const used = readings.filter((_, index) => refusals[index] === undefined);
  const { documents, nameOf, problems } = agentDocuments(used.flatMap(({ wishes }) => wishes));
  const written = used.map((reading) => writtenGroup(reading, { nameOf, problems }));
  const findings = [
    ...readings.flatMap((reading) => reading.findings),
    ...refusals.flatMap((refusal) => refusal ?? []),
    ...written.flatMap(({ finding }) => finding ?? []),
  ];
  const kept = new Set(written.flatMap(({ group }) => group ?? []).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
  return {
    groups: written.flatMap(({ group }) => group ?? []).sort((a, b) => (nameText(a) < nameText(b) ? -1 : 1)),
    documents,
    statefulSets: used.flatMap(({ object, group, statefulSet: own }) =>
      own !== undefined && kept.has(`${object.namespace}/${group?.name}`) ? [own] : [],
    ),
    findings: sortFindings(findings),
  };
}

function nameText({ metadata }: RolloutGroup): string {
  return `${metadata.namespace}/${metadata.name}`;
}

interface Others extends Pick<Surroundings, 'statefulSet'> {
  readonly readings: readonly Reading[];
  readonly present: readonly RolloutGroup[];
}

/** Returns why an object gives no group: its StatefulSet or its name has another owner. */
function refusalOf(reading: Reading, { readings, present, statefulSet }: Others): Finding | undefined {
  const { object, group } = reading;
  if (group === undefined) return undefined;
  const { namespace } = object;
  const isHere = (one: RolloutGroup) => (one.metadata.namespace ?? 'default') === namespace;
  const refuse = (path: Path, message: string, hint: string) =>
    foreignFinding(object, 'RG7001', path, { message: `${message}; the object is left out`, hint });
  const owner = present.find((one) => isHere(one) && one.spec.members.zones?.some((zone) => zone.statefulSet === group.statefulSet));
  if (owner !== undefined) {
    const message = `the StatefulSet ${group.statefulSet} is a member of the group ${owner.metadata.name} already`;
    return refuse(group.statefulSetPath, message, 'remove the label rollout-group from it, or the object');
  }
  const others = readings.filter((other) => other !== reading && other.group !== undefined && other.object.namespace === namespace);
  const rivals = others.filter((other) => other.group?.statefulSet === group.statefulSet);
  const mark = valueAt(statefulSet(namespace, group.statefulSet)?.value, ['metadata', 'annotations', phasedOwner]);
  const isMarked = object.kind === 'PhasedRollout' && mark === object.name;
  if (rivals.length > 0 && !isMarked) {
    const message = `the StatefulSet ${group.statefulSet} is claimed by ${rivals.map((rival) => foreignText(rival.object)).join(' and ')} too`;
    return refuse(group.statefulSetPath, message, 'keep one of them');
  }
  const isTaken = present.some((one) => isHere(one) && one.metadata.name === group.name);
  const isShared = others.some((other) => other.group?.name === group.name);
  if (!isTaken && !isShared) return undefined;
  return refuse(['metadata', 'name'], `another group has the name ${group.name}`, 'rename one of the two');
}

function writtenGroup(
  reading: Reading,
  { nameOf, problems }: Pick<ReturnType<typeof agentDocuments>, 'nameOf' | 'problems'>,
): { readonly group?: RolloutGroup; readonly finding?: Finding } {
  const { object, group, wishes } = reading;
  if (group === undefined) return {};
  const refused = (problem: string) => ({
    finding: foreignFinding(object, 'RG7001', ['metadata', 'name'], {
      message: `${problem}, so that no group can be written; the object is left out`,
    }),
  });
  const problem = wishes.flatMap((wish) => problems.get(wish.key) ?? [])[0];
  if (problem !== undefined) return refused(problem);
  const document = group.document(nameOf);
  const parsed = schemas.RolloutGroup.safeParse(document);
  return parsed.success ? { group: parsed.data } : refused(schemaProblems(schemas.RolloutGroup, document));
}

interface AgentDocuments {
  /** Without a namespace: they belong where the agent is. Sorted by kind and name. */
  readonly documents: readonly (MetricSource | NotificationChannel)[];
  readonly nameOf: NameOf;
  /** Why a wish became no document, by its key. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The pause that a MetricSource asks for by itself. */
const usualPauseMs = durationMs('15s');

function agentDocuments(wishes: readonly Request[]): AgentDocuments {
  const byKey = new Map<string, Request[]>();
  for (const wish of wishes) byKey.set(wish.key, [...(byKey.get(wish.key) ?? []), wish]);
  const bases = [...byKey.values()].map(([first]) => `${first?.kind} ${first?.base}`);
  const nameOf: NameOf = (key) => {
    const first = byKey.get(key)?.[0];
    const isShared = bases.filter((base) => base === `${first?.kind} ${first?.base}`).length > 1;
    return isShared ? `${first?.base}-${shortHash(key)}` : (first?.base ?? '');
  };
  const problems = new Map<string, string>();
  const documents = [...byKey.entries()].flatMap(([key, same]) => {
    const [first] = same;
    const read = first?.kind === 'MetricSource' ? schemas.MetricSource : schemas.NotificationChannel;
    const document = { apiVersion, kind: first?.kind, metadata: { name: nameOf(key) }, spec: specOf(same) };
    const parsed = read.safeParse(document);
    if (parsed.success) return [parsed.data];
    problems.set(key, `of the ${first?.kind} that it needs, ${schemaProblems(read, document)}`);
    return [];
  });
  const order = (document: MetricSource | NotificationChannel) => `${document.kind} ${document.metadata.name}`;
  return { documents: documents.sort((a, b) => (order(a) < order(b) ? -1 : 1)), nameOf, problems };
}

function specOf(same: readonly Request[]): unknown {
  const namespaces = [...new Set(same.map(({ namespace }) => namespace))].sort();
  const pauseMs = Math.min(usualPauseMs, ...same.flatMap(({ everyMs }) => everyMs ?? []));
  const limits = pauseMs < usualPauseMs ? { limits: { minInterval: formatDuration(pauseMs) } } : {};
  return { ...same[0]?.spec, usableFrom: { namespaces }, ...limits };
}
