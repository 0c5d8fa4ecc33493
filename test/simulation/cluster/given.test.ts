// The groups of examples/ as simulated ones: somebody's own manifests and policies.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { GivenGroup } from '../../../simulation/scenario.ts';
import { customKind, projectKinds } from '../../../simulation/server/kinds.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { newWorld } from './world.ts';

const examples = new URL('../../../examples/', import.meta.url);
const kinds = [
  ...projectKinds,
  customKind({ group: 'platform.example.com', version: 'v1', plural: 'consulclusters', kind: 'ConsulCluster' }),
  customKind({ group: 'autoscaling', version: 'v2', plural: 'horizontalpodautoscalers', kind: 'HorizontalPodAutoscaler', hasStatus: true }),
];

function textsOf(folder: string): readonly { readonly name: string; readonly text: string }[] {
  const files = readdirSync(new URL(folder, examples)).sort();
  return files.map((name) => ({ name, text: readFileSync(new URL(`${folder}/${name}`, examples), 'utf8') }));
}

function given(example: string, name: string): GivenGroup {
  const documents = textsOf(`${example}/manifests`).flatMap(({ text }) =>
    parseAllDocuments(text).map((document) => document.toJS() as Json),
  );
  const sets = documents
    .filter(({ kind }) => kind === 'StatefulSet')
    .map(({ metadata }) => metadata as { name: string; namespace: string });
  return {
    namespace: sets[0]?.namespace ?? '',
    name,
    statefulSets: sets.map((set) => set.name),
    objects: documents,
    policies: textsOf(`${example}/policies`),
    changes: [],
  };
}

const groups = [
  { example: 'mimir-ingester', name: 'ingester', asked: 5, becomes: 5 },
  { example: 'mimir-store-gateway', name: 'store-gateway', asked: 5, becomes: 5 },
  { example: 'kafka', name: 'kafka', asked: 5, becomes: 5 },
  // An odd number in each zone, for the votes.
  { example: 'consul', name: 'consul', asked: 4, becomes: 5 },
];

describe('a group of the examples', () => {
  it.each(groups)('$example does not change without a request', async ({ example, name }) => {
    const world = newWorld({}, 1, given(example, name), { kinds });
    const { cluster, commits, run, status } = world;
    const [first] = cluster.wanted();
    expect([status('a').replicas, status('a').readyReplicas]).toEqual([first?.replicas, first?.replicas]);
    expect(first?.image).toMatch(/:/);
    await run(300_000);
    expect(commits.map(({ resource, after }) => `${resource} ${after.metadata.name}`)).toEqual([]);
  });

  it.each(groups)('$example has replicas in the object that its policies read', async ({ example, name, asked, becomes }) => {
    const { cluster, run, commits } = newWorld({}, 1, given(example, name), { kinds });
    cluster.happen({ kind: 'setReplicas', replicas: asked });
    await run(20_000);
    expect(cluster.wanted().map(({ replicas }) => replicas)).toEqual([becomes, becomes, becomes]);
    expect(commits.length).toBeGreaterThan(0);
  });
});
