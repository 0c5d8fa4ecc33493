// Judges the open zone of a run by the stored ledger (S37): pods are replaced only there, and a zone stays open until its wave is complete.
import { configMapResource, isTerminating, revisionLabelOf } from '../../../simulation/objects.ts';
import { disruptedByUs } from '../../../simulation/oracles/availability.ts';
import { isLedger, readLedger } from '../../../simulation/oracles/documents.ts';
import { knownSinceMs, type Moment, type Oracle } from '../../../simulation/oracles/oracle.ts';
import { type Book, isInRange, wasDown, type Zone } from '../../../simulation/oracles/places.ts';
import { targetOf } from '../../../simulation/oracles/stored-waves.ts';
import { letterOf, type WaveShape } from '../../../simulation/scenario.ts';
import type { Commit } from '../../../simulation/server/request.ts';

/** Creates the judge. It sees each commit before the book records it. Drop-in groups and the groups of users are exempt. */
export function judgeZones(book: Book): Oracle {
  const { group, isGiven } = book.scene;
  if (isGiven === true || group.kind === 'adopted') return {};
  /** The time at which the open zone was opened. */
  let openedMs = 0;
  return {
    committed: (commit) => {
      checkReplaced(book, commit);
      if (commit.resource !== configMapResource || commit.type === 'DELETED' || !isLedger(commit.after)) return;
      if (readLedger(commit.after)?.run?.openZone === book.runs.latest()?.openZone) return;
      checkLeft(book, commit, openedMs);
      openedMs = commit.atMs;
    },
  };
}

/** Checks that the pod is of the open zone of a run that the sender may have read or written. */
function checkReplaced(book: Book, commit: Commit): void {
  const place = disruptedByUs(book, commit);
  if (place === undefined) return;
  const name = book.terms.zoneName(place.zone.statefulSet);
  const runs = book.runs.since(book.momentOf(commit).fromMs);
  // The judge of progress finds a run without an open zone.
  if (runs.some((run) => run?.openZone === undefined || run.openZone === name)) return;
  const open = runs.at(-1)?.openZone ?? '';
  book.scene.violated('S37', `${commit.actor.process ?? ''} replaces ${commit.after.metadata.name}, and the stored open zone is ${open}`);
}

/** Checks that a zone is left for another one of the same wave only when the wave has its pods there. */
function checkLeft(book: Book, { before, after, actor, atMs }: Commit, openedMs: number): void {
  const [was, is] = [before === undefined ? undefined : readLedger(before)?.run, readLedger(after)?.run];
  if (was?.openZone === undefined || is?.openZone === undefined || was.openZone === is.openZone) return;
  const isSame = was.id === is.id && was.wave === is.wave && was.outcome === 'running' && is.outcome === 'running';
  const zone = book.zones.find(({ statefulSet }) => book.terms.zoneName(statefulSet) === was.openZone);
  const fromMs = knownSinceMs(book.scene, { actor, atMs });
  // After a denied replacement the zone from before is open again.
  if (!isSame || zone === undefined || zone.disruptedMs < openedMs || !book.terms.wasMember(zone.statefulSet, fromMs)) return;
  const letter = letterOf(book.zones.indexOf(zone));
  const [waves = [], ...otherWaves] = book.waves.since(fromMs);
  if (otherWaves.length > 0) return;
  const wave = waves[is.wave] ?? { zones: [letter] };
  const lacking = wave.zones.includes(letter) ? lackOf(book, zone, { wave, fromMs }) : 0;
  const next = book.zones.find(({ statefulSet }) => book.terms.zoneName(statefulSet) === is.openZone);
  const isRepair = next !== undefined && repairable(book, next, { atMs, fromMs, aheadMs: 0 });
  if (lacking <= 0 || isRepair) return;
  book.scene.violated(
    'S37',
    `${actor.process ?? ''} leaves zone ${was.openZone} for zone ${is.openZone}, and ${lacking} of its pods are still outdated`,
  );
}

/** Returns whether the zone has an outdated pod that a decision may have seen unavailable: it is repaired first. */
function repairable(book: Book, zone: Zone, moment: Moment): boolean {
  const targets = book.targetsSince(zone, moment.fromMs);
  return [...zone.places.values()].some((place) => {
    const { pod } = place;
    const isOutdated = pod === undefined || targets.some((target) => target !== revisionLabelOf(pod));
    return isInRange(place) && wasDown(place, moment) && isOutdated;
  });
}

/** Returns how many pods the wave lacks in the zone by every state that the decision may have seen. */
function lackOf(book: Book, zone: Zone, { wave, fromMs }: { readonly wave: WaveShape; readonly fromMs: number }): number {
  const [revision, ...others] = new Set(book.targetsSince(zone, fromMs));
  if (revision === undefined || others.length > 0) return 0;
  const seen = zone.facts.since(fromMs);
  const target = Math.min(...seen.map((facts) => targetOf(wave, facts?.replicas ?? 0)));
  const outdated = [...zone.places.values()].filter(
    (place) => isInRange(place) && place.pod !== undefined && !isTerminating(place.pod) && revisionLabelOf(place.pod) !== revision,
  );
  const replicas = Math.max(...seen.map((facts) => facts?.replicas ?? 0));
  return Math.min(outdated.length, target - (replicas - outdated.length));
}
