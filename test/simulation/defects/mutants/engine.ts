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
  ...mutantsOf('engine/run/included.ts', [
    [
      'pending-pods-not-counted',
      'a wave does not count the pods whose successors do not exist yet',
      'target - updated - pendingPods, outdated.length',
      'target - updated, outdated.length',
      inWaves,
    ],
  ]),
  ...mutantsOf('engine/run/waves.ts', [
    [
      'wave-ignores-other-zones',
      'a wave is available although a zone outside the wave is not ready',
      'isAvailable: isFilled && context.view.zones.every((zone) => zone.isReady) };',
      'isAvailable: isFilled && zones.every(({ view }) => view.isReady) };',
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
      'const previous = revisionsAfter(known, changed);',
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

const further = [
  ...mutantsOf('engine/rules/budget.ts', [
    [
      'ordered-pods-at-once',
      'several pods of a StatefulSet with OrderedReady are replaced at once',
      "'OrderedReady' ? 1 : Math.max(1, limit);",
      "'OrderedReady' ? Math.max(1, limit) : Math.max(1, limit);",
      ({ group }) => group.podManagementPolicy === 'OrderedReady' && group.kind === 'native',
    ],
    [
      'repair-takes-any-pod',
      'a zone that is repaired while another zone is not ready replaces any pod',
      "pickable.filter(({ because }) => because === 'stuck').slice(0, 1) : pickable;",
      'pickable.slice(0, 1) : pickable;',
      ({ group }) => group.kind === 'native',
    ],
  ]),
  ...mutantsOf('engine/strategies/on-delete.ts', [
    [
      'budget-not-used-up',
      'an available pod that is chosen uses no budget of the zone',
      "if (because === 'outdated' && isUp(question.context, view, pod)) left -= 1;",
      "if (because === 'stuck' && isUp(question.context, view, pod)) left -= 1;",
      ({ group }) => group.kind === 'native',
    ],
  ]),
  ...mutantsOf('engine/rules/scale.ts', [
    [
      'announced-scale-down-ignored',
      'a zone shrinks while another zone has the claim of a scale-down',
      'if (checksAll && (!view.isReady || isShrinking)) {',
      'if (checksAll && !view.isReady) {',
      (scenario) => scales(scenario) && scenario.group.kind === 'native',
    ],
  ]),
  ...mutantsOf('engine/rules/zone-gap.ts', [
    [
      'gap-from-oldest-scale-down',
      'the time between zones counts from the oldest scale-down',
      'shrunk.sort((a, b) => b.atMs - a.atMs ||',
      'shrunk.sort((a, b) => a.atMs - b.atMs ||',
      (scenario) => scales(scenario) && scenario.group.betweenZonesSeconds > 0,
    ],
    [
      'gap-ignores-claims',
      'the time between zones ignores announced scale-downs',
      'return [...announcedTimes(view), ...recorded.map((record) => record.atMs)];',
      'return [...recorded.map((record) => record.atMs)];',
      (scenario) => scales(scenario) && scenario.group.betweenZonesSeconds > 0,
    ],
  ]),
  ...mutantsOf('engine/rules/wave.ts', [
    [
      'changed-waves-need-no-approval',
      'waves that changed during a rollout need no new approval',
      '|| run.waves !== digestOfWaves(group));',
      ');',
      anyOf(...approvals),
    ],
    [
      'return-never-soaks',
      'a return to the earlier template skips soaks although skipOnRollback is false',
      "return run.kind === 'rollback' && context.group.rollout.skipOnRollback;",
      "return run.kind === 'rollback';",
      ({ group }) => group.soaksOnReturn === true,
    ],
    [
      'rejected-wave-continues',
      'a rejection of the end of a wave does not stop the wave',
      'context.group.rollout.waves.slice(run.wave).flatMap(',
      'context.group.rollout.waves.slice(run.wave + 1).flatMap(',
      anyOf('request: reject'),
    ],
    [
      'shorter-soak-counts',
      'a wave does not soak if an earlier wave with a shorter soak had its pods',
      '(earlier) => earlier.after.soakMs >= wave.after.soakMs',
      '() => true',
      anyOf('soak of a wave'),
    ],
  ]),
  ...mutantsOf('engine/decide/roll.ts', [
    [
      'open-zone-last',
      'a rollout continues with the open zone last',
      'Number(b.view === first) - Number(a.view === first)',
      'Number(a.view === first) - Number(b.view === first)',
    ],
  ]),
  ...mutantsOf('engine/decide/scale.ts', [
    [
      'leaving-pods-withdrawn',
      'the agent withdraws the preparations of the pods that leave',
      'calls: [...withdrawals(question, question.to), ...calls]',
      'calls: [...withdrawals(question, question.from), ...calls]',
      prepares,
    ],
    [
      'prepared-before-delay',
      'pods prepare for their removal before their delay has passed',
      'prepareDownscale(question, permitted);',
      'prepareDownscale(question, to);',
      prepares,
    ],
    [
      'old-number-written-back',
      'the replicas from before a change are written back to the mirrored object',
      'return { step, actions: [...calls, write], replicas: to,',
      'return { step, actions: [...calls, write], replicas: from,',
      ({ group }) => group.replicas.endsWith('irror'),
    ],
  ]),
  ...mutantsOf('engine/run/revisions.ts', [
    [
      'returning-run-is-reached',
      'the target of a run in which only some zones returned counts as reached',
      'return returning === undefined && (',
      'return (',
      anyOf('return of one zone'),
    ],
  ]),
  ...mutantsOf('engine/run/run.ts', [
    [
      'former-zone-open',
      'a zone that left the group stays the open zone',
      "target[rest.openZone ?? ''] === undefined ? closeZone(rest) : rest",
      'rest',
      anyEvent('leaveGroup'),
    ],
    [
      'failed-template-continues',
      'the template of another zone continues a failed rollout',
      '    if (staysFailed(context, known)) return known;\n',
      '',
      ({ group }) => group.kind === 'native',
    ],
    [
      'rolled-back-pods-roll',
      'pods at a rolled-back revision are replaced by a rollout, not by a rollback',
      "const kind = isBack ? 'rollback' : 'rollout';",
      "const kind = isBack ? 'rollout' : 'rollout';",
      pinned,
    ],
    [
      'retry-answers-no-abort',
      'a retry does not answer the abort before it',
      "['retry', 'abort'], retry.requestedBy.atMs",
      "['retry'], retry.requestedBy.atMs",
      anyOf('request: abort'),
    ],
  ]),
  ...mutantsOf('engine/run/states.ts', [
    [
      'reverted-replacement-in-wave',
      'a replacement of an earlier wave counts for the wave after a rejected replacement',
      'isSameWave ? lastMs : Math.min(lastMs, run.waveStartedMs - 1)',
      'lastMs',
      anyOf('waves', 'gate without waves'),
    ],
    [
      'in-flight-since-each-decision',
      'pods count as in flight since the latest decision',
      'return inFlightSinceMs === undefined ? { ...run, inFlightSinceMs: nowMs } : run;',
      'return { ...run, inFlightSinceMs: nowMs };',
      anyOf('deadline for progress'),
    ],
  ]),
  ...mutantsOf('engine/ledger/ledger.ts', [
    [
      'first-surplus-pod-ignored',
      'the claim of a scale-down ends while one surplus pod is left',
      'pods.some((pod) => pod.ordinal >= set.firstOrdinal + to)',
      'pods.some((pod) => pod.ordinal > set.firstOrdinal + to)',
      scales,
    ],
    [
      'scale-down-not-renewed',
      'a repeated scale-down keeps the time of its first claim',
      "return claim.verb === 'scaleDown' && claim.resourceVersion === known.resourceVersion && claim.atMs > known.atMs;",
      'return false;',
      scales,
    ],
    [
      'claim-ends-at-termination',
      'the claim on a pod ends when the pod terminates',
      'return claimed.isTerminating || !(isOverdue || isVoid(claim, claimed));',
      'return !(isOverdue || isVoid(claim, claimed));',
    ],
    [
      'epoch-reused',
      'a new leadership writes with the epoch of the ledger',
      'epoch >= leaseEpoch ? epoch + 1 : leaseEpoch;',
      'epoch > leaseEpoch ? epoch + 1 : leaseEpoch;',
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
      find: 'if (requestedBy === undefined) return false;',
      replace: 'if (requestedBy === undefined) return true;',
    },
  ],
  needs: anyOf(...approvals, 'policy rule that asks for an approval'),
};

export const engineMutants: readonly Mutant[] = [...views, ...waves, ...runs, anonymousApproval, ...rules, ...stored, ...further];
