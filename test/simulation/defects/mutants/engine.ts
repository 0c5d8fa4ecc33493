// Lists mutants of the engine: of views, waves, runs, rules, pins and the ledger.
import type { Scenario } from '../../../../simulation/scenario.ts';
import { anyEvent, anyOf, type Mutant, mutantsOf, prepares } from './mutant.ts';

const scales = anyEvent('setReplicas');
const isBroken = (event: Scenario['events'][number]): boolean => event.kind === 'setImage' && event.image.startsWith('broken/');
const approvals = ['approval before a wave', 'approval after a wave'];
const gates = ['gate without waves', 'gate before a wave', 'gate after a wave'];
const inWaves = anyOf('waves', 'gate without waves');
const pinned = anyOf('strategy pinned');

const views = mutantsOf('engine/observe/view.ts', [
  [
    'cached-view-outlives-ready-time',
    'the cached view of a zone stays valid after a pod became available by time',
    'return view.availableAtMs === undefined || seen.nowMs < view.availableAtMs;',
    'return true;',
  ],
  [
    'cached-view-outlives-claims',
    'the cached view of a zone without claims also applies to the zone with claims',
    'if (seen.claims.length > 0 || view.desiredRevision',
    'if (view.desiredRevision',
    anyOf('budget for disruptions by others'),
  ],
  [
    'surplus-counts-as-ready',
    'a zone with surplus pods counts as ready',
    'isReady: unavailable === 0 && surplus.length === 0 && gap === 0,',
    'isReady: unavailable === 0 && gap === 0,',
    anyEvent('setReplicas', 'scaleByHand'),
  ],
  [
    'claimed-pod-counts-as-available',
    'a pod with an open claim counts as available until it terminates',
    'if (!down.has(pod) && !isBeingReplaced) available.add(pod.ordinal);',
    'if (!down.has(pod)) available.add(pod.ordinal);',
  ],
  [
    'new-template-ignored-after-rollback',
    'after a rollback, a zone keeps the restored revision when its template changes',
    'restoredRevision(run, name, status.updateRevision) : undefined;',
    'restoredRevision(run, name, run?.rolledBack?.revisions[name]) : undefined;',
    pinned,
  ],
  [
    'missing-pods-by-status',
    'the number of missing pods comes from the status of the StatefulSet',
    'const missing = set.replicas - members.length;',
    'const missing = set.status.replicas - members.length;',
    inWaves,
  ],
]);

const waves = [
  ...mutantsOf('engine/run/waves.ts', [
    [
      'wave-ignores-other-zones',
      'a wave is available although a zone outside the wave is not ready',
      'isAvailable: isFilled && context.view.zones.every((zone) => zone.isReady) };',
      'isAvailable: isFilled && zones.every(({ view }) => view.isReady) };',
      inWaves,
    ],
    [
      'pending-pods-not-counted',
      'a wave does not count the pods whose successors do not exist yet',
      'target - view.updated - view.pendingPods, view.outdated.length',
      'target - view.updated, view.outdated.length',
      inWaves,
    ],
    [
      'soak-continues-while-unavailable',
      'the soak of a wave continues while a pod is unavailable',
      'return { run: clearWaveAvailable(run), progress, ...noChecks };',
      'return { run, progress, ...noChecks };',
      anyOf('soak of a wave', ...gates),
    ],
    [
      'run-ends-with-stale-status',
      'a run completes although a status is older than its spec',
      '(progress.isAvailable && after.length === 0)',
      'progress.isAvailable',
    ],
    ['open-zone-kept', 'a finished zone stays open until the run ends', 'return hasMore ? run : closeZone(run);', 'return run;'],
  ]),
  ...mutantsOf('engine/decide/roll.ts', [
    [
      'only-first-wave-checks',
      'only the first wave of a run waits for approvals and gates before its first pod',
      'return hasReplacedSince(run, run.waveStartedMs) ? underWay',
      'return hasReplacedSince(run, run.startedMs) ? underWay',
      anyOf(...approvals, ...gates),
    ],
  ]),
  ...mutantsOf('engine/rules/wave.ts', [
    [
      'gate-readings-before-wave',
      'a gate before a wave also counts readings from earlier waves',
      'sinceMs: Math.max(run.waveStartedMs, run.retriedMs ?? 0), results });',
      'sinceMs: Math.max(run.startedMs, run.retriedMs ?? 0), results });',
      anyOf(...gates),
    ],
  ]),
  ...mutantsOf('engine/rules/gate.ts', [
    [
      'gate-one-success-short',
      'a gate passes with one success less than it requires',
      'const streak = judged.length - 1 - judged.findLastIndex(',
      'const streak = judged.length - judged.findLastIndex(',
      anyOf(...gates),
    ],
    [
      'gate-counts-errors',
      'a reading that failed counts as a success of the gate',
      "judged.findLastIndex((verdict) => verdict !== 'success');",
      "judged.findLastIndex((verdict) => verdict === 'failure');",
      anyOf(...gates),
    ],
  ]),
];

const runs = [
  ...mutantsOf('engine/run/states.ts', [
    ['retry-not-recorded', 'a retry does not record its time', '    retriedMs: nowMs,\n', '', anyOf('request: retry')],
    ['wave-keeps-start-time', 'the next wave keeps the start time of the wave before', 'wave, waveStartedMs: nowMs };', 'wave };'],
    [
      'zone-not-opened',
      'the replacement of a pod does not open its zone',
      '...digest, openZone: zone, lastDisruptionMs: nowMs, inFlightSinceMs',
      '...digest, lastDisruptionMs: nowMs, inFlightSinceMs',
    ],
    [
      'soak-restarts-each-decision',
      'the soak of a wave starts again at each decision',
      'return run.waveAvailableMs === undefined ? extended(run, { waveAvailableMs: nowMs }) : run;',
      'return extended(run, { waveAvailableMs: nowMs });',
      anyOf('soak of a wave'),
    ],
  ]),
  ...mutantsOf('engine/run/requests.ts', [
    [
      'abort-outlives-retry',
      'an abort counts again after a retry of the run',
      ': !run.answered.includes(digestOfRequest(intent)),',
      ": action === 'abort' || !run.answered.includes(digestOfRequest(intent)),",
      anyOf('request: abort'),
    ],
    [
      'promotion-of-any-wave',
      'a request that skips one wave skips every wave',
      '(intent.wave === undefined || intent.wave === wave) &&',
      '',
      anyOf('request: promote'),
    ],
  ]),
  ...mutantsOf('engine/run/run.ts', [
    [
      'unfinished-target-as-previous',
      'a run that supersedes an unfinished run restores the target of the unfinished run',
      'const previous = isReached ? known.target : revisionsBefore(known);',
      'const previous = known.target;',
      pinned,
    ],
  ]),
  ...mutantsOf('engine/rules/approval.ts', [
    [
      'early-approval-after-wave',
      'an approval after a wave counts although it is older than the last replacement',
      'sinceMs === undefined || requestedBy === undefined || requestedBy.atMs >= sinceMs;',
      'sinceMs === undefined || requestedBy === undefined || requestedBy.atMs > 0;',
      anyOf(...approvals),
    ],
  ]),
];

const rules = [
  ...mutantsOf('engine/rules/roll.ts', [
    [
      'pause-of-group-ignored',
      'a pause of the whole group stops no zone',
      'found.find((intent) => intent.zone === undefined) ?? found.find(',
      'found.find(',
      ({ events }) => events.some(({ kind }) => kind === 'pause'),
    ],
    [
      'interval-from-start',
      'the minimum interval counts from the start of the run',
      'const passed = context.nowMs - run.lastDisruptionMs;',
      'const passed = context.nowMs - run.startedMs;',
      anyOf('minInterval'),
    ],
  ]),
  ...mutantsOf('engine/run/durations.ts', [
    [
      'deadline-forgets-retry',
      'the progress deadline does not start again after a retry',
      'run.lastDisruptionMs ?? 0, run.retriedMs ?? 0, run.inFlightSinceMs ?? 0);',
      'run.lastDisruptionMs ?? 0, run.inFlightSinceMs ?? 0);',
      anyOf('deadline for progress'),
    ],
  ]),
  ...mutantsOf('engine/rules/pod-state.ts', [
    [
      'stuck-only-if-crashing',
      'a pod counts as stuck only if it crashes and was unready for long enough',
      "return isCrashing(pod) || (when === 'any'",
      "return isCrashing(pod) && (when === 'any'",
      ({ group, events }) => group.replaceUnreadySeconds !== undefined && events.some(isBroken),
    ],
    [
      'partition-off-by-one',
      'the pod at the partition counts as below the partition',
      'return pod.ordinal < partitionOrdinal(set);',
      'return pod.ordinal <= partitionOrdinal(set);',
      anyOf('strategy partition', 'strategy pinned'),
    ],
  ]),
  ...mutantsOf('engine/rules/scale.ts', [
    [
      'follower-above-leader',
      'a follower keeps more replicas than its leader',
      "result('leader-floor', to >= floor ? 'ok' : 'wait'",
      "result('leader-floor', to > floor ? 'ok' : 'wait'",
      ({ group }) => group.replicas === 'leader',
    ],
  ]),
  ...mutantsOf('engine/rules/prepare.ts', [
    [
      'first-leaving-pod-withdrawn',
      'the agent withdraws the preparation of the lowest leaving pod',
      'entry.call === call && entry.ordinal < end).map(',
      'entry.call === call && entry.ordinal <= end).map(',
      prepares,
    ],
  ]),
  ...mutantsOf('engine/decide/scale.ts', [
    ['several-zones-scale', 'one turn changes the replicas of several zones', '    if (isScaling) break;\n', '', scales],
  ]),
];

const stored = [
  ...mutantsOf('engine/ledger/ledger.ts', [
    [
      'claims-without-target',
      'a claim on a scale-down to another number counts as the same claim',
      'known.verb === claim.verb && known.uid === claim.uid && known.to === claim.to',
      'known.verb === claim.verb && known.uid === claim.uid',
      scales,
    ],
    [
      'scale-down-dated-at-claim',
      'a scale-down is dated when its claim was opened, not when its request may have arrived',
      'const atMs = Math.max(claim.atMs, Math.min(seenMs, claim.atMs + unappliedClaimMs));',
      'const atMs = claim.atMs;',
      (scenario) => scales(scenario) && scenario.group.betweenZonesSeconds > 0,
    ],
  ]),
  ...mutantsOf('engine/strategies/pinned/pins.ts', [
    [
      'replaced-pin-not-restored',
      'a pin is lost if the replacement of its pod was not sent',
      ', ...(before.pins ?? []).filter(isUndone)];',
      '];',
      pinned,
    ],
    [
      'pin-of-absent-pod-dropped',
      'the pin of an absent pod is dropped during a run',
      'return !isOver || (ordinal >= set.firstOrdinal',
      'return isOver && (ordinal >= set.firstOrdinal',
      pinned,
    ],
  ]),
];

const anonymousApproval: Mutant = {
  id: 'anonymous-approval',
  title: 'an approval counts without a verified requester',
  edits: [
    {
      file: 'engine/rules/approval.ts',
      find: 'const timely = approvals.filter((intent) => isVerified(context, intent));',
      replace: 'const timely = approvals;',
    },
    {
      file: 'engine/rules/approval.ts',
      find: 'if (intent.requestedBy === undefined) return false;',
      replace: 'if (intent.requestedBy === undefined) return true;',
    },
  ],
  needs: anyOf(...approvals, 'policy rule that asks for an approval'),
};

export const engineMutants: readonly Mutant[] = [...views, ...waves, ...runs, anonymousApproval, ...rules, ...stored];
