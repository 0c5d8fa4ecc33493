// The former place of process/flags.ts, for test/agent/adopted, which still asks here; to be deleted with the last such import.
export * from './process/flags.ts';
