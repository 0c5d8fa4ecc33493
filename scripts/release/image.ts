// Packs the image of the agent as an OCI layout: one layer with Node.js and its libraries, and one with the bundle.

import { compress, type TarFile, tar } from '../../plugin/report/tar.ts';
import { type Architecture, fileFromNpm, filesFromDebian, libraryInputs, nodeInputs, sha256Of } from './inputs.ts';
import type { Product } from './release.ts';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

interface Layer {
  readonly descriptor: Descriptor;
  /** The digest of the uncompressed layer. */
  readonly diffId: string;
}

/** Returns the archive of the layout, the digest of the index, and the digest and the compressed size of the image of each platform. */
export async function packImage(product: Product, bundle: readonly TarFile[]) {
  /** A blob has the name of its content, so the layer that both platforms share is one blob. */
  const blobs = new Map<string, Buffer>();
  const store = (kind: string, data: Buffer | string): Descriptor => {
    const bytes = Buffer.from(data);
    const sha256 = sha256Of(bytes);
    blobs.set(`blobs/sha256/${sha256}`, bytes);
    return { mediaType: `application/vnd.oci.image.${kind}`, digest: `sha256:${sha256}`, size: bytes.length };
  };
  const layerOf = async (files: readonly TarFile[]): Promise<Layer> => {
    const content = tar(files);
    return { descriptor: store('layer.v1.tar+gzip', await compress(content)), diffId: `sha256:${sha256Of(content)}` };
  };
  const app = await layerOf(bundle.map((file) => ({ ...file, path: `app/${file.path}` })));
  const annotations = labels(product);
  const images = await Promise.all(
    (['amd64', 'arm64'] as const).map(async (architecture) => {
      const layers = [await layerOf(runtime(architecture)), app];
      const config = store('config.v1+json', JSON.stringify(configuration(product, architecture, layers)));
      const descriptors = layers.map(({ descriptor }) => descriptor);
      const manifest = {
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        config,
        layers: descriptors,
        annotations,
      };
      return {
        descriptor: { ...store('manifest.v1+json', JSON.stringify(manifest)), platform: { os: 'linux', architecture } },
        compressedBytes: [config, ...descriptors].reduce((sum, { size }) => sum + size, 0),
      };
    }),
  );
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', annotations };
  const stored = store('index.v1+json', JSON.stringify({ ...index, manifests: images.map(({ descriptor }) => descriptor) }));
  const named = { ...stored, annotations: { 'org.opencontainers.image.ref.name': product.version } };
  const archive = tar([
    ...[...blobs].map(([path, data]) => ({ path, data })),
    { path: 'index.json', data: JSON.stringify({ schemaVersion: 2, mediaType: index.mediaType, manifests: [named] }) },
    { path: 'oci-layout', data: JSON.stringify({ imageLayoutVersion: '1.0.0' }) },
  ]);
  return { archive, digest: stored.digest, images };
}

/** Returns Node.js, the libraries that it loads, and the licences. The layer is the same in every release with these inputs. */
function runtime(architecture: Architecture): readonly TarFile[] {
  const node = nodeInputs.find((input) => input.os === 'linux' && input.architecture === architecture);
  if (node === undefined) throw new Error(`Node.js for ${architecture} is not an input`);
  return [
    { path: 'nodejs/bin/node', data: fileFromNpm(node, 'bin/node'), isExecutable: true },
    { path: 'nodejs/LICENSE', data: fileFromNpm(node, 'LICENSE') },
    // Without this file the C library asks DNS before it reads /etc/hosts.
    { path: 'etc/nsswitch.conf', data: 'hosts: files dns\n' },
    ...libraryInputs(architecture)
      .flatMap(filesFromDebian)
      .map((file) => ({ ...file, isExecutable: /\.so/.test(file.path) })),
  ];
}

/** How a container engine starts the image. */
export interface ImageConfiguration {
  readonly User: string;
  readonly ExposedPorts: Readonly<Record<string, object>>;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/**
 * The environment of the agent. The image has no /etc/passwd with a home folder. With one arena, the C library keeps less memory of the
 * threads of Node.js, which allocate little: 10 MiB less in an agent whose webhooks receive 200 requests per second.
 */
export const imageEnvironment = { PATH: '/nodejs/bin', HOME: '/', NODE_ENV: 'production', MALLOC_ARENA_MAX: '1' } as const;

function configuration(product: Product, architecture: Architecture, layers: readonly Layer[]) {
  const config: ImageConfiguration = {
    // The user of the Deployment that `install` prints.
    User: '65532:65532',
    ExposedPorts: { '8001/tcp': {}, '8443/tcp': {} },
    Env: Object.entries(imageEnvironment).map(([name, value]) => `${name}=${value}`),
    Entrypoint: ['/nodejs/bin/node', '/app/rollout-group-agent'],
    WorkingDir: '/app',
    Labels: labels(product),
  };
  return {
    created: product.time,
    architecture,
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: ['Node.js and its libraries', 'the agent'].map((comment) => ({ created: product.time, comment })),
  };
}

function labels({ version, commit, time, source }: Product): Readonly<Record<string, string>> {
  const values = {
    title: 'rollout-group-agent',
    description: 'The agent and the admission webhooks of rollout-group',
    version,
    revision: commit,
    created: time,
    source,
    url: source,
    licenses: 'Apache-2.0',
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`org.opencontainers.image.${name}`, value]));
}
