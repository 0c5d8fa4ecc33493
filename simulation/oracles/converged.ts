// Whether a group has become what was asked of it, and what of it is missing.
import type { Scene } from './oracle.ts';

/** What a StatefulSet is to become. */
export interface Wanted {
  readonly statefulSet: string;
  /** Of every container of its pods. */
  readonly image: string;
  readonly replicas: number;
}

/** What is missing, as one sentence part; undefined when the group is as wanted and nothing of the work on it is left. */
export function isConverged(_scene: Pick<Scene, 'namespace' | 'list' | 'get'>, _wanted: readonly Wanted[]): string | undefined {
  return 'nothing has been looked at';
}
