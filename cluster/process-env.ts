// The former place of connection/process-env.ts, for test/agent/adopted, which still asks here; to be deleted with the last such import.
export * from './connection/process-env.ts';
