// A reflector on the model of the API server, with everything that it tells written down.

import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { type Change, Reflector, type ReflectorOptions, type ReflectorState } from '../../cluster/watch/reflector.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type Serve, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';

/** Interval of the server's bookmarks, and the longest time from a change to its event, in milliseconds. */
export const bookmarkMs = 60_000;
export const deliveryMs = 50;

export interface View {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  readonly value: string;
}

export function viewOf(object: KubernetesObject): View {
  const { data, metadata } = object;
  const value = (data as { readonly value?: string } | undefined)?.value ?? '';
  if (value === 'broken') throw new Error('the value is broken');
  return { name: metadata.name, uid: metadata.uid ?? '', version: metadata.resourceVersion ?? '', value };
}

interface Following {
  readonly api: ModelApi;
  readonly env: VirtualEnv;
  readonly reflector: Reflector<View>;
  readonly changes: Change<View>[];
  /** Such as `added a=1`. */
  readonly told: () => readonly string[];
  readonly states: ReflectorState[];
  /** Somebody writes an object. */
  readonly put: (name: string, value: string) => void;
  readonly remove: (name: string) => void;
  /** Waits until an open watch has delivered every change so far. */
  readonly deliver: () => Promise<void>;
  /** Names and values in the store, sorted. */
  readonly values: () => readonly string[];
  readonly listCount: () => number;
  readonly watchCount: () => number;
}

export function follow(
  options: Partial<ReflectorOptions<View>> & {
    readonly serve?: (api: ModelApi) => Serve;
    readonly seed?: number;
    readonly before?: readonly string[];
  } = {},
): Following {
  const { serve, seed = 1, before = [], ...rest } = options;
  const env = virtualEnv({ seed });
  const api = new ModelApi({ env, seed });
  env.replaceServer(serve?.(api) ?? api.serve);
  const put = (name: string, value: string): void => {
    api.put('configmaps', { metadata: { namespace: 'ns', name }, data: { value } });
  };
  for (const name of before) put(name, '1');
  const changes: Change<View>[] = [];
  const states: ReflectorState[] = [];
  const reflector = new Reflector<View>({
    env,
    resource: resources.configMaps,
    project: viewOf,
    onChange: (change) => changes.push(change),
    onState: (state) => states.push(state),
    site: 'test',
    ...rest,
  });
  return {
    api,
    env,
    reflector,
    changes,
    told: () => changes.map(({ kind, name, view }) => (view === undefined ? `${kind} ${name}` : `${kind} ${name}=${view.value}`)),
    states,
    put,
    remove: (name) => api.remove('configmaps', 'ns', name),
    deliver: () => env.advance(deliveryMs),
    values: () =>
      reflector.store
        .list()
        .map(({ name, value }) => `${name}=${value}`)
        .sort(),
    listCount: () => env.requests.filter(({ isStream }) => !isStream).length,
    watchCount: () => env.requests.filter(({ isStream }) => isStream).length,
  };
}
