// Options of plans on a cluster. Loads no Kubernetes code.
import type { PolicyFile } from '../../policies/load.ts';
import type { PlanInputOptions } from './plan-inputs.ts';

export interface LivePlanOptions extends PlanInputOptions {
  readonly live?: boolean;
  readonly allNamespaces?: boolean;
  /** Replaces the namespaces that the files name; empty for all. */
  readonly namespaces?: readonly string[];
}

/** Files as read, so that a saved plan can be checked without them. */
export interface GivenFiles {
  readonly manifests: readonly PolicyFile[];
  readonly policies: readonly PolicyFile[];
}

/** Reports whether the plan is on a cluster: with --live, or without --current and --desired. */
export function isLive({ live, current, desired }: LivePlanOptions): boolean {
  return live === true || (current === undefined && desired === undefined);
}
