// The JSON Schema of the plan document, for programs that read `plan -o json`. Additions keep it valid, changes raise apiVersion.

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const count: Schema = { type: 'integer', minimum: 0 };
const seconds: Schema = { type: 'number', minimum: 0 };
const positive: Schema = { type: 'integer', minimum: 1 };

function oneOf(...values: readonly string[]): Schema {
  return { enum: values };
}

function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values };
}

function ref(name: string): Schema {
  return { $ref: `#/$defs/${name}` };
}

/** An object that holds nothing but these fields. */
function record(description: string, required: Readonly<Record<string, Schema>>, optional: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    description,
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
  };
}

const outcome = oneOf('complete', 'unchanged', 'blocked', 'waits');

const definitions: Readonly<Record<string, Schema>> = {
  source: record('Where something is written.', {}, { file: text, line: positive, column: positive, object: text, field: text }),
  rule: record(
    'The answer of one rule.',
    { rule: text, outcome: oneOf('ok', 'wait', 'no', 'skip', 'unknown'), fact: text },
    {
      limit: text,
      source: ref('source'),
      earliestMs: { type: 'number', description: 'Milliseconds since 1970, or since the start of a plan without startsAt.' },
    },
  ),
  change: record(
    'A difference between what runs and what is asked for.',
    {
      kind: oneOf('template', 'replicas', 'settings', 'created', 'deleted', 'source', 'budget'),
      zones: listOf(text),
      field: text,
      consequence: oneOf('restart', 'scaleUp', 'scaleDown', 'none', 'refused'),
    },
    {
      before: { description: 'Of a list compared as a set: the entries that go.' },
      after: { description: 'Of a list compared as a set: the entries that come.' },
    },
  ),
  step: record(
    'One line of the plan.',
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
  wave: record('Steps that belong together.', { name: text, steps: listOf(ref('step')) }),
  refusal: record(
    'Something asked for that policy does not allow.',
    { what: text, message: text, results: listOf(ref('rule')) },
    { zone: text },
  ),
  risk: record(
    'Something that is allowed and still worth a look.',
    { code: text, severity: oneOf('warning', 'notice'), message: text },
    { source: ref('source') },
  ),
  zone: record('What becomes of one zone.', {
    zone: text,
    statefulSet: text,
    replicasBefore: count,
    replicasAfter: count,
    restarts: count,
  }),
  totals: record(
    'Sums over the group; times leave people out and are absent when the plan does not end.',
    { restarts: count, scaleChanges: count, waves: count, gates: count, approvals: count },
    { p50Seconds: seconds, p90Seconds: seconds },
  ),
  span: record('A stretch of a timeline.', {
    zone: text,
    kind: oneOf('roll', 'scaleUp', 'scaleDown', 'prepare', 'soak', 'wait'),
    label: text,
    startSeconds: seconds,
    endSeconds: seconds,
  }),
  group: record('The plan of one group.', {
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
  }),
  quantiles: record('A duration that is met in half of all cases, and in nine of ten.', { p50Seconds: seconds, p90Seconds: seconds }),
  podTimes: record('How long pods take.', {}, { drain: ref('quantiles'), start: ref('quantiles') }),
  assumptions: record('What the times and the outcome stand on.', {
    pods: record('Times of every group that has none of its own.', { drain: ref('quantiles'), start: ref('quantiles') }),
    groups: mapOf(ref('podTimes')),
    gates: oneOf('pass', 'fail'),
    approvals: oneOf('given', 'missing'),
    preparations: oneOf('succeed', 'fail'),
    metrics: mapOf({ type: 'number' }),
  }),
};

/** JSON Schema (2020-12) of `Plan`. */
export const planSchema: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Plan',
  ...record('A plan of every group of the input.', {
    apiVersion: { const: 'rollout-group.dev/cli/v1' },
    kind: { const: 'Plan' },
    metadata: record('What the plan was made from.', { policyDigest: text }, { startsAt: { type: 'string', format: 'date-time' } }),
    outcome,
    assumptions: ref('assumptions'),
    groups: listOf(ref('group')),
  }),
  $defs: definitions,
};
