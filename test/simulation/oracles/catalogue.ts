// Lists every invariant by id: its judge and its meaning, or why a simulation cannot judge it.
import type { generatedJudges } from '../../../scripts/soak/generated.ts';
import type { sceneJudges } from '../../../simulation/oracles/all.ts';

type CatalogueEntry =
  | {
      readonly id: string;
      readonly title: string;
      /** Files of this folder. */
      readonly judgedBy: readonly (keyof typeof generatedJudges | keyof typeof sceneJudges)[];
      /** The checked meaning if the statement leaves a choice, or cannot be checked completely. */
      readonly how?: string;
      /** True if groups with the arithmetic of grafana/rollout-operator are exempt. */
      readonly scope?: 'native';
    }
  | { readonly id: string; readonly title: string; readonly leftOut: string };

/** S1 to S41 and L1 to L13, in this order. */
export const catalogue: readonly CatalogueEntry[] = [
  {
    id: 'S1',
    title: 'one zone at a time',
    judgedBy: ['availability', 'replicas', 'ledgers', 'partitions'],
    how: 'pods and scale-downs are judged by the facts that the decision had to know (`oracle.ts`); only one zone may have open claims; no zone shrinks while another zone has surplus pods; in drop-in groups, scale-downs are exempt',
  },
  {
    id: 'S1p',
    title: 'one budget for each data partition',
    leftOut: 'no scenario sets spec.disruption.partition; the engine is tested with tables',
  },
  { id: 'S2', title: 'the budget of the zone', judgedBy: ['availability', 'partitions'] },
  {
    id: 'S3',
    title: 'the floor of the group',
    judgedBy: ['availability'],
    how: 'counts unavailable pods of the group; groups of this version cannot name the voters of a quorum',
  },
  {
    id: 'S4',
    title: 'no view, no action',
    judgedBy: ['targets', 'decisions', 'ledgers'],
    how: 'no pod disruption and no scale-down if a zone was not read, or if a status was older than its spec during the 10 s before the request (native groups only); no action, and no write of the ledger, while only a later version of the agent reads the ledger',
  },
  {
    id: 'S5',
    title: 'bounded age of the view of a decision',
    judgedBy: ['decisions'],
    how: 'by the clock of the process, from the start of the decision to the request',
  },
  {
    id: 'S6',
    title: 'the right target',
    judgedBy: ['targets', 'partitions', 'pins'],
    how: 'with the strategy `pinned` a pod comes back at the revision of its predecessor, or at the revision to which an agent pinned it; exempt: pods created without the webhook, and pods that the StatefulSet controller creates at an outdated revision; with the strategy `partition` a run starts only after pods that no run exposed are frozen',
  },
  {
    id: 'S7',
    title: 'at most once',
    judgedBy: ['targets', 'pins'],
    how: 'a pod that does not come back at its pinned revision is deleted at most twice, and again only after a retry request',
  },
  {
    id: 'S8',
    title: 'settle first',
    judgedBy: ['availability'],
    scope: 'native',
    how: 'within a zone, a successor counts as settled at any revision that the StatefulSet controller gave it; in another zone also with the strategy `pinned`, before a zone with an unavailable pod, in a zone that is open, and after a new template',
  },
  {
    id: 'S9',
    title: 'unhealthy first',
    judgedBy: ['availability'],
    scope: 'native',
    how: 'the agent replaces an unavailable pod regardless of the budget, but replaces no more pods at once than the limit; with OrderedReady it replaces one pod at a time, and no pod above an unavailable pod; S6 judges whether the pod is outdated',
  },
  {
    id: 'S10',
    title: 'no destructive request',
    judgedBy: ['requests'],
    how: 'no delete of a collection or of an object that holds data, no grace period of 0, no removed finalizer',
  },
  {
    id: 'S11',
    title: 'the delay of a scale-down',
    judgedBy: ['preparations', 'reviews'],
    how: 'in a drop-in group with `/admission/prepare-downscale`, every pod older than 60 s is asked to prepare before it leaves',
  },
  {
    id: 'S12',
    title: 'time between zones',
    judgedBy: ['replicas'],
    scope: 'native',
    how: 'from the time at which the API server applied the first decrease; by the clocks of agents',
  },
  {
    id: 'S13',
    title: 'followers have the replicas of their leader',
    judgedBy: ['replicas'],
    scope: 'native',
    how: 'scale-downs; no scenario makes a scale-up wait for the leader',
  },
  { id: 'S14', title: 'the floor of replicas', judgedBy: ['replicas'], scope: 'native' },
  {
    id: 'S15',
    title: 'no rollout during a scale-down',
    judgedBy: ['availability', 'replicas'],
    scope: 'native',
    how: 'with OrderedReady an unavailable pod may be replaced, because the deletion of surplus pods waits for it; zones that left the group do not count; no zone shrinks during a run, or with `duringRollout: allow` while another zone is open; without `allow`, no zone grows while a pod of the open zone is being replaced',
  },
  { id: 'S16', title: 'replicas do not oscillate', judgedBy: ['replicas'] },
  {
    id: 'S17',
    title: 'the holder acts',
    judgedBy: ['leadership'],
    how: 'a process sends changes of the group and calls to its pods only while it holds the Lease; Events and published decisions are exempt',
  },
  {
    id: 'S18',
    title: 'the order of leaderships',
    judgedBy: ['ledgers'],
    how: 'evictions and scale-downs cannot be revoked, so the judge accepts them from an earlier leader if their claim is open',
  },
  {
    id: 'S19',
    title: 'written ahead',
    judgedBy: ['ledgers', 'pins'],
    how: 'disruptions and pins; a process keeps its own claims while it does not know the outcome of the request',
  },
  {
    id: 'S20',
    title: 'preconditions',
    judgedBy: ['requests'],
    how: 'an action that met a conflict is not repeated with the same resource version',
  },
  {
    id: 'S21',
    title: 'no step back in time',
    judgedBy: ['decisions'],
    how: 'a disruption is never decided from a state older than a change that a process of the same machine made and saw succeed; no decision of a process reads an older state of an object in the zones of the group than an earlier one, or an object whose deletion an earlier one knew',
  },
  { id: 'S22', title: 'ownership', judgedBy: ['targets'] },
  {
    id: 'S23',
    title: 'one master',
    judgedBy: ['masters'],
    how: 'of a StatefulSet, an agent writes only the replicas, the partition and its own labels and annotations; at the end, the status of a RolloutGroup counts exactly the fields of its StatefulSets that are neither from a manifest of a GitOps tool nor from the agent',
  },
  { id: 'S24', title: 'no older policy', leftOut: 'the agent reads policies from a directory or the API server, not from Git' },
  {
    id: 'S25',
    title: 'one policy per decision',
    judgedBy: ['decisions'],
    how: 'two definitions never have the same digest',
  },
  {
    id: 'S26',
    title: 'errors never permit more',
    judgedBy: ['availability', 'policies'],
    how: 'an unreadable budget keeps its last readable value, and policies that become invalid or unreadable stay in force',
  },
  { id: 'S27', title: 'purity', judgedBy: ['decisions'], how: 'one decision in eight, and every disruption' },
  {
    id: 'S28',
    title: 'pause',
    judgedBy: ['targets', 'replicas', 'ledgers', 'partitions'],
    how: 'no claim and no disruption is sent later than 10 s after the pause became visible',
  },
  { id: 'S29', title: 'dry runs', judgedBy: ['requests'], how: 'the agent sends no dry run; the judge would find one with an effect' },
  {
    id: 'S30',
    title: 'disruptions admitted by the webhook count like those of the agent',
    judgedBy: ['admissions', 'reviews'],
    how: 'deletions and evictions by others in groups with `spec.disruption`, evictions under a ZoneAwarePodDisruptionBudget, and decreases of replicas by others in native groups; each admitted disruption of a pod has a claim, and the answer names no group only if the pod belonged to none in the last 10 s; a request is admitted at most 42 s after it was first allowed, by a clock that does not jump meanwhile; the webhooks claim no more available pods of a zone than the budget permits; the pods of a scale-up by an agent count from 10 s on; S1 to S3 count an admitted disruption from its commit on',
  },
  {
    id: 'S31',
    title: 'an error in the webhook never admits a change of a protected object',
    judgedBy: ['admissions', 'reviews'],
    how: 'no eviction and no decrease of replicas in a native group passes without a judgement; deletions may, because the kubelet removes pods with the same request; in a drop-in group, no StatefulSet with the label `grafana.com/no-downscale` shrinks',
  },
  {
    id: 'S32',
    title: 'the webhook never denies what the agent or the nodes need',
    judgedBy: ['reviews'],
    how: 'no webhook of this project is asked about a request of the agent, and none that can deny about a write of a node or a controller of Kubernetes, or of a Lease or a node',
  },
  {
    id: 'S33',
    title: 'a repeated mutation changes nothing',
    judgedBy: ['reviews'],
    how: 'half of the calls of `/admission/stamp` are repeated with the result; each patch tests a value first; exempt: a repetition by a process whose clock differs by more than 25 s',
  },
  { id: 'S34', title: 'secrets', leftOut: 'scenarios contain no secrets' },
  { id: 'S35', title: 'egress', leftOut: 'a simulated agent reaches only the model; the tests of the agent check the addresses' },
  { id: 'S36', title: 'limits', leftOut: 'groups of scenarios are small; limits have separate tests' },
  {
    id: 'S37',
    title: 'one wave after the other',
    judgedBy: ['waves', 'progress', 'zones'],
    scope: 'native',
    how: 'a pod is replaced only in a wave that includes it, after the pods, soaks, gates and verified approvals of the earlier waves; an unavailable pod may be replaced in any wave; only a zone that returns to a revision that it had skips soaks, gates and approvals, and it may precede the waves while other zones roll to a new revision; a rejection of a wave that does not end within 10 s blocks until its deletion; an approval counts only if it exists at most 10 s before the wave ends; soaks may be shorter by the errors of the clocks of agents; two decisions that replace a pod are at least `minInterval` apart; by the snapshot of each decision, a wave soaks and ends only while every pod of the group is available, and ends only if every status is current; a replaced pod is in the open zone of the decision and of the stored run, a finished zone is closed, and a zone is left for another one of the same wave only when it has the pods of the wave, or to repair a pod; after a change of the waves, the earlier new waves need their pods, those that lacked pods also need their soaks and gates, and only approvals of the new waves count',
  },
  {
    id: 'S38',
    title: 'a failed run stops',
    judgedBy: ['runs', 'deadlines'],
    how: 'no pod is replaced later than 10 s after the ledger calls the run failed, or after a verified abort of the run, until the run continues or another one begins; a run fails if a replaced pod stays unavailable for the deadline after the last progress, at the next turn that reads its zone, give or take the errors of the clocks of agents',
  },
  {
    id: 'S39',
    title: 'a revision that was rolled back or undone does not return',
    judgedBy: ['rollbacks'],
    scope: 'native',
    how: 'with `onFailure: rollback`, a run that failed a minute ago is rolled back, give or take the errors of the clocks of agents; a rollback restores a revision from before the first run, or of a completed run; when it completes, no pod runs the failed revision; every pod of the zone is created at the restored revision, unless the webhook does not answer or the ledger pins the pod; until a retry or another template no pod at the restored revision is replaced, and the judge remembers the failed revision itself, also while the StatefulSet is deleted and created again; the published status is degraded and not ready, unless the agent could not read the zone; no pod is replaced later than 10 s after an undo of the update revision',
  },
  {
    id: 'S40',
    title: 'windows',
    judgedBy: ['policies'],
    scope: 'native',
    how: 'no pod is replaced and no replicas decrease outside of the windows, by the clock of the agent; exempt: an exception in force, work in progress that the window lets finish, and decisions during which the clock jumped',
  },
  {
    id: 'S41',
    title: 'policy rules',
    judgedBy: ['policies'],
    scope: 'native',
    how: 'no step is taken that a rule blocks in every state that its decision may have seen, by the clock of the agent; exempt: an exception in force, a verified approval in the run, a rollout whose templates are those of its approved plan or a rollback if the rule requires such a plan, and decisions during which the clock jumped',
  },
  {
    id: 'L1',
    title: 'converges and stays converged',
    judgedBy: ['settling'],
    how: 'judged by the StatefulSets, from convergence to the end; the simulation itself compares the requested state',
  },
  {
    id: 'L2',
    title: 'quiet',
    judgedBy: ['settling'],
    how: 'one minute after the rollout and the last claim that the leader knows ended, and the last dead watch was closed, agents write only Leases; until then they may write the run record, status, Events and the published decision',
  },
  {
    id: 'L3',
    title: 'failover',
    judgedBy: ['leadership'],
    how: '20 s after the end of all faults and the last start or end of a process, a process holds the Lease',
  },
  { id: 'L4', title: 'claims end', judgedBy: ['ledgers', 'pins'], how: 'claims and pins' },
  { id: 'L5', title: 'preparation of pods that stay is cancelled', judgedBy: ['preparations', 'ledgers'] },
  { id: 'L6', title: 'no wedge', judgedBy: ['settling'], how: 'at the end no unavailable pod has an outdated revision' },
  {
    id: 'L7',
    title: 'isolation',
    judgedBy: ['isolation'],
    how: 'in simulations with several groups, no action, claim, pin, run or published text of a group names an object of another group, no request about another group decides a rule, and the answer of a webhook names the group of the object; the tests of the loop show that groups do not wait for each other',
  },
  {
    id: 'L8',
    title: 'watches come back',
    judgedBy: ['decisions', 'settling'],
    how: 'two minutes after all faults every turn of a group that is not idle sees the current state; until then failed turns are retried and dead watches end; 30 s later a turn has succeeded',
  },
  {
    id: 'L9',
    title: 'reasons',
    judgedBy: ['decisions', 'requests', 'settling'],
    how: 'in groups without webhooks for all requests, an action is reported as rejected only if the API server rejected it, not if its object had changed',
  },
  {
    id: 'L10',
    title: 'no lost wake-up',
    judgedBy: ['settling'],
    how: 'a turn begins within 15 s of each change, from 3 s after the first successful turn of the leader after all faults on, at the latest from 45 s after the faults on',
  },
  {
    id: 'L11',
    title: 'no starvation of writers',
    judgedBy: ['requests'],
    how: 'fewer than 20 conflicts in a row, also with other groups',
  },
  {
    id: 'L12',
    title: 'expectations leak nothing',
    judgedBy: ['settling'],
    how: 'an unfinished group has a turn at least every 330 s',
  },
  {
    id: 'L13',
    title: 'no busy loop',
    judgedBy: ['effort'],
    how: 'in one minute a process sends at most 800 requests plus 10 per pod, and takes at most 350 turns plus 5 per pod, including pods deleted in that minute; a watch that got `Retry-After` asks again after this time',
  },
];
