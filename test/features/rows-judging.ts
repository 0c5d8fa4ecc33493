// Rows 19 to 35 of what rollouts can do: gates, deadlines, what follows a failure, and how one ends.
import { of } from '../kit/named-tests.ts';
import type { Row } from './table.ts';

const gate = of('test/engine/rules/gate.test.ts');
const wave = of('test/engine/rules/wave.test.ts');
const agentGates = of('test/agent/gates.test.ts');
const gatesCluster = of('test/agent/gates.cluster.ts');
const gatesOfPods = of('test/agent/gates-of-pods.test.ts');
const prometheus = of('test/engine/observe/prometheus.test.ts');
const consul = of('test/engine/observe/consul.test.ts');
const providers = of('test/agent/gates/providers.test.ts');
const probes = of('test/agent/gates/pods.test.ts');
const http = of('test/agent/gates/source-http.test.ts');
const rights = of('test/install/rights.test.ts');
const phased = of('test/policies/adopt/phased-rollout.test.ts');
const rollouts = of('test/policies/adopt/statefulset-rollout.test.ts');
const deadline = of('test/engine/rules/deadline.test.ts');
const run = of('test/engine/run/run.test.ts');
const rollRules = of('test/engine/rules/roll.test.ts');
const stuck = of('test/engine/rules/stuck.test.ts');
const budget = of('test/engine/rules/budget.test.ts');
const broken = of('test/agent/broken-image.cluster.ts');
const partition = of('test/agent/partition.cluster.ts');
const killedTwice = partition(
  'keeps the revision of every pod if all pods are killed twice at every stage of a rollout, and during scaling',
);
const partitionPlan = of('test/engine/plan/partition.test.ts');
const partitionWebhook = of('test/webhook/partition.cluster.ts');
const undo = of('test/plugin/live-undo.test.ts');
const restart = of('test/plugin/live-restart.test.ts');
const people = of('test/plugin/people.cluster.ts');
const wordsOfPeople = of('test/plugin/live-requests.test.ts');
const midWave = of('test/engine/people/mid-wave.test.ts');
const records = of('test/agent/run-records.test.ts');
const record = of('test/engine/publish/run-record.test.ts');
const pinnedPod = of('test/engine/strategies/pinned/pinned-pod.cluster.ts');
const pinned = of('test/agent/pinned.cluster.ts');
const back = pinned('returns every pod if the run fails and onFailure is rollback, and does not repeat the failed template');
const pinnedKilledTwice = pinned('keeps the revision of every pod if all pods are killed twice at every stage, and during scaling');
const deleted = of('test/engine/plan/partition-alone.test.ts');
const releaseRules = of('test/engine/release/release.test.ts');
const releaseByAgent = of('test/agent/release/release.test.ts');
const releaseCluster = of('test/agent/release/release.cluster.ts');

export const judgingRows: readonly Row[] = [
  {
    id: 19,
    what: 'a delay before the first question',
    here: 'initialDelay of a gate, from the end of the wave before or from when the last pod is available.',
    tests: gate('waits for its initial delay, and counts no reading before it'),
  },
  {
    id: 20,
    what: 'Prometheus has to say yes several times in a row',
    here: 'consecutive of a gate; a condition on the number says what a yes is. A query that only answers or not is counted.',
    tests: [
      ...gate('passes after enough successes in a row', 'the stored readings'),
      ...agentGates(
        'passes after the required number of good readings, one in each period, and is read only in its time',
        'starts a new series of successes after a failed reading',
      ),
      ...phased('takes any series as a success and none as a failure, and never fails for failures'),
    ],
  },
  {
    id: 21,
    what: 'limits of failures and errors, and what an answer means that says nothing',
    here: 'failureLimit, noData and onError; a gate can hold, fail the run or, for no data alone, pass.',
    tests: [
      ...gate('fails after as many failures as its limit, in a row or not', 'a reading without success'),
      ...prometheus('an answer of Prometheus'),
      ...agentGates('fails the run at its failure limit, however long the time between the failures, and is then not read again'),
    ],
  },
  {
    id: 22,
    what: 'a gate before the first pod, between steps and after the last',
    here: 'before and after of each wave.',
    tests: [
      ...wave(
        'before a wave',
        'a return evaluates no gates, because they may measure the failure that it repairs, unless a policy requires it',
      ),
      ...gatesCluster('stops the run if it fails during the soak of its wave'),
    ],
  },
  {
    id: 23,
    what: 'credentials come from a Secret',
    here: 'A MetricSource names keys of Secrets in the namespace of the agent, which reads them at each question.',
    tests: [
      ...http(
        'shows a token, or a user and a password, that it reads each time',
        'is denied for a group of another namespace, and has a rate limit',
      ),
      ...rights('name only the Secrets of metric sources in the namespace of the agent'),
      ...phased('are named in the namespace of the agent, and a finding requires the copy'),
    ],
  },
  {
    id: 24,
    what: 'service discovery has to see the pods',
    here: 'A gate asks Consul how many instances of a service pass, in a datacenter; noData says what a missing service means.',
    tests: [
      ...http('is about one service, in the datacenter that the gate names, with the token of the source'),
      ...providers('counts the failing instances, or the passing ones if the gate requires a number'),
      ...consul('an answer of Consul'),
      ...rollouts('queries Consul about each of its services, at an address that a user must set'),
    ],
  },
  {
    id: 25,
    what: 'the pods themselves are probed',
    here: 'A gate sends a GET to each updated pod. Commands and TCP belong to the readiness probe of the pod, which every step waits for.',
    tests: [
      ...probes(
        'calls every updated pod once, and counts the pods that do not answer 2xx',
        'gives each call a time limit, and is an error if a pod could not be called',
      ),
      ...gatesOfPods('blocks while an updated pod does not answer, asks no other pod, and continues when all answer'),
    ],
  },
  {
    id: 26,
    what: 'time limits of a step and of the whole rollout',
    here: 'deadlines.progress and deadlines.run; the second stands still while the group may not move.',
    tests: [...deadline('the progress deadline', 'the deadline of a run')],
  },
  {
    id: 27,
    what: 'what follows a failure',
    here: 'The run holds where it is, until somebody retries it, aborts it or writes another template; with onFailure: rollback under the strategy pinned every pod comes back.',
    tests: [
      ...rollRules('run-failed'),
      ...run('a failed run'),
      ...gatesCluster('stops the run if it fails during the soak of its wave'),
      ...back,
    ],
  },
  {
    id: 28,
    what: 'a broken pod that stands in the way is removed',
    here: 'Unready pods of an old revision go first, beyond the budget when they are stuck, and by deletion; replaceUnready says which and when.',
    tests: [
      ...stuck('a pod is stuck'),
      ...budget('the repair of stuck pods under OrderedReady'),
      ...partition('continues under OrderedReady from an image that never starts to one that starts'),
      ...broken('because half of a zone crash-loops on a new image: they heal with the next image, and no other zone is touched'),
    ],
  },
  {
    id: 29,
    what: 'a rollout is taken back',
    here: 'A template of before is a run of its own, without soak and approvals; undo writes it for the whole group, and holds what Git asks for again.',
    tests: [
      ...run('is a rollback when it is what ran before'),
      ...partition('returns to the earlier template, and replaces only pods that were updated'),
      ...undo('blocks the undone revision, then writes the previous template to every member'),
      ...undo('after a rollback gives the members the template that their pods run, and replaces no pod'),
      ...restart('denies the template of a failed run, and names the commands that return or continue'),
      ...people('an undo reverts the whole group, and blocks the reverted template'),
      ...back,
    ],
  },
  {
    id: 30,
    what: 'another template in the middle of a rollout',
    here: 'It takes the place of the run, which begins anew at wave one and in the zone that is open; broken pods are cured first.',
    tests: [
      ...run('supersedes the run: wave one again, from what ran before both'),
      ...midWave('in the middle of a wave'),
      ...partitionPlan('continues to a third revision, and returns'),
      ...partitionWebhook('allows a template during a rollout, so that a broken one can be repaired'),
      ...record('is superseded by a run to another revision, which starts with its request'),
    ],
  },
  {
    id: 31,
    what: 'a failed rollout is tried again on request',
    here: 'The verb retry, by somebody whom the API server knows, for this run.',
    tests: [
      ...wordsOfPeople('retry continues a failed run, and each retry is a new request'),
      ...people('an abort ends a run, a retry continues it, and both are reported'),
      ...run('goes on when a person asks to, with soak and deadlines from now on'),
    ],
  },
  {
    id: 32,
    what: 'a history that is bounded',
    here: 'RolloutRuns, as many as historyLimit of the group; each with its steps, its waits, who asked what, and where it came from.',
    tests: [
      ...records('are bounded: the oldest finished records are deleted', 'follow the limit of the group, also if the limit changes'),
      ...record('adds up the waits, and ends with the run', 'keeps its bounds for any length of the run and its texts'),
    ],
  },
  {
    id: 33,
    what: 'a pod that is restarted in the middle keeps its version',
    here: 'Under the strategies partition and pinned always; while no webhook answers a pinned pod comes back old, never another one new. Under onDelete it cannot, and the page on engines says so.',
    tests: [
      ...killedTwice,
      ...partitionPlan(
        'keeps the revision of a pod that dies on either side of the partition, and a pod that a scale-up adds has the new one',
      ),
      ...pinnedKilledTwice,
      ...pinned(
        'brings pinned pods back at the old version while the webhook is away, never others at the new one, and corrects them afterwards; a second template updates no pod before its turn',
      ),
      ...pinnedPod('is the only one at the new version after restarts of all pods, and has one token, that of its service account'),
    ],
  },
  {
    id: 34,
    what: 'a StatefulSet is handed back to stock behaviour',
    here: 'With onPolicyDeleted: release, deleting the group does it: the partition of one zone after the other becomes 0, each once. A gate that observes holds nothing.',
    tests: [
      ...releaseRules('a release'),
      ...releaseByAgent('is released zone by zone after one minute, and then forgotten'),
      ...releaseCluster(
        'is handed to the StatefulSet controller, one zone after the other, past the rules that blocked its run, with the strategy $strategy',
      ),
      ...deleted('keeps its value if its group is deleted during a run, until a user changes it'),
      ...phased('with standardRollingUpdate has a gate in mode observe'),
      ...gate('never fails with a limit of 0, and in mode observe'),
    ],
  },
  {
    id: 35,
    what: 'what is left when the policy is deleted',
    here: 'Everything stays: pods in flight come back, no other goes, and the partition stays where it is, unless the group said onPolicyDeleted: release.',
    tests: [
      ...releaseRules('a definition'),
      ...releaseByAgent('a release', 'a group whose file is deleted', 'failures of the agent'),
      ...deleted('keeps its value if its group is deleted during a run, until a user changes it'),
      ...midWave('in the middle of a wave'),
    ],
  },
];
