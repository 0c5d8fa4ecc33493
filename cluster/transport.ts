// The former place of connection/transport.ts, for test/agent/adopted, which still asks here; to be deleted with the last such import.
export * from './connection/transport.ts';
