// The former place of metrics/metrics.ts, for test/agent/adopted, which still asks here; to be deleted with the last such import.
export * from './metrics/metrics.ts';
