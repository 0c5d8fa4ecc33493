// Mistakes in what is announced and remembered: claims that come late, end early, end never, or are not counted.
import type { Defect, Edit } from '../defect.ts';

const ledger = 'engine/ledger/ledger.ts';
const turn = 'agent/turn/turn.ts';
const gather = 'agent/turn/gather.ts';

const isAsked = '(claim) => !memory.announced.has(canonicalJson(claim)) || memory.sent.has(claim.uid)';

/** Nothing is written before what it announces is done. */
export const noWriteAhead: Edit = {
  file: turn,
  find: "await this.#store(announced, gathered.epoch, actions.some(isDestructive) ? 'always' : 'whenWorthIt');",
  replace: '',
};

/** Nothing is ever announced. */
export const noClaims: Edit = {
  file: ledger,
  find: 'const announced = { atMs: nowMs, ...(epoch === undefined ? {} : { epoch }) };',
  replace: 'const announced = { atMs: nowMs, ...(epoch === undefined ? {} : { epoch }) };\n  if (nowMs > 0) return [];',
};

/** What somebody else announced, or what got no answer, counts for nothing. */
export const foreignClaimsDropped: Edit = { file: gather, find: isAsked, replace: '(claim) => memory.confirmed.has(claim.uid)' };

/** No pod is touched. */
export const noTouch: Edit = {
  file: turn,
  find: 'if (await this.#revoke(gathered, ledger)) return inconclusive(longestWaitMs);',
  replace: '',
};

/** Announced pods count as available. */
const claimsNotCounted: Edit = {
  file: 'engine/observe/view.ts',
  find: 'const claimed = new Set(claims.map((claim) => claim.uid));',
  replace: 'const claimed = new Set(claims.filter(() => false).map((claim) => claim.uid));',
};

/** Whoever writes last wins: neither the text nor the version of the ledger is compared. */
export const noCompareAndSwap: readonly Edit[] = [
  {
    file: 'agent/turn/ledgers.ts',
    find: "if (expected !== undefined && textOf(current) !== expected) throw new LedgerChanged('another process wrote the ledger');",
    replace: "if (expected !== undefined && textOf(current) === '') throw new LedgerChanged('another process wrote the ledger');",
  },
  {
    file: 'cluster/request/write.ts',
    find: "method: 'PUT',\n    path: `${objectPath(resource, target, subresource)}${dryRunQuery(options)}`,\n    body: text(object),",
    replace: `method: 'PUT',
    path: \`\${objectPath(resource, target, subresource)}\${dryRunQuery(options)}\`,
    body: text(resource.kind === 'ConfigMap' ? { ...object, metadata: { name, namespace, labels: object.metadata.labels, annotations: object.metadata.annotations } } : object),`,
  },
];

export const ledgerDefects: readonly Defect[] = [
  {
    id: 'ledger-of-a-later-version-is-read',
    title: 'a ledger that only a later version reads is read and replaced',
    edits: [
      {
        file: 'engine/ledger/ledger-document.ts',
        find: 'if (major === format.major || major === pinnedFormat.major) return undefined;',
        replace: 'if (major >= format.major) return undefined;',
      },
    ],
    breaks: ['S4'],
  },
  {
    id: 'ledger-in-memory',
    title: 'an agent with a Lease keeps the ledger in memory while it may not write ConfigMaps',
    edits: [
      { file: 'agent/agent.ts', find: "mayUseMemory: () => this.#config.lease.mode !== 'required',", replace: 'mayUseMemory: () => true,' },
    ],
    breaks: ['S19'],
  },
  {
    id: 'no-write-ahead',
    title: 'pods are deleted before the ledger says so',
    edits: [noWriteAhead],
    breaks: ['S19'],
  },
  {
    id: 'claims-cleared-when-confirmed',
    title: 'a claim is dropped as soon as the server has confirmed the request, while the pod is still going',
    edits: [
      {
        file: turn,
        find: "const refused = outcomes.filter(({ result }) => result === 'conflict' || result === 'refused' || result === 'failed');",
        replace: "const refused = outcomes.filter(({ result }) => result !== 'unknown');",
      },
    ],
    breaks: ['S19'],
  },
  {
    id: 'claims-cleared-while-terminating',
    title: 'a claim is dropped when its pod is seen to terminate, before it is gone',
    edits: [
      {
        file: ledger,
        find: 'if (claimed !== undefined) return claimed.isTerminating || !(isOverdue || isVoid(claim, claimed));',
        replace: 'if (claimed !== undefined) return !(isOverdue || isVoid(claim, claimed));',
      },
    ],
    breaks: ['S19'],
  },
  {
    id: 'claims-never-cleared',
    title: 'claims stay in the ledger for ever',
    edits: [
      {
        file: ledger,
        find: ': isOpen(claim, zones.get(claim.zone), { nowMs: seen.nowMs, isOverdue: isOverdue(claim) }),',
        replace: ': isOpen(claim, zones.get(claim.zone), { nowMs: seen.nowMs, isOverdue: isOverdue(claim) }) || claim.atMs > 0,',
      },
    ],
    breaks: ['S1', 'L4', 'unfinished'],
  },
  {
    id: 'claims-not-counted',
    title: 'pods whose disruption is announced count as available',
    edits: [claimsNotCounted, noTouch],
    alsoWithout: 'the touch that makes a DELETE without an answer impossible',
    breaks: ['S1', 'S2', 'S8'],
  },
  {
    id: 'claims-overdue-early',
    title: 'a claim that nothing is seen of ends after 5 s, while its request may still arrive',
    edits: [
      { file: 'engine/snapshot.ts', find: 'export const unappliedClaimMs = 120_000;', replace: 'export const unappliedClaimMs = 5_000;' },
      noTouch,
    ],
    alsoWithout: 'the touch that makes a DELETE without an answer impossible',
    breaks: ['S19'],
  },
  {
    id: 'claims-aged-by-wall-clock',
    title: 'the age of a claim is taken from the wall clock, which may jump',
    edits: [{ file: gather, find: 'openForMs: openTimes(memory.knownSinceMs, stored.claims, askedMs),', replace: '' }, noTouch],
    alsoWithout: 'the touch that makes a DELETE without an answer impossible',
    breaks: ['S19'],
  },
  {
    id: 'foreign-claims-dropped',
    title: 'what a former leader announced, and what got no answer, is forgotten without a touch',
    edits: [foreignClaimsDropped, noTouch],
    breaks: ['S19'],
  },
  {
    id: 'epoch-begins-anew',
    title: 'after somebody deleted the Lease the epoch begins anew, below that of the ledger',
    edits: [
      {
        file: gather,
        find: 'memory.epoch ??= writingEpoch(stored, leading);',
        replace: 'memory.epoch ??= leading;',
      },
    ],
    breaks: ['L8', 'L12', 'unfinished'],
  },
  {
    id: 'epoch-not-compared',
    title: 'the ledger is written under an epoch below the one that it has',
    edits: [
      {
        file: gather,
        find: 'memory.epoch ??= writingEpoch(stored, leading);',
        replace: 'memory.epoch ??= leading;',
      },
      {
        file: gather,
        find: "if ((stored.epoch ?? 0) > memory.epoch) throw new Error('a later leader wrote the ledger');",
        replace: '',
      },
      {
        file: ledger,
        find: 'return (ledger.epoch ?? epoch) > epoch ? undefined : { ...ledger, epoch };',
        replace: 'return { ...ledger, epoch };',
      },
    ],
    breaks: ['S18'],
  },
  {
    id: 'ledger-without-compare-and-swap',
    title: 'the ledger is written over whatever somebody else has stored meanwhile',
    edits: noCompareAndSwap,
    breaks: ['L8', 'S18', 'S19', 'S20', 'unfinished'],
  },
  {
    id: 'memory-kept',
    title: 'a process that leads again goes on from what it remembered',
    edits: [{ file: 'agent/agent.ts', find: 'this.#memories.clear();', replace: '' }],
    breaks: ['L8', 'L12', 'unfinished'],
  },
  {
    id: 'conflict-drops-an-earlier-claim',
    title: 'a conflict ends the claim of an earlier request whose answer got lost',
    edits: [
      {
        file: 'agent/turn/ledger-changes.ts',
        find: 'return undone.has(key) ? (earlier.get(key) ?? []) : [claim];',
        replace: 'return undone.has(key) ? [] : [claim];',
      },
    ],
    breaks: ['S19'],
  },
];
