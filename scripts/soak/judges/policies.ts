// Judges windows (S40) and policy rules (S41): agents take a step that they block only with an exception in force, with an approval that a
// rule asks for, or to finish work in progress that a window lets finish.
import { templateDigest } from '../../../engine/diff/field-diff.ts';
import {
  configMapResource,
  exceptionResource,
  instantAt,
  intentResource,
  isAgent,
  isTerminating,
  numberAt,
  parsed,
  policyResource,
  replicasOf,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from '../../../simulation/objects.ts';
import { disruptedByUs } from '../../../simulation/oracles/availability.ts';
import { isLedger, readLedger } from '../../../simulation/oracles/documents.ts';
import { machineOf, type Oracle } from '../../../simulation/oracles/oracle.ts';
import { exposedByUs } from '../../../simulation/oracles/partitions.ts';
import { type Book, isInRange, wasDown, type Zone } from '../../../simulation/oracles/places.ts';
import { Timeline } from '../../../simulation/oracles/terms.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import { letterOf, type PolicyState, processLetter, type RuleShape, type WindowShape } from '../../../simulation/scenario.ts';
import type { Actor, Commit, ModelObject } from '../../../simulation/server/request.ts';
import { hasError, ruleName } from '../groups/group-objects.ts';

const policyNames = ['calendar', 'guard'] as const;
type PolicyName = (typeof policyNames)[number];

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
  readonly rule: string;
  readonly zone: string | undefined;
  readonly podsAtMost: number | undefined;
  readonly expiresMs: number;
  /** The time at which the object was replaced or deleted. */
  untilMs: number;
}

/** A step, and the times on the clock of its sender at which it may have been decided, in milliseconds since the start. */
interface Step {
  readonly action: Action;
  readonly zone: Zone;
  /** The new number of replicas of a scale-down. */
  readonly to: number;
  readonly begun: Begun | undefined;
  readonly isRepair: boolean;
  readonly fromMs: number;
  readonly clock: { readonly fromMs: number; readonly toMs: number };
}

/** The difference between two clocks that is no error, and the precision of the windows. */
const toleranceMs = 1_500;
/** The longest time after which a process reads a directory that was unreadable, by the slowest clock. */
const directoryMs = 30_000;
const secondMs = 1_000;
const minuteMs = 60_000;

/** Creates the judge. It sees each commit before the book records it. */
export function judgePolicies(book: Book): Oracle {
  const { windows, rules } = book.scene.group;
  return (windows === undefined && rules === undefined) || book.scene.isGiven === true ? {} : new PolicyJudge(book);
}

class PolicyJudge implements Oracle {
  readonly #book: Book;
  readonly #windows: readonly WindowShape[];
  readonly #rules: readonly RuleShape[];
  /** The verified approvals of rules: the name of the rule and the run. */
  readonly #approvals = new Set<string>();
  readonly #exceptions: Exception[] = [];
  /** True while the StatefulSet has the template of the approved plan that it names. */
  readonly #planned = new Map<string, Timeline<boolean>>();
  /** True while each policy is in force: it is stored, and it was last stored without an error. */
  readonly #inForce = { calendar: new Timeline<boolean>(), guard: new Timeline<boolean>() };
  /** The policies whose current form has an error, or cannot be read. */
  readonly #broken = new Set<PolicyName>();
  /** The newest claim by the UID of its pod or StatefulSet. */
  readonly #begun = new Map<string, Begun>();
  /** The lead of the wall clock of each machine. */
  readonly #errors = new Map<string, Timeline<number>>();

  constructor(book: Book) {
    this.#book = book;
    this.#windows = book.scene.group.windows ?? [];
    this.#rules = book.scene.group.rules ?? [];
    for (const timeline of Object.values(this.#inForce)) timeline.set(Number.NEGATIVE_INFINITY, true);
  }

  /** An error in the files never ends a policy (S26). */
  directoryChanged(state: PolicyState): void {
    if (this.#book.scene.group.hasPolicyDirectory !== true) return;
    for (const name of policyNames) this.#note(name, state, this.#book.scene.nowMs());
  }

  turnEnded(process: string): void {
    this.#noteClock(process);
  }

  committed(commit: Commit): void {
    const { resource, after, actor } = commit;
    this.#notePlan(commit);
    if (actor.process !== undefined) this.#noteClock(actor.process);
    if (after.metadata.namespace !== this.#book.scene.namespace || !isAgent(actor, this.#book.scene.agentUser)) {
      this.#noteRequest(commit);
      return;
    }
    if (resource === configMapResource && isLedger(after)) this.#noteClaims(commit);
    const place = disruptedByUs(this.#book, commit) ?? exposedByUs(this.#book, commit)[0];
    if (place !== undefined) this.#check(commit, 'rollout', place.zone, wasDown(place, this.#book.momentOf(commit)));
    const isLess = replicasOf(after) < replicasOf(commit.before);
    const zone = resource === statefulSetResource && isLess ? this.#book.zoneOf(after.metadata.name) : undefined;
    if (zone !== undefined) this.#check(commit, 'scaleDown', zone, false);
  }

  #noteRequest(commit: Commit): void {
    const { resource, after, type } = commit;
    if (resource === exceptionResource) this.#noteException(commit);
    if (resource === policyResource) this.#notePolicy(commit);
    if (resource === intentResource && type === 'ADDED') this.#noteApproval(after);
  }

  #noteApproval(intent: ModelObject): void {
    const { action, rule, runId, requestedBy } = (intent['spec'] ?? {}) as Readonly<Record<string, unknown>>;
    if (action === 'approve' && requestedBy !== undefined) this.#approvals.add(`${String(rule)} ${String(runId)}`);
  }

  /** Records a stored policy. An object with an error changes nothing (S26). */
  #notePolicy({ type, after, atMs }: Commit): void {
    const { namespace, name } = after.metadata;
    if (namespace !== this.#book.scene.namespace || (name !== 'calendar' && name !== 'guard')) return;
    this.#note(name, type === 'DELETED' ? 'removed' : hasError(after) ? 'invalid' : 'whole', atMs);
  }

  #note(name: PolicyName, state: PolicyState, atMs: number): void {
    if (state === 'whole' || state === 'removed') {
      this.#broken.delete(name);
      this.#inForce[name].set(atMs, state === 'whole');
    } else this.#broken.add(name);
  }

  #violated(invariant: 'S40' | 'S41', policy: PolicyName, message: string): void {
    const isBroken = this.#broken.has(policy);
    this.#book.scene.violated(isBroken ? 'S26' : invariant, `${message}${isBroken ? '; now the policy has an error' : ''}`);
  }

  /** Returns whether the policy was in force at every time that a decision may have seen. A directory is read again after up to 10 s. */
  #wasInForce(policy: PolicyName, fromMs: number): boolean {
    const readMs = this.#book.scene.group.hasPolicyDirectory === true ? directoryMs : 0;
    return this.#inForce[policy].since(fromMs - readMs).every((isInForce) => isInForce);
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
      rule: textAt(after, 'spec', 'rule') ?? '',
      zone: textAt(after, 'spec', 'target', 'zone'),
      podsAtMost: numberAt(after, 'spec', 'allow', 'podsAtMost'),
      expiresMs: instantAt(after, 'spec', 'expires') ?? 0,
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
    const begun = this.#begun.get(after.metadata.uid);
    const step: Step = { action, zone, to: replicasOf(after), begun, isRepair, fromMs: moment.fromMs, clock };
    const what = `${actor.process ?? ''} ${action === 'rollout' ? 'disrupts' : 'scales down'} ${after.metadata.name}`;
    const isAllowed = this.#isEver(step, (clockMs) => this.#isInWindow(step, clockMs));
    if (!isAllowed) this.#violated('S40', 'calendar', `${what} at ${Math.round(clock.toMs)} ms by its clock, outside of the windows`);
    for (const rule of this.#wasInForce('guard', moment.fromMs) ? this.#rules : []) {
      if (!this.#blocks(rule, step) || this.#isEver(step, (clockMs) => this.#isExcepted(ruleName(rule), step, clockMs))) continue;
      this.#violated('S41', 'guard', `${what}, which the rule ${ruleName(rule)} blocks until ${rule.until} s`);
    }
  }

  /** Returns whether the check passes at any time at which the step may have been decided. */
  #isEver({ clock }: Step, check: (clockMs: number) => boolean): boolean {
    for (let clockMs = clock.fromMs; clockMs < clock.toMs + secondMs; clockMs += secondMs)
      if (check(Math.min(clockMs, clock.toMs))) return true;
    return false;
  }

  /** Returns whether the rule blocks the step in every state that its decision may have seen. */
  #blocks({ kind, zone, other, replicas = 0, until }: RuleShape, step: Step): boolean {
    const isRollout = step.action === 'rollout';
    if (step.clock.toMs >= until * secondMs || isRollout === (kind === 'floor')) return false;
    if (!isRollout) return step.to < replicas;
    if (zone !== undefined && zone !== letterOf(this.#book.zones.indexOf(step.zone))) return false;
    if (kind === 'plan' && !this.#deviates(step.fromMs)) return false;
    if (kind === 'ask' || kind === 'plan')
      return !this.#book.runs.since(step.fromMs).some((run) => this.#approvals.has(`${ruleName({ kind })} ${run?.id ?? ''}`));
    return other === undefined || this.#isOutdated(other, step.fromMs);
  }

  /** Returns whether a zone had another template than its approved plan in every state since this time. A rollback needs no plan. */
  #deviates(fromMs: number): boolean {
    const { zones, terms, runs } = this.#book;
    if (runs.since(fromMs).some((run) => run?.stays && Object.keys(run.restores).length > 0)) return false;
    return zones.some(({ statefulSet }) => {
      const states = this.#planned.get(statefulSet)?.since(fromMs) ?? [false];
      return terms.wasMember(statefulSet, fromMs) && !states.includes(true);
    });
  }

  #notePlan({ resource, after, atMs, type }: Commit): void {
    if (resource !== statefulSetResource) return;
    const { name, annotations } = after.metadata;
    const states = this.#planned.get(name) ?? new Timeline<boolean>();
    this.#planned.set(name, states);
    const plan = parsed(annotations?.['rollout-group.dev/approved-plan']);
    states.set(atMs, type !== 'DELETED' && textAt(plan, 'template') === templateDigest(after));
  }

  /** Returns whether the zone has an outdated pod in every state since this time. */
  #isOutdated(letter: string, fromMs: number): boolean {
    const { zones, terms } = this.#book;
    const zone = zones.find((_, index) => letterOf(index) === letter);
    const targets = zone === undefined ? [] : this.#book.targetsSince(zone, fromMs);
    if (zone === undefined || targets.includes(undefined) || !terms.wasMember(zone.statefulSet, fromMs)) return false;
    return [...zone.places.values()].some((place) => {
      const { pod } = place;
      if (pod === undefined || isTerminating(pod) || zone.facts.since(fromMs).some((facts) => !isInRange(place, facts))) return false;
      return (instantAt(pod, 'metadata', 'creationTimestamp') ?? 0) <= fromMs && !targets.includes(revisionLabelOf(pod));
    });
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

  #isInWindow(step: Step, clockMs: number): boolean {
    if (!this.#wasInForce('calendar', step.fromMs)) return true;
    const blocking = this.#blocking(step.action, clockMs);
    return blocking.length === 0 || this.#mayFinish(step, blocking) || this.#isExcepted('window', step, clockMs);
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

  #isExcepted(rule: string, { action, zone, begun, fromMs }: Step, clockMs: number): boolean {
    const letter = letterOf(this.#book.zones.indexOf(zone));
    return this.#exceptions.some((one) => {
      const isEnough = one.podsAtMost === undefined || (action === 'rollout' && (begun?.pods ?? 1) <= one.podsAtMost);
      return one.rule === rule && one.untilMs >= fromMs && clockMs < one.expiresMs && (one.zone ?? letter) === letter && isEnough;
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
