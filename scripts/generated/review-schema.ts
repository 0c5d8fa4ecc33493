// Defines the JSON Schema of the review, for programs that read `review -o json`. Changes other than new fields need a new apiVersion.

import { policyAction } from '../../policies/schema/rollout-policy.ts';
import { count, listOf, oneOf, planSchema, type Schema, text } from './plan-schema.ts';

type Fields = Readonly<Record<string, Schema>>;

function record(description: string, required: Fields, optional: Fields = {}): Schema {
  return { type: 'object', description, properties: { ...required, ...optional }, required: Object.keys(required) };
}

function ref(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

function described(description: string, schema: Schema): Schema {
  return { ...schema, description };
}

const { $schema, $defs: planDefinitions, title: _title, ...plan } = planSchema as Schema & { readonly $defs: Fields };

const definitions: Fields = {
  ...planDefinitions,
  plan,
  sideDecision: record(
    'The decision of one side.',
    { decision: text, rules: described('The rules that block.', listOf(text)) },
    {
      waitSeconds: described('The time until the decision passes without any event.', count),
      pods: described('The pods that the agent replaces now.', count),
    },
  ),
  decision: record('A decision that both sides make differently.', {
    action: oneOf(...policyAction.options),
    may: described('The permission, as a clause.', text),
    when: described('The circumstances; may be empty.', listOf(text)),
    before: ref('sideDecision'),
    after: ref('sideDecision'),
    text: described('The difference, as a clause.', text),
  }),
  place: record('A rule of one side.', {}, { limit: text, source: ref('source') }),
  exception: record(
    'An exception that is added, removed or changed.',
    { name: text, rule: text, reason: text, expires: text },
    { zone: text, requestedBy: text, notBefore: text },
  ),
  effect: record(
    'A change of policies, with the decisions that it changes.',
    {
      direction: described('`changed`: no asked decision differs.', oneOf('loosened', 'tightened', 'changed')),
      namespace: text,
      group: text,
      cause: described('The change, as a clause.', text),
      decisions: listOf(ref('decision')),
    },
    {
      rule: text,
      before: ref('place'),
      after: ref('place'),
      exception: ref('exception'),
      isTested: described('A policy test of the head evaluates the rule for this group.', { type: 'boolean' }),
    },
  ),
  tests: record('The results of policy tests.', {
    passed: count,
    failed: count,
    coverage: record('The rules that both blocked and passed in a case, of the rules that the cases can reach.', {
      covered: count,
      rules: count,
    }),
    failures: listOf(record('A failed case.', { file: text, line: count, column: count, test: text, case: text, problems: listOf(text) })),
  }),
  environment: record(
    'The review of one environment.',
    {
      name: text,
      plan: ref('plan'),
      policies: record('The changes of decisions.', {
        effects: listOf(ref('effect')),
        asked: described('The number of questions that both sides answered.', count),
      }),
    },
    {
      cluster: text,
      isRemoved: described('The head does not define the environment, so later reviews leave it out.', { const: true }),
      tests: record('The policy tests of both sides.', { base: ref('tests'), head: ref('tests') }),
    },
  ),
};

export const reviewSchema: Schema = {
  $schema,
  title: 'Review',
  ...record('A review of the change between two revisions.', {
    apiVersion: { const: 'rollout-group.dev/cli/v1' },
    kind: { const: 'Review' },
    exitCode: count,
    base: text,
    head: text,
    environments: listOf(ref('environment')),
  }),
  $defs: definitions,
};
