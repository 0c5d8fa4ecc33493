// Random sequences: each has a theme, a few names, and requests that are likely to meet.
import { oneOf, type Random, streamOf, wholeBetween } from '../../../simulation/random.ts';
import type { Json } from '../../../simulation/server/request.ts';
import {
  budgets,
  collectionOf,
  configMaps,
  type Kind,
  leases,
  objectOf,
  pods,
  replicaTemplates,
  rolloutGroups,
  statefulSets,
} from './kinds.ts';
import { nonsense } from './nonsense.ts';
import type { Operation, Sequence } from './operation.ts';
import { lastLabel } from './play.ts';
import * as requests from './requests.ts';

type Step = (random: Random, name: string) => readonly Operation[];

interface Theme {
  readonly name: string;
  /** What collections are told in full at the end. */
  readonly kinds: readonly Kind[];
  /** How often, and what. */
  readonly steps: readonly (readonly [number, Step])[];
  /** What there is before the first step. */
  readonly begin?: (random: Random) => readonly Operation[];
}

const names = ['a', 'b', 'c'];

/** The sequence of that number among those of the seed. */
export function generate(seed: number, number: number): Sequence {
  const random = streamOf(seed, `sequence ${number}`);
  const theme = oneOf(random, themes);
  const first: Operation = { method: 'POST', path: collectionOf(configMaps), body: objectOf(configMaps, 'start'), isFixed: true };
  const main = theme.kinds[0] ?? configMaps;
  const begin = theme.begin?.(random) ?? (random() < 0.8 ? [requests.plainCreate(random, main, oneOf(random, names))] : []);
  const operations: Operation[] = [...begin];
  const count = begin.length + wholeBetween(random, 4, 11);
  while (operations.length < count) operations.push(...stepOf(random, theme.steps)(random, oneOf(random, names)));
  return { theme: theme.name, operations: [first, ...operations, ...ending(operations, theme.kinds)] };
}

function stepOf(random: Random, steps: Theme['steps']): Step {
  const sum = steps.reduce((total, [weight]) => total + weight, 0);
  let left = random() * sum;
  for (const [weight, step] of steps) {
    left -= weight;
    if (left < 0) return step;
  }
  throw new Error('a theme has no steps');
}

const one =
  (kind: Kind, draw: requests.Draw): Step =>
  (random, name) => [draw(random, kind, name)];

/** Everything that can be asked of one kind. */
function steps(kind: Kind): Theme['steps'] {
  return [
    [3, one(kind, requests.create)],
    [2, one(kind, requests.plainCreate)],
    [2, one(kind, requests.get)],
    [2, one(kind, requests.list)],
    [1, (random, name) => requests.pages(random, kind, name)],
    [1.5, one(kind, requests.watch)],
    [3, one(kind, requests.replace)],
    [3, one(kind, requests.merge)],
    [2, one(kind, requests.guarded)],
    [1.5, one(kind, requests.jsonPatch)],
    [3.5, one(kind, requests.remove)],
    ...(kind.statuses.length > 0 ? [[2.5, one(kind, requests.status)] as const] : []),
    ...(kind.hasScale ? [[2, one(kind, requests.scale)] as const] : []),
    [kind.statuses.length > 0 ? 1 : 0.2, one(kind, requests.readSubresource)],
    [0.4, (random, name) => [nonsense(random, kind, name)]],
  ];
}

const evictions: Theme = {
  name: 'evictions',
  kinds: [pods, budgets],
  begin: (random) => [
    requests.plainCreate(random, pods, 'a'),
    requests.plainCreate(random, pods, 'c'),
    { method: 'POST', path: collectionOf(budgets), body: objectOf(budgets, 'a') },
    running('a'),
    budgetStatus(random),
  ],
  steps: [
    [5, one(pods, requests.evict)],
    [2, (random) => [budgetStatus(random)]],
    [1, (_, name) => [running(name)]],
    [1, one(pods, requests.get)],
    [1, one(budgets, requests.get)],
    [1, one(budgets, requests.watch)],
    [0.5, one(budgets, requests.merge)],
    [0.5, one(budgets, requests.plainCreate)],
    [0.5, one(budgets, requests.remove)],
    [1, one(pods, requests.plainCreate)],
    [1, one(pods, requests.remove)],
    [0.5, one(pods, requests.status)],
    [0.5, one(pods, requests.merge)],
  ],
};

const themes: readonly Theme[] = [
  ...[pods, pods, configMaps, leases, statefulSets, rolloutGroups, replicaTemplates, budgets].map((kind) => ({
    name: kind.plural,
    kinds: [kind],
    steps: steps(kind),
  })),
  evictions,
  evictions,
  {
    name: 'lists and watches',
    kinds: [configMaps],
    steps: [
      [3, one(configMaps, requests.plainCreate)],
      [3, one(configMaps, requests.list)],
      [2, (random, name) => requests.pages(random, configMaps, name)],
      [3, one(configMaps, requests.watch)],
      [3, one(configMaps, requests.merge)],
      [2, one(configMaps, requests.remove)],
    ],
  },
  {
    name: 'nonsense',
    kinds: [configMaps],
    steps: [
      [5, (random, name) => [nonsense(random, oneOf(random, [pods, configMaps, statefulSets, replicaTemplates, leases]), name)]],
      [1, one(configMaps, requests.plainCreate)],
      [1, one(configMaps, requests.merge)],
    ],
  },
];

/** As the kubelet reports it. */
function running(name: string): Operation {
  const status: Json = {
    phase: 'Running',
    qosClass: 'BestEffort',
    conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: '2000-01-01T12:00:00Z' }],
  };
  const path = `${collectionOf(pods)}/${name}/status`;
  return { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { status } };
}

/** As the disruption controller reports it. */
function budgetStatus(random: Random): Operation {
  const status = { ...oneOf(random, budgets.statuses), disruptedPods: null };
  const path = `${collectionOf(budgets)}/a/status`;
  return { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { status } };
}

/** How everything stands in the end, and an object that every watch sees as its last. */
function ending(operations: readonly Operation[], kinds: readonly Kind[]): readonly Operation[] {
  const lists = kinds.map((kind): Operation => ({ method: 'GET', path: collectionOf(kind), isFixed: true }));
  const lasts = kinds.flatMap((kind) => {
    const watches = operations.filter(({ isWatch, path }) => isWatch === true && path.startsWith(`${collectionOf(kind)}?`));
    const named = watches.flatMap(({ path }) => /metadata\.name%3D([a-z]+)$/.exec(path)?.[1] ?? []);
    return [...new Set([...(watches.length > named.length ? ['last'] : []), ...named])].flatMap((name) => lastObject(kind, name));
  });
  return [...lists, ...lasts];
}

/** Whatever has the name goes, whatever holds it. */
function lastObject(kind: Kind, name: string): readonly Operation[] {
  const path = `${collectionOf(kind)}/${name}`;
  const { labels = {}, ...object } = objectOf(kind, name)['metadata'] as Json & { readonly labels?: Json };
  // On the node that a watch may ask for.
  const spec = kind === pods ? pods.spec('a') : kind.spec(name);
  const body = { ...objectOf(kind, name), ...spec, metadata: { ...object, labels: { ...labels, [lastLabel]: 'true' } } };
  const clearing: readonly Operation[] =
    name === 'last'
      ? []
      : [
          { method: 'DELETE', path, body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 }, isFixed: true },
          { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: { metadata: { finalizers: null } }, isFixed: true },
        ];
  return [...clearing, { method: 'POST', path: collectionOf(kind), body, isFixed: true }];
}
