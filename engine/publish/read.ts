// Reads a published decision from JSON and validates it.

import { z } from 'zod';
import { strategyNames } from '../../policies/strategies.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { Known } from '../snapshot.ts';
import { bytesOf } from './bounds.ts';
import { type PublishedDecision, podStates, publishedByteLimit, publishedFormat } from './published.ts';

const text = z.string();
const count = z.int().min(0);
const instant = z.number().min(-8.64e15).max(8.64e15);
const outcome = z.enum(['ok', 'wait', 'no', 'skip', 'unknown']);

const source = z.object({
  file: text.optional(),
  line: z.int().optional(),
  column: z.int().optional(),
  object: text.optional(),
  field: text.optional(),
});

const result = z.object({
  rule: text,
  outcome,
  fact: text,
  limit: text.optional(),
  source: source.optional(),
  earliestMs: instant.optional(),
  digest: text.optional(),
  age: z.object({ words: text, fromMs: instant }).optional(),
});

const revisions = z.record(z.string(), text);

const published = z.object({
  format: text,
  namespace: text,
  group: text,
  goal: text,
  phase: z.enum(['Done', 'Rolling', 'Scaling', 'Waiting', 'Paused', 'Blocked', 'Failed']),
  phaseSinceMs: instant,
  outcome: z.enum(['act', 'wait', 'blocked', 'done']),
  strategy: z.enum(strategyNames).optional(),
  wave: z.object({ name: text, index: count, count }).optional(),
  zones: z.array(
    z.object({
      zone: text,
      statefulSet: text,
      replicas: count,
      updated: count,
      available: z.int(),
      isReady: z.boolean(),
      revisions: z.array(z.object({ revision: text, ordinals: text })),
      partition: count.optional(),
      pinned: text.optional(),
    }),
  ),
  pods: z.array(
    z.object({
      zone: text,
      pod: text,
      state: z.enum(podStates),
      reason: text.optional(),
      node: text.optional(),
      sinceMs: instant.optional(),
    }),
  ),
  waits: z.array(result.extend({ sinceMs: instant, zones: z.array(text) })),
  stops: z
    .array(
      z.object({
        rule: text,
        fact: text,
        limit: text.optional(),
        source: source.optional(),
        untilMs: instant.optional(),
        zones: z.array(text),
        isBlocking: z.boolean(),
        endsWith: text,
        alternatives: z.array(text).optional(),
        isAbort: z.literal(true).optional(),
      }),
    )
    .optional(),
  steps: z.array(
    z.object({
      id: text,
      kind: z.enum(['roll', 'scaleUp', 'scaleDown']),
      zone: text,
      from: count.optional(),
      to: count.optional(),
      outcome: z.enum(['act', 'wait', 'blocked']),
      podCount: count,
      results: z.array(result).optional(),
    }),
  ),
  warnings: z.array(result),
  gates: z.array(
    z.object({
      gate: text,
      mode: z.enum(['enforce', 'observe']),
      readings: count,
      latest: z
        .discriminatedUnion('result', [
          z.object({ atMs: instant, result: z.literal('value'), value: z.number() }),
          z.object({ atMs: instant, result: z.literal('noData') }),
          z.object({ atMs: instant, result: z.literal('error'), message: text }),
        ])
        .optional(),
    }),
  ),
  metrics: z
    .array(
      z.object({
        namespace: text,
        policy: text,
        input: text,
        source: text,
        question: text,
        value: z.number().optional(),
        unknown: text.optional(),
        atMs: instant.optional(),
        problem: text.optional(),
        maxAgeMs: count,
      }),
    )
    .optional(),
  run: z
    .object({
      id: text,
      kind: z.enum(['rollout', 'rollback']),
      target: revisions,
      previous: revisions,
      startedMs: instant,
      wave: count,
      waveStartedMs: instant,
      waveAvailableMs: instant.optional(),
      openZone: text.optional(),
      outcome: z.enum(['running', 'completed', 'failed']),
      failure: text.optional(),
      failedMs: instant.optional(),
      completedMs: instant.optional(),
      rolledBack: z.object({ revisions, because: text }).optional(),
    })
    .optional(),
  openClaims: count,
  unenforced: text.optional(),
  reservations: z.array(z.object({ what: text, user: text, atMs: instant })).optional(),
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
      zone: text.optional(),
      what: text,
      result: z.enum(['done', 'conflict', 'refused', 'failed', 'unknown']),
      message: text.optional(),
      atMs: instant,
    }),
  ),
  policyDigest: text,
  leader: text.optional(),
  lease: z.object({ namespace: text, name: text }).optional(),
  origin: text.optional(),
  decidedMs: instant,
  wakeAtMs: instant.optional(),
  omitted: z.array(text),
});

/** Reads a published decision from JSON text or a value. Unknown if invalid, too long, or of another major format. */
export function readPublished(stored: unknown): Known<PublishedDecision> {
  const value = typeof stored === 'string' ? tryParseJson(stored) : stored;
  if (value === undefined || value === null) return { unknown: 'nothing is published' };
  const format = z.object({ format: z.string() }).safeParse(value);
  if (!format.success) return { unknown: 'the published value is not a decision' };
  const [major] = publishedFormat.split('.');
  if (format.data.format.split('.')[0] !== major) {
    return { unknown: `the published decision has the format ${format.data.format.slice(0, 20)}; known is ${publishedFormat}` };
  }
  // Fields of a newer format may make a decision longer than `publishedByteLimit`.
  if (bytesOf(value) > 2 * publishedByteLimit) return { unknown: 'the published decision is too long' };
  const read = published.safeParse(value);
  // The conversion drops undefined fields, which the type does not allow.
  if (read.success) return JSON.parse(JSON.stringify(read.data)) as PublishedDecision;
  const [issue] = read.error.issues;
  return { unknown: `the published decision cannot be read: ${issue?.path.map(String).join('.')}: ${issue?.message}`.slice(0, 300) };
}
