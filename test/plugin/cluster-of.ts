// A connection to the model of the API server, for parts of the plugin that only read.
import type { Cluster } from '../../plugin/connection.ts';
import { virtualEnv } from '../kit/virtual-env.ts';
import { type FakeObject, type ServedLimits, serveObjects } from './served-objects.ts';

export interface ClusterAnswers extends ServedLimits {
  /** By plural. */
  readonly objects?: Readonly<Record<string, readonly FakeObject[]>>;
  /** Answers to access reviews. */
  readonly reviews?: (plural: string, body: { readonly spec?: { readonly user?: string } }) => object;
}

export function clusterOf({ objects = {}, reviews = () => ({}), ...limits }: ClusterAnswers): Cluster {
  const env = virtualEnv();
  const { api } = serveObjects(Object.values(objects).flat(), limits, env);
  env.replaceServer((request) => {
    const { method, pathname, json } = request;
    return method === 'POST' ? { status: 201, body: reviews(pathname.split('/').at(-1) ?? '', Object(json)) } : api.serve(request);
  });
  return { env, namespace: 'mimir', server: 'https://test', contextName: '', timeoutMs: 1000, close: () => undefined };
}
