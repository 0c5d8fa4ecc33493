// Requests that no server can make sense of, or that mean something else than they seem to.
import { oneOf, type Random } from '../../../simulation/random.ts';
import { collectionOf, type Kind, objectOf } from './kinds.ts';
import type { Operation } from './operation.ts';

/** One of them, most about the object of that name. */
export function nonsense(random: Random, kind: Kind, name: string): Operation {
  const collection = collectionOf(kind);
  const path = `${collection}/${name}`;
  const object = objectOf(kind, name);
  const nowhere = collection.replace('<ns>', 'nowhere');
  const merge = 'application/merge-patch+json';
  const json = 'application/json-patch+json';
  const nameless: Operation = { method: 'POST', path: collection, body: { ...object, metadata: { namespace: '<ns>' } } };
  return oneOf<Operation>(random, [
    { method: 'GET', path: `${kind.root}/namespaces/<ns>/nothings` },
    { method: 'GET', path: `${kind.root}/namespaces/<ns>/nothings/${name}` },
    { method: 'GET', path: '/apis/nothing.example.com/v1/namespaces/<ns>/nothings' },
    { method: 'GET', path: '/apis/apps/v2/namespaces/<ns>/statefulsets' },
    { method: 'GET', path: '/nothing' },
    { method: 'GET', path: nowhere },
    { method: 'GET', path: `${nowhere}/${name}` },
    { method: 'DELETE', path: `${nowhere}/${name}` },
    { method: 'PATCH', path: `${nowhere}/${name}`, contentType: merge, body: {} },
    { method: 'GET', path: `${path}/nothing` },
    { method: 'POST', path: `${path}/nothing`, body: {} },
    { method: 'PUT', path: collection, body: object },
    { method: 'POST', path: collection, body: objectOf(kind, name, { resourceVersion: '1' }) },
    { method: 'POST', path, body: object },
    { method: 'PATCH', path: collection, contentType: merge, body: {} },
    { method: 'PATCH', path, contentType: 'application/json', body: {} },
    { method: 'PATCH', path, contentType: 'text/plain', body: 'x' },
    { method: 'POST', path: collection, contentType: 'text/plain', body: 'x' },
    { method: 'POST', path: collection, body: '{' },
    { method: 'POST', path: collection, body: '' },
    { method: 'POST', path: collection, body: '[]' },
    { method: 'PUT', path, body: '"text"' },
    { method: 'PATCH', path, contentType: merge, body: '{"metadata":' },
    { method: 'PATCH', path, contentType: merge, body: '[]' },
    { method: 'PATCH', path, contentType: json, body: '{}' },
    { method: 'PATCH', path, contentType: json, body: [{ op: 'invent', path: '/metadata' }] },
    { method: 'DELETE', path, body: '{' },
    { method: 'POST', path: collection, body: { ...object, kind: 'Other' } },
    { method: 'POST', path: collection, body: { ...object, apiVersion: 'example.com/v1' } },
    { method: 'POST', path: collection, body: objectOf(kind, 'Not_A_Name') },
    // A rule of RolloutGroups reads the name, and is told of beside it.
    ...(kind.plural === 'rolloutgroups' ? [] : [nameless]),
    { method: 'PUT', path, body: objectOf(kind, 'other', { resourceVersion: `<rv ${kind.plural}/${name}>` }) },
    { method: 'POST', path: `${collection}?dryRun=Some`, body: object },
    { method: 'GET', path: `${collection}?limit=many` },
    {
      method: 'POST',
      path: `/api/v1/namespaces/<ns>/pods/nobody/eviction`,
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'nobody' } },
    },
    {
      method: 'POST',
      path: `/api/v1/namespaces/<ns>/pods/${name}/eviction`,
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'other' } },
    },
  ]);
}
