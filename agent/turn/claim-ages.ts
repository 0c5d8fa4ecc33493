// For how long a process has known each claim of a ledger, by a clock that does not jump.

import type { Claim } from '../../engine/snapshot.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';

/**
 * For how long this process has known each claim. Who announced it may have had another clock, and clocks are set: by the instants alone one
 * could be dropped while its request is on the way, or hold the group for as long as a clock was wrong.
 */
export function openTimes(sinceMs: Map<string, number>, claims: readonly Claim[], nowMs: number): (claim: Claim) => number {
  const open = new Set(claims.map(canonicalJson));
  for (const text of sinceMs.keys()) if (!open.has(text)) sinceMs.delete(text);
  for (const text of open) if (!sinceMs.has(text)) sinceMs.set(text, nowMs);
  return (claim) => nowMs - (sinceMs.get(canonicalJson(claim)) ?? nowMs);
}
