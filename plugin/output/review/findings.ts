// Turns the effects of a review into findings, for SARIF, JUnit and the annotations of GitHub.
import type { Source } from '../../../policies/definition.ts';
import type { FindingCode } from '../../../policies/findings/codes.ts';
import { type Finding, finding, type Place } from '../../../policies/findings/finding.ts';
import type { EnvironmentReview, PolicyEffect, Review } from '../../../review/document.ts';
import { effectText, groupText, plannedGroups } from './review-text.ts';

const codes: Readonly<Record<PolicyEffect['direction'], FindingCode>> = { loosened: 'RG8001', tightened: 'RG8002', changed: 'RG8003' };

export function reviewFindings({ environments }: Review): readonly Finding[] {
  const found = environments.flatMap((one) => {
    const prefix = environments.length > 1 ? `${one.name}: ` : '';
    return [...policyFindings(one, prefix), ...planFindings(one, prefix), ...testFindings(one, prefix)];
  });
  return found.sort((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0));
}

function policyFindings({ policies }: EnvironmentReview, prefix: string): readonly Finding[] {
  return policies.effects.map((effect) => {
    const { namespace, group, before, after, direction } = effect;
    const place = placeOf(`RolloutGroup ${namespace}/${group}`, after?.source ?? before?.source);
    return finding(codes[direction], place, `${prefix}${effectText(effect)}`);
  });
}

function planFindings({ plan }: EnvironmentReview, prefix: string): readonly Finding[] {
  return plannedGroups(plan)
    .filter(({ outcome }) => outcome === 'blocked')
    .map((group) => {
      const name = `${group.namespace}/${group.group}`;
      const [refusal] = group.refused;
      const source = [...(refusal?.results ?? []), ...group.waits].find((one) => one.source?.file !== undefined)?.source;
      const text = refusal === undefined ? groupText(group) : `${refusal.what}: ${refusal.message}`;
      return finding('RG8004', placeOf(`RolloutGroup ${name}`, source), `${prefix}${name}: ${text}`);
    });
}

function testFindings({ tests }: EnvironmentReview, prefix: string): readonly Finding[] {
  return (tests?.head.failures ?? []).map((failure) => {
    const place = placeOf(`PolicyTest ${failure.test}`, failure);
    return finding('RG8005', place, `${prefix}${failure.case}: ${failure.problems.join('; ')}`);
  });
}

function placeOf(object: string, source: Source | undefined): Place {
  const { file = '', line = 0, column = 0 } = source ?? {};
  return { file, line, column, pointer: '', object };
}
