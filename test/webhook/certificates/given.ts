// What tests of certificates begin with: bytes that can be told apart, and pairs made at a given time.
import { type IssuedPair, type IssueOptions, issuePair } from '../../../webhook/certificates/authority.ts';

/** The first byte counts the calls; every call answers other bytes. */
export function countingBytes(first = 1): (count: number) => Uint8Array {
  let calls = first;
  return (count) => Uint8Array.from({ length: count }, (_, index) => (index === 1 ? calls++ : index) & 0xff);
}

const randomBytes = countingBytes();

export const service = { service: 'operator', namespace: 'one', clusterDomain: 'cluster.local.' } as const;

/** A pair for the service, valid for a day unless told otherwise. */
export function pairOf(options: Partial<IssueOptions> & { readonly nowMs: number }): IssuedPair {
  return issuePair({ names: ['operator.one.svc'], organization: 'Example', lifetimeMs: 86_400_000, randomBytes, ...options });
}
