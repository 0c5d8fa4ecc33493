// The page docs/agent.md: flags, HTTP paths, metrics and events of the agent, from the same lists that the agent works by.

import { flagTables } from '../flags/help.ts';
import { metricTables } from '../metrics/catalog.ts';

/** Events with what they say; reasons of waits are the names of rules. */
const events: readonly (readonly [string, string, string])[] = [
  ['RolloutStarted', 'Normal', 'a new target is rolled out, or rolled back'],
  ['ZoneOpened', 'Normal', 'pods of this zone are replaced from now on'],
  ['PodReplaced', 'Normal', 'pods were deleted or evicted, so that they come back at the new revision'],
  ['RolloutFinished', 'Normal', 'every pod runs the target'],
  ['RolloutSuperseded', 'Normal', 'another target takes the place of a rollout that was under way'],
  ['RolloutFailed', 'Warning', 'a gate or a deadline failed the rollout; a person or the policy says what follows'],
  ['ScaledUp, ScaledDown', 'Normal', 'the replicas of a StatefulSet were written'],
  ['PodNotReplaced, ScalingFailed', 'Warning', 'the API server refused it, or did not answer'],
  ['PreparationFailed', 'Warning', 'a pod that is to leave did not prepare, so its StatefulSet does not shrink'],
  [
    'GroupGone',
    'Warning where pods are held back or a rollout was under way, else Normal',
    'on each StatefulSet: nothing defines its group any more, so nothing orders its rollout; where its partition stays, and what to do',
  ],
  [
    'ReleaseAnnounced',
    'Warning where it undoes something, else Normal',
    'on the StatefulSet: nothing defines its group any more, which said `onPolicyDeleted: release`; it will be handed back. A rollout that is not over, with its soaks, approvals and pauses, holds nothing from then on',
  ],
  [
    'ReleaseWaits, Released',
    'Normal',
    'on the StatefulSet: it has waited for some seconds until the other zones are whole, or it was handed back',
  ],
  ['ReleaseFailed', 'Warning', 'on the StatefulSet: it could not be handed back'],
  ['InvariantViolated', 'Warning', 'a defect: the decision was not carried out'],
  ['LeaseLost', 'Warning', 'on the Lease: this process may not act any more'],
  ['PolicyInvalid', 'Warning', 'on the Lease: an error in the definitions, with its code'],
  ['DownscaleForbidden', 'Warning', 'on the StatefulSet: a webhook denied a request by `no-downscale`; other rules have their own reason'],
];

/** The whole page. */
export function agentMarkdown(): string {
  return [
    '# The agent',
    '',
    'Generated from `agent/flags/flags.ts`, `agent/metrics/catalog.ts` and `agent/process/agent-docs.ts` by `npm run generate`.',
    '',
    '`rollout-group-agent -kubernetes.namespace NAMESPACE [flags]` moves groups of StatefulSets, one zone at a time. It takes the place of',
    'grafana/rollout-operator: its flags, labels, annotations and metrics keep their names and meanings.',
    '',
    '## Flags',
    '',
    'One dash or two, the value after `=` or as the next word; booleans take theirs only after `=`. The last of several counts. Durations are',
    'written as in Go (`90s`, `1h30m`). A flag that does not exist, a value that cannot be read and a word that belongs to no flag end the',
    'process with exit code 2 and the usage; a setting that is refused ends it with one line on standard error and exit code 1.',
    '',
    ...flagTables(),
    '## HTTP',
    '',
    'On `-server.port`, with any method:',
    '',
    '| Path | Answer |',
    '|---|---|',
    '| `/ready` | 500 until every cache has synced or is known to be missing and the policies were read; 200 from then on. No body. With webhooks also 500 without a certificate, and once the process was told to end. |',
    '| `/healthz` | 200 while the process works; one that hangs does not answer. |',
    '| `/metrics` | The metrics below, and nothing of the process or the runtime. |',
    '| anything else | 404 |',
    '',
    'The [webhooks](webhook.md) answer on `-server-tls.port`, over HTTPS.',
    '',
    '`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` hold for calls to pods, metric sources and channels, as in Go. Redirects are not followed.',
    '',
    '## Gates',
    '',
    'The agent with the Lease reads the gates that waves want, each in its period: Prometheus and Consul from the',
    '[MetricSources](gates.md#where-a-source-is) of its policy directory and of its own namespace, and pods themselves. Metrics that policies',
    'declare as inputs are not read yet.',
    '',
    '## Notifications',
    '',
    'The agent with the Lease tells the channels that groups name of their runs ([notifications](notifications.md)). What has happened and what has',
    'arrived is in the ConfigMap `rollout-notify-GROUP`. Nothing waits for a channel.',
    '',
    '## Log',
    '',
    'One line per entry on standard error, with `ts`, `level` and `msg` first. Control characters are escaped, credentials never written.',
    '',
    '## What is published',
    '',
    'The decision of each group, when it changed and every `-publish.every` at most: into `status` of its RolloutGroup where there is such an',
    'object, otherwise into the ConfigMap `rollout-status-GROUP`, key `decision`. A group that is quiet, waits or is blocked writes nothing.',
    'Rollouts and changes of replicas are recorded as RolloutRun objects where that kind is installed; of each group the last ten are kept.',
    '',
    '## Events',
    '',
    'On the RolloutGroup where there is such an object, otherwise on the StatefulSet concerned. The same fact is told once in ten minutes.',
    'A rule that blocks a group for five seconds gets an Event with the reason of the rule (docs/rules.md): `other-zones-ready` gives `OtherZonesNotReady`.',
    '',
    '| Reason | Type | Says |',
    '|---|---|---|',
    ...events.map(
      ([reason, type, text]) =>
        `| ${reason
          .split(', ')
          .map((one) => `\`${one}\``)
          .join(', ')} | ${type} | ${text} |`,
    ),
    '',
    '## Metrics',
    '',
    'Groups of grafana/rollout-operator keep its metrics: those of reconciles exist for every group whose StatefulSets carry the label',
    '`rollout-group`. At most 1000 groups have series; labels with values from outside have 200 values at most, the rest is `other`.',
    '',
    ...metricTables(),
  ].join('\n');
}
