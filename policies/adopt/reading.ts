// Readings: what one setting of one StatefulSet came to, and what is to be said about it.
import { type AdoptionFinding, type AdoptionProblem, adoptionFinding } from './findings.ts';
import type { AdoptedStatefulSet } from './statefulset.ts';

/** A reason not to scale, and the label or annotation that gives it. */
export interface Hold {
  readonly text: string;
  readonly field: string;
}

/** The outcome of reading one setting. Without value and holds the setting is off. */
export interface Reading<Value> {
  readonly value?: Value;
  /** Why the StatefulSet is not scaled at all. */
  readonly hold?: Hold;
  /** Why the StatefulSet does not shrink. */
  readonly downHold?: Hold;
  readonly findings: readonly AdoptionFinding[];
}

/** The setting is not there, or means that it is off. */
export const off: Reading<never> = { findings: [] };

/** A setting that reads well. */
export function reads<Value>(value: Value, findings: readonly AdoptionFinding[] = []): Reading<Value> {
  return { value, findings };
}

/** A value that cannot be used: the original refuses to scale, so the reason becomes a hold and a finding. */
export function holds(
  set: AdoptedStatefulSet,
  problem: AdoptionProblem,
  { field, text, only }: { readonly field: string; readonly text: string; readonly only?: 'down' },
): Reading<never> {
  const finding = adoptionFinding(set, problem, field, `${text}; the StatefulSet is not ${only === 'down' ? 'shrunk' : 'scaled'}`);
  const hold = { text, field };
  return only === 'down' ? { downHold: hold, findings: [finding] } : { hold, findings: [finding] };
}
