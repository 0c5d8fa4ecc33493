// Defines the JSON Schemas of the documents of `-o json`, `-o yaml` and `-o jsonl`, which may have further fields, and of policy files.

import { cliApiVersion, type OutputKind } from '../../plugin/output/formats.ts';
import { phases } from '../../policies/rollout/phases.ts';
import { draft } from '../../policies/schema/json-schema.ts';
import { type Kind, schemas } from '../../policies/schema/kinds.ts';
import { count, listOf, oneOf, planSchema, type Schema, text } from './plan-schema.ts';
import { reviewSchema } from './review-schema.ts';

const code: Schema = { type: 'integer', minimum: 0, maximum: 255 };
const instant: Schema = { type: 'string', format: 'date-time' };
const any: Schema = {};

type Fields = Readonly<Record<string, Schema>>;

function record(required: Fields, optional: Fields = {}): Schema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) };
}

const groupName = record({ namespace: text, name: text });
const rule = record({ rule: text, outcome: oneOf('ok', 'wait', 'no', 'skip', 'unknown'), fact: text });
const writers = listOf(record({}, { manager: text, operation: text, subresource: text, at: instant, zones: listOf(text) }));
const fieldChange = record({ path: text, operation: oneOf('add', 'remove', 'change', 'reorder') }, { writers });
const refusal = record({ what: text, message: text, results: listOf(rule) }, { hint: text, override: text });
const decided: Fields = { phase: oneOf(...phases), outcome: text, goal: text, zones: listOf(record({ zone: text })), waits: listOf(rule) };
const liveGroup: Fields = { group: groupName, decidedBy: text, ...decided };
const read = record({ generatedAt: instant, server: text });
const finding: Fields = { code: text, severity: oneOf('error', 'warning', 'notice'), message: text };
const event: Fields = { at: instant, namespace: text, object: text, reason: text, note: text };
const summary = { type: 'object', additionalProperties: count };
const plannedChange = record({ field: text, kind: text, zones: listOf(text), consequence: text }, { writers });
const checks = listOf(record({ check: text, verdict: oneOf('ok', 'warn', 'FAIL', 'SKIP'), message: text }));
const keptField = record({ field: text, manager: text, zones: listOf(text) }, { at: instant });

/** The required and optional fields of each kind, besides `apiVersion` and `kind`. The engine defines the schema of a plan. */
const documents = {
  Applied: [{ digest: text, groups: listOf(text), isNothing: { type: 'boolean' }, objects: listOf(record({ result: text })) }],
  Denial: [{ decision: text, events: listOf(record(event)) }, { now: record({ outcome: text, message: text }) }],
  Diagnosis: [{ exitCode: code, checks }],
  Difference: [
    {
      groups: listOf(
        record(
          {
            namespace: text,
            group: text,
            parts: listOf(record({ zones: listOf(text), changes: listOf(plannedChange) })),
            waits: listOf(rule),
            refused: listOf(refusal),
          },
          { kept: listOf(keptField) },
        ),
      ),
      objects: listOf(record({ object: text, operation: oneOf('created', 'deleted', 'changed'), changes: listOf(fieldChange) })),
    },
    { denied: listOf(record({ objects: listOf(text), message: text }, { hint: text })) },
  ],
  Event: [{ ...event, id: text }],
  EventList: [{ events: listOf(record({ ...event, id: text })) }],
  Explanation: [{}, { decision: record(decided), refused: listOf(refusal), metadata: read, subject: any, ...liveGroup }],
  Finding: [finding],
  FindingCode: [{ code: text, title: text, severity: text, explanation: text }, { hint: text }],
  Group: [liveGroup, { metadata: read }],
  GroupList: [{ metadata: read, groups: listOf(record(liveGroup)) }],
  GroupStatus: [liveGroup, { metadata: read, exitCode: code }],
  LintResult: [{ exitCode: code, summary, findings: listOf(record(finding)) }],
  Rule: [{ id: text, title: text, outcomes: listOf(text) }, { whenBlocked: text }],
  Run: [{ run: record({ id: text }) }],
  RunList: [{ runs: listOf(record({ id: text, namespace: text, group: text })) }, { group: record({ namespace: text, group: text }) }],
  SiblingDifference: [
    {
      groups: listOf(
        record({
          namespace: text,
          group: text,
          siblings: listOf(record({ zone: text, comparedWith: text, changes: listOf(fieldChange) })),
          perZone: listOf(text),
          missing: listOf(text),
        }),
      ),
    },
  ],
  Simulation: [{ groups: listOf(record({ namespace: text, group: text, zones: listOf(text), repeat: text })) }],
  TestResult: [
    {
      exitCode: code,
      summary,
      tests: listOf(record({ file: text, name: text, cases: listOf(record({ name: text, passed: { type: 'boolean' } })) })),
    },
  ],
  Topic: [{ name: text, title: text, markdown: text }],
  TopicList: [{ topics: listOf(record({ name: text, title: text })), codes: listOf(text), rules: listOf(text) }],
  Version: [{ client: record({ version: text, node: text }) }, { checks }],
} as const satisfies Readonly<Record<Exclude<OutputKind, 'Plan' | 'Review'>, readonly [required: Fields, optional?: Fields]>>;

export function outputSchemas(): Readonly<Record<string, Schema>> {
  const rows = Object.entries<readonly [Fields, Fields?]>(documents).map(([kind, [required, optional = {}]]): readonly [string, Schema] => {
    const envelope = { apiVersion: { const: cliApiVersion }, kind: { const: kind } };
    const title = { $schema: draft, title: kind };
    return [kind, { ...title, ...record({ ...envelope, ...required }, optional) }];
  });
  return { ...Object.fromEntries(rows), Plan: planSchema, Review: reviewSchema };
}

/** Returns the JSON Schema of a document of any kind; `reference` returns the address of the schema of a kind. */
export function policyFileSchema(reference: (kind: Kind) => string): object {
  const all = Object.keys(schemas) as Kind[];
  return {
    $schema: draft,
    title: 'A document of a policy file',
    type: 'object',
    required: ['apiVersion', 'kind'],
    properties: { kind: { enum: all } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
    allOf: all.map((kind) => ({ if: { properties: { kind: { const: kind } } }, then: { $ref: reference(kind) } })),
  };
}
