// Rows 1 to 18 of what rollouts can do: what is managed, which pods go, how many, and how fast.
import { of } from '../kit/named-tests.ts';
import type { Row } from './table.ts';

const resolve = of('test/policies/resolve.test.ts');
const sources = of('test/policies/live/sources.test.ts');
const convertedSets = of('test/policies/adopt/statefulset-rollout.test.ts');
const convertedPhased = of('test/policies/adopt/phased-rollout.test.ts');
const lint = of('test/policies/lint.test.ts');
const partition = of('test/engine/strategies/partition/partition.test.ts');
const pins = of('test/engine/strategies/pinned/pins.test.ts');
const partitionCluster = of('test/agent/partition.cluster.ts');
const partitionWebhook = of('test/webhook/partition.cluster.ts');
const partitionPlan = of('test/engine/plan/partition.test.ts');
const largeRun = of('test/agent/large-run.cluster.ts');
const rolloutCluster = of('test/agent/rollout.cluster.ts');
const enforce = of('test/webhook/native/enforce.test.ts');
const rollout = of('test/agent/agent-follow.test.ts');
const controller = of('test/engine/world/controller.test.ts');
const budget = of('test/engine/rules/budget.test.ts');
const budgets = of('test/engine/rules/budgets-of-others.test.ts');
const words = of('test/engine/people/words.test.ts');
const amount = of('test/engine/amount.test.ts');
const rollWave = of('test/engine/decide/roll-wave.test.ts');
const schedule = of('test/engine/schedule.test.ts');
const run = of('test/engine/run/run.test.ts');
const wave = of('test/engine/rules/wave.test.ts');
const approval = of('test/engine/rules/approval.test.ts');
const people = of('test/plugin/people.cluster.ts');
const act = of('test/plugin/live-act.test.ts');
const rollRules = of('test/engine/rules/roll.test.ts');
const roll = of('test/engine/decide/roll.test.ts');
const parts = of('test/agent/agent-parts.test.ts');
const evicted = of('test/engine/world/eviction.test.ts');
const gatesOfPods = of('test/agent/gates-of-pods.test.ts');
const view = of('test/engine/observe/view.test.ts');
const examples = of('test/examples/examples.test.ts');

export const movingRows: readonly Row[] = [
  {
    id: 1,
    what: 'the StatefulSets that are managed are chosen',
    here: 'A group names them zone by zone, or selects them by labels and says how many it expects.',
    tests: [
      ...resolve(
        'gives each zone its own settings, and otherwise the settings of the group',
        'are the StatefulSets of the namespace that match, in byte-wise order',
      ),
      ...sources('finds its members by labels among the StatefulSets of the cluster'),
    ],
  },
  {
    id: 2,
    what: 'two owners of one StatefulSet are refused',
    here: 'Two groups with one member are a finding, and both are held; two objects that are converted leave each other out.',
    tests: [
      ...sources('that shares a StatefulSet with another one is a finding, and both exist to be blocked'),
      ...convertedPhased('does not share its StatefulSet: the object in its annotation has it, and no object without the annotation'),
    ],
  },
  {
    id: 3,
    what: 'the StatefulSet is made from the resource',
    here: 'Git and its tools make StatefulSets. One that stands in an object of another operator becomes a manifest.',
    tests: convertedSets('has the StatefulSet as a separate manifest, without server fields'),
    open: 'StatefulSets are not made from a template in a group: that belongs to zones made from templates, which are out of scope.',
  },
  {
    id: 4,
    what: 'an update strategy is required',
    here: 'The strategy says which one: OnDelete, or RollingUpdate under partition and pinned. Another one is a finding, and holds.',
    tests: [
      ...rollRules('update-strategy'),
      ...lint('lint compares members with'),
      ...rolloutCluster('respects every rule, with a minimum of writes'),
      ...pins('pinned pods in a ledger'),
      ...partitionCluster(
        'blocks an idle group, rolls from the highest ordinal within the budget, and blocks it again; a later template updates no pod by itself',
      ),
    ],
  },
  {
    id: 5,
    what: 'nothing moves between a new template and the first decision about it',
    here: 'Under RollingUpdate the partition stands above every ordinal before the template comes; a write that would let pods go together with a template is refused.',
    tests: [
      ...partitionCluster(
        'blocks an idle group, rolls from the highest ordinal within the budget, and blocks it again; a later template updates no pod by itself',
      ),
      ...partition('blocks a StatefulSet that was never rolled'),
      ...pins('is raised wherever it lets the StatefulSet controller replace a pod, and pods wait until it is'),
      ...enforce('a restart, a strategy, a partition, a first ordinal'),
      ...partitionWebhook('denies all other users %s'),
    ],
  },
  {
    id: 6,
    what: 'one pod goes at a time, the highest first',
    here: 'The default: maxUnavailable 1, in descending order.',
    tests: [
      ...rollout('brings three zones of three pods to the new image, one pod at a time, and is quiet afterwards'),
      ...controller('replaces one pod at a time from the top and then is complete'),
      ...partition('the partition is lowered'),
    ],
  },
  {
    id: 7,
    what: 'pods go in another order',
    here: 'Ascending, zone by zone in the order of the group or of a wave, and a protected pod last. There is no random order: the same state gives the same decision.',
    tests: [
      ...budget('the order of replacements'),
      ...words('of a pod puts it last, and of a zone blocks the zone'),
      ...roll('the order of zones'),
    ],
  },
  {
    id: 8,
    what: 'one pod goes first as a canary',
    here: 'A wave of one pod, in one zone, with what is asked after it.',
    tests: [
      ...partitionPlan('shows waves, pods from the highest ordinal and times, although no manifest names a partition'),
      ...rollWave('that has its pods waits for them, and names the zones'),
      ...examples('passes every case of its PolicyTests'),
    ],
  },
  {
    id: 9,
    what: 'a percentage of the pods goes',
    here: 'Rounded up, at least one, and below 100 one less than all where there are two or more; cumulative.',
    tests: [
      ...amount('add 1, 3 and 3 pods in waves of 1, 50 and 100 percent of seven', 'the updated pods of a wave'),
      ...convertedSets('of %i pods is the rounded-up percentage, and below 100 percent at most all pods except one'),
      ...run('that adds nothing is over at once'),
    ],
  },
  {
    id: 10,
    what: 'linear, geometric and exponential schedules',
    here: 'A short form that expands to waves; waves may be written out one by one.',
    tests: [
      ...schedule('the stages of a schedule', 'the waves of a schedule', 'does not soak once more'),
      ...run('that is over makes room for the next'),
    ],
  },
  {
    id: 11,
    what: 'a step pauses, or goes on when somebody says so',
    here: 'Soak and approvals before and after a wave, from people whom the API server knows.',
    tests: [
      ...wave('the wave soaks, then waits for approval', 'an approval is for this wave of this run'),
      ...approval('an approval'),
      ...people('an approval without the group, for another run, after its end or forged never counts'),
    ],
  },
  {
    id: 12,
    what: 'a rollout is paused and resumed',
    here: 'An intent of a person, for the group or a zone; pods that were taken away come back, and no other goes.',
    tests: [
      ...act('pauses the group, as explain shows', '%s ends only %s and names the other pause'),
      ...rollRules('paused'),
      ...partition('takes in pods at the top that run the update revision, so that they keep it, also while the group is paused'),
    ],
  },
  {
    id: 13,
    what: 'a minimum interval between two replacements',
    here: 'minInterval of the group, or a longer one of a policy; the instant is kept in the ledger.',
    tests: [...rollRules('min-interval'), ...budget('the interval between replacements')],
  },
  {
    id: 14,
    what: 'a PodDisruptionBudget says how many go at once',
    here: 'maxUnavailable: fromBudget, read at each decision; the strictest of several, and 1 without one.',
    tests: [
      ...budget('the limit'),
      ...budgets('limits the evictions so that enough pods stay healthy'),
      ...convertedSets('becomes a group of its StatefulSet, with the pace of the budget of its pods'),
    ],
  },
  {
    id: 15,
    what: 'a maxUnavailable of its own, as a number or a percentage',
    here: 'Of the group, of a zone, and capped by policies; a percentage is rounded down, at least 1.',
    tests: [
      ...budget('the budget of a native zone', 'the limit'),
      ...amount('the pods that may be unavailable'),
      ...partitionCluster('lowers a partition within the budget, and no more pods than allowed are unavailable'),
    ],
  },
  {
    id: 16,
    what: 'pods are evicted in place of deleted',
    here: 'rotateBy: evict, the default; a budget that refuses is asked again, and two budgets over one pod are a refusal that is told.',
    tests: [
      ...roll('by eviction carries the UID alone', 'by deletion carries UID and resourceVersion'),
      ...parts(
        'keep to a PodDisruptionBudget over all zones',
        'that a PodDisruptionBudget denied are repeated and do not count as failures',
      ),
      ...evicted('stays when two budgets select it'),
      ...largeRun(
        'replaces the expected pods with the strategy %s, within the budget, the ledger and the pages of Slack, and each pod returns at the recorded revision',
      ),
    ],
  },
  {
    id: 17,
    what: 'the next step waits until all pods are available',
    here: 'Of the zone by its budget, of other zones always, and of the whole group at the end of a wave.',
    tests: [
      ...rollRules('waits for every unavailable zone', 'waits until the pods of another zone are available'),
      ...rollWave('that has its pods waits for them, and names the zones'),
      ...gatesOfPods('blocks the first pod while the group is not available'),
    ],
  },
  {
    id: 18,
    what: 'minReadySeconds is respected',
    here: 'Of the StatefulSet always, and a longer one of a gate; from when the agent knows that the pod is ready.',
    tests: [
      ...gatesOfPods('waits until every updated pod of the wave is ready for the required time, three times in a row'),
      ...view('a pod is available'),
      ...controller('waits for minReadySeconds between two pods'),
    ],
  },
];
