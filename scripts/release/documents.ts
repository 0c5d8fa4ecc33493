// Describes a release: the list of its components in SPDX, and its provenance in the form of in-toto and SLSA.
import { readFileSync } from 'node:fs';
import { allInputs, type Input, injector } from './inputs.ts';
import type { Product } from './release.ts';

export interface Component {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The identifier of the package, as in https://github.com/package-url. */
  readonly purl: string;
  readonly sha256?: string;
}

/** A package of npm with the checksum in the lock file. */
export interface LockedComponent extends Component {
  readonly sha512: string;
}

export interface Artefact {
  readonly name: string;
  readonly sha256: string;
}

/** Returns the packages of npm whose code is in the bundle. */
export function bundledComponents(sources: readonly string[]): readonly LockedComponent[] {
  // Greedy: a package can be in the node_modules of another one.
  const folders = new Set(sources.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  return lockedComponents([...folders].sort());
}

/** Returns the packages of npm in these folders, with their checksums in the lock file. */
function lockedComponents(folders: readonly string[]): readonly LockedComponent[] {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const components = folders.map((folder): LockedComponent => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const sha512 = Buffer.from(packages[folder].integrity.replace('sha512-', ''), 'base64').toString('hex');
    return { name, version, license: String(license ?? 'NOASSERTION'), purl, sha512 };
  });
  // Two folders can have the same version of a package.
  return [...new Map(components.map((component) => [component.purl, component])).values()];
}

/** Returns the list of components in SPDX 2.3. */
export function bill({ version, source, time, commit }: Product, bundled: readonly LockedComponent[]): string {
  const inputs = allInputs.filter((input) => input !== injector).map(componentOf);
  const product = { name: 'rollout-group', version, license: 'Apache-2.0', purl: `pkg:generic/rollout-group@${version}` };
  const components: readonly Component[] = [product, ...bundled, ...inputs];
  const id = (index: number) => `SPDXRef-${index === 0 ? 'product' : `component-${index}`}`;
  const relation = (from: string, relationshipType: string, to: string) => ({
    spdxElementId: from,
    relationshipType,
    relatedSpdxElement: to,
  });
  return json({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `rollout-group-${version}`,
    documentNamespace: `${source}/spdx/${version}-${commit}`,
    creationInfo: { created: time, creators: ['Tool: rollout-group-release'] },
    packages: components.map(({ name, version: versionInfo, license, purl, sha256 }, index) => ({
      SPDXID: id(index),
      name,
      versionInfo,
      downloadLocation: 'NOASSERTION',
      filesAnalyzed: false,
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: license,
      copyrightText: 'NOASSERTION',
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
      ...(sha256 === undefined ? {} : { checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }] }),
    })),
    relationships: [
      relation('SPDXRef-DOCUMENT', 'DESCRIBES', id(0)),
      ...components.slice(1).map((_, index) => relation(id(0), 'CONTAINS', id(index + 1))),
    ],
  });
}

/** Returns the statement that names the artefacts, the commit and the inputs. It has no times, so that it is the same in each run. */
export function provenance(product: Product, artefacts: readonly Artefact[], bundled: readonly LockedComponent[]): string {
  const { version, source, commit, isChanged, baseUrl } = product;
  return json({
    _type: 'https://in-toto.io/Statement/v1',
    subject: artefacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${source}/blob/main/CONTRIBUTING.md#releases`,
        externalParameters: { version, baseUrl },
        internalParameters: { isChanged },
        resolvedDependencies: [
          { uri: `git+${source}`, digest: { gitCommit: commit } },
          ...allInputs.map((input) => ({ uri: componentOf(input).purl, digest: { sha256: input.sha256 } })),
          ...[...bundled, ...bundler()].map(({ purl, sha512 }) => ({ uri: purl, digest: { sha512 } })),
          ...siteGenerator(),
        ],
      },
      runDetails: { builder: { id: `${source}/blob/main/scripts/release/release.ts` } },
    },
  });
}

/** Returns esbuild, whose executable is a package for this platform. */
function bundler(): readonly LockedComponent[] {
  return lockedComponents(['esbuild', `@esbuild/${process.platform}-${process.arch}`].map((name) => `node_modules/${name}`));
}

/** Returns each file of Python that pip accepts for the site. A package with compiled code has a file for each Python and processor. */
function siteGenerator(): readonly { readonly uri: string; readonly digest: { readonly sha256: string } }[] {
  const packages = readFileSync('scripts/site/requirements.txt', 'utf8').matchAll(
    /^([a-z0-9-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$/gm,
  );
  return [...packages].flatMap(([, name = '', version = '', hashes = '']) =>
    (hashes.match(/[0-9a-f]{64}/g) ?? []).map((sha256) => ({ uri: `pkg:pypi/${name}@${version}`, digest: { sha256 } })),
  );
}

function componentOf({ registry, name, version, architecture, license, sha256 }: Input): Component {
  const purl =
    registry === 'npm'
      ? `pkg:npm/${name}@${version}`
      : `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return { name, version, license, purl, sha256 };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
