// What a process needs that only serves webhooks: caches and policies of its own, and the guard over them. It leads nothing and acts on nothing.
import { isSameJson } from '../../cluster/request/json.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import { type ActivePolicies, startPolicySource } from '../policies/policies.ts';
import type { Degradation } from '../report.ts';
import { startCaches } from '../watched/caches.ts';
import { type AdmissionGuard, admissionGuard } from './guard.ts';

export interface Admission {
  readonly guard: AdmissionGuard;
  /** The policies in force; undefined until they were worked out once. */
  readonly policies: () => ActivePolicies | undefined;
  readonly degradations: () => readonly Degradation[];
  /** Ends every watch. */
  readonly stop: () => void;
}

/** Starts watching. Never throws: what is missing is tried again, and `guard.isSettled` says when everything is known. */
export function startAdmission(
  env: AgentEnv,
  config: Pick<AgentConfig, 'namespaces' | 'agentNamespace' | 'policySources' | 'areIntentsStamped' | 'identity'>,
): Admission {
  const caches = startCaches(env, config, (change) => {
    if (change.kind === 'policy' || change.kind === 'state') policies.refresh();
    if (change.kind === 'statefulSet') {
      const { view, before } = change.change;
      if (!isSameJson(view?.manifest, before?.manifest)) policies.refresh();
    }
  });
  const policies = startPolicySource(env, config, caches, { onChange: () => undefined, onState: () => undefined });
  policies.refresh();
  return {
    guard: admissionGuard({ env, config, caches, policies: policies.upToDate }),
    policies: policies.current,
    degradations: () => [...caches.degradations(), policies.degradation()].filter((degradation) => degradation !== undefined),
    stop: () => {
      policies.stop();
      caches.stop();
    },
  };
}
