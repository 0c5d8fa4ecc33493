// The artefacts that `npm run release -- VERSION` wrote into release/, if it wrote them for the commit under test.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ImageConfiguration } from '../../scripts/release/image.ts';

export const releaseFolder: string = resolve('release');

/** Returns why the artefacts cannot be tested; undefined if they can. Fails in CI if they are of another commit. */
export function missingRelease(): string | undefined {
  const provenance = join(releaseFolder, 'provenance.intoto.json');
  if (!existsSync(provenance)) return 'there is no release/: run npm run release -- 0.2.0-test';
  const { predicate } = JSON.parse(readFileSync(provenance, 'utf8'));
  const written = predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit;
  const tested = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  if (written === tested) return undefined;
  const why = `release/ is of another commit (${written}): run npm run release -- 0.2.0-test`;
  if (process.env['CI']) throw new Error(why);
  return why;
}

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

/** Unpacks the image into a new folder in `scratch`. Returns, for each architecture, the configuration and the paths of the layers. */
export function unpackImage(
  scratch: string,
): (architecture: 'amd64' | 'arm64') => { readonly config: ImageConfiguration; readonly layers: readonly string[] } {
  const folder = mkdtempSync(join(scratch, 'image-'));
  execFileSync('tar', ['-xf', join(releaseFolder, 'image.tar'), '-C', folder]);
  const pathOf = ({ digest }: Descriptor) => join(folder, 'blobs', ...digest.split(':'));
  const read = (descriptor: Descriptor) => JSON.parse(readFileSync(pathOf(descriptor), 'utf8'));
  const layout: { readonly manifests: readonly [Descriptor] } = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'));
  const images: readonly Descriptor[] = read(layout.manifests[0]).manifests;
  return (architecture) => {
    const image = images.find(({ platform }) => platform?.architecture === architecture);
    if (image === undefined) throw new Error(`release/image.tar has no image for ${architecture}`);
    const { config, layers } = read(image) as { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
    return { config: read(config).config, layers: layers.map(pathOf) };
  };
}
