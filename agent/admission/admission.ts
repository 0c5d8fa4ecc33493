// What a process needs that only serves webhooks: caches and policies of its own, and the guard over them. It leads nothing and acts on nothing.
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { startPolicySource } from '../policies/policies.ts';
import { concernsPolicies, startCaches } from '../watched/caches.ts';
import { type AdmissionGuard, admissionGuard } from './guard.ts';

export interface Admission {
  readonly guard: AdmissionGuard;
  /** Ends every watch. */
  readonly stop: () => void;
}

/** Starts watching. Never throws: what is missing is tried again, and `guard.isSettled` says when everything is known. */
export function startAdmission(
  env: AgentEnv,
  config: Pick<AgentConfig, 'namespaces' | 'agentNamespace' | 'policySources' | 'areIntentsStamped' | 'identity'>,
): Admission {
  const caches = startCaches(env, config, (change) => {
    if (concernsPolicies(change)) policies.refresh();
  });
  const policies = startPolicySource(env, config, caches, { onChange: () => undefined, onState: () => undefined });
  policies.refresh();
  return {
    guard: admissionGuard({ env, config, caches, policies: policies.upToDate }),
    stop: () => {
      policies.stop();
      caches.stop();
    },
  };
}
