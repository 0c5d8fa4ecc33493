// Renders the explanation of a live group from its decision, which the agent published or this command made.

import { ordinalsIn } from '../../engine/amount.ts';
import type { PublishedDecision, PublishedStep, PublishedZone } from '../../engine/publish/published.ts';
import { gatesWithReading, goesBack, noWaveTexts } from '../../engine/publish/status.ts';
import { updatedRevision } from '../../engine/publish/template-change.ts';
import { strategyTraits } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import type { LiveGroup, Subject } from '../live/groups.ts';
import { type Explanation, renderExplanation } from './explain.ts';
import {
  asOfText,
  currentRoll,
  metricText,
  readingText,
  seenAtMs,
  shortRevision,
  troubledPods,
  troubleOf,
  unreadZones,
  waveText,
  zoneWaitText,
} from './group-text.ts';
import { ageText, shortDigest } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { podText, shortPods } from './pod-text.ts';
import { reasonSuffix } from './text.ts';
import { countedLimit } from './zone-progress.ts';

interface LiveExplanation {
  readonly live: LiveGroup;
  /** The subject of the question. A pod or a StatefulSet limits the shown steps to its zone and `currentRoll`. */
  readonly subject: Subject;
  readonly nowMs: number;
  readonly showsAllRules: boolean;
  readonly outdated: readonly string[];
}

export function renderLiveExplanation({ live, subject, nowMs, showsAllRules, outdated }: LiveExplanation, look: TableLook): string {
  const { decision, from } = live;
  const isAbout = ({ zone }: Pick<PublishedStep, 'zone'>): boolean => zone === subject.zone;
  const isShown = (step: PublishedStep): boolean => subject.zone === undefined || isAbout(step) || step === currentRoll(decision);
  const steps = decision.steps.filter(isShown).map(({ results = [], ...step }) => ({ ...step, pods: [], results }));
  const explanation: Explanation = {
    decision: { ...decision, stops: decision.stops ?? [], actions: [], steps },
    // Without an agent the start of the phase is unknown.
    ...(from === 'here' ? {} : { phaseSinceMs: decision.phaseSinceMs }),
    outdated,
    isLive: true,
    ...defined({ unattended: live.unattended }),
    facts: [
      ...podFacts(live, subject, nowMs),
      ...waitFacts(decision, subject),
      ...strategyFacts(decision),
      ...gateFacts(decision, nowMs),
      ...(decision.metrics ?? []).map((metric): Fact => ['metric', metricText(metric, nowMs)]),
      // Admission allowed these disruptions. They count against the budget, because they can happen at any moment.
      ...(decision.reservations ?? []).map(
        ({ what, user, atMs }): Fact => ['allowed', `${shortPods(what, decision.zones)}, for ${user}, ${ageText(atMs, nowMs)} ago`],
      ),
      ...(decision.unenforced === undefined ? [] : [['webhooks', decision.unenforced] as const]),
      ...decision.actions.map(
        ({ what, result, message }): Fact => ['last', `${shortPods(what, decision.zones)}: ${result}${reasonSuffix(message)}`],
      ),
      ['decided', decidedText(live, nowMs)],
    ],
    trouble: troubleOf(
      decision.namespace,
      troubledPods(decision).toSorted((a, b) => Number(isAbout(b)) - Number(isAbout(a))),
    ),
    ...defined({ ends: endText(live) }),
    unread: unreadZones(decision),
    refused: [],
    nowMs,
    showsAllRules,
  };
  return renderExplanation(explanation, look);
}

/**
 * Returns the command that ends the rollout, as an alternative to the repair of the troubled pods. An abort needs the agent and, for its
 * verified requester, the webhooks; an undo does not.
 */
function endText({ decision, unattended }: LiveGroup): string | undefined {
  const { namespace, group, strategy, run, unenforced } = decision;
  if (run?.outcome !== 'running' || goesBack(run)) return undefined;
  if (unattended !== undefined || unenforced !== undefined)
    return `or undo the new revision: kubectl rollout-group undo ${namespace}/${group}`;
  const rollback = strategy !== undefined && strategyTraits[strategy].canRollBack ? ' --rollback' : '';
  return `or end the run: kubectl rollout-group abort ${namespace}/${group}${rollback}`;
}

type Fact = readonly [label: string, text: string];

function podFacts(live: LiveGroup, { pod: name, zone: zoneName }: Subject, nowMs: number): readonly Fact[] {
  const { zones, pods, omitted } = live.decision;
  const zone = zones.find((candidate) => candidate.zone === zoneName);
  if (name === undefined || zone === undefined) return [];
  const moving = pods.find(({ pod }) => pod === name);
  const revision = revisionOf(name, zone);
  const mark = revision === updatedRevision(zone) ? '' : ', outdated';
  const shown = revision === undefined ? '' : `; revision ${shortRevision(revision, zone.statefulSet)}${mark}`;
  const unnamed = omitted.some((part) => part.startsWith('pods:')) ? 'omitted from the published status' : 'not in flight';
  const state = moving === undefined ? unnamed : `${moving.state}${moving.reason === undefined ? '' : ` (${moving.reason})`}`;
  const since = moving?.sinceMs === undefined ? '' : ` for ${ageText(moving.sinceMs, seenAtMs(live, nowMs))}`;
  const asOf = live.unattended === undefined || live.from === 'here' ? '' : `, ${asOfText(live.decision, nowMs)}`;
  return [['pod', `${podText(zone.zone, name)}: ${state}${since}${asOf}${shown}`]];
}

/** Returns what the outdated pods of the zone wait for; [] if none is outdated or nothing blocks them, or if the given pod is updated. */
function waitFacts(decision: PublishedDecision, { zone: name, pod }: Subject): readonly Fact[] {
  const zone = decision.zones.find((candidate) => candidate.zone === name);
  if (zone === undefined || zone.updated === zone.replicas) return [];
  if (pod !== undefined && revisionOf(pod, zone) === updatedRevision(zone)) return [];
  const wait = zoneWaitText(decision, zone.zone);
  const wave = decision.wave === undefined ? '' : ` (wave ${waveText(decision)})`;
  const isAhead = wait !== undefined && zone.updated + (zone.podsInNoWave ?? 0) < zone.replicas;
  return [...(isAhead ? [`${zone.zone}: ${wait}${wave}`] : []), ...noWaveTexts([zone])].map((text): Fact => ['zone', text]);
}

function revisionOf(pod: string, { statefulSet, revisions }: PublishedZone): string | undefined {
  const ordinal = Number(pod.slice(statefulSet.length + 1));
  return revisions.find(({ ordinals }) => ordinalsIn(ordinals, countedLimit)?.includes(ordinal))?.revision;
}

/** Returns the partitions and pins of the zones. The strategy onDelete uses neither. */
function strategyFacts({ strategy, zones }: PublishedDecision): readonly Fact[] {
  if (strategy === undefined || !strategyTraits[strategy].holdsPartition) return [];
  const parts = zones.flatMap(({ zone, partition, pinned }) => [
    ...(partition === undefined ? [] : [`${zone} at partition ${partition}`]),
    ...(pinned === undefined ? [] : [`${zone} pinned ${pinned}`]),
  ]);
  return [['strategy', `${strategy}${parts.length === 0 ? '' : `: ${parts.join('; ')}`}`]];
}

function gateFacts(decision: PublishedDecision, nowMs: number): readonly Fact[] {
  return gatesWithReading(decision).map(({ gate, latest, mode }): Fact => {
    const reading = `${readingText(latest)}, ${ageText(latest.atMs, nowMs)} ago`;
    return ['gate', `${gate}: ${reading}${mode === 'observe' ? ' (observe only)' : ''}`];
  });
}

function decidedText({ decision, from, published }: LiveGroup, nowMs: number): string {
  const policy = decision.policyDigest === '' ? '' : `, policy ${shortDigest(decision.policyDigest)}`;
  if (from === 'here') {
    const because = published === undefined ? 'no agent has published a status' : 'a stop began or ended since the decision of the agent';
    return `by this command, because ${because}${policy}`;
  }
  const by = decision.leader === undefined ? '' : ` by ${decision.leader}`;
  return `${ageText(decision.decidedMs, nowMs)} ago${by}${policy}`;
}
