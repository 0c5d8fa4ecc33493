// Finds the changes of a plan: differences of zones, joined for zones that change in the same way, and changed disruption budgets.
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { type FieldChange, fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { fieldAt, objectKey } from '../observe/raw.ts';
import { isUnknown, podsNamed, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import type { PlannedChange, Refusal } from './document.ts';
import { type ChangedPods, haveValue, joinPods, type RunningMember, templateChanges } from './running-fields.ts';

interface Compared {
  readonly current: readonly unknown[];
  readonly desired: readonly unknown[];
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly revisions?: readonly unknown[];
}

/** Returns the changes of a group: replica sources, members in the order of zones, and budgets. Changes of several zones appear once. */
export function plannedChanges(group: GroupDefinition, compared: Compared, refused: readonly Refusal[]): readonly PlannedChange[] {
  const byText = new Map<string, PlannedChange & InPods>();
  for (const zone of group.zones) {
    const before = manifestOf(compared.current, 'StatefulSet', group.namespace, zone.statefulSet);
    const after = manifestOf(compared.desired, 'StatefulSet', group.namespace, zone.statefulSet);
    const isRefused = refused.some((refusal) => refusal.zone === zone.name);
    const running = setNamed(compared.before, group.namespace, zone.statefulSet);
    const pods = podsNamed(compared.before, group.namespace, zone.statefulSet) ?? [];
    const { revisions = [] } = compared;
    const ofPods = { updateRevision: running?.status.updateRevision, pods: isUnknown(pods) ? undefined : pods, revisions };
    for (const { changedPods = noPods, ...change } of changesOf(before, after, { isRefused, ofPods })) {
      const counted = withRunningReplicas(change, running?.replicas);
      const key = canonicalJson(counted);
      const known = byText.get(key);
      const all = joinPods(known?.changedPods ?? noPods, changedPods);
      byText.set(key, { ...counted, zones: [...(known?.zones ?? []), zone.name], changedPods: all });
    }
  }
  return [...sourceChanges(group, compared), ...[...byText.values()].map(withRunningValues), ...budgetChanges(group, compared)];
}

interface InPods {
  readonly changedPods?: ChangedPods;
}

const noPods: ChangedPods = { values: [], pods: 0, areKnown: true };

/** Adds the values in the pods, unless every pod has the value of the StatefulSet. */
function withRunningValues({ changedPods = noPods, ...change }: PlannedChange & InPods): PlannedChange {
  const isUsual = change.kind !== 'pods' && haveValue(change.before, changedPods);
  return isUsual ? change : { ...change, running: changedPods.values };
}

/** Returns a change for each mirrored object whose requested replicas differ. It names every zone that does not mirror another object. */
function sourceChanges(group: GroupDefinition, { before, after }: Compared): readonly PlannedChange[] {
  const numberIn = ({ replicaSources }: Snapshot, kind: string, name: string): number | undefined => {
    const found = replicaSources.find((source) => source.namespace === group.namespace && source.kind === kind && source.name === name);
    return found === undefined || isUnknown(found.replicas) ? undefined : found.replicas;
  };
  const mirrors = group.zones.flatMap(({ name: zone, replicas }) => (replicas.kind === 'mirror' ? [{ zone, replicas }] : []));
  const sources = new Map(mirrors.map(({ replicas }) => [`${replicas.resourceKind} ${replicas.name}`, replicas]));
  return [...sources].flatMap(([field, { resourceKind, name }]): PlannedChange[] => {
    const [from, to] = [numberIn(before, resourceKind, name), numberIn(after, resourceKind, name)];
    if (from === undefined || to === undefined || from === to) return [];
    const consequence = to > from ? 'scaleUp' : 'scaleDown';
    const others = mirrors
      .filter(({ replicas }) => replicas.resourceKind !== resourceKind || replicas.name !== name)
      .map(({ zone }) => zone);
    const zones = group.zones.map((zone) => zone.name).filter((zone) => !others.includes(zone));
    return [{ kind: 'source', zones, field, before: from, after: to, consequence }];
  });
}

/** Adds the running replicas to a change of `spec.replicas` if the old manifest omits this field. */
function withRunningReplicas(change: ZoneChange, running: number | undefined): ZoneChange {
  const { after } = change;
  if (change.field !== 'spec.replicas' || change.before !== undefined || running === undefined || typeof after !== 'number') return change;
  const consequence = after === running ? 'none' : after > running ? 'scaleUp' : 'scaleDown';
  return { ...change, before: running, consequence: change.consequence === 'refused' ? 'refused' : consequence };
}

/** Fields that a manifest of a member can leave to other writers: the agent, an autoscaler, the defaults of the API server. */
const leftToOthers: readonly (readonly [map: readonly string[], field: string])[] = [
  [['spec'], 'replicas'],
  [['spec', 'updateStrategy', 'rollingUpdate'], 'partition'],
];

/** Returns the running member without the fields that the manifest leaves to other writers. */
export function comparedMember(running: ObjectContent, manifest: ObjectContent): ObjectContent {
  return leftToOthers
    .filter(([map, field]) => fieldAt(manifest, [...map, field]) === undefined)
    .reduce((object, [map, field]) => withoutField(object, map, field), running);
}

function withoutField(object: ObjectContent, [key, ...rest]: readonly string[], field: string): ObjectContent {
  if (key === undefined) return Object.fromEntries(Object.entries(object).filter(([name]) => name !== field));
  const inner = object[key];
  return isRecord(inner) ? { ...object, [key]: withoutField(inner, rest, field) } : object;
}

type ZoneChange = Omit<PlannedChange, 'zones' | 'running'>;

function changesOf(
  before: ObjectContent | undefined,
  after: ObjectContent | undefined,
  { isRefused, ofPods }: { readonly isRefused: boolean; readonly ofPods: Omit<RunningMember, 'object'> },
): readonly (ZoneChange & InPods)[] {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ kind: 'created', field: 'metadata.name', consequence: isRefused ? 'refused' : 'scaleUp' }];
  if (after === undefined) return [{ kind: 'deleted', field: 'metadata.name', consequence: isRefused ? 'refused' : 'none' }];
  const changes = fieldDiff(comparedMember(before, after), after);
  const ofTemplate = changes.filter(isOfTemplate);
  if (ofTemplate.length === 0) return changes.map((change) => plannedChange(change, isRefused));
  const ofPodTemplates = templateChanges(ofTemplate, after, { ...ofPods, object: before });
  const rows = changes.map((change) => ofPodTemplates.find((one) => one.change === change) ?? { change });
  const onlyInPods = ofPodTemplates.filter(({ kind }) => kind === 'pods');
  return [...rows, ...onlyInPods].map(({ change, ...inPods }) => ({ ...plannedChange(change, isRefused), ...inPods }));
}

function isOfTemplate({ path }: FieldChange): boolean {
  return path.startsWith('spec.template');
}

function plannedChange(change: FieldChange, isRefused: boolean): ZoneChange {
  const { path: field, before, after, consequence } = change;
  const kind = isOfTemplate(change) ? 'template' : field === 'spec.replicas' ? 'replicas' : 'settings';
  return { kind, field, ...defined({ before, after }), consequence: isRefused ? 'refused' : consequence };
}

interface Budget {
  readonly zones: ReadonlySet<string>;
  /** The manifest; undefined if the input does not contain it. */
  readonly object: ObjectContent | undefined;
}

/** Returns the changed budgets of the group's namespace, by kind and name, with the zones whose pods they cover before or after. */
function budgetChanges(group: GroupDefinition, compared: Compared): readonly PlannedChange[] {
  const before = budgetsOf(compared.before, compared.current, group);
  const after = budgetsOf(compared.after, compared.desired, group);
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((title): readonly PlannedChange[] => {
    const [old, next] = [before.get(title), after.get(title)];
    const zones = group.zones.map(({ name }) => name).filter((name) => old?.zones.has(name) || next?.zones.has(name));
    if (zones.length === 0) return [];
    return amountChanges(title, old, next).map((change) => ({ kind: 'budget', zones, consequence: 'none', ...change }));
  });
}

function amountChanges(
  title: string,
  old: Budget | undefined,
  next: Budget | undefined,
): readonly Omit<PlannedChange, 'kind' | 'zones' | 'consequence'>[] {
  if (old === undefined) return next?.object === undefined ? [] : [{ field: title, after: amountText(next.object) }];
  if (next === undefined) return old.object === undefined ? [] : [{ field: title, before: amountText(old.object) }];
  if (old.object === undefined || next.object === undefined) return [];
  return fieldDiff(old.object, next.object)
    .filter(({ path }) => path.startsWith('spec'))
    .map(({ path, before, after }) => ({ field: `${title} ${path}`, ...defined({ before, after }) }));
}

/** Returns the budgets of the group's namespace by kind and name, without the kinds that could not be read. */
function budgetsOf(snapshot: Snapshot, objects: readonly unknown[], group: GroupDefinition): ReadonlyMap<string, Budget> {
  const { podBudgets, zoneBudgets } = snapshot;
  const members = group.zones.flatMap((zone) => {
    const set = setNamed(snapshot, group.namespace, zone.statefulSet);
    return set === undefined ? [] : [{ zone: zone.name, set }];
  });
  const entry = (kind: string, name: string, covers: (set: StatefulSetView) => boolean): [string, Budget] => {
    const zones = new Set(members.filter(({ set }) => covers(set)).map(({ zone }) => zone));
    return [`${kind} ${name}`, { zones, object: manifestOf(objects, kind, group.namespace, name) }];
  };
  const pods = (isUnknown(podBudgets) ? [] : podBudgets)
    .filter(({ namespace }) => namespace === group.namespace)
    .map(({ name, selector }) => entry('PodDisruptionBudget', name, ({ podLabels }) => matchesSelector(selector, podLabels)));
  const zones = (isUnknown(zoneBudgets) ? [] : zoneBudgets)
    .filter(({ namespace }) => namespace === group.namespace)
    .map(({ name, matchLabels }) =>
      entry(
        'ZoneAwarePodDisruptionBudget',
        name,
        ({ labels, podLabels }) => matchesSelector({ matchLabels }, labels) || matchesSelector({ matchLabels }, podLabels),
      ),
    );
  return new Map([...pods, ...zones]);
}

/** The manifests by kind and `namespace/name`, computed once for each list, because a plan looks up every zone several times. */
const manifestIndexes: WeakMap<readonly unknown[], ReadonlyMap<string, ObjectContent>> = new WeakMap();

/** Returns the first manifest of this kind and name; `default` is the namespace of a manifest without a namespace. */
export function manifestOf(objects: readonly unknown[], kind: string, namespace: string, name: string): ObjectContent | undefined {
  const entries = () => objects.filter(isRecord).map((object) => [`${object['kind']} ${objectKey(object)}`, object] as const);
  const index = manifestIndexes.get(objects) ?? new Map(entries().toReversed());
  manifestIndexes.set(objects, index);
  return index.get(`${kind} ${namespace}/${name}`);
}

function amountText(budget: ObjectContent): string {
  const fields = ['maxUnavailable', 'minAvailable', 'maxUnavailablePercentage'];
  const named = fields.flatMap((field) => {
    const amount = fieldAt(budget, ['spec', field]);
    return amount === undefined ? [] : [`${field}: ${String(amount)}`];
  });
  return named.length === 0 ? 'no amount' : named.join(', ');
}
