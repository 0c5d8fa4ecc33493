// What the processes in the pods answer when they are asked to prepare for their removal, or to stay: as Mimir's ingesters do.
import type { PodCall, PodReply } from './cluster.ts';

interface EndpointOptions {
  readonly wallMs: () => number;
  /** Whether a pod knows after a restart, and its successor after it, that it was asked. */
  readonly isKeptOnVolume: boolean;
  /** The UID of the pod when something listens there. */
  readonly listens: (namespace: string, pod: string) => string | undefined;
  /** Whether the pod has left for good, so that what it kept has no owner any more. */
  readonly hasLeft: (namespace: string, pod: string) => boolean;
  /** UID and place of every pod. */
  readonly pods: () => readonly { readonly uid: string; readonly namespace: string; readonly name: string }[];
}

interface PodEndpoints {
  readonly answer: (call: PodCall) => PodReply | undefined;
  /** The container of the pod began anew, or the pod is gone. */
  readonly restarted: (namespace: string, pod: string) => void;
  /** UIDs of pods that believe that they are to leave. */
  readonly prepared: () => readonly string[];
}

/**
 * A POST prepares the pod, which tells since when, in whole seconds, always the same instant until a DELETE withdraws. What was prepared
 * belongs to a place and path (`isKeptOnVolume`), or to one life of the container.
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
