// Defines the published form of a decision as a schema, and reads it from JSON.

import * as z from 'zod';
import { phases } from '../../policies/rollout/phases.ts';
import { strategyNames } from '../../policies/strategies.ts';
import type { Immutable } from '../../policies/values/immutable.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { Known } from '../snapshot.ts';
import { bytesOf } from './bounds.ts';
import { podStates, publishedByteLimit, publishedFormat } from './published.ts';

const text = z.string();
const count = z.int().min(0);
const instant = z.number().min(-8.64e15).max(8.64e15);
const outcome = z.enum(['ok', 'wait', 'no', 'skip', 'unknown']);

const source = z.object({
  file: text.exactOptional(),
  line: z.int().exactOptional(),
  column: z.int().exactOptional(),
  object: text.exactOptional(),
  field: text.exactOptional(),
});

const result = z.object({
  rule: text,
  outcome,
  fact: text,
  limit: text.exactOptional(),
  source: source.exactOptional(),
  earliestMs: instant.exactOptional(),
  digest: text.exactOptional(),
  exception: text.exactOptional(),
  endsBy: z.literal('person').exactOptional(),
  endsWith: text.exactOptional(),
  age: z.object({ words: text, fromMs: instant }).exactOptional(),
});

const revisions = z.record(z.string(), text);

/** One decision of one group. Instants are milliseconds since 1970. */
const published = z.object({
  /** `major.minor`; a reader refuses another major. */
  format: text,
  namespace: text,
  group: text,
  goal: text,
  phase: z.enum(phases),
  phaseSinceMs: instant,
  outcome: z.enum(['act', 'wait', 'blocked', 'done']),
  /** Absent in publications of earlier versions. */
  strategy: z.enum(strategyNames).exactOptional(),
  wave: z.object({ name: text, index: count, count }).exactOptional(),
  zones: z.array(
    z.object({
      zone: text,
      statefulSet: text,
      replicas: count,
      updated: count,
      available: z.int(),
      isReady: z.boolean(),
      revisions: z.array(z.object({ revision: text, ordinals: text })),
      /** The revision of updated pods. Absent while it is unknown, and in publications of earlier versions. */
      desiredRevision: text.exactOptional(),
      /** True if pods count as updated at the revision before a rollback; absent otherwise, and in publications of earlier versions. */
      isReturned: z.literal(true).exactOptional(),
      /** The outdated pods that no wave includes; absent without such pods, and in publications of earlier versions. */
      podsInNoWave: count.exactOptional(),
      /** Absent for a zone that was read, and in publications of earlier versions. */
      unread: z.enum(['missing', 'unreadable']).exactOptional(),
      /** The fields of the StatefulSet whose values its manifest does not contain; absent without any. */
      drift: z.object({ count, fields: z.array(z.object({ field: text, manager: text, atMs: instant.exactOptional() })) }).exactOptional(),
      /** The lowered partition under the strategy `partition`. It counts from `spec.ordinals.start`. */
      partition: count.exactOptional(),
      /** The ordinals with a pin under the strategy `pinned`. */
      pinned: text.exactOptional(),
    }),
  ),
  /** At most `publishedPodLimit` pods that are in replacement, in removal or not available. */
  pods: z.array(
    z.object({
      zone: text,
      pod: text,
      /**
       * `announced`: an open claim. `crashing`: a container fails. `nodeDown`: the node is not ready. `unready`: unavailable and outdated.
       * `starting`: unavailable and at the update revision. `leaving`: a surplus pod. `missing`: no pod.
       */
      state: z.enum(podStates),
      /** The waiting reason of a container, such as CrashLoopBackOff. */
      reason: text.exactOptional(),
      node: text.exactOptional(),
      /** The instant at which the state began; absent if unknown. */
      sinceMs: instant.exactOptional(),
    }),
  ),
  /** The blocking results. `zones`: the blocked zones. `sinceMs`: the start of the block. */
  waits: z.array(result.extend({ sinceMs: instant, zones: z.array(text) })),
  /** At most `publishedStopLimit`; absent in publications of earlier versions. */
  stops: z
    .array(
      z.object({
        rule: text,
        fact: text,
        limit: text.exactOptional(),
        source: source.exactOptional(),
        untilMs: instant.exactOptional(),
        by: text.exactOptional(),
        zones: z.array(text),
        isBlocking: z.boolean(),
        endsBy: z.literal('person').exactOptional(),
        endsWith: text,
        alternatives: z.array(text).exactOptional(),
        isAbort: z.literal(true).exactOptional(),
      }),
    )
    .exactOptional(),
  /** The StatefulSets that left the group and keep a partition, at most `publishedStopLimit`; absent without any. */
  left: z.array(z.object({ zone: text, statefulSet: text, fact: text, endsWith: text, alternatives: z.array(text) })).exactOptional(),
  /** The results that pass only because of an exception, at most `publishedStopLimit`; absent without any. */
  permitted: z.array(result).exactOptional(),
  /** The unexpired exceptions that permit nothing now, at most `publishedStopLimit`; absent without any. */
  unusedExceptions: z.array(result).exactOptional(),
  /** The deadline that fails the run first, at `earliestMs`; absent while no deadline counts, and in publications of earlier versions. */
  deadline: result.exactOptional(),
  steps: z.array(
    z.object({
      id: text,
      kind: z.enum(['roll', 'scaleUp', 'scaleDown']),
      zone: text,
      from: count.exactOptional(),
      to: count.exactOptional(),
      outcome: z.enum(['act', 'wait', 'blocked']),
      podCount: count,
      /** The results of all evaluated rules. If they do not fit: only the blocking results, or absent. */
      results: z.array(result).exactOptional(),
    }),
  ),
  warnings: z.array(result),
  gates: z.array(
    z.object({
      gate: text,
      mode: z.enum(['enforce', 'observe']),
      readings: count,
      /** The readings that count as failures; absent: zero. */
      failures: count.exactOptional(),
      latest: z
        .discriminatedUnion('result', [
          z.object({ atMs: instant, result: z.literal('value'), value: z.number() }),
          z.object({ atMs: instant, result: z.literal('noData') }),
          z.object({ atMs: instant, result: z.literal('error'), message: text }),
        ])
        .exactOptional(),
    }),
  ),
  /** At most `publishedMetricLimit` inputs of rules that bind the group; absent without inputs. */
  metrics: z
    .array(
      z.object({
        namespace: text,
        policy: text,
        input: text,
        source: text,
        question: text,
        value: z.number().exactOptional(),
        unknown: text.exactOptional(),
        atMs: instant.exactOptional(),
        problem: text.exactOptional(),
        /** The maximum age in milliseconds. An older reading counts as unknown. */
        maxAgeMs: count,
      }),
    )
    .exactOptional(),
  /** The current or last run. The fields of other outcomes are absent. */
  run: z
    .object({
      id: text,
      /** As in history, Events and notifications. */
      kind: z.enum(['rollout', 'rollback']),
      /** True if the run returns every changed zone to its earlier revision; absent if `kind` says so. Such a run is not rolled back. */
      returns: z.boolean().exactOptional(),
      target: revisions,
      previous: revisions,
      startedMs: instant,
      wave: count,
      waveStartedMs: instant,
      waveAvailableMs: instant.exactOptional(),
      openZone: text.exactOptional(),
      outcome: z.enum(['running', 'completed', 'failed']),
      failure: text.exactOptional(),
      failedMs: instant.exactOptional(),
      completedMs: instant.exactOptional(),
      rolledBack: z.object({ revisions, because: text }).exactOptional(),
      /** In a return of some zones: these zones. */
      returning: z.array(text).exactOptional(),
      /** In a return: the revision per zone that it restores. */
      restores: revisions.exactOptional(),
      /** The other revisions per zone that pods ran before the change. A return leaves these pods. */
      kept: z.record(z.string(), z.array(text)).exactOptional(),
    })
    .exactOptional(),
  openClaims: count,
  /** The reason why the webhooks may not receive every request that concerns the group; absent if no problem is known. */
  unenforced: text.exactOptional(),
  /** Admitted disruptions that have not ended, such as `evict pod 1 of zone a`: the latest first, at most `publishedReservationLimit`. */
  reservations: z.array(z.object({ what: text, user: text, atMs: instant })).exactOptional(),
  /** The actions of the last turn with actions, without preconditions. */
  actions: z.array(
    z.object({
      kind: z.enum([
        'deletePod',
        'evictPod',
        'scaleStatefulSet',
        'setPartition',
        'callPods',
        'writeBackReplicas',
        'advanceCurrentRevision',
      ]),
      zone: text.exactOptional(),
      /** The action as text: `delete pod ingester-zone-a-3`, `scale ingester-zone-a from 5 to 4`. */
      what: text,
      /** `conflict`: no effect, because the object had changed. `unknown`: 5xx or no answer, so the action may have happened. */
      result: z.enum(['done', 'conflict', 'refused', 'failed', 'unknown']),
      message: text.exactOptional(),
      atMs: instant,
    }),
  ),
  policyDigest: text,
  leader: text.exactOptional(),
  /** The Lease of the leader; absent if the leader has no Lease. */
  lease: z.object({ namespace: text, name: text }).exactOptional(),
  /** Origin of the group's definition: `directory`, `objects` or `adopted`. */
  origin: text.exactOptional(),
  decidedMs: instant,
  /** The earliest instant at which time alone could change the decision. */
  wakeAtMs: instant.exactOptional(),
  /** Omitted parts as `part: count`. */
  omitted: z.array(text),
});

export type PublishedDecision = Immutable<z.infer<typeof published>>;

/** Reads a published decision from JSON text or a value. Unknown if invalid, too long, or of another major format. */
export function readPublished(stored: unknown): Known<PublishedDecision> {
  const value = typeof stored === 'string' ? tryParseJson(stored) : stored;
  if (value === undefined || value === null) return { unknown: 'nothing is published' };
  const format = z.object({ format: z.string() }).safeParse(value);
  if (!format.success) return { unknown: 'the published value is not a decision' };
  const [major] = publishedFormat.split('.');
  if (format.data.format.split('.')[0] !== major) {
    return { unknown: `the published decision has the format ${format.data.format.slice(0, 20)}; this version reads ${publishedFormat}` };
  }
  // Fields of a newer format may make a decision longer than `publishedByteLimit`.
  if (bytesOf(value) > 2 * publishedByteLimit) return { unknown: 'the published decision is too long' };
  const read = published.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  return { unknown: `the published decision cannot be read: ${issue?.path.map(String).join('.')}: ${issue?.message}`.slice(0, 300) };
}
