// Starts caches, policies and the guard of a process that only serves webhooks. Such a process never leads and takes no action.
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { PolicySource } from '../policies/policies.ts';
import type { Degradation } from '../report.ts';
import { concernsPolicies, type SharedWatches, startCaches } from '../watched/caches.ts';
import { AdmissionGuard } from './guard.ts';

export interface Admission {
  readonly guard: AdmissionGuard;
  readonly followed: SharedWatches;
  /** Ends every watch. */
  readonly stop: () => void;
}

/** Starts watching. Never throws: what is missing is tried again, and `guard.isSettled` says when everything is known. */
export function startAdmission(
  env: AgentEnv,
  config: Pick<AgentConfig, 'namespaces' | 'agentNamespace' | 'policySources' | 'areIntentsStamped' | 'identity'>,
  /** Hears of what is missing, each time when something of it changes. */
  onDegraded: (degradations: readonly Degradation[]) => void = () => undefined,
): Admission {
  let told = '[]';
  const tell = (): void => {
    const now = [...caches.degradations(), policies.degradation()].filter((degradation) => degradation !== undefined);
    const text = JSON.stringify(now);
    if (text === told) return;
    told = text;
    onDegraded(now);
  };
  const caches = startCaches(env, config, (change) => {
    if (concernsPolicies(change)) policies.refresh();
    if (change.kind === 'state') tell();
  });
  const policies = new PolicySource({ env, config, caches, onChange: () => undefined, onState: tell });
  policies.refresh();
  return {
    guard: new AdmissionGuard({ env, config, caches, policies: () => policies.upToDate() }),
    followed: caches.shared,
    stop: () => {
      policies.stop();
      caches.stop();
    },
  };
}
