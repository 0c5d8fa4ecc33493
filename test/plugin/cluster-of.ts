// A cluster of a few objects and answers, for parts of the plugin that only read.
import type { Cluster } from '../../plugin/connection.ts';
import { virtualEnv } from '../kit/virtual-env.ts';
import type { FakeObject } from './api-server.ts';

export interface ClusterAnswers {
  /** By plural; lists and gets both find them. */
  readonly objects?: Readonly<Record<string, readonly FakeObject[]>>;
  /** Plurals that may not be read. */
  readonly forbidden?: readonly string[];
  /** Plurals that the API server does not know. */
  readonly unserved?: readonly string[];
  /** Answers to a POST, as access reviews have them; by plural. */
  readonly reviews?: (plural: string, body: { readonly spec?: { readonly user?: string } }) => object;
}

export function clusterOf({ objects = {}, forbidden = [], unserved = [], reviews = () => ({}) }: ClusterAnswers): Cluster {
  const env = virtualEnv();
  const answer = (status: number, body: object) => Promise.resolve({ status, headers: {}, body: JSON.stringify(body) });
  const refusal = (code: number) => answer(code, { kind: 'Status', status: 'Failure', code });
  return {
    env: {
      ...env,
      kubernetes: {
        stream: env.kubernetes.stream,
        request: ({ method, path, body = '{}' }) => {
          const [place = ''] = path.split('?');
          const {
            namespace,
            plural = '',
            name,
          } = /^\/apis?(?:\/[^/]+)+?\/(?:v1|v1alpha1)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?$/.exec(
            place.replace(/^\/api\//, '/api/core/'),
          )?.groups ?? {};
          if (forbidden.includes(plural)) return refusal(403);
          if (unserved.includes(plural)) return refusal(404);
          if (method === 'POST') return answer(201, reviews(plural, JSON.parse(body)));
          const items = (objects[plural] ?? []).filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
          if (name === undefined) return answer(200, { kind: 'List', metadata: { resourceVersion: '1' }, items });
          const found = items.find(({ metadata }) => metadata.name === name);
          return found === undefined
            ? answer(404, { kind: 'Status', code: 404, reason: 'NotFound', details: { name, kind: plural } })
            : answer(200, found);
        },
      },
    },
    namespace: 'mimir',
    server: 'https://test',
    contextName: '',
    timeoutMs: 1000,
    close: () => undefined,
  };
}
