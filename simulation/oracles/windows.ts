// Judges windows (S40): agents begin a step that a window blocks only with an exception in force, or to finish work in progress.
import { configMapResource, exceptionResource, instantAt, isAgent, numberAt, statefulSetResource, textAt } from '../objects.ts';
import { runStartMs } from '../process/clock.ts';
import { letterOf, processLetter, type WindowShape } from '../scenario.ts';
import type { Actor, Commit } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import { isLedger, readLedger } from './documents.ts';
import { machineOf, type Oracle } from './oracle.ts';
import { exposedByUs } from './partitions.ts';
import { type Book, wasDown, type Zone } from './places.ts';
import { Timeline } from './terms.ts';

type Action = WindowShape['actions'][number];

/** A claim, and the work in progress when its decision read the ledger. */
interface Begun {
  readonly atMs: number;
  readonly hasReplaced: boolean;
  readonly openZone: string | undefined;
  /** The pods of the zone that the same decision disrupts. */
  readonly pods: number;
}

interface Exception {
  readonly name: string;
  readonly zone: string | undefined;
  readonly podsAtMost: number | undefined;
  readonly expiresMs: number;
  readonly fromMs: number;
  untilMs: number;
}

/** A step, and the times on the clock of its sender at which it may have been decided, in milliseconds since the start. */
interface Step {
  readonly action: Action;
  readonly zone: Zone;
  readonly begun: Begun | undefined;
  readonly isRepair: boolean;
  readonly fromMs: number;
  readonly clock: { readonly fromMs: number; readonly toMs: number };
}

/** The difference between two clocks that is no error, and the precision of the windows. */
const toleranceMs = 1_500;
const secondMs = 1_000;
const minuteMs = 60_000;

/** Creates the judge. It sees each commit before the book records it. */
export function judgeWindows(book: Book): Oracle {
  const { windows } = book.scene.group;
  return windows === undefined || book.scene.isGiven === true ? {} : new WindowJudge(book, windows);
}

class WindowJudge implements Oracle {
  readonly #book: Book;
  readonly #windows: readonly WindowShape[];
  readonly #exceptions: Exception[] = [];
  /** The newest claim by the UID of its pod or StatefulSet. */
  readonly #begun = new Map<string, Begun>();
  /** The lead of the wall clock of each machine. */
  readonly #errors = new Map<string, Timeline<number>>();

  constructor(book: Book, windows: readonly WindowShape[]) {
    this.#book = book;
    this.#windows = windows;
  }

  turnEnded(process: string): void {
    this.#noteClock(process);
  }

  committed(commit: Commit): void {
    const { resource, after, actor } = commit;
    if (actor.process !== undefined) this.#noteClock(actor.process);
    if (after.metadata.namespace !== this.#book.scene.namespace || !isAgent(actor, this.#book.scene.agentUser)) {
      if (resource === exceptionResource) this.#noteException(commit);
      return;
    }
    if (resource === configMapResource && isLedger(after)) this.#noteClaims(commit);
    const place = disruptedByUs(this.#book, commit) ?? exposedByUs(this.#book, commit)[0];
    if (place !== undefined) this.#check(commit, 'rollout', place.zone, wasDown(place, this.#book.momentOf(commit)));
    const isLess = (numberAt(after, 'spec', 'replicas') ?? 1) < (numberAt(commit.before, 'spec', 'replicas') ?? 1);
    const zone = resource === statefulSetResource && isLess ? this.#book.zoneOf(after.metadata.name) : undefined;
    if (zone !== undefined) this.#check(commit, 'scaleDown', zone, false);
  }

  #noteClock(process: string): void {
    const letter = processLetter(process);
    const errors = this.#errors.get(letter) ?? new Timeline<number>();
    this.#errors.set(letter, errors);
    errors.set(this.#book.scene.nowMs(), machineOf(this.#book.scene, process).wallErrorMs);
  }

  #noteException({ after, atMs }: Commit): void {
    const { name } = after.metadata;
    for (const one of this.#exceptions) if (one.name === name) one.untilMs = Math.min(one.untilMs, atMs);
    this.#exceptions.push({
      name,
      zone: textAt(after, 'spec', 'target', 'zone'),
      podsAtMost: numberAt(after, 'spec', 'allow', 'podsAtMost'),
      expiresMs: instantAt(after, 'spec', 'expires') ?? 0,
      fromMs: atMs,
      untilMs: Number.POSITIVE_INFINITY,
    });
  }

  #noteClaims({ before, after, atMs }: Commit): void {
    const [known, written] = [before === undefined ? undefined : readLedger(before), readLedger(after)];
    const keysOf = ({ verb, uid }: { readonly verb: string; readonly uid: string }): string => `${verb} ${uid}`;
    const open = new Set([...(known?.claims.values() ?? [])].map(keysOf));
    const added = [...(written?.claims.values() ?? [])].filter((claim) => !open.has(keysOf(claim)) && claim.admittedWallMs === undefined);
    // A run that begins with this write has replaced no pod.
    const run = known?.run?.id === written?.run?.id ? known?.run : undefined;
    for (const { uid, zone } of added) {
      const pods = added.filter((other) => other.zone === zone).length;
      this.#begun.set(uid, { atMs, hasReplaced: run?.hasReplaced === true, openZone: run?.openZone, pods });
    }
  }

  #check({ actor, after, atMs }: Commit, action: Action, zone: Zone, isRepair: boolean): void {
    const moment = this.#book.momentOf({ actor, atMs });
    const clock = this.#clockOf(actor, { atMs, fromMs: moment.fromMs });
    if (clock === undefined) return;
    const step = { action, zone, begun: this.#begun.get(after.metadata.uid), isRepair, fromMs: moment.fromMs, clock };
    for (let clockMs = clock.fromMs; clockMs < clock.toMs + secondMs; clockMs += secondMs)
      if (this.#allows(step, Math.min(clockMs, clock.toMs))) return;
    const what = action === 'rollout' ? 'disrupts' : 'scales down';
    this.#book.scene.violated(
      'S40',
      `${actor.process ?? ''} ${what} ${after.metadata.name} at ${Math.round(clock.toMs)} ms by its clock, outside of the windows`,
    );
  }

  /** Returns the times that the clock of the sender showed since its snapshot; undefined if it jumped meanwhile. */
  #clockOf({ process = '', sentAtMs, sentWallMs }: Actor, { atMs, fromMs }: { readonly atMs: number; readonly fromMs: number }) {
    const { rate } = machineOf(this.#book.scene, process);
    const sentMs = sentAtMs ?? atMs;
    const toMs = sentWallMs === undefined ? undefined : sentWallMs - runStartMs;
    const errors = [...(this.#errors.get(processLetter(process))?.since(fromMs) ?? []), ...(toMs === undefined ? [] : [toMs - sentMs])];
    const [least, most] = [Math.min(...errors), Math.max(...errors)];
    if (errors.length === 0 || most - least > Math.abs(rate - 1) * (atMs - fromMs) + toleranceMs) return undefined;
    return { fromMs: fromMs + least - toleranceMs, toMs: (toMs ?? sentMs + most) + toleranceMs };
  }

  #allows(step: Step, clockMs: number): boolean {
    const blocking = this.#blocking(step.action, clockMs);
    return blocking.length === 0 || this.#mayFinish(step, blocking) || this.#isExcepted(step, clockMs);
  }

  /** Returns the windows that block the action at this time: the open deny windows, and all allow windows if none of them is open. */
  #blocking(action: Action, clockMs: number): readonly WindowShape[] {
    const named = this.#windows.filter(({ actions }) => actions.includes(action));
    const allows = named.filter(({ kind }) => kind === 'allow');
    const isAllowed = allows.length === 0 || allows.some((window) => isOpen(window, clockMs));
    return [...named.filter((window) => window.kind === 'deny' && isOpen(window, clockMs)), ...(isAllowed ? [] : allows)];
  }

  /** Returns whether the step may finish work in progress. The strictest blocking window decides. Nothing of a scale-down may finish. */
  #mayFinish({ action, zone, begun, isRepair, fromMs }: Step, blocking: readonly WindowShape[]): boolean {
    const isAll = blocking.every(({ inFlight }) => inFlight === 'finishAll');
    if (action === 'scaleDown' || blocking.some(({ inFlight }) => inFlight === 'finishPod') || begun === undefined) return false;
    // The decision read a ledger in which the step had begun.
    if (begun.atMs <= fromMs) return true;
    const isOpenZone = isRepair || begun.openZone === this.#book.terms.zoneName(zone.statefulSet);
    return begun.hasReplaced && (isAll || isOpenZone);
  }

  #isExcepted({ action, zone, begun, fromMs }: Step, clockMs: number): boolean {
    const letter = letterOf(this.#book.zones.indexOf(zone));
    return this.#exceptions.some((one) => {
      const isEnough = one.podsAtMost === undefined || (action === 'rollout' && (begun?.pods ?? 1) <= one.podsAtMost);
      return one.untilMs >= fromMs && clockMs < one.expiresMs && (one.zone ?? letter) === letter && isEnough;
    });
  }
}

function isOpen({ ranges = [], schedule }: WindowShape, clockMs: number): boolean {
  if (schedule === undefined) return ranges.some(({ from, to }) => from * secondMs <= clockMs && clockMs < to * secondMs);
  const { everyMinutes, seconds } = schedule;
  return [0, 1, 2, 3, 4, 5, 6]
    .filter((minute) => minute % everyMinutes === 0)
    .some((minute) => clockMs >= minute * minuteMs && clockMs < minute * minuteMs + seconds * secondMs);
}
