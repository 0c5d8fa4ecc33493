// Whether files or a cluster stand for what runs. Nothing of Kubernetes is loaded to tell.
import type { PolicyFile } from '../../policies/load.ts';
import type { PlanInputOptions } from './plan-inputs.ts';

export interface LivePlanOptions extends PlanInputOptions {
  readonly live?: boolean;
  readonly allNamespaces?: boolean;
  /** Instead of those that the files name; empty for all. */
  readonly namespaces?: readonly string[];
}

/** Files as they were read, so that a saved plan can be looked at again without them. */
export interface GivenFiles {
  readonly manifests: readonly PolicyFile[];
  readonly policies: readonly PolicyFile[];
}

/** Whether a cluster stands for what runs: when it is named, or when nothing else is. */
export function isLive({ live, current, desired }: LivePlanOptions): boolean {
  return live === true || (current === undefined && desired === undefined);
}
