// Defines the schemas that check a stored scenario and a stored plan before a simulation.
import { z } from 'zod';
import { strategyNames } from '../../policies/strategies.ts';
import { faultClasses } from '../faults/fault.ts';

const ms = z.number().int().min(0);
const letter = z.string().regex(/^[a-z]$/, 'expected one lower-case letter');
const ordinal = z.number().int().min(0);
const replicas = z.number().int().min(0);
const share = z.number().min(0).max(1);

const group = z.strictObject({
  kind: z.enum(['native', 'adopted']),
  zones: z.number().int().min(1).max(5),
  podsPerZone: z.number().int().min(1).max(20),
  maxUnavailable: z.union([z.number().int().min(1), z.string().regex(/^\d+%$/, 'expected a number or a percentage')]),
  minReadySeconds: z.number().int().min(0),
  podManagementPolicy: z.enum(['Parallel', 'OrderedReady']),
  rotateBy: z.enum(['delete', 'evict']),
  replicas: z.enum(['own', 'leader', 'mirror', 'delayedMirror']),
  delaySeconds: z.number().int().min(0),
  betweenZonesSeconds: z.number().int().min(0),
  drainMs: ms,
  startMs: ms,
  strategy: z.enum(strategyNames).optional(),
  gate: z.enum(['passing', 'flipping']).optional(),
});

const json = z.record(z.string(), z.unknown());

const given = z.strictObject({
  namespace: z.string().min(1),
  name: z.string().min(1),
  startMs: z.number().int().optional(),
  statefulSets: z.array(z.string().min(1)).min(1).max(26),
  objects: z.array(json),
  policies: z.array(z.strictObject({ name: z.string(), text: z.string() })),
  changes: z.array(json),
});

const atMs = ms;
const onPod = { atMs, zone: letter, ordinal };
const onZone = { atMs, zone: letter };
const onProcess = { atMs, process: letter };
const event = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('setImage'), atMs, image: z.string().min(1), zones: z.array(letter).optional() }),
  z.strictObject({ kind: z.literal('setReplicas'), atMs, replicas, zone: letter.optional() }),
  z.strictObject({ kind: z.literal('pause'), atMs }),
  z.strictObject({ kind: z.literal('resume'), atMs }),
  z.strictObject({ kind: z.literal('deletePod'), ...onPod }),
  z.strictObject({ kind: z.literal('scaleByHand'), ...onZone, replicas }),
  z.strictObject({ kind: z.literal('recreateStatefulSet'), ...onZone, isOrphaning: z.boolean(), afterMs: ms }),
  z.strictObject({ kind: z.literal('leaveGroup'), ...onZone, forMs: ms }),
  z.strictObject({ kind: z.literal('setStrategy'), ...onZone, type: z.enum(['OnDelete', 'RollingUpdate']), forMs: ms }),
  z.strictObject({ kind: z.literal('podFails'), ...onPod, forMs: ms }),
  z.strictObject({ kind: z.literal('podFlaps'), ...onPod, times: z.number().int().min(1) }),
  z.strictObject({ kind: z.literal('podDies'), ...onPod }),
  z.strictObject({
    kind: z.literal('slowKubelet'),
    atMs,
    startFactor: z.number().positive(),
    drainFactor: z.number().positive(),
    forMs: ms,
  }),
  z.strictObject({ kind: z.literal('stuckTerminating'), ...onPod, forMs: ms }),
  z.strictObject({ kind: z.literal('nodeLost'), ...onZone, forMs: ms }),
  z.strictObject({ kind: z.literal('nodeDrained'), ...onZone }),
  z.strictObject({ kind: z.literal('controllerLags'), atMs, delayMs: ms, forMs: ms }),
  z.strictObject({ kind: z.literal('controllerIsStale'), atMs, forMs: ms }),
  z.strictObject({ kind: z.literal('webhookAway'), atMs, forMs: ms }),
  z.strictObject({ kind: z.literal('crash'), ...onProcess, restartAfterMs: ms }),
  z.strictObject({ kind: z.literal('stop'), ...onProcess, restartAfterMs: ms }),
  z.strictObject({ kind: z.literal('pauseProcess'), ...onProcess, durationMs: ms }),
  z.strictObject({ kind: z.literal('jumpWallClock'), ...onProcess, byMs: z.number().int() }),
  z.strictObject({ kind: z.literal('deleteLease'), atMs }),
  z.strictObject({ kind: z.literal('editLease'), atMs }),
  z.strictObject({ kind: z.literal('frontEndLags'), atMs, frontEnd: ordinal, forMs: ms }),
  z.strictObject({ kind: z.literal('frontEndRestarts'), atMs, frontEnd: ordinal, isCompacted: z.boolean() }),
]);

const answers = z.union([z.literal([429, 500, 502, 503, 504]), z.enum(['malformed', 'truncated', 'tls'])]);
const requestFault = z.discriminatedUnion('kind', [
  z.strictObject({ class: z.literal('F1'), kind: z.literal('lost'), isSilent: z.boolean() }),
  z.strictObject({ class: z.literal('F2'), kind: z.literal('replyLost'), isSilent: z.boolean() }),
  z.strictObject({ class: z.literal('F3'), kind: z.literal('held'), delayMs: ms }),
  z.strictObject({ class: z.literal('F4'), kind: z.literal('foreignWrite') }),
  z.strictObject({
    class: z.literal('F5'),
    kind: z.literal('answer'),
    what: answers,
    isApplied: z.boolean(),
    retryAfterSeconds: z.number().min(0).optional(),
  }),
  z.strictObject({ class: z.literal('F6'), kind: z.enum(['expired', 'tooLarge']) }),
  z.strictObject({
    class: z.literal('F11'),
    kind: z.literal('crash'),
    moment: z.enum(['beforeSend', 'afterApply', 'afterReply']),
    restartAfterMs: ms,
  }),
  z.strictObject({ class: z.literal('F12'), kind: z.literal('pause'), durationMs: ms }),
]);
const lineFault = z.discriminatedUnion('kind', [
  z.strictObject({ class: z.literal('F6'), kind: z.literal('gone') }),
  z.strictObject({ class: z.literal('F7'), kind: z.literal('stall'), durationMs: ms }),
  z.strictObject({ class: z.literal('F7'), kind: z.literal('dead') }),
  z.strictObject({ class: z.literal('F8'), kind: z.literal('duplicate') }),
  z.strictObject({ class: z.literal('F8'), kind: z.literal('coalesce') }),
  z.strictObject({ class: z.literal('F8'), kind: z.literal('reconnectToPast'), behindMs: ms }),
  z.strictObject({ class: z.literal('F8'), kind: z.literal('hide'), lines: z.number().int().min(1), forMs: ms }),
  z.strictObject({
    class: z.literal('F10'),
    kind: z.literal('showVersion'),
    revision: z.number().int().min(0),
    forMs: ms,
    restartAfterMs: ms.optional(),
  }),
  z.strictObject({ class: z.literal('F9'), kind: z.literal('lose') }),
]);
const podFault = z.strictObject({
  class: z.literal('F21'),
  kind: z.enum(['refuse', 'hang', 'replyLost', 'error', 'redirect', 'hugeBody', 'lie', 'noTimestamp']),
  byMs: z.number().int().optional(),
});
const gateFault = z.strictObject({
  class: z.literal('F22'),
  kind: z.enum(['empty', 'nan', 'stale', 'partial', 'flip', 'unauthorized', 'hang']),
});

const at = z.string().regex(/^[a-z]\d+\/.+#\d+$/, 'expected PROCESS/SITE#N, such as a1/act.deletePod#2');
const placed = z.discriminatedUnion('port', [
  z.strictObject({ at, port: z.literal('request'), fault: requestFault }),
  z.strictObject({ at, port: z.literal('line'), fault: lineFault }),
  z.strictObject({ at, port: z.literal('pod'), fault: podFault }),
  z.strictObject({ at, port: z.literal('gate'), fault: gateFault }),
]);

/** The fields of a scenario. A stored plan has three further fields: `name`, `finds` and `why`. */
const fields = {
  seed: z.number().int().min(0),
  group,
  given: given.optional(),
  agents: z.number().int().min(1).max(5),
  clockRates: z.record(letter, z.number().positive()).optional(),
  safetyMs: ms,
  healingMs: ms,
  quietMs: ms.optional(),
  events: z.array(event),
  rates: z.partialRecord(z.enum(faultClasses), share),
  faults: z.array(placed),
};

export const scenarioSchema = z.strictObject(fields);

export const planSchema = z.strictObject({ name: z.string().min(1), finds: z.string().min(1), why: z.string().min(1), ...fields });
