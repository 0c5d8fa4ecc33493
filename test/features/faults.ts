// Faults of the operator for phased rollouts that is converted by init, what is done here instead, and the tests that show it.
import { of } from '../kit/named-tests.ts';
import type { Row } from './table.ts';

const partition = of('test/engine/strategies/partition/partition.test.ts');
const partitionCluster = of('test/agent/partition.cluster.ts');
const partitionPlan = of('test/engine/plan/partition.test.ts');
const alone = of('test/engine/plan/partition-alone.test.ts');
const enforce = of('test/webhook/native/enforce.test.ts');
const view = of('test/engine/observe/view.test.ts');
const run = of('test/engine/run/run.test.ts');
const wave = of('test/engine/rules/wave.test.ts');
const rollWave = of('test/engine/decide/roll-wave.test.ts');
const rollRules = of('test/engine/rules/roll.test.ts');
const stuck = of('test/engine/rules/stuck.test.ts');
const budget = of('test/engine/rules/budget.test.ts');
const parts = of('test/agent/agent-parts.test.ts');
const gate = of('test/engine/rules/gate.test.ts');
const deadline = of('test/engine/rules/deadline.test.ts');
const prometheus = of('test/engine/observe/prometheus.test.ts');
const controller = of('test/engine/world/controller.test.ts');
const midWave = of('test/engine/people/mid-wave.test.ts');
const source = of('test/policies/metric-source.test.ts');
const http = of('test/agent/gates/source-http.test.ts');
const secrets = of('test/webhook/native/validate-endpoint.test.ts');
const ourKinds = of('test/webhook/native/our-kinds.cluster.ts');
const doctorSecrets = of('test/plugin/doctor/secrets.test.ts');
const phased = of('test/policies/adopt/phased-rollout.test.ts');
const query = of('test/policies/adopt/phased-query.test.ts');

export const faults: readonly Row[] = [
  {
    id: 1,
    what: 'pods are held back after a new template, so that one may go before',
    here: 'They are held back before it: the partition stands above every ordinal while nothing rolls, and a write that lets pods go with a template is refused.',
    tests: [
      ...partitionCluster(
        'blocks an idle group, rolls from the highest ordinal within the budget, and blocks it again; a later template updates no pod by itself',
      ),
      ...partition(
        'blocks every pod when all run the update revision and Kubernetes says so',
        'blocks a StatefulSet that was never rolled',
      ),
      ...enforce('a restart, a strategy, a partition, a first ordinal'),
    ],
  },
  {
    id: 2,
    what: 'equal revisions in the status are taken for updated pods',
    here: 'What a pod runs is what its label says; a run is complete when every pod runs what is asked for.',
    tests: [
      ...view('lists outdated pods by ordinal, and these can be available', 'counts a pod without a revision as outdated'),
      ...run('does not exist while every pod is at its update revision', 'is asked again, as a new run, when an old pod comes back'),
      ...partitionCluster('returns to the earlier template, and replaces only pods that were updated'),
    ],
  },
  {
    id: 3,
    what: 'a template that goes back leaves pods at the abandoned revision',
    here: 'A rollback is a run of its own, paced like any other, without soak and approvals unless policy says otherwise.',
    tests: [
      ...run(
        'is a rollback when it is what ran before',
        'is a rollback also after the run is complete, and the completed template is then the previous one',
      ),
      ...wave('a rollback needs no soak and no approval, unless a policy requires it'),
      ...partitionPlan('continues to a third revision, and returns'),
      ...partitionCluster('returns to the earlier template, and replaces only pods that were updated'),
    ],
  },
  {
    id: 4,
    what: 'a pod that never becomes ready blocks what would cure it',
    here: 'Such a pod is deleted as soon as another template is there, beyond the budget and before healthy ones.',
    tests: [
      ...partition('is deleted when a new template is there, since the controller waits for it under OrderedReady'),
      ...partitionCluster('continues under OrderedReady from an image that never starts to one that starts'),
      ...stuck('a pod is stuck'),
      ...budget('the repair of stuck pods under OrderedReady'),
    ],
  },
  {
    id: 5,
    what: 'a pod that becomes unready while the gate is asked is ignored',
    here: 'Every decision to let a pod go counts what is down at that moment, on what is at least as new as the own writes.',
    tests: [
      ...partition('the partition is lowered'),
      ...rollRules('waits until the pods of another zone are available'),
      ...run('soaks from the beginning when a pod falls back, of whichever zone'),
      ...parts('is too old for a decision while the caches show a state before the writes of the agent'),
    ],
  },
  {
    id: 6,
    what: 'no limit of failures, no time limit, no gate after the last pod, no end of a step that fails',
    here: 'failureLimit, deadlines for progress and for the run, gates after each wave, and a run that fails and holds.',
    tests: [
      ...gate('fails after as many failures as its limit, in a row or not'),
      ...deadline('the progress deadline', 'the deadline of a run'),
      ...wave('after a wave', 'a gate that failed too often names the cause of the failed run'),
      ...rollWave('fails while a pod starts, within a wave and after it'),
    ],
  },
  {
    id: 7,
    what: 'an answer with data is a success whatever its value, and a scalar is an error',
    here: 'A number, no data, an error and a number that is none are four things; scalars are numbers. What is converted counts series, and says where that always passes.',
    tests: [
      ...prometheus('an answer of Prometheus'),
      ...gate('a reading', 'a reading without success'),
      ...query('a query of a PhasedRollout'),
      ...phased('takes any series as a success and none as a failure, and never fails for failures'),
    ],
  },
  {
    id: 8,
    what: 'ordinals that do not begin at 0 are looked for where no pod is',
    here: 'Pods are known by their ordinal, and partitions count from the first one.',
    tests: [
      ...alone('rolls pods by the first ordinal, with partitions counted from it'),
      ...partitionPlan('ends complete and blocked: %s'),
      ...controller('builds a pod that dies below a partition of ordinals that do not begin at 0 at the current revision'),
    ],
  },
  {
    id: 9,
    what: 'a policy that is deleted lets all remaining pods roll at once',
    here: 'Nothing moves: the partition stays, and no pod is taken away.',
    tests: [
      ...alone('keeps its value if its group is deleted during a run, until a user changes it'),
      ...midWave('in the middle of a wave'),
    ],
  },
  {
    id: 10,
    what: 'an address without a scheme passes, certificates cannot be checked by an authority of their own, times cannot be set',
    here: 'An address is http or https or refused; a source names its authority, its time and how much it may answer. Whoever writes one hears of Secrets that are not there: it is taken all the same, as tools apply objects in any order. No object has headers of its own: what a tenant could write there would speak to the provider in the name of the agent (docs/decisions/no-custom-headers.md). What cannot be converted is left out.',
    tests: [
      ...source('the address of a source', 'has the limits of its schema, in milliseconds, unless it has its own'),
      ...http(
        'is trusted through the authority in its policy, and through no other',
        'is silence or a slow stream, which ends at the time limit of the gate and the source',
      ),
      ...secrets(
        'is accepted with a warning for each missing Secret and key, within the permissions of API servers',
        'is accepted without a warning, and in time, if a Secret %s; the others have a warning',
      ),
      ...ourKinds('a source is accepted with or without its Secret, with a warning to its author'),
      ...doctorSecrets('are named if they or keys of them are missing, each once, and without their content'),
      ...phased('leaves no group without its gate'),
    ],
  },
];
