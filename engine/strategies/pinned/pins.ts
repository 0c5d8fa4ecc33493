// At which revisions the pods of a group come back when they go: what its ledger says of it after a look at them, and after each decision.

import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import type { GroupContext } from '../../context.ts';
import { type Action, isReplacement } from '../../decision.ts';
import { canonicalJson } from '../../hash.ts';
import { type GroupView, partitionOrdinal, type ZoneView } from '../../observe/view.ts';
import {
  isUnknown,
  type KeptTemplate,
  type Ledger,
  type Pin,
  type PodView,
  type RevisionView,
  type RunState,
  type Snapshot,
} from '../../snapshot.ts';

/** What a ledger says of pinned pods. */
type Pinned = Pick<Ledger, 'pins' | 'templates'>;

/**
 * The most characters that copies of templates may take up in a ledger, as JSON. A template that does not fit is not copied: then its pods come back at
 * their revision for as long as Kubernetes keeps its ControllerRevision, which it does while a pod carries it.
 */
export const keptTemplatesLimit = 96 * 1024;

/**
 * What the ledger of the group says after a look at its pods. Every pod that runs another revision than the current one of its StatefulSet comes
 * back at the revision that it runs, whoever brought it there: so do pods that another engine replaced, and those of a run in between. What
 * the StatefulSet controller does anyway is not said, and neither is what was announced and never carried out. A pod that should have come back at the
 * update revision and did not is kept in mind, to be replaced once more. What cannot be read changes nothing. `run` is the one after the look: once it
 * is over nobody looks again by itself.
 */
export function observedPins(
  { group, view, snapshot }: Pick<GroupContext, 'group' | 'view' | 'snapshot'>,
  run: RunState | undefined = view.ledger.run,
): Pinned {
  const isOver = run === undefined || run.outcome === 'completed';
  const pins = view.zones.flatMap((zone) => pinsOfZone(group, zone, { ledger: view.ledger, isOver }));
  return withTemplates(pins, view.ledger, group, snapshot);
}

function pinsOfZone(
  group: GroupDefinition,
  view: ZoneView,
  { ledger, isOver }: { readonly ledger: Ledger; readonly isOver: boolean },
): readonly Pin[] {
  const { set, unknown, zone, target } = view;
  const own = (ledger.pins ?? []).filter((pin) => pin.zone === zone.name);
  if (set === undefined || unknown !== undefined || set.status.currentRevision === '') return own;
  const { currentRevision } = set.status;
  const pods = new Map<number, PodView>();
  // Of two pods of one ordinal the one that stays counts.
  for (const pod of view.pods) if (!pod.isTerminating || !pods.has(pod.ordinal)) pods.set(pod.ordinal, pod);
  const claimed = new Set(view.claims.map(({ uid }) => uid));
  const kept = own.filter(({ ordinal, revision, placements, replaces }) => {
    // Under another engine what the StatefulSet controller makes at the update revision stays so, or it would take it away again for ever.
    if (!traitsOf(group).pinsPods && (set.updateStrategy === 'OnDelete' || ordinal >= partitionOrdinal(set))) return false;
    const pod = pods.get(ordinal);
    // What failed and is rolled back is not made once more.
    if (pod === undefined && revision === ledger.run?.rolledBack?.revisions[zone.name] && revision !== target) return false;
    if (pod === undefined) return !isOver || (ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas);
    if (pod.isTerminating) return true;
    if (pod.revision === revision) return revision !== currentRevision;
    // The attempts before one that never came still count.
    if (pod.uid === replaces) return claimed.has(pod.uid) || (placements > 1 && revision === target && traitsOf(group).pinsPods);
    // A revision that nobody wants any more follows the pod, and not the other way round.
    return revision === target && traitsOf(group).pinsPods;
  });
  const isUndone = ({ ordinal, replaces }: Pin): boolean => {
    const pod = pods.get(ordinal);
    return pod !== undefined && !pod.isTerminating && pod.uid === replaces && !claimed.has(pod.uid);
  };
  const said = new Map(kept.map((pin) => [pin.ordinal, isUndone(pin) ? withoutLast(pin) : pin]));
  for (const [ordinal, { revision, uid, isTerminating }] of pods) {
    const known = said.get(ordinal);
    const isPlaced = known !== undefined && known.revision === revision && !isTerminating && known.replaces !== uid;
    const isForeign = known === undefined && traitsOf(group).pinsPods && revision !== '' && revision !== currentRevision;
    if (isForeign || (isPlaced && known.placements > 0)) said.set(ordinal, { zone: zone.name, ordinal, revision, placements: 0 });
  }
  return [...said.values()].sort((a, b) => a.ordinal - b.ordinal);
}

/** The pin as it was before the pod was to be taken away for the last time. */
function withoutLast({ replaces: _replaces, ...pin }: Pin): Pin {
  return { ...pin, placements: pin.placements - 1 };
}

/** The ledger with the pin of every pod that these actions take away, so that its successor is made at the revision which it is to have. */
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
  // After a change of the engine: what is left to the StatefulSet controller must stay as it makes it, or it would be taken away for ever.
  const released = actions.flatMap((action) =>
    action.kind === 'setPartition' ? action.pods.map((pod) => ({ ...pod, zone: action.zone })) : [],
  );
  const places = new Set([...pinned, ...released].map(placeOf));
  const others = (ledger.pins ?? []).filter((pin) => !places.has(placeOf(pin)));
  if (pinned.length === 0 && others.length === (ledger.pins ?? []).length) return ledger;
  return { ...ledger, ...withTemplates([...others, ...pinned], ledger, group, snapshot) };
}

/** The ledger as it was `before` for the pods of actions that were certainly not carried out: they come back as they are. */
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
 * What a zone goes back to if its run fails: while the run is not over a copy is kept, for once the whole zone has moved Kubernetes may forget that revision.
 */
function keptForRollback({ run }: Ledger, zone: string): readonly string[] {
  const before = run === undefined || run.outcome === 'completed' ? undefined : run.previous[zone];
  return before === undefined ? [] : [before];
}

/** A ControllerRevision by its StatefulSet. */
interface WantedRevision {
  readonly zone: string;
  readonly statefulSet: string;
  readonly name: string;
}

/** The revisions at which pods are to come back, or may soon be, and of which the ledger has no copy. Those at which they come back anyway need none. */
export function wantedRevisions({ group, ledger, zones }: GroupView): readonly WantedRevision[] {
  if (!traitsOf(group).pinsPods) return [];
  return zones.flatMap(({ zone, set, target, pods, unknown }) => {
    if (set === undefined || unknown !== undefined) return [];
    const { currentRevision } = set.status;
    const pinned = (ledger.pins ?? []).filter((pin) => pin.zone === zone.name);
    const names = new Set([
      target,
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

/** The template of a revision, from the ledger or as it was read; the reason when it could not be. undefined when nobody asked for it. */
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

/** The pins with a copy of each template that they name, as far as one is known and there is room for it. */
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
