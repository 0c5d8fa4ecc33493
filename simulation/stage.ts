// Builds one simulation: the clock, the API server, the cluster, the agents, the faults, the judges, the events, and the counters.

import type { GroupDecision } from '../engine/decision.ts';
import { maskText } from '../policies/text/credentials.ts';
import { type Admission, objectOfPath } from './cluster/admitted.ts';
import { type ClusterModel, startCluster } from './cluster/cluster.ts';
import type { PodAdmitted } from './cluster/pin-webhook.ts';
import { kindsOf } from './cluster/replica-origins.ts';
import type { GateServer } from './cluster/world.ts';
import type { Faults, Point, RequestFault } from './faults/fault.ts';
import { drawnFaults, eitherFaults, placedFaults, podVerb, type RecordedFaults, recordedFaults } from './faults/source.ts';
import { leaseResource } from './objects.ts';
import { createOracles } from './oracles/all.ts';
import { firstDifference } from './oracles/converged.ts';
import { KnownClaims } from './oracles/documents.ts';
import { jointly, ofGroup, ownerOf, whileTrue } from './oracles/groups.ts';
import type { Oracle, Scene, Violation } from './oracles/oracle.ts';
import { Agents, agentNamespace, agentUser, leaseName } from './process/agents.ts';
import { beginRunAt, runStartMs } from './process/clock.ts';
import type { RunOptions, TimelineEntry } from './run.ts';
import {
  type ClusterEvent,
  classOfEvent,
  type PeopleEvent,
  type PolicyState,
  processLetter,
  type Right,
  type Scenario,
  type ScenarioEvent,
} from './scenario.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import type { Actor, Answered, ModelObject, ModelRequest } from './server/request.ts';
import { ModelServer } from './server/server.ts';
import { answeredText, committedText, eventAuthor, eventText, faultText, turnText } from './timeline-text.ts';
import { createTrace, noTrace, type Trace } from './trace.ts';

const frontEnds = 2;

export const defectMessages: readonly string[] = [
  'decision violates an invariant; destructive actions are blocked',
  'policies cannot be resolved',
];

/** One simulation with its cluster, its agents, its faults and its judges. It begins when the scheduler runs. */
export class Run {
  readonly scheduler: Scheduler;
  /** The view of each group: that of the scenario, then the others. */
  readonly scenes: readonly Scene[];
  readonly agents: Agents;
  readonly faults: RecordedFaults;
  readonly trace: Trace;
  readonly violations: Violation[] = [];
  readonly writes: Record<string, number> = {};
  readonly timeline: TimelineEntry[] = [];
  /** The time of the last agent write except to the Lease. During healing, it is the time of convergence if that is later. */
  quietSinceMs = 0;
  /** True after a watch lost an event. Only the next direct read of the agent shows the change, after up to five minutes. */
  hasLostEvent = false;
  lastWrite = 'no agent wrote';
  readonly #scenario: Scenario;
  readonly #options: RunOptions;
  readonly #server: ModelServer;
  readonly #cluster: ClusterModel;
  /** All judges of all groups, and the observer. */
  readonly #judges: Oracle;
  #isHealing = false;
  /** The requests of the agents that fail for a time. */
  readonly #outages: Outage[] = [];
  /** The known claims of each group. */
  readonly #knownClaims: KnownClaims[] = [];
  /** The last decision of each group by namespace and name. */
  readonly #decisions = new Map<string, GroupDecision>();
  #touches = 0;

  constructor(scenario: Scenario, options: RunOptions) {
    this.#scenario = scenario;
    this.#options = options;
    this.trace = options.isTraced === false ? noTrace : createTrace();
    const { seed, given } = scenario;
    beginRunAt(given?.startMs);
    const scheduler = createScheduler(seed);
    this.scheduler = scheduler;
    const wallMs = (): number => runStartMs + scheduler.nowMs();
    const server = new ModelServer({ scheduler, wallMs, seed, frontEnds, kinds: kindsOf(given?.objects ?? []) });
    this.#server = server;
    const admitted = (pod: PodAdmitted): void => this.#judges.podAdmitted?.(pod);
    const report = (who: string, what: string): void => {
      this.#note(who, what);
      this.#addToTimeline(who, what);
    };
    const admission = this.#createAdmission();
    const directoryChanged = (state: PolicyState): void => this.#judges.directoryChanged?.(state);
    this.#cluster = startCluster({
      server,
      scheduler,
      wallMs,
      scenario,
      admitted,
      admission,
      directoryChanged,
      report,
      generated: options.generated,
    });
    this.scenes = this.#cluster.groups.map((_, index) => this.#createScene(index, admission));
    this.#judges = this.#jointly([...this.#createOracles(), ...(options.observer === undefined ? [] : [options.observer])]);
    this.#observeServer();
    this.faults = recordedFaults(
      eitherFaults(placedFaults(scenario.faults), drawnFaults(seed, scenario.rates)),
      () => this.#isHealing,
      (placed) => this.#addToTimeline('fault', faultText(placed)),
    );
    this.agents = this.#startAgents(wallMs, admission);
    for (const rate of Object.values(scenario.clockRates ?? {})) if (rate !== 1) this.faults.happened('F13');
    for (const [group, { events }] of [scenario, ...(scenario.others ?? [])].entries())
      for (const index of events.keys()) this.#schedule(group, events, index, wallMs);
  }

  violated(invariant: string, message: string): void {
    this.#note('violated', invariant, message);
    this.violations.push({ invariant, atMs: this.scheduler.nowMs(), message });
    this.#addToTimeline('verdict', `${invariant}: ${message}`);
  }

  /** Ends all faults and repairs the cluster and the agents. */
  beginHealing(): void {
    this.#isHealing = true;
    this.#note('healing');
    this.#addToTimeline('verdict', 'faults end');
    this.#cluster.heal();
    this.agents.heal();
    this.#server.endLag();
    this.#judges.healingBegan?.();
  }

  /** Returns the first reason why the group has not converged; undefined if it has converged. */
  missing(): string | undefined {
    for (const [index, scene] of this.scenes.entries()) {
      const missing = firstDifference(scene, this.#cluster.groups[index]?.wanted() ?? []);
      if (missing !== undefined) return missing;
    }
    const prepared = this.#cluster.preparedPods();
    if (prepared.length > 0) return `${prepared.length} pods are still prepared to leave`;
    if (!this.agents.isReady()) return 'not every agent is ready';
    // All pods of a group may be updated while its last wave still soaks.
    const decisions = this.#cluster.groups
      .filter(({ shape, isOver }) => !isOver() && (this.#scenario.given !== undefined || shape.waves !== undefined))
      .map(({ namespace, name }) => this.#decisions.get(`${namespace}/${name}`));
    const waiting = decisions.find((decision) => decision !== undefined && decision.outcome !== 'done');
    return waiting && `the agents wait: ${waiting.waits[0]?.fact ?? waiting.outcome}`;
  }

  /** Tells the judges that the simulation ends, so that they report their last violations. */
  endJudgement(): void {
    this.#judges.ended?.();
  }

  #note(...parts: readonly (string | number)[]): void {
    this.trace.note(this.scheduler.nowMs(), ...parts);
  }

  #addToTimeline(who: string, what: string | undefined): void {
    if (this.#options.keepsTimeline === true && what !== undefined) this.timeline.push({ atMs: this.scheduler.nowMs(), who, what });
  }

  /** Returns the judges as one. An exception in a judge is a defect and fails the simulation. */
  #jointly(oracles: readonly Oracle[]): Oracle {
    return jointly(oracles, (error) => {
      this.violated('error', `a judge threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    });
  }

  #createScene(index: number, admission: Admission | undefined): Scene {
    const { groups } = this.#cluster;
    const { namespace = '', name = '', statefulSets = [], shape = this.#scenario.group } = groups[index] ?? {};
    const isOurs = (object: ModelObject): boolean => isOf(groups, index, { ...object.metadata, object });
    const known = new KnownClaims(this.scheduler.nowMs);
    this.#knownClaims.push(known);
    const scene: Scene = {
      nowMs: this.scheduler.nowMs,
      group: shape,
      isGiven: this.#scenario.given !== undefined,
      namespace,
      ...(groups.length < 2 ? {} : { groupName: name, groups }),
      statefulSets,
      agentUser,
      ...(admission === undefined || shape.webhooks !== true ? {} : { webhooks: admission.webhooks }),
      list: (resource, inNamespace) => {
        const all = this.#server.list(resource, inNamespace);
        return groups.length < 2 || inNamespace === undefined ? all : all.filter(isOurs);
      },
      get: (resource, inNamespace, name) => this.#server.get(resource, inNamespace, name),
      violated: (invariant, message) => this.violated(invariant, message),
      clockOf: (process) => this.agents.clockOf(process),
      isWatchDead: () => this.agents.isWatchDead(),
      claimKnownMs: (claim) => known.knownMs(claim),
      hasRemovedClaim: () => known.hasRemovedClaim(scene),
    };
    return scene;
  }

  #createOracles(): readonly Oracle[] {
    const { groups } = this.#cluster;
    return this.scenes.flatMap((scene, index) => {
      // The judges ask for the claims of the group after each event.
      const { generated } = this.#options;
      const oracles = [...this.#knownClaims.slice(index, index + 1), ...createOracles(scene, generated?.judges)];
      if (groups.length < 2 || generated === undefined) return oracles;
      const isOver = groups[index]?.isOver ?? (() => false);
      const judges = [whileTrue(this.#jointly(oracles), () => !isOver()), whileTrue(generated.judgeTermination(scene), isOver)];
      return ofGroup(this.#jointly(judges), (object) => isOf(groups, index, object));
    });
  }

  #observeServer(): void {
    const keepsTimeline = this.#options.keepsTimeline === true;
    this.#server.observe({
      committed: (commit) => {
        const { revision, type, resource, after, actor } = commit;
        this.#note('commit', revision, type, resource, after.metadata.name, actor.process ?? actor.user);
        this.#judges.committed?.(commit);
        if (keepsTimeline) this.#addToTimeline('cluster', committedText(commit));
      },
      answered: (answered) => {
        const { verb, resource, subresource, name, status, request } = answered;
        this.#note('answered', request.actor.process ?? request.actor.user, verb, resource, subresource, name, status);
        this.#count(answered);
        this.#judges.answered?.(answered);
        if (keepsTimeline && request.actor.user === agentUser)
          this.#addToTimeline(request.actor.process ?? 'agent', answeredText(answered));
      },
    });
  }

  #count({ verb, resource, subresource, name, status, revisions, request }: Answered): void {
    if (request.actor.user !== agentUser || verb === 'get' || verb === 'list' || resource === leaseResource) return;
    const write = `${verb} ${subresource === '' ? resource : `${resource}/${subresource}`}`;
    const nowMs = this.scheduler.nowMs();
    this.quietSinceMs = nowMs;
    this.lastWrite = `${request.actor.process ?? 'an agent'} sent ${write} ${name} at ${nowMs} ms, and was answered ${status}`;
    if (revisions.length > 0) this.writes[write] = (this.writes[write] ?? 0) + 1;
  }

  /** Creates the webhooks that review requests; undefined without webhooks. */
  #createAdmission(): Admission | undefined {
    return this.#options.generated?.createAdmission(this.#scenario, {
      scheduler: this.scheduler,
      server: this.#server,
      reviewers: () => this.agents.reviewers(),
      note: (...parts) => this.#note(...parts),
      reviewed: (reviewed) => this.#judges.reviewed?.(reviewed),
    });
  }

  #startAgents(wallMs: () => number, admission: Admission | undefined): Agents {
    const gateServer = this.#createGateServer(wallMs);
    return new Agents({
      ...(gateServer === undefined ? {} : { gateServer }),
      scenario: this.#scenario,
      scheduler: this.scheduler,
      server: this.#server,
      ...(admission === undefined || this.#scenario.group.webhooks !== true ? {} : { admit: admission.admit }),
      frontEnds,
      faults: this.#observedFaults(),
      namespaces: [...new Set(this.#cluster.groups.map(({ namespace }) => namespace))],
      policyDirectory: this.#cluster.policyDirectory,
      listenerOf: (process) => ({
        turnEnded: (report) => {
          this.#note(process, 'turn', report.performed.length, report.error ?? '');
          this.#judges.turnEnded?.(process, report);
          if (report.decision !== undefined) this.#decisions.set(`${report.group.namespace}/${report.group.name}`, report.decision);
          if (this.#options.keepsTimeline === true) this.#addToTimeline(process, turnText(report));
        },
        leadershipChanged: ({ isLeader }) => this.#judges.leadershipChanged?.(process, isLeader),
      }),
      podAnswer: this.#cluster.podAnswer,
      podCalled: (call) => {
        this.#note('pod', call.process, call.method, call.pod, call.uid);
        this.#judges.podCalled?.(call);
        this.#addToTimeline(
          call.isWebhook === true ? `webhook of ${call.process}` : call.process,
          `pod ${call.pod} receives ${call.method} ${maskText(call.path)}`,
        );
      },
      touch: (request) => {
        this.#touches += 1;
        if (!touchObject(request, this.#touches, this.#server)) this.faults.missed('F4');
      },
      processChanged: (process, change) => {
        this.#note(process, change);
        this.#judges.processChanged?.(process, change);
        this.#addToTimeline(process, change);
      },
      log: (process, _level, message, fields) => {
        if (defectMessages.includes(message)) this.violated('error', `${process} says: ${message} ${JSON.stringify(fields)}`);
      },
      note: (...parts) => this.#note(...parts),
    });
  }

  #createGateServer(wallMs: () => number): GateServer | undefined {
    const { seed, safetyMs, group } = this.#scenario;
    if (group.gate === undefined) return undefined;
    return this.#options.generated?.createGateServer({
      gate: group.gate,
      seed,
      nowMs: this.scheduler.nowMs,
      wallMs,
      flipsUntilMs: safetyMs,
      answered: (answer) => {
        this.#note('gate', answer.process, answer.isGood ? 'good' : 'bad');
        this.#judges.gateAnswered?.(answer);
      },
    });
  }

  #observedFaults(): Faults {
    return {
      ...this.faults,
      ofRequest: (point, verb) => {
        this.#judges.sending?.(point, verb);
        const outage = this.#outageAt(point, verb);
        const fault = outage === undefined ? this.faults.ofRequest(point, verb) : outage.fault;
        if (fault !== undefined) this.#judges.faulted?.(point, fault);
        return fault;
      },
      ofPodCall: (point) => (this.#isStarved(point) ? { class: 'F21', kind: 'refuse' } : this.faults.ofPodCall(point)),
      ofGate: (point) => (this.#isStarved(point) ? { class: 'F22', kind: 'hang' } : this.faults.ofGate(point)),
      ofLine: (point, line = '') => {
        this.#options.observer?.lineArrived?.(point, line);
        const fault = this.faults.ofLine(point, line);
        this.hasLostEvent ||= fault?.kind === 'lose';
        return fault;
      },
    };
  }

  #outageAt(point: Point, verb: string): Outage | undefined {
    if (this.#isHealing || verb === podVerb) return undefined;
    return this.#outages.find(({ untilMs, sites, process }) => {
      return point.atMs < untilMs && sites.test(point.site) && (process ?? processLetter(point.process)) === processLetter(point.process);
    });
  }

  /** Returns whether the process can open no connection. */
  #isStarved({ atMs, process }: Point): boolean {
    const isOf = (outage: Outage): boolean => outage.process === processLetter(process) && atMs < outage.untilMs;
    return !this.#isHealing && this.#outages.some(isOf);
  }

  #schedule(group: number, events: readonly ScenarioEvent[], index: number, wallMs: () => number): void {
    const event = events[index];
    if (event === undefined) return;
    const faultClass = classOfEvent(event, events.slice(0, index));
    this.scheduler.after(event.atMs, () => {
      // In a shrunk scenario the faults may end before the last events. These events do not happen.
      if (this.#isHealing) return;
      this.#note('event', ...(group === 0 ? [] : [group]), index);
      this.#addToTimeline(eventAuthor(event), eventText(event));
      const { nowMs } = this.scheduler;
      const stage: Stage = {
        nowMs,
        wallMs,
        agents: this.agents,
        cluster: { happen: (happening) => this.#cluster.happen(happening, group) },
        server: this.#server,
        frontEnds,
        failRequests: ({ forMs, ...outage }) => void this.#outages.push({ ...outage, untilMs: nowMs() + forMs }),
      };
      if (play(event, stage) && faultClass !== undefined) this.faults.happened(faultClass);
    });
  }
}

/** The requests of the agents at these sites meet this fault until this time, on the scheduler's clock. */
interface Outage {
  readonly fault: RequestFault;
  readonly untilMs: number;
  readonly sites: RegExp;
  /** The letter of the only process that it concerns, whose calls to pods and queries fail too. */
  readonly process?: string;
}

/** Returns whether the object is of the group with this index, or of no group. */
function isOf(groups: ClusterModel['groups'], index: number, object: Parameters<typeof ownerOf>[1]): boolean {
  const owner = ownerOf(groups, object);
  return owner === undefined || owner === groups[index];
}

/** A user who is neither an agent nor a controller. */
const stranger: Actor = { user: 'another-user' };

export interface Stage {
  readonly nowMs: () => number;
  /** Returns the true wall-clock time. */
  readonly wallMs: () => number;
  readonly agents: Pick<Agents, 'crash' | 'stop' | 'pause' | 'jumpWallClock'>;
  readonly cluster: { readonly happen: (event: PeopleEvent | ClusterEvent) => boolean };
  readonly server: Pick<ModelServer, 'change' | 'remove' | 'lagFrontEnd' | 'restartFrontEnd'>;
  readonly frontEnds: number;
  /** Makes the requests of the agents at these sites fail for a time. */
  readonly failRequests: (outage: Omit<Outage, 'untilMs'> & { readonly forMs: number }) => void;
}

/** The failure of a request while the agents reach no API server. */
const cutOff: RequestFault = { class: 'F1', kind: 'lost', isSilent: false };

/** The sites of the requests that need a right. */
const sitesOf: Readonly<Record<Right, RegExp>> = {
  ledger: /^ledger\./,
  lease: /^lease\./,
  act: /^(?:act|revoke)\./,
  read: /^(?:watch|written|fresh|sources)\./,
  publish: /^(?:publish|runs|events|departures)\./,
  all: /./,
};

/** Performs or begins the event. Returns whether it had a target. */
export function play(event: ScenarioEvent, stage: Stage): boolean {
  const { nowMs, wallMs, agents, cluster, server, frontEnds } = stage;
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
      return server.remove(stranger, { resource: leaseResource, namespace: agentNamespace, name: leaseName });
    case 'editLease': {
      // Changes only two fields, as a person would do, and not `leaseTransitions`.
      const renewTime = new Date(wallMs()).toISOString().replace('Z', '000Z');
      const spec = { holderIdentity: 'another-holder', renewTime };
      return server.change(stranger, { resource: leaseResource, namespace: agentNamespace, name: leaseName }, { spec }) !== undefined;
    }
    case 'frontEndLags':
      server.lagFrontEnd(event.frontEnd % frontEnds, nowMs() + event.forMs);
      return true;
    case 'cutOff':
      stage.failRequests({ fault: cutOff, forMs: event.forMs, sites: sitesOf.all });
      return true;
    case 'noConnections':
      stage.failRequests({ fault: cutOff, forMs: event.forMs, sites: sitesOf.all, process: event.process });
      return true;
    case 'rightsRevoked': {
      const status = event.right === 'all' ? 401 : 403;
      stage.failRequests({ fault: { class: 'F25', kind: 'denied', status }, forMs: event.forMs, sites: sitesOf[event.right] });
      return true;
    }
    case 'frontEndRestarts':
      server.restartFrontEnd(event.frontEnd % frontEnds, { isCompacted: event.isCompacted });
      return true;
    default:
      return cluster.happen(event);
  }
}

/** Changes an annotation without meaning on the object of the request. Returns whether the object exists. */
export function touchObject({ path }: Pick<ModelRequest, 'path'>, nth: number, server: Pick<Stage['server'], 'change'>): boolean {
  const { resource, namespace, name } = objectOfPath(path);
  if (name === '') return false;
  const annotations = { 'example.com/looked-at': String(nth) };
  return server.change(stranger, { resource, namespace, name }, { metadata: { annotations } }) !== undefined;
}
