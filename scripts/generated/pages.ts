// Generates the pages of docs/ that list what the code defines: the agent, kinds, rules and findings.

import { type FlagSpec, flagSections } from '../../agent/flags/flags.ts';
import { type MetricSpec, originalMetrics, ownMetrics } from '../../agent/metrics/catalog.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { type CodeEntry, findingCodes } from '../../policies/findings/codes.ts';
import { type Kind, kinds } from '../../policies/schema/kinds.ts';
import { choiceText, type FieldDoc, schemaDocs } from '../../policies/schema/schema-docs.ts';

/** The Events with reason, type and meaning. An Event about a blocking rule has the reason of that rule, so it is not listed. */
const events: readonly (readonly [string, string, string])[] = [
  ['RolloutStarted', 'Normal', 'a rollout or rollback began'],
  ['ZoneOpened', 'Normal', 'the rollout replaces pods of this zone from now on'],
  ['PodReplaced', 'Warning if the outcome is unknown, else Normal', 'the agent or the StatefulSet controller replaced outdated pods'],
  [
    'UpdatedByRestart',
    'Warning',
    'under `onDelete`, pods of a zone run the new revision before their wave, or before the rollout replaces a pod, because they were created again; or a scale-up of the agent starts pods at the update revision of a stopped rollout',
  ],
  ['PlanNotFollowed', 'Warning', 'a rollout is not the approved plan that its StatefulSets name: the note says what differs'],
  ['ManifestNotFollowed', 'Warning', 'another manager than those that apply the manifests wrote fields: the note says who wrote which'],
  ['PodsCrashing', 'Warning', 'pods at the update revision started to crash'],
  ['RolloutFinished', 'Normal', 'every pod runs the update revision'],
  ['Approved', 'Normal', 'a user approved a wave or a policy rule'],
  ['Rejected', 'Warning', 'a user rejected a wave or a policy rule'],
  ['Promoted', 'Normal', 'a user skipped the soak or the gates of a wave'],
  ['Retried', 'Normal', 'a user continued a failed rollout'],
  ['ScaleDownCancelled', 'Normal', 'a user cancelled a scale-down: the zone keeps its replicas until another number is requested'],
  [
    'Resumed, ProtectionEnded, UndoEnded, RejectionEnded, CancellationEnded',
    'Normal',
    'a pause, a protection, an undo, a rejection or the cancellation of a scale-down by a user ended',
  ],
  ['RolloutSuperseded', 'Normal', 'a newer update revision replaced the rollout in progress'],
  ['RolloutFailed', 'Warning', 'a gate, a deadline or an abort failed the rollout; the policy or a person decides how it continues'],
  ['ScaledUp, ScaledDown', 'Normal', 'the agent changed the replicas of a StatefulSet'],
  ['PodNotReplaced, ScalingFailed', 'Warning', 'the API server denied the request, or the request could not be sent'],
  [
    'PreparationFailed',
    'Warning',
    'the call that prepares a pod for its removal failed; the StatefulSet does not scale down until the call succeeds',
  ],
  [
    'GroupGone',
    'Warning if a partition keeps pods outdated or a rollout was in progress, else Normal',
    'on each StatefulSet: its group has no definition any more, or no longer contains it, so the agent no longer rolls it out. The text names the remaining partition and the way to continue',
  ],
  [
    'ReleaseAnnounced',
    'Warning if the release ends a rollout or replaces pods, else Normal',
    'on the StatefulSet: the deleted group has `onPolicyDeleted: release`, so the agent will set the partition to 0. Soaks, approvals and pauses of an unfinished rollout no longer apply',
  ],
  ['ReleaseWaits, Released', 'Normal', 'on the StatefulSet: its release waits for other zones, or its partition is now 0'],
  ['ReleaseFailed', 'Warning', 'on the StatefulSet: the partition could not be set to 0'],
  ['InvariantViolated', 'Warning', 'a defect: the agent replaced no pod and scaled no StatefulSet down in this turn'],
  ['LeaseLost', 'Warning', 'on the Lease: this process no longer acts'],
  ['PolicyInvalid', 'Warning', 'on the Lease: the definitions have an error; the note starts with its code'],
  [
    'ExceptionOpened',
    'Warning',
    'a new exception that no step needs yet: the note names its rule, zone, limits, requester, end and reason',
  ],
  [
    'ExceptionUsed',
    'Warning',
    'an exception permitted a step of the agent; on the StatefulSet: an exception permitted a request to a webhook. The note names the exception',
  ],
];

/** Returns the text of docs/agent.md. */
export function agentMarkdown(): string {
  return [...introduction, ...flagTables(), ...operation, ...eventTable(), '', ...metricsIntroduction, ...metricTables()].join('\n');
}

const introduction: readonly string[] = [
  '# The agent',
  '',
  'Run `rollout-group-agent` in the cluster to roll out groups of StatefulSets one zone at a time. It replaces',
  'grafana/rollout-operator. [Migrate](migrate-from-rollout-operator.md) lists what is the same and what differs.',
  '',
  '```',
  'rollout-group-agent -kubernetes.namespace NAMESPACE [flags]',
  '```',
  '',
  'Generated from `agent/flags/flags.ts`, `agent/metrics/catalog.ts` and `scripts/generated/pages.ts`',
  'by `npm run generate`.',
  '',
  '## Flags',
  '',
  'Flags take one dash or two. The value follows after `=` or as the next word; a boolean takes its value only',
  'after `=`. If a flag is repeated, the last value counts. Durations have the format of Go (`1h30m`); the lifetime',
  'of the certificate has the Prometheus format (`30d`). An unknown flag, an unreadable value or a word that is not',
  'a flag ends the process with exit code 2 and the usage. A readable value that is not allowed ends the process',
  'with exit code 1 and one line on standard error.',
  '',
];

const operation: readonly string[] = [
  '## HTTP',
  '',
  'On `-server.port`, with any method:',
  '',
  '| Path | Answer |',
  '|---|---|',
  '| `/ready` | 200 once the policies were read and every cache has synced, except caches of kinds that are not installed or forbidden; 500 before that and after a stop signal. With webhooks also 500 without a certificate. |',
  '| `/healthz` | 200 while the process works. A process that hangs does not answer. |',
  '| `/metrics` | The metrics below, without metrics of the process or the runtime. |',
  '| anything else | 404 |',
  '',
  'The [webhooks](webhook.md) answer on `-server-tls.port`, over HTTPS.',
  '',
  '`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` apply to requests to the API server, pods, metric sources and',
  'channels, as in Go. The agent follows no redirects.',
  '',
  '## Gates',
  '',
  'The leader reads the gates that waves require, each at its own interval. Prometheus and Consul addresses',
  'come from the [MetricSources](gates.md#where-a-source-is) of the policy directory and of the agent namespace.',
  '',
  '## Notifications',
  '',
  'The leader reports runs to the channels that groups name ([notifications](notifications.md)). The ConfigMap',
  '`rollout-notify-GROUP` records what happened and what was delivered. A rollout never waits for a channel.',
  '',
  '## Log',
  '',
  'One line per entry on standard error, with `ts`, `level` and `msg` first. Control characters are escaped.',
  'Credentials in URLs and in Authorization headers are replaced with `***`.',
  '',
  '## Published decisions',
  '',
  'The agent publishes the decision of each group when it changes, at most once per `-publish.every`. It',
  'writes the decision to `status` of the RolloutGroup object if it exists, else to the key `decision` of the',
  'ConfigMap `rollout-status-GROUP`. A group that does not change causes no writes. If the kind RolloutRun is',
  'installed, the agent records rollouts and changes of replicas as RolloutRun objects. It keeps the last ten',
  'finished records of each group; `rollout.historyLimit` sets another number.',
  '',
  '## Events',
  '',
  'An Event belongs to the RolloutGroup object if it exists, else to the StatefulSet concerned, unless the table',
  'names another object. A repetition within ten minutes causes no second Event. A rule that blocks a group for',
  'five seconds causes an Event with the reason of the [rule](rules.md), except while the agent replaces pods or',
  'scales. A denial by `/admission/enforce` causes a Warning on the StatefulSet, also with the reason of the rule.',
  '',
  '| Reason | Type | Meaning |',
  '|---|---|---|',
];

function eventTable(): readonly string[] {
  return events.map(([reasons, type, text]) => {
    const names = reasons.split(', ').map((reason) => `\`${reason}\``);
    return `| ${names.join(', ')} | ${type} | ${text} |`;
  });
}

const metricsIntroduction: readonly string[] = [
  '## Metrics',
  '',
  'Groups whose StatefulSets carry the label `rollout-group` also have the reconcile metrics of',
  'grafana/rollout-operator. Only the leader counts turns of groups. At most 1000 groups have series. A group has',
  'durations of runs, waves and pods from its first run on. Labels such as `path`, `part` and `channel` have at most',
  '200 values each; further values count as `other`. [Runbooks](runbooks.md) has the alerts.',
  '',
];

/** Returns the flag tables of docs/agent.md as lines. */
export function flagTables(): readonly string[] {
  return flagSections.flatMap(([title, flags]) => [
    `### ${title}`,
    '',
    '| Flag | Default | Meaning |',
    '|---|---|---|',
    ...flags.map(
      (flag) =>
        `| \`-${flag.name}\` | ${flag.default === undefined ? '' : `\`${flag.default}\``} | ${flag.description}${aliasText(flag)} |`,
    ),
    '',
  ]);
}

function aliasText({ aliases = [] }: FlagSpec): string {
  return aliases.length === 0 ? '' : ` Also \`-${aliases.join('`, `-')}\`.`;
}

/** Returns every field of a kind in the order of the schema, each followed by its fields. */
export function allFields(kind: Kind): readonly FieldDoc[] {
  const below = (path: string): readonly FieldDoc[] => {
    const docs = schemaDocs(path);
    return 'unknown' in docs ? [] : docs.fields.flatMap((field) => [field, ...below(`${kind}.${field.path}`)]);
  };
  return below(kind);
}

/** Returns the page `docs/kinds/<kind>.md`: every field in a table. */
export function kindMarkdown(kind: Kind): string {
  const { summary, plural, shortNames = [] } = kinds[kind];
  const resource =
    plural === undefined
      ? 'This kind exists only in files.'
      : `Resource: ${[plural, ...shortNames].map((name) => `\`${name}\``).join(', ')}.`;
  const rows = allFields(kind).map(
    (field) => `| ${[`\`${field.path}\``, field.type, requirement(field), field.description ?? ''].map(cell).join(' | ')} |`,
  );
  const choices = allFields(kind).flatMap(({ path, choices: inField }) =>
    inField.map((choice) => `- \`${path}\`: ${choiceText(choice, (name) => `\`${name}\``)}`),
  );
  return [
    `# ${kind}`,
    'Generated from `policies/schema/`.',
    `${summary} ${resource}`,
    ['| Field | Type | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n'),
    ...(choices.length > 0 ? [choices.join('\n')] : []),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function requirement({ isRequired, defaultText }: FieldDoc): string {
  if (isRequired) return 'required';
  return defaultText === undefined ? '' : `\`${defaultText}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** Returns the page `docs/rules.md`: every rule with its reason, outcomes and advice. */
export function rulesMarkdown(): string {
  const rows = ruleCatalog.map(
    ({ id, reason, title, outcomes }) =>
      `| \`${id}\` | ${reason === undefined ? '' : `\`${reason}\``} | ${title} | ${outcomes.join(', ')} |`,
  );
  return [
    '# Rules',
    '',
    'Look up a rule that a plan, `explain`, a denial or an exception names. In a terminal:',
    '',
    '```sh',
    'kubectl rollout-group docs zone-budget',
    '```',
    '',
    'A rule of a RolloutPolicy is named `policy/rule` and may have every outcome.',
    '',
    '- `ok`: the rule does not block the step, or an exception permits the step.',
    '- `wait`: the rule blocks the step. Time, progress of the group, or a request such as `approve` or `resume` ends the block.',
    '- `no`: the rule blocks the step until a person changes something, for example a limit.',
    '- `skip`: the rule does not apply.',
    '- `unknown`: the rule could not be evaluated. It blocks the step.',
    '',
    'When several rules block, every output names the same rule first: `no` before `unknown` before `wait`.',
    '',
    '| Rule | Reason while it blocks | Passes when | Outcomes |',
    '|---|---|---|---|',
    ...rows,
    '',
    '## When a rule blocks',
    '',
    ...ruleCatalog.flatMap(({ id, whenBlocked }) => (whenBlocked === undefined ? [] : [`### \`${id}\``, '', whenBlocked, ''])),
    'Generated from `engine/rules/catalog.ts` by `npm run generate`.',
    '',
  ].join('\n');
}

const families: readonly (readonly [prefix: string, title: string])[] = [
  ['RG1', 'Syntax and files'],
  ['RG2', 'Schema, names and meaning'],
  ['RG3', 'Conditions'],
  ['RG4', 'Settings adopted from grafana/rollout-operator'],
  ['RG5', 'Risks of a plan'],
  ['RG6', 'The installation'],
  ['RG7', 'Objects of other rollout operators'],
  ['RG8', 'Effects of a change'],
];

/** Returns the page `docs/findings.md`: every code with its severity, explanation and fix. */
export function findingsMarkdown(): string {
  const entries: readonly (readonly [string, CodeEntry])[] = Object.entries(findingCodes).sort(([a], [b]) => (a < b ? -1 : 1));
  const sections = families.map(([prefix, title]) => {
    const texts = entries.filter(([code]) => code.startsWith(prefix)).map(([code, entry]) => codeMarkdown(code, entry));
    return [`## ${prefix}xxx: ${title}`, ...texts].join('\n\n');
  });
  const head = [
    '# Findings',
    'Look up the code of a finding. `lint` fails on errors and warnings, and with `--strict` also on notices. Generated from `policies/findings/codes/`.',
  ];
  return `${[...head, ...sections].join('\n\n')}\n`;
}

function codeMarkdown(code: string, entry: CodeEntry): string {
  const fix = entry.hint === undefined ? [] : [`Fix: ${entry.hint}.`];
  return [`### ${code}: ${entry.title}`, `Severity: ${entry.severity}.`, entry.explanation, ...fix].join('\n\n');
}

/** Returns the metric tables of docs/agent.md as lines. */
export function metricTables(): readonly string[] {
  return [
    ...table('Metrics of this agent', Object.values(ownMetrics)),
    ...table('Metrics of grafana/rollout-operator', Object.values(originalMetrics)),
  ];
}

function table(title: string, metrics: readonly MetricSpec[]): readonly string[] {
  const rows = metrics.map(({ name, type, labels, help }) => {
    return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
  });
  return [`### ${title}`, '', '| Name | Type | Labels | Meaning |', '|---|---|---|---|', ...rows, ''];
}
