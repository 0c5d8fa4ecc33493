// Supplies the faults of a simulation, drawn at random or looked up by place, and records the faults that happened.

import { draw } from '../random.ts';
import { processLetter } from '../scenario.ts';
import {
  type FaultClass,
  type Faults,
  type GateFault,
  gateFault,
  type PlacedFault,
  type PodFault,
  type Point,
  podFault,
  type RequestFault,
  type WatchFault,
  wrongAnswers,
} from './fault.ts';

type Rates = Readonly<Partial<Record<FaultClass, number>>>;

interface FaultLimits {
  /** The longest duration of a fault in milliseconds. If it is shorter than usual, no watch stays dead. */
  readonly longestMs: number;
  /** The minimum time between two drawn crashes of a process, in milliseconds, so that the restarted process has time to make mistakes. */
  readonly crashGapMs: number;
  /** The minimum time between two drawn pauses of one process, in milliseconds. */
  readonly pauseGapMs: number;
}

export const usualLimits: FaultLimits = { longestMs: 600_000, crashGapMs: 20_000, pauseGapMs: 20_000 };

/**
 * Draws at each place, class by class, until a fault is drawn. A draw depends only on the seed, class and place, except that crashes and
 * pauses keep their minimum gap. `weightOf` scales the rates of crashes and pauses (docs/simulation.md).
 */
export function drawnFaults(seed: number, rates: Rates, limits: FaultLimits = usualLimits): Faults {
  const isDrawn = (kind: FaultClass, key: string, weight = 1): boolean => {
    const rate = (rates[kind] ?? 0) * weight;
    return rate > 0 && draw(seed, `${kind} ${key}`) < rate;
  };
  const lot = (name: string): number => draw(seed, name);
  const lasting = (name: string, fromMs: number, toMs: number): number => Math.min(limits.longestMs, skewed(lot(name), fromMs, toMs));
  const isEndless = (oneLot: number): boolean => oneLot < 0.2 && limits.longestMs >= usualLimits.longestMs;
  const crashGap = gap(limits.crashGapMs);
  const pauseGap = gap(limits.pauseGapMs);

  const ofProcess = (point: Point): RequestFault | undefined => {
    const { key } = point;
    const weight = weightOf(point);
    if (isDrawn('F11', key, weight) && crashGap(point)) {
      const moment = pick(lot(`F11 moment ${key}`), ['beforeSend', 'afterApply', 'afterReply'] as const);
      return { class: 'F11', kind: 'crash', moment, restartAfterMs: lasting(`F11 restart ${key}`, 500, 60_000) };
    }
    if (isDrawn('F12', key, weight) && pauseGap(point))
      return { class: 'F12', kind: 'pause', durationMs: lasting(`F12 for ${key}`, 1_000, 120_000) };
    return undefined;
  };
  const ofRequest = (point: Point, verb: string): RequestFault | undefined => {
    const { key } = point;
    const ofItself = ofProcess(point);
    // Calls to pods and readings of gates have their own faults.
    if (ofItself !== undefined || verb === podVerb) return ofItself;
    return onTheWay(key) ?? atTheServer(point, verb);
  };
  const onTheWay = (key: string): RequestFault | undefined => {
    if (isDrawn('F1', key)) return { class: 'F1', kind: 'lost', isSilent: lot(`F1 silent ${key}`) < 0.3 };
    if (isDrawn('F2', key)) return { class: 'F2', kind: 'replyLost', isSilent: lot(`F2 silent ${key}`) < 0.3 };
    return isDrawn('F3', key) ? { class: 'F3', kind: 'held', delayMs: lasting(`F3 for ${key}`, 1_000, 60_000) } : undefined;
  };
  const atTheServer = (point: Point, verb: string): RequestFault | undefined => {
    const { key } = point;
    if (isChange(point, verb) && isDrawn('F4', key)) return { class: 'F4', kind: 'foreignWrite' };
    if (isDrawn('F5', key)) return drawnAnswer(key, lot);
    if ((verb === 'list' || verb === 'watch') && isDrawn('F6', key)) {
      return { class: 'F6', kind: lot(`F6 kind ${key}`) < 0.5 ? 'expired' : 'tooLarge' };
    }
    return undefined;
  };
  const ofLine = ({ key, site }: Point): WatchFault | undefined => {
    if (isDrawn('F6', key)) return { class: 'F6', kind: 'gone' };
    if (isDrawn('F7', key) && isEndless(lot(`F7 dead ${key}`))) return { class: 'F7', kind: 'dead' };
    if (isDrawn('F7', key)) return { class: 'F7', kind: 'stall', durationMs: lasting(`F7 for ${key}`, 5_000, 600_000) };
    if (isDrawn('F8', key)) {
      const kind = pick(lot(`F8 kind ${key}`), ['duplicate', 'coalesce', 'reconnectToPast'] as const);
      if (kind !== 'reconnectToPast') return { class: 'F8', kind };
      return { class: 'F8', kind, behindMs: lasting(`F8 behind ${key}`, 500, 120_000) };
    }
    return isDrawn('F9', key, lossWeightOf(site)) ? { class: 'F9', kind: 'lose' } : undefined;
  };
  const ofPodCall = ({ key }: Point): PodFault | undefined => {
    if (!isDrawn('F21', key)) return undefined;
    const kind = pick(lot(`F21 kind ${key}`), podFault.shape.kind.options);
    if (kind !== 'lie') return { class: 'F21', kind };
    const size = skewed(lot(`F21 by ${key}`), 1_000, 86_400_000);
    return { class: 'F21', kind, byMs: lot(`F21 sign ${key}`) < 0.5 ? -size : size };
  };
  const ofGate = ({ key }: Point): GateFault | undefined =>
    isDrawn('F22', key) ? { class: 'F22', kind: pick(lot(`F22 kind ${key}`), gateFault.shape.kind.options) } : undefined;
  return { ofRequest, ofLine, ofPodCall, ofGate };
}

/** The verb of calls to pods and readings of gates, for which `ofRequest` returns only faults of the process. */
export const podVerb = 'call';

/** Returns a source with these faults only. If two faults have the same place, the first one counts. */
export function placedFaults(placed: readonly PlacedFault[]): Faults {
  const byPlace = new Map([...placed].reverse().map((one) => [`${one.port} ${one.at}`, one.fault]));
  const of =
    <Port extends PlacedFault['port']>(port: Port) =>
    ({ key }: Point) =>
      byPlace.get(`${port} ${key}`) as Extract<PlacedFault, { readonly port: Port }>['fault'] | undefined;
  return { ofRequest: of('request'), ofLine: of('line'), ofPodCall: of('pod'), ofGate: of('gate') };
}

/** Returns a source that uses the fault of the first source, or else of the second source. */
export function eitherFaults(first: Faults, second: Faults): Faults {
  return {
    ofRequest: (point, verb) => first.ofRequest(point, verb) ?? second.ofRequest(point, verb),
    ofLine: (point) => first.ofLine(point) ?? second.ofLine(point),
    ofPodCall: (point) => first.ofPodCall(point) ?? second.ofPodCall(point),
    ofGate: (point) => first.ofGate(point) ?? second.ofGate(point),
  };
}

export interface RecordedFaults extends Faults {
  /** Counts a fault without a place, for example an event of the scenario. */
  readonly happened: (kind: FaultClass) => void;
  /** Removes the last fault of the class from the counts. Its place stays recorded. */
  readonly missed: (kind: FaultClass) => void;
  readonly counts: () => Readonly<Partial<Record<FaultClass, number>>>;
  /** Returns the faults in the order in which they happened. */
  readonly placed: () => readonly PlacedFault[];
  readonly crashes: () => Readonly<Record<string, number>>;
}

/** Records the faults of the source. Supplies no fault once `isOver` returns true. `onFault` receives each fault. */
export function recordedFaults(
  source: Faults,
  isOver: () => boolean,
  onFault?: (placed: PlacedFault, point: Point) => void,
): RecordedFaults {
  const counts: Partial<Record<FaultClass, number>> = {};
  const placed: PlacedFault[] = [];
  const crashes: Record<string, number> = {};
  const happened = (kind: FaultClass): void => {
    counts[kind] = (counts[kind] ?? 0) + 1;
  };
  const record = (one: PlacedFault, point: Point): void => {
    happened(one.fault.class);
    placed.push(one);
    if (one.fault.class === 'F11') {
      const place = `${point.site} ${one.fault.moment}`;
      crashes[place] = (crashes[place] ?? 0) + 1;
    }
    onFault?.(one, point);
  };
  const recorded = <Fault>(port: PlacedFault['port'], point: Point, fault: Fault | undefined): Fault | undefined => {
    if (fault !== undefined) record({ at: point.key, port, fault } as PlacedFault, point);
    return fault;
  };
  return {
    ofRequest: (point, verb) => (isOver() ? undefined : recorded('request', point, source.ofRequest(point, verb))),
    ofLine: (point, line) => {
      const fault = isOver() ? undefined : source.ofLine(point, line);
      // A bookmark has no object, so no next line of the same object can replace it.
      const hasNoEffect = fault?.kind === 'coalesce' && line?.includes('"type":"BOOKMARK"') === true;
      return hasNoEffect ? undefined : recorded('line', point, fault);
    },
    ofPodCall: (point) => (isOver() ? undefined : recorded('pod', point, source.ofPodCall(point))),
    ofGate: (point) => (isOver() ? undefined : recorded('gate', point, source.ofGate(point))),
    happened,
    missed: (kind) => {
      counts[kind] = (counts[kind] ?? 0) - 1;
      if (counts[kind] === 0) delete counts[kind];
    },
    counts: () => ({ ...counts }),
    placed: () => [...placed],
    crashes: () => ({ ...crashes }),
  };
}

function drawnAnswer(key: string, lot: (name: string) => number): RequestFault {
  const what = pick(lot(`F5 what ${key}`), wrongAnswers);
  // With 429 or a failed TLS handshake the request is not applied. A truncated body proves that the request was applied.
  const isApplied = what === 'truncated' || (what !== 429 && what !== 'tls' && lot(`F5 applied ${key}`) < 0.5);
  const asksForPause = what === 429 || (what === 503 && lot(`F5 pause ${key}`) < 0.5);
  const retryAfterSeconds = Math.round(skewed(lot(`F5 after ${key}`), 1_000, 30_000) / 1000);
  return { class: 'F5', kind: 'answer', what, isApplied, ...(asksForPause ? { retryAfterSeconds } : {}) };
}

/** Returns the factor for crashes and pauses at a site. Half of all requests renew the Lease, and the important requests are rare. */
function weightOf({ site }: Point): number {
  if (site.startsWith('lease.')) return 0.2;
  if (site.startsWith('act.') || site.startsWith('revoke.')) return 20;
  return site.startsWith('watch.') || site.startsWith('gate.') ? 1 : 4;
}

/** Returns the factor for lost events. People change their objects seldom, and no later event of the object shows a lost change. */
function lossWeightOf(site: string): number {
  return site.startsWith('watch.rollout') ? 5 : 1;
}

function isChange({ site }: Point, verb: string): boolean {
  return verb === 'update' || verb === 'patch' || verb === 'delete' || site === 'act.evictPod';
}

/** Returns a log-uniform whole number between `from` and `to`: most durations are short, and some are long. */
function skewed(lot: number, from: number, to: number): number {
  return Math.round(from * (to / from) ** lot);
}

function pick<const Items extends readonly unknown[]>(lot: number, items: Items): Items[number] {
  return items[Math.floor(lot * items.length)];
}

/** Returns a function that reports whether the gap since the last fault of the process has passed. If so, the next gap begins. */
function gap(gapMs: number): (point: Point) => boolean {
  const lastMs = new Map<string, number>();
  return ({ process, atMs }) => {
    const letter = processLetter(process);
    const last = lastMs.get(letter);
    if (last !== undefined && atMs - last < gapMs) return false;
    lastMs.set(letter, atMs);
    return true;
  };
}
