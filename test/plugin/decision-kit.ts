// Decisions built by hand for the renderers.
import type { GroupDecision, RuleResult, Step, ZoneDecision } from '../../engine/decision.ts';

export function zoneDecision(zone: string, rest: Partial<ZoneDecision> = {}): ZoneDecision {
  return { zone, statefulSet: `ingester-${zone}`, replicas: 20, updated: 0, available: 20, isReady: true, revisions: [], ...rest };
}

export function rollStep(zone: string, results: readonly RuleResult[], rest: Partial<Step> = {}): Step {
  const pods = ['ingester-zone-c-19', 'ingester-zone-c-18', 'ingester-zone-c-17'];
  const outcome = results.every((result) => result.outcome === 'ok' || result.outcome === 'skip') ? 'act' : 'wait';
  return { id: `roll/${zone}`, kind: 'roll', zone, pods, outcome, results, ...rest };
}

/** A group in the middle of its second wave. */
export function decision(rest: Partial<GroupDecision> = {}): GroupDecision {
  return {
    namespace: 'mimir',
    group: 'ingester',
    goal: '40 of 60 pods updated',
    phase: 'Rolling',
    outcome: 'act',
    wave: { name: 'rest', index: 1, count: 3 },
    zones: [zoneDecision('zone-a', { updated: 20 }), zoneDecision('zone-b', { updated: 7, available: 15 }), zoneDecision('zone-c')],
    steps: [],
    actions: [],
    waits: [],
    stops: [],
    warnings: [],
    wantedReadings: [],
    ...rest,
  };
}
