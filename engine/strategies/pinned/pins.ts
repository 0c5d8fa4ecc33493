// Updates the pins of a group in the ledger, after each observation of its pods and before each action. A pin fixes the revision of a pod.

import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { canonicalJson } from '../../../policies/values/canonical-json.ts';
import type { GroupContext } from '../../context.ts';
import { type Action, isReplacement } from '../../decision.ts';
import { type GroupView, partitionOrdinal, type ZoneView } from '../../observe/view.ts';
import type { RunState } from '../../run/run-state.ts';
import { restoredRevision } from '../../run/states.ts';
import {
  isUnknown,
  type KeptTemplate,
  type Ledger,
  type Pin,
  type PodView,
  type RevisionView,
  type Snapshot,
  type StatefulSetView,
} from '../../snapshot.ts';

type Pinned = Pick<Ledger, 'pins' | 'templates'>;

/** The most bytes of all template copies in a ledger, as JSON. Without a copy, a pin works only while Kubernetes keeps the revision. */
export const keptTemplatesLimit = 96 * 1024;

/**
 * Returns the pins of a group after an observation. Every pod that does not run the current revision of its StatefulSet is pinned to its
 * own revision. A pin is dropped if the controller creates the pod at that revision anyway, or if the replacement never happened. A pod
 * that did not come back at the update revision keeps its pin and is replaced again. Unreadable zones keep their pins.
 */
export function observedPins({ group, view, snapshot }: GroupContext, run: RunState | undefined = view.ledger.run): Pinned {
  const isOver = run === undefined || run.outcome === 'completed';
  const pins = view.zones.flatMap((zone) => pinsOfZone(group, zone, { ledger: view.ledger, isOver }));
  // A completed rollout keeps no template. Otherwise only a later turn would drop it.
  const ledger = run === undefined ? view.ledger : { ...view.ledger, run };
  return withTemplates(pins, ledger, group, snapshot);
}

interface PinnedZone {
  readonly group: GroupDefinition;
  readonly set: StatefulSetView;
  readonly view: ZoneView;
  readonly ledger: Ledger;
  /** True if the run is completed, or the group has no run. */
  readonly isOver: boolean;
  readonly pods: ReadonlyMap<number, PodView>;
  readonly claimed: ReadonlySet<string>;
}

function pinsOfZone(
  group: GroupDefinition,
  view: ZoneView,
  { ledger, isOver }: { readonly ledger: Ledger; readonly isOver: boolean },
): readonly Pin[] {
  const { set, unknown, zone } = view;
  const known = (ledger.pins ?? []).filter((pin) => pin.zone === zone.name);
  if (set === undefined || unknown !== undefined || set.status.currentRevision === '') return known;
  const pods = new Map<number, PodView>();
  // If two pods have one ordinal, the pod that is not terminating counts.
  for (const pod of view.pods) if (!pod.isTerminating || !pods.has(pod.ordinal)) pods.set(pod.ordinal, pod);
  const pinned: PinnedZone = { group, set, view, ledger, isOver, pods, claimed: new Set(view.claims.map(({ uid }) => uid)) };
  const kept = known.filter((pin) => isKept(pinned, pin));
  const withoutUndone = kept.map((pin): Pin => {
    const { replaces: _replaces, ...attempted } = pin;
    return isUndone(pinned, pin) ? { ...attempted, placements: pin.placements - 1 } : pin;
  });
  return withObservedPods(pinned, new Map(withoutUndone.map((pin) => [pin.ordinal, pin])));
}

function isKept(pinned: PinnedZone, pin: Pin): boolean {
  const { group, set, view, pods, claimed } = pinned;
  const { ordinal, revision, placements, replaces } = pin;
  // Under another strategy, the StatefulSet controller creates these pods at the update revision. A pin would cause replacements without end.
  if (!traitsOf(group).pinsPods && (set.updateStrategy === 'OnDelete' || ordinal >= partitionOrdinal(set))) return false;
  const pod = pods.get(ordinal);
  if (pod === undefined) return isKeptWithoutPod(pinned, pin);
  if (pod.isTerminating) return true;
  if (pod.revision === revision) return revision !== set.status.currentRevision;
  // Earlier attempts still count if the last attempt was not carried out.
  if (pod.uid === replaces)
    return claimed.has(pod.uid) || (placements > 1 && revision === view.desiredRevision && traitsOf(group).pinsPods);
  // A pin to another revision than the target is dropped, so that the pod is pinned to its own revision.
  return revision === view.desiredRevision && traitsOf(group).pinsPods;
}

function isKeptWithoutPod({ set, view, ledger, isOver }: PinnedZone, { ordinal, revision }: Pin): boolean {
  // In a zone that is rolled back, every further pod is created at the desired revision. No further pod is created at the failed revision.
  const isRolledBack = view.desiredRevision !== set.status.updateRevision;
  const isFailed = revision === ledger.run?.rolledBack?.revisions[view.zone.name];
  if ((isRolledBack || isFailed) && revision !== view.desiredRevision) return false;
  return !isOver || (ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas);
}

/** Reports whether the last attempt was not carried out: its pod still exists, and no claim on the pod is open. */
function isUndone({ pods, claimed }: PinnedZone, { ordinal, replaces }: Pin): boolean {
  const pod = pods.get(ordinal);
  return pod !== undefined && !pod.isTerminating && pod.uid === replaces && !claimed.has(pod.uid);
}

/** Returns the pins, with new pins for pods that reached their pinned revision and for unpinned pods not at the current revision. */
function withObservedPods({ group, set, view, pods }: PinnedZone, kept: ReadonlyMap<number, Pin>): readonly Pin[] {
  const pins = new Map(kept);
  for (const [ordinal, { revision, uid, isTerminating }] of pods) {
    const known = pins.get(ordinal);
    const isPlaced = known !== undefined && known.revision === revision && !isTerminating && known.replaces !== uid;
    const isForeign = known === undefined && traitsOf(group).pinsPods && revision !== '' && revision !== set.status.currentRevision;
    if (isForeign || (isPlaced && known.placements > 0)) pins.set(ordinal, { zone: view.zone.name, ordinal, revision, placements: 0 });
  }
  return [...pins.values()].sort((a, b) => a.ordinal - b.ordinal);
}

/** Returns the ledger with a pin for every pod that these actions replace, so that its successor is created at the revision of the pin. */
export function withPins(
  ledger: Ledger,
  actions: readonly Action[],
  { snapshot, group }: Pick<GroupContext, 'snapshot' | 'group'>,
): Ledger {
  const pinned = actions.filter(isReplacement).flatMap(({ pinTo, zone, ordinal, uid }): readonly Pin[] => {
    if (pinTo === undefined) return [];
    const known = ledger.pins?.find((pin) => pin.zone === zone && pin.ordinal === ordinal);
    const before = known?.revision === pinTo ? known.placements : 0;
    return [{ zone, ordinal, revision: pinTo, placements: before + 1, replaces: uid, atMs: snapshot.nowMs }];
  });
  // After a change of the strategy, pods that the controller replaces lose their pin. The pin would cause replacements without end.
  const exposed = actions.flatMap((action) =>
    action.kind === 'setPartition' ? action.pods.map((pod) => ({ ...pod, zone: action.zone })) : [],
  );
  const places = new Set([...pinned, ...exposed].map(placeOf));
  const others = (ledger.pins ?? []).filter((pin) => !places.has(placeOf(pin)));
  if (pinned.length === 0 && others.length === (ledger.pins ?? []).length) return ledger;
  return { ...ledger, ...withTemplates([...others, ...pinned], ledger, group, snapshot) };
}

/** Returns the ledger with the pins of `before` for the pods of actions that were certainly not carried out. */
export function withoutPinsOf(ledger: Ledger, before: Pinned, actions: readonly Action[]): Ledger {
  const places = new Set(actions.filter(isReplacement).flatMap((action) => (action.pinTo === undefined ? [] : [placeOf(action)])));
  if (places.size === 0) return ledger;
  const isUndone = (pin: Pin): boolean => places.has(placeOf(pin));
  const pins = [...(ledger.pins ?? []).filter((pin) => !isUndone(pin)), ...(before.pins ?? []).filter(isUndone)];
  return { ...ledger, pins };
}

function placeOf({ zone, ordinal }: Pick<Pin, 'zone' | 'ordinal'>): string {
  return `${zone} ${ordinal}`;
}

/**
 * Returns the revision that a rollback of the run restores, or that the rollback restored. The ledger has a copy of its template: Kubernetes
 * deletes the revision with the StatefulSet, and may delete it earlier.
 */
function keptForRollback({ run }: Ledger, zone: string): readonly string[] {
  const before = run === undefined || run.outcome === 'completed' ? undefined : run.previous[zone];
  const kept = restoredRevision(run, zone, run?.rolledBack?.revisions[zone]) ?? before;
  return kept === undefined ? [] : [kept];
}

interface WantedRevision {
  readonly zone: string;
  readonly statefulSet: string;
  readonly name: string;
}

/** Returns the revisions at which pods may come back and whose template the ledger lacks. Only a rollback needs the current revision. */
export function wantedRevisions({ group, ledger, zones }: GroupView): readonly WantedRevision[] {
  if (!traitsOf(group).pinsPods) return [];
  return zones.flatMap(({ zone, set, desiredRevision, pods, unknown }) => {
    if (set === undefined || unknown !== undefined) return [];
    const { currentRevision } = set.status;
    const pinned = (ledger.pins ?? []).filter((pin) => pin.zone === zone.name);
    const names = new Set([
      desiredRevision,
      ...keptForRollback(ledger, zone.name),
      ...pods.map(({ revision }) => revision),
      ...pinned.map(({ revision }) => revision),
    ]);
    return [...names]
      .filter(
        (name) =>
          name !== '' &&
          (name !== currentRevision || keptForRollback(ledger, zone.name).includes(name)) &&
          copyOf(ledger, zone.name, name) === undefined,
      )
      .sort()
      .map((name) => ({ zone: zone.name, statefulSet: set.name, name }));
  });
}

/** Returns the template of a revision from the ledger or the snapshot; undefined if it was not read or does not exist. */
export function templateOf(
  { ledger, group }: Pick<GroupView, 'ledger' | 'group'>,
  { revisions }: Pick<Snapshot, 'revisions'>,
  { zone, statefulSet, name }: WantedRevision,
): RevisionView['template'] | undefined {
  const copy = copyOf(ledger, zone, name);
  if (copy !== undefined) return copy.template;
  return revisions?.find((one) => one.namespace === group.namespace && one.statefulSet === statefulSet && one.name === name)?.template;
}

function copyOf({ templates = [] }: Ledger, zone: string, name: string): KeptTemplate | undefined {
  return templates.find((copy) => copy.zone === zone && copy.revision === name);
}

/** Returns the pins with a copy of each template that they name, if the template is known and fits into the ledger. */
function withTemplates(pins: readonly Pin[], ledger: Ledger, group: GroupDefinition, snapshot: Snapshot): Pinned {
  const before = traitsOf(group).pinsPods
    ? group.zones.flatMap(({ name: zone }) => keptForRollback(ledger, zone).map((revision) => ({ zone, revision })))
    : [];
  const named = new Map([...pins, ...before].map(({ zone, revision }) => [`${zone} ${revision}`, { zone, revision }]));
  let room = keptTemplatesLimit;
  const templates = [...named]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, { zone, revision }]): readonly KeptTemplate[] => {
      const statefulSet = group.zones.find(({ name }) => name === zone)?.statefulSet ?? '';
      const template = templateOf({ ledger, group }, snapshot, { zone, statefulSet, name: revision });
      if (template === undefined || isUnknown(template)) return [];
      const size = new TextEncoder().encode(canonicalJson(template)).length;
      if (size > room) return [];
      room -= size;
      return [{ zone, revision, template }];
    });
  return { pins, templates };
}
