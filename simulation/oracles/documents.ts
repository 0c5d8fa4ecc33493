// The ledgers in the storage, read by the rules of docs alone: what is claimed there, under which leadership.
import type { ModelObject } from '../server/request.ts';
import { field, listAt, numberAt, parsed, textAt } from './objects.ts';

export type ClaimVerb = 'deletePod' | 'evictPod' | 'scaleDown';

/** A disruption that is announced. */
export interface Claimed {
  readonly verb: ClaimVerb;
  readonly zone: string;
  /** Of the pod; of the StatefulSet for scaleDown. */
  readonly uid: string;
  readonly resourceVersion: string | undefined;
  readonly to: number | undefined;
}

export interface LedgerText {
  readonly group: string;
  readonly epoch: number | undefined;
  /** By verb and UID, and the number of a scaleDown. */
  readonly claims: ReadonlyMap<string, Claimed>;
  /** Pods that may be prepared to leave, as `zone ordinal call`. */
  readonly prepared: readonly string[];
}

/** Whether a ConfigMap holds the ledger of a group. */
export function isLedger({ metadata }: ModelObject): boolean {
  return metadata.name.startsWith('rollout-group-') && metadata.labels?.['rollout-group.dev/document'] === 'ledger';
}

/** What it says; undefined when it is not to be read. */
export function readLedger(object: ModelObject): LedgerText | undefined {
  const value = parsed(textAt(object, 'data', 'ledger'));
  if (value === undefined) return undefined;
  const claims = new Map<string, Claimed>();
  for (const entry of listAt(value, 'claims')) for (const claim of claimsOf(entry)) claims.set(keyOf(claim), claim);
  const prepared = listAt(value, 'preparations')
    // A pod that was told to stay after it failed is kept only so that it is not asked again at once.
    .filter((entry) => field(entry, 'isWithdrawn') !== true)
    .map((entry) => `${textAt(entry, 'zone')} ${textAt(entry, 'ordinals')} ${textAt(entry, 'call')}`);
  return { group: textAt(value, 'group') ?? '', epoch: numberAt(value, 'epoch'), claims, prepared };
}

/** A key that is the same for the same announcement. */
export function keyOf({ verb, uid, to, resourceVersion }: Claimed): string {
  return `${verb} ${uid} ${to ?? ''} ${resourceVersion ?? ''}`;
}

function claimsOf(entry: unknown): readonly Claimed[] {
  const verb = textAt(entry, 'verb') as ClaimVerb | undefined;
  const zone = textAt(entry, 'zone') ?? '';
  if (verb === undefined) return [];
  if (verb === 'scaleDown') {
    return [{ verb, zone, uid: textAt(entry, 'uid') ?? '', resourceVersion: textAt(entry, 'resourceVersion'), to: numberAt(entry, 'to') }];
  }
  const versions = listAt(entry, 'resourceVersions');
  return listAt(entry, 'uids').map((uid, index) => {
    const version = versions[index];
    return { verb, zone, uid: String(uid), resourceVersion: typeof version === 'string' ? version : undefined, to: undefined };
  });
}
