// Finds missing Secrets that metric sources and notification channels of the agent's namespace name. Keeps and shows no content.
import { isStatus } from '../../../cluster/request/failure.ts';
import { namedSecretProblem, secretReader } from '../../../cluster/request/secret.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import { secretKeysOf } from '../../../policies/integrations/secret-keys.ts';
import { loadObjects } from '../../../policies/live/objects.ts';
import { metricSources, notificationChannels } from '../../cluster-snapshot/kinds.ts';
import { listKnown } from '../../cluster-snapshot/listing.ts';
import type { Cluster } from '../../connection.ts';
import type { SecretsFact } from '../check.ts';

/** Unknown if the objects that may name Secrets may not be read. */
export async function readNamedSecrets(cluster: Cluster, agentNamespace: string): Promise<Known<SecretsFact>> {
  const lists = await Promise.all([metricSources, notificationChannels].map((resource) => listKnown(cluster, resource, [agentNamespace])));
  const unread = lists.find(isUnknown);
  if (unread !== undefined) return unread;
  const { documents } = loadObjects(lists.flatMap((list) => (isUnknown(list) ? [] : list)));
  const named = documents.flatMap((document) =>
    secretKeysOf(document, agentNamespace).map((key) => ({ key, object: `${document.kind} ${agentNamespace}/${document.name}` })),
  );
  const { env, timeoutMs } = cluster;
  const read = secretReader(env, { namespace: agentNamespace, site: 'doctor.secret', timeoutMs: () => timeoutMs });
  const problems: string[] = [];
  const forbidden: string[] = [];
  for (const { key, object } of named) {
    try {
      const found = await read(key);
      if ('problem' in found) problems.push(`${object}: ${namedSecretProblem(key, found.problem, agentNamespace)}`);
    } catch (error) {
      if (!isStatus(error, 403)) throw error;
      forbidden.push(key.name);
    }
  }
  return { named: named.length, problems: [...new Set(problems)], forbidden: [...new Set(forbidden)] };
}
