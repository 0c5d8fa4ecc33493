// The former place of connection/kubeconfig.ts, for test/agent/adopted, which still asks here; to be deleted with the last such import.
export * from './connection/kubeconfig.ts';
