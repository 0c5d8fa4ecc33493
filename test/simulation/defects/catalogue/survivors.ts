// Mistakes that no simulated run tells from the right thing: another layer makes up for them whole, or nothing in a run shows them.
import type { Defect } from '../defect.ts';
import { noBudgetInvariant } from './counting.ts';
import { noAnswerInvariant } from './preparing.ts';
import { noLastLook } from './sight.ts';

/** Not part of the catalogue: when a run can show one, it belongs there, with a plan. */
interface Survivor extends Defect {
  /** Why it is not found. */
  readonly survives: string;
}

export const survivors: readonly Survivor[] = [
  {
    id: 'lost-node-as-ready',
    title: 'a pod on a node that is lost counts as available',
    edits: [{ file: 'engine/observe/view.ts', find: 'return pod.isReady && pod.nodeReady &&', replace: 'return pod.isReady &&' }],
    breaks: ['S1', 'S2', 'S8'],
    survives: 'the node controller says of the pods that they are not ready in the moment in which it says so of the node',
  },
  {
    id: 'pods-by-name',
    title: 'pods belong to whichever StatefulSet has the name of their owner, whatever its UID',
    edits: [
      {
        file: 'engine/observe/cluster.ts',
        find: "owner?.kind === 'StatefulSet' ? owner.uid : undefined",
        replace: "owner?.kind === 'StatefulSet' ? owner.name : undefined",
      },
      { file: 'engine/observe/cluster.ts', find: 'owned.get(set.uid) ?? []', replace: 'owned.get(set.name) ?? []' },
    ],
    breaks: ['S1', 'S2', 'S22'],
    survives: 'pods that are orphaned lose their owner, and the others end with the StatefulSet',
  },
  {
    id: 'own-failures-not-counted',
    title: 'pods that are down by themselves do not use up the budget of their zone',
    edits: [
      {
        file: 'engine/rules/budget.ts',
        find: 'const free = Math.max(0, limit - view.unavailableCount);',
        replace: 'const free = Math.max(0, limit - view.claims.length);',
      },
      noBudgetInvariant,
    ],
    alsoWithout: 'the invariant S2, which the agent asks once more before each deletion',
    breaks: ['S2'],
    survives: 'pods that are down go first, and those at the update revision count as in flight',
  },
  {
    id: 'pods-called-without-lease',
    title: 'pods are called whether or not the Lease still holds',
    edits: [
      {
        file: 'agent/turn/turn.ts',
        find: 'leftMs: () => (this.#parts.isStopping() ? 0 : this.#parts.leadership.leftMs()),',
        replace: 'leftMs: () => (this.#parts.isStopping() ? 0 : Number.POSITIVE_INFINITY),',
      },
    ],
    breaks: ['S17'],
    survives: 'a turn asks for the Lease when it begins and before each action, so at most the calls of one action come late, and rarely',
  },
  {
    id: 'standstill-not-noticed',
    title: 'a process that stood still for longer than a retry period goes on as if nothing had been',
    edits: [{ file: 'cluster/lease/lease-clock.ts', find: 'if (!isStalled && !hasJumped) return;', replace: 'if (!hasJumped) return;' }],
    breaks: ['S17'],
    survives: 'the monotonic clock goes on while a process stands still, so the deadline of the Lease is enough',
  },
  {
    id: 'clock-jump-not-noticed',
    title: 'a Lease is believed after the wall clock and the monotonic clock have drifted apart',
    edits: [{ file: 'cluster/lease/lease-clock.ts', find: 'if (!isStalled && !hasJumped) return;', replace: 'if (!isStalled) return;' }],
    breaks: ['S17'],
    survives: 'the monotonic clock is never set, so the deadline of the Lease is enough',
  },
  {
    id: 'lost-lease-is-kept',
    title: 'a holder that finds somebody else in the Lease writes itself in again',
    edits: [
      {
        file: 'cluster/lease/lease.ts',
        find: 'if (reason !== undefined) return this.#lose(reason);',
        replace: 'if (reason === "") return this.#lose(reason);',
      },
    ],
    breaks: ['S17', 'S18', 'unfinished'],
    survives: 'who has missed the deadline has stopped before anybody else may be in the Lease',
  },
  {
    id: 'epoch-not-counted',
    title: 'a new holder does not count the change, so that two leaderships have the same epoch',
    edits: [{ file: 'cluster/lease/lease.ts', find: ': known + 1;', replace: ': Math.max(1, known);' }],
    breaks: ['S18', 'S19', 'unfinished'],
    survives: 'the ledger counts by itself when it finds the epoch of somebody else in it',
  },
  {
    id: 'claims-cleared-without-successor',
    title: 'a claim ends when its pod is gone, before there is another one in its place',
    edits: [{ file: 'engine/ledger/ledger.ts', find: 'return !hasSuccessor(claim, zone, zone.pods, nowMs);', replace: 'return false;' }],
    breaks: ['S19', 'S8'],
    survives: 'a pod that is missing counts as unavailable in any case, and no zone goes on without it',
  },
  {
    id: 'no-fresh-answer',
    title: 'pods are not asked again before they go, so one that has lost its preparation leaves',
    edits: [
      {
        file: 'engine/rules/prepare.ts',
        find: 'if (old.length === 0) return { ...ripe, actions: [] };',
        replace: 'if (old.length >= 0) return { ...ripe, actions: [] };',
      },
      noAnswerInvariant,
    ],
    alsoWithout: 'the invariant S11, which the agent asks once more before each decrease',
    breaks: ['S11'],
    survives: 'the judge of S11 hears calls and answers, and not that a container has begun anew and forgotten',
  },
  {
    id: 'no-fresh-read-by-a-new-leader',
    title: 'a new leader begins from its caches instead of a read from the quorum',
    edits: [{ file: 'agent/turn/gather.ts', find: 'needsDirectRead: true,', replace: 'needsDirectRead: false,' }, noLastLook],
    alsoWithout: 'the look before each request',
    breaks: ['S1', 'S2', 'S5', 'S6', 'S21'],
    survives: 'requests name UID and resourceVersion, the ledger has the claims, and caches that are silent for 10 s are read past',
  },
  {
    id: 'events-of-the-past',
    title: 'an event that is older than what is known is taken in',
    edits: [
      {
        file: 'cluster/watch/reflector.ts',
        find: 'if (order !== undefined && order <= 0) return undefined;',
        replace: 'if (order !== undefined && order <= 0 && resourceVersion === "") return undefined;',
      },
      { file: 'cluster/watch/store.ts', find: 'if (order !== undefined && order <= 0) return [];', replace: 'if (order === 0) return [];' },
    ],
    alsoWithout: 'the store, which never replaces a state by an older one',
    breaks: ['S1', 'S2', 'S6', 'S21', 'unfinished'],
    survives: 'the model sends no event that is older than what a watch asked for, but for one that comes twice in a row',
  },
  {
    id: 'new-leader-is-not-woken',
    title: 'a process that begins to lead waits for the next event',
    edits: [{ file: 'agent/agent.ts', find: 'if (isLeader) this.#loop.wakeAll();', replace: '' }],
    breaks: ['L10', 'L12', 'L2', 'L3', 'unfinished'],
    survives: 'what has happened while nobody led is asked for, and kept until somebody does',
  },
  {
    id: 'pods-wake-nobody',
    title: 'a change of a pod wakes no group',
    edits: [{ file: 'agent/wake-index.ts', find: 'return [...own, ...shared];', replace: 'return own.length > 1_000 ? own : shared;' }],
    breaks: ['L10', 'L12', 'L2', 'unfinished'],
    survives: 'the status of the StatefulSet follows its pods, and wakes as well',
  },
  {
    id: 'admitted-although-ledger-changed',
    title: 'the webhook admits the request after another writer changed the ledger',
    edits: [
      {
        file: 'webhook/native/group-queue.ts',
        find: 'if (!isStored) return reserved;',
        replace: 'if (!isStored && reserved.length === 0) return reserved;',
      },
    ],
    breaks: ['S30', 'S1', 'S2', 'S3', 'S9'],
    survives: 'no seed of 1 to 872 lets another writer change the ledger between the reading and the write of the webhook',
  },
];
