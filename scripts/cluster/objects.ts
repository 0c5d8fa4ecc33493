// Reads manifests and applies them to the cluster, as `kubectl rollout-group apply` does.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { ApiClient } from '../../test/control-plane/client.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: {
      readonly spec: { readonly serviceAccountName?: string; readonly containers: readonly { readonly image: string }[] };
    };
    readonly volumeClaimTemplates?: readonly { readonly spec: { readonly storageClassName: string } }[];
  };
  readonly [field: string]: unknown;
}

interface Resources {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

/** Returns the objects in the YAML files of a directory. */
export function readManifests(path: string): readonly Manifest[] {
  return readdirSync(path)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(join(path, file), 'utf8')).map((document) => document.toJS() as Manifest));
}

/** Returns the API path of an object, from the kinds that the server knows; undefined for an unknown kind. */
async function pathOf(client: ApiClient, { apiVersion, kind, metadata }: Manifest): Promise<string | undefined> {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { body } = await client.ask<Resources>('GET', group);
  const resource = body.resources?.find((one) => one.kind === kind && !one.name.includes('/'));
  if (resource === undefined) return undefined;
  const namespace = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
  return `${group}${namespace}/${resource.name}/${metadata.name}`;
}

/** Applies the objects with the field manager of `apply`, which can change them later. Returns the objects of unknown kinds. */
export async function applyObjects(client: ApiClient, objects: readonly Manifest[]): Promise<readonly Manifest[]> {
  const unknown: Manifest[] = [];
  for (const object of objects) {
    const path = await pathOf(client, object);
    if (path === undefined) unknown.push(object);
    else await client.patch(`${path}?fieldManager=rollout-group`, 'apply', object);
  }
  return unknown;
}
