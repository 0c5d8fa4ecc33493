import { describe, expect, it } from 'vitest';
import { examine } from '../../../plugin/doctor/all.ts';
import { readNamedSecrets } from '../../../plugin/doctor/gather/gather.ts';
import { type ClusterAnswers, clusterOf } from '../served-objects.ts';
import { facts } from './kit.ts';

const namespace = 'rollout-group';
const apiVersion = 'rollout-group.dev/v1alpha1';
const usableFrom = { namespaces: ['mimir'] };
const key = (name: string, of = 'login') => ({ name: of, key: name });
const basicAuth = { username: key('user'), password: key('password') };

const objects = {
  metricsources: [
    {
      apiVersion,
      kind: 'MetricSource',
      metadata: { name: 'prod', namespace },
      spec: { prometheus: { url: 'https://prometheus', basicAuth }, usableFrom },
    },
  ],
  notificationchannels: [
    {
      apiVersion,
      kind: 'NotificationChannel',
      metadata: { name: 'sre', namespace },
      spec: { slack: { token: key('token', 'slack'), channel: 'C0123456789' }, usableFrom },
    },
  ],
};
const secret = (name: string, keys: readonly string[]) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace },
  data: Object.fromEntries(keys.map((one) => [one, Buffer.from('hunter2').toString('base64')])),
});

async function said(answers: ClusterAnswers): Promise<readonly string[]> {
  const results = examine({ ...facts(), secrets: await readNamedSecrets(clusterOf(answers), namespace) });
  return results.filter(({ check }) => check === 'Secrets').map(({ verdict, message, code = '-' }) => `${verdict} ${code} ${message}`);
}

describe('the Secrets of sources and channels', () => {
  it('are valid if all exist, and have no line if no object names a Secret', async () => {
    const secrets = [secret('login', ['user', 'password']), secret('slack', ['token'])];
    expect(await said({ objects: { ...objects, secrets } })).toEqual(['ok - every Secret that a source or a channel names exists']);
    expect(await said({ objects: { secrets } })).toEqual([]);
    expect(await said({ missing: ['metricsources', 'notificationchannels'] })).toEqual([]);
  });

  it('are named if they or keys of them are missing, each once, and without their content', async () => {
    const lines = await said({ objects: { ...objects, secrets: [secret('slack', ['other'])] } });
    expect(lines).toEqual([
      'warn RG6022 MetricSource rollout-group/prod: Secret login does not exist in namespace rollout-group',
      'warn RG6022 NotificationChannel rollout-group/sre: Secret slack in namespace rollout-group has no key token',
    ]);
    const half = await said({ objects: { ...objects, secrets: [secret('login', ['user']), secret('slack', ['token'])] } });
    expect(half).toEqual(['warn RG6022 MetricSource rollout-group/prod: Secret login in namespace rollout-group has no key password']);
    expect([...lines, ...half].join()).not.toContain('hunter2');
  });

  it('are skipped if they, or the objects that name them, may not be read', async () => {
    expect(await said({ objects, forbidden: ['secrets'] })).toEqual([
      'SKIP - no permission to get Secrets in rollout-group; whether login, slack exists is unknown',
    ]);
    expect(await said({ objects, forbidden: ['metricsources'] })).toEqual(['SKIP - no permission to list metricsources.rollout-group.dev']);
  });
});
