// Defines the JSON Schema of the plan document, for programs that read `plan -o json`. Changes other than new fields need a new apiVersion.

export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: 'string' };
export const count: Schema = { type: 'integer', minimum: 0 };
const seconds: Schema = { type: 'number', minimum: 0 };
const positive: Schema = { type: 'integer', minimum: 1 };

export function oneOf(...values: readonly string[]): Schema {
  return { enum: values };
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values };
}

function ref(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

function record(description: string, required: Readonly<Record<string, Schema>>, optional: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    description,
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
  };
}

const instant: Schema = { type: 'number', description: 'Milliseconds since 1970, or since the start of a plan without startsAt.' };

const hint: Schema = { type: 'string', description: 'The order of the writes that avoids the denial.' };

const outcome = oneOf('complete', 'unchanged', 'blocked', 'waits');

const definitions: Readonly<Record<string, Schema>> = {
  source: record('The place of a definition.', {}, { file: text, line: positive, column: positive, object: text, field: text }),
  rule: record(
    'The result of one rule.',
    { rule: text, outcome: oneOf('ok', 'wait', 'no', 'skip', 'unknown'), fact: text },
    {
      limit: text,
      digest: { type: 'string', description: 'The digest that an approval must name.' },
      endsBy: { const: 'person', description: 'Neither time nor progress ends the wait.' },
      endsWith: { type: 'string', description: 'The command or edit with which a person ends the result.' },
      exception: { type: 'string', description: 'The exception that permits what the rule would block.' },
      source: ref('source'),
      earliestMs: instant,
      age: ref('age'),
    },
  ),
  age: record('A duration in a fact that grows with time.', {
    words: { type: 'string', description: 'The text of the duration in the fact.' },
    fromMs: instant,
  }),
  stop: record(
    'A pause, protection, undo, rejection, window, policy rule or failed run that stops the plan.',
    { rule: text, fact: text, zones: listOf(text), isBlocking: { type: 'boolean' }, endsWith: text },
    {
      limit: text,
      source: ref('source'),
      untilMs: instant,
      by: text,
      endsBy: { const: 'person', description: 'Only a person ends the stop.' },
      alternatives: { ...listOf(text), description: 'Other commands or edits that end the stop.' },
      isAbort: { const: true, description: 'The stop is an abort that only pauses.' },
    },
  ),
  check: record('The kinds of checks of a wave.', { wave: text, kinds: listOf(oneOf('soak', 'gate', 'approval')) }),
  change: record(
    'A difference between the running and the requested objects.',
    {
      kind: oneOf('template', 'pods', 'replicas', 'settings', 'created', 'deleted', 'source', 'budget'),
      zones: listOf(text),
      field: text,
      consequence: oneOf('restart', 'scaleUp', 'scaleDown', 'none', 'refused'),
    },
    {
      before: { description: 'The old value. For a list that is compared as a set: the removed entries.' },
      after: { description: 'The new value. For a list that is compared as a set: the added entries.' },
      running: {
        ...listOf(ref('runningValue')),
        description:
          'The values in the pods, the most frequent first. Absent if all pods have `before`. If `before` equals `after`, the field changes only in pods.',
      },
    },
  ),
  runningValue: record(
    'A value of a field in pods. Without `value`, the template of these pods does not have the field.',
    { pods: count },
    { value: { description: 'The value in the template that the pods run.' } },
  ),
  supersededRun: record('A run in progress that the change ends before it completes.', {
    run: text,
    kind: oneOf('rollout', 'rollback'),
    to: { ...listOf(text), description: 'The change of the run: the new images, else the changed fields, else the revisions.' },
    pods: count,
    updated: { ...count, description: 'Number of pods that already have the template of the run.' },
    replacedAgain: { ...count, description: 'Number of updated pods that get another template and are replaced again.' },
  }),
  step: record(
    'One step of the plan.',
    {
      kind: oneOf('roll', 'scaleUp', 'scaleDown', 'prepare', 'check', 'soak', 'approval', 'wait'),
      pods: listOf(text),
      startSeconds: seconds,
      rules: listOf(ref('rule')),
    },
    {
      zone: text,
      atOnce: count,
      from: count,
      to: count,
      waitsFor: text,
      gates: listOf(text),
      source: ref('source'),
      p50Seconds: seconds,
      p90Seconds: seconds,
    },
  ),
  wave: record('The steps of one wave.', { name: text, steps: listOf(ref('step')) }),
  refusal: record(
    'A requested change that policy denies.',
    { what: text, message: text, results: listOf(ref('rule')) },
    { zone: text, hint, override: { type: 'string', description: 'The command that overrides the rules of the denial.' } },
  ),
  risk: record(
    'An allowed change that deserves a review.',
    { code: text, severity: oneOf('warning', 'notice'), message: text },
    { source: ref('source') },
  ),
  zone: record(
    'The changes of one zone.',
    { zone: text, statefulSet: text, replicasBefore: count, replicasAfter: count, restarts: count },
    {
      afterWait: { ...listOf(text), description: 'Pods that are replaced once the plan no longer waits. They count as restarts.' },
      replicasAfterWait: { ...count, description: 'The replicas to which the zone scales once the plan no longer waits.' },
      podsInNoWave: { ...count, description: 'Number of pods that are outdated at the end of the plan, because no wave includes them.' },
      released: {
        ...listOf(text),
        description:
          'Pods that the StatefulSet controller replaces after the agent released the zone, because the group was deleted. They count as restarts.',
      },
    },
  ),
  totals: record(
    'Totals of the group. Durations exclude the time for approvals, and are absent if the plan does not complete or releases zones.',
    { restarts: count, scaleChanges: count, waves: count, gates: count, approvals: count },
    { p50Seconds: seconds, p90Seconds: seconds },
  ),
  span: record('One span of a timeline.', {
    zone: text,
    kind: oneOf('roll', 'scaleUp', 'scaleDown', 'prepare', 'soak', 'wait'),
    label: text,
    startSeconds: seconds,
    endSeconds: seconds,
  }),
  pod: record(
    'A pod that does not become available by itself.',
    { zone: text, pod: text, state: oneOf('crashing', 'nodeDown') },
    { reason: text, node: text, sinceMs: instant },
  ),
  policy: record('A policy that applies to a group.', { object: text, source: ref('source') }),
  objectChange: record('A change of an object, with the changed fields.', {
    object: text,
    operation: oneOf('created', 'deleted', 'changed'),
    fields: listOf(text),
  }),
  denial: record(
    'A denial of the API server beyond the rules of the groups, with the denied objects.',
    { objects: listOf(text), message: text },
    { hint },
  ),
  group: record(
    'The plan of one group.',
    {
      namespace: text,
      group: text,
      outcome,
      changes: listOf(ref('change')),
      waves: listOf(ref('wave')),
      refused: listOf(ref('refusal')),
      risks: listOf(ref('risk')),
      waits: listOf(ref('rule')),
      zones: listOf(ref('zone')),
      totals: ref('totals'),
      timeline: listOf(ref('span')),
    },
    {
      supersedes: ref('supersededRun'),
      ends: {
        ...listOf(ref('stop')),
        description: 'The blocks of the present templates that the change ends: a failed run, a rollback or an undo.',
      },
      stops: { ...listOf(ref('stop')), description: 'The stops that the plan meets, each with the commands or edits that end it.' },
      checksAfterWait: { ...listOf(ref('check')), description: 'The checks of waves that follow once the plan no longer waits.' },
      troubled: {
        ...listOf(ref('pod')),
        description: 'The pods that do not become available by themselves at the end of a plan that waits.',
      },
      permitted: { ...listOf(ref('rule')), description: 'Results that pass only because of an exception in force.' },
      policies: { ...listOf(ref('policy')), description: 'The policies that apply to the group.' },
      policyChanges: { ...listOf(text), description: 'Changed objects that bind the group, such as a policy.' },
    },
  ),
  quantiles: record('The median and the 90th percentile of a duration, in seconds.', { p50Seconds: seconds, p90Seconds: seconds }),
  podTimes: record('The durations of pods.', {}, { drain: ref('quantiles'), start: ref('quantiles') }),
  assumptions: record('The assumptions behind the times and the outcome.', {
    pods: record('The times of every group without its own entry.', { drain: ref('quantiles'), start: ref('quantiles') }),
    groups: mapOf(ref('podTimes')),
    gates: oneOf('pass', 'fail'),
    approvals: oneOf('given', 'missing'),
    preparations: oneOf('succeed', 'fail'),
    metrics: mapOf({ type: 'number' }),
  }),
};

export const planSchema: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Plan',
  ...record(
    'A plan of every group of the input.',
    {
      apiVersion: { const: 'rollout-group.dev/cli/v1' },
      kind: { const: 'Plan' },
      metadata: record('The inputs of the plan.', { policyDigest: text }, { startsAt: { type: 'string', format: 'date-time' } }),
      outcome,
      assumptions: ref('assumptions'),
      groups: listOf(ref('group')),
    },
    {
      policyChanges: listOf(ref('objectChange')),
      otherChanges: listOf(ref('objectChange')),
      denied: listOf(ref('denial')),
      notes: listOf(text),
    },
  ),
  $defs: definitions,
};
