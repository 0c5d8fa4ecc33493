// Lists every invariant by id: its judge and its meaning, or why a simulated run cannot judge it.
import type { JudgeName } from './all.ts';

type CatalogueEntry =
  | {
      readonly id: string;
      readonly title: string;
      /** Files of this folder. */
      readonly judgedBy: readonly JudgeName[];
      /** The checked meaning if the statement leaves a choice, or cannot be checked completely. */
      readonly how?: string;
      /** True if groups with the arithmetic of grafana/rollout-operator are exempt. */
      readonly scope?: 'native';
    }
  | { readonly id: string; readonly title: string; readonly leftOut: string };

const admission = 'there is no admission server yet';

/** S1 to S36 and L1 to L13, in this order. */
export const catalogue: readonly CatalogueEntry[] = [
  {
    id: 'S1',
    title: 'one zone at a time',
    judgedBy: ['availability', 'replicas', 'ledgers', 'partitions'],
    how: 'pods and decreases by what the decision had to know (moment.ts), announcements by what stands in the ledger; adopted groups: pods alone',
  },
  { id: 'S1p', title: 'one budget for each partition', leftOut: 'no scenario has partitions; the engine is tested with tables' },
  { id: 'S2', title: 'the budget of the zone', judgedBy: ['availability', 'partitions'] },
  {
    id: 'S3',
    title: 'the floor of the group',
    judgedBy: ['availability'],
    how: 'available members of the group; voters of a quorum are unknown to groups of this version',
  },
  {
    id: 'S4',
    title: 'no view, no act',
    judgedBy: ['targets', 'decisions'],
    how: 'pods and decreases: a status that has been older than its spec all the time, and zones that the decision had not read',
  },
  {
    id: 'S5',
    title: 'bounded age of what is decided from',
    judgedBy: ['decisions'],
    how: 'by the clock of the process, from the decision to the request',
  },
  {
    id: 'S6',
    title: 'the right target',
    judgedBy: ['targets', 'partitions', 'pins'],
    how: 'a pinned pod comes back as it was, or as an agent had decided before it went; not while the webhook is away, nor where the StatefulSet controller asks for what is not current',
  },
  {
    id: 'S7',
    title: 'at most once',
    judgedBy: ['targets', 'pins'],
    how: 'a pod that does not come back at the revision to which it is pinned twice, and then once a person says so',
  },
  {
    id: 'S8',
    title: 'settle first',
    judgedBy: ['availability', 'gates'],
    scope: 'native',
    how: 'in one zone, and of pinned pods in each, a successor counts at any revision that the StatefulSet controller gave it',
  },
  {
    id: 'S9',
    title: 'unhealthy first',
    judgedBy: ['availability'],
    scope: 'native',
    how: 'an unavailable pod is replaced regardless of the budget, and at most the limit at once; S6 judges that it is outdated',
  },
  { id: 'S10', title: 'gentle verbs', judgedBy: ['requests'] },
  { id: 'S11', title: 'the delay of a downscale', judgedBy: ['preparations'] },
  { id: 'S12', title: 'time between zones', judgedBy: ['replicas'], scope: 'native' },
  {
    id: 'S13',
    title: 'followers have what their leader has',
    judgedBy: ['replicas'],
    scope: 'native',
    how: 'decreases; no scenario makes growth wait for the leader',
  },
  { id: 'S14', title: 'the floor of replicas', judgedBy: ['replicas'], scope: 'native' },
  {
    id: 'S15',
    title: 'no rolling while shrinking',
    judgedBy: ['availability', 'replicas'],
    scope: 'native',
    how: 'under OrderedReady a pod that is down may go while surplus pods wait for it',
  },
  { id: 'S16', title: 'replicas do not go to and fro', judgedBy: ['replicas'] },
  {
    id: 'S17',
    title: 'the holder acts',
    judgedBy: ['leadership'],
    how: 'what changes the group, and calls of its pods, by what was known when it was sent; events and published decisions of the time before may follow',
  },
  {
    id: 'S18',
    title: 'the order of leaderships',
    judgedBy: ['ledgers'],
    how: 'evictions and decreases cannot be made void, so a late one counts as its later leader knows it: by the claim that still stands',
  },
  {
    id: 'S19',
    title: 'written ahead',
    judgedBy: ['ledgers', 'pins'],
    how: 'disruptions, and what pods are pinned to',
  },
  { id: 'S20', title: 'preconditions', judgedBy: ['requests'] },
  {
    id: 'S21',
    title: 'no travel in time',
    judgedBy: ['decisions'],
    how: 'what is disturbed is not decided from an object as it was before the same machine changed it and knew',
  },
  { id: 'S22', title: 'ownership', judgedBy: ['targets'] },
  { id: 'S23', title: 'one master', leftOut: 'the model server does not tell who owns a field' },
  { id: 'S24', title: 'no older policy', leftOut: 'policies are read from a directory or the API server; nothing reads Git yet' },
  {
    id: 'S25',
    title: 'one policy a decision',
    judgedBy: ['decisions'],
    how: 'a digest never stands for two definitions; bundles from Git are to come',
  },
  {
    id: 'S26',
    title: 'errors never widen',
    judgedBy: ['availability'],
    how: 'while a budget cannot be read the last one that could be binds; unreadable files are tested with the policies',
  },
  { id: 'S27', title: 'purity', judgedBy: ['decisions'], how: 'one decision in eight, and all that disturb' },
  {
    id: 'S28',
    title: 'pause',
    judgedBy: ['targets', 'replicas', 'ledgers', 'partitions'],
    how: 'nothing is announced or disturbed that was decided 10 s after the pause became visible',
  },
  { id: 'S29', title: 'dry runs', judgedBy: ['requests'], how: 'the agent makes none; one that changed something would be found' },
  { id: 'S30', title: 'serialisable with admission', leftOut: admission },
  { id: 'S31', title: 'no open door', leftOut: admission },
  { id: 'S32', title: 'no self-block', leftOut: admission },
  { id: 'S33', title: 'idempotent mutation', leftOut: admission },
  { id: 'S34', title: 'secrets', leftOut: 'scenarios hold no secrets' },
  { id: 'S35', title: 'egress', leftOut: 'a simulated agent can reach nothing but the model; addresses are tested where they are built' },
  { id: 'S36', title: 'limits', leftOut: 'groups of scenarios are small; limits are tested where they are' },
  {
    id: 'L1',
    title: 'converges and stays so',
    judgedBy: ['settling'],
    how: 'by what the StatefulSets say, at the end and from when it was so; what people asked for is compared by the run',
  },
  {
    id: 'L2',
    title: 'quiet',
    judgedBy: ['settling'],
    how: 'from a minute after nothing is left only Leases are written; until then its record, status, events and published decision may follow',
  },
  {
    id: 'L3',
    title: 'failover',
    judgedBy: ['leadership'],
    how: 'from the end of all faults, since nothing else is free of them, and from when the last process came or went',
  },
  { id: 'L4', title: 'claims end', judgedBy: ['ledgers', 'pins'], how: 'claims and pins' },
  { id: 'L5', title: 'who stays is told so', judgedBy: ['preparations', 'ledgers'] },
  { id: 'L6', title: 'no wedge', judgedBy: ['settling'], how: 'at the end nothing stands at a revision that never became ready' },
  { id: 'L7', title: 'isolation', leftOut: 'a run has one group; that groups do not wait for one another is tested with the loop' },
  {
    id: 'L8',
    title: 'watches come back',
    judgedBy: ['decisions', 'settling'],
    how: 'by what turns see two minutes after all faults, by whether a turn that failed was tried again by then, and dead watches are given up',
  },
  { id: 'L9', title: 'reasons', judgedBy: ['decisions', 'settling'] },
  { id: 'L10', title: 'no lost wake-up', judgedBy: ['settling'], how: 'a turn begins within 15 s of each change, after all faults' },
  {
    id: 'L11',
    title: 'no starvation of writers',
    judgedBy: ['requests'],
    how: 'no 20 conflicts in a row; other groups do not compete in a run',
  },
  {
    id: 'L12',
    title: 'expectations leak nothing',
    judgedBy: ['settling'],
    how: 'no group that is not done goes without a turn for longer than the longest pause',
  },
  {
    id: 'L13',
    title: 'no busy loop',
    judgedBy: ['effort'],
    how: 'requests sent, arrived or not, and turns of one process in a minute: 800 and 350, and 10 and 5 more for each pod',
  },
];
