import { describe, expect, it } from 'vitest';
import { isUnknown } from '../../../../engine/snapshot.ts';
import { readAccounts } from '../../../../plugin/doctor/gather/accounts.ts';
import type { AgentLease, LatestDecision } from '../../../../plugin/live/agent.ts';
import { type ClusterAnswers, clusterOf } from '../../served-objects.ts';
import { lease } from '../kit.ts';

const account = (namespace: string) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'rollout-group-agent', namespace } });
const podOf = (namespace: string, name: string, serviceAccountName: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: { serviceAccountName, containers: [{ name: 'agent', image: 'agent:1' }] },
});
const decided = (namespace: string, leader: string): LatestDecision => ({ namespace, group: 'ingester', decidedMs: 1, leader });

interface Seen {
  readonly leases?: readonly AgentLease[];
  readonly published?: readonly LatestDecision[];
  readonly watched?: readonly string[];
}

/** Account by account: the namespaces that it was asked about, or why it was not. */
async function accounts(answers: ClusterAnswers, { leases = [lease()], published = [], watched = ['mimir'] }: Seen = {}) {
  const cluster = clusterOf({ reviews: () => ({ status: { allowed: true } }), ...answers });
  const facts = await readAccounts(cluster, { watched, pinned: [], leases, published, usualNamespace: 'rollout-group' });
  return facts.map(({ name, rights }) =>
    isUnknown(rights)
      ? [name, rights.unknown]
      : [name, ...new Set(rights.flatMap(({ right, namespace = '' }) => (right.scope === 'namespace' ? [namespace] : [])))],
  );
}

describe('the account of the agent', () => {
  it('is that of the pod with the Lease', async () => {
    const objects = { pods: [podOf('rollout-group', 'agent-1', 'other')], serviceaccounts: [account('rollout-group')] };
    expect(await accounts({ objects })).toEqual([['rollout-group/other', 'mimir']]);
  });

  it('is the usual one where it exists', async () => {
    const objects = { serviceaccounts: [account('rollout-group')] };
    expect(await accounts({ objects })).toEqual([['rollout-group/rollout-group-agent', 'mimir']]);
    expect(await accounts({ objects, forbidden: ['pods'] })).toEqual([['rollout-group/rollout-group-agent', 'mimir']]);
  });

  it('is not assumed for an agent that runs elsewhere, nor without read access', async () => {
    expect(await accounts({})).toEqual([
      [
        'rollout-group',
        'no Pod shows the account of agent-1, and there is no ServiceAccount rollout-group/rollout-group-agent; name the account with --agent-service-account NAMESPACE/NAME',
      ],
    ]);
    const [[, unknown] = []] = await accounts({ forbidden: ['pods', 'serviceaccounts'] });
    expect(unknown).toMatch(/^no permission to get serviceaccounts in rollout-group, /);
  });

  it('is not asked about namespaces that its agent does not watch', async () => {
    const pod = podOf('rollout-group', 'agent-1', 'other');
    const told = (flag: string) => ({
      pods: [{ ...pod, spec: { ...pod.spec, containers: [{ name: 'agent', image: 'agent:1', args: ['-v', flag] }] } }],
    });
    const look = (flag: string) => {
      const cluster = clusterOf({ objects: told(flag), reviews: () => ({ status: { allowed: true } }) });
      return readAccounts(cluster, { watched: ['mimir', 'loki'], pinned: [], leases: [lease()], published: [], usualNamespace: 'x' });
    };
    const [fact] = await look('-namespaces=loki,tempo');
    expect(fact?.unwatched).toEqual({ namespaces: ['mimir'], flag: '-namespaces=loki,tempo' });
    const rights = fact === undefined || isUnknown(fact.rights) ? [] : fact.rights;
    expect(new Set(rights.map(({ namespace }) => namespace))).toEqual(new Set(['loki', 'rollout-group', undefined]));
    expect((await look('-namespaces=*'))[0]).not.toHaveProperty('unwatched');
  });

  it('is asked about a Secret only if its process keeps a certificate there', async () => {
    const pod = podOf('rollout-group', 'agent-1', 'other');
    const secrets = async (...args: readonly string[]) => {
      const pods = [{ ...pod, spec: { ...pod.spec, containers: [{ name: 'agent', image: 'agent:1', args }] } }];
      const cluster = clusterOf({ objects: { pods }, reviews: () => ({ status: { allowed: true } }) });
      const question = { watched: [], pinned: [], configurations: [], leases: [lease()], published: [], usualNamespace: 'x' };
      const [fact] = await readAccounts(cluster, question);
      const rights = fact === undefined || isUnknown(fact.rights) ? [] : fact.rights;
      return rights.filter(({ right }) => right.resource === 'secrets').map(({ right }) => `${right.verb} ${right.object ?? '*'}`);
    };
    const named = '-server-tls.self-signed-cert.secret-name=pair';
    expect(await secrets('-server-tls.enabled=true', named)).toEqual(['create *', 'get pair', 'list pair', 'watch pair', 'update pair']);
    expect(await secrets(named)).toEqual([]);
    expect(await secrets('-server-tls.enabled=true', '-server-tls.cert-file=/tls.crt')).toEqual([]);
  });

  it('is, in each namespace, that of the agent which decides there', async () => {
    const leases = [lease({ namespace: 'mimir' }), lease({ namespace: 'loki', holder: 'agent-2' })];
    const objects = { serviceaccounts: [account('mimir'), account('loki')] };
    const watched = ['mimir', 'loki', 'tempo'];
    expect(await accounts({ objects }, { leases, watched, published: [decided('tempo', 'agent-2')] })).toEqual([
      ['mimir/rollout-group-agent', 'mimir'],
      ['loki/rollout-group-agent', 'loki', 'tempo'],
    ]);
    const shared = await accounts({ objects }, { leases, watched });
    expect(shared[2]).toEqual(['tempo', expect.stringMatching(/^several agents run, and the agent that decides in tempo is unknown/)]);
  });
});
