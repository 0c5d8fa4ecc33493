// Reads and writes the holder of a Lease as client-go does.
import { isJsonObject, type JsonObject } from '../request/json.ts';
import type { KubernetesObject } from '../request/resource.ts';

export interface LeaseRecord {
  /** Empty when it was given away. */
  readonly holder: string;
  /** Duration that the holder announced, in milliseconds; 0 if invalid. */
  readonly durationMs: number;
  /** Changes of holder so far. */
  readonly transitions: number;
  /** The same text for the same record: labels and the like are no part of it. */
  readonly fingerprint: string;
}

/** Longest duration that counts, so that an edited Lease cannot block others for longer. */
const longestDurationMs = 600_000;

/** Never throws: fields that are not what they should be count as absent. */
export function leaseRecordOf(object: KubernetesObject): LeaseRecord {
  const spec = isJsonObject(object['spec']) ? object['spec'] : {};
  const { holderIdentity, leaseDurationSeconds, leaseTransitions, renewTime, acquireTime } = spec;
  const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  return {
    holder: typeof holderIdentity === 'string' ? holderIdentity : '',
    durationMs: isCount(leaseDurationSeconds) ? Math.min(leaseDurationSeconds * 1000, longestDurationMs) : 0,
    transitions: isCount(leaseTransitions) ? leaseTransitions : 0,
    fingerprint: JSON.stringify([holderIdentity, leaseDurationSeconds, leaseTransitions, renewTime, acquireTime]),
  };
}

export interface NewRecord {
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
  /** Wall clock in milliseconds. Written for people; no decision uses it. */
  readonly nowMs: number;
  /** The holder stays: the time at which it began is kept. */
  readonly isRenewal: boolean;
}

/** The spec with the record in it; fields that are not ours stay. */
export function leaseSpec(
  existing: KubernetesObject | undefined,
  { holder, durationMs, transitions, nowMs, isRenewal }: NewRecord,
): JsonObject {
  const spec = isJsonObject(existing?.['spec']) ? existing['spec'] : {};
  const now = microTime(nowMs);
  return {
    ...spec,
    holderIdentity: holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    acquireTime: isRenewal ? (spec['acquireTime'] ?? now) : now,
    renewTime: now,
    leaseTransitions: transitions,
  };
}

/** As Kubernetes reads a MicroTime: with exactly six digits after the point. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
