// Finds what stops a group now, even if no step is due: failed runs, pauses, protections, undone revisions, rejections, windows and policies.
import type { GroupDefinition, Source } from '../../policies/definition.ts';
import { canOverride } from '../../policies/rollout/rules-without-exception.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { listed } from '../../policies/wording.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { GroupDecision, RuleResult, Step, Stop } from '../decision.ts';
import type { GroupView, ZoneView } from '../observe/view.ts';
import { blocks, earliestAfter } from '../rule.ts';
import { agentRuns } from '../rules/agent-access.ts';
import { isRejection } from '../rules/approval.ts';
import { overrideCommand, withException } from '../rules/exception.ts';
import { ignoresProgress, isOfCalendarOrPolicy, policyAnswer, windowResult } from '../rules/policy.ts';
import { pauseFact } from '../rules/roll.ts';
import { rejectionsAhead } from '../rules/wave.ts';
import { effectOfPromotion } from '../run/effects.ts';
import { podsLeft } from '../run/included.ts';
import { isRollingBack, rolledBackZones } from '../run/origin.ts';
import { objectOf, pauses, requesterText, requestOf, requestPlace, stopActions } from '../run/requests.ts';
import { mayRollBack, rollsBack } from '../run/run.ts';
import type { FailedRun, RunState } from '../run/run-state.ts';
import { hasReplacedSince } from '../run/states.ts';
import { type IntentView, isUnknown, ledgerOf, type Snapshot } from '../snapshot.ts';

interface StopsAnswer {
  readonly stops: readonly Stop[];
  /** The results of windows, policy rules and rejections, also results that stop nothing. */
  readonly results: readonly RuleResult[];
  /** The earliest instant at which time alone starts or ends a stop. */
  readonly wakeAtMs: number | undefined;
}

/** Returns the stops in force, without those that an exception allows. */
export function stopsOf(context: GroupContext, steps: readonly Step[], runAfter: RunState | undefined): StopsAnswer {
  const zoneResults = resultsOf(context, steps, runAfter);
  const { run } = context.view.ledger;
  const ahead = runAfter?.outcome === 'running' ? rejectionsAhead(context, runAfter) : [];
  const requests = isUnknown(context.intents) ? [] : context.intents.filter((intent) => isStopRequest(context, intent, run));
  const requested = requestedRevisions(context);
  const intents = requests.filter((intent) => !isOvertaken(intent, requested));
  const stops = [
    ...stopsOfRun(context, runAfter),
    ...pausedBySettings(context),
    ...intents.map((intent) => requestedStop(context, intent, steps, runAfter)),
    ...stopsOfResults(context, [...zoneResults.filter(isStop), ...ahead]),
  ];
  const instants = [...stops.map(({ untilMs }) => untilMs), ...zoneResults.map(({ result }) => result.earliestMs)];
  // Some outputs show only the first stop, so the stops that block a step come first, and of these the widest.
  const names = context.group.zones.map(({ name }) => name);
  const inZoneOrder = stops.map((stop) => ({ ...stop, zones: stop.zones.toSorted((a, b) => names.indexOf(a) - names.indexOf(b)) }));
  const possible = inZoneOrder.map((stop) => withPossibleUndo(context, stop));
  const ordered = keepEndsBy(context, possible, runAfter).toSorted(
    (a, b) => Number(isOfStep(b, steps)) - Number(isOfStep(a, steps)) || b.zones.length - a.zones.length,
  );
  const results = zoneResults.map(({ result }) => result);
  return { stops: ordered, results, wakeAtMs: earliestAfter(context.nowMs, instants) };
}

/** Returns the stops. Keeps `endsBy` only if every zone with a pod to replace has a stop that a person must end. */
function keepEndsBy(context: GroupContext, stops: readonly Stop[], run: RunState | undefined): readonly Stop[] {
  const endedByPerson = stops.flatMap(({ isBlocking, endsBy, zones }) => (isBlocking && endsBy !== undefined ? zones : []));
  const open = openZones(context, run);
  const isEveryZoneStopped = open.length > 0 && open.every(({ zone }) => endedByPerson.includes(zone.name));
  return stops.map(({ endsBy, ...stop }) => ({
    ...stop,
    ...defined({ endsBy: isEveryZoneStopped && stop.isBlocking ? endsBy : undefined }),
  }));
}

/** Returns the zones with pods to replace. */
function openZones({ group, view }: GroupContext, run: RunState | undefined): readonly ZoneView[] {
  return view.zones.filter((zone) => podsLeft(group, run, zone) > 0);
}

function isOfStep(stop: Pick<Stop, 'rule' | 'source'>, steps: readonly Step[]): boolean {
  return steps.some(({ results }) => results.some((result) => blocks(result) && isOfStop(result, stop)));
}

/** Reports whether the rule of the stop gave the result, from the same object if the stop has a source. */
export function isOfStop(result: RuleResult, { rule, source }: Pick<Stop, 'rule' | 'source'>): boolean {
  return result.rule === rule && (source === undefined || result.source?.object === source.object);
}

const templateRules: ReadonlySet<string> = new Set(['run-failed', 'rolled-back', 'undone']);

/** Reports whether the stop or result blocks a template. Another template ends such a block without a request. */
export function blocksTemplate({ rule }: Pick<Stop, 'rule'>): boolean {
  return templateRules.has(rule);
}

/** Returns the stops of the present templates: a failed run, an undone revision, and a revision that was or is being rolled back. */
export function templateStops(stops: readonly Stop[]): readonly Stop[] {
  return stops.filter((stop) => blocksTemplate(stop) && (stop.isBlocking || stop.rule === 'rolled-back'));
}

/** Returns the stops of templates that a change ends, each with the zones in which it ends. */
export function endedStops(before: readonly Stop[], after: readonly Stop[]): readonly Stop[] {
  const kept = templateStops(after);
  return templateStops(before).flatMap((stop) => {
    const same = kept.find(({ rule, source }) => rule === stop.rule && source?.object === stop.source?.object);
    const zones = stop.zones.filter((zone) => same?.zones.includes(zone) !== true);
    return zones.length === 0 ? [] : [{ ...stop, zones }];
  });
}

/** Reports whether a template of the group may be blocked. Without a run and without requests, no template is blocked. */
export function mayBlockTemplate(snapshot: Snapshot, group: GroupDefinition): boolean {
  const { intents } = snapshot;
  return ledgerOf(snapshot, group).run !== undefined || (!isUnknown(intents) && intents.length > 0);
}

/** Returns the stops of a failed run and of a revision that was or is being rolled back; none while a rollback is about to follow. */
function stopsOfRun(context: GroupContext, run: RunState | undefined): readonly Stop[] {
  if (run === undefined || rollsBack(context, run)) return [];
  const { group } = context;
  const name = `${group.namespace}/${group.name}`;
  const isUnattended = agentRuns(context.snapshot, group) !== undefined;
  const stops = [...(run.outcome === 'failed' ? [failedStop(context, run, name)] : []), ...rolledBackStops(context, run, name)];
  return isUnattended ? stops.map((stop) => withoutAgent(stop, name)) : stops;
}

const otherTemplate = 'apply another pod template';

function failedStop(context: GroupContext, run: FailedRun, name: string): Stop {
  const { group } = context;
  const isHeldByGate = isReturnHeldByGate(context, run);
  const continues = run.kind === 'rollback' && run.awaitsPods === true ? '; it continues when the pods in flight are available' : '';
  const held = isHeldByGate ? '; this return does not skip gates (skipOnRollback: false)' : '';
  const fact = run.onFailure === undefined ? `the run failed: ${run.failure}${continues}${held}` : `the run was ${run.failure}`;
  const rollback = mayRollBack(group, run) ? [rollbackCommand(name)] : [];
  const undo = run.kind === 'rollout' ? [...rollback, undoCommand(name)] : [];
  const zones = group.zones.map((zone) => zone.name);
  const [endsWith = retryCommand(name), ...retry] = [...(isHeldByGate ? [promoteCommand(name)] : []), retryCommand(name)];
  return { rule: 'run-failed', fact, zones, isBlocking: true, endsWith, alternatives: [...retry, ...undo, otherTemplate] };
}

/**
 * Reports whether a return failed because of a gate that it does not skip. The gate may measure the failure that the return repairs, so that
 * each retry fails again.
 */
function isReturnHeldByGate(context: GroupContext, run: FailedRun): boolean {
  if (run.kind !== 'rollback') return false;
  const { gates } = effectOfPromotion(context, run, { wave: undefined, gate: undefined });
  return gates.some((gate) => run.failure.startsWith(`gate ${gate} `));
}

function rolledBackStops({ view }: GroupContext, run: RunState, name: string): readonly Stop[] {
  const kept = rolledBackZones(view, run);
  if (kept.length === 0) return [];
  const isUnderWay = run.outcome !== 'completed' && (isRollingBack(run) || kept.some(({ outdated }) => outdated.length > 0));
  const because = run.rolledBack?.because ?? '';
  const fact = `the update revision is blocked, because it ${isUnderWay ? 'is being' : 'was'} rolled back: ${because}`;
  // An undo gives the StatefulSet the template that its pods run or return to, and replaces no further pod.
  const undo = undoCommand(name);
  const isOver = run.outcome === 'completed';
  // A retry has an effect only after the end of the run.
  const ends = isOver
    ? { endsWith: retryCommand(name), alternatives: [undo, otherTemplate] }
    : { endsWith: undo, alternatives: [otherTemplate] };
  return [{ rule: 'rolled-back', fact, zones: kept.map(({ zone }) => zone.name), isBlocking: isOver, ...ends }];
}

/**
 * Reports whether a text offers a command that has no effect without an agent. The webhook that records requesters is part of the agent. If
 * this webhook does not answer, the API server denies the request.
 */
export function needsAgent(text: string): boolean {
  return /kubectl rollout-group (?:approve|promote|override|retry) /.test(text);
}

/** Reports whether the group would continue without the stop. If the group has nothing to do, the stop needs no action. */
export function stopsStep({ phase }: Pick<GroupDecision, 'phase'>, { isBlocking }: Stop): boolean {
  return isBlocking && phase !== 'Done';
}

function retryCommand(name: string): string {
  return `kubectl rollout-group retry ${name}`;
}

/** Returns the commands that continue a failed run without its gates. The promotion comes first: a gate may fail the retried run at once. */
function promoteCommand(name: string): string {
  return `kubectl rollout-group promote ${name} --full, then ${retryCommand(name)}`;
}

function undoCommand(name: string): string {
  return `kubectl rollout-group undo ${name}`;
}

function rollbackCommand(name: string): string {
  return `kubectl rollout-group abort ${name} --rollback`;
}

/** Returns the stop of a group on which no agent acts, without the commands that only the agent carries out: retry and rollback. */
export function withoutAgent(stop: Stop, name: string): Stop {
  return withoutWays(stop, (way) => way.endsWith(retryCommand(name)) || way === rollbackCommand(name));
}

/** Returns the stop without undo while a StatefulSet of the group does not exist: an undo writes the templates of all StatefulSets. */
function withPossibleUndo({ group, view }: GroupContext, stop: Stop): Stop {
  return view.zones.some(({ isMissing }) => isMissing) ? withoutUndo(stop, `${group.namespace}/${group.name}`) : stop;
}

/** Returns the stop without the ways that undo the group. */
export function withoutUndo(stop: Stop, name: string): Stop {
  return withoutWays(stop, (way) => way.startsWith(undoCommand(name)));
}

/** Returns the stop without these ways that end it. The last way stays. */
function withoutWays({ endsWith, alternatives, ...stop }: Stop, isLeftOut: (way: string) => boolean): Stop {
  const [first = endsWith, ...others] = [endsWith, ...(alternatives ?? [])].filter((way) => !isLeftOut(way));
  return { ...stop, endsWith: first, ...defined({ alternatives: others.length === 0 ? undefined : others }) };
}

/** Reports whether a request stops steps of the group: a pause, an unverified abort, a protection, or an undo. */
export function isStopRequest(context: Pick<GroupContext, 'nowMs'>, intent: IntentView, run: Pick<RunState, 'id'> | undefined): boolean {
  if (intent.expiresMs !== undefined && intent.expiresMs <= context.nowMs) return false;
  return stopActions.includes(intent.action) || pauses(context, intent, run);
}

/** The update revision by zone of the group; undefined for a StatefulSet that could not be read. */
export type RequestedRevisions = ReadonlyMap<string, string | undefined>;

function requestedRevisions({ view }: Pick<GroupContext, 'view'>): RequestedRevisions {
  return new Map(view.zones.map(({ zone, set }) => [zone.name, set?.status.updateRevision]));
}

/**
 * Reports whether every zone of an undo has another template than the undone one and the restored one. Such an undo is no stop until an
 * undone revision is requested again. Every other undo is a stop, also without a pod to replace: the next sync from Git may request the
 * undone revision.
 */
export function isOvertaken({ action, undone = [] }: IntentView, requested: RequestedRevisions): boolean {
  const hasAnother = ({ zone, revision, to }: (typeof undone)[number]): boolean => {
    const now = requested.get(zone);
    return now !== undefined && to !== undefined && now !== revision && now !== to;
  };
  return action === 'undo' && undone.every((one) => !requested.has(one.zone) || hasAnother(one));
}

function requestedStop(context: GroupContext, intent: IntentView, steps: readonly Step[], run: RunState | undefined): Stop {
  const { group } = context;
  const name = `${group.namespace}/${group.name}`;
  const zones = group.zones.map((zone) => zone.name).filter((zone) => intent.zone === undefined || intent.zone === zone);
  const endsBy = intent.expiresMs === undefined && intent.ordinals === undefined ? ('person' as const) : undefined;
  const common = { source: objectOf(intent), ...defined({ untilMs: intent.expiresMs, by: intent.requestedBy?.user, endsBy }) };
  const cancel = `kubectl rollout-group cancel ${name} ${intent.name}`;
  switch (intent.action) {
    case 'protect': {
      const fact = `${requesterText(intent)} protects ${requestPlace(intent)}${exposedText(context.view, intent)}`;
      const isBlocking = concernsOutdated(openZones(context, run), intent) || isOfStep({ rule: 'protected', ...common }, steps);
      return { rule: 'protected', fact, ...common, zones, isBlocking, endsWith: cancel };
    }
    case 'undo':
      return undoneStop(context, intent, { ...common, endsWith: cancel });
    default: {
      const zone = intent.zone === undefined ? '' : ` --zone ${intent.zone}`;
      const endsWith = `kubectl rollout-group resume ${name}${zone}`;
      const isAbort = intent.action === 'abort' ? { isAbort: true as const } : {};
      const fact = `${pauseFact(context, intent)}${exposedText(context.view, intent)}`;
      // A pause also blocks the removal of replicas.
      const isBlocking = concernsOutdated(openZones(context, run), intent) || isOfStep({ rule: 'paused', ...common }, steps);
      return { rule: 'paused', fact, ...common, zones, isBlocking, endsWith, ...isAbort };
    }
  }
}

/** Returns a clause with the pods of a request that the partition already exposes: the request cannot stop their replacement. */
export function exposedText({ zones }: GroupView, { zone: only, ordinals }: Pick<IntentView, 'zone' | 'ordinals'>): string {
  const exposed = zones.flatMap(({ zone, exposedByPartition }) => (only === undefined || only === zone.name ? exposedByPartition : []));
  const names = exposed.filter(({ ordinal }) => ordinals === undefined || ordinals.includes(ordinal)).map(({ name }) => name);
  const them = names.length === 1 ? 'it' : 'them';
  return names.length === 0 ? '' : `; the StatefulSet controller still replaces ${listed(names, 'and')}: the partition exposes ${them}`;
}

/** Reports whether the pause or protection concerns an outdated pod. Without a pod to replace, it concerns the next rollout. */
function concernsOutdated(open: readonly ZoneView[], { zone: only, ordinals }: IntentView): boolean {
  const outdated = open.flatMap(({ zone, outdated: pods }) => pods.map(({ ordinal }) => ({ zone: zone.name, ordinal })));
  const isMeant = (ordinal: number): boolean => ordinals === undefined || ordinals.includes(ordinal);
  return outdated.length === 0 || outdated.some(({ zone, ordinal }) => (only === undefined || only === zone) && isMeant(ordinal));
}

function undoFact(intent: IntentView): string {
  const revisions = (intent.undone ?? []).map(({ zone, revision }) => `${revision} of zone ${zone}`);
  return `${requesterText(intent)} undid the revisions ${revisions.join(', ')}`;
}

/**
 * Returns the stop with the zones whose update revision is undone. Without such a zone, returns all zones of the undo, and the stop blocks no
 * step. A cancel rolls the undone revision out, so a stop that blocks also names the ways that do not.
 */
function undoneStop(context: GroupContext, intent: IntentView, ends: Pick<Stop, 'endsWith' | 'source' | 'untilMs'>): Stop {
  const { group } = context;
  const { undone = [] } = intent;
  const requested = requestedRevisions(context);
  const current = undone.filter(({ zone, revision }) => requested.get(zone) === revision);
  const isBlocking = current.length > 0;
  const zones = [...new Set((isBlocking ? current : undone).map(({ zone }) => zone))];
  const undo = undoCommand(`${group.namespace}/${group.name}`);
  const undos = zones.length >= group.zones.length ? [undo] : zones.map((zone) => `${undo} --zone ${zone}`);
  const alternatives = isBlocking ? [...undos, otherTemplate] : undefined;
  return { rule: 'undone', fact: undoFact(intent), ...ends, zones, isBlocking, ...defined({ alternatives }) };
}

function pausedBySettings(context: GroupContext): readonly Stop[] {
  const stops = new Map<string, { readonly source: Source | undefined; readonly zones: string[] }>();
  for (const { name } of context.group.zones.filter(({ paused }) => paused)) {
    const source = sourceOf(context, `zones.${name}.paused`);
    const endsWith = editText(source, 'set paused: false');
    const known = stops.get(endsWith);
    if (known === undefined) stops.set(endsWith, { source, zones: [name] });
    else known.zones.push(name);
  }
  return [...stops].map(([endsWith, { source, zones }]) => {
    const fact =
      zones.length === 1 ? `zone ${zones[0]} is paused by its settings` : `zones ${zones.join(', ')} are paused by their settings`;
    return { rule: 'paused', fact, ...defined({ source }), zones, isBlocking: true, endsBy: 'person', endsWith };
  });
}

/** Returns the command that edits the object with the setting, or the edit and its place in a file. */
export function editText(source: Source | undefined, edit: string): string {
  const [, kind, namespace, name] = /^(\w+) ([^/]+)\/(.+)$/.exec(source?.object ?? '') ?? [];
  if (source?.file === undefined && kind !== undefined) {
    const field = source?.field === undefined ? '' : ` (${source.field})`;
    return `kubectl edit ${kind.toLowerCase()} ${name} -n ${namespace}, and ${edit}${field}`;
  }
  const place = [source?.file, source?.line].filter((part) => part !== undefined).join(':');
  return `${edit}${place === '' ? '' : ` at ${place}`}, then apply it`;
}

interface ZoneResult {
  readonly zone: string;
  readonly result: RuleResult;
}

/**
 * Returns the results that may stop the group: rejections in the steps, and results of windows and policy rules. If a window or policy rule
 * has a result in a roll step, then a result for another zone counts only if it has the same rule and fact, comes from a rule that ignores
 * progress, or if an exception permits the rule in one of the zones. Otherwise, for example during a soak, the results for all zones count.
 */
function resultsOf(context: GroupContext, steps: readonly Step[], run: RunState | undefined): readonly ZoneResult[] {
  const rolls = steps.filter(({ kind }) => kind === 'roll');
  const dueZones = new Set(rolls.filter(({ results }) => results.some(isOfCalendarOrPolicy)).map(({ zone }) => zone));
  const isDue = dueZones.size > 0;
  const every = resultsWithoutSteps(context, run);
  const mayStop = (answer: RuleResult): boolean => isRejection(answer) || (isDue && isOfCalendarOrPolicy(answer));
  const due = steps.flatMap(({ zone, results }) => results.filter(mayStop).map((result) => ({ zone, result })));
  if (!isDue) return [...due, ...every];
  const keys = new Set(due.map(keyOf));
  const lasting = context.policies.flatMap(({ name, rules }) => rules.filter(ignoresProgress).map((rule) => `${name}/${rule.name}`));
  const permitted = [...due, ...every].flatMap(({ result }) => (result.exception === undefined ? [] : [result.rule]));
  const isLasting = ({ rule }: RuleResult): boolean => permitted.includes(rule) || lasting.includes(rule);
  return [...due, ...every.filter((one) => keys.has(keyOf(one)) || (!dueZones.has(one.zone) && isLasting(one.result)))];
}

/** Returns the rule and the fact as a key. Results of several zones with the same key make one stop. */
function keyOf({ result: { rule, fact } }: ZoneResult): string {
  return `${rule} ${fact}`;
}

/** Evaluates windows and policies as if each zone had a pod to replace. */
function resultsWithoutSteps(context: GroupContext, run: RunState | undefined): readonly ZoneResult[] {
  const current = run?.outcome === 'completed' ? undefined : run;
  const isUnderWay = current !== undefined && hasReplacedSince(current, current.startedMs);
  const window = windowResult(context, 'rollout', isUnderWay ? 'run' : 'nothing');
  return context.view.zones.flatMap((zone) => {
    const { results } = policyAnswer({ context, action: 'rollout', zone, ...defined({ run: current }) });
    const { name } = zone.zone;
    return [window, ...results].map((answer) => ({ zone: name, result: withException(context, answer, { zone: name, podCount: 1 }) }));
  });
}

/** Reports whether the result stops the group. An unknown result and a missing approval (a result with a digest) are no stops. */
function isStop({ result }: ZoneResult): boolean {
  return blocks(result) && result.outcome !== 'unknown' && result.digest === undefined;
}

function stopsOfResults(context: GroupContext, zoneResults: readonly ZoneResult[]): readonly Stop[] {
  const { group, policies } = context;
  return [...groupBy(zoneResults, keyOf).values()].map((same) => {
    const { rule, fact, limit, source, earliestMs, endsBy } = same[0].result;
    const zones = [...new Set(same.map(({ zone }) => zone))];
    const [only] = zones;
    const place = zones.length === 1 && group.zones.length > 1 ? only : undefined;
    const ends = endsOfRejection(context, source) ?? {
      endsWith: canOverride(rule, policies) ? overrideCommand(context, { rule, zone: place }) : editText(source, `change the rule ${rule}`),
    };
    return { rule, fact, ...defined({ limit, source, untilMs: earliestMs, endsBy }), zones, isBlocking: true, ...ends };
  });
}

/**
 * Returns the requester of the rejection with this source, every zone that it blocks, and the commands that end it; undefined for another
 * source. A step shows the rejection only for its own zone, but later waves wait for the rejected wave.
 */
function endsOfRejection(
  { group, intents }: GroupContext,
  source: Source | undefined,
): (Pick<Stop, 'by' | 'endsWith' | 'alternatives'> & Partial<Pick<Stop, 'zones'>>) | undefined {
  const request = requestOf(defined({ source }));
  const rejection = isUnknown(intents) ? undefined : intents.find((intent) => intent.name === request);
  if (rejection === undefined) return undefined;
  const { wave, rule, requestedBy } = rejection;
  const by = requestedBy?.user;
  const name = `${group.namespace}/${group.name}`;
  const subject = wave === undefined ? `--rule ${rule}` : `--wave ${wave}`;
  const { waves } = group.rollout;
  const index = waves.findIndex((one) => one.name === wave);
  return {
    endsWith: `kubectl rollout-group cancel ${name} ${rejection.name}`,
    alternatives: [`kubectl rollout-group approve ${name} ${subject} (as ${by})`],
    ...defined({ by, zones: index < 0 ? undefined : [...new Set(waves.slice(index).flatMap(({ zones }) => zones))] }),
  };
}
