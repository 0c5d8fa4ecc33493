// Decides for a turn which changes of the ledger must be stored, and tracks the claims that this process announced and knows.

import type { Action } from '../../engine/decision.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import { type Claim, claimEndMs, type Ledger, type Preparation } from '../../engine/snapshot.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';

/** Returns whether a reader of the stored ledger would decide differently than with `next`. Times that only grow do not count. */
export function isWorthWriting(stored: Ledger, next: Ledger): boolean {
  if (next === stored) return false;
  const known = new Set(stored.downscales.map(canonicalJson));
  if (next.downscales.some((record) => !known.has(canonicalJson(record)))) return true;
  return !isSameValue(essence(stored), essence(next));
}

function essence({
  claims,
  preparations,
  created = [],
  run,
  pins = [],
  templates = [],
  release,
  members,
  endedCancels = [],
}: Ledger): unknown {
  return {
    release,
    members,
    endedCancels,
    pins: sorted(pins),
    templates: templates.map(({ zone, revision }) => `${zone} ${revision}`).sort(),
    claims: sorted(claims),
    preparations: sorted(preparations.map(essenceOfPreparation)),
    created: sorted(created),
    run: run === undefined ? null : essenceOfRun(run),
  };
}

/** Removes the times that need not be stored again. If the run is completed, the times of pods in flight are removed too. */
function essenceOfRun({ movableMs: _movableMs, movableAsOfMs: _movableAsOfMs, inFlightSinceMs, ...run }: RunState): unknown {
  return run.outcome === 'completed' ? { ...run, isMovable: undefined } : { ...run, inFlightSinceMs };
}

/** Replaces the states `asked` and `failed` by one state. In both states, the pod may be prepared and needs a further call. */
function essenceOfPreparation(entry: Preparation): unknown {
  if (entry.state === 'prepared') return entry;
  const { zone, ordinal, podUid, call, isWithdrawn = false } = entry;
  return { zone, ordinal, podUid, call, isWithdrawn, state: 'open' };
}

function sorted(values: readonly unknown[]): readonly string[] {
  return values.map(canonicalJson).sort();
}

/**
 * Returns the ledger without the claims of actions that had no effect. Claims of other scale-downs of the StatefulSet stay. A claim that was
 * open before the actions stays with its time, because its earlier request may have been carried out or may still arrive.
 */
export function withoutClaimsOf(ledger: Ledger, actions: readonly Action[], before: Pick<Ledger, 'claims'>): Ledger {
  const earlier = new Map(before.claims.map((claim) => [keyOf(claim.verb, claim), claim]));
  const undone = new Set(actions.flatMap((action) => ('uid' in action ? [keyOf(verbOf(action.kind), action)] : [])));
  const claims = ledger.claims.flatMap((claim) => {
    const key = keyOf(claim.verb, claim);
    return undone.has(key) ? (earlier.get(key) ?? []) : [claim];
  });
  const isSame = claims.length === ledger.claims.length && claims.every((claim, index) => claim === ledger.claims[index]);
  return isSame ? ledger : { ...ledger, claims };
}

/**
 * Returns the claims, as text, that this process added to the ledger and that may still be stored. A claim that renews the claim of another
 * process is not one of them, because the earlier request of that process may still arrive.
 */
export function announcedIn(next: Ledger, stored: Ledger, before: ReadonlySet<string>): ReadonlySet<string> {
  const known = new Set(stored.claims.map(canonicalJson));
  const others = new Set(stored.claims.filter((claim) => !before.has(canonicalJson(claim))).map((claim) => keyOf(claim.verb, claim)));
  const added = next.claims.filter((claim) => !others.has(keyOf(claim.verb, claim))).map(canonicalJson);
  return new Set([...added, ...[...before].filter((claim) => known.has(claim))]);
}

/** Returns the key of a claim on one object; two scale-downs differ by their target. */
function keyOf(verb: string, { uid, to }: { readonly uid: string; readonly to?: unknown }): string {
  return `${verb} ${uid} ${to ?? ''}`;
}

function verbOf(kind: Action['kind']): string {
  return kind === 'scaleStatefulSet' ? 'scaleDown' : kind;
}

/** Returns when each claim expires if it is not applied (monotonic). `sinceMs` contains the time since which each claim is known. */
export function claimEndsMs({ claims }: Ledger, sinceMs: ReadonlyMap<string, number>, nowMs: number): readonly number[] {
  return claims.map((claim) => claimEndMs({ atMs: sinceMs.get(canonicalJson(claim)) ?? nowMs }));
}

/** Returns how long this process has known each claim. It uses the monotonic clock, because the clocks of other processes can be wrong. */
export function openTimes(sinceMs: Map<string, number>, claims: readonly Claim[], nowMs: number): (claim: Claim) => number {
  const open = new Set(claims.map(canonicalJson));
  for (const text of sinceMs.keys()) if (!open.has(text)) sinceMs.delete(text);
  for (const text of open) if (!sinceMs.has(text)) sinceMs.set(text, nowMs);
  return (claim) => nowMs - (sinceMs.get(canonicalJson(claim)) ?? nowMs);
}
