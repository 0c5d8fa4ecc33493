// Rows 42 to 56 of what rollouts can do: labels and limits of replicas, what people and programs are told, and how it all runs.
import { of } from '../kit/named-tests.ts';
import type { Row } from './table.ts';

const replicas = of('test/engine/decide/replicas.test.ts');
const scaleRules = of('test/engine/rules/scale.test.ts');
const midWave = of('test/engine/people/mid-wave.test.ts');
const partition = of('test/agent/partition.cluster.ts');
const killedTwice = partition(
  'keeps the revision of every pod if all pods are killed twice at every stage of a rollout, and during scaling',
);
const controller = of('test/engine/world/controller.test.ts');
const prepare = of('test/engine/rules/prepare.test.ts');
const alone = of('test/engine/plan/partition-alone.test.ts');
const notifier = of('test/agent/notify/notifier.test.ts');
const loopback = of('test/agent/notify/loopback.test.ts');
const notifyCrash = of('test/agent/notify/crash.test.ts');
const notifyCluster = of('test/agent/notify.cluster.ts');
const texts = of('test/engine/notify/texts.test.ts');
const events = of('test/agent/events.test.ts');
const metrics = of('test/agent/metrics.test.ts');
const published = of('test/engine/publish/decision.test.ts');
const record = of('test/engine/publish/run-record.test.ts');
const promql = of('test/policies/promql.test.ts');
const validate = of('test/webhook/native/validate-endpoint.test.ts');
const ourKinds = of('test/webhook/native/our-kinds.cluster.ts');
const crash = of('test/agent/crash.cluster.ts');
const agentCrash = of('test/agent/agent-crash.test.ts');
const loop = of('test/agent/loop.test.ts');
const namespaces = of('test/agent/namespaces.cluster.ts');
const webhooks = of('test/install/webhooks.test.ts');
const rights = of('test/install/rights.test.ts');
const plan = of('test/plugin/plan-command.test.ts');
const partitionPlan = of('test/engine/plan/partition.test.ts');
const words = of('test/engine/people/words.test.ts');
const act = of('test/plugin/live-act.test.ts');

export const tellingRows: readonly Row[] = [
  {
    id: 42,
    what: 'the active pod of several is labelled',
    here: 'A pod that must go last is protected by a person; it then is the last of its zone.',
    tests: words('of a pod puts it last, and of a zone blocks the zone'),
    open: 'Nobody probes which pod is active and labels it: that belongs to zones made from templates, whose pods a group would write itself; out of scope.',
  },
  {
    id: 43,
    what: 'replicas have a minimum, a maximum and an odd number',
    here: 'bounds of the group: min, max, multipleOf and parity, kept by the agent and asked by admission; limits of policies beside them.',
    tests: [
      ...replicas('a count rounded to the bounds', 'the replicas that bounds change'),
      ...scaleRules('scale-ceiling', 'scale-floor', 'is the same rule as in admission'),
    ],
  },
  {
    id: 44,
    what: 'a StatefulSet is scaled while it rolls',
    here: 'duringRollout says whether zones may grow; what each strategy makes of new pods is known, and shown.',
    tests: [...scaleRules('rollout-in-progress'), ...midWave('in the middle of a wave'), ...killedTwice],
  },
  {
    id: 45,
    what: 'ordinals that do not begin at 0',
    here: 'Everywhere: pods by ordinal, partitions by the place from the first one.',
    tests: [
      ...controller(
        'builds a pod that dies below a partition of ordinals that do not begin at 0 at the current revision',
        'counts ordinals from the first one',
      ),
      ...prepare('counts ordinals from the first one'),
      ...alone('rolls pods by the first ordinal, with partitions counted from it'),
    ],
  },
  {
    id: 46,
    what: 'one message for each rollout, edited in place, with pages of 50 pods',
    here: 'Slack: a message and its thread; at most one edit a second, and as long a pause as Slack asks for.',
    tests: [
      ...notifier(
        'is one message that is edited, with pages and the end in its thread',
        'of 1,000 pods has 20 pages of 50, each at its place',
        'is edited at most once a second at any speed, and every message ends with the final state',
      ),
      ...texts('have 50 pods each, in order, and the last page says so'),
    ],
  },
  {
    id: 47,
    what: 'a callback on success and on failure, once',
    here: 'Signed, tried again with the same bytes, and once for each event over restarts and other leaders.',
    tests: [
      ...loopback('is signed over its time and body, and accepted'),
      ...notifier('is retried after growing pauses, and a callback has the same bytes each time'),
      ...notifyCrash('arrive once after a %s at any call of the leader'),
      ...notifyCluster('tell each event once, though the leader is killed twice'),
    ],
  },
  {
    id: 48,
    what: 'Kubernetes Events',
    here: 'For what begins, waits, fails and ends, on the RolloutGroup where there is one.',
    tests: events('describe a rollout from start to end', 'are attached to the RolloutGroup if it exists', 'name each failure'),
  },
  {
    id: 49,
    what: 'metrics of rollouts',
    here: 'Phase and time in it, each rule that holds and since when, pods and budget by zone, turns and actions.',
    tests: metrics(
      'show the phase, and how long the group has been in each',
      'show each rule that blocks the group with its start, and drop it when it passes',
      'show pods and the budget by zone',
    ),
  },
  {
    id: 50,
    what: 'the status says of each pod which version it runs',
    here: 'Counts by zone and revision, and the pods that move or are bad; the pages in Slack have all of them.',
    tests: [
      ...published(
        'names the pods that are replaced or not ready, the worst first, and no others',
        'names at most 50 pods and the number of the others',
      ),
      ...texts('counts pods, and lists every pod in order with its state'),
    ],
  },
  {
    id: 51,
    what: 'messages say which build it is',
    here: 'The commit and the cause in annotations of the StatefulSet, or the commit that Argo CD or Flux applied, stand in the record, in messages and in the status of the commit.',
    tests: [
      ...record('starts with the run, and names its target and its origin'),
      ...texts('of the message of a run name the cause of a failure, its time and its origin'),
      ...notifier('follow the run at GitHub and at GitLab'),
    ],
  },
  {
    id: 52,
    what: 'what is wrong is refused when it is written',
    here: 'Schemas, and a webhook that says what lint says; queries are read as PromQL, conditions as JsonLogic.',
    tests: [
      ...promql('a query'),
      ...validate('denies with a line for each error: code, location, cause', 'has the same text as lint for a file with the object'),
      ...ourKinds('a group with an error that the schema does not find is denied with the finding of lint, and a valid one is accepted'),
    ],
  },
  {
    id: 53,
    what: 'a loop that does one thing after the other and survives a restart',
    here: 'Announce, act, remember: whatever call the agent dies at, another one goes on from the ledger.',
    tests: [
      ...crash('a leader that dies'),
      ...agentCrash('is finished after a %s at every site, and no pod is deleted twice'),
      ...partition('is finished by another agent when one dies %s of the partition'),
      ...loop('runs one turn of a group at a time, and another one after an event during the turn'),
    ],
  },
  {
    id: 54,
    what: 'a burst of changes is one change',
    here: 'A turn looks at what is, not at what happened; templates that come one after another are one run.',
    tests: [
      ...loop('gives a new group a turn at once, and one turn for several events'),
      ...record('continues if the other zones get their new template a moment later, as if manifests are applied one by one'),
      ...midWave('in the middle of a wave'),
    ],
  },
  {
    id: 55,
    what: 'it watches some namespaces only',
    here: 'Named namespaces or all, with rights for those; webhooks enforce where a namespace is opted in by a label.',
    tests: [
      ...namespaces('several: only groups in them are rolled out'),
      ...webhooks('enforce only in opted-in namespaces, and stamp requesters everywhere'),
      ...rights('are Roles in each named namespace, and in the cluster only nodes and configurations'),
    ],
  },
  {
    id: 56,
    what: 'what would happen is shown before it does',
    here: 'plan, explain, simulate and diff; every verb that writes has a dry run.',
    tests: [
      ...plan('the output of plan', 'has the zones one after the other, and takes longer if pods start more slowly'),
      ...partitionPlan('shows waves, pods from the highest ordinal and times, although no manifest names a partition'),
      ...act('sends no request with --dry-run=client, and a dry run with server, and prints the object'),
    ],
  },
];
