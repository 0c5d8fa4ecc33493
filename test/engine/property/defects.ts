// Deliberate defects of the engine, each a small change of its source. A property test that misses one of them proves nothing.

export interface Defect {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Which of the properties finds it. */
  readonly by: 'decisions' | 'runs' | 'partitions' | 'pins';
}

export const defects: readonly Defect[] = [
  {
    name: 'other zones are not looked at',
    file: 'engine/rules/roll.ts',
    find: 'const down = context.view.zones.filter((view) => !view.isReady);\n    const isLenient',
    replace: 'const down = context.view.zones.filter((view) => !view.isReady && view === zone.view);\n    const isLenient',
    by: 'decisions',
  },
  {
    name: 'a terminating pod counts as available',
    file: 'engine/observe/view.ts',
    find: "if (pod.phase !== 'Running' || pod.isTerminating) return false;",
    replace: "if (pod.phase !== 'Running') return false;",
    by: 'decisions',
  },
  {
    name: 'minReadySeconds is ignored',
    file: 'engine/observe/view.ts',
    find: 'nowMs - pod.readyChangedMs >= minReadySeconds * 1000',
    replace: 'nowMs - pod.readyChangedMs >= minReadySeconds * 0',
    by: 'decisions',
  },
  {
    name: 'announced disruptions are forgotten',
    file: 'engine/observe/view.ts',
    find: 'const claimed = new Set(claims.map((claim) => claim.uid));',
    replace: 'const claimed = new Set<string>(claims.length < 0 ? [] : []);',
    by: 'decisions',
  },
  {
    name: 'the budget is one too large',
    file: 'engine/rules/budget.ts',
    find: 'const free = Math.max(0, limit - view.unavailableCount);',
    replace: 'const free = Math.max(0, limit + 1 - view.unavailableCount);',
    by: 'decisions',
  },
  {
    name: 'a percentage is rounded up',
    file: 'engine/amount.ts',
    find: 'return Math.max(1, Math.floor((Number(limit.slice(0, -1)) * replicas) / 100));',
    replace: 'return Math.max(1, Math.ceil((Number(limit.slice(0, -1)) * replicas) / 100));',
    by: 'decisions',
  },
  {
    name: 'stuck pods go without a cap',
    file: 'engine/strategies/on-delete.ts',
    find: 'const inFlight = isRepair ? inFlightBefore(view, pod) : view.inFlight;',
    replace: 'const inFlight = -100;',
    by: 'decisions',
  },
  {
    name: 'a pod is cured the moment it is unready',
    file: 'engine/rules/pod-state.ts',
    find: 'nowMs - pod.readyChangedMs >= afterMs',
    replace: 'nowMs - pod.readyChangedMs >= 0 * afterMs',
    by: 'decisions',
  },
  {
    name: 'pods on a dead node are cured',
    file: 'engine/rules/pod-state.ts',
    find: 'pod.isTerminating || !pod.nodeReady ||',
    replace: 'pod.isTerminating ||',
    by: 'decisions',
  },
  {
    name: 'an old status is believed',
    file: 'engine/rules/roll.ts',
    find: 'set.status.observedGeneration < set.generation',
    replace: 'set.status.observedGeneration < 0 * set.generation',
    by: 'decisions',
  },
  {
    name: 'the delay of a downscale counts from nothing',
    file: 'engine/rules/prepare.ts',
    find: 'isWithinClockSkew(context, reported) ? Math.max(reported, entry.seenMs) : entry.seenMs',
    replace: 'isWithinClockSkew(context, reported) ? 0 : entry.seenMs',
    by: 'decisions',
  },
  {
    name: 'who has been prepared long enough goes without being asked again',
    file: 'engine/decide/preparations.ts',
    find: 'atMs >= ripeMs && atMs <= nowMs && nowMs - atMs <= maxAnswerAgeMs',
    replace: 'atMs <= nowMs + 0 * ripeMs',
    by: 'decisions',
  },
  {
    name: 'the time between zones is not asked for',
    file: 'engine/rules/scale.ts',
    find: 'evaluate: zoneGap,',
    replace: "evaluate: (question) => (zoneGap(question).outcome === 'ok' ? zoneGap(question) : result('zone-gap', 'skip', 'not asked')),",
    by: 'decisions',
  },
  {
    name: 'followers do not wait for their leader',
    file: 'engine/rules/scale.ts',
    find: "ready === leader.replicas ? 'ok' : 'wait'",
    replace: "ready >= 0 ? 'ok' : 'wait'",
    by: 'decisions',
  },
  {
    name: 'a zone may be scaled to nothing',
    file: 'engine/rules/scale.ts',
    find: "to >= floor ? 'ok' : 'no'",
    replace: "to >= 0 * floor ? 'ok' : 'no'",
    by: 'decisions',
  },
  {
    name: 'pods roll while another zone shrinks',
    file: 'engine/rules/roll.ts',
    find: 'view.surplus.length > 0 ||',
    replace: 'view.surplus.length < 0 ||',
    by: 'decisions',
  },
  {
    name: 'a zone shrinks in the middle of a rollout',
    file: 'engine/rules/scale.ts',
    find: "const isRunning = run !== undefined && run.outcome === 'running';",
    replace: "const isRunning = run !== undefined && run.outcome !== 'running';",
    by: 'runs',
  },
  {
    name: 'the new revision is replaced again',
    file: 'engine/observe/view.ts',
    find: 'const outdated = members.filter(({ revision }) => revision !== desiredRevision);',
    replace: 'const outdated = members.filter(({ revision, ordinal }) => revision !== desiredRevision || ordinal === 0);',
    by: 'decisions',
  },
  {
    name: 'pods that the StatefulSet controller may replace count as available',
    file: 'engine/observe/view.ts',
    find: 'const isBeingReplaced = claimed.has(pod.uid) || exposed.has(pod);',
    replace: 'const isBeingReplaced = claimed.has(pod.uid);',
    by: 'partitions',
  },
  {
    name: 'a partition is lowered past the budget',
    file: 'engine/strategies/partition.ts',
    find: '(!isTaken && left <= 0)',
    replace: '(!isTaken && left <= -1)',
    by: 'partitions',
  },
  {
    name: 'a partition is raised during a rollout',
    file: 'engine/strategies/partition.ts',
    find: 'if (view.updated === view.replicas) {',
    replace: 'if (view.updated > 0) {',
    by: 'partitions',
  },
  {
    name: 'a partition is raised before the current revision has caught up',
    file: 'engine/strategies/partition.ts',
    find: 'const isCurrent = set.status.currentRevision === set.status.updateRevision;',
    replace: 'const isCurrent = set.status.currentRevision !== undefined;',
    by: 'partitions',
  },
  {
    name: 'a pin is written without the pod that goes',
    file: 'engine/strategies/pinned/pins.ts',
    find: 'placements: before + 1, replaces: uid, atMs',
    replace: 'placements: before + 1, atMs',
    by: 'pins',
  },
  {
    name: 'a pod is taken away a third time so that it comes back at its revision',
    file: 'engine/strategies/pinned.ts',
    find: 'const maxPlacements = 2;',
    replace: 'const maxPlacements = 3;',
    by: 'pins',
  },
  {
    name: 'what pods come back at is not noted of those that nobody pinned',
    file: 'engine/strategies/pinned/pins.ts',
    find: 'const isForeign = known === undefined && traitsOf(group).pinsPods',
    replace: 'const isForeign = known !== undefined && traitsOf(group).pinsPods',
    by: 'pins',
  },
  {
    name: 'a pod comes back at a revision that it has not, and nobody wants',
    file: 'engine/strategies/pinned/pins.ts',
    find: 'return revision === view.desiredRevision && traitsOf(group).pinsPods;',
    replace: 'return view.desiredRevision.length > 0 && traitsOf(group).pinsPods;',
    by: 'pins',
  },
  {
    name: 'others go while a pod has not come back as it should',
    file: 'engine/strategies/pinned.ts',
    find: 'return again.length === 0 || isByOrdinal ? picked : picked.filter(({ pod }) => again.includes(pod));',
    replace: 'return again.length === 0 || isByOrdinal ? picked : [...picked];',
    by: 'pins',
  },
  {
    name: 'pods go while the StatefulSet controller replaces others by itself',
    file: 'engine/strategies/pinned.ts',
    find: '...partitionHeld(question.zone.view), ',
    replace: '',
    by: 'pins',
  },
];
