// Builds the texts about a plan that every format shares: durations, pods, steps, changes and sources.
import type { RuleResult, Stop } from '../../../engine/decision.ts';
import {
  type Assumptions,
  defaultAssumptions,
  type GroupPlan,
  gatesWithApproval,
  type Plan,
  type PlannedStep,
  type PodTimes,
  type Quantiles,
  type Refusal,
  rolloutWaves,
} from '../../../engine/plan/document.ts';
import { endsText, isMisplacedUntilRetry, stopEndText, stopFact } from '../../../engine/publish/status.ts';
import { blockingResults, factAt, isLimitOfZero, isUntilPerson } from '../../../engine/rule.ts';
import { isRejection, lacksApproval, lacksRequesters } from '../../../engine/rules/approval.ts';
import { ruleCatalog } from '../../../engine/rules/catalog.ts';
import { waitsForPartition } from '../../../engine/rules/strategy.ts';
import type { Source } from '../../../policies/definition.ts';
import { minuteText } from '../../../policies/instant.ts';
import { firstByKey } from '../../../policies/values/group-by.ts';
import { counted, firstOf, listed, zonesText } from '../../../policies/wording.ts';
import { zonePodsText } from '../pod-text.ts';

/** Returns a duration in at most two units: `45s`, `3m10s`, `22m`, `1h15m`, `2d3h`; `?` if it is unknown. */
export function spanText(seconds: number | undefined): string {
  if (seconds === undefined) return '?';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 600) return twoUnits(Math.floor(whole / 60), 'm', whole % 60, 's');
  const minutes = Math.round(whole / 60);
  if (minutes < 1440) return twoUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'm');
  const hours = Math.round(minutes / 60);
  return twoUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  if (large === 0) return `${small}${smallUnit}`;
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** Returns an age such as `12s` or `3h10m`; `0s` for an instant in the future. */
export function ageText(atMs: number, nowMs: number): string {
  return spanText(Math.max(0, nowMs - atMs) / 1000);
}

const stepVerbs: Readonly<Record<PlannedStep['kind'], string>> = {
  roll: 'roll',
  scaleUp: 'scale up',
  scaleDown: 'scale down',
  prepare: 'prepare',
  check: 'check',
  soak: 'soak',
  approval: 'approve',
  wait: 'wait',
};

/** Returns the titles of the waves: a number and a name for each wave of `rolloutWaves`, only a name for other waves. */
export function waveTitles({ waves }: Pick<GroupPlan, 'waves'>): readonly string[] {
  const names = rolloutWaves(waves);
  return waves.map(({ name }) => (names.includes(name) ? `${names.indexOf(name) + 1} ${name}` : name).trim());
}

/** The cells of a step. Only the first step of a wave has the title of the wave. Each format has its own sign for an absent number. */
type StepRow = Readonly<Record<'wave' | 'verb' | 'object' | 'gate' | 'p50' | 'p90' | 'start' | 'source', string>> & {
  readonly kind: PlannedStep['kind'];
  readonly podCount: number | undefined;
  readonly atOnce: number | undefined;
};

export function stepRows(group: GroupPlan): readonly StepRow[] {
  const titles = waveTitles(group);
  return group.waves.flatMap(({ steps }, number) =>
    steps.map((step, index) => ({
      kind: step.kind,
      wave: index === 0 ? (titles[number] ?? '') : '',
      verb: stepVerbs[step.kind],
      object: step.kind === 'soak' ? '' : [stepObject(step), ...gatesWithApproval(step, steps)].join(', gate '),
      podCount: stepPodCount(step),
      atOnce: step.atOnce,
      gate: stepGate(step),
      p50: stepSpan(step, step.p50Seconds),
      p90: stepSpan(step, step.p90Seconds),
      start: `+${spanText(step.startSeconds)}`,
      source: sourceText(step.source) ?? '',
    })),
  );
}

/** Returns a duration of a step; `?` for an approval without a duration, `-` for any other step without a duration. */
function stepSpan({ kind, p50Seconds }: PlannedStep, seconds: number | undefined): string {
  return p50Seconds === undefined && kind !== 'approval' ? '-' : spanText(seconds);
}

/** Returns the verb and the object of a step: `roll zone-a 19..0`. */
export function stepText(step: PlannedStep): string {
  return `${stepVerbs[step.kind]} ${stepObject(step)}`.trim();
}

/** Returns the object of a step: `zone-a 19..0`, `zone-c 20 -> 18`, the gate, or the wait. */
export function stepObject(step: PlannedStep): string {
  const replicas = step.from === undefined || step.to === undefined ? undefined : `${step.from} -> ${step.to}`;
  const { zone = '' } = step;
  const pods = replicas === undefined ? zonePodsText(zone, step.pods) : `${zone} ${replicas}`.trim();
  const hasPods = step.kind === 'roll' || step.kind === 'scaleUp' || step.kind === 'scaleDown' || step.kind === 'prepare';
  if (pods !== '' && hasPods) return pods;
  const subject = step.kind === 'approval' ? (approversText(step) ?? step.waitsFor) : step.waitsFor;
  return [subject, step.zone].filter((part) => part !== undefined).join(' ');
}

/** Returns the required approvers, from the limit of the rule that still waits. */
function approversText(step: PlannedStep): string | undefined {
  return step.rules.find((result) => result.outcome === 'wait' && lacksApproval(result))?.limit;
}

function stepGate(step: PlannedStep): string {
  switch (step.kind) {
    case 'roll':
    case 'scaleUp':
      return step.waitsFor ?? 'ready';
    case 'scaleDown':
    case 'prepare':
      return step.waitsFor ?? '-';
    case 'approval':
      return 'people';
    case 'wait':
      return waitGate(step);
    case 'soak':
      return ['time', ...(step.gates ?? [])].join(', ');
    case 'check':
      return step.gates?.filter((gate) => gate !== step.waitsFor).join(', ') || 'readings';
  }
}

function waitGate({ rules, waitsFor, gates = [] }: PlannedStep): string {
  const wait = rules.find(({ rule, outcome }) => rule === waitsFor && outcome === 'wait');
  if (rules.some(isUntilPerson)) return 'blocked';
  if (waitsFor === 'paused' || waitsFor === 'protected' || wait?.endsBy === 'person') return 'people';
  if (waitsFor === 'window') return wait?.limit ?? 'time';
  if (waitsFor?.includes('/') && wait?.earliestMs === undefined) return 'condition';
  return ['time', ...gates].join(', ');
}

export function stepPodCount(step: PlannedStep): number | undefined {
  if (step.pods.length > 0) return step.pods.length;
  return step.from === undefined || step.to === undefined ? undefined : Math.abs(step.to - step.from);
}

/** Returns a source as `policy/ingester.yaml:41:7` or as the field of an object; undefined if it is unknown. */
export function sourceText(source: Source | undefined): string | undefined {
  if (source?.file !== undefined) return [source.file, source.line, source.column].filter((part) => part !== undefined).join(':');
  const parts = [source?.object, source?.field].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(' ');
}

/** Returns the fact of a rule with its limit. With `nowMs`, ages in the fact are counted up to that time. */
export function factText(result: RuleResult, nowMs?: number): string {
  const fact = shownFact(result, nowMs);
  return result.limit === undefined ? fact : `${fact} (limit: ${result.limit})`;
}

/**
 * Returns when the deadline fails the run: `the run fails at 2026-08-22 12:31 UTC (in 5m): the last progress was 5m ago (limit: 10m)`. Only an
 * agent fails a run, so the text about an unattended group names the end of the deadline.
 */
export function deadlineText(result: RuleResult, nowMs: number | undefined, unattended?: string): string {
  return `${unattended === undefined ? 'the run fails at' : 'no agent fails the run; its deadline ends at'} ${untilText(result.earliestMs ?? 0, nowMs)} by ${result.rule}: ${factText(result, nowMs)}`;
}

/** Returns the fact with each instant as `2026-08-22 12:31 UTC`, and with `nowMs` also the time until then. */
export function shownFact(result: RuleResult, nowMs?: number): string {
  const fact = nowMs === undefined ? result.fact : factAt(result, nowMs);
  return fact.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (instant) => untilText(Date.parse(instant), nowMs));
}

/** Returns the message of a denial, and the order of the writes that avoids the denial, or the command that overrides it. */
export function deniedText({ message, hint, override }: Pick<Refusal, 'message' | 'hint' | 'override'>): string {
  return [message, hint, override && overrideText(override)].filter((part) => part !== undefined).join('; ');
}

export function overrideText(command: string): string {
  return `to override it: ${command}`;
}

/** Returns the results that cause a denial. Omits a fact that the message already contains. */
export function denyingResults(refusal: Refusal): readonly { readonly result: RuleResult; readonly fact: string | undefined }[] {
  return blockingResults(refusal.results).map((result) => ({
    result,
    fact: refusal.message.includes(result.fact) ? undefined : factText(result),
  }));
}

/** Returns the start time of a plan in milliseconds, or undefined if nothing in it depends on the calendar. */
export function startMs(plan: Plan): number | undefined {
  const parsed = Date.parse(plan.metadata.startsAt ?? '');
  return Number.isNaN(parsed) ? undefined : parsed;
}

/** Returns who stops the group, why and until when: `the group is paused by anna (INC-441), until 2026-08-22 12:31 UTC (in 59m)`. */
export function stopText({ limit, ...stop }: Stop, nowMs: number | undefined): string {
  const end = stopEndText(stop, (atMs) => untilText(atMs, nowMs));
  return `${stopFact(stop)}${limit === undefined ? '' : ` (limit: ${limit})`}${end}`;
}

/** Returns an instant and the time until then: `2026-08-22 12:31 UTC (in 59m)`. */
export function untilText(atMs: number, nowMs: number | undefined): string {
  const left = nowMs === undefined ? '' : atMs > nowMs ? ` (in ${leftText(atMs, nowMs)})` : ' (passed)';
  return `${minuteText(atMs)}${left}`;
}

/** Returns `rule: fact` for a result that an exception permits. The fact names the requester, the end and the reason of the exception. */
export function exceptionText(result: RuleResult, nowMs: number | undefined): string {
  return `${result.rule}: ${shownFact(result, nowMs)}`;
}

export function exceptionAndEndText(
  result: RuleResult,
  { namespace, group }: Pick<GroupPlan, 'namespace' | 'group'>,
  nowMs: number,
): string {
  const text = exceptionText(result, nowMs);
  const name = `${namespace}/${group}`;
  return result.exception === undefined ? text : `${text}. To end it: ${cancelCommand(name, result.exception)}`;
}

export function cancelCommand(name: string, request: string): string {
  return `kubectl rollout-group cancel ${name} ${request}`;
}

/** Returns the time until a future instant, at least `1s`. */
export function leftText(atMs: number, nowMs: number): string {
  return spanText(Math.max(1, (atMs - nowMs) / 1000));
}

export function stopAndEndText(stop: Stop, nowMs: number | undefined): string {
  return `${stopText(stop, nowMs)}. To end it: ${endsText(stop)}`;
}

/** Returns when a result `no` passes, for a result without a time. */
function passesOnlyBy(result: RuleResult): string {
  if (result.rule === 'view-complete')
    return result.endsWith === undefined
      ? 'passes when the manifests have the StatefulSets in the namespace of the group'
      : 'passes when the StatefulSet belongs to one zone only';
  if (result.rule === 'pin-webhook') return 'passes when the webhook on pod creation answers';
  if (isRejection(result)) return 'passes when the rejection is cancelled, or when its requester runs approve';
  if (lacksRequesters(result)) return 'passes when a webhook records requesters';
  if (result.rule === 'agent-access') return 'passes when the agent has this access';
  if (result.rule === 'run-failed') return 'passes after a retry or another pod template';
  return isLimitOfZero(result)
    ? 'passes when the limit is raised; to stop the group on purpose, pause it'
    : 'passes when the request or the rule is changed';
}

export function passesText(result: RuleResult, nowMs: number | undefined): string {
  const { earliestMs } = result;
  if (earliestMs !== undefined) return passesAtText({ ...result, earliestMs }, nowMs);
  switch (result.outcome) {
    case 'no':
      return passesOnlyBy(result);
    case 'unknown':
      return 'passes when the unknown value can be read';
    case 'wait':
      if (waitsForPartition(result))
        return 'passes when the agent has set the partitions: apply the group first, and the new template a few seconds later';
      if (isMisplacedUntilRetry(result)) return 'passes after a retry, or when the pods run that revision again';
      if (result.rule === 'view-complete') return 'passes when the StatefulSet controller has observed the change, normally within seconds';
      if (result.endsBy === 'person') return 'passes when the rule is changed, or by an exception';
      return `passes when ${passesWhen(result)}`;
    case 'ok':
    case 'skip':
      return 'blocks nothing';
  }
}

function passesAtText(
  { rule, age, earliestMs }: Omit<RuleResult, 'earliestMs'> & { readonly earliestMs: number },
  nowMs: number | undefined,
): string {
  if (rule === 'write-accepted') return `the agent repeats the write at ${untilText(earliestMs, nowMs)}`;
  // If nothing in a plan depends on the calendar, the plan has no start time, and its times are relative to the start.
  if (nowMs === undefined) return `passes ${spanText(earliestMs / 1000)} after the start if nothing else changes`;
  // After a failed preparation, the next one may fail too. A delay without a failure has an age, and ends at its time.
  if (rule === 'prepare-downscale' || (rule === 'delayed-downscale' && age === undefined))
    return `the agent calls the endpoint again at ${untilText(earliestMs, nowMs)}`;
  // The next readings of a gate may fail, also if nothing else changes.
  if (rule === 'gate')
    return earliestMs > nowMs ? `passes at ${untilText(earliestMs, nowMs)} at the earliest` : `passes when ${passesWhen({ rule })}`;
  return earliestMs <= nowMs
    ? `the wait ended at ${minuteText(earliestMs)}; passes with the next decision if nothing else changes`
    : `passes at ${untilText(earliestMs, nowMs)} if nothing else changes`;
}

/** Returns the condition for which a rule waits. A policy rule states the condition in its message. */
function passesWhen({ rule, digest }: Pick<RuleResult, 'rule' | 'digest'>): string {
  if (rule !== 'approval' && digest !== undefined) return 'the rule has the required approvals';
  if (rule === 'rolled-back') return 'a person retries the run, or another template is applied';
  return ruleCatalog.find(({ id }) => id === rule)?.title ?? 'the condition of the rule is false';
}

export function shortDigest(digest: string): string {
  return digest.replace(/^[a-z0-9]+:/, '').slice(0, 7);
}

/** Returns `58 restarts, 3 waves, 2 gates.` without the counts that are zero; empty if all of them are. */
export function totalsText({ restarts, scaleChanges, waves, gates, approvals }: GroupPlan['totals']): string {
  const counts = countsText([
    [restarts, 'restart'],
    [scaleChanges, 'scale change'],
    [waves, 'wave'],
    [gates, 'gate'],
    [approvals, 'approval'],
  ]);
  if (counts === '') return '';
  return approvals === 0 ? `${counts}.` : `${counts}; durations exclude the time for approvals.`;
}

/** Returns `2 restarts, 1 wave` without the counts that are zero. */
export function countsText(counts: readonly (readonly [count: number, noun: string])[]): string {
  return counts.flatMap(([count, noun]) => (count === 0 ? [] : [counted(count, noun)])).join(', ');
}

/** Returns what follows after the wait: `scale down b 5 -> 3; roll a 2..0, b 2..0 (6 pods), with the soaks of the waves canary, rest`. */
export function afterWaitText(group: GroupPlan): string | undefined {
  const scales = (['scaleUp', 'scaleDown'] as const).flatMap((kind) => {
    const changed = group.zones.flatMap(({ zone, replicasAfter: from, replicasAfterWait: to = from }) =>
      from !== to && from < to === (kind === 'scaleUp') ? [`${zone} ${from} -> ${to}`] : [],
    );
    return changed.length === 0 ? [] : [`${stepVerbs[kind]} ${changed.join(', ')}`];
  });
  const rolls = rollsAfterWait(group);
  const parts = [...scales, ...(rolls === undefined ? [] : [rolls])];
  return parts.length === 0 ? undefined : parts.join('; ');
}

function rollsAfterWait({ zones, checksAfterWait: checks = [] }: GroupPlan): string | undefined {
  const waiting = zones.flatMap(({ zone, afterWait }) => (afterWait === undefined ? [] : [{ zone, pods: afterWait }]));
  if (waiting.length === 0) return undefined;
  const count = waiting.reduce((sum, { pods }) => sum + pods.length, 0);
  const roll = `${stepVerbs.roll} ${waiting.map(({ zone, pods }) => zonePodsText(zone, pods)).join(', ')} (${counted(count, 'pod')})`;
  const [first, ...others] = checks;
  if (first === undefined) return roll;
  const kinds = [...new Set(checks.flatMap(({ kinds: ofWave }) => ofWave))];
  const nouns = kinds.map((kind) => (checks.filter((check) => check.kinds.includes(kind)).length === 1 ? kind : `${kind}s`));
  const place = others.length === 0 ? 'wave' : 'the waves';
  return `${roll}, with the ${listed(nouns, 'and')} of ${place} ${checks.map(({ wave }) => wave).join(', ')}`;
}

const outcomeWords: Readonly<Record<GroupPlan['outcome'], string>> = {
  complete: 'completes',
  unchanged: 'no changes',
  blocked: 'blocked',
  waits: 'waits',
};

/** Returns the outcome of a group; a group without restarts may still get another policy, and pods may be in no wave. */
export function outcomeText(group: GroupPlan): string {
  if (group.outcome === 'complete' && hasPodsInNoWave(group)) return 'completes its waves';
  return group.outcome === 'unchanged' && !isSame(group) ? 'no restarts, policy changes' : outcomeWords[group.outcome];
}

function hasPodsInNoWave({ zones }: GroupPlan): boolean {
  return zones.some(({ podsInNoWave }) => podsInNoWave !== undefined);
}

/** Reports whether neither the StatefulSets of the group nor the policies that bind it change. */
function isSame({ outcome, changes, policyChanges }: GroupPlan): boolean {
  return outcome === 'unchanged' && changes.length === 0 && policyChanges === undefined;
}

/** Returns `supersedes run 3f2a (to mimir:2.17.1): 3 of 9 pods updated; these pods are replaced again`; undefined without such a run. */
export function supersedesText({ supersedes }: Pick<GroupPlan, 'supersedes'>): string | undefined {
  if (supersedes === undefined) return undefined;
  const { run, kind, to, pods, updated, replacedAgain } = supersedes;
  const what = `supersedes ${kind === 'rollback' ? 'rollback' : 'run'} ${run}${to.length === 0 ? '' : ` (to ${firstOf(to, 3)})`}`;
  const which = replacedAgain < updated ? counted(replacedAgain, 'pod') : updated === 1 ? 'this pod' : 'these pods';
  const again = replacedAgain === 0 ? '' : `; ${which} ${replacedAgain === 1 ? 'is' : 'are'} replaced again`;
  return `${what}: ${updated} of ${counted(pods, 'pod')} updated${again}`;
}

/** Returns a sentence without subject for the run that the change supersedes, and for each block of the present templates that it ends. */
export function endedTexts(group: Pick<GroupPlan, 'supersedes' | 'ends' | 'zones'>): readonly string[] {
  const superseded = supersedesText(group);
  const { ends = [], zones } = group;
  const placeOf = (stop: Stop): string => (stop.zones.length === zones.length ? '' : ` of ${zonesText(stop.zones)}`);
  return [...(superseded === undefined ? [] : [superseded]), ...ends.map((stop) => `ends a block${placeOf(stop)}: ${stopFact(stop)}`)];
}

/** Returns the results of policy rules that wait for an approval of the plan, each once. The table of steps shows only the approvers. */
export function approvalReasons({ waves }: Pick<GroupPlan, 'waves'>): readonly RuleResult[] {
  const steps = waves.flatMap((wave) => wave.steps.filter(({ kind }) => kind === 'approval'));
  const reasons = steps.flatMap(({ rules }) => rules.find((result) => result.outcome === 'wait' && lacksApproval(result)) ?? []);
  return firstByKey(
    reasons.filter(({ rule }) => rule !== 'approval'),
    ({ rule, fact }) => `${rule} ${fact}`,
  );
}

/** Returns a text such as `waits for the approval of wave rest (1 from oncall)` for each approval of a plan, also after its wait. */
export function approvalTexts({ waves, checksAfterWait = [] }: Pick<GroupPlan, 'waves' | 'checksAfterWait'>): readonly string[] {
  const planned = waves.flatMap(({ name, steps }) => {
    const approvals = steps.filter(({ kind }) => kind === 'approval');
    return approvals.map(({ rules }) => {
      const { rule = 'approval', limit } = rules.find((result) => result.outcome === 'wait' && lacksApproval(result)) ?? {};
      return `${rule === 'approval' ? `wave ${name}` : `rule ${rule}`}${limit === undefined ? '' : ` (${limit})`}`;
    });
  });
  const isPlanned = (wave: string): boolean =>
    waves.some(({ name, steps }) => name === wave && steps.some(({ kind }) => kind === 'approval'));
  const later = checksAfterWait.filter(({ kinds, wave }) => kinds.includes('approval') && !isPlanned(wave));
  return [...new Set([...planned, ...later.map(({ wave }) => `wave ${wave}`)])].map((text) => `waits for the approval of ${text}`);
}

/** Returns each policy of a group with its place in a file, if it has one: `RolloutPolicy mimir/safety (policy/safety.yaml:3)`. */
export function policyTexts({ policies = [] }: GroupPlan): readonly string[] {
  return policies.map(({ object, source: { file, line } }) => `${object}${file === undefined ? '' : ` (${file}:${line})`}`);
}

export function splitByChange(plan: Plan): { readonly changed: readonly GroupPlan[]; readonly same: readonly GroupPlan[] } {
  const groups = byAttention(plan.groups);
  const isSilent = (group: GroupPlan): boolean => isSame(group) && !hasPodsInNoWave(group);
  return { changed: groups.filter((group) => !isSilent(group)), same: groups.filter(isSilent) };
}

/** Returns the replicas of a zone: `3`, or `3 → 5` if they change. */
export function replicasText({ replicasBefore, replicasAfter }: GroupPlan['zones'][number]): string {
  return replicasBefore === replicasAfter ? String(replicasAfter) : `${replicasBefore} → ${replicasAfter}`;
}

/** Sorts the groups by need of attention: blocked, waiting, changed, unchanged. The order is otherwise that of the plan. */
export function byAttention(groups: readonly GroupPlan[]): readonly GroupPlan[] {
  const order: readonly GroupPlan['outcome'][] = ['blocked', 'waits', 'complete', 'unchanged'];
  const rank = (group: GroupPlan) => (group.refused.length > 0 ? 0 : order.indexOf(group.outcome));
  return [...groups].sort((a, b) => rank(a) - rank(b));
}

/** Returns `100 groups: 2 blocked, 1 waiting, 40 with changes, 57 without changes`. */
export function groupsText(groups: readonly GroupPlan[]): string {
  const count = (outcome: GroupPlan['outcome']) => groups.filter((group) => group.outcome === outcome).length;
  const same = groups.filter(isSame).length;
  const parts = [
    [count('blocked'), 'blocked'],
    [count('waits'), 'waiting'],
    [count('complete') + count('unchanged') - same, 'with changes'],
    [same, 'without changes'],
  ] as const;
  const shown = parts.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`);
  return [counted(groups.length, 'group'), ...(shown.length === 0 ? [] : [shown.join(', ')])].join(': ');
}

export function hasDurations({ groups }: Plan): boolean {
  return groups.some(({ waves }) => waves.length > 0);
}

/** Returns the assumptions. Omits those about groups without steps, and if `isComplete` is false also those that equal the defaults. */
export function assumptionsText({ assumptions, groups }: Plan, { isComplete = true } = {}): string {
  const usual = isComplete ? [] : assumptionTexts(defaultAssumptions);
  const hasSteps = (name: string) => groups.some(({ group, waves }) => group === name && waves.length > 0);
  const own = Object.entries(assumptions.groups).filter(([name]) => hasSteps(name));
  return assumptionTexts({ ...assumptions, groups: Object.fromEntries(own) })
    .filter((text) => !usual.includes(text))
    .join(', ');
}

function assumptionTexts(assumptions: Assumptions): readonly string[] {
  const own = Object.entries(assumptions.groups);
  const metrics = Object.entries(assumptions.metrics).map(([name, value]) => `${name} ${value}`);
  return [
    `pods ${timesText(assumptions.pods)}`,
    ...(own.length > 1
      ? [`${counted(own.length, 'group')} with other durations`]
      : own.map(([name, times]) => `pods of ${name} ${timesText(times)}`)),
    `gates ${assumptions.gates}`,
    `approvals ${assumptions.approvals}`,
    `preparations ${assumptions.preparations}`,
    ...metrics,
  ];
}

function timesText({ drain, start }: Partial<PodTimes>): string {
  const parts = [
    drain === undefined ? '' : `stop in ${quantilesText(drain)}`,
    start === undefined ? '' : `start in ${quantilesText(start)}`,
  ];
  return parts.filter((part) => part !== '').join(' and ');
}

function quantilesText(quantiles: Quantiles): string {
  return `${spanText(quantiles.p50Seconds)} (p90 ${spanText(quantiles.p90Seconds)})`;
}
