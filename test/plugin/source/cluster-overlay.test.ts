import { describe, expect, it } from 'vitest';
import { overlaid, withManifestReplicas } from '../../../plugin/source/cluster/desired-objects.ts';

const live = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'a', namespace: 'm', labels: { app: 'a', team: 'x' }, resourceVersion: '7' },
  spec: {
    replicas: 3,
    template: {
      spec: {
        containers: [
          { name: 'main', image: 'x:1', imagePullPolicy: 'IfNotPresent' },
          { name: 'sidecar', image: 's:1' },
        ],
      },
    },
  },
  status: { replicas: 3 },
};

function withLast(last: object) {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(last) };
  return { ...live, metadata: { ...live.metadata, annotations } };
}

describe('a manifest merged into the live object', () => {
  it('changes the named fields and keeps the others', () => {
    const desired = {
      kind: 'StatefulSet',
      metadata: { name: 'a', namespace: 'm' },
      spec: { template: { spec: { containers: [{ name: 'main', image: 'x:2' }] } } },
    };
    expect(overlaid(live, desired)).toMatchObject({
      metadata: { labels: { app: 'a', team: 'x' } },
      spec: {
        replicas: 3,
        template: {
          spec: {
            containers: [
              { name: 'main', image: 'x:2', imagePullPolicy: 'IfNotPresent' },
              { name: 'sidecar', image: 's:1' },
            ],
          },
        },
      },
      status: { replicas: 3 },
    });
  });

  it('removes fields that only the last manifest named', () => {
    const last = {
      metadata: { labels: { app: 'a', team: 'x' } },
      spec: { template: { spec: { containers: [{ name: 'main' }, { name: 'sidecar' }] } } },
    };
    const desired = {
      kind: 'StatefulSet',
      metadata: { name: 'a', namespace: 'm', labels: { app: 'a' } },
      spec: { template: { spec: { containers: [{ name: 'main' }] } } },
    };
    const result = overlaid(withLast(last), desired);
    expect(result['metadata']).toMatchObject({ labels: { app: 'a' } });
    expect(JSON.stringify(result)).not.toContain('"team":"x"');
    expect(result['spec']).toEqual({
      replicas: 3,
      template: { spec: { containers: [{ name: 'main', image: 'x:1', imagePullPolicy: 'IfNotPresent' }] } },
    });
  });

  it('replaces lists of entries without a key', () => {
    const args = (list: readonly string[]) => ({ kind: 'StatefulSet', spec: { args: list } });
    expect(overlaid(args(['-a', '-b']), args(['-a']))).toEqual(args(['-a']));
  });

  it('is the manifest if no object exists, and accepts a truncated last manifest', () => {
    const desired = { kind: 'StatefulSet', metadata: { name: 'new' } };
    expect(overlaid(undefined, desired)).toBe(desired);
    const broken = {
      ...live,
      metadata: { ...live.metadata, annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"spec":' } },
    };
    expect(overlaid(broken, { ...live, spec: { replicas: 4 } })).toMatchObject({ spec: { replicas: 4 } });
  });

  it('requests replicas only if the manifest names or resets them', () => {
    expect(withManifestReplicas(live)['spec']).not.toHaveProperty('replicas');
    expect(withManifestReplicas(live, { manifest: { spec: { replicas: 3 } }, live })).toBe(live);
    expect(withManifestReplicas(live, { manifest: {}, live })['spec']).not.toHaveProperty('replicas');
    const reset = { ...live, spec: { replicas: 1 } };
    expect(withManifestReplicas(reset, { manifest: {}, live })).toBe(reset);
    const service = { kind: 'Service', spec: { replicas: 3 } };
    expect(withManifestReplicas(service)).toBe(service);
  });
});
