// Every judge of a run.
import type { OracleFactory } from './oracle.ts';

/** Makes one of each; the run tells all of them everything. */
export const oracleFactories: readonly OracleFactory[] = [];
