// The agents of a run: processes that start, die, stand still, are stopped and come back, each with the agent's own loop in it.
import type { LogFields } from '../../agent/env.ts';
import type { TurnListener } from '../../agent/report.ts';
import type { GateServer } from '../cluster/gate-server.ts';
import type { Faults } from '../faults/fault.ts';
import { letterOf, processLetter } from '../letter.ts';
import type { PodCalled, ProcessChange } from '../oracles/oracle.ts';
import { draw } from '../random.ts';
import type { Scenario } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { ModelRequest } from '../server/request.ts';
import { type Body, startBody } from './body.ts';
import { createMachineClock, createProcessTime, type MachineClock, runStartMs } from './clock.ts';
import { createHolds } from './holds.ts';
import { createPlaces, type Life, slowestWayMs } from './life.ts';
import type { PodAnswered, PodCall } from './pods.ts';
import type { ServedModel } from './transport.ts';

export { agentNamespace, agentUser, leaseName } from './body.ts';

export interface AgentsOptions {
  readonly scenario: Pick<Scenario, 'seed' | 'agents' | 'clockRates'>;
  readonly scheduler: Scheduler;
  readonly server: ServedModel & {
    readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void;
    readonly goBackFrontEnd: (frontEnd: number, revision: number, untilMs: number) => void;
  };
  /** How many the server has. */
  readonly frontEnds: number;
  readonly faults: Faults;
  /** The one that is watched. */
  readonly namespace: string;
  /** What the policy directory holds; without one when left out. */
  readonly policies?: readonly { readonly name: string; readonly text: string }[];
  readonly podAnswer: (call: PodCall) => PodAnswered | undefined;
  readonly podCalled: (call: PodCalled) => void;
  /** Whom gates ask; without one no gate is ever read. */
  readonly gateServer?: GateServer;
  /** Somebody else changes the object that the request is about (F4). */
  readonly touch: (request: ModelRequest) => void;
  /** What the loop of this process reports, as long as it lives. */
  readonly listenerOf?: (process: string) => TurnListener;
  readonly processChanged?: (process: string, change: ProcessChange) => void;
  readonly log?: (process: string, level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: LogFields) => void;
  /** For the trace: everything that is sent, answered and delivered. */
  readonly note?: (...parts: readonly (string | number)[]) => void;
}

export interface Leak {
  readonly process: string;
  /** Such as `2 timers` or `1 open watch`. */
  readonly what: string;
}

/**
 * Letters name processes whatever life they are in. Each name of a life is also the identity with which it holds the Lease. What is done to one of
 * them answers whether it was there to have it done.
 */
export interface Agents {
  /** Dies at once; nothing when it is dead already. */
  readonly crash: (letter: string, restartAfterMs: number) => boolean;
  /** Hands over as after SIGTERM, then ends; the next life begins `restartAfterMs` after that. Nothing when it is dead or stopping. */
  readonly stop: (letter: string, restartAfterMs: number) => boolean;
  readonly pause: (letter: string, durationMs: number) => boolean;
  readonly jumpWallClock: (letter: string, byMs: number) => boolean;
  /** What only a fault holds up comes now, the dead start, those that stand still go on, clocks run true, front ends of the past catch up. */
  readonly heal: () => void;
  /** Of the machine of a process such as `a1`: how fast its clock runs, and by how much its wall clock is ahead of the true one. */
  readonly clockOf: (process: string) => { readonly rate: number; readonly wallErrorMs: number };
  /** Names of those that live, such as `a1`. */
  readonly alive: () => readonly string[];
  /** Whether every process lives and is ready. */
  readonly isReady: () => boolean;
  /** Whether a watch is dead, and its process has not found out yet. */
  readonly isWatchDead: () => boolean;
  /** Hands every process over and says what each left behind. Resolves while the scheduler runs on, within half a minute. */
  readonly end: () => Promise<readonly Leak[]>;
  /** What went wrong and nobody in the agent had thought of: rejected promises without a handler, listeners that threw. */
  readonly defects: () => readonly string[];
  /** Ends everything at once. To be called when the run is over, however it ended. */
  readonly close: () => void;
}

interface Running {
  readonly life: Life;
  body?: Body;
  isStopping: boolean;
}

interface Machine {
  readonly letter: string;
  readonly clock: MachineClock;
  lives: number;
  running?: Running;
}

/** Between the end of the hand-over and the look at what is left: what is on the way arrives, as a rule. */
const lingerMs = 1_000;
/** So long a request that was under way may take to its end, both ways at their slowest. Nobody can call one back. */
const longestAnswerMs = 2 * slowestWayMs;

/** Starts as many as the scenario says, one after the other within the first second. One run at a time in a process of Node. */
export function startAgents(options: AgentsOptions): Agents {
  const { scenario, scheduler, server, frontEnds, processChanged } = options;
  const { seed } = scenario;
  const holds = createHolds(scheduler);
  const defects: string[] = [];
  const lagging = new Set<number>();
  let pasts = 0;
  let isEnding = false;

  const machines = new Map<string, Machine>();
  for (let index = 0; index < scenario.agents; index += 1) {
    const letter = letterOf(index);
    const machine = { letter, clock: createMachineClock(scheduler, scenario.clockRates?.[letter]), lives: 0 };
    machines.set(letter, machine);
    scheduler.after(Math.round(draw(seed, `${letter} starts`) * 1000), () => start(machine));
  }

  const frontEndOfPast = (behindMs: number): number => {
    pasts += 1;
    const frontEnd = Math.floor(draw(seed, `front end of past ${pasts}`) * frontEnds);
    lagging.add(frontEnd);
    server.lagFrontEnd(frontEnd, scheduler.nowMs() + behindMs);
    return frontEnd;
  };
  let pastUntilMs = 0;
  const past = {
    frontEndOfPast,
    showVersion: (revision: number, forMs: number): void => {
      pastUntilMs = scheduler.nowMs() + forMs;
      for (let frontEnd = 0; frontEnd < frontEnds; frontEnd += 1) server.goBackFrontEnd(frontEnd, revision, pastUntilMs);
    },
    isPastShown: () => scheduler.nowMs() < pastUntilMs,
  };
  const start = (machine: Machine): void => {
    if (isEnding || machine.running !== undefined) return;
    machine.lives += 1;
    const name = `${machine.letter}${machine.lives}`;
    const time = createProcessTime({
      scheduler,
      machine: machine.clock,
      holds,
      seed,
      name,
      onPaused: () => processChanged?.(name, 'paused'),
      onResumed: () => processChanged?.(name, 'resumed'),
    });
    const life: Life = {
      name,
      seed,
      scheduler,
      time,
      holds,
      faults: options.faults,
      places: createPlaces(name, scheduler),
      crash: (restartAfterMs) => endLife(machine, running, 'crashed', restartAfterMs),
      note: options.note ?? (() => undefined),
      open: { requests: 0, watches: 0, begun: 0, dead: 0 },
      onEnd: new Set(),
    };
    const running: Running = { life, isStopping: false };
    machine.running = running;
    processChanged?.(name, 'started');
    // It may die of the first request that it sends.
    running.body = startBody({ ...options, ...past, life, onDefect: (message) => defects.push(message) });
  };
  const endLife = (machine: Machine, { life }: Running, change: 'crashed' | 'stopped', restartAfterMs: number): void => {
    if (!life.time.isAlive()) return;
    endTime(life);
    delete machine.running;
    processChanged?.(life.name, change);
    holds.after(restartAfterMs, () => start(machine));
  };
  const runningOf = (letter: string): { readonly machine: Machine; readonly running: Running } | undefined => {
    const machine = machines.get(letter);
    return machine?.running === undefined ? undefined : { machine, running: machine.running };
  };
  const stop = (letter: string, restartAfterMs: number): boolean => {
    const found = runningOf(letter);
    if (found?.running.body === undefined || found.running.isStopping) return false;
    found.running.isStopping = true;
    void found.running.body.handOver().then(() => endLife(found.machine, found.running, 'stopped', restartAfterMs));
    return true;
  };
  const later = (delayMs: number): Promise<void> => new Promise((resolve) => void scheduler.after(delayMs, resolve));
  const leftBy = async ({ life, body }: Running): Promise<readonly Leak[]> => {
    // Whoever dies in the middle of it leaves nothing.
    const death = new Promise<undefined>((resolve) => life.onEnd.add(() => resolve(undefined)));
    const end = await Promise.race([body?.handOver(), death]);
    await later(lingerMs);
    const underWay = life.open.requests;
    const { begun } = life.open;
    // What was sent in the last moment is no leak, if it comes to its end by itself and nothing follows from it.
    if (underWay > 0 && leftNow(life, underWay).length === 0) await later(longestAnswerMs);
    if (!life.time.isAlive()) return [];
    const left = [...leftNow(life), ...counted(life.open.begun - begun, 'later request')];
    endTime(life);
    processChanged?.(life.name, 'stopped');
    return [...(end === 'late' ? ['a hand-over that took too long'] : []), ...left].map((what) => ({ process: life.name, what }));
  };

  const unwatch = watchRejections((message) => defects.push(message));
  return {
    crash: (letter, restartAfterMs) => {
      const found = runningOf(letter);
      found?.running.life.crash(restartAfterMs);
      return found !== undefined;
    },
    stop,
    pause: (letter, durationMs) => {
      const found = runningOf(letter);
      found?.running.life.time.pause(durationMs);
      return found !== undefined;
    },
    jumpWallClock: (letter, byMs) => {
      const machine = machines.get(letter);
      machine?.clock.jumpWallClock(byMs);
      return machine !== undefined;
    },
    heal: () => {
      for (const { clock } of machines.values()) clock.mend();
      for (const frontEnd of lagging) server.lagFrontEnd(frontEnd, scheduler.nowMs());
      holds.release();
    },
    clockOf: (process) => {
      const clock = machines.get(processLetter(process))?.clock;
      if (clock === undefined) return { rate: 1, wallErrorMs: 0 };
      return { rate: clock.rate(), wallErrorMs: clock.wallMs() - runStartMs - scheduler.nowMs() };
    },
    alive: () => [...machines.values()].flatMap(({ running }) => (running === undefined ? [] : [running.life.name])),
    isReady: () => [...machines.values()].every(({ running }) => running?.body?.agent.isReady() === true),
    isWatchDead: () => [...machines.values()].some(({ running }) => running !== undefined && running.life.open.dead > 0),
    end: async () => {
      isEnding = true;
      const running = [...machines.values()].flatMap((machine) => machine.running ?? []);
      const leaks = await Promise.all(running.map(leftBy));
      return leaks.flat();
    },
    defects: () => [...defects],
    close: () => {
      isEnding = true;
      for (const { running } of machines.values()) if (running !== undefined) endTime(running.life);
      unwatch();
    },
  };
}

/** The process is gone: it takes nothing in any more, and its connections close. */
function endTime({ time, onEnd }: Life): void {
  time.end();
  for (const callback of [...onEnd]) callback();
}

/** Each of the requests that may be under way has the timer of its patience. */
function leftNow({ time, open }: Life, requests = 0): readonly string[] {
  const { watches } = open;
  return [
    ...counted(time.timerCount() - requests, 'timer'),
    ...counted(open.requests - requests, 'open request'),
    ...counted(watches, 'open watch'),
  ];
}

function counted(count: number, what: string): readonly string[] {
  if (count === 0) return [];
  const plural = what.endsWith('watch') ? `${what}es` : `${what}s`;
  return [`${count} ${count === 1 ? what : plural}`];
}

/** The executable ends itself when a promise is rejected and nobody had thought of it. */
function watchRejections(tell: (message: string) => void): () => void {
  const note = (error: unknown): void =>
    tell(`an unhandled rejection: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.on('unhandledRejection', note);
  return () => process.off('unhandledRejection', note);
}
