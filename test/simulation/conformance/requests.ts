// Requests to one kind of object, each drawn among the ways in which it can be right, late or wrong.
import { oneOf, type Random, wholeBetween } from '../../../simulation/random.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { collectionOf, type Kind, objectOf } from './kinds.ts';
import type { Operation } from './operation.ts';

export type Draw = (random: Random, kind: Kind, name: string) => Operation;

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
} as const;

const hold = 'example.com/hold';

/** Of any kind; some of them change nothing when repeated. */
const metadataChanges: readonly Json[] = [
  { metadata: { labels: { app: 'x' } } },
  { metadata: { labels: { app: 'y' } } },
  { metadata: { labels: { app: 'y', tier: 'front' } } },
  { metadata: { labels: { tier: null } } },
  { metadata: { labels: null } },
  { metadata: { annotations: { note: 'one' } } },
  { metadata: { annotations: { note: null, other: 'two' } } },
  { metadata: { finalizers: [hold] } },
  { metadata: { finalizers: [hold, 'example.com/more'] } },
  { metadata: { finalizers: null } },
  { metadata: { finalizers: [] } },
  { metadata: { generation: 77 } },
  { metadata: { creationTimestamp: null } },
  {},
];

const refusedMetadata: readonly Json[] = [
  { metadata: { labels: { app: 'not a label!' } } },
  { metadata: { name: 'other' } },
  { metadata: { namespace: 'other' } },
  { kind: 'Other' },
  { metadata: { uid: '<uid configmaps/start>' } },
];

export const create: Draw = (random, kind, name) => {
  const metadata = oneOf<Json>(random, [
    {},
    {},
    {},
    {},
    { finalizers: [hold] },
    { labels: { app: 'y' } },
    { annotations: { note: 'one' } },
    { uid: '<uid configmaps/start>', generation: 9 },
    { namespace: 'other' },
    { deletionTimestamp: '2000-01-01T12:00:00Z', deletionGracePeriodSeconds: 5 },
  ]);
  return { method: 'POST', path: `${collectionOf(kind)}${dryRun(random)}`, body: objectOf(kind, name, metadata) };
};

/** As it comes first in most sequences. */
export const plainCreate: Draw = (_, kind, name) => ({ method: 'POST', path: collectionOf(kind), body: objectOf(kind, name) });

export const get: Draw = (random, kind, name) => ({
  method: 'GET',
  path: `${collectionOf(kind)}/${name}${oneOf(random, ['', '', '?resourceVersion=0', '?resourceVersion='])}`,
});

export const list: Draw = (random, kind, name) => {
  const selector = oneOf(random, ['', '', ...selectors(kind, name)]);
  const version = oneOf(random, [
    '',
    '',
    'resourceVersion=',
    'resourceVersion=0',
    'limit=2',
    'limit=1',
    'limit=1&resourceVersion=0',
    // Refused.
    'resourceVersion=new',
    'continue=nonsense',
  ]);
  const query = [selector, version].filter((part) => part !== '').join('&');
  return { method: 'GET', path: `${collectionOf(kind)}${query === '' ? '' : `?${query}`}` };
};

/** A page, and the one after it when there is one. */
export function pages(random: Random, kind: Kind, name: string): readonly Operation[] {
  const selector = oneOf(random, ['', ...selectors(kind, name)]);
  const query = [`limit=${oneOf(random, [1, 2])}`, selector].filter((part) => part !== '').join('&');
  const path = `${collectionOf(kind)}?${query}`;
  const first: Operation = { method: 'GET', path };
  const writes = oneOf(random, [[], [plainCreate(random, kind, 'bb')], [remove(random, kind, name)], [merge(random, kind, name)]]);
  return [first, ...writes, { method: 'GET', path: `${path}&continue=<continue>` }];
}

function selectors(kind: Kind, name: string): readonly string[] {
  const labels = ['app=x', 'app!=y', 'app in (x,z)', 'app notin (y)', 'app', 'tier', '!tier', 'app=x,!tier', 'app==x', 'tier!=front'];
  const fields = [`metadata.name=${name}`, 'metadata.name!=b', 'metadata.namespace=<ns>', ...kind.fieldSelectors];
  return [
    ...labels.map((selector) => `labelSelector=${encodeURIComponent(selector)}`),
    ...fields.map((selector) => `fieldSelector=${encodeURIComponent(selector).replace('%3Cns%3E', '<ns>')}`),
    'fieldSelector=spec.unknown%3Dx',
    'labelSelector=%21%21',
  ];
}

/** Selectors that the last object of the sequence satisfies, or the name that it must have. */
export const watch: Draw = (random, kind, name) => {
  const selector = oneOf(random, [
    '',
    '',
    '',
    ...['app=x', 'app!=y', 'app in (x,z)', 'app', '!tier'].map((text) => `&labelSelector=${encodeURIComponent(text)}`),
    '&fieldSelector=metadata.name!%3Dnobody',
    `&fieldSelector=metadata.name%3D${name}`,
    ...kind.fieldSelectors.map((text) => `&fieldSelector=${encodeURIComponent(text)}`),
  ]);
  const at = `${kind.plural}/${name}`;
  const version = oneOf(random, [
    '',
    '&resourceVersion=',
    '&resourceVersion=0',
    '&resourceVersion=<rv start>',
    '&resourceVersion=<rv start>',
    '&resourceVersion=<rv list>',
    `&resourceVersion=<rv ${at}>`,
    `&resourceVersion=<rv ${at} first>`,
    ...(kind.isCustom ? ['&resourceVersion=1'] : []),
  ]);
  const bookmarks = oneOf(random, ['', '&allowWatchBookmarks=true']);
  return { method: 'GET', path: `${collectionOf(kind)}?watch=1${bookmarks}${version}${selector}`, isWatch: true };
};

export const replace: Draw = (random, kind, name) => {
  const metadata = {
    ...oneOf(random, identities(kind, name)),
    ...oneOf<Json>(random, [{}, {}, { labels: { app: 'y' } }, { finalizers: [hold] }]),
  };
  const change = oneOf(random, [{}, {}, ...kind.changes, ...kind.refused]);
  const body = withoutNulls(merged(objectOf(kind, name, metadata), change));
  return { method: 'PUT', path: `${collectionOf(kind)}/${name}${dryRun(random)}`, body };
};

export const merge: Draw = (random, kind, name) => {
  const change = oneOf(random, [
    ...kind.changes,
    ...kind.changes,
    ...metadataChanges,
    ...(random() < 0.3 ? [...kind.refused, ...refusedMetadata] : []),
  ]);
  return patch(`${collectionOf(kind)}/${name}${dryRun(random)}`, withIdentity(random, kind, name, change));
};

/** As the agent does: with uid and resourceVersion of what it saw. */
export const guarded: Draw = (random, kind, name) => {
  const change = oneOf(random, [...kind.changes, ...metadataChanges]);
  const at = `${kind.plural}/${name}`;
  return patch(`${collectionOf(kind)}/${name}`, merged(change, { metadata: { uid: `<uid ${at}>`, resourceVersion: `<rv ${at}>` } }));
};

export const jsonPatch: Draw = (random, kind, name) => {
  const at = `${kind.plural}/${name}`;
  const body = oneOf<readonly unknown[]>(random, [
    [{ op: 'add', path: '/metadata/annotations', value: { json: 'patched' } }],
    [{ op: 'add', path: '/metadata/labels/tier', value: 'front' }],
    [{ op: 'remove', path: '/metadata/labels/tier' }],
    [{ op: 'replace', path: '/metadata/labels/app', value: 'y' }],
    [
      { op: 'test', path: '/metadata/resourceVersion', value: `<rv ${at}>` },
      { op: 'add', path: '/metadata/labels/app', value: 'y' },
    ],
    [
      { op: 'test', path: '/metadata/uid', value: `<uid ${at} first>` },
      { op: 'replace', path: '/metadata/labels/app', value: 'x' },
    ],
    [{ op: 'test', path: '/metadata/labels/app', value: 'y' }],
    [{ op: 'add', path: '/metadata/finalizers', value: [hold] }],
    [{ op: 'remove', path: '/metadata/finalizers' }],
    [{ op: 'add', path: '/metadata/finalizers/-', value: 'example.com/more' }],
    [],
  ]);
  return { method: 'PATCH', path: `${collectionOf(kind)}/${name}${dryRun(random)}`, contentType: patchTypes.json, body };
};

const policies: readonly Json[] = ['Background', 'Orphan'].map((propagationPolicy) => ({ propagationPolicy }));

export const remove: Draw = (random, kind, name) => {
  const path = `${collectionOf(kind)}/${name}`;
  // To a dry run that would take the last finalizer, and to one on a pod that goes already, the server answers with an empty object.
  const fate = oneOf<Json>(random, [{}, {}, ...(kind.plural === 'pods' ? [] : [{ dryRun: ['All'] }]), ...policies]);
  // A delete that names a resourceVersion and takes the last finalizer by its policy is refused, though nothing has changed.
  const takesFinalizers = 'propagationPolicy' in fate;
  const options = {
    ...preconditions(random, kind, name, takesFinalizers ? [{}] : versions(kind, name)),
    ...fate,
    ...oneOf<Json>(random, [
      {},
      {},
      {},
      { gracePeriodSeconds: 0 },
      { gracePeriodSeconds: 5 },
      { gracePeriodSeconds: 60 },
      { gracePeriodSeconds: 1 },
    ]),
  };
  if (Object.keys(options).length === 0) return { method: 'DELETE', path };
  return { method: 'DELETE', path, body: { apiVersion: 'v1', kind: 'DeleteOptions', ...options } };
};

export const readSubresource: Draw = (random, kind, name) => ({
  method: 'GET',
  path: `${collectionOf(kind)}/${name}/${subresource(random, kind)}`,
});

export const status: Draw = (random, kind, name) => {
  const path = `${collectionOf(kind)}/${name}/status${dryRun(random)}`;
  const value = oneOf(random, kind.statuses);
  // What else is in the object is not what `/status` is for.
  const aside = oneOf(random, [{}, {}, ...kind.changes, ...metadataChanges.slice(0, 10)]);
  if (random() < 0.5) return patch(path, withIdentity(random, kind, name, merged(aside, { status: value })));
  const metadata = oneOf(random, identities(kind, name));
  return { method: 'PUT', path, body: withoutNulls(merged(merged(objectOf(kind, name, metadata), aside), { status: value })) };
};

export const scale: Draw = (random, kind, name) => {
  const path = `${collectionOf(kind)}/${name}/scale${dryRun(random)}`;
  // Hardly ever what it is already: who sets a number that is there leaves a trace of it in managedFields, which makes a new version.
  const replicas = random() < 0.1 ? -1 : wholeBetween(random, 10, 100_000);
  if (random() < 0.5) return patch(path, withIdentity(random, kind, name, { spec: { replicas } }));
  const metadata = { name, namespace: '<ns>', ...oneOf(random, identities(kind, name)) };
  return { method: 'PUT', path, body: { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata, spec: { replicas } } };
};

export const evict: Draw = (random, _, name) => {
  const at = `pods/${name}`;
  const deleteOptions = oneOf<Json>(random, [
    {},
    { preconditions: { uid: `<uid ${at}>` } },
    { preconditions: { uid: `<uid ${at}>` } },
    { preconditions: { uid: `<uid ${at} first>` } },
    { preconditions: { resourceVersion: `<rv ${at}>` } },
    { preconditions: { resourceVersion: `<rv ${at} first>` } },
    { gracePeriodSeconds: 0 },
    { dryRun: ['All'] },
  ]);
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: '<ns>' },
    ...(Object.keys(deleteOptions).length === 0 ? {} : { deleteOptions }),
  };
  return { method: 'POST', path: `/api/v1/namespaces/<ns>/pods/${name}/eviction`, body };
};

function subresource(random: Random, { statuses, hasScale }: Kind): string {
  return oneOf(random, [...(statuses.length > 0 ? ['status'] : []), ...(hasScale ? ['scale', 'scale'] : []), 'unknown']);
}

/** What a body says of the state that it was made from. */
function identities(kind: Kind, name: string): readonly Json[] {
  const at = `${kind.plural}/${name}`;
  return [
    { resourceVersion: `<rv ${at}>` },
    { resourceVersion: `<rv ${at}>` },
    { resourceVersion: `<rv ${at}>`, uid: `<uid ${at}>` },
    { resourceVersion: `<rv ${at} before>` },
    { resourceVersion: `<rv ${at}>`, uid: `<uid ${at} first>` },
    { resourceVersion: `<rv ${at}>`, uid: '<uid configmaps/start>' },
    { resourceVersion: `<rv ${at} first>`, uid: `<uid ${at} first>` },
    { uid: `<uid ${at}>` },
    {},
  ];
}

function withIdentity(random: Random, kind: Kind, name: string, change: Json): Json {
  return random() < 0.4 ? change : merged(change, { metadata: oneOf(random, identities(kind, name)) });
}

function preconditions(random: Random, kind: Kind, name: string, versionsToName: readonly Json[]): Json {
  if (random() < 0.5) return {};
  const at = `${kind.plural}/${name}`;
  const uid = oneOf<Json>(random, [
    {},
    { uid: `<uid ${at}>` },
    { uid: `<uid ${at}>` },
    { uid: `<uid ${at} first>` },
    { uid: '<uid configmaps/start>' },
  ]);
  return { preconditions: { ...uid, ...oneOf(random, versionsToName) } };
}

function versions(kind: Kind, name: string): readonly Json[] {
  const at = `${kind.plural}/${name}`;
  const current = { resourceVersion: `<rv ${at}>` };
  return [{}, current, current, { resourceVersion: `<rv ${at} before>` }];
}

function patch(path: string, body: Json): Operation {
  return { method: 'PATCH', path, contentType: patchTypes.merge, body };
}

function dryRun(random: Random): string {
  return random() < 0.1 ? '?dryRun=All' : '';
}

/** Both, and where both have something the second; `null` stays, for it is to remove. */
function merged(one: Json, other: Json): Json {
  const result: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = result[key];
    result[key] = isObject(before) && isObject(value) ? merged(before, value) : value;
  }
  return result;
}

/** In a whole object `null` is no removal, and is read in different ways. Conditions alone have times that are not known. */
function withoutNulls(value: Json): Json {
  const kept = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(kept.map(([key, field]) => [key, isObject(field) ? withoutNulls(field) : field]));
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
