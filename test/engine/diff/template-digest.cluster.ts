// The digest of a pod template, over manifests that no one here wrote and those of the examples: the API server's defaults do not change it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { templateDigest } from '../../../engine/diff/field-diff.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';

interface Manifest {
  readonly kind?: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: { readonly template: { readonly spec: { readonly containers: readonly { readonly image?: string }[] } } };
  readonly items?: readonly Manifest[];
}

const opened = (object: Manifest | null): readonly Manifest[] => (object === null ? [] : (object.items?.flatMap(opened) ?? [object]));

/** Some manifests of others have containers without an image, which the API server rejects. */
function isComplete({ spec }: Manifest): boolean {
  return spec?.template.spec.containers.every(({ image }) => image !== undefined) ?? false;
}

function setsBelow(folder: string): readonly Manifest[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.ya?ml$/.test(name));
  return files
    .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((document) => document.toJS() as Manifest | null))
    .flatMap(opened)
    .filter((object) => object.kind === 'StatefulSet' && isComplete(object));
}

describeOnControlPlane('the digest of a pod template', (controlPlane) => {
  const namespace = 'digests';
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;

  async function stored(set: Manifest, index: number): Promise<unknown> {
    const metadata = { ...set.metadata, name: `s${index}`, namespace };
    const object = { ...set, metadata, spec: { ...set.spec, replicas: 0 } };
    return await controlPlane().client.create(path, object);
  }

  it('is the same if the manifest names defaults and zero values, and differs for a selector of everything', async () => {
    await controlPlane().client.ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const probe = { httpGet: { port: 80 }, initialDelaySeconds: 0 };
    const affinity = (labelSelector: object | undefined) => ({
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', ...(labelSelector && { labelSelector }) }],
      },
    });
    const template = (spec: object) => ({
      metadata: { labels: { app: 'x' } },
      spec: {
        hostNetwork: false,
        nodeSelector: {},
        ...spec,
        containers: [
          {
            name: 'x',
            image: 'x:1',
            tty: false,
            env: [
              { name: 'EMPTY', value: '' },
              { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
            ],
            volumeMounts: [{ name: 'host', mountPath: '/host', readOnly: false }],
            readinessProbe: probe,
            livenessProbe: { grpc: { port: 81 } },
            lifecycle: { preStop: { httpGet: { port: 80 } } },
            resources: { limits: { cpu: '1500m' } },
          },
        ],
        volumes: [
          { name: 'host', hostPath: { path: '/host' } },
          { name: 'info', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
          { name: 'scratch', emptyDir: {} },
        ],
      },
    });
    const digests: string[] = [];
    for (const [index, spec] of [{}, { affinity: affinity({}) }, { affinity: affinity(undefined) }].entries()) {
      const set = {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'x' },
        spec: { serviceName: 'x', selector: { matchLabels: { app: 'x' } }, template: template(spec) },
      };
      const found = await stored(set as unknown as Manifest, 500 + index);
      expect(templateDigest(found)).toBe(templateDigest(set));
      digests.push(templateDigest(set));
    }
    expect(new Set(digests).size).toBe(3);
  });

  for (const folder of ['examples', '../shared/real']) {
    it.skipIf(!existsSync(folder))(
      `is the same for the manifests of ${folder} and for the objects that the API server stores`,
      async () => {
        await controlPlane().client.ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
        const sets = setsBelow(folder);
        expect(sets.length).toBeGreaterThan(5);
        const digests = sets.map((set) => [set.metadata.name, templateDigest(set)]);
        const found: [string, string][] = [];
        for (const [index, set] of sets.entries())
          found.push([set.metadata.name, templateDigest(await stored(set, folder.length * 1000 + index))]);
        expect(found).toEqual(digests);
      },
    );
  }
});
