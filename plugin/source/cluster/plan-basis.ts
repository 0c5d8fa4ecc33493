// Computes the basis of a plan: the objects behind its decision, with the fields that matter. A change of the basis makes the plan stale.
import { hash } from 'node:crypto';
import { isServerField, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isUnknown, type Known, type Ledger, type PodView, type Snapshot } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { matchesSelector } from '../../../policies/label-selector.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { nameOf } from '../../difference.ts';
import { removableFields } from './managed-fields.ts';

export interface ReadObject {
  /** `kind namespace/name`. */
  readonly object: string;
  /** Set for existing StatefulSets, pods, desired objects and policy objects. */
  readonly uid?: string;
  /** The parts by name: the first digits of the SHA-256, or a short value unchanged. */
  readonly parts: Readonly<Record<string, string>>;
}

export interface BasisChange {
  readonly object: string;
  readonly what: 'changed' | 'appeared' | 'gone' | 'replaced';
  readonly parts: readonly string[];
}

interface BasisInput {
  readonly groups: readonly GroupDefinition[];
  readonly snapshot: Snapshot;
  readonly live: readonly ObjectContent[];
  /** The desired objects. The basis contains the live object of each name, or states that it does not exist. */
  readonly desiredObjects: readonly ObjectContent[];
}

/** Returns the objects behind the decision, sorted, without values that never change a plan: counters, versions, ages. */
export function basisOf({ groups, snapshot, live, desiredObjects }: BasisInput): readonly ReadObject[] {
  const objects = new Map<string, ReadObject>();
  const add = (read: ReadObject): void => {
    const known = objects.get(read.object);
    objects.set(read.object, known === undefined ? read : { ...known, ...read, parts: { ...known.parts, ...read.parts } });
  };
  for (const group of groups) for (const read of readsOf(group, snapshot)) add(read);
  for (const read of problemsOf(snapshot)) add(read);
  const byName = new Map(live.map((object) => [nameOf(object), object]));
  for (const object of desiredObjects) {
    const [name, running] = [nameOf(object), byName.get(nameOf(object))];
    add(targetOf(name, running));
    // An apply removes these fields if the manifest omits them.
    if (running !== undefined) add({ object: name, parts: digests({ owned: removableFields(running) }) });
  }
  for (const object of live) if (bindsOneOf(groups, object)) add(targetOf(nameOf(object), object));
  return [...objects.values()].sort((a, b) => (a.object < b.object ? -1 : 1));
}

/** Returns the changes between two bases; an empty list if the plan is still valid. */
export function basisChanges(before: readonly ReadObject[], after: readonly ReadObject[]): readonly BasisChange[] {
  const byObject = (list: readonly ReadObject[]) => new Map(list.map((read) => [read.object, read]));
  const [readBefore, readAfter] = [byObject(before), byObject(after)];
  return [...new Set([...readBefore.keys(), ...readAfter.keys()])].sort().flatMap((object): readonly BasisChange[] => {
    const [old, now] = [readBefore.get(object), readAfter.get(object)];
    if (old === undefined || (exists(old) === false && exists(now))) return [{ object, what: 'appeared', parts: [] }];
    if (now === undefined || (exists(old) && exists(now) === false)) return [{ object, what: 'gone', parts: [] }];
    if (old.uid !== now.uid) return [{ object, what: 'replaced', parts: [] }];
    const names = [...new Set([...Object.keys(old.parts), ...Object.keys(now.parts)])].sort();
    const parts = names.filter((name) => old.parts[name] !== now.parts[name]);
    return parts.length === 0 ? [] : [{ object, what: 'changed', parts }];
  });
}

/** Reports whether the object is of a kind of this project and may concern one of the groups. Every RolloutPolicy may. */
function bindsOneOf(groups: readonly GroupDefinition[], object: ObjectContent): boolean {
  if (object['kind'] === 'RolloutPolicy') return true;
  const isInNamespace = groups.some(({ namespace }) => namespace === fieldAt(object, ['metadata', 'namespace']));
  if (object['kind'] === 'RolloutException') return isInNamespace;
  const name = fieldAt(object, ['metadata', 'name']);
  return object['kind'] === 'RolloutGroup' && isInNamespace && groups.some((group) => group.name === name);
}

function exists(read: ReadObject | undefined): boolean {
  return read !== undefined && read.parts['exists'] !== 'no';
}

function readsOf(group: GroupDefinition, snapshot: Snapshot): readonly ReadObject[] {
  const { namespace } = group;
  const names = new Set(group.zones.map(({ statefulSet }) => statefulSet));
  const isMember = (one: { readonly namespace: string }, name: string): boolean => one.namespace === namespace && names.has(name);
  const sets = snapshot.statefulSets.filter((set) => isMember(set, set.name));
  const selects = (selector: Parameters<typeof matchesSelector>[0]): boolean =>
    sets.some((set) => matchesSelector(selector, set.podLabels));
  const sources = new Set(
    group.zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [`${replicas.resourceKind} ${replicas.name}`] : [])),
  );
  return [
    ...sets.map(({ uid, resourceVersion: _version, generation: _generation, status, annotations, ...rest }) => ({
      object: `StatefulSet ${namespace}/${rest.name}`,
      uid,
      parts: digests({ ...rest, annotations: userAnnotations(annotations), revision: status.updateRevision }),
    })),
    ...snapshot.pods
      .filter((view) => isMember(view, view.statefulSet))
      .flatMap(({ statefulSet, pods }) =>
        isUnknown(pods) ? [unread(`Pods ${namespace}/${statefulSet}`)] : pods.map((pod) => podRead(namespace, pod)),
      ),
    ...views(namespace, 'ZoneAwarePodDisruptionBudget', snapshot.zoneBudgets, (one) => selects({ matchLabels: { ...one.matchLabels } })),
    ...views(namespace, 'PodDisruptionBudget', snapshot.podBudgets, ({ selector }) => selects(selector)),
    ...snapshot.replicaSources
      .filter((source) => source.namespace === namespace && sources.has(`${source.kind} ${source.name}`))
      .map(({ kind, name, replicas }) => ({ object: `${kind} ${namespace}/${name}`, parts: digests({ replicas }) })),
    ...views(namespace, 'RolloutIntent', snapshot.intents, (intent) => intent.group === group.name),
    ...snapshot.ledgers.filter((ledger) => ledger.namespace === namespace && ledger.group === group.name).map(ledgerRead),
    ...(snapshot.unread ?? [])
      .filter((one) => one.kind === 'Ledger' && (one.namespace ?? namespace) === namespace && (one.name ?? group.name) === group.name)
      .map(() => unread(`Ledger ${namespace}/${group.name}`)),
  ];
}

/**
 * Returns the problems of webhooks and of the agent's access that can block groups. A part without a problem has no entry, because the
 * user who applies the plan may have other read permissions.
 */
function problemsOf({ webhookProblems = {}, missingAccess = [] }: Snapshot): readonly ReadObject[] {
  const problem = (of: string, value: unknown): readonly ReadObject[] =>
    value === undefined ? [] : [{ object: `problem of ${of}`, parts: { text: digest(value) } }];
  return [
    ...problem('the webhook that pins pods', webhookProblems.pins),
    ...problem('the webhook that records requesters', webhookProblems.requesters),
    ...problem('the access of the agent', missingAccess.length === 0 ? undefined : missingAccess),
  ];
}

function podRead(namespace: string, { resourceVersion: _version, name, uid, ...rest }: PodView): ReadObject {
  const { isReady, isTerminating, revision } = rest;
  // One digest covers most fields, since there may be thousands of pods. State and revision stay readable.
  const state = isTerminating ? 'terminating' : isReady ? 'ready' : 'not ready';
  return { object: `Pod ${namespace}/${name}`, uid, parts: { state, revision, rest: digest(rest) } };
}

/** Returns the parts of a ledger, without values that change with time alone. */
function ledgerRead({ namespace, group, claims, downscales, preparations, run }: Ledger): ReadObject {
  const { movableMs: _movable, movableAsOfMs: _asOf, ...rest } = run ?? { movableMs: 0, movableAsOfMs: 0 };
  return { object: `Ledger ${namespace}/${group}`, parts: digests({ claims, downscales, preparations, run: rest }) };
}

/** Returns the views of a namespace that `isWanted` selects. Omits requesters: the user who applies the plan may lack the right to verify them. */
function views<View extends { readonly namespace: string; readonly name: string; readonly requestedBy?: unknown }>(
  namespace: string,
  kind: string,
  all: Known<readonly View[]>,
  isWanted: (view: View) => boolean,
): readonly ReadObject[] {
  if (isUnknown(all)) return [unread(`${kind}s ${namespace}`)];
  return all
    .filter((view) => view.namespace === namespace && isWanted(view))
    .map(({ name, requestedBy: _requester, ...rest }) => ({ object: `${kind} ${namespace}/${name}`, parts: digests(rest) }));
}

function unread(object: string): ReadObject {
  return { object, parts: { reading: 'not permitted or not possible' } };
}

/** Returns the parts of an object that an apply may overwrite: labels, annotations, and every field except metadata and status. */
export function targetOf(object: string, live: ObjectContent | undefined): ReadObject {
  if (live === undefined) return { object, parts: { exists: 'no' } };
  const uid = fieldAt(live, ['metadata', 'uid']);
  const parts = Object.entries(live).filter(([key]) => !['status', 'metadata', 'apiVersion', 'kind'].includes(key));
  const annotations = fieldAt(live, ['metadata', 'annotations']);
  const labels = fieldAt(live, ['metadata', 'labels']);
  const template = fieldAt(live, ['spec', 'template']);
  const spec = Object.fromEntries(Object.entries(fieldAt(live, ['spec']) ?? {}).filter(([key]) => key !== 'template'));
  return {
    object,
    ...(typeof uid === 'string' ? { uid } : {}),
    parts: digests({
      ...Object.fromEntries(parts),
      ...(live['spec'] === undefined ? {} : { spec }),
      ...(template === undefined ? {} : { template }),
      labels: labels ?? {},
      annotations: userAnnotations(isRecord(annotations) ? annotations : {}),
    }),
  };
}

function userAnnotations(annotations: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => !isServerField(`metadata.annotations.${key}`) && key !== planAnnotation),
  );
}

/** The annotation with the first 16 digits of the plan's digest, on every object that apply wrote. */
export const planAnnotation = 'rollout-group.dev/plan';

function digests(parts: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, shown(value)]));
}

function shown(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : digest(value);
}

function digest(value: unknown): string {
  return hash('sha256', canonicalJson(value)).slice(0, 16);
}
