import { describe, expect, it } from 'vitest';
import { lintPolicies } from '../../policies/lint/lint.ts';

const printed = (metadata: string, tail = '') => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata:
  name: ingester
  namespace: mimir
${metadata}spec:
  members: { zones: [{ name: a, statefulSet: ingester-zone-a }] }
  rollout: { strategy: partition }
${tail}`;

const codesOf = (text: string) =>
  lintPolicies([{ name: 'get.yaml', text }])
    .findings.filter((one) => one.severity !== 'notice')
    .map((one) => one.message);

describe('the output of kubectl', () => {
  it('is a policy, and what the API server added is no finding', () => {
    const metadata = `  uid: f5b0
  resourceVersion: "17"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [example.com/keep]
  ownerReferences: [{ apiVersion: v1, kind: ConfigMap, name: x, uid: z1 }]
  managedFields: [{ manager: kubectl, fieldsV1: { "f:spec": {} } }]
`;
    expect(codesOf(printed(metadata, 'status: { phase: Done }\n'))).toEqual([]);
  });

  it('is a finding where only a person could have written it', () => {
    expect(codesOf(printed('  lables: {}\n'))).toEqual(['metadata has no field lables']);
    const policy =
      'apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: { name: p }\nspec: { targets: { all: true }, limits: { minReplicas: 2 } }\nstatus: {}\n';
    expect(codesOf(policy)).toEqual(['the document has no field status']);
  });
});
