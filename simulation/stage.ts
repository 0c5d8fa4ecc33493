// Composes a run: the clock, the server, the cluster, the agents, the faults, the judges, the events, and the counters.

import type { TurnListener } from '../agent/report.ts';
import type { GroupDecision } from '../engine/decision.ts';
import { startCluster } from './cluster/cluster.ts';
import { createGateServer } from './cluster/gate-server.ts';
import { kindsOf } from './cluster/replica-origins.ts';
import type { Faults, Point } from './faults/fault.ts';
import { drawnFaults, eitherFaults, placedFaults, type RecordedFaults, recordedFaults } from './faults/source.ts';
import { createOracles } from './oracles/all.ts';
import { whatIsMissing } from './oracles/converged.ts';
import type { Oracle, Scene, Violation } from './oracles/oracle.ts';
import { Agents, agentNamespace, agentUser, leaseName } from './process/agents.ts';
import { beginRunAt, runStartMs } from './process/clock.ts';
import type { RunObserver, RunOptions, TimelineEntry } from './run.ts';
import type { ClusterEvent, PeopleEvent, Scenario, ScenarioEvent } from './scenario.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import type { Actor, Answered, Json, ModelObject, ModelRequest } from './server/request.ts';
import { ModelServer } from './server/server.ts';
import { answeredText, classOfEvent, committedText, eventAuthor, eventText, faultText, turnText } from './telling.ts';
import { createTrace, type Trace } from './trace.ts';

/** API servers with their own watch caches. */
const frontEnds = 2;

/** Log lines that report an internal error of the agent. */
export const selfAccusations: readonly string[] = [
  'decision violates an invariant; destructive actions are blocked',
  'policies cannot be resolved',
];

export interface Run {
  readonly scheduler: Scheduler;
  readonly scene: Scene;
  readonly agents: Agents;
  readonly faults: RecordedFaults;
  readonly trace: Trace;
  readonly violations: readonly Violation[];
  readonly writes: Readonly<Record<string, number>>;
  readonly timeline: readonly TimelineEntry[];
  readonly violated: (invariant: string, message: string) => void;
  /** Ends faults and repairs everything. */
  readonly beginHealing: () => void;
  /** Returns what the group lacks; undefined if converged. */
  readonly missing: () => string | undefined;
  /** Resets the write counters. */
  readonly beginQuiet: () => void;
  /** Time since which agents have not written, without renewals of the Lease. */
  readonly quietSinceMs: () => number;
  readonly lastWrite: () => string;
  /** Ends the run; the judges report their pending findings. */
  readonly endJudgement: () => void;
}

/** Creates everything; it begins when the scheduler runs. */
export function stageRun(scenario: Scenario, options: RunOptions): Run {
  const { observer } = options;
  beginRunAt(scenario.given?.startMs);
  const scheduler = createScheduler(scenario.seed);
  const { nowMs } = scheduler;
  const wallMs = (): number => runStartMs + nowMs();
  const trace = createTrace();
  const timeline: TimelineEntry[] = [];
  const violations: Violation[] = [];
  const writes: Record<string, number> = {};
  const quiet = { sinceMs: 0, lastWrite: 'no agent wrote' };
  let phase: 'safety' | 'healing' = 'safety';
  let decision: GroupDecision | undefined;

  const tell = (who: string, what: string | undefined): void => {
    if (options.isTold === true && what !== undefined) timeline.push({ atMs: nowMs(), who, what });
  };
  const violated = (invariant: string, message: string): void => {
    trace.note(nowMs(), 'violated', invariant, message);
    violations.push({ invariant, atMs: nowMs(), message });
    tell('verdict', `${invariant}: ${message}`);
  };

  const kinds = kindsOf(scenario.given?.objects ?? []);
  const server = new ModelServer({ scheduler, wallMs, seed: scenario.seed, frontEnds, kinds });
  const cluster = startCluster({
    server,
    scheduler,
    wallMs,
    scenario,
    admitted: (pod) => judged((oracle) => oracle.podAdmitted?.(pod)),
  });
  const { namespace, statefulSets } = cluster;
  const scene: Scene = {
    nowMs,
    group: scenario.group,
    isGiven: scenario.given !== undefined,
    namespace,
    statefulSets,
    agentUser,
    list: (resource, inNamespace) => server.list(resource, inNamespace),
    get: (resource, inNamespace, name) => server.get(resource, inNamespace, name),
    violated,
    clockOf: (process) => agents.clockOf(process),
    isWatchDead: () => agents.isWatchDead(),
  };
  const oracles: readonly Oracle[] = [...createOracles(scene), ...(observer === undefined ? [] : [observer])];
  /** A judge that throws is a defect of the judge and fails the run. */
  const judged = (ask: (oracle: Oracle) => void): void => {
    for (const oracle of oracles) {
      try {
        ask(oracle);
      } catch (error) {
        violated('error', `a judge threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      }
    }
  };

  const count = ({ verb, resource, subresource, name, status, revisions, request }: Answered): void => {
    if (request.actor.user !== agentUser || verb === 'get' || verb === 'list' || resource === 'leases.coordination.k8s.io') return;
    const write = `${verb} ${subresource === '' ? resource : `${resource}/${subresource}`}`;
    quiet.sinceMs = nowMs();
    quiet.lastWrite = `${request.actor.process ?? 'an agent'} sent ${write} ${name} at ${nowMs()} ms, and was answered ${status}`;
    if (revisions.length > 0) writes[write] = (writes[write] ?? 0) + 1;
  };
  server.observe({
    committed: (commit) => {
      const { revision, type, resource, after, actor } = commit;
      trace.note(nowMs(), 'commit', revision, type, resource, after.metadata.name, actor.process ?? actor.user);
      judged((oracle) => oracle.committed?.(commit));
      if (options.isTold === true) tell('cluster', committedText(commit));
    },
    answered: (answered) => {
      const { verb, resource, subresource, name, status, request } = answered;
      trace.note(nowMs(), 'answered', request.actor.process ?? request.actor.user, verb, resource, subresource, name, status);
      count(answered);
      judged((oracle) => oracle.answered?.(answered));
      if (options.isTold === true && request.actor.user === agentUser) tell(request.actor.process ?? 'agent', answeredText(answered));
    },
  });
  cluster.observe((what) => {
    const [who, rest] = what.startsWith('people: ') ? ['people', what.slice(8)] : ['cluster', what.replace(/^cluster: /, '')];
    trace.note(nowMs(), who, rest);
    tell(who, rest);
  });

  const faults = recordedFaults(
    eitherFaults(placedFaults(scenario.faults), drawnFaults(scenario.seed, scenario.rates)),
    () => phase === 'healing',
    (placed) => {
      if (options.isTold === true) tell('fault', faultText(placed));
    },
  );
  const listenerOf = (process: string): TurnListener => ({
    turnEnded: (report) => {
      trace.note(nowMs(), process, 'turn', report.performed.length, report.error ?? '');
      judged((oracle) => oracle.turnEnded?.(process, report));
      decision = report.decision ?? decision;
      if (options.isTold === true) tell(process, turnText(report));
    },
  });
  const { gate } = scenario.group;
  const gateServer =
    gate === undefined
      ? undefined
      : createGateServer({
          gate,
          seed: scenario.seed,
          nowMs,
          wallMs,
          flipsUntilMs: scenario.safetyMs,
          answered: (answer) => {
            trace.note(nowMs(), 'gate', answer.process, answer.isGood ? 'good' : 'bad');
            judged((oracle) => oracle.gateAnswered?.(answer));
          },
        });
  const sendingHeard = (point: Point, verb: string): void => judged((oracle) => oracle.sending?.(point, verb));
  let touches = 0;
  const agents: Agents = new Agents({
    ...(gateServer === undefined ? {} : { gateServer }),
    scenario,
    scheduler,
    server,
    frontEnds,
    faults: observed(faults, observer, sendingHeard),
    namespace,
    policies: cluster.policies,
    listenerOf,
    podAnswer: cluster.podAnswer,
    podCalled: (call) => {
      trace.note(nowMs(), 'pod', call.process, call.method, call.pod, call.uid);
      judged((oracle) => oracle.podCalled?.(call));
      tell(call.process, `${call.method} ${call.path} is heard by pod ${call.pod}`);
    },
    touch: (request) => {
      touches += 1;
      if (!touchObject(request, touches, server)) faults.missed('F4');
    },
    processChanged: (process, change) => {
      trace.note(nowMs(), process, change);
      judged((oracle) => oracle.processChanged?.(process, change));
      tell(process, change);
    },
    log: (process, _level, message, fields) => {
      if (selfAccusations.includes(message)) violated('error', `${process} says: ${message} ${JSON.stringify(fields)}`);
    },
    note: (...parts) => trace.note(nowMs(), ...parts),
  });

  for (const rate of Object.values(scenario.clockRates ?? {})) if (rate !== 1) faults.happened('F13');
  for (const [index, event] of scenario.events.entries()) {
    const faultClass = classOfEvent(event, scenario.events.slice(0, index));
    scheduler.after(event.atMs, () => {
      // A shortened scenario also shortens its events.
      if (phase === 'healing') return;
      trace.note(nowMs(), 'event', index);
      tell(eventAuthor(event), eventText(event));
      const hasHappened = play(event, { nowMs, wallMs, agents, cluster, server, frontEnds });
      if (faultClass !== undefined && hasHappened) faults.happened(faultClass);
    });
  }

  return {
    scheduler,
    scene,
    agents,
    faults,
    trace,
    violations,
    writes,
    timeline,
    violated,
    beginHealing: () => {
      phase = 'healing';
      trace.note(nowMs(), 'healing');
      tell('verdict', 'faults end');
      cluster.heal();
      agents.heal();
      for (let frontEnd = 0; frontEnd < frontEnds; frontEnd += 1) server.lagFrontEnd(frontEnd, nowMs());
      judged((oracle) => oracle.healingBegan?.());
    },
    missing: () => {
      const missing = whatIsMissing(scene, cluster.wanted());
      if (missing !== undefined) return missing;
      const prepared = cluster.preparedPods();
      if (prepared.length > 0) return `${prepared.length} pods still expect to leave`;
      if (!agents.isReady()) return 'not every agent is ready';
      // Its pods may be done while the last wave still soaks.
      const isWaiting = scenario.given !== undefined && decision !== undefined && decision.outcome !== 'done';
      return isWaiting ? `the agents wait: ${decision?.waits[0]?.fact ?? decision?.outcome}` : undefined;
    },
    beginQuiet: () => {
      quiet.sinceMs = nowMs();
    },
    quietSinceMs: () => quiet.sinceMs,
    lastWrite: () => quiet.lastWrite,
    endJudgement: () => judged((oracle) => oracle.ended?.()),
  };
}

function observed(faults: Faults, observer: RunObserver | undefined, sending: (point: Point, verb: string) => void): Faults {
  return {
    ...faults,
    ofRequest: (point, verb) => {
      sending(point, verb);
      return faults.ofRequest(point, verb);
    },
    ofLine: (point, line = '') => {
      observer?.lineArrived?.(point, line);
      return faults.ofLine(point, line);
    },
  };
}

const leases = 'leases.coordination.k8s.io';

/** A user who is neither an agent nor a controller. */
const stranger: Actor = { user: 'another-user' };

export interface Stage {
  readonly nowMs: () => number;
  /** True time, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly agents: Pick<Agents, 'crash' | 'stop' | 'pause' | 'jumpWallClock'>;
  readonly cluster: { readonly happen: (event: PeopleEvent | ClusterEvent) => boolean };
  readonly server: {
    readonly change: (actor: Actor, resource: string, namespace: string, name: string, patch: Json) => ModelObject | undefined;
    readonly remove: (actor: Actor, resource: string, namespace: string, name: string) => boolean;
    readonly lagFrontEnd: (frontEnd: number, untilMs: number) => void;
    readonly restartFrontEnd: (frontEnd: number, options: { readonly isCompacted: boolean }) => void;
  };
  /** Number of front ends of the server. */
  readonly frontEnds: number;
}

/** Performs or begins the event. Returns whether it had a target. */
export function play(event: ScenarioEvent, { nowMs, wallMs, agents, cluster, server, frontEnds }: Stage): boolean {
  switch (event.kind) {
    case 'crash':
      return agents.crash(event.process, event.restartAfterMs);
    case 'stop':
      return agents.stop(event.process, event.restartAfterMs);
    case 'pauseProcess':
      return agents.pause(event.process, event.durationMs);
    case 'jumpWallClock':
      return agents.jumpWallClock(event.process, event.byMs);
    case 'deleteLease':
      return server.remove(stranger, leases, agentNamespace, leaseName);
    case 'editLease': {
      // Writes the two relevant fields as a person does: leaseTransitions stays.
      const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
      const spec = { holderIdentity: 'another-holder', renewTime };
      return server.change(stranger, leases, agentNamespace, leaseName, { spec }) !== undefined;
    }
    case 'frontEndLags':
      server.lagFrontEnd(event.frontEnd % frontEnds, nowMs() + event.forMs);
      return true;
    case 'frontEndRestarts':
      server.restartFrontEnd(event.frontEnd % frontEnds, { isCompacted: event.isCompacted });
      return true;
    default:
      return cluster.happen(event);
  }
}

const ofObject = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)\/namespaces\/([^/]+)\/([^/?]+)\/([^/?]+)/;

/** Changes the object of the request in an irrelevant way. Returns whether it exists. */
export function touchObject({ path }: Pick<ModelRequest, 'path'>, nth: number, server: Pick<Stage['server'], 'change'>): boolean {
  const [, group, namespace = '', plural = '', name = ''] = ofObject.exec(path) ?? [];
  if (name === '') return false;
  const resource = group === undefined ? plural : `${plural}.${group}`;
  const annotations = { 'example.com/looked-at': String(nth) };
  return server.change(stranger, resource, namespace, decodeURIComponent(name), { metadata: { annotations } }) !== undefined;
}
