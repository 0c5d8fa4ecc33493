// Models the prepare endpoints of pods as Mimir's ingesters implement them.
import type { PodCall, PodReply } from './cluster.ts';

interface EndpointOptions {
  readonly wallMs: () => number;
  /** True if a pod and its successor know after a restart that they were prepared. */
  readonly isKeptOnVolume: boolean;
  /** Returns the UID of the pod that listens there. */
  readonly listens: (namespace: string, pod: string) => string | undefined;
  /** Returns whether the pod left for good, so that its state has no owner. */
  readonly hasLeft: (namespace: string, pod: string) => boolean;
  /** UID and place of every pod. */
  readonly pods: () => readonly { readonly uid: string; readonly namespace: string; readonly name: string }[];
}

interface PodEndpoints {
  readonly answer: (call: PodCall) => PodReply | undefined;
  /** The container restarted, or the pod is gone. */
  readonly restarted: (namespace: string, pod: string) => void;
  /** UIDs of pods that expect to leave. */
  readonly prepared: () => readonly string[];
}

/**
 * A POST prepares the pod, which reports the start in whole seconds until a DELETE reverts it. The state belongs to a place and path
 * (`isKeptOnVolume`), or to one life of the container.
 */
export function createPodEndpoints({ wallMs, isKeptOnVolume, listens, hasLeft, pods }: EndpointOptions): PodEndpoints {
  /** By place, then by path: Unix seconds. */
  const preparations = new Map<string, Map<string, number>>();

  const answer = ({ method, host, path }: PodCall): PodReply | undefined => {
    const [pod = '', , namespace = ''] = host.split('.');
    const uid = listens(namespace, pod);
    if (uid === undefined) return undefined;
    const key = `${namespace}/${pod}`;
    const since = preparations.get(key) ?? new Map<string, number>();
    const said = { uid, pod, namespace };
    if (method === 'DELETE') {
      since.delete(path);
      if (since.size === 0) preparations.delete(key);
      return { status: 200, body: '', ...said };
    }
    const timestamp = since.get(path) ?? Math.floor(wallMs() / 1000);
    since.set(path, timestamp);
    preparations.set(key, since);
    return { status: 200, body: JSON.stringify({ timestamp }), ...said };
  };
  return {
    answer,
    restarted: (namespace, pod) => {
      if (!isKeptOnVolume || hasLeft(namespace, pod)) preparations.delete(`${namespace}/${pod}`);
    },
    prepared: () =>
      pods()
        .filter(({ namespace, name }) => preparations.has(`${namespace}/${name}`))
        .map(({ uid }) => uid),
  };
}
