// What a row of the table of threats says.
import type { NamedTest } from '../kit/named-tests.ts';

export interface Threat {
  readonly id: number;
  /** Of STRIDE: spoofing, tampering, repudiation, information disclosure, denial of service, elevation of privilege. */
  readonly stride: string;
  readonly threat: string;
  readonly rule: string;
  readonly tests: readonly NamedTest[];
  /** What of it is not done, or not shown by a test, and why. */
  readonly open?: string;
}
