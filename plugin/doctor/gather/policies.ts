// Reads our admission policies and their bindings as stored.
import { isStatus } from '../../../cluster/request/failure.ts';
import { asJsonObject } from '../../../cluster/request/json.ts';
import { getObject } from '../../../cluster/request/read.ts';
import type { Resource } from '../../../cluster/request/resource.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import { admissionPolicyKinds } from '../../../install/admission-policy-objects.ts';
import { markAnnotation } from '../../../install/policy-mark.ts';
import { admissionPolicyProblems, policyNames, type StoredPolicy } from '../../../install/registered-policies.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import type { Cluster } from '../../connection.ts';
import type { AdmissionPolicyFact, RegistrationFact } from '../check.ts';

const kinds: readonly Resource[] = admissionPolicyKinds.map((kind) => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  isNamespaced: false,
  plural: kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings',
}));

interface PoliciesQuestion {
  readonly agentNamespace: string;
  readonly groups: readonly GroupDefinition[];
  /** Policies are missing only if another part of the installation exists, or a namespace is enforced. */
  readonly registration: Known<RegistrationFact>;
}

/** Returns undefined if nothing is installed. Returns unknown, with the missing permission, if they may not be read. */
export async function readAdmissionPolicies(
  cluster: Cluster,
  { agentNamespace: namespace, groups, registration }: PoliciesQuestion,
): Promise<Known<AdmissionPolicyFact> | undefined> {
  const optedIn = new Set(
    isUnknown(registration) ? [] : registration.namespaces.filter(({ isOptedIn }) => isOptedIn).map(({ name }) => name),
  );
  const isExpected = isUnknown(registration) || registration.areThere || optedIn.size > 0;
  const stored = await readAll(cluster, policyNames({ namespace }));
  if (isUnknown(stored)) return isExpected ? stored : undefined;
  if (stored === 'not served') return isExpected ? { isServed: false, problems: [] } : undefined;
  if (stored.length === 0 && isUnknown(registration)) return registration;
  if (stored.length === 0 && !isExpected) return undefined;
  const membersOf = (some: readonly GroupDefinition[]) =>
    some
      .filter((one) => optedIn.has(one.namespace))
      .flatMap(({ namespace: place, zones }) => zones.map(({ statefulSet }) => ({ namespace: place, statefulSet })));
  const named = membersOf(groups.filter((group) => traitsOf(group).lowersPartition));
  const held = [...membersOf(groups.filter((group) => traitsOf(group).pinsPods)), ...named];
  return { isServed: true, problems: admissionPolicyProblems(stored, { namespace, held, named }) };
}

async function readAll({ env, timeoutMs }: Cluster, names: readonly string[]): Promise<Known<readonly StoredPolicy[]> | 'not served'> {
  const stored: StoredPolicy[] = [];
  for (const resource of kinds) {
    for (const name of names) {
      try {
        const found = await getObject(env, resource, { name }, { site: 'doctor.admissionPolicies', timeoutMs });
        if (found === undefined) continue;
        const mark = found.metadata.annotations?.[markAnnotation];
        stored.push({ kind: resource.kind, name, spec: asJsonObject(found['spec']), ...(mark === undefined ? {} : { mark }) });
      } catch (error) {
        if (isStatus(error, 404)) return 'not served';
        if (!isStatus(error, 403)) throw error;
        return { unknown: `no permission to get ${resource.plural}, so it is unknown whether the admission policies are installed` };
      }
    }
  }
  return stored;
}
