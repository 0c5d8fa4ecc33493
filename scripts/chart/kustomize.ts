// Lists the generated files in deploy/kustomize: a base with the objects of `install`, and a component for each of some flags.
import { stringify } from 'yaml';
import { installation } from '../../install/installation.ts';
import type { InstallObject, InstallOptions } from '../../install/object.ts';
import { everyOptions } from '../../install/registered-policies.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';

const folder = 'deploy/kustomize';
const comment = '# Generated from install/ and scripts/chart/ by npm run generate.\n';

/** Each component with its change of the options. The last one also patches the objects of the others. */
export const kustomizeComponents: Readonly<Record<string, Partial<InstallOptions>>> = {
  compat: { hasCompat: true },
  monitoring: { hasServiceMonitor: true },
  'cert-manager': { certificate: { kind: 'cert-manager', issuer: 'rollout-group', issuerKind: 'Issuer' } },
};

/** Returns the options of the base. */
export function kustomizeOptions(image: string): InstallOptions {
  return { ...everyOptions(usualAgentNamespace), image, replicas: 3, hasNamespace: true };
}

/** Returns each file of the base and of the components. `further` are objects that only a component has. */
export function kustomizeFiles(image: string, further: Readonly<Record<string, readonly object[]>>): ReadonlyMap<string, string> {
  const base = installation(kustomizeOptions(image));
  const files = new Map([
    [`${folder}/base/objects.yaml`, documents(base)],
    [`${folder}/base/kustomization.yaml`, kustomization('v1beta1', 'Kustomization', { resources: ['objects.yaml'] })],
  ]);
  for (const [name, change] of Object.entries(kustomizeComponents)) {
    const changed = installation({ ...kustomizeOptions(image), ...change });
    const added = changed.filter((object) => !base.some((one) => isSameObject(one, object)));
    files.set(`${folder}/components/${name}/objects.yaml`, documents([...added, ...(further[name] ?? [])]));
    const patches = patchesOf(base, changed);
    const fields = { resources: ['objects.yaml'], ...(patches.length === 0 ? {} : { patches }) };
    files.set(`${folder}/components/${name}/kustomization.yaml`, kustomization('v1alpha1', 'Component', fields));
  }
  return files;
}

function kustomization(version: string, kind: string, fields: object): string {
  return `${comment}${stringify({ apiVersion: `kustomize.config.k8s.io/${version}`, kind, ...fields }, { lineWidth: 0 })}`;
}

function documents(objects: readonly object[]): string {
  return `${comment}${objects.map((object) => `---\n${stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })}`).join('')}`;
}

function isSameObject(a: InstallObject, b: InstallObject): boolean {
  return a.kind === b.kind && a.metadata.name === b.metadata.name && a.metadata.namespace === b.metadata.namespace;
}

interface Patch {
  readonly target: { readonly kind: string; readonly name?: string };
  readonly patch: string;
}

/** Returns the patches that turn the objects of the base into the objects of the component. */
function patchesOf(base: readonly InstallObject[], changed: readonly InstallObject[]): readonly Patch[] {
  const patches = base.flatMap((object): readonly Patch[] => {
    const { apiVersion, kind, metadata } = object;
    const other = changed.find((one) => isSameObject(one, object));
    if (other === undefined)
      return [
        {
          target: { kind, name: metadata.name },
          patch: stringify({ $patch: 'delete', apiVersion, kind, metadata: { name: metadata.name } }),
        },
      ];
    const operations = operationsOf(object, other, '');
    // A patch of webhook configurations also applies to those that another component adds.
    const target = kind.endsWith('WebhookConfiguration') ? { kind } : { kind, name: metadata.name };
    return operations.length === 0 ? [] : [{ target, patch: stringify(operations, { lineWidth: 0 }) }];
  });
  return [...new Map(patches.map((patch) => [canonicalJson(patch), patch])).values()];
}

interface Operation {
  readonly op: 'add' | 'remove' | 'replace';
  readonly path: string;
  readonly value?: unknown;
}

/** Returns the operations of a JSON patch that turn one value into another. Items of a list are added at its end, or replaced. */
function operationsOf(from: unknown, to: unknown, path: string): readonly Operation[] {
  if (isSameValue(from, to)) return [];
  if (Array.isArray(from) && Array.isArray(to)) return listOperations(from, to, path);
  if (!isRecord(from) || !isRecord(to)) return [{ op: 'replace', path, value: to }];
  return Object.keys({ ...from, ...to }).flatMap((key): readonly Operation[] => {
    const inner = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (to[key] === undefined) return [{ op: 'remove', path: inner }];
    return from[key] === undefined ? [{ op: 'add', path: inner, value: to[key] }] : operationsOf(from[key], to[key], inner);
  });
}

function listOperations(from: readonly unknown[], to: readonly unknown[], path: string): readonly Operation[] {
  const isIn = (items: readonly unknown[], item: unknown): boolean => items.some((one) => isSameValue(one, item));
  const [gone, added] = [from.filter((item) => !isIn(to, item)), to.filter((item) => !isIn(from, item))];
  const pairs = gone.slice(0, added.length);
  const indexOf = (item: unknown): number => from.findIndex((one) => isSameValue(one, item));
  return [
    ...pairs.flatMap((item, index) => operationsOf(item, added[index], `${path}/${indexOf(item)}`)),
    ...added.slice(pairs.length).map((value) => ({ op: 'add', path: `${path}/-`, value }) as const),
    // From the end, so that the other indexes stay.
    ...gone
      .slice(pairs.length)
      .map((item) => ({ op: 'remove', path: `${path}/${indexOf(item)}` }) as const)
      .toReversed(),
  ];
}
