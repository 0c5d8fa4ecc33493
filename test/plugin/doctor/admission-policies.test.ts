import { describe, expect, it } from 'vitest';
import { admissionPoliciesOf, markAnnotation, markOf } from '../../../install/admission-policy.ts';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts, RegistrationFact } from '../../../plugin/doctor/check.ts';
import { readAdmissionPolicies } from '../../../plugin/doctor/gather/admission.ts';
import { optionsOf } from '../../install/given.ts';
import { group } from '../../kit/groups.ts';
import { type ClusterAnswers, clusterOf } from '../served-objects.ts';
import { facts } from './kit.ts';

const all = admissionPoliciesOf(optionsOf());
const objects = {
  validatingadmissionpolicies: all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy'),
  validatingadmissionpolicybindings: all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding'),
};
const installed: RegistrationFact = {
  isRegistered: true,
  configurations: [],
  services: [],
  problems: [],
  namespaces: [{ name: 'mimir', isOptedIn: true }],
};
const nothing: RegistrationFact = { ...installed, isRegistered: false, namespaces: [{ name: 'mimir', isOptedIn: false }] };

/** What doctor says of them. */
async function said(answers: ClusterAnswers, registration: Facts['registration'] = installed): Promise<readonly string[]> {
  const groups = [group({ rollout: { strategy: 'pinned' } })];
  const question = { agentNamespace: 'rollout-group', groups, registration: registration ?? installed };
  const admissionPolicies = await readAdmissionPolicies(clusterOf(answers), question);
  const results = examine({ ...facts(), ...(admissionPolicies === undefined ? {} : { admissionPolicies }) });
  return results.filter(({ check }) => check === 'policies').map(({ verdict, message, code = '-' }) => `${verdict} ${code} ${message}`);
}

describe('the admission policies', () => {
  it('are valid as installed', async () => {
    expect(await said({ objects })).toEqual(['ok - the admission policies are as installed']);
  });

  it('are named if they are missing after an installation', async () => {
    const lines = [
      'warn RG6021 ValidatingAdmissionPolicy rollout-group-requested-by does not exist: without the webhook /admission/stamp any user can claim to be the requester of an intent',
      'warn RG6021 ValidatingAdmissionPolicy rollout-group-update-strategy does not exist: while no webhook answers, any user can replace pods without waves and budgets',
    ];
    expect(await said({})).toEqual(lines);
    expect(await said({}, { unknown: 'no permission' })).toEqual(['SKIP - no permission']);
    expect(await said({}, nothing)).toEqual([]);
    expect(await said({ objects }, nothing)).toHaveLength(1);
  });

  it('that were changed, or are bound without a denial, are failures', async () => {
    const bindings = objects.validatingadmissionpolicybindings.map((one) => ({
      ...one,
      spec: { ...(one['spec'] as object), validationActions: ['Audit'] },
    }));
    expect(await said({ objects: { ...objects, validatingadmissionpolicybindings: bindings } })).toEqual([
      'FAIL RG6021 ValidatingAdmissionPolicyBinding rollout-group-requested-by denies nothing: its validationActions are Audit',
      'FAIL RG6021 ValidatingAdmissionPolicyBinding rollout-group-update-strategy denies nothing: its validationActions are Audit',
    ]);
  });

  it('of another version are a warning', async () => {
    const policies = objects.validatingadmissionpolicies.map((one) => {
      const spec = { ...(one['spec'] as object), variables: [] };
      return { ...one, metadata: { ...one.metadata, annotations: { [markAnnotation]: markOf(spec) } }, spec };
    });
    expect(await said({ objects: { ...objects, validatingadmissionpolicies: policies } })).toEqual([
      'warn RG6021 ValidatingAdmissionPolicy rollout-group-requested-by was installed by another version',
      'warn RG6021 ValidatingAdmissionPolicy rollout-group-update-strategy was installed by another version',
    ]);
  });

  it('are skipped if the server has no such kinds, or if they may not be read', async () => {
    const missing = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];
    expect(await said({ missing })).toEqual([
      'SKIP - this API server has no ValidatingAdmissionPolicies: groups are unprotected while the webhooks do not answer',
    ]);
    expect(await said({ missing }, nothing)).toEqual([]);
    expect(await said({ objects, forbidden: missing })).toEqual([
      'SKIP - no permission to get validatingadmissionpolicies, so it is unknown whether the admission policies are installed',
    ]);
    expect(await said({ objects, forbidden: missing }, nothing)).toEqual([]);
  });
});
