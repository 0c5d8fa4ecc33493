// Policies with invalid conditions or windows, which are unusable although they fit the schema.
import type { Finding } from '../findings/finding.ts';
import { checkRuleConditions } from '../lint/conditions.ts';
import type { LintContext } from '../lint/context.ts';
import { checkWindowTimes } from '../lint/windows.ts';
import type { Loaded, LoadResult } from '../load.ts';
import { resolvePolicy } from '../resolve/policy.ts';
import { ofKind } from '../resolve/resolve.ts';

/**
 * Moves RolloutPolicies with invalid conditions, schedules or ranges to the unusable documents and adds their findings. An unknown variable in a
 * message is harmless.
 */
export function excludeInvalidPolicies(load: LoadResult): LoadResult {
  const unsound = new Map(
    ofKind(load.documents, 'RolloutPolicy').flatMap((policy): readonly [Loaded<'RolloutPolicy'>, readonly Finding[]][] => {
      const findings = problemsOf(policy, load);
      return findings.length === 0 ? [] : [[policy, findings]];
    }),
  );
  if (unsound.size === 0) return load;
  const isUnsound = (document: LoadResult['documents'][number]): boolean => document.kind === 'RolloutPolicy' && unsound.has(document);
  return {
    ...load,
    documents: load.documents.filter((document) => !isUnsound(document)),
    unusable: [...load.unusable, ...[...unsound.keys()].map(({ kind, namespace, name, value }) => ({ kind, namespace, name, value }))],
    findings: [...load.findings, ...[...unsound.values()].flat()],
  };
}

function problemsOf(policy: Loaded<'RolloutPolicy'>, load: LoadResult): readonly Finding[] {
  const context: LintContext = {
    load,
    bundle: { groups: [], policies: [resolvePolicy(policy)], exceptions: [] },
    groups: [],
    policies: [policy],
    exceptions: [],
    intents: [],
    statefulSets: [],
    agentNamespace: '',
    engineRules: undefined,
  };
  return [checkRuleConditions, checkWindowTimes]
    .flatMap((check) => check(context))
    .filter(({ severity, pointer }) => severity === 'error' && !pointer.endsWith('/message'));
}
